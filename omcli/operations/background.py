"""Background work: doing everything that is due, and recording a failure if a model is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from omcli.base.errors import OF_MODELS, OF_ONE_SESSION, InputOutput, LaneTaken, OmError, StaleBatch, TryAgain
from omcli.base.record import record, replace
from omcli.memory.batch import BatchOutcome
from omcli.memory.ports import Lane, Store
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope
from omcli.operations.deps import LEASE_SECONDS, Deps, ObserverDeps, ReflectorDeps, hold_and_extend
from omcli.operations.reflect import session as reflect
from omcli.operations.tick import Due, TickReport, Trigger, due, tick


def run_due(deps: Deps, when: Due, sessions: Sequence[str]) -> Iterator[TickReport]:
    """Do the work due in each session, and yield a report of each tick. Ticks are repeated until nothing is due in the
    session, nothing changes, or the work fails (other than with StaleBatch).

    Each session has a lane for one worker. A worker that finds the lane taken leaves the messages to the lane's holder,
    which checks again after releasing the lane, so no message is missed. If a user's command is working on a session,
    wait up to `LEASE_SECONDS` for it. Like `tick`, stop at an error that would affect every session.
    """
    for session in sessions:
        for ticked in _run_session(session, deps, when):
            yield ticked
            if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
                return


def _run_session(session: str, deps: Deps, when: Due) -> Iterator[TickReport]:
    store = deps.store
    while found := next(due(deps, when, sessions=[session]), None):
        before = _place(session, store)
        try:
            done = _done(session, deps, when)
        except LaneTaken:
            yield replace(found, error=LaneTaken(f"another worker is at session {session}"))
            return
        if done is None:
            continue  # another process has just done it
        yield done
        if isinstance(done.error, StaleBatch):
            continue  # another process was faster, and other workers have left their messages to this one
        if done.error is not None or (_place(session, store) == before and not _has_progress(done)):
            return


def _done(session: str, deps: Deps, when: Due) -> TickReport | None:
    with hold_and_extend(session, Lane.WORK, deps, wait=LEASE_SECONDS):
        return next(tick(deps, when, sessions=[session]), None)


def _place(session: str, store: Store) -> tuple[int, int, int]:
    """Return numbers that change whenever messages of the session are observed, deferred or ingested; zeros if none are
    pending.

    The number of pending messages is not enough, because as many may have arrived as were observed.
    """
    batch = store.batches.unobserved(session, max_tokens=1)
    return (batch.after, batch.deferred_through, store.batches.pending(session).messages) if batch else (0, 0, 0)


def _has_progress(done: TickReport) -> bool:
    return bool(done.blocks) or (done.reflection is not None and done.reflection.ending is not None)


class MakeDeps(Protocol):
    """Returns dependencies with the given observer and reflector. None means rules."""

    def __call__(self, *, observer: ObserverDeps | None = None, reflector: ReflectorDeps | None = None) -> Deps: ...


@record
class CheckedModels:
    """The work that can be done, and the unavailable models that prevent other work."""

    deps: Deps
    """Dependencies with the available models, and with rules in place of the others."""
    when: Due
    """Work that needs an unavailable model is never due."""
    missing: Mapping[Lane, OmError]
    """Errors of the unavailable models, the observer's first."""

    @property
    def errors(self) -> tuple[OmError, ...]:
        """Errors of the unavailable models, each message once."""
        return tuple({error.message: error for error in reversed([*self.missing.values()])}.values())[::-1]

    def note(self, rules: Deps, when: Due, sessions: Sequence[str] | None) -> None:
        """Record the errors in the lanes that would be due according to `rules` and `when`, in the given sessions or
        all.
        """
        for lane, error in self.missing.items():
            record_missing(rules, when, error, sessions, lanes=(lane,))


def check_models(
    make: MakeDeps,
    when: Due,
    *,
    observer: Callable[[], ObserverDeps],
    reflector: Callable[[], ReflectorDeps],
    caught: tuple[type[OmError], ...] = OF_MODELS,
) -> CheckedModels:
    """Return the work that can be done with the models that are available.

    `observer` and `reflector` return a model's dependencies, or raise one of the errors in `caught` if it is
    unavailable.
    """
    observed_by, reflected_by, missing = None, None, dict[Lane, OmError]()
    try:
        observed_by = observer()
    except caught as error:
        missing[Lane.OBSERVE] = error
        when = replace(when, trigger=Trigger.MANUAL)
    try:
        reflected_by = reflector()
    except caught as error:
        missing[Lane.REFLECT] = error
        when = replace(when, reflects=False)
    return CheckedModels(deps=make(observer=observed_by, reflector=reflected_by), when=when, missing=missing)


def record_missing(
    deps: Deps,
    when: Due,
    error: OmError,
    sessions: Sequence[str] | None = None,
    *,
    lanes: Sequence[Lane] = (Lane.OBSERVE, Lane.REFLECT),
) -> None:
    """Record an error as a failed batch or reflection in `lanes` that are due, in the given sessions or all.

    `om status` shows the error until the lane succeeds. No model is called. A failure to store the error is ignored.
    """
    for found in due(deps, when, sessions=sessions):
        with suppress(TryAgain, InputOutput):  # the error itself is reported anyway
            if Lane.OBSERVE in lanes and (found.observe or found.ahead):
                _note_observer(found.session, deps, error)
            if Lane.REFLECT in lanes and found.reflect:
                _note_reflector(found.session, deps, error)


def _note_observer(session: str, deps: Deps, error: OmError) -> None:
    batch = deps.store.batches.unobserved(session, max_tokens=deps.observer.batch_tokens)
    if batch is not None:
        deps.store.batches.record(batch, (), outcome=BatchOutcome.FAILED, now=deps.clock.now(), error=error.message)


def _note_reflector(session: str, deps: Deps, error: OmError) -> None:
    rows = reflect.rows_to_fold(session, deps)
    failed = ReflectionWrite(
        scope=Scope(session=session),
        fingerprint=deps.reflector.mark(rows),
        ending=ReflectionOutcome.FAILED,
        error=error.message,
    )
    deps.store.reflections.fold(failed, now=deps.clock.now())
