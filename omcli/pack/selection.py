"""Selecting rows that fit, best first. A row that does not fit is skipped because a smaller one after it may fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import KeptMessage, TokenCounter
from omcli.memory.observation import PROVISIONAL, Kind, Observation, Priority, Status, Type
from omcli.pack import tail
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import Layout, PackContent, uncovered
from omcli.pack.salience import ChoiceReason, comes_first
from omcli.pack.tail import Turn
from omcli.text.clean import AGENT, PASTED, USER, one_line
from omcli.text.terms import terms_of

_MISSES = 50
"""A tier counts as full once more than this many successive rows do not fit."""
OUTPUT_PART = 3
"""Unless all rows fit, rows that quote outputs get at most a tier's tokens divided by this number, because an agent can
read outputs again.
"""


@record
class TakenRow:
    """The index of a row that was taken into a tier, and its cost in tokens, including its line break and the headings
    it adds.
    """

    place: int
    cost: int


@record
class RowReason:
    """A visible row that was given for a pack, and the reason why it is in the pack or not."""

    tier: Tier
    row: Observation
    is_chosen: bool
    reason: ChoiceReason
    tokens: int
    room: int | None = None
    """Tokens that were left for the row if it did not fit."""
    score: float | None = None
    """The score by which rows of other sessions are ranked."""


Skipped = tuple[ChoiceReason, int]
"""The reason why a row was skipped, and the tokens that were left."""


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


class Kept:
    """An iterable that caches an iterator's items, so that it can be iterated again."""

    def __init__(self, source: Iterator[int]) -> None:
        self._source = source
        self._given: list[int] = []

    def __iter__(self) -> Iterator[int]:
        yield from self._given
        for place in self._source:
            self._given.append(place)
            yield place


@mutable_record
class TierRows:
    """The rows that may be in a tier, and those chosen so far."""

    rows: Sequence[Observation]
    order: Iterable[int]
    """Indexes of `rows`, best first. They are iterated each time the tier is filled."""
    meter: PackMeter
    is_descending: bool = False
    left_out: frozenset[int] = frozenset()
    """Indexes of rows to leave out, because they repeat other parts of the pack."""
    usual: ChoiceReason = ChoiceReason.INFORMATIVE
    """Reason for choosing a row that is not in `first`."""
    first: Callable[[], Mapping[int, ChoiceReason]] = dict
    """Returns the indexes of rows that rank before the others, with the reasons."""
    score: Callable[[Observation], float] | None = None
    chosen: list[TakenRow] = field(default_factory=list)
    skipped: dict[int, Skipped] = field(default_factory=dict)

    @property
    def cost_list(self) -> Sequence[int]:
        return [price.cost for price in self.chosen]

    @property
    def shown(self) -> list[Observation]:
        places = sorted((price.place for price in self.chosen), reverse=self.is_descending)
        rows = [self.rows[place] for place in places]
        return sorted(rows, key=is_no_reflection) if self.is_descending else rows

    def fill(self, room: int) -> None:
        self.skipped = {}
        self.chosen = fitting(
            self.rows, self.order, room=room, meter=self.meter, left_out=self.left_out, skipped=self.skipped
        )

    def drop(self, count: int) -> None:
        self.skipped |= {each.place: (ChoiceReason.EXCESS, 0) for each in self.chosen[-count:]}
        del self.chosen[-count:]

    def reason_of_each(self, tier: Tier) -> Iterator[RowReason]:
        """Yield all rows, the best first, each with the reason why it was chosen or not."""
        first, costs = self.first(), {each.place: each.cost for each in self.chosen}
        terms = terms_of([row.text for row in self.rows])
        said = frozenset().union(*(terms[place] for place in costs))
        for place in self.order:
            room = None
            if place in costs:
                reason = first.get(place, self.usual)
            elif place in self.left_out:
                reason = ChoiceReason.TOLD
            elif place in self.skipped:
                reason, left = self.skipped[place]
                room = max(0, left) if reason is ChoiceReason.TOO_LONG else None
            else:
                reason = ChoiceReason.NOTHING_NEW if terms[place] <= said else ChoiceReason.FULL
            row = self.rows[place]
            tokens = costs[place] if place in costs else self.meter.row(row)
            yield RowReason(
                tier=tier,
                row=row,
                is_chosen=place in costs,
                reason=reason,
                tokens=tokens,
                room=room,
                score=self.score(row) if self.score else None,
            )


@mutable_record
class TierTurns:
    """The messages that may be in the tail, and the groups chosen so far."""

    messages: Sequence[KeptMessage]
    meter: PackMeter
    chars: int | None
    is_growing: bool
    units: tuple[tail.TurnGroup, ...] = ()

    @property
    def cost_list(self) -> Sequence[int]:
        return [unit.cost for unit in self.units]

    @property
    def shown(self) -> tuple[Turn, ...]:
        return tail.turns(self.units)

    def fill(self, room: int, *, back_to: int = 0) -> None:
        self.units = tail.newest(
            self.messages,
            room=room,
            cost=lambda turn: self.meter.turn(turn, room=room),
            chars=self.chars,
            is_growing=self.is_growing,
            back_to=back_to,
        )

    def drop(self, count: int) -> None:
        self.units = self.units[:-count]


def is_no_reflection(row: Observation) -> bool:
    return row.kind is not Kind.REFLECTION


def repeated(rows: Sequence[Observation], turns: Sequence[Turn], matches: Mapping[str, float]) -> frozenset[int]:
    """Return the indexes of rows that repeat other rows or messages.

    Among rows with the same words, whoever says them, only one is no repetition: a pinned row or the current task,
    otherwise an open row, otherwise the best match, and the last among equals. Any row that is neither pinned, open nor
    the current task also counts as a repetition if all messages it was made from are whole in the tail, or if the tail
    contains its words in this order.
    """
    seqs = {turn.kept.seq for turn in turns if turn.is_whole}
    said = f" {' '.join(one_line(turn.text) for turn in turns)} "
    words = [
        row.text.removesuffix(f" ({PROVISIONAL})").removeprefix(USER).removeprefix(AGENT).removeprefix(PASTED)
        for row in rows
    ]
    is_lasting = [(comes_first(row), row.status is Status.OPEN) for row in rows]
    order = sorted(range(len(rows)), key=lambda place: (is_lasting[place], matches.get(rows[place].id, 0)))
    staying = {words[place]: place for place in order}

    def is_told(place: int) -> bool:
        if staying[words[place]] != place:
            return True
        sources = rows[place].sources
        return not any(is_lasting[place]) and (
            (bool(sources) and seqs.issuperset(sources)) or f" {words[place]} " in said
        )

    return frozenset(filter(is_told, range(len(rows))))


def fitting(
    rows: Sequence[Observation],
    order: Iterable[int],
    *,
    room: int,
    meter: PackMeter,
    left_out: frozenset[int] = frozenset(),
    skipped: dict[int, Skipped] | None = None,
) -> list[TakenRow]:
    """Choose the rows that fit into `room` tokens. `order` holds the indexes of `rows`, best first. Rows in `left_out`
    are not chosen. Rows that do not fit are added to `skipped`.

    Unless all rows fit, quoted output gets at most the room divided by `OUTPUT_PART`.
    """
    skipped = {} if skipped is None else skipped
    if left_out:
        order = Kept(place for place in order if place not in left_out)
    wanted = [row for place, row in enumerate(rows) if place not in left_out] if left_out else rows
    if sum(row.tokens for row in wanted) <= room and any(map(quotes_output, wanted)):
        everything = _fitting(rows, order, room, meter, skipped, output_room=room)
        if len(everything) == len(wanted):
            return everything
        skipped.clear()
    return _fitting(rows, order, room, meter, skipped, output_room=room // OUTPUT_PART)


def _fitting(
    rows: Sequence[Observation],
    order: Iterable[int],
    room: int,
    meter: PackMeter,
    skipped: dict[int, Skipped],
    *,
    output_room: int,
) -> list[TakenRow]:
    chosen: list[TakenRow] = []
    headings_index = _Headings(meter=meter)
    misses = 0
    least = min((row.tokens if row.counter == meter.counter.name else 0 for row in rows), default=0)
    for place in order:
        row = rows[place]
        if row.counter == meter.counter.name and row.tokens > room:
            skipped[place] = (ChoiceReason.TOO_LONG, room)
            continue
        headings = meter.layout.headings(row)
        cost = meter.row(row) + headings_index.over(place, headings)
        is_output = quotes_output(row)
        if is_output and cost > output_room:
            skipped[place] = (ChoiceReason.OUTPUT, output_room)
            continue
        if cost <= room:
            output_room -= is_output * cost
            chosen.append(TakenRow(place=place, cost=cost))
            headings_index.put(place, headings)
            room -= cost
            misses = 0
            if room < least:
                break
        else:
            skipped[place] = (ChoiceReason.TOO_LONG, room)
            if misses == _MISSES:
                break
            misses += 1
    return chosen


def quotes_output(row: Observation) -> bool:
    """Return True for a row that quotes lines an agent only read. Rows that quote lines it wrote or was sent have a
    higher priority.
    """
    return row.type is Type.EXCERPT and row.priority is Priority.LOW


@mutable_record
class _Headings:
    """The chosen rows and their headings, in printing order."""

    meter: PackMeter
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
        return 0 if above == headings else self.meter.lines(uncovered(above, headings))
