"""Several rows as one: what it is, when it was, how much it matters and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omcli.memory.observation import Draft, Observation, Status
from omcli.memory.ports import TokenCounter


def tokens_of(row: Observation, counter: TokenCounter) -> int:
    """What a row takes by a counter, whichever it was counted with."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def folded(
    rows: Sequence[Observation],
    text: str,
    *,
    reason: str,
    told: Iterable[Observation] = (),
    status: Status | None = None,
) -> Draft:
    """One row in the place of several: of the strongest type and priority, dated like the newest.

    `told` are rows that it draws on and that stay. Rows of one instant stay in the order they are given in: ids are
    random, and the same rows are to come to the same.
    """
    ground = sorted({row.id: row for row in (*rows, *told)}.values(), key=lambda row: row.dated)
    strongest = max(reversed(rows), key=lambda row: (row.priority.importance, row.importance, row.dated))
    statuses = {row.status for row in rows}
    dates = {row.refers_to for row in rows}
    return Draft(
        text=text,
        type=strongest.type,
        importance=max(row.importance for row in rows),
        priority=strongest.priority,
        status=status or (statuses.pop() if len(statuses) == 1 else None),
        sources=tuple(sorted({seq for row in ground for seq in row.sources})),
        event_at=max((row.event_at for row in rows if row.event_at), default=None),
        refers_to=dates.pop() if len(dates) == 1 else None,
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
        metadata={"folded": len(rows)},
        supports=tuple(row.id for row in ground),
        replaces=tuple(row.id for row in rows),
        reason=reason,
    )
