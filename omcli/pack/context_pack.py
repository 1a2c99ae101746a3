"""Context packs: rows and messages for an agent to continue from, within a token budget that is never exceeded."""

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
    """The chosen content of each tier, its cost, and the printed text."""

    session: str | None
    cross: tuple[Observation, ...]
    """Cross-session rows, in the order given."""
    observations: tuple[Observation, ...]
    """Rows of the session: reflections, then the others, each in the order given."""
    turns: tuple[Turn, ...]
    """The last messages, oldest first."""
    is_tail_whole: bool
    """For a frozen pack: True if it holds all messages given, without cuts for lack of room."""
    tokens: Mapping[Tier, int]
    """Tokens of each tier within `printed`."""
    left_out: int
    """Number of rows that belong in the pack but did not fit."""
    counter: str
    """The token counter of all numbers."""
    budgets: Budgets
    pending: int
    """Number of messages in the session that no observation covers yet."""
    freeze_point: FreezePoint | None
    """Only for a frozen pack."""
    printed: str
    """The pack in the requested format, line end included; empty if there is nothing to print."""


@record
class Choice:
    """Limits and order of a pack's content."""

    reflections: int | None = None
    """Limit on reflections of the session, newest first; None for no limit."""
    others: int | None = None
    """Limit on other rows of the session, likewise."""
    is_recent: bool = False
    """Prefer the newest rows of the session: reflections, then others. Otherwise the most salient."""
    is_descending: bool = False
    """Print the newest rows of the session first."""
    order: tuple[Tier, ...] = tuple(Tier)
    """Order of the tiers in print."""
    fading: float = ranking.HALF_LIFE
    """Divisor per week for the score of other sessions' rows."""


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
    """Choose rows and messages that fit and print them: at most `budgets.total` tokens in all, and each tier within its
    own.

    `cross` are candidates of the project in the order they were added; rows that don't concern other sessions are left
    out (`cross_session.is_shared`). `observations` are the session's rows in the order they were added, `messages` its
    main thread, oldest first. Rows and messages are printed whole or not at all, except for messages too long to print
    whole. `layout` overrides that of `to`. The instant `now` only affects which rows of other sessions are dropped.

    With a `freeze_point`, rows are those before it and messages those after it, and the pack belongs to its moment: new
    messages only extend it. Budget that messages leave is then not used for rows, which later messages would push out
    again.
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
        cross=_Rows(rows=shared, order=ranking.by_value(shared, now=now, fading=choice.fading), scales=scales),
        session=_Rows(rows=own, order=_Kept(order), scales=scales, is_descending=choice.is_descending),
        tail=_Tail(messages=messages, scales=scales),
        is_frozen=freeze_point is not None,
    )
    return _printed(draft, head, candidates=len(shared) + len(own))


def _printed(draft: _Draft, head: Head, *, candidates: int) -> ContextPack:
    """Print the pack chosen from this many rows."""
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
    """Return visible rows, reflections first, since their sources are older than any row that remains."""
    return sorted((row for row in rows if row.is_visible), key=_is_no_reflection)


def _is_no_reflection(row: Observation) -> bool:
    return row.kind is not Kind.REFLECTION


def _within(choice: Choice, rows: Sequence[Observation]) -> Sequence[Observation]:
    """Return the newest reflections and the newest others, within the limits of each."""
    ends = sum(1 for row in rows if not _is_no_reflection(row))
    return [*_last(rows[:ends], choice.reflections), *_last(rows[ends:], choice.others)]


def _last(rows: Sequence[Observation], count: int | None) -> Sequence[Observation]:
    return rows if count is None else rows[max(0, len(rows) - count) :]


def _newest(rows: Sequence[Observation]) -> Iterator[int]:
    """Yield indexes of rows: pinned ones, then reflections, then the others, the newest of each first."""
    yield from sorted(range(len(rows)), key=lambda at: (PINNED not in rows[at].tags, _is_no_reflection(rows[at]), -at))


class _Kept:
    """An iterable over an iterator that caches its items."""

    def __init__(self, source: Iterator[int]) -> None:
        self._source = source
        self._given: list[int] = []

    def __iter__(self) -> Iterator[int]:
        yield from self._given
        for place in self._source:
            self._given.append(place)
            yield place


class _Part(Protocol):
    """The chosen part of a tier, best first."""

    @property
    def cost_list(self) -> Sequence[int]:
        """Cost of each chosen item."""

    def fill(self, room: int) -> None:
        """Choose again."""

    def drop(self, count: int) -> None:
        """Drop the lowest ranked."""


@mutable_record
class _Rows:
    """A tier of rows."""

    rows: Sequence[Observation]
    order: Iterable[int]
    """Their indexes, best first; iterated again for every filling."""
    scales: PackMeter
    is_descending: bool = False
    chosen: list[Candidate] = field(default_factory=list)

    @property
    def cost_list(self) -> Sequence[int]:
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
    def cost_list(self) -> Sequence[int]:
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
        """The chosen content, in printing order."""
        return PackContent(cross=self.cross.shown, session=self.session.shown, tail=self.tail.shown)

    @property
    def parts(self) -> dict[Tier, _Part]:
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session, Tier.TAIL: self.tail}

    def tokens(self) -> dict[Tier, int]:
        """Return the tokens of each tier as it would be printed now."""
        shown = self.shown
        return {tier: self.scales.part(tier, shown) for tier in Tier}

    def held(self, tier: Tier) -> int:
        """Return the tokens of one tier."""
        return self.scales.part(tier, self.shown)

    def fill(self) -> None:
        """Fill every tier up to its share; unused tokens go to the next tier, then back to earlier ones."""
        limits = self.budgets.limits
        given = shares(self.budgets.total - self.scales.frame(), limits)
        spare = 0
        for tier, part in self.parts.items():
            if tier is Tier.TAIL and self.is_frozen:
                spare = self._fill_again(spare)
            part.fill(min(limits[tier], given[tier] + spare) - self.scales.overhead(tier))
            spare += given[tier] - self.held(tier)
        if not self.is_frozen:
            self._fill_again(spare)

    def _fill_again(self, spare: int) -> int:
        """Fill the tiers of rows with unused tokens, and return the rest."""
        limits = self.budgets.limits
        for tier, rows in ((Tier.SESSION, self.session), (Tier.CROSS, self.cross)):
            held = self.held(tier)
            # Lines were counted one by one; together they are less, and what that leaves is used as well.
            more = min(spare, limits[tier] - held)
            if more > 0 and len(rows.chosen) < len(rows.rows):
                rows.fill(sum(rows.cost_list) + more - (0 if held else self.scales.overhead(tier)))
                spare -= self.held(tier) - held
        return spare

    def print(self) -> tuple[str, dict[Tier, int]]:
        """Return the printed pack and the tokens of each tier in it.

        If it exceeds a budget after all, the lowest ranked are dropped until it fits.
        """
        while True:
            tokens = self.tokens()
            printed = self.scales.layout.whole(self.shown, tokens)
            over = self._over(printed, tokens)
            if not over:
                return printed, tokens
            if not any(part.cost_list for part in self.parts.values()):
                return "", tokens
            for tier, excess in over.items():
                part = self.parts[tier]
                part.drop(_count_to_drop(part.cost_list, excess))

    def _over(self, printed: str, tokens: Mapping[Tier, int]) -> dict[Tier, int]:
        """Excess tokens by tier; if only the whole is too long, of the fullest tier, or of the tail in a frozen
        pack."""
        over = {tier: tokens[tier] - most for tier, most in self.budgets.limits.items() if tokens[tier] > most}
        excess = self.scales.count(printed) - max(0, self.budgets.total) if printed else 0
        if over or excess <= 0:
            return over
        if self.is_frozen and self.tail.cost_list:
            return {Tier.TAIL: excess}
        return {max(Tier, key=lambda tier: (bool(self.parts[tier].cost_list), tokens[tier])): excess}


def _count_to_drop(cost_list: Sequence[int], excess: int) -> int:
    """Number of items to drop for `excess` tokens: at least one, and few at a time, since cost_list are estimates."""
    most = max(1, len(cost_list) // 8)
    given_up = 0
    for many in range(1, most):
        given_up += cost_list[-many]
        if given_up >= excess:
            return many
    return most
