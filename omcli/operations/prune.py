"""Pruning: hiding rows and messages by retention rules. `om undo` restores them until they are permanently deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from omcli.base.record import field, fields_of, record, replace
from omcli.memory.changes import EraseResult, Operation, OperationKind, OperationWrite
from omcli.memory.message import Message, Role, TokenCounter, results_by_call, row_tokens
from omcli.memory.observation import (
    FAILURES,
    PINNED,
    SETTLED,
    Dropped,
    Kind,
    LogQuery,
    Observation,
    Priority,
    Status,
    Type,
)
from omcli.memory.ports import Operations, Store
from omcli.memory.reflection import Scope
from omcli.memory.retention import MessageOutline, RetentionRules, Support
from omcli.memory.session import SessionSummary
from omcli.operations.clock import Clock
from omcli.text.instants import minute

_STANDING = frozenset({Type.INSTRUCTION, Type.PREFERENCE})
_UNFINISHED = frozenset({Type.BLOCKER, Type.TASK}) | FAILURES
_RELEVANCE = {Priority.LOW: 0, Priority.MEDIUM: 1}
_COVERED_FIRST = (Support.STRONG, Support.PARTIAL, Support.NONE)


@record
class PruneReport:
    dropped: tuple[Dropped, ...] = ()
    rows: tuple[Observation, ...] = ()
    """The pruned rows. Like `dropped`, it is empty if they were told one by one."""
    count: int = 0
    """Number of pruned rows."""
    messages: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """`seq` of all messages to hide or delete, by session."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """Number of those messages for which `Message.is_counted` is true, by session."""
    sessions: int = 0
    """Number of sessions that lose rows or messages."""
    tokens: int = 0
    """Tokens of the pruned rows that were visible, by the given counter."""
    done: Operation | None = None
    """None if nothing was done."""
    erased: EraseResult | None = None
    """None if rows were only hidden, or in a dry run."""

    @property
    def is_empty(self) -> bool:
        return not (self.count or self.messages)


def prune(
    store: Store,
    rules: RetentionRules,
    *,
    counter: TokenCounter,
    clock: Clock,
    dry_run: bool = False,
    for_good: bool = False,
    in_full: bool = True,
    tell: Callable[[Observation, str], None] | None = None,
) -> PruneReport:
    """Hide rows and messages by retention rules, in one operation. With `for_good`, delete them permanently.

    Without `in_full`, reported rows lack the fields that are slowest to read (`LogQuery.bare`). `for_good` also deletes
    rows that are already hidden and exceed the limit on age or on the number of sessions, and frees the disk space.
    Even without `for_good`, vectors that no visible text uses are deleted. `dry_run` changes nothing. In it, `tell` is
    given each row and the reason once it is found, so that they need not all be kept.
    """
    if dry_run and tell is not None:
        return _plan(store, rules, counter=counter, for_good=for_good, tell=tell)
    pruned: list[tuple[Observation, str]] = []
    found = _plan(store, rules, counter=counter, for_good=for_good, tell=lambda *each: pruned.append(each))
    rows = [row for row, _ in pruned]
    if in_full:  # read before they are deleted, but left as they are if they have been forgotten since
        rows = [full or row for full, row in zip(store.rows.find_all(row.id for row in rows), rows, strict=True)]
    dropped = tuple(Dropped(row=row.id, reason=reason) for row, reason in pruned)
    found = replace(found, dropped=dropped, rows=tuple(rows))
    if dry_run:
        return found
    store.vectors.drop_unused()  # not after: undoing needs the vectors that become unused now
    if not found.is_empty:
        found = replace(found, done=_change(store.operations, rules, found, clock=clock, for_good=for_good))
    # Do this even if nothing was deleted: a killed run may have left space that was not freed.
    return replace(found, erased=store.operations.erase((), now=clock.now())) if for_good else found


def _change(
    operations: Operations, rules: RetentionRules, found: PruneReport, *, clock: Clock, for_good: bool
) -> Operation:
    change = OperationWrite(
        verb=OperationKind.PRUNE,
        scope=Scope(session=rules.session),
        dropped=found.dropped,
        messages=tuple(seq for seqs in found.messages.values() for seq in seqs),
        figures={name: value for name, value in fields_of(rules).items() if value is not None and value is not False},
    )
    return operations.change(change, now=clock.now(), for_good=for_good)


def preview_erase(operations: Operations) -> tuple[tuple[Operation, ...], EraseResult]:
    """Return the prune and forget operations whose hidden rows and messages are not deleted yet, and what `erase` would
    delete.

    Each row and message counts once.
    """
    found = waiting(operations)
    return found, operations.preview_erase([done.number for done in found])


def erase(operations: Operations, *, clock: Clock) -> EraseResult:
    """Permanently delete everything that prune and forget operations have hidden, and free the disk space."""
    return operations.erase([done.number for done in waiting(operations)], now=clock.now())


def waiting(operations: Operations) -> tuple[Operation, ...]:
    """Return the prune and forget operations that can still be undone, newest first."""
    return tuple(
        done
        for done in operations.history()
        if done.verb in (OperationKind.PRUNE, OperationKind.FORGET) and done.can_be_undone
    )


def _plan(
    store: Store,
    rules: RetentionRules,
    *,
    counter: TokenCounter,
    for_good: bool,
    tell: Callable[[Observation, str], None],
) -> PruneReport:
    """Return what to prune, but give the rows, with the reasons, to `tell`."""
    sessions = {summary.session.id: summary for summary in store.sessions.summaries()}
    pools = _rows_by_session(store, rules, sessions, with_hidden=for_good)
    support = store.reflections.supports() if rules.max_tokens is not None else {}
    affected: set[str] = set()
    count = tokens = 0
    for row, reason in rows_to_go(
        pools, rules, support=lambda row: support.get(row, 0), tokens=lambda row: row_tokens(row, counter)
    ):
        tell(row, reason)
        count += 1
        tokens += row_tokens(row, counter) if row.is_visible else 0
        affected |= {row.session} if row.session else set()
    going = dict(_messages(store, rules, sessions))
    return PruneReport(
        count=count,
        messages={name: tuple(each.seq for each in outline) for name, outline in going.items()},
        counted={name: sum(each.is_counted for each in outline) for name, outline in going.items()},
        sessions=len(affected | going.keys()),
        tokens=tokens,
    )


def _rows_by_session(
    store: Store, rules: RetentionRules, sessions: Mapping[str, SessionSummary], *, with_hidden: bool
) -> Iterator[Pool]:
    """Yield the rows of each session, read when it is its turn. For rules across sessions, yield the cross-session rows
    by project instead. If only the age of rows is limited in sessions, younger rows are left out.
    """
    if not rules.is_about_rows:
        return
    if rules.is_across:
        yield from _by_project(store, with_hidden=with_hidden)
        return
    # Other limits depend on the rows that stay.
    until = rules.before if rules.keep_last is rules.max_tokens is rules.keep_sessions is None else None
    for name, summary in sessions.items():
        if rules.session in (None, name):
            asked = LogQuery(session=name, until=until, hidden=with_hidden, bare=True)
            rows = [row for each in store.rows.log(asked) if not is_across(row := each.observation)]
            visible = tuple(row for row in rows if row.is_visible)
            hidden = tuple(row for row in rows if not row.is_visible)
            yield Pool(session=name, rows=visible, active_at=_active_at(summary, visible), hidden=hidden)


def _by_project(store: Store, *, with_hidden: bool) -> Iterator[Pool]:
    """Yield the cross-session rows by project, the project of the first visible row first."""
    visible: dict[str | None, list[Observation]] = defaultdict(list)
    hidden: dict[str | None, list[Observation]] = defaultdict(list)
    for logged in store.rows.log(LogQuery(hidden=with_hidden, bare=True)):
        row = logged.observation
        if is_across(row):
            (visible if row.is_visible else hidden)[row.project].append(row)
    for name in dict.fromkeys((*visible, *hidden)):
        yield Pool(session=None, rows=tuple(visible[name]), active_at="", hidden=tuple(hidden[name]))


def _active_at(summary: SessionSummary, rows: Iterable[Observation]) -> str:
    """Return the time of a session's last activity: of its last message (or its last ingest, if no message is dated),
    or of its last row if that is later.
    """
    return max([summary.last_at or summary.seen_at, *(row.dated for row in rows)])


def _messages(
    store: Store, rules: RetentionRules, sessions: Mapping[str, SessionSummary]
) -> Iterator[tuple[str, tuple[MessageOutline, ...]]]:
    if rules.messages_before is None:
        return
    for name, summary in sessions.items():
        if rules.session in (None, name):
            undated = summary.last_at or summary.seen_at
            outline = store.messages.outline(name)
            gone = frozenset(messages_to_go(outline, before=rules.messages_before, undated=undated))
            if gone:
                yield name, tuple(each for each in outline if each.seq in gone)


# ---- what goes


@record
class Pool:
    """Visible rows with the same limits, in log order: of a session, or the cross-session rows of a project."""

    session: str | None
    rows: tuple[Observation, ...]
    active_at: str
    """Instant of the session's last message, or of its newest visible row if that is later."""
    hidden: tuple[Observation, ...] = ()
    """Superseded and dropped rows. Only the limits on age and number of sessions apply, without protection."""


def is_across(row: Observation) -> bool:
    """Return True if the row is an item or belongs to no session, such as a project's note."""
    return row.session is None or row.kind is Kind.ITEM


def rows_to_go(
    pools: Iterable[Pool],
    rules: RetentionRules,
    *,
    support: Callable[[str], int],
    tokens: Callable[[Observation], int],
) -> Iterator[tuple[Observation, str]]:
    """Yield the rows to prune, each once, with a reason. `support` returns the number of rows made from a row.

    If the number of sessions is limited, all pools are read first, because they are compared.

    Pinned rows and unsettled instructions and preferences are protected. From `keep_last` and `max_tokens`, open tasks
    and problems are protected too; from `max_tokens`, all other rows that are open, in force or of high priority.
    `RetentionRules.spares_none` lifts all of this, except that `max_tokens` never prunes rows of high priority.
    """
    kept = None
    if rules.keep_sessions is not None:
        pools = tuple(pools)
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
) -> Iterator[tuple[Observation, str]]:
    gone: set[str] = set()

    def drop(rows: Iterable[Observation], reason: str) -> Iterator[tuple[Observation, str]]:
        for row in rows:
            if row.id not in gone:
                gone.add(row.id)
                yield row, reason

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


def _last_active(pools: Iterable[Pool], count: int) -> frozenset[str | None]:
    """Return the `count` most recently active sessions."""
    order = sorted(((pool.active_at, pool.session or "") for pool in pools), reverse=True)
    return frozenset(name for _, name in order[:count])


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
