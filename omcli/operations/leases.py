"""Leases: one process at a time works in a lane of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omcli.base.errors import InputOutput, LaneTaken, TryAgain
from omcli.base.record import replace
from omcli.memory.ports import Lane
from omcli.operations.deps import Deps
from omcli.operations.ingest.counts import TranscriptCounts

LEASE_SECONDS = 600
"""Life of a lease that is not extended: a process that hangs blocks others for so long, and no longer."""
_EXTEND_SECONDS = 60
"""Age from which a lease is extended again."""
_POLL_SECONDS = 0.1


@contextmanager
def hold(session: str, lane: Lane, deps: Deps, *, wait: float | None = None) -> Iterator[Callable[[], None]]:
    """Hold a lane of a session, and yield a function that extends the lease, or raises LaneTaken if it has expired.

    Raises LaneTaken if another process still holds it after `wait` seconds (`deps.wait` if None).
    """
    leases, clock, owner = deps.store.leases, deps.clock, deps.owner

    def claim() -> None:
        leases.claim(session, lane, owner=owner, now=clock.now(), expires_at=clock.after(LEASE_SECONDS))

    until = clock.monotonic() + (deps.wait if wait is None else wait)
    while True:
        try:
            claim()
        except LaneTaken as error:
            if clock.monotonic() >= until:
                raise
            deps.busy(f"waiting: {error.message}")
            clock.sleep(_POLL_SECONDS)
        else:
            break
    try:
        yield claim
    finally:
        with suppress(TryAgain, InputOutput):  # the work is done; and the lease ends with this process
            leases.release(session, lane, owner=owner)


def is_free(session: str, lane: Lane, deps: Deps) -> bool:
    """True if no process holds a lane. The caller holds it for a moment."""
    try:
        with hold(session, lane, deps, wait=0.0):
            return True
    except LaneTaken:
        return False


def extend_when_due(claim: Callable[[], None], deps: Deps) -> Callable[[], None]:
    """Return a function that extends a lease unless that was done just now."""
    clock = deps.clock
    last = clock.monotonic()

    def extend() -> None:
        nonlocal last
        if clock.monotonic() - last >= _EXTEND_SECONDS:
            claim()
            last = clock.monotonic()

    return extend


def with_lease(deps: Deps, extend: Callable[[], None], *, wait: float | None = None) -> Deps:
    """Return the dependencies so that each report of progress extends a lease; `wait` is for the lanes inside."""

    def busy(text: str) -> None:
        extend()
        deps.busy(text)

    def progress(name: str, counts: TranscriptCounts) -> None:
        extend()
        deps.progress(name, counts)

    return replace(deps, busy=busy, progress=progress, wait=deps.wait if wait is None else wait)
