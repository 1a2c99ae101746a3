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
from omcli.operations.deps import Policy, Studio, Workshop
from omcli.operations.leases import LEASE_SECONDS, hold, keeping_alive, throttled
from omcli.operations.reflect import session as reflect
from omcli.operations.tick import Due, Ticked, Trigger, due, tick


def drain(studio: Studio, when: Due, sessions: Sequence[str]) -> Iterator[Ticked]:
    """Does what is due of each session, again and again, until nothing is.

    A session has a place for one worker, a lane of its own. Nothing is stranded: who finds it taken has kept its
    messages before, and leaves them to whoever holds it; and that one looks again once it has given the place back.
    Somebody who works on a session without such a place, by hand, is waited for, as long as a lease lasts without a
    sign of life. Ends as `tick` does where each session would go wrong.
    """
    for session in sessions:
        for ticked in _drained(session, studio, when):
            yield ticked
            if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
                return


def _drained(session: str, studio: Studio, when: Due) -> Iterator[Ticked]:
    store = studio.workshop.store
    while found := next(due(studio, when, sessions=[session]), None):
        before = _place(session, store)
        try:
            done = _done(session, studio, when)
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


def _done(session: str, studio: Studio, when: Due) -> Ticked | None:
    """What came of a session, in the place of its one worker. Raises LaneTaken where another one has that."""
    workshop = studio.workshop
    with hold(session, Lane.WORK, replace(workshop, wait=0.0)) as claim:
        patient = replace(workshop, wait=max(workshop.wait, LEASE_SECONDS))
        at_work = replace(studio, workshop=keeping_alive(patient, throttled(claim, workshop)))
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

    studio: Studio
    when: Due
    missing: tuple[Missing, ...] = ()

    @property
    def errors(self) -> tuple[OmError, ...]:
        """What keeps models from being asked, each thing once: as who observes is told of it, where both are."""
        return tuple({each.error.message: each.error for each in reversed(self.missing)}.values())[::-1]

    def note(self, sessions: Sequence[str] | None) -> None:
        """Writes down what could not be done, where it is due."""
        for each in self.missing:
            note_unable(each.studio, each.when, each.error, sessions)


class Missing(NamedTuple):
    """Who cannot be asked, and why; by the studio and the rules nothing but their work is due."""

    studio: Studio
    when: Due
    error: OmError


def able(
    rules: Studio, when: Due, observing: Callable[[Workshop], Workshop], reflecting: Callable[[Workshop], Studio]
) -> Able:
    """Where the one who observes or the one who reflects can't be asked, the other's work is done all the same.

    `rules` tell what is due; the others give who works, and raise where that cannot be had.
    """
    nothing_observed, nothing_folded = replace(when, trigger=Trigger.MANUAL), Policy(tokens=None)
    workshop, missing, able_when = rules.workshop, list[Missing](), when
    try:
        workshop = observing(workshop)
    except OF_MODELS as error:
        missing.append(Missing(replace(rules, policy=nothing_folded), when, error))
        able_when = nothing_observed
    try:
        studio = reflecting(workshop)
    except OF_MODELS as error:
        missing.append(Missing(rules, nothing_observed, error))
        studio = replace(rules, workshop=workshop, policy=nothing_folded)
    return Able(studio=studio, when=able_when, missing=tuple(missing))


def note_unable(studio: Studio, when: Due, error: OmError, sessions: Sequence[str] | None = None) -> None:
    """Writes the failure down in the lanes that are due, of some sessions or of all, as one of a model's is.

    So it is told with the others, until something succeeds there. `studio` needs nobody who works: it is not asked.
    """
    for found in due(studio, when, sessions=sessions):
        with suppress(TryAgain, InputOutput):  # what it is about is told in any case
            if found.observe or found.ahead:
                _note_observing(found.session, studio.workshop, error)
            if found.reflect:
                _note_reflecting(found.session, studio, error)


def _note_observing(session: str, workshop: Workshop, error: OmError) -> None:
    batch = workshop.store.batches.unobserved(session, max_tokens=workshop.batch_tokens)
    if batch is not None:
        workshop.store.batches.record(
            batch, (), outcome=BatchOutcome.FAILED, now=workshop.clock.now(), error=error.message
        )


def _note_reflecting(session: str, studio: Studio, error: OmError) -> None:
    rows = reflect.rows_to_fold(session, studio)
    failed = ReflectionWrite(
        scope=Scope(session=session),
        fingerprint=studio.mark(rows),
        ending=ReflectionOutcome.FAILED,
        error=error.message,
        figures={"in_vain": False},
    )
    studio.workshop.store.reflections.fold(failed, now=studio.workshop.clock.now())
