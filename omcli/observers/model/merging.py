"""Rows of a model and rows of the rules made one: what tools did, what was said, and what the model left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from omcli.memory.message import Role
from omcli.memory.observation import Draft, Type
from omcli.memory.record import record, replace
from omcli.observers.model.coverage import covers
from omcli.observers.model.standing import TOOL_EVENTS, UNVERIFIED

_HELD = frozenset({Type.BLOCKER, Type.DECISION, Type.INSTRUCTION, Type.PREFERENCE, Type.CORRECTION})
"""Types of rows that are never lost, however little they weigh."""
_MATTERS = 7
"""The importance from which on a row is not lost either."""


@record
class Merged:
    """All rows of a batch."""

    drafts: tuple[Draft, ...]
    """In the order in which they came true."""
    added_back: int
    """Rows of the rules that the model should have had."""
    recorded_by_rules: int
    """Rows of the model that only repeat what tools did."""


def merged(by_model: Sequence[Draft], by_rules: Sequence[Draft], roles: dict[int, Role]) -> Merged:
    """What tools did as the rules have it, what was said as the model has it, and what it left out of what matters.

    `roles` tells what the messages are. With a model nothing that matters is lost that rules alone would keep: a row of
    theirs goes only where the model's rows of the same messages say most of it (`covers`).
    """
    tools = [draft for draft in by_rules if draft.type in TOOL_EVENTS]
    said = [draft for draft in by_model if not _only_repeats(draft, tools, roles)]
    verified = [draft for draft in said if UNVERIFIED not in draft.tags]
    settled = {row for draft in verified for row in draft.replaces}
    kept = [draft for draft in by_rules if draft.type in TOOL_EVENTS or _is_lost(draft, verified, settled)]
    held = [draft for draft in by_rules if draft not in kept and _matters(draft)]
    return Merged(
        drafts=tuple(_in_order(kept, [_weighed(draft, held) for draft in said])),
        added_back=len(kept) - len(tools),
        recorded_by_rules=len(by_model) - len(said),
    )


def _is_lost(draft: Draft, verified: Sequence[Draft], settled: set[str]) -> bool:
    """Whether a row of what was said has to be added back."""
    if draft.replaces:
        return not settled.issuperset(draft.replaces)
    return _matters(draft) and not covers(verified, draft)


def _matters(draft: Draft) -> bool:
    return draft.type in _HELD or draft.importance >= _MATTERS


def _weighed(draft: Draft, held: Sequence[Draft]) -> Draft:
    """A row with the weight of what it says in place of the rules: what they hold to matter is no detail."""
    if UNVERIFIED in draft.tags:
        return draft
    told = [rule.importance for rule in held if covers([draft], rule)]
    return replace(draft, importance=max(draft.importance, *told)) if told else draft


def _only_repeats(draft: Draft, tools: Sequence[Draft], roles: dict[int, Role]) -> bool:
    """Whether a row of a model comes from tools alone, and rules have recorded it."""
    is_of_tools = all(roles.get(seq) in (Role.CALL, Role.RESULT) for seq in draft.sources)
    return is_of_tools and not draft.replaces and covers(tools, draft)


def _in_order(by_rules: Sequence[Draft], by_model: Sequence[Draft]) -> Iterator[Draft]:
    """All rows, oldest first. Those of the rules are in order already: what was asked stands before what came of it."""
    left = sorted(by_model, key=lambda draft: draft.sources[-1])[::-1]
    places = list(accumulate((draft.sources[-1] for draft in reversed(by_rules)), min))[::-1]
    for draft, place in zip(by_rules, places, strict=True):
        while left and left[-1].sources[-1] < place:
            yield left.pop()
        yield draft
    yield from reversed(left)
