"""Working until nothing is due, as a worker does: what came while it was at it is seen as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.errors import OF_ONE_SESSION, LaneTaken, StaleBatch
from omcli.base.record import replace
from omcli.memory.ports import Lane, Store
from omcli.operations.lanes import LEASE_SECONDS, held, living, seldom
from omcli.operations.studio import Studio
from omcli.operations.tick import Due, Ticked, due, tick


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
    with held(session, Lane.WORK, replace(workshop, wait=0.0)) as claim:
        patient = replace(workshop, wait=max(workshop.wait, LEASE_SECONDS))
        at_work = replace(studio, workshop=living(patient, seldom(claim, workshop)))
        return next(tick(at_work, when, sessions=[session]), None)


def _place(session: str, store: Store) -> tuple[int, int, int]:
    """Where a session stands: another one whenever something of it was observed, offered or taken in.

    Not how much waits: as much may have come as was observed.
    """
    batch = store.unobserved(session, max_tokens=1)
    return (batch.after, batch.deferred_through, store.pending(session).messages) if batch else (0, 0, 0)


def _has_come_to_something(done: Ticked) -> bool:
    return bool(done.blocks) or (done.reflection is not None and done.reflection.ending is not None)
