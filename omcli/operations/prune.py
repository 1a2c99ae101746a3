"""Pruning: hiding rows and messages by retention rules. `om undo` restores them until they are permanently deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from omcli.base.errors import UnknownId
from omcli.base.record import field, fields_of, record, replace
from omcli.memory.changes import EraseResult, Operation, OperationKind, OperationWrite
from omcli.memory.message import TokenCounter, row_tokens, rows_tokens
from omcli.memory.observation import Dropped, LogQuery, Observation
from omcli.memory.ports import Operations, Store
from omcli.memory.reflection import Scope
from omcli.memory.retention import MessageOutline, Pool, RetentionRules, is_across, messages_to_go, rows_to_go
from omcli.memory.session import SessionSummary
from omcli.operations.clock import Clock


@record
class PruneReport:
    dropped: tuple[Dropped, ...] = ()
    rows: tuple[Observation, ...] = ()
    """The pruned rows."""
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
        return not (self.dropped or self.messages)


def prune(
    store: Store,
    rules: RetentionRules,
    *,
    counter: TokenCounter,
    clock: Clock,
    dry_run: bool = False,
    for_good: bool = False,
    in_full: bool = True,
) -> PruneReport:
    """Hide rows and messages by retention rules, in one operation. With `for_good`, delete them permanently.

    Without `in_full`, reported rows lack the fields that are slowest to read (`LogQuery.bare`). `for_good` also deletes
    rows that are already hidden and exceed the limit on age or on the number of sessions, and frees the disk space.
    `dry_run` changes nothing.
    """
    found = _plan(store, rules, counter=counter, for_good=for_good)
    if in_full:  # read before they are deleted
        found = replace(found, rows=tuple(_in_full(store, found.rows)))
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


def _plan(store: Store, rules: RetentionRules, *, counter: TokenCounter, for_good: bool) -> PruneReport:
    sessions = {summary.session.id: summary for summary in store.sessions.summaries()}
    pools = _rows_by_session(store, rules, sessions, with_hidden=for_good) if rules.is_about_rows else ()
    support = store.reflections.supports() if rules.max_tokens is not None else {}
    dropped = tuple(
        rows_to_go(pools, rules, support=lambda row: support.get(row, 0), tokens=lambda row: row_tokens(row, counter))
    )
    rows_of = {row.id: row for pool in pools for row in (*pool.hidden, *pool.rows)}
    rows = tuple(rows_of[each.row] for each in dropped)
    going = dict(_messages(store, rules, sessions))
    messages = {name: tuple(each.seq for each in outline) for name, outline in going.items()}
    return PruneReport(
        dropped=dropped,
        rows=rows,
        messages=messages,
        counted={name: sum(each.is_counted for each in outline) for name, outline in going.items()},
        sessions=len({row.session for row in rows if row.session} | messages.keys()),
        tokens=rows_tokens((row for row in rows if row.is_visible), counter),
    )


def _rows_by_session(
    store: Store, rules: RetentionRules, sessions: dict[str, SessionSummary], *, with_hidden: bool
) -> tuple[Pool, ...]:
    """Return the rows of sessions by session, including sessions without rows. For rules across sessions, return the
    cross-session rows by project instead.
    """
    pools: dict[str | None, list[Observation]] = defaultdict(list)
    if not rules.is_across:
        pools |= {name: [] for name in sessions if rules.session in (None, name)}
    hidden: dict[str | None, list[Observation]] = defaultdict(list)
    # Other limits depend on the rows that stay, and projects are listed in the order of all their rows.
    is_by_age = not rules.is_across and rules.keep_last is rules.max_tokens is rules.keep_sessions is None
    until = rules.before if is_by_age else None
    for logged in store.rows.log(LogQuery(session=rules.session, until=until, hidden=with_hidden, bare=True)):
        row = logged.observation
        if is_across(row) is rules.is_across:
            (pools if row.is_visible else hidden)[row.project if rules.is_across else row.session].append(row)
    return tuple(
        Pool(
            session=None if rules.is_across else name,
            rows=tuple(pools[name]),
            active_at=_active_at(sessions.get(name or ""), pools[name]),
            hidden=tuple(hidden[name]),
        )
        for name in (*pools, *(hidden.keys() - pools.keys()))
    )


def _in_full(store: Store, bare: Sequence[Observation]) -> Iterator[Observation]:
    """Yield the rows with all their fields, or unchanged if they have been forgotten since."""
    for row in bare:
        try:
            yield store.rows.find(row.id)
        except UnknownId:
            yield row


def _active_at(summary: SessionSummary | None, rows: list[Observation]) -> str:
    """Return the time of a session's last activity: of its last message (or its last ingest, if no message is dated),
    or of its last row if that is later.
    """
    seen = (summary.last_at or summary.seen_at) if summary else ""
    return max([seen, *(row.dated for row in rows)])


def _messages(
    store: Store, rules: RetentionRules, sessions: dict[str, SessionSummary]
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
