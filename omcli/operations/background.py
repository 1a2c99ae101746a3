"""Working until nothing is due, as a worker does: what came while it was at it is seen as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from omcli.base.errors import OF_MODELS, OF_ONE_SESSION, InputOutput, LaneTaken, OmError, StaleBatch, TryAgain
from omcli.base.record import record, replace
from omcli.memory.batch import BatchOutcome
from omcli.memory.ports import Lane, Store
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope
from omcli.operations.deps import Deps, Policy
from omcli.operations.leases import LEASE_SECONDS, hold, keeping_alive, throttled
from omcli.operations.reflect import session as reflect
from omcli.operations.tick import Due, Ticked, Trigger, due, tick


def drain(deps: Deps, when: Due, sessions: Sequence[str]) -> Iterator[Ticked]:
    """Does what is due of each session, again and again, until nothing is.

    A session has a place for one worker, a lane of its own. Nothing is stranded: who finds it taken has kept its
    messages before, and leaves them to whoever holds it; and that one looks again once it has given the place back.
    Somebody who works on a session without such a place, by hand, is waited for, as long as a lease lasts without a
    sign of life. Ends as `tick` does where each session would go wrong.
    """
    for session in sessions:
        for ticked in _drained(session, deps, when):
            yield ticked
            if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
                return


def _drained(session: str, deps: Deps, when: Due) -> Iterator[Ticked]:
    store = deps.store
    while found := next(due(deps, when, sessions=[session]), None):
        before = _place(session, store)
        try:
            done = _done(session, deps, when)
        except LaneTaken:
            yield replace(found, error=LaneTaken(f"another worker is at session {session}"))
            return
        if done is None:
            continue  # somebody else has done it between two looks
        yield done
        if isinstance(done.error, StaleBatch):
            continue  # somebody else was quicker; who came meanwhile has left it to us
        if done.error is not None or (_place(session, store) == before and not _has_come_to_something(done)):
            return


def _done(session: str, deps: Deps, when: Due) -> Ticked | None:
    """What came of a session, in the place of its one worker. Raises LaneTaken where another one has that."""
    with hold(session, Lane.WORK, deps, wait=0.0) as claim:
        at_work = keeping_alive(deps, throttled(claim, deps), wait=max(deps.wait, LEASE_SECONDS))
        return next(tick(at_work, when, sessions=[session]), None)


def _place(session: str, store: Store) -> tuple[int, int, int]:
    """Where a session stands: another one whenever something of it was observed, offered or taken in.

    Not how much waits: as much may have come as was observed.
    """
    batch = store.batches.unobserved(session, max_tokens=1)
    return (batch.after, batch.deferred_through, store.batches.pending(session).messages) if batch else (0, 0, 0)


def _has_come_to_something(done: Ticked) -> bool:
    return bool(done.blocks) or (done.reflection is not None and done.reflection.ending is not None)


@record
class Able:
    """What can be done, and what cannot."""

    deps: Deps
    when: Due
    missing: tuple[Missing, ...] = ()

    @property
    def errors(self) -> tuple[OmError, ...]:
        """What keeps models from being asked, each thing once: as who observes is told of it, where both are."""
        return tuple({each.error.message: each.error for each in reversed(self.missing)}.values())[::-1]

    def note(self, sessions: Sequence[str] | None) -> None:
        """Writes down what could not be done, where it is due."""
        for each in self.missing:
            note_unable(each.deps, each.when, each.error, sessions)


class Missing(NamedTuple):
    """Who cannot be asked, and why; by the deps and the rules nothing but their work is due."""

    deps: Deps
    when: Due
    error: OmError


def able(rules: Deps, when: Due, observing: Callable[[Deps], Deps], reflecting: Callable[[Deps], Deps]) -> Able:
    """Where the one who observes or the one who reflects can't be asked, the other's work is done all the same.

    `rules` tell what is due; the others give who works, and raise where that cannot be had.
    """
    nothing_observed = replace(when, trigger=Trigger.MANUAL)
    nothing_folded = replace(rules.reflector, policy=Policy(tokens=None))
    deps, missing, able_when = rules, list[Missing](), when
    try:
        deps = observing(deps)
    except OF_MODELS as error:
        missing.append(Missing(replace(rules, reflector=nothing_folded), when, error))
        able_when = nothing_observed
    try:
        deps = reflecting(deps)
    except OF_MODELS as error:
        missing.append(Missing(rules, nothing_observed, error))
        deps = replace(deps, reflector=nothing_folded)
    return Able(deps=deps, when=able_when, missing=tuple(missing))


def note_unable(deps: Deps, when: Due, error: OmError, sessions: Sequence[str] | None = None) -> None:
    """Writes the failure down in the lanes that are due, of some sessions or of all, as one of a model's is.

    So it is told with the others, until something succeeds there. `deps` needs nobody who works: it is not asked.
    """
    for found in due(deps, when, sessions=sessions):
        with suppress(TryAgain, InputOutput):  # what it is about is told in any case
            if found.observe or found.ahead:
                _note_observing(found.session, deps, error)
            if found.reflect:
                _note_reflecting(found.session, deps, error)


def _note_observing(session: str, deps: Deps, error: OmError) -> None:
    batch = deps.store.batches.unobserved(session, max_tokens=deps.observer.batch_tokens)
    if batch is not None:
        deps.store.batches.record(batch, (), outcome=BatchOutcome.FAILED, now=deps.clock.now(), error=error.message)


def _note_reflecting(session: str, deps: Deps, error: OmError) -> None:
    rows = reflect.rows_to_fold(session, deps)
    failed = ReflectionWrite(
        scope=Scope(session=session),
        fingerprint=deps.reflector.mark(rows),
        ending=ReflectionOutcome.FAILED,
        error=error.message,
        figures={"in_vain": False},
    )
    deps.store.reflections.fold(failed, now=deps.clock.now())
