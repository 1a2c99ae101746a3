"""Holding a lane: one process at a time works through a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omcli.base.errors import InputOutput, LaneTaken, TryAgain
from omcli.base.record import replace
from omcli.memory.ports import Lane
from omcli.operations.deps import Workshop
from omcli.operations.ingest.counts import TranscriptCounts

LEASE_SECONDS = 600
"""How long a lane stays ours without a sign of life: for so long whoever hangs holds others up, and no longer."""
_SIGN_OF_LIFE = 60
"""Seconds after which a lease that is held for long is extended again."""
_POLL_SECONDS = 0.1


@contextmanager
def hold(session: str, lane: Lane, workshop: Workshop) -> Iterator[Callable[[], None]]:
    """Holds a lane of a session; the function it gives extends the lease, and raises LaneTaken where it was too late.

    Raises LaneTaken where somebody else still holds it after `workshop.wait` seconds.
    """
    store, clock, owner = workshop.store, workshop.clock, workshop.owner

    def claim() -> None:
        expires_at = clock.later(LEASE_SECONDS)
        store.leases.claim(session, lane, owner=owner, now=clock.now(), expires_at=expires_at)

    until = clock.monotonic() + workshop.wait
    while True:
        try:
            claim()
        except LaneTaken as error:
            if clock.monotonic() >= until:
                raise
            workshop.busy(f"waiting: {error.message}")
            clock.sleep(_POLL_SECONDS)
        else:
            break
    try:
        yield claim
    finally:
        with suppress(TryAgain, InputOutput):  # what was done is done; and the lease ends with this process
            store.leases.release(session, lane, owner=owner)


def is_free(session: str, lane: Lane, workshop: Workshop) -> bool:
    """Whether nobody holds a lane; for a moment, whoever asks does."""
    try:
        with hold(session, lane, replace(workshop, wait=0.0)):
            return True
    except LaneTaken:
        return False


def throttled(claim: Callable[[], None], workshop: Workshop) -> Callable[[], None]:
    """Extends a lease where the last time is a while ago."""
    clock = workshop.clock
    last = clock.monotonic()

    def extend() -> None:
        nonlocal last
        if clock.monotonic() - last >= _SIGN_OF_LIFE:
            claim()
            last = clock.monotonic()

    return extend


def keeping_alive(workshop: Workshop, extend: Callable[[], None]) -> Workshop:
    """The same, which extends a lease whenever it tells how far it has come, or what it waits for."""

    def busy(said: str) -> None:
        extend()
        workshop.busy(said)

    def progress(name: str, tally: TranscriptCounts) -> None:
        extend()
        workshop.progress(name, tally)

    return replace(workshop, busy=busy, progress=progress)
