"""Selecting rows that fit, best first. A row that does not fit is skipped because a smaller one after it may fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import TokenCounter
from omcli.memory.observation import Observation, Priority, Type
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import Layout, PackContent, uncovered
from omcli.pack.tail import Turn

_MISSES = 50
"""A tier counts as full once more than this many successive rows do not fit."""
OUTPUT_PART = 3
"""Lines quoted from outputs get at most one in this many tokens of a tier, because an agent can read them again."""


@record
class Candidate:
    """The index of a chosen row, and its cost in tokens including its line break and the headings it adds."""

    place: int
    cost: int


@record
class PackMeter:
    """Token counts of printed text, cached by text and by row."""

    layout: Layout
    counter: TokenCounter
    counted: dict[str, int] = field(default_factory=dict)
    rows: dict[int, tuple[Observation, int]] = field(default_factory=dict)
    """Token count of each row, by object id. The row itself is stored too, so that its id stays unique."""

    def count(self, text: str) -> int:
        if text not in self.counted:
            self.counted[text] = self.counter.text(text)
        return self.counted[text]

    def lines(self, lines: Iterable[str]) -> int:
        """Return the number of tokens in the lines, including one per line break."""
        return sum([self.count(line) + 1 for line in lines])

    def row(self, row: Observation) -> int:
        """Return the number of tokens in a printed row, without its headings."""
        if id(row) not in self.rows:
            self.rows[id(row)] = (row, self.lines([self.layout.row(row)]))
        return self.rows[id(row)][1]

    def turn(self, turn: Turn, *, room: int) -> int:
        """Return the number of tokens in a printed message.

        If the message's stored count exceeds `room`, that count is returned to avoid printing a message that cannot
        fit.
        """
        if turn.is_whole and turn.kept.counter == self.counter.name and turn.kept.tokens > room:
            return turn.kept.tokens
        return self.lines([self.layout.turn(turn)])

    def frame(self) -> int:
        return self.count(self.layout.frame())

    def overhead(self, tier: Tier) -> int:
        overhead = self.layout.overhead(tier)
        return self.lines([overhead]) if overhead else 0

    def part(self, tier: Tier, shown: PackContent) -> int:
        part = self.layout.part(tier, shown)
        return self.count(part) if part else 0


def fitting(rows: Sequence[Observation], order: Iterable[int], *, room: int, scales: PackMeter) -> list[Candidate]:
    """Choose the rows that fit into `room` tokens. `order` holds the indexes of `rows`, best first.

    Unless all rows fit, quoted output gets at most a part of the room.
    """
    if sum(row.tokens for row in rows) <= room and any(map(quotes_output, rows)):
        everything = _fitting(rows, order, room, scales, output_room=room)
        if len(everything) == len(rows):
            return everything
    return _fitting(rows, order, room, scales, output_room=room // OUTPUT_PART)


def _fitting(
    rows: Sequence[Observation], order: Iterable[int], room: int, scales: PackMeter, *, output_room: int
) -> list[Candidate]:
    chosen: list[Candidate] = []
    headings_index = _Headings(scales=scales)
    misses = 0
    least = min((row.tokens if row.counter == scales.counter.name else 0 for row in rows), default=0)
    for place in order:
        row = rows[place]
        if row.counter == scales.counter.name and row.tokens > room:
            continue
        headings = scales.layout.headings(row)
        cost = scales.row(row) + headings_index.over(place, headings)
        is_output = quotes_output(row)
        if is_output and cost > output_room:
            continue
        if cost <= room:
            output_room -= is_output * cost
            chosen.append(Candidate(place=place, cost=cost))
            headings_index.put(place, headings)
            room -= cost
            misses = 0
            if room < least:
                break
        elif misses == _MISSES:
            break
        else:
            misses += 1
    return chosen


def quotes_output(row: Observation) -> bool:
    """Return True for lines that an agent only read. Lines that it wrote or was sent have a higher priority."""
    return row.type is Type.EXCERPT and row.priority is Priority.LOW


@mutable_record
class _Headings:
    """The chosen rows and their headings, in printing order."""

    scales: PackMeter
    places: list[int] = field(default_factory=list)
    headings: list[Sequence[str]] = field(default_factory=list)

    def over(self, place: int, headings: Sequence[str]) -> int:
        """Return the number of tokens by which a new row changes the printed headings.

        The row needs headings of its own, and the row below it may need more or fewer than before.
        """
        at = bisect_left(self.places, place)
        above = self.headings[at - 1] if at else ()
        if at == len(self.places):
            return self._cost(above, headings)
        below = self.headings[at]
        return self._cost(above, headings) + self._cost(headings, below) - self._cost(above, below)

    def put(self, place: int, headings: Sequence[str]) -> None:
        at = bisect_left(self.places, place)
        self.places.insert(at, place)
        self.headings.insert(at, headings)

    def _cost(self, above: Sequence[str], headings: Sequence[str]) -> int:
        return 0 if above == headings else self.scales.lines(uncovered(above, headings))
