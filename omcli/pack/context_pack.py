"""A context pack: what an agent is given to go on from, chosen to fit a token budget that is never exceeded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import KeptMessage
from omcli.memory.notation import WORDS, Notation
from omcli.memory.observation import PINNED, Kind, Observation
from omcli.memory.session import Session
from omcli.memory.tokens import TokenCounter
from omcli.pack import cross_session as ranking
from omcli.pack import tail
from omcli.pack.budget import Budgets, Tier, shares
from omcli.pack.layouts import LAYOUTS, PackFormat
from omcli.pack.layouts.layout import Head, Layout, PackContent
from omcli.pack.salience import by_salience
from omcli.pack.selection import Candidate, PackMeter, fitting
from omcli.pack.tail import Turn, TurnGroup

if TYPE_CHECKING:
    from omcli.memory.session import FreezePoint


@record
class ContextPack:
    """The three tiers as chosen, what they cost, and the text that holds them."""

    session: str | None
    cross: tuple[Observation, ...]
    """Rows of other sessions, and of none, in the order they were given in."""
    observations: tuple[Observation, ...]
    """Rows of the session: reflections, then the others, each in the order they were given in."""
    turns: tuple[Turn, ...]
    """The last messages, oldest first."""
    is_tail_whole: bool
    """Of a frozen pack: whether all messages that were given are among them, none cut for want of room."""
    tokens: Mapping[Tier, int]
    """What each tier takes of `printed`."""
    left_out: int
    """Rows that would belong into the pack and found no room."""
    counter: str
    """The token counter that everything is stated in."""
    budgets: Budgets
    pending: int
    """Messages of the session that no observation covers yet."""
    freeze_point: FreezePoint | None
    """Of a frozen pack."""
    printed: str
    """The pack in the form that was asked for, line end included; empty where there is nothing to print."""


@record
class Choice:
    """Which rows a pack may hold, which of them go first, and in which order everything stands in it."""

    reflections: int | None = None
    """The most reflections of the session, the newest; None for any number."""
    others: int | None = None
    """The most other rows of the session, likewise."""
    is_recent: bool = False
    """Of the session's rows the newest find room first: reflections, then others. Else those that say most."""
    is_descending: bool = False
    """Its newest rows stand first."""
    order: tuple[Tier, ...] = tuple(Tier)
    """The tiers as they are printed."""
    fading: float = ranking.HALF_LIFE
    """By what the worth of other sessions' rows is divided every week."""


def pack(
    *,
    session: Session | None,
    cross: Sequence[Observation] = (),
    observations: Sequence[Observation] = (),
    messages: Sequence[KeptMessage] = (),
    budgets: Budgets,
    counter: TokenCounter,
    now: str,
    to: PackFormat = PackFormat.TEXT,
    layout: Callable[[Head], Layout] | None = None,
    notation: Notation = WORDS,
    pending: int = 0,
    choice: Choice = Choice(),  # noqa: B008 - a record never changes
    freeze_point: FreezePoint | None = None,
) -> ContextPack:
    """Chooses what fits and prints it: at most `budgets.total` tokens as a whole, and each tier at most its own.

    `cross` are candidates of the project in the order they were added: what is no business of other sessions is left
    out (`ranking.is_shared`). `observations` are the session's rows in the order they were added, `messages` its main
    thread, oldest first. Rows and messages are whole or not there at all, but for messages too long to be shown
    whole. A `layout` takes the place of that of `to`. `now`, an instant, decides nothing but which rows of other
    sessions have to give way.

    With a `freeze_point` rows and messages are those before and behind it, and the pack is of its moment: messages that
    come only add to it. What they leave of the budget is then not used for rows, which would have to give way to more.
    """
    head = Head(
        session=session.id if session else None,
        counter=counter.name,
        budgets=budgets,
        pending=pending,
        notation=notation,
        order=choice.order,
        freeze_point=freeze_point,
    )
    if freeze_point is not None:
        now = freeze_point.at or now
    scales = PackMeter(layout=(layout or LAYOUTS[to])(head), counter=counter.remembering())
    own = _within(choice, _in_order(observations))
    shared = [row for row in cross if ranking.is_shared(row, session=head.session)]
    shared = ranking.each_once(shared, besides=own)
    order = _newest(own) if choice.is_recent else by_salience(own)
    draft = _Draft(
        budgets=budgets,
        scales=scales,
        cross=_Rows(rows=shared, order=ranking.ranked(shared, now=now, fading=choice.fading), scales=scales),
        session=_Rows(rows=own, order=_Remembered(order), scales=scales, is_descending=choice.is_descending),
        tail=_Tail(messages=messages, scales=scales),
        is_frozen=freeze_point is not None,
    )
    return _printed(draft, head, candidates=len(shared) + len(own))


def _printed(draft: _Draft, head: Head, *, candidates: int) -> ContextPack:
    """A pack as it was chosen, from so many rows."""
    draft.fill()
    printed, tokens = draft.print()
    shown = draft.shown
    return ContextPack(
        session=head.session,
        cross=tuple(shown.cross),
        observations=tuple(shown.session),
        turns=tuple(shown.tail),
        is_tail_whole=draft.is_frozen and tail.holds_all(draft.tail.units, draft.tail.messages),
        tokens=tokens,
        left_out=candidates - len(shown.cross) - len(shown.session),
        counter=head.counter,
        budgets=head.budgets,
        pending=head.pending,
        freeze_point=head.freeze_point,
        printed=printed,
    )


def _in_order(rows: Iterable[Observation]) -> list[Observation]:
    """Visible rows, reflections first: what they were folded from came before everything that still stands."""
    return sorted((row for row in rows if row.is_visible), key=_is_no_reflection)


def _is_no_reflection(row: Observation) -> bool:
    return row.kind is not Kind.REFLECTION


def _within(choice: Choice, rows: Sequence[Observation]) -> Sequence[Observation]:
    """The newest reflections and the newest others, as many of each as there may be."""
    ends = sum(1 for row in rows if not _is_no_reflection(row))
    return [*_last(rows[:ends], choice.reflections), *_last(rows[ends:], choice.others)]


def _last(rows: Sequence[Observation], count: int | None) -> Sequence[Observation]:
    return rows if count is None else rows[max(0, len(rows) - count) :]


def _newest(rows: Sequence[Observation]) -> Iterator[int]:
    """Places of rows: pinned ones, then reflections, then the others, the newest of each first."""
    yield from sorted(range(len(rows)), key=lambda at: (PINNED not in rows[at].tags, _is_no_reflection(rows[at]), -at))


class _Remembered:
    """What an iterator gives, each once computed and then again and again."""

    def __init__(self, source: Iterator[int]) -> None:
        self._source = source
        self._given: list[int] = []

    def __iter__(self) -> Iterator[int]:
        yield from self._given
        for place in self._source:
            self._given.append(place)
            yield place


class _Part(Protocol):
    """What is chosen of a tier, the best first."""

    @property
    def costs(self) -> Sequence[int]:
        """What the chosen ones cost, one by one."""

    def fill(self, room: int) -> None:
        """Chooses anew."""

    def drop(self, count: int) -> None:
        """Gives up the last in rank."""


@mutable_record
class _Rows:
    """A tier of rows."""

    rows: Sequence[Observation]
    order: Iterable[int]
    """Their places, the best first; gone through again for every filling."""
    scales: PackMeter
    is_descending: bool = False
    chosen: list[Candidate] = field(default_factory=list)

    @property
    def costs(self) -> Sequence[int]:
        return [price.cost for price in self.chosen]

    @property
    def shown(self) -> list[Observation]:
        places = sorted((price.place for price in self.chosen), reverse=self.is_descending)
        rows = [self.rows[place] for place in places]
        return sorted(rows, key=_is_no_reflection) if self.is_descending else rows

    def fill(self, room: int) -> None:
        self.chosen = fitting(self.rows, self.order, room=room, scales=self.scales)

    def drop(self, count: int) -> None:
        del self.chosen[-count:]


@mutable_record
class _Tail:
    """The tier of messages."""

    messages: Sequence[KeptMessage]
    scales: PackMeter
    units: tuple[TurnGroup, ...] = ()

    @property
    def costs(self) -> Sequence[int]:
        return [unit.cost for unit in self.units]

    @property
    def shown(self) -> tuple[Turn, ...]:
        return tail.turns(self.units)

    def fill(self, room: int) -> None:
        self.units = tail.newest(self.messages, room=room, cost=lambda turn: self.scales.turn(turn, room=room))

    def drop(self, count: int) -> None:
        self.units = self.units[:-count]


@mutable_record
class _Draft:
    """A pack in the making."""

    budgets: Budgets
    scales: PackMeter
    cross: _Rows
    session: _Rows
    tail: _Tail
    is_frozen: bool = False

    @property
    def shown(self) -> PackContent:
        """What is chosen, in printing order."""
        return PackContent(cross=self.cross.shown, session=self.session.shown, tail=self.tail.shown)

    @property
    def parts(self) -> dict[Tier, _Part]:
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session, Tier.TAIL: self.tail}

    def tokens(self) -> dict[Tier, int]:
        """What each tier takes as it would be printed now."""
        shown = self.shown
        return {tier: self.scales.part(tier, shown) for tier in Tier}

    def held(self, tier: Tier) -> int:
        """What one tier takes."""
        return self.scales.part(tier, self.shown)

    def fill(self) -> None:
        """Fills every tier up to its share; what one does not use flows on to the next, then back to those before."""
        maxima = self.budgets.maxima
        given = shares(self.budgets.total - self.scales.frame(), maxima)
        spare = 0
        for tier, part in self.parts.items():
            if tier is Tier.TAIL and self.is_frozen:
                spare = self._fill_more(spare)
            part.fill(min(maxima[tier], given[tier] + spare) - self.scales.overhead(tier))
            spare += given[tier] - self.held(tier)
        if not self.is_frozen:
            self._fill_more(spare)

    def _fill_more(self, spare: int) -> int:
        """Fills the tiers of rows with what is left over, and gives what is left of that."""
        maxima = self.budgets.maxima
        for tier, rows in ((Tier.SESSION, self.session), (Tier.CROSS, self.cross)):
            held = self.held(tier)
            # Lines were counted one by one; together they are less, and what that leaves is used as well.
            more = min(spare, maxima[tier] - held)
            if more > 0 and len(rows.chosen) < len(rows.rows):
                rows.fill(sum(rows.costs) + more - (0 if held else self.scales.overhead(tier)))
                spare -= self.held(tier) - held
        return spare

    def print(self) -> tuple[str, dict[Tier, int]]:
        """The pack as printed, and what each tier takes of it.

        Where it is over a budget after all, the last in rank go until it is not.
        """
        while True:
            tokens = self.tokens()
            printed = self.scales.layout.whole(self.shown, tokens)
            over = self._over(printed, tokens)
            if not over:
                return printed, tokens
            if not any(part.costs for part in self.parts.values()):
                return "", tokens
            for tier, excess in over.items():
                part = self.parts[tier]
                part.drop(_how_many(part.costs, excess))

    def _over(self, printed: str, tokens: Mapping[Tier, int]) -> dict[Tier, int]:
        """The tiers that have to give way, and by how many tokens; where only the whole is too long the fullest, of a
        frozen pack the tail."""
        over = {tier: tokens[tier] - most for tier, most in self.budgets.maxima.items() if tokens[tier] > most}
        excess = self.scales.count(printed) - max(0, self.budgets.total) if printed else 0
        if over or excess <= 0:
            return over
        if self.is_frozen and self.tail.costs:
            return {Tier.TAIL: excess}
        return {max(Tier, key=lambda tier: (bool(self.parts[tier].costs), tokens[tier])): excess}


def _how_many(costs: Sequence[int], excess: int) -> int:
    """How many of the last to give up for `excess` tokens: at least one, and few at a time: costs are guesses."""
    most = max(1, len(costs) // 8)
    given_up = 0
    for many in range(1, most):
        given_up += costs[-many]
        if given_up >= excess:
            return many
    return most
