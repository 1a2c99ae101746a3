"""Holding a lane: one process at a time works through a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omcli.memory.errors import InputOutput, LaneTaken, TryAgain
from omcli.memory.ports import Lane
from omcli.operations.workshop import Workshop

LEASE_SECONDS = 600
"""How long a lane stays ours without a sign of life."""
_POLL_SECONDS = 0.1


@contextmanager
def held(session: str, lane: Lane, workshop: Workshop) -> Iterator[Callable[[], None]]:
    """Holds a lane of a session; the function it gives extends the lease.

    Raises LaneTaken where somebody else still holds it after `workshop.wait` seconds.
    """
    store, clock, owner = workshop.store, workshop.clock, workshop.owner

    def claim() -> None:
        expires_at = clock.later(LEASE_SECONDS)
        store.claim(session, lane, owner=owner, now=clock.now(), expires_at=expires_at)

    until = clock.monotonic() + workshop.wait
    while True:
        try:
            claim()
        except LaneTaken:
            if clock.monotonic() >= until:
                raise
            clock.sleep(_POLL_SECONDS)
        else:
            break
    try:
        yield claim
    finally:
        with suppress(TryAgain, InputOutput):  # what was done is done; and the lease ends with this process
            store.release(session, lane, owner=owner)
