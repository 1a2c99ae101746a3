"""Compacting a session: observing its pending messages, folding its rows until they fit, and printing the result.

observe    pending messages are observed, a batch at a time              one transaction each

fold       visible rows are folded, a chunk at a time, until they fit    one operation, undone as a whole

output     rows, quotes and last messages are chosen and printed

refusal    nothing is replaced if a message would be lost, or if the result is empty or larger
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache

from omcli.base.errors import ProviderFailed
from omcli.base.record import mutable_record, record, replace
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import UNLIMITED, TokenCounter, message_tokens, row_tokens
from omcli.memory.observation import LogQuery, Observation, Source
from omcli.memory.ports import Store
from omcli.memory.reflection import ReflectionOutcome as Came
from omcli.memory.reflection import Scope
from omcli.memory.transcript import Handover
from omcli.operations.compact.layouts import CompactHead
from omcli.operations.compact.output import CompactRequest, TailPlan, compact_output, plan_tail
from omcli.operations.deps import Deps
from omcli.operations.observe.session import observe_session
from omcli.operations.reflect.session import Reflection, reflect_rows, rows_to_fold, skip_reason
from omcli.pack.context_pack import ContextPack
from omcli.pack.tail import Turn
from omcli.text.similarity import folded_text

_MOST_SHARE = 0.5
"""Share of the session that rows and further last messages may take, so that the result is much shorter."""
_WORTH_IT = 0.9
"""Folding stops when a round leaves at least this share of the tokens read."""


class RefuseReason(StrEnum):
    """Reason not to use the result."""

    EMPTY = "empty"
    """There is nothing to print, or nothing to replace."""
    LARGER = "larger"
    """The result has more tokens than the messages and the earlier summary that it would replace."""
    UNCOVERED = "uncovered"
    """Messages would be lost, because no batch covers them yet."""


@record
class CompactLimits:
    """The limits of a compaction."""

    wanted: CompactRequest
    most: int = 0
    """Maximum number of batches and folds together. 0 means no limit."""
    rows_tokens: int = 20_000
    """Maximum number of tokens of the rows folded at once."""
    is_dry: bool = False
    """If True, nothing is observed or folded; the output is chosen from existing rows and messages."""
    earlier_tokens: int = 0
    """Tokens of an earlier summary of the session, which the output replaces as well."""


@record
class Contract:
    """The limits of a compaction, as printed."""

    target_tokens: int
    """Maximum number of tokens in the printed text."""
    chunk_tokens: int
    """Maximum number of tokens in a batch."""
    chunk_messages: int
    """Maximum number of messages in a batch. 0 means no limit."""
    max_iterations: int
    """Maximum number of batches and folds together. 0 means no limit."""


@record
class CompactResult:
    """The result in numbers."""

    iterations: int
    """Number of batches observed plus number of folds."""
    reached: bool
    """True if every visible row fits into the target together with the last messages. Otherwise the least important
    rows were left out.
    """
    tokens_before: int
    """Tokens of the main thread (or of subagents, if there is none) and of an earlier summary."""
    tokens_after: int
    """Tokens of the printed text. A JSON document contains it as `text`."""
    rows: int
    """Number of visible rows after folding."""
    rows_fitting: int
    """Number of visible rows that fit into the target together with the last messages."""
    uncovered: int
    """Number of messages that would be lost: no batch covers them, and they are not among the last messages."""


@record
class CompactReport:
    """The outcome of a compaction."""

    session: str
    contract: Contract
    result: CompactResult
    pack: ContextPack
    """The output. All token counts in this report use its counter."""
    refusal: RefuseReason | None
    error: ProviderFailed | None
    """Error that kept rows from being folded, or some of the last messages from being observed, if any."""


@mutable_record
class _Steps:
    most: int
    done: int = 0

    @property
    def left(self) -> int | None:
        """None means no limit."""
        return self.most - self.done if self.most else None


def compact(session_id: str, deps: Deps, asked: CompactLimits) -> CompactReport:
    """Shrink a session to a token target and return the pack to print.

    Messages are never changed. Raise LaneTaken if another process holds a lane, StaleBatch if another process changes
    the session, and the error of a model that is unavailable, or that failed so that messages would be lost.
    Finished steps are not undone.
    """
    steps = _Steps(most=asked.most)
    unobserved = None if asked.is_dry else _observe_waiting(session_id, deps, steps)
    room = _Room(
        session_id=session_id,
        deps=deps,
        asked=asked,
        tail=plan_tail(deps.store, session_id, asked.wanted, deps.counter),
        pending=_uncovered(session_id, deps.store),
        tokens_before=_tokens_before(session_id, deps.store, deps.counter) + asked.earlier_tokens,
    )
    before = room.rows()
    uncovered = room.uncovered(before)
    if unobserved is not None and uncovered:
        raise _with_uncovered(unobserved, uncovered)
    unfolded = None if asked.is_dry or uncovered else _fold(room, steps)
    after = room.rows()
    figures = _Stats(room=room, iterations=steps.done, rows=len(after), fitting=room.fitting(after))
    # Folded rows add nothing to the rows they were made from, and leave less to choose from.
    pack = room.pack(before, figures.printed())
    result = figures.result(pack)
    return CompactReport(
        session=session_id,
        contract=figures.contract,
        result=result,
        pack=pack,
        refusal=_refuse_reason(pack, result, room),
        error=unobserved or unfolded,
    )


def _observe_waiting(session_id: str, deps: Deps, steps: _Steps) -> ProviderFailed | None:
    """Observe the pending messages, while a step is left. Return the model's error if it fails, otherwise None."""
    try:
        for _step in observe_session(session_id, deps, batches=steps.left):
            steps.done += 1
    except ProviderFailed as error:
        return error
    return None


def _with_uncovered(error: ProviderFailed, uncovered: int) -> ProviderFailed:
    """Add the number of messages that keep the result from being printed to a model's error, and return the error."""
    waiting = "1 message is" if uncovered == 1 else f"{uncovered} messages are"
    error.message = f"{error.message}; nothing was compacted, because {waiting} not observed"
    rules = '`--observer rules` needs no model, and `observer.fallback = "rules"` lets rules take over'
    error.hint = f"{error.hint}; {rules}" if error.hint else rules
    return error


def _uncovered(session_id: str, store: Store) -> frozenset[int]:
    """Return the `seq` of the messages that no batch covers, or an empty set if an observer deferred all of them."""
    if not any(store.batches.pending(session_id).fresh_tokens.values()):
        return frozenset()
    return frozenset(each.seq for each in store.messages.outline(session_id) if not each.is_covered)


@record
class _Room:
    """A session being compacted, and the tokens available for its rows."""

    session_id: str
    deps: Deps
    asked: CompactLimits
    tail: TailPlan
    pending: frozenset[int]
    """The `seq` of the messages that no batch covers (see `_uncovered`)."""
    tokens_before: int
    """Tokens of the session's messages and of an earlier summary."""

    @property
    def store(self) -> Store:
        return self.deps.store

    def rows(self) -> tuple[Observation, ...]:
        """Return the visible rows, without those of an earlier summary whose text another row repeats.

        If the other row has no time, it gets the time of the summary's row.
        """
        logged = [each.observation for each in self.store.rows.log(LogQuery(session=self.session_id))]
        earlier = {folded_text(row.text): row for row in logged if _is_earlier(row)}
        again: set[str] = set()
        for at, row in enumerate(logged):
            if not _is_earlier(row) and (same := earlier.pop(folded_text(row.text), None)):
                again.add(same.id)
                logged[at] = replace(row, event_at=row.event_at or same.event_at)
        return tuple(row for row in logged if row.id not in again)

    def holds(self, rows: Sequence[Observation]) -> bool:
        """Return True if all of these rows can be printed together with the last messages."""
        counter, target = self.deps.counter, self.asked.wanted.target
        if sum(row.tokens for row in rows if row.counter == counter.name) > target:
            return False
        return self.fitting(rows) == len(rows)

    def fitting(self, rows: Sequence[Observation]) -> int:
        """Return the number of rows that can be printed together with the last messages."""
        return len(self.pack(rows, _NO_FIGURES, is_quoted=False).observations)

    def uncovered(self, rows: Sequence[Observation]) -> int:
        """Return the number of messages that a pack with these rows would lose."""
        return self.lost(self.pack(rows, _NO_FIGURES).turns) if self.pending else 0

    def lost(self, turns: Sequence[Turn]) -> int:
        """Return the number of uncovered messages that are neither among the printed turns nor kept by the host."""
        stays = [turn.kept.seq for turn in turns] + [kept.seq for kept in self.tail.staying]
        return len(self.pending.difference(stays))

    def pack(self, rows: Sequence[Observation], figures: CompactHead, *, is_quoted: bool = True) -> ContextPack:
        return compact_output(
            self.store.sessions.find(self.session_id),
            rows,
            self.tail,
            self.asked.wanted,
            figures,
            counter=self.deps.counter,
            now=self.deps.clock.now(),
            most=int(self.tokens_before * _MOST_SHARE),
            pending=self.store.batches.pending(self.session_id).messages,
            is_quoted=is_quoted,
        )


_NO_FIGURES = CompactHead()


def _is_earlier(row: Observation) -> bool:
    """Return True for an imported row without source messages, such as those of an earlier summary."""
    return row.source is Source.IMPORT and not row.sources


def _fold(room: _Room, steps: _Steps) -> ProviderFailed | None:
    """Fold rows in one operation, until they fit, folding no longer helps, or no step is left. Return the model's error
    if it fails, otherwise None.
    """
    operation = cache(lambda: _operation(room))  # begun with the first rows that are folded
    while steps.left != 0 and not room.holds(room.rows()):
        read = left = 0
        for chunk, target in _each_part(rows_to_fold(room.session_id, room.deps), room):
            if steps.left == 0:
                break
            if skip_reason(Scope(session=room.session_id), room.deps.reflector.mark(chunk, target=target), room.deps):
                continue  # these rows were tried before
            try:
                folded = reflect_rows(chunk, room.session_id, room.deps, target=target, part_of=operation)
            except ProviderFailed as error:
                return error
            steps.done += folded.ending is not None
            read, left = read + folded.tokens_before, left + _left(folded)
        if left >= _WORTH_IT * read:
            break
    return None


def _left(folded: Reflection) -> int:
    return folded.tokens_after if folded.ending is Came.DONE else folded.tokens_before


def _operation(room: _Room) -> int:
    """Begin the operation that all folds belong to, and return its number."""
    figures = {"target_tokens": room.asked.wanted.target}
    change = OperationWrite(verb=OperationKind.COMPACT, scope=Scope(session=room.session_id), figures=figures)
    return room.store.operations.change(change, now=room.deps.clock.now()).number


def _each_part(rows: Sequence[Observation], room: _Room) -> Iterator[tuple[list[Observation], float]]:
    """Yield chunks of rows to fold at once, each with its share of the target."""
    counter = room.deps.counter
    costs = [row_tokens(row, counter) for row in rows]
    share = room.tail.budgets.session / max(1, sum(costs))
    chunk: list[Observation] = []
    held = 0
    for row, cost in zip([*rows, None], [*costs, 0], strict=True):
        if chunk and (row is None or held + cost > room.asked.rows_tokens):
            yield chunk, max(2.0, share * held)
            chunk, held = [], 0
        if row is not None:
            chunk.append(row)
            held += cost


@record
class _Stats:
    room: _Room
    iterations: int
    rows: int
    """Number of visible rows."""
    fitting: int
    """Number of visible rows that can be printed."""

    @property
    def contract(self) -> Contract:
        deps = self.room.deps
        return Contract(
            target_tokens=self.room.asked.wanted.target,
            chunk_tokens=deps.observer.batch_tokens,
            chunk_messages=deps.observer.batch_messages or 0,
            max_iterations=self.room.asked.most,
        )

    def result(self, pack: ContextPack) -> CompactResult:
        return CompactResult(
            iterations=self.iterations,
            reached=self.fitting == self.rows,
            tokens_before=self.room.tokens_before,
            tokens_after=pack.total,
            rows=self.rows,
            rows_fitting=self.fitting,
            uncovered=self.room.lost(pack.turns),
        )

    def printed(self) -> CompactHead:
        wanted, first = self.room.asked.wanted, self.room.tail.first_kept
        host = wanted.handover or Handover(first_kept=first.message.id if first else None)
        before = self.room.tokens_before if host.tokens_before is None else host.tokens_before
        return CompactHead(first_kept=host.first_kept, tokens_before=before, is_kept=wanted.is_kept)


def _refuse_reason(pack: ContextPack, result: CompactResult, room: _Room) -> RefuseReason | None:
    counter = room.deps.counter
    replaced = result.tokens_before - sum(message_tokens(kept, counter) for kept in room.tail.staying)
    if result.uncovered:
        return RefuseReason.UNCOVERED
    if not (pack.observations or pack.turns) or not pack.printed or not replaced:
        return RefuseReason.EMPTY
    return RefuseReason.LARGER if result.tokens_after > replaced else None


def _tokens_before(session_id: str, store: Store, counter: TokenCounter) -> int:
    """Return the tokens of a session's messages (see `MessageLog.tokens`), recounted if some were stored with another
    counter.
    """
    stored = store.messages.tokens(session_id)
    if set(stored) <= {counter.name}:
        return sum(stored.values())
    messages = store.messages.tail(session_id, max_tokens=UNLIMITED)
    if not messages:  # a session of subagents alone
        messages = store.messages.by_seq(message.seq for message in store.messages.outline(session_id))
    return sum(message_tokens(kept, counter) for kept in messages)
