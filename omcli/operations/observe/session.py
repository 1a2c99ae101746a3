"""Observing a session: each batch from a source goes through an observer into a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omcli.base.record import replace
from omcli.memory.ports import Lane
from omcli.operations.deps import Deps
from omcli.operations.leases import hold
from omcli.operations.observe.observer import session_observer
from omcli.operations.observe.sinks import BufferSink, RecordSink, Step
from omcli.operations.observe.sources import BatchesToBuffer, SessionBatches, buffered_rows, due_buffered


def observe_session(
    session_id: str, deps: Deps, *, batches: int | None = None, is_due: Callable[[], bool] = lambda: True
) -> Iterator[Step]:
    """Observe a session's messages until none is left, or so many batches, and yield each once it is written.

    `is_due` is asked when the lane is held. Buffered batches are written first, and not counted. Raises LaneTaken,
    StaleBatch, and the errors of the observer: the part that a model read before is written then, the rest waits.
    """
    if deps.store.batches.unobserved(session_id, max_tokens=1) is None:
        return  # no lane to wait for
    with hold(session_id, Lane.OBSERVE, deps) as extend:
        if is_due():
            source = SessionBatches(session_id, deps, extend, most=batches)
            sink = RecordSink(session_id, deps, source.is_last)
            yield from _write_buffered(session_id, sink, floor=None)
            observer = session_observer(deps, extend)
            for batch in source:
                yield from sink.write(batch, observer.observe(batch))


def observe_ahead(session_id: str, deps: Deps, *, step: Callable[[], int | None]) -> Iterator[Step]:
    """Observe the messages behind the last buffered batch, and buffer the result.

    `step` returns the tokens of the next batch, at most; None if none is due. Raises as `observe_session` does.
    """
    with hold(session_id, Lane.OBSERVE, deps) as extend:
        source = BatchesToBuffer(session_id, deps, extend, step=step)
        sink = BufferSink(deps, source.is_last)
        observer = session_observer(deps, extend)
        for batch in source:
            yield from sink.write(batch, observer.observe(batch))


def write_buffered(session_id: str, deps: Deps, *, floor: int, is_due: Callable[[], bool]) -> Iterator[Step]:
    """Write buffered batches, without asking a model, so that `floor` tokens stay unobserved.

    `is_due` is asked when the lane is held. Raises LaneTaken, StaleBatch.
    """
    with hold(session_id, Lane.OBSERVE, deps) as extend:
        if is_due():
            sink = RecordSink(session_id, deps, SessionBatches(session_id, deps, extend).is_last)
            yield from _write_buffered(session_id, sink, floor=floor)


def _write_buffered(session_id: str, sink: RecordSink, *, floor: int | None) -> Iterator[Step]:
    for buffered in due_buffered(session_id, sink.deps, floor=floor):
        rows, replaced = buffered_rows(buffered, project=sink.project, deps=sink.deps)
        yield replace(sink.record(buffered.batch, buffered.observed, rows, replaced), is_activated=True)
