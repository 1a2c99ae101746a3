"""What a model's row may take the place of: only what may change, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.observation import FAILURES, OVERRULED, SETTLED, Observation, Source, Status, Type
from omcli.memory.saying import says
from omcli.memory.tail import excerpt
from omcli.memory.worth import PINNED, terms_of

_SAID = OVERRULED | {
    Type.REQUEST, Type.QUESTION, Type.PLAN, Type.TASK, Type.OUTCOME, Type.BLOCKER, Type.EVENT, Type.CORRECTION,
}  # fmt: skip
_PROBLEMS = FAILURES | {Type.BLOCKER}
_EARLIER_CHARS = 400


def replaceable(rows: Sequence[Observation], text: str, status: Status | None) -> list[Observation]:
    """Those of some rows that a new one of this text and status may take the place of.

    A row has to be open, or to hold until somebody says otherwise, and to share a word with the new one; a problem goes
    only where it is settled. What a person wrote down or pinned stays.
    """
    new, *old = terms_of([text, *(row.text for row in rows)])
    return [row for row, terms in zip(rows, old, strict=True) if terms & new and _may_go(row, status)]


def with_earlier(text: str, replaced: Sequence[Observation]) -> str:
    """A text with what it overrules, where it doesn't say that itself: what goes out of sight is not forgotten."""
    held = [row.text for row in replaced if row.type in OVERRULED and not says(text, row.text)]
    return f"{text} (earlier: {excerpt('; '.join(held), _EARLIER_CHARS)})" if held else text


def _may_go(row: Observation, status: Status | None) -> bool:
    if not row.may_change or row.source is Source.USER or PINNED in row.tags:
        return False
    return status in SETTLED if row.type in _PROBLEMS else row.type in _SAID
