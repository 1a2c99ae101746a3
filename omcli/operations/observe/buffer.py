"""The buffer: batches that are observed before they are due and written to memory later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from omcli.base.record import replace
from omcli.memory.batch import Batch, Observed
from omcli.memory.buffer import BufferedBatch, count_due
from omcli.memory.message import UNLIMITED, message_tokens
from omcli.memory.observation import Observation, Replacement, Source
from omcli.operations.deps import CONTEXT_ROWS, Deps
from omcli.operations.observe.rows import RecordSink, Step, batch_parts, record_rest, to_rows


class BufferSink:
    """Keeps observed batches until they are due. Their rows already have ids."""

    def __init__(self, deps: Deps, is_last: Callable[[Batch], bool]) -> None:
        """`is_last` returns True if no pending message follows the batch."""
        self._deps = deps
        self._is_last = is_last

    def write(self, batch: Batch, observed: Observed) -> Iterator[Step]:
        """Buffer a batch. Raise StaleBatch if the session has changed, and the error that stopped the observer."""
        for part in batch_parts(batch, observed, self._is_last):
            if part.outcome is None:
                yield self._keep(part.batch, part.observed)
            else:
                yield from record_rest(part, self._deps)

    def _keep(self, batch: Batch, observed: Observed) -> Step:
        by_model = any(draft.source is Source.MODEL for draft in observed.drafts)
        buffered = BufferedBatch(
            batch=batch,
            begins=batch.after,
            observed=observed,
            ids=tuple(self._deps.new_id() for _ in observed.drafts),
            source=Source.MODEL if by_model else Source.RULES,
            at=self._deps.clock.now(),
        )
        self._deps.store.batches.buffer(buffered)
        return Step(findings=observed.findings, ahead=len(batch.messages))


class BatchesToBuffer:
    """The batches to buffer for a session: the messages after its last buffered batch, while a batch is due."""

    def __init__(
        self, session_id: str, deps: Deps, extend: Callable[[], None], *, step: Callable[[], int | None]
    ) -> None:
        """`step` returns the maximum number of tokens in the next batch, or None if none is due."""
        self._session_id = session_id
        self._deps = deps
        self._extend = extend
        self._step = step

    def __iter__(self) -> Iterator[Batch]:
        limits = self._deps.observer
        while tokens := self._step():
            batch = self._deps.store.batches.unobserved(
                self._session_id,
                max_tokens=min(tokens, limits.batch_tokens),
                max_messages=limits.batch_messages,
                context_rows=CONTEXT_ROWS,
                ahead=True,
            )
            if batch is None or (batch.deferred_through >= batch.through and self.is_last(batch)):
                return
            self._extend()
            yield with_buffered_rows(batch, self._deps)

    def is_last(self, batch: Batch) -> bool:
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session, ahead=True).messages <= len(batch.messages)


class WaitingMessages(NamedTuple):
    """Number and size of a session's pending messages."""

    messages: int
    tokens: int
    """Counted with the operation's counter, even if another one was used when the messages were stored."""
    fresh: int
    """Tokens of the messages that no observer has deferred."""
    blocks: int
    """Number of the session's buffered batches."""


def waiting_messages(session_id: str, deps: Deps, *, ahead: bool = False) -> WaitingMessages:
    """Measure a session's pending messages. With `ahead`, leave out those in buffered batches."""
    counter, pending = deps.counter, deps.store.batches.pending(session_id, ahead=ahead)
    if set(pending.tokens) <= {counter.name}:
        tokens, fresh = sum(pending.tokens.values()), sum(pending.fresh_tokens.values())
    else:
        late, rest = deps.store.messages.by_seq(pending.late), _rest(session_id, deps, ahead=ahead)
        tokens = fresh = sum(message_tokens(kept, counter) for kept in late)
        if rest is not None:
            tokens += sum(message_tokens(kept, counter) for kept in rest.messages)
            fresh += sum(message_tokens(kept, counter) for kept in rest.messages if kept.seq > rest.deferred_through)
    return WaitingMessages(messages=pending.messages, tokens=tokens, fresh=fresh, blocks=pending.blocks)


def _rest(session_id: str, deps: Deps, *, ahead: bool) -> Batch | None:
    """Return the pending messages after the cursor or, with `ahead`, after the last buffered batch, as one batch."""
    batches = deps.store.batches
    if ahead:
        return batches.unobserved(session_id, max_tokens=UNLIMITED, ahead=True)
    last = deps.store.messages.newest(session_id, 1)
    rest = batches.unobserved_up_to(session_id, last[0].seq) if last else None
    return None if rest is None or rest.is_late else rest


def due_buffered(session_id: str, deps: Deps, *, floor: int) -> tuple[BufferedBatch, ...]:
    """Return the oldest buffered batches to write: the first, if any, and each further one that leaves at least `floor`
    tokens unobserved.
    """
    buffered = deps.store.batches.buffered(session_id)
    if not buffered:
        return ()
    sizes = [sum(message_tokens(kept, deps.counter) for kept in each.batch.messages) for each in buffered]
    return buffered[: count_due(sizes, waiting=waiting_messages(session_id, deps).tokens, floor=floor)]


def write_batches(batches: Sequence[BufferedBatch], sink: RecordSink) -> Iterator[Step]:
    for buffered in batches:
        rows, replaced = buffered_rows(buffered, project=sink.project, deps=sink.deps)
        yield replace(sink.record(buffered.batch, buffered.observed, rows, replaced), is_activated=True)


def buffered_rows(
    buffered: BufferedBatch, *, project: str | None, deps: Deps
) -> tuple[tuple[Observation, ...], tuple[Replacement, ...]]:
    """Return the rows that a buffered batch would write now, and the rows that they would replace.

    A row is left out if one of its uncovered messages has been hidden since, or if the cursor has passed all of its
    messages, because other rows then cover them.
    """
    begins, batch, observed = buffered.begins, buffered.batch, buffered.observed
    cited = {seq for draft in observed.drafts for seq in draft.sources}
    keys = {kept.seq: kept.key for kept in deps.store.messages.by_seq(cited)}
    drafts, ids = [], []
    for draft, row_id in zip(observed.drafts, buffered.ids, strict=True):
        sources = tuple(seq for seq in draft.sources if seq in keys)
        is_covered = begins < batch.after and max(draft.sources) <= batch.after
        is_forgotten = any(seq > batch.after and seq not in keys for seq in draft.sources)
        if sources and not is_covered and not is_forgotten:
            drafts.append(replace(draft, sources=sources))
            ids.append(row_id)
    return to_rows(batch, drafts, project=project, deps=deps, ids=ids, keys=keys)


def with_buffered_rows(batch: Batch, deps: Deps) -> Batch:
    """Return the batch with the rows of buffered batches among its context rows, as if they had been written."""
    made = [buffered_rows(each, project=None, deps=deps) for each in deps.store.batches.buffered(batch.session)]
    replaced = {replacement.row for _, replacements in made for replacement in replacements}
    rows = (*batch.context_rows, *(row for new, _ in made for row in new))
    return replace(batch, context_rows=tuple(row for row in rows if row.id not in replaced))
