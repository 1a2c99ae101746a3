"""Observing sessions and files. An observer reads batches from a source, and a sink writes the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from omcli.base import ignore
from omcli.base.errors import OF_MODELS, OF_ONE_SESSION, CutOff, Looped, OmError, PromptTooLong
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchReader, Observed, Observer, SlicedObserver, Stopped, next_slice
from omcli.memory.observation import Kind, LogQuery, Observation
from omcli.memory.ports import Lane
from omcli.operations.deps import CONTEXT_ROWS, Deps, hold
from omcli.operations.ingest.files import FileInput, FileReport, count_pending, ingest_files
from omcli.operations.observe.rows import RecordSink, Step


def observe_session(
    session_id: str, deps: Deps, *, batches: int | None = None, is_due: Callable[[], bool] = lambda: True
) -> Iterator[Step]:
    """Observe a session's pending messages, in at most `batches` batches, and yield a step for each once it is written.

    Nothing is done if `is_due`, called once the lane is held, returns False. Buffered batches are written first and do
    not count. Raise LaneTaken if another process holds the lane, StaleBatch if the session has changed, and the
    observer's errors. If a model fails, the rows of the messages read so far are written, and the rest stays pending.
    """
    if deps.store.batches.unobserved(session_id, max_tokens=1) is None:
        return  # no lane to wait for
    with hold(session_id, Lane.OBSERVE, deps) as extend:
        if is_due():
            source = SessionBatches(session_id, deps, extend, most=batches)
            sink = RecordSink(session_id, deps, source.is_last)
            if buffered := deps.store.batches.buffered(session_id):
                from omcli.operations.observe.buffer import write_batches  # noqa: PLC0415 - most sessions have none

                yield from write_batches(buffered, sink)
            observer = session_observer(deps, extend)
            for batch in source:
                yield from sink.write(batch, observer.observe(batch))


class SessionBatches:
    """A session's pending messages in batches, oldest first.

    Messages that yielded nothing when they were offered before are offered again only together with later ones.
    """

    def __init__(self, session_id: str, deps: Deps, extend: Callable[[], None], *, most: int | None = None) -> None:
        """`extend` extends the lease before each batch. `most` limits the number of batches, unless it is None."""
        self._session_id = session_id
        self._deps = deps
        self._extend = extend
        self._most = most
        self._waiting = 0
        """Number of pending messages when they were last counted, without those offered since. Counting reads all."""

    def __iter__(self) -> Iterator[Batch]:
        limits, done = self._deps.observer, 0
        while self._most is None or done < self._most:
            batch = self._deps.store.batches.unobserved(
                self._session_id,
                max_tokens=limits.batch_tokens,
                max_messages=limits.batch_messages,
                context_rows=CONTEXT_ROWS,
            )
            if batch is None or (batch.deferred_through >= batch.through and self.is_last(batch)):
                return
            self._extend()
            self._show_progress(batch)
            yield batch
            done += 1

    def _show_progress(self, batch: Batch) -> None:
        if self._waiting < len(batch.messages):
            self._waiting = self._deps.store.batches.pending(batch.session).messages
        self._deps.busy(f"{batch.session}: observing {len(batch.messages)} of {self._waiting} messages")
        self._waiting -= len(batch.messages)

    def is_last(self, batch: Batch) -> bool:
        """Return True if no pending message follows the batch. For a late batch, return False: it is never deferred,
        because messages after it are already covered.
        """
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session).messages <= len(batch.messages)


# ---- the observer: rules, or a model that reads a batch in slices as large as it accepts

_MADE = (Kind.NOTE, Kind.ITEM, Kind.REFLECTION)
_MOST_HALVINGS = 4
"""Maximum number of times a slice is halved because it is too long for the model."""
_LAST_PARTS = 4
"""Number of parts that a slice is divided into after a second reply was cut off, because only one call is left."""


def session_observer(deps: Deps, extend: Callable[[], None]) -> Observer:
    """Return the observer for one session. `extend` is called before each model call, to extend the lease."""
    model = deps.observer.model
    return deps.observer.open() if model is None else SlicedReader(model, deps, extend)


class SlicedReader:
    def __init__(self, model: SlicedObserver, deps: Deps, extend: Callable[[], None]) -> None:
        self._model = model
        self._deps = deps
        self._extend = extend
        self._max_tokens = deps.observer.slice_tokens or deps.observer.batch_tokens
        self._max_messages: int | None = None

    def observe(self, batch: Batch) -> Observed:
        """Return the observations of a batch, or of its beginning if the model fails or is interrupted.

        Raise LaneTaken if the lease had expired and another process has taken the lane.
        """
        batch = replace(batch, shared_rows=self._shared_rows(batch))
        reading, through = self._model.begin(batch), batch.after
        try:
            while through < batch.through:
                through = self._read(reading, batch, through)
        except (*OF_MODELS, KeyboardInterrupt) as error:
            observed = reading.observed() if through > batch.after else Observed(drafts=())
            return replace(observed, stopped=Stopped(through=through, error=error))
        return reading.observed()

    def _shared_rows(self, batch: Batch) -> tuple[Observation, ...]:
        """Return the session's notes, items and reflections and, with `ObserverDeps.has_shared_rows`, rows of other
        sessions in its project, best first.
        """
        from omcli.operations.context import cross_rows  # noqa: PLC0415 - only models are shown these rows
        from omcli.pack.cross_session import by_value, each_once, is_shared  # noqa: PLC0415

        rows, session = self._deps.store.rows, self._deps.store.sessions.find(batch.session)
        query = LogQuery(session=batch.session, kinds=_MADE, last=CONTEXT_ROWS, bare=True)
        found = [logged.observation for logged in rows.log(query)]
        if self._deps.observer.has_shared_rows and session is not None and session.project is not None:
            shared = cross_rows(self._deps.store, (session.project,), session, as_of=None, bare=True)
            found += [row for row in shared if is_shared(row, session=batch.session)]
        once = each_once(found, besides=batch.context_rows)
        return tuple(once[place] for place in by_value(once, now=self._deps.clock.now()))

    def _read(self, reading: BatchReader, batch: Batch, after: int) -> int:
        """Let the model read the slice after `after`, or as much of the slice as the model accepts. Return the `seq` of
        the last message read, or observed by rules.

        Raise LaneTaken if the lease had expired and another process has taken the lane, and the model's errors unless
        rules stand in for it.
        """
        part = self._next(batch, after)
        halvings, cuts, warmer = 0, 0, False
        while True:
            self._extend()
            self._show_progress(batch, part)
            try:
                reading.read(part, warmer=warmer)
            except (CutOff, PromptTooLong) as error:
                warmer = warmer or isinstance(error, Looped)
                halvings += isinstance(error, PromptTooLong)
                cuts += isinstance(error, CutOff)
                may_halve = reading.may_ask and halvings <= _MOST_HALVINGS
                parts = 2 if cuts < 2 else _LAST_PARTS
                smaller = self._first_part(batch, part, parts) if may_halve else None
                if smaller is not None:
                    part = smaller
                    continue
                self._skip(reading, part, error)
            except OF_MODELS as error:
                self._skip(reading, part, error)
            return part.through

    def _next(self, batch: Batch, after: int) -> Batch:
        return next_slice(batch, after=after, max_tokens=self._max_tokens, max_messages=self._max_messages)

    def _first_part(self, batch: Batch, part: Batch, parts: int) -> Batch | None:
        """Return the first of `parts` parts of a slice, or None if it cannot be divided.

        Later slices will not be larger than that part.
        """
        self._max_tokens = max(1, sum(kept.tokens for kept in part.messages) // parts)
        self._max_messages = max(len(part.messages) // parts, len(part.messages) > 1)
        smaller = self._next(batch, part.after) if self._max_messages else None
        return smaller if smaller and len(smaller.messages) < len(part.messages) else None

    def _skip(self, reading: BatchReader, part: Batch, error: OmError) -> None:
        if not self._deps.observer.rules_stand_in:
            raise error
        self._deps.warn(f"{error.message}; observed by rules")
        reading.skip(part)

    def _show_progress(self, batch: Batch, part: Batch) -> None:
        read = sum(kept.seq <= part.after for kept in batch.messages)
        waiting = self._deps.store.batches.pending(batch.session).messages - read
        self._deps.busy(f"{batch.session}: observing {len(part.messages)} of {waiting} messages")


# ---- observing ahead: batches are observed before they are due and written later


def observe_ahead(session_id: str, deps: Deps, *, step: Callable[[], int | None]) -> Iterator[Step]:
    """Observe the messages after the last buffered batch, and buffer the results.

    `step` returns the maximum number of tokens in the next batch, or None if none is due. Raise the same errors as
    `observe_session`.
    """
    from omcli.operations.observe.buffer import BatchesToBuffer, BufferSink  # noqa: PLC0415 - to observe ahead only

    with hold(session_id, Lane.OBSERVE, deps) as extend:
        source = BatchesToBuffer(session_id, deps, extend, step=step)
        sink = BufferSink(deps, source.is_last)
        observer = session_observer(deps, extend)
        for batch in source:
            yield from sink.write(batch, observer.observe(batch))


def write_buffered(session_id: str, deps: Deps, *, floor: int, is_due: Callable[[], bool]) -> Iterator[Step]:
    """Write the oldest buffered batches without calling a model: the first, if any, and each further one that leaves at
    least `floor` tokens unobserved.

    Nothing is done if `is_due`, called once the lane is held, returns False. Raise LaneTaken and StaleBatch like
    `observe_session`.
    """
    from omcli.operations.observe.buffer import due_buffered, write_batches  # noqa: PLC0415 - if there are buffered batches only

    with hold(session_id, Lane.OBSERVE, deps) as extend:
        if is_due():
            sink = RecordSink(session_id, deps, SessionBatches(session_id, deps, extend).is_last)
            yield from write_batches(due_buffered(session_id, deps, floor=floor), sink)


# ---- files: each transcript is ingested, then the sessions in it are observed


def observe_files(
    inputs: Sequence[FileInput],
    deps: Deps,
    *,
    session: str | None = None,
    each: Callable[[Observation], None] = ignore,
) -> Iterator[FileReport]:
    """Ingest and observe each input, and yield its report. An error in one input does not stop the others.

    `session` overrides the sessions named in the inputs. `each` is called with every stored row, because the rows of a
    transcript may not all fit into memory. Once the model is unavailable, inputs are only ingested. Messages in the
    spool are not observed.
    """
    is_asked = True
    for report in ingest_files(inputs, deps, session=session):
        rows = message_tokens = row_tokens = 0
        findings: Counter[str] = Counter()
        error: OmError | None = report.error
        if report.spooled_for is not None:
            yield report
            continue
        try:
            for session_id in report.sessions if is_asked and error is None else ():
                for step in observe_session(session_id, deps):
                    rows += len(step.rows)
                    message_tokens += step.message_tokens
                    row_tokens += sum(row.tokens for row in step.rows)
                    findings.update(step.findings)
                    for row in step.rows:
                        each(row)
        except OmError as failure:
            error = failure
        is_asked = is_asked and (not isinstance(error, OF_MODELS) or isinstance(error, OF_ONE_SESSION))
        is_pending = report.sessions and (error is None or isinstance(error, OF_MODELS))
        yield replace(
            report,
            observations=rows,
            message_tokens=message_tokens,
            observation_tokens=row_tokens,
            findings=dict(findings),
            pending=count_pending(report.sessions, deps) if is_pending else 0,
            error=error,
        )
