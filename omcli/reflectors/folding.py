"""Several rows as one: what it is, when it was, how much it matters and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from omcli.llm.json_reply import LONGEST_ROW
from omcli.memory.observation import Draft, Observation, Status

_BETWEEN = len(" · [2026-02-10] ")
"""Characters between two texts of one row."""


class _Told(Protocol):
    @property
    def text(self) -> str: ...


_Piece = TypeVar("_Piece", bound=_Told)


def in_rows(pieces: Sequence[_Piece], *, most_rows: int) -> Iterator[list[_Piece]]:
    """Texts that are to become at most so many rows, those of each row together, in their order.

    They are more rows where one would be longer than a row may be: what fits into no pack is told to nobody.
    """
    most = -(-len(pieces) // most_rows)
    part: list[_Piece] = []
    room = LONGEST_ROW
    for piece in pieces:
        size = len(piece.text) + _BETWEEN
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], LONGEST_ROW
        part.append(piece)
        room -= size
    if part:
        yield part


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
