"""Retention: choosing the rows and messages to remove."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby

from omcli.base.record import record
from omcli.memory.message import Message, Role, results_by_call
from omcli.memory.observation import FAILURES, PINNED, SETTLED, Dropped, Kind, Observation, Priority, Status, Type
from omcli.text.instants import minute

_STANDING = frozenset({Type.INSTRUCTION, Type.PREFERENCE})
_UNFINISHED = frozenset({Type.BLOCKER, Type.TASK}) | FAILURES
_RELEVANCE = {Priority.LOW: 0, Priority.MEDIUM: 1}


class Support(StrEnum):
    """Degree to which reflections already cover a row."""

    NONE = "none"
    PARTIAL = "partial"
    STRONG = "strong"

    @classmethod
    def of(cls, reflections: int) -> Support:
        """Return the degree for a row from which this many reflections were made."""
        return (cls.NONE, cls.PARTIAL, cls.STRONG)[min(reflections, 2)]


_COVERED_FIRST = (Support.STRONG, Support.PARTIAL, Support.NONE)


@record
class RetentionRules:
    """Limits for pruning; None means no limit. A row that exceeds any limit is pruned unless it is protected.

    The limits apply to one session or to all sessions, and to either the sessions' own rows or cross-session rows.
    """

    before: str | None = None
    """Prune rows dated before this instant."""
    keep_last: int | None = None
    """In each session (or project, with `is_across`), keep only this many of the newest rows."""
    max_tokens: int | None = None
    """In each session (or project), prune the least important rows until at most this many tokens remain."""
    keep_sessions: int | None = None
    """Keep only the rows of this many most recently active sessions."""
    messages_before: str | None = None
    """Prune observed messages written before this instant."""
    session: str | None = None
    is_across: bool = False
    """Prune only cross-session rows (items and rows without a session), project by project."""
    spares_none: bool = False
    """Also prune protected rows (see `rows_to_go`)."""

    @property
    def is_empty(self) -> bool:
        return not self.is_about_rows and self.messages_before is None

    @property
    def is_about_rows(self) -> bool:
        """True if any limit applies to rows rather than messages."""
        return any(each is not None for each in (self.before, self.keep_last, self.max_tokens, self.keep_sessions))


@record
class Pool:
    """Visible rows with the same limits, in log order: of a session, or the cross-session rows of a project."""

    session: str | None
    rows: tuple[Observation, ...]
    active_at: str
    """Instant of the session's last message, or of its newest visible row if that is later."""
    hidden: tuple[Observation, ...] = ()
    """Superseded and dropped rows. Only the limits on age and number of sessions apply, without protection."""


@record
class MessageOutline:
    """A stored message without its text."""

    seq: int
    at: str | None
    role: Role
    call_id: str | None
    is_main: bool
    is_covered: bool
    is_counted: bool = True
    """See `Message.is_counted`."""


def is_across(row: Observation) -> bool:
    """Return True if the row is an item or belongs to no session, such as a project's note."""
    return row.session is None or row.kind is Kind.ITEM


def rows_to_go(
    pools: Sequence[Pool],
    rules: RetentionRules,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[Dropped]:
    """Yield the rows to prune, each once, with a reason. `support` returns the number of rows made from a row.

    Pinned rows and unsettled instructions and preferences are protected. `keep_last` and `max_tokens` also protect open
    tasks and problems. `max_tokens` also protects all other rows that are open, in force or of high priority.
    `RetentionRules.spares_none` lifts this protection, except that `max_tokens` never prunes rows of high priority.
    """
    kept = _last_active(pools, rules.keep_sessions)
    for pool in pools:
        yield from _of_pool(pool, rules, kept, support=support, tokens=tokens)


def _of_pool(
    pool: Pool,
    rules: RetentionRules,
    kept: frozenset[str | None] | None,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[Dropped]:
    gone: set[str] = set()

    def drop(rows: Iterable[Observation], reason: str) -> Iterator[Dropped]:
        for row in rows:
            if row.id not in gone:
                gone.add(row.id)
                yield Dropped(row=row.id, reason=reason)

    free = [row for row in pool.rows if rules.spares_none or not _is_standing(row)]
    whole = (*pool.hidden, *free)
    if kept is not None and pool.session not in kept:
        yield from drop(whole, f"not among the last {rules.keep_sessions} sessions")
    if rules.before is not None:
        yield from drop([row for row in whole if row.dated < rules.before], f"older than {minute(rules.before)}")
    settled = [row for row in free if rules.spares_none or not _is_unfinished(row)]
    if rules.keep_last is not None:
        newest = _newest(pool.rows, rules.keep_last)
        yield from drop([row for row in settled if row.id not in newest], f"not among the last {rules.keep_last} rows")
    if rules.max_tokens is not None:
        left = {row.id: row for row in pool.rows if row.id not in gone}
        over = sum(map(tokens, left.values())) - rules.max_tokens
        if over > 0:
            candidates = [row.id for row in settled if row.id in left and (rules.spares_none or not _is_wanted(row))]
            order = first_to_go(candidates, left, support=support)
            yield from drop(_up_to(order, over, tokens), f"more than {rules.max_tokens} tokens")


def first_to_go(
    candidates: Iterable[str],
    pool: Mapping[str, Observation],
    *,
    support: Callable[[str], int],
    most: int | None = None,
) -> tuple[Observation, ...]:
    """Return at most `most` of the candidates, the most dispensable first.

    Rows with two or more reflections made from them precede rows with one and rows with none. Among equals, low
    priority precedes medium, then older rows precede newer ones. High-priority rows and unknown ids are left out.
    """
    rows = [pool[each] for each in dict.fromkeys(candidates) if each in pool]
    order = sorted(
        (row for row in rows if row.priority in _RELEVANCE),
        key=lambda row: (_COVERED_FIRST.index(Support.of(support(row.id))), _RELEVANCE[row.priority], row.dated),
    )
    return tuple(order[:most])


def _up_to(rows: Iterable[Observation], over: int, tokens: Callable[[Observation], int]) -> Iterator[Observation]:
    """Yield rows until they add up to at least `over` tokens."""
    for row in rows:
        if over <= 0:
            return
        over -= tokens(row)
        yield row


def _newest(rows: Sequence[Observation], count: int) -> set[str]:
    """Return the ids of the `count` newest rows by date. If dates are equal, rows added later are newer."""
    oldest_first = sorted(rows, key=lambda row: row.dated)
    return {row.id for row in oldest_first[max(0, len(rows) - count) :]}


def _last_active(pools: Sequence[Pool], count: int | None) -> frozenset[str | None] | None:
    """Return the `count` most recently active sessions, or None if there is no limit."""
    if count is None:
        return None
    order = sorted(pools, key=lambda pool: (pool.active_at, pool.session or ""), reverse=True)
    return frozenset(pool.session for pool in order[:count])


def _is_standing(row: Observation) -> bool:
    return PINNED in row.tags or (row.type in _STANDING and row.status not in SETTLED)


def _is_unfinished(row: Observation) -> bool:
    return row.status is Status.OPEN and row.type in _UNFINISHED


def _is_wanted(row: Observation) -> bool:
    return row.status is Status.OPEN or row.is_in_force


def messages_to_go(outline: Sequence[MessageOutline], *, before: str, undated: str) -> tuple[int, ...]:
    """Return the `seq` of the messages to prune: observed ones written before `before`.

    `outline` lists all messages of the session in order. The agent's last observed reply is kept, because a later
    prompt may answer it. A call and its results are pruned together, or kept if one of them is kept. A message without
    an instant counts as written at `undated`.
    """
    said_last = max((each.seq for each in outline if each.is_covered and _is_answer(each)), default=0)

    def may_go(each: MessageOutline) -> bool:
        return each.is_covered and each.seq != said_last and (each.at or undated) < before

    results = results_by_call([Message(role=each.role, text="", call_id=each.call_id) for each in outline])
    call_of = {result: call for call, places in results.items() for result in places}
    together = sorted(range(len(outline)), key=lambda place: call_of.get(place, place))
    gone: list[int] = []
    for _, places in groupby(together, key=lambda place: call_of.get(place, place)):
        unit = [outline[place] for place in places]
        if all(map(may_go, unit)):
            gone += [each.seq for each in unit]
    return tuple(sorted(gone))


def _is_answer(each: MessageOutline) -> bool:
    return each.is_main and each.role is Role.ASSISTANT


@record
class BackupResult:
    path: str | None
    """Path of the new backup, or None if none was due."""
    removed: tuple[str, ...] = ()
