"""Working until nothing is due, as a worker does: what came while it was at it is seen as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from omcli.memory.errors import OF_ONE_SESSION, LaneTaken, StaleBatch
from omcli.memory.ports import Store
from omcli.memory.record import replace
from omcli.operations.lanes import LEASE_SECONDS
from omcli.operations.studio import Studio
from omcli.operations.tick import Due, Ticked, due, tick

Slot = Callable[[str], AbstractContextManager[bool]]
"""Takes the place of the one worker of a session, and tells whether it was free."""


def drain(studio: Studio, when: Due, sessions: Sequence[str], slot: Slot) -> Iterator[Ticked]:
    """Does what is due of each session, again and again, until nothing is.

    Nothing is stranded: who finds a place taken has kept its messages before, and leaves them to whoever holds it; and
    that one looks again once it has given the place back. Somebody who works on a session without such a place, by
    hand, is waited for, as long as a lease lasts without a sign of life. Ends as `tick` does where each session would
    go wrong.
    """
    patient = replace(studio, workshop=replace(studio.workshop, wait=max(studio.workshop.wait, LEASE_SECONDS)))
    for session in sessions:
        for ticked in _drained(session, patient, when, slot):
            yield ticked
            if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
                return


def _drained(session: str, studio: Studio, when: Due, slot: Slot) -> Iterator[Ticked]:
    store = studio.workshop.store
    while found := next(due(studio, when, sessions=[session]), None):
        before = _place(session, store)
        with slot(session) as is_ours:
            if not is_ours:
                yield replace(found, error=LaneTaken(f"another worker is at session {session}"))
                return
            done = next(tick(studio, when, sessions=[session]), None)
        if done is None:
            continue  # somebody else has done it between two looks
        yield done
        if isinstance(done.error, StaleBatch):
            continue  # somebody else was quicker; who came meanwhile has left it to us
        if done.error is not None or (_place(session, store) == before and not _has_come_to_something(done)):
            return


def _place(session: str, store: Store) -> tuple[int, int, int]:
    """Where a session stands: another one whenever something of it was observed, offered or taken in.

    Not how much waits: as much may have come as was observed.
    """
    batch = store.unobserved(session, max_tokens=1)
    return (batch.after, batch.deferred_through, store.pending(session).messages) if batch else (0, 0, 0)


def _has_come_to_something(done: Ticked) -> bool:
    return bool(done.blocks) or (done.reflection is not None and done.reflection.ending is not None)
