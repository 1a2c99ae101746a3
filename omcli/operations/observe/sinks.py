"""Sinks of observations: the record of a session, and the buffer of batches observed before they are due."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from omcli.base.errors import OmError
from omcli.base.record import field, record, replace
from omcli.memory.batch import Batch, BatchOutcome, Observed, part_of_batch
from omcli.memory.buffer import BufferedBatch
from omcli.memory.observation import Observation, Replacement, Source
from omcli.operations.deps import Deps
from omcli.operations.observe.rows import to_rows


@record
class Step:
    """The outcome of one batch."""

    rows: tuple[Observation, ...] = ()
    message_tokens: int = 0
    """Tokens of the messages newly covered."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """`Observed.findings`."""
    ahead: int = 0
    """Messages that were buffered: they are still pending, and none of their rows is visible."""
    is_activated: bool = False
    """True if the batch had been buffered and was written now."""


class RecordSink:
    """The record: the rows of a batch, their replacements and the cursor in one transaction."""

    def __init__(self, session_id: str, deps: Deps, is_last: Callable[[Batch], bool]) -> None:
        """`is_last` returns True if no message waits after a batch."""
        session = deps.store.sessions.find(session_id)
        self.project = session.project if session else None
        self.deps = deps
        self.is_last = is_last

    def write(self, batch: Batch, observed: Observed) -> Iterator[Step]:
        """Write the observations of a batch. Raise StaleBatch, and the error that stopped the observer."""
        if observed.is_whole:
            yield self.keep(batch, observed)
        else:
            yield from _write_part(self, batch, observed)

    def keep(self, batch: Batch, observed: Observed) -> Step:
        """Write a whole batch."""
        rows, replaced = to_rows(batch, observed.drafts, project=self.project, deps=self.deps)
        return self.record(batch, observed, rows, replaced)

    def record(
        self, batch: Batch, observed: Observed, rows: tuple[Observation, ...], replaced: tuple[Replacement, ...]
    ) -> Step:
        """Write a batch with these rows."""
        self.deps.store.batches.record(
            batch,
            rows,
            outcome=BatchOutcome.OBSERVED if rows else BatchOutcome.EMPTY,
            now=self.deps.clock.now(),
            replaced=replaced,
            used=observed.used,
            title=observed.title,
        )
        return Step(rows=rows, message_tokens=sum(kept.tokens for kept in batch.messages), findings=observed.findings)


class BufferSink:
    """The buffer: observed batches, kept until they are due. Their rows already have ids."""

    def __init__(self, deps: Deps, is_last: Callable[[Batch], bool]) -> None:
        """`is_last` returns True if no message waits after a batch."""
        self.deps = deps
        self.is_last = is_last

    def write(self, batch: Batch, observed: Observed) -> Iterator[Step]:
        """Buffer a batch. Raise StaleBatch, and the error that stopped the observer."""
        if observed.is_whole:
            yield self.keep(batch, observed)
        else:
            yield from _write_part(self, batch, observed)

    def keep(self, batch: Batch, observed: Observed) -> Step:
        """Buffer a whole batch."""
        by_model = any(draft.source is Source.MODEL for draft in observed.drafts)
        buffered = BufferedBatch(
            batch=batch,
            begins=batch.after,
            observed=observed,
            ids=tuple(self.deps.new_id() for _ in observed.drafts),
            source=Source.MODEL if by_model else Source.RULES,
            at=self.deps.clock.now(),
        )
        self.deps.store.batches.buffer(buffered)
        return Step(findings=observed.findings, ahead=len(batch.messages))


class _Sink(Protocol):
    deps: Deps
    is_last: Callable[[Batch], bool]

    def write(self, batch: Batch, observed: Observed) -> Iterator[Step]: ...
    def keep(self, batch: Batch, observed: Observed) -> Step: ...


def _write_part(sink: _Sink, batch: Batch, observed: Observed) -> Iterator[Step]:
    """Write the part of a batch that was read and needs no later messages; defer the rest, or record its failure."""
    if observed.stopped is not None:
        through, error = observed.stopped.through, observed.stopped.error
        if through > batch.after:
            yield from sink.write(part_of_batch(batch, batch.after, through), replace(observed, stopped=None))
        if isinstance(error, OmError):
            rest, now = part_of_batch(batch, through, batch.through), sink.deps.clock.now()
            sink.deps.store.batches.record(rest, (), outcome=BatchOutcome.FAILED, now=now, error=error.message)
        raise error
    waits = observed.waits_after
    if waits is None or not sink.is_last(batch):  # later messages were already read with it, and did not help
        yield sink.keep(batch, observed)
        return
    if waits > batch.after:
        yield sink.keep(part_of_batch(batch, batch.after, waits), observed)
        observed = Observed(drafts=())
    rest, now = part_of_batch(batch, waits, batch.through), sink.deps.clock.now()
    sink.deps.store.batches.record(rest, (), outcome=BatchOutcome.DEFERRED, now=now, used=observed.used)
    yield Step(findings=observed.findings)
