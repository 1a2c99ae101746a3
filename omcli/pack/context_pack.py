"""Context packs: the rows and messages that an agent needs to continue, within a strict token budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import KeptMessage, TokenCounter
from omcli.memory.notation import WORDS, Notation
from omcli.memory.observation import ASKED, PINNED, SETTLED, Kind, Observation, Status
from omcli.memory.session import Session
from omcli.pack import cross_session as ranking
from omcli.pack import tail
from omcli.pack.budget import Budgets, Tier, shares
from omcli.pack.layouts import LAYOUTS, PackFormat
from omcli.pack.layouts.layout import Head, Layout, PackContent, age
from omcli.pack.salience import ChoiceReason, by_salience, comes_first, matching, reason_of_first
from omcli.pack.selection import Kept, PackMeter, RowReason, TierRows, TierTurns, is_no_reflection, repeated
from omcli.pack.tail import Turn

if TYPE_CHECKING:
    from omcli.memory.batch import Pending
    from omcli.memory.session import FreezePoint


@record
class ContextPack:
    """A finished pack: the chosen content of each tier, its token counts, and the printed text."""

    session: str | None
    cross: tuple[Observation, ...]
    """Cross-session rows, in the order they were passed."""
    observations: tuple[Observation, ...]
    """Rows of the session in printing order: all reflections, then all other rows."""
    turns: tuple[Turn, ...]
    """The last messages, oldest first."""
    is_tail_whole: bool
    """True if the pack is frozen and its tail is complete (see `tail.holds_all`)."""
    tokens: Mapping[Tier, int]
    """Tokens that each tier takes in `printed`."""
    total: int
    """Tokens of `printed`, never more than the budget."""
    left_out: int
    """Number of rows that were ranked for the pack but are not in it: they did not fit or, with `Choice.matches`,
    repeat other content. Rows that are too many for `Choice` or not shared are not counted.
    """
    counter: str
    """Name of the token counter used for all counts."""
    budgets: Budgets
    pending: int
    """Number of messages in the session that are not observed yet."""
    gap: int | None
    """Number of the session's unobserved messages that are neither in the tail nor observed for this pack only. None if
    `pack` was not given the unobserved messages.
    """
    freeze_point: FreezePoint | None
    printed: str
    """The pack in the requested layout, ending with a line break; empty if nothing fits or, except in chat messages, if
    there is nothing to print. A JSON document contains it as `text`.
    """
    reasons: tuple[RowReason, ...] = ()
    """All visible rows given for tiers with a budget, and why they are in the pack or not, if `Choice.is_explained`."""


@record
class Unobserved:
    """Pending messages of the session, some of which may have been observed for this pack only."""

    pending: Pending
    stood_in_for: frozenset[int] = frozenset()
    """`seq` of the pending messages that were observed for this pack only."""

    def besides(self, tail: Iterable[Turn]) -> int:
        """Return the number of pending messages that are neither in this tail nor observed for this pack."""
        return self.pending.besides([*self.stood_in_for, *(turn.kept.seq for turn in tail)])


@record
class Choice:
    """Options for choosing and ordering the rows of a pack."""

    reflections: int | None = None
    """Maximum number of the session's reflections; the newest are kept. Rows written at the same time count as one.
    None means no limit.
    """
    others: int | None = None
    """Maximum number of the session's other rows, counted in the same way. Rows that are open or in force are kept
    beyond both numbers.
    """
    is_recent: bool = False
    """True to rank the session's rows by age instead of salience: pinned rows and the current task first, then rows in
    `matches`, the best first, then reflections, then the others. Of two that are equal in all this, the newer is first.
    """
    is_descending: bool = False
    """True to print newer rows of the session above older ones, with all reflections still above the other rows."""
    is_append_only: bool = False
    """True to print a settled request below its results instead of above. The caller then also passes rows that later
    ones replaced, while all rows fit.
    """
    order: tuple[Tier, ...] = tuple(Tier)
    """Printing order of the tiers."""
    result_chars: int | None = tail.TOOL_CHARS
    """Maximum length, in characters, of a call's arguments, a result or an event in the tail, except in its newest
    messages (see `tail.newest`). None means no limit.
    """
    max_tokens: int = 0
    """Size of the pack, in tokens, up to which the tail may use the budget that the rows leave. With 0, the tail
    exceeds its own budget only to reach unobserved messages (see `pack`).
    """
    fading: float = ranking.HALF_LIFE
    """Divisor of the score of other sessions' rows for each week of age."""
    matches: Mapping[str, float] = field(default_factory=dict)
    """Degree of match of each row that matches the task at hand, by id. These rows are chosen before others
    (`by_salience`, `by_value`). If there are any, rows that repeat the last messages or another row are left out
    (`selection.repeated`).
    """
    is_explained: bool = False
    """True to record why each row is in the pack or not."""


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
    unobserved: Unobserved | None = None,
    choice: Choice = Choice(),  # noqa: B008 - a record never changes
    freeze_point: FreezePoint | None = None,
) -> ContextPack:
    """Choose the rows and messages that fit into the budgets, and print them.

    `cross` holds rows of other sessions or of none, and `observations` the session's own rows, each in the order they
    were added. Hidden rows are left out, as are rows of `cross` that `cross_session.is_shared` rejects or that repeat
    the text of another row. `messages` holds the session's main thread, oldest first. Rows are printed whole or not at
    all, but long messages may be cut. `layout` overrides the layout of the format `to`. The instant `now` affects only
    the ranking of other sessions' rows and the age in the heading of the last messages.

    If the tail does not reach back to the first of the `unobserved` messages, it may also use the budget that is still
    free, unless the pack is frozen or the tail's budget is fixed.

    With a `freeze_point`, pass only the rows before it and the messages after it. New messages then only extend the
    pack. Rows don't use the budget that messages leave unused, because later messages would push those rows out again.
    """
    is_frozen = freeze_point is not None
    head = Head(
        session=session.id if session else None,
        counter=counter.name,
        budgets=budgets,
        pending=pending,
        notation=notation,
        order=choice.order,
        is_descending=choice.is_descending,
        freeze_point=freeze_point,
        age=age(messages[-1].message.at, now) if messages and not is_frozen else None,
    )
    now = (freeze_point.at or now) if freeze_point is not None else now
    meter = PackMeter(layout=(layout or LAYOUTS[to])(head), counter=counter.remembering())
    own = _within(choice, _in_order(observations, is_moved=not is_frozen and not choice.is_append_only))
    shared = ranking.each_once([row for row in cross if ranking.is_shared(row, session=head.session)], besides=own)
    opened = _OpenPack(
        budgets=budgets,
        meter=meter,
        cross=_of_others(shared, choice, meter, now=now),
        session=_of_session(own, choice, meter),
        tail=TierTurns(messages=messages, meter=meter, chars=choice.result_chars, is_growing=is_frozen),
        is_frozen=is_frozen,
        total=int(max(0, budgets.total) * (1 - counter.free_share)),
        unobserved=unobserved,
        choice=choice,
    )
    reasons = _reason_of_each(opened, head.session, cross, observations) if choice.is_explained else ()
    return _printed(opened, head, reasons)


def _of_others(rows: Sequence[Observation], choice: Choice, meter: PackMeter, *, now: str) -> TierRows:
    order = ranking.by_value(rows, now=now, fading=choice.fading, matches=choice.matches)

    def first() -> dict[int, ChoiceReason]:
        matched = dict.fromkeys(matching(rows, choice.matches), ChoiceReason.MATCH)
        return matched | {place: ChoiceReason.PINNED for place, row in enumerate(rows) if PINNED in row.tags}

    score = partial(ranking.row_value, now=now, fading=choice.fading)
    return TierRows(rows=rows, order=order, meter=meter, first=first, usual=ChoiceReason.IMPORTANT, score=score)


def _of_session(rows: Sequence[Observation], choice: Choice, meter: PackMeter) -> TierRows:
    order = _newest(rows, choice.matches) if choice.is_recent else by_salience(rows, choice.matches)
    return TierRows(
        rows=rows,
        order=Kept(order),
        meter=meter,
        is_descending=choice.is_descending,
        first=lambda: reason_of_first(rows, choice.matches, has_asked=not choice.is_recent),
        usual=ChoiceReason.NEWEST if choice.is_recent else ChoiceReason.INFORMATIVE,
    )


def _reason_of_each(
    opened: _OpenPack, session: str | None, cross: Iterable[Observation], own: Iterable[Observation]
) -> Iterator[RowReason]:
    """Yield the visible rows given for tiers with a budget, each with the reason why it is in the pack or not. Rows
    that were ranked come first.
    """
    parts = [
        (tier, ranked, rows)
        for tier, ranked, rows in ((Tier.CROSS, opened.cross, cross), (Tier.SESSION, opened.session, own))
        if opened.limits[tier] > 0
    ]
    for tier, ranked, _ in parts:
        yield from ranked.reason_of_each(tier)
    for tier, ranked, rows in parts:
        ids = {row.id for row in ranked.rows}
        for row in (row for row in rows if row.is_visible and row.id not in ids):
            reason = ChoiceReason.OLD
            if tier is Tier.CROSS:
                reason = ChoiceReason.REPEATED if ranking.is_shared(row, session=session) else ChoiceReason.UNSHARED
            yield RowReason(tier=tier, row=row, is_chosen=False, reason=reason, tokens=opened.meter.row(row))


def _printed(opened: _OpenPack, head: Head, reasons: Iterable[RowReason]) -> ContextPack:
    """Fill and print a pack. `reasons` is iterated only after the pack is filled."""
    opened.fill()
    printed, tokens = opened.print()
    shown = opened.shown
    return ContextPack(
        session=head.session,
        cross=tuple(shown.cross),
        observations=tuple(shown.session),
        turns=tuple(shown.tail),
        is_tail_whole=opened.is_frozen and tail.holds_all(opened.tail.units, opened.tail.messages),
        tokens=tokens,
        total=opened.meter.count(printed) if printed else 0,
        left_out=len(opened.cross.rows) + len(opened.session.rows) - len(shown.cross) - len(shown.session),
        counter=head.counter,
        budgets=head.budgets,
        pending=head.pending,
        gap=opened.unobserved.besides(shown.tail) if opened.unobserved else None,
        freeze_point=head.freeze_point,
        printed=printed,
        reasons=tuple(reasons),
    )


def _in_order(rows: Iterable[Observation], *, is_moved: bool) -> list[Observation]:
    """Return the visible rows, reflections first because they were made from the oldest rows.

    A settled request or question is a new row, written after its results. If `is_moved`, it takes its old place before
    them.
    """
    visible = [row for row in rows if row.is_visible]
    times = list(accumulate((row.event_at or "" for row in visible), max))
    moved = [is_moved and _is_answered(row) for row in visible]
    order = sorted(
        range(len(visible)),
        key=lambda n: (
            is_no_reflection(visible[n]),
            (visible[n].event_at or "") if moved[n] else times[n],
            not moved[n],
        ),
    )
    return [visible[n] for n in order]


def _is_answered(row: Observation) -> bool:
    """Return True for an observed request or question that is settled and has an `event_at`, the time it was asked."""
    is_question = row.type in ASKED and row.kind is Kind.OBSERVATION
    return is_question and row.status in SETTLED and row.event_at is not None


def _within(choice: Choice, rows: Sequence[Observation]) -> Sequence[Observation]:
    ends = sum(1 for row in rows if not is_no_reflection(row))
    return [*_last(rows[:ends], choice.reflections), *_last(rows[ends:], choice.others)]


def _last(rows: Sequence[Observation], count: int | None) -> Sequence[Observation]:
    if count is None:
        return rows
    newest = tuple(dict.fromkeys(row.observed_at for row in reversed(rows)))[:count]
    return [row for row in rows if row.observed_at in newest or row.status is Status.OPEN or row.is_in_force]


def _newest(rows: Sequence[Observation], matches: Mapping[str, float]) -> Iterator[int]:
    """Yield indexes: pinned rows and the current task, then rows that match the task at hand, the best first, then
    reflections, then all others. Of two that are equal in all this, the newer comes first.
    """
    yield from sorted(
        range(len(rows)),
        key=lambda at: (
            not comes_first(rows[at]),
            -matches.get(rows[at].id, 0),
            is_no_reflection(rows[at]),
            -at,
        ),
    )


class _Part(Protocol):
    """The content chosen for one tier, best first."""

    @property
    def cost_list(self) -> Sequence[int]:
        """Cost of each chosen item, in tokens."""

    def fill(self, room: int) -> None:
        """Replace the chosen items by the best ones that fit into `room` tokens."""

    def drop(self, count: int) -> None:
        """Drop the `count` lowest-ranked items."""


@mutable_record
class _OpenPack:
    """A pack while it is filled."""

    budgets: Budgets
    meter: PackMeter
    cross: TierRows
    session: TierRows
    tail: TierTurns
    choice: Choice
    total: int
    """Maximum tokens of the pack: its budget, without the counter's free share."""
    limits: dict[Tier, int] = field(default_factory=dict)
    """Maximum tokens of each tier, set by `fill`. The tail's is raised if the tail may exceed its budget."""
    is_frozen: bool = False
    unobserved: Unobserved | None = None

    @property
    def shown(self) -> PackContent:
        return PackContent(cross=self.cross.shown, session=self.session.shown, tail=self.tail.shown)

    @property
    def parts(self) -> dict[Tier, _Part]:
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session, Tier.TAIL: self.tail}

    def tokens(self) -> dict[Tier, int]:
        shown = self.shown
        return {tier: self.meter.part(tier, shown) for tier in Tier}

    def tokens_of(self, tier: Tier) -> int:
        return self.meter.part(tier, self.shown)

    def fill(self) -> None:
        """Fill the pack. With `Choice.matches`, fill the tiers of rows a second time, without rows that repeat the tail
        or another row. These tiers get the room that they had and the room that is free, so the tail stays as it is.
        """
        self._fill_parts()
        if not self.choice.matches:
            return
        found = repeated([*self.cross.rows, *self.session.rows], self.tail.shown, self.choice.matches)
        for rows, before in ((self.cross, 0), (self.session, len(self.cross.rows))):
            rows.left_out = frozenset(place - before for place in found if 0 <= place - before < len(rows.rows))
            rows.fill(sum(rows.cost_list))
        self._fill_again(self.total - self.meter.frame() - sum(self.tokens().values()))

    def _fill_parts(self) -> None:
        """Fill each tier up to its share plus the tokens that earlier tiers left unused.

        The tiers of rows are then filled again with the rest, and finally the tail may use it (`_fill_rest`). In a
        frozen pack the rows are filled again before the tail is filled, so that new messages do not change them, and
        the tail does not reach back.
        """
        self.limits = limits = self.budgets.limits
        quota = shares(self.total - self.meter.frame(), limits)
        spare = 0
        for tier, part in self.parts.items():
            if tier is Tier.TAIL and self.is_frozen:
                spare = self._fill_again(spare)
            part.fill(min(limits[tier], quota[tier] + spare) - self.meter.overhead(tier))
            spare += quota[tier] - self.tokens_of(tier)
        if not self.is_frozen:
            self._fill_again(spare)
            self._fill_rest()

    def _fill_rest(self) -> None:
        """Let the tail use free tokens beyond its limit, unless the limit is fixed. With `max_tokens`, it grows until
        the pack has that many tokens; otherwise only back to the first unobserved message, if there is one.
        """
        if self.budgets.is_tail_fixed:
            return
        used = self.meter.frame() + sum(self.tokens().values())
        if self.choice.max_tokens:
            self._extend_tail(min(self.total, self.choice.max_tokens) - used, back_to=0)
        elif self.unobserved is not None:
            first, begins = self.unobserved.pending.first, min((turn.kept.seq for turn in self.tail.shown), default=0)
            if begins > first:
                self._extend_tail(self.total - used, back_to=first)

    def _extend_tail(self, free: int, *, back_to: int) -> None:
        if free > 0:
            room = self.tokens_of(Tier.TAIL) + free
            self.limits = {**self.limits, Tier.TAIL: max(room, self.limits[Tier.TAIL])}
            self.tail.fill(room - self.meter.overhead(Tier.TAIL), back_to=back_to)

    def _fill_again(self, spare: int) -> int:
        """Fill the tiers of rows with up to `spare` more tokens, and return the number of tokens left."""
        limits = self.limits
        for tier, rows in ((Tier.SESSION, self.session), (Tier.CROSS, self.cross)):
            held = self.tokens_of(tier)
            # Lines were counted one by one. Together they have fewer tokens, which leaves room for more.
            more = min(spare, limits[tier] - held)
            if more > 0 and len(rows.chosen) < len(rows.rows):
                rows.fill(sum(rows.cost_list) + more - (0 if held else self.meter.overhead(tier)))
                spare -= self.tokens_of(tier) - held
        return spare

    def print(self) -> tuple[str, dict[Tier, int]]:
        """Return the printed pack and the number of tokens in each tier.

        If the pack exceeds a budget because costs are only estimates, the lowest-ranked items are dropped until it
        fits. If it exceeds the budget even without items, the text is empty.
        """
        while True:
            tokens = self.tokens()
            printed = self.meter.layout.whole(self.shown, tokens)
            over = self._over(printed, tokens)
            if not over:
                return printed, tokens
            if not any(part.cost_list for part in self.parts.values()):
                return "", tokens
            for tier, excess in over.items():
                part = self.parts[tier]
                part.drop(_count_to_drop(part.cost_list, excess))

    def _over(self, printed: str, tokens: Mapping[Tier, int]) -> dict[Tier, int]:
        """Return the excess tokens of each tier that exceeds its limit.

        If only the total is exceeded, the excess is assigned to the tail in a frozen pack, unless the tail is empty,
        and otherwise to the largest tier with content.
        """
        over = {tier: tokens[tier] - limit for tier, limit in self.limits.items() if tokens[tier] > limit}
        excess = self.meter.count(printed) - self.total if printed else 0
        if over or excess <= 0:
            return over
        if self.is_frozen and self.tail.cost_list:
            return {Tier.TAIL: excess}
        return {max(Tier, key=lambda tier: (bool(self.parts[tier].cost_list), tokens[tier])): excess}


def _count_to_drop(cost_list: Sequence[int], excess: int) -> int:
    """Return the number of items to drop in order to save `excess` tokens.

    It is at least one, but otherwise at most an eighth of the items, because their costs are only estimates.
    """
    limit = max(1, len(cost_list) // 8)
    given_up = 0
    for many in range(1, limit):
        given_up += cost_list[-many]
        if given_up >= excess:
            return many
    return limit
