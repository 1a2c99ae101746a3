"""Folding old rows from all sessions of a project: selecting rows, batching them, and limiting the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.base.record import record, replace
from omcli.memory.message import TokenCounter, row_tokens
from omcli.memory.observation import PINNED, Dropped, Kind, Observation, Status
from omcli.memory.reflection import Reflected
from omcli.pack.budget import last_fitting
from omcli.pack.cross_session import days

GLOBAL = "global-prune"
"""Tag of rows made by folding across sessions. These rows are not folded again."""
_FEWEST = 20
"""Reflections are not cut to fewer tokens than this, because shorter ones would be meaningless."""
_MARKER = "… [truncated {} chars]"


@record
class GlobalBatch:
    """Rows from any session of one project, oldest first, that are folded together."""

    project: str | None
    rows: tuple[Observation, ...]
    tokens: int


@record
class GlobalPlan:
    """The visible rows, divided into those to keep and those to fold across sessions."""

    kept: tuple[Observation, ...]
    """Rows that are not folded, in the given order."""
    batches: tuple[GlobalBatch, ...]
    """Rows to fold. The batches of each project are in order, the oldest first."""


def plan_global(
    rows: Iterable[Observation], *, now: str, min_age: float, batch_tokens: int, counter: TokenCounter
) -> GlobalPlan:
    """Choose the rows to fold, and divide them into batches.

    Rows younger than `min_age` days are kept, because their details are still needed. Pinned and open rows, items, and
    rows already folded across sessions are kept too. Each batch contains rows from a single project, up to
    `batch_tokens`. A larger row gets a batch of its own.
    """
    visible = [row for row in rows if row.is_visible]
    kept = [row for row in visible if _is_kept(row) or days(now) - days(row.dated) < min_age]
    stay = {row.id for row in kept}
    by_project: dict[str | None, list[Observation]] = {}
    for row in sorted(visible, key=lambda row: row.dated):
        if row.id not in stay:
            by_project.setdefault(row.project, []).append(row)
    batches = [batch for project, old in by_project.items() for batch in _batches(project, old, batch_tokens, counter)]
    return GlobalPlan(kept=tuple(kept), batches=tuple(batches))


def _is_kept(row: Observation) -> bool:
    is_global = row.kind is Kind.REFLECTION and (row.session is None or GLOBAL in row.tags)
    return is_global or row.kind is Kind.ITEM or PINNED in row.tags or row.status is Status.OPEN


def _batches(
    project: str | None, rows: Sequence[Observation], most: int, counter: TokenCounter
) -> Iterable[GlobalBatch]:
    batch: list[Observation] = []
    tokens = 0
    for row in rows:
        size = row_tokens(row, counter)
        if batch and tokens + size > most:
            yield GlobalBatch(project=project, rows=tuple(batch), tokens=tokens)
            batch, tokens = [], 0
        batch.append(row)
        tokens += size
    if batch:
        yield GlobalBatch(project=project, rows=tuple(batch), tokens=tokens)


def limit_tokens(reflected: Reflected, *, target: int, counter: TokenCounter) -> Reflected:
    """Tag the reflections of a batch with `GLOBAL`, and cut them to at most `target` tokens in total if possible.

    If they are too long, each reflection is cut to an equal share. If that is not enough, the last reflections are
    removed until the others fit or one is left. The rows that these would replace are dropped.
    """
    drafts = [replace(draft, tags=tuple(dict.fromkeys((*draft.tags, GLOBAL)))) for draft in reflected.reflections]
    if sum(counter.text(draft.text) for draft in drafts) <= target:
        return replace(reflected, reflections=tuple(drafts))
    share = max(_FEWEST, target // len(drafts))
    drafts = [replace(draft, text=_cut(draft.text, share, counter)) for draft in drafts]
    dropped = list(reflected.dropped)
    while len(drafts) > 1 and sum(counter.text(draft.text) for draft in drafts) > target:
        dropped += [Dropped(row=row, reason="trimmed") for row in drafts.pop().replaces]
    return replace(reflected, reflections=tuple(drafts), dropped=tuple(dropped))


def _cut(text: str, most: int, counter: TokenCounter) -> str:
    """Cut text at a space, if possible, so that it fits into `most` tokens together with a marker."""
    if counter.text(text) <= most:
        return text

    def cut(chars: int) -> str:
        return text[:chars] + _MARKER.format(len(text) - chars)

    fitting = last_fitting(lambda chars: counter.text(cut(chars)) <= most, 1, len(text) - 1)
    space = text.rfind(" ", 0, fitting + 1)
    return cut(space if space > 0 else fitting)
