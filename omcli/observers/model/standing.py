"""Rows that stand, as a model is shown them so that it doesn't repeat them: some of them, with labels it can cite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from omcli.memory.dates import minute
from omcli.memory.observation import TOOL_EVENTS, Observation, Priority, Status
from omcli.memory.ports import TokenCounter
from omcli.memory.record import record
from omcli.memory.tail import excerpt
from omcli.memory.text import one_line

CURRENT = "current"
"""The tag of the row that says what is being done now."""
UNVERIFIED = "unverified"
"""The tag, and the key in `metadata`, of a row that names things its sources don't."""
_RECENT = 12
"""Rows that are shown before those which are open or matter most."""
_ROW_CHARS = 400


@record
class Standing:
    """Rows by their labels, oldest first, and how they are printed, a line each."""

    labels: Mapping[str, Observation]
    lines: tuple[str, ...]


def standing(rows: Sequence[Observation], *, room: int | None, counter: TokenCounter) -> Standing:
    """The rows that tell most about what goes on, as far as they fit into `room` tokens; all where that is None.

    What tools did is recorded by rules, and shown only while it is an open problem.
    """
    told = [row for row in rows if row.type not in TOOL_EVENTS or row.status is Status.OPEN]
    left = room
    chosen: set[int] = set()
    for place in _by_use(told):
        cost = counter.text(f"o99 {_line(told[place])}\n")
        if left is None or cost <= left:
            chosen.add(place)
            left = None if left is None else left - cost
    kept = [told[place] for place in sorted(chosen)]
    labels = {f"o{number}": row for number, row in enumerate(kept, start=1)}
    return Standing(labels=labels, lines=tuple(f"{label} {_line(row)}" for label, row in labels.items()))


def _by_use(rows: Sequence[Observation]) -> Iterator[int]:
    """Places of rows, the most useful first: recent ones, then open ones, high ones, and the rest, newest first."""
    newest = range(len(rows) - 1, -1, -1)
    tests: tuple[Callable[[int], bool], ...] = (
        lambda place: CURRENT in rows[place].tags,
        lambda place: place >= len(rows) - _RECENT,
        lambda place: rows[place].status is Status.OPEN,
        lambda place: rows[place].priority is Priority.HIGH,
        lambda place: place >= 0,
    )
    return iter(dict.fromkeys(chain.from_iterable(filter(test, newest) for test in tests)))


def _line(row: Observation) -> str:
    status = f" {row.status}" if row.status else ""
    return f"{minute(row.dated)} {row.priority} {row.type}{status}: {one_line(excerpt(row.text, _ROW_CHARS))}"
