"""Observing what a session's messages say that no observation covers yet, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from omcli.base.errors import OF_MODELS, OmError
from omcli.base.record import field, record, replace
from omcli.memory.batch import Batch, BatchOutcome, BatchReader, Observed, between
from omcli.memory.buffer import BufferedBatch
from omcli.memory.observation import Observation, Source
from omcli.memory.ports import Lane
from omcli.operations.deps import Workshop
from omcli.operations.leases import hold
from omcli.operations.observe.buffered import due_blocks, rows_of_block, with_pending_rows
from omcli.operations.observe.rows import replacements, rows_of, without_forgotten
from omcli.operations.observe.slices import Slices

CONTEXT_ROWS = 150
"""Rows an observer is shown of what was written before: the newest, and the newest that may change."""


@record
class Step:
    """What became of a batch."""

    rows: tuple[Observation, ...]
    message_tokens: int
    """Of the messages that are covered now."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """`Observed.findings`."""
    ahead: int = 0
    """How many messages were observed ahead: nothing of it is in sight, and they wait still."""
    is_activated: bool = False
    """Whether it was observed ahead, and only written down now."""


def observe_session(
    session_id: str, workshop: Workshop, *, batches: int | None = None, is_due: Callable[[], bool] = lambda: True
) -> Iterator[Step]:
    """Observes a session's messages until none is left, or so many batches, and yields each once it is written.

    Whether it still `is_due` is asked when nobody else is at it any more. What was observed ahead is written down
    first, and counts for no batch. What an observer could make nothing of yet, and was followed by nothing since, is
    not offered to it again. Raises LaneTaken while somebody else is at it, StaleBatch where somebody was quicker, and
    what the observer raises: what a model was shown before that is written then, and the other messages wait for the
    next run.
    """
    store = workshop.store
    if store.batches.unobserved(session_id, max_tokens=1) is None:
        return  # no need to wait for somebody else
    with hold(session_id, Lane.OBSERVE, workshop) as extend:
        if is_due():
            yield from _activated(session_id, workshop, floor=None)
            yield from _batches(session_id, workshop, extend, batches)


def observe_ahead(session_id: str, workshop: Workshop, *, step: Callable[[], int | None]) -> Iterator[Step]:
    """Observes what waits behind the last pending block, and keeps what comes of it as blocks.

    `step` tells of how many tokens the next one may be, and None where none is due. Raises as `observe_session` does.
    """
    with hold(session_id, Lane.OBSERVE, workshop) as extend:
        while tokens := step():
            desk = replace(workshop, ahead=True, batch_tokens=min(tokens, workshop.batch_tokens))
            is_done = False
            for done in _batches(session_id, desk, extend, 1):
                is_done = True
                yield done
            if not is_done:
                return


def activate(session_id: str, workshop: Workshop, *, floor: int, is_due: Callable[[], bool]) -> Iterator[Step]:
    """Writes down what was observed ahead, without asking anybody: while `floor` tokens stay unobserved.

    Whether it still `is_due` is asked when nobody else is at it any more. Raises LaneTaken, StaleBatch.
    """
    with hold(session_id, Lane.OBSERVE, workshop):
        if is_due():
            yield from _activated(session_id, workshop, floor=floor)


def _activated(session_id: str, workshop: Workshop, *, floor: int | None) -> Iterator[Step]:
    project = _project(session_id, workshop)
    for block in due_blocks(session_id, workshop, floor=floor):
        drafts, rows = rows_of_block(block, project=project, workshop=workshop)
        step = _recorded(block.batch, replace(block.observed, drafts=drafts), rows, workshop)
        yield replace(step, is_activated=True)


def _batches(session_id: str, workshop: Workshop, extend: Callable[[], None], batches: int | None) -> Iterator[Step]:
    """Observes batch by batch while the lane is held."""
    project = _project(session_id, workshop)
    slices = Slices(workshop=workshop, extend=extend, max_tokens=workshop.slice_tokens or workshop.batch_tokens)
    done = 0
    while (batches is None or done < batches) and (batch := _next_batch(session_id, workshop)):
        extend()
        if workshop.model is None:
            yield from _written(batch, _observed(batch, workshop), project, workshop)
        else:
            yield from _read(batch, workshop.model.begin(batch), slices, project, workshop)
        done += 1


def _project(session_id: str, workshop: Workshop) -> str | None:
    session = workshop.store.sessions.find(session_id)
    return session.project if session else None


def _next_batch(session_id: str, workshop: Workshop) -> Batch | None:
    """What is to be observed next; None where all that is left was offered before, and nothing has followed it."""
    batch = workshop.store.batches.unobserved(
        session_id,
        max_tokens=workshop.batch_tokens,
        max_messages=workshop.batch_messages,
        context_rows=CONTEXT_ROWS,
        ahead=workshop.ahead,
    )
    if batch is None or (batch.deferred_through >= batch.through and _is_end(batch, workshop)):
        return None
    return with_pending_rows(batch, workshop) if workshop.ahead else batch


def _observed(batch: Batch, workshop: Workshop) -> Observed:
    assert workshop.observer is not None, "where nobody observes, nothing is read to be observed"
    try:
        return workshop.observer.observe(batch)
    except OF_MODELS as error:
        _note_failure(batch, error, workshop)
        raise


def _read(
    batch: Batch, reading: BatchReader, slices: Slices, project: str | None, workshop: Workshop
) -> Iterator[Step]:
    """Has a model read a batch. Where it fails on the way, or somebody stops it, what it was paid for is written."""
    after = batch.after
    try:
        while after < batch.through:
            after = slices.read(reading, batch, after)
    except (*OF_MODELS, KeyboardInterrupt) as error:
        if after > batch.after:
            yield from _written(between(batch, batch.after, after), reading.observed(), project, workshop)
        if isinstance(error, OmError):
            _note_failure(between(batch, after, batch.through), error, workshop)
        raise
    yield from _written(batch, reading.observed(), project, workshop)


def _note_failure(batch: Batch, error: OmError, workshop: Workshop) -> None:
    workshop.store.batches.record(batch, (), outcome=BatchOutcome.FAILED, now=workshop.clock.now(), error=error.message)


def _written(batch: Batch, observed: Observed, project: str | None, workshop: Workshop) -> Iterator[Step]:
    """Writes down what came of a batch; what gave nothing yet, and is followed by nothing, apart from what did."""
    waits = observed.waits_after
    if waits is None or not _is_end(batch, workshop):
        yield _write(batch, observed, project, workshop)
        return
    if waits > batch.after:
        yield _write(between(batch, batch.after, waits), observed, project, workshop)
        observed = Observed(drafts=())
    left = between(batch, waits, batch.through)
    workshop.store.batches.record(left, (), outcome=BatchOutcome.DEFERRED, now=workshop.clock.now(), used=observed.used)
    yield Step(rows=(), message_tokens=0, findings=observed.findings)


def _write(batch: Batch, observed: Observed, project: str | None, workshop: Workshop) -> Step:
    if workshop.ahead:
        return _kept(batch, observed, workshop)
    return _recorded(batch, observed, rows_of(batch, observed.drafts, project=project, workshop=workshop), workshop)


def _recorded(batch: Batch, observed: Observed, rows: tuple[Observation, ...], workshop: Workshop) -> Step:
    drafts, rows = without_forgotten(observed.drafts, rows, workshop.store.tombstones)
    workshop.store.batches.record(
        batch,
        rows,
        outcome=BatchOutcome.OBSERVED if rows else BatchOutcome.EMPTY,
        now=workshop.clock.now(),
        replaced=replacements(drafts, rows),
        used=observed.used,
        title=observed.title,
    )
    return Step(rows=rows, message_tokens=sum(kept.tokens for kept in batch.messages), findings=observed.findings)


def _kept(batch: Batch, observed: Observed, workshop: Workshop) -> Step:
    """Keeps what came of a batch as a block. Its rows have their ids already: those of the next may replace them."""
    by_model = any(draft.source is Source.MODEL for draft in observed.drafts)
    block = BufferedBatch(
        batch=batch,
        begins=batch.after,
        observed=observed,
        ids=tuple(workshop.new_id() for _ in observed.drafts),
        source=Source.MODEL if by_model else Source.RULES,
        at=workshop.clock.now(),
    )
    workshop.store.batches.buffer(block)
    return Step(rows=(), message_tokens=0, findings=observed.findings, ahead=len(batch.messages))


def _is_end(batch: Batch, workshop: Workshop) -> bool:
    """Whether nothing waits behind a batch: only then can it be offered again together with more."""
    if batch.is_late:
        return False  # what follows it is covered, and is not shown again
    return workshop.store.batches.pending(batch.session, ahead=workshop.ahead).messages <= len(batch.messages)
