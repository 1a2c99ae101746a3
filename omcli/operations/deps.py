"""Dependencies of operations (store, token counter, clock, observer, reflector with limits), and leases of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from omcli.base.errors import InputOutput, LaneTaken, TryAgain
from omcli.base.record import field, mutable_record, record
from omcli.memory.batch import Observer, SlicedObserver
from omcli.memory.message import TokenCounter, reaches
from omcli.memory.observation import Observation, Priority, Status
from omcli.memory.ports import Lane, Store
from omcli.operations.clock import Clock

if TYPE_CHECKING:
    from omcli.memory.reflection import Reflector
    from omcli.operations.ingest.sessions import TranscriptCounts

BATCH_TOKENS = 35_000
CONTEXT_ROWS = 150
"""Rows shown along with a batch: the newest, and the newest mutable ones."""


def _ignore(text: str) -> None:
    """Drop a message to the user."""


def _hide_progress(name: str, counts: TranscriptCounts) -> None:
    """Show no progress."""


def _extend_nothing() -> None:
    """Extend no lease."""


class Verbatim(StrEnum):
    """High-priority rows that are kept verbatim."""

    NONE = "none"
    OPEN = "open"
    """Rows that are open or mutable."""
    HIGH = "high"


class Meta(StrEnum):
    """Treatment of existing reflections when a session is reflected on again."""

    NEVER = "never"
    """They stay as they are."""
    GENERATIONS = "generations"
    """Several of one generation are folded into one of the next."""
    WHOLE = "whole"
    """They are folded again, together with new rows."""


@record
class Policy:
    """The threshold for reflecting on a session, and the size of the result."""

    tokens: int | None = 20_000
    """A session is due once its rows have this many tokens; None: never."""
    inclusive: bool = True
    target: float = 0.5
    """Target size: up to 1 a share of the tokens read, above that a number of tokens."""
    rows: int = 0
    """Largest number of reflections made at once; 0: any number."""
    verbatim: Verbatim = Verbatim.OPEN
    meta: Meta = Meta.NEVER
    meta_at: int = 5
    """The reflections of one generation are folded once there are this many."""

    def is_due(self, tokens: int) -> bool:
        """True if a session is due when its rows have this many tokens."""
        return self.tokens is not None and reaches(tokens, self.tokens, inclusive=self.inclusive)

    def target_of(self, tokens: int) -> int:
        """The number of tokens that should remain of this many."""
        return int(self.target * tokens) if self.target <= 1 else int(self.target)

    def covers(self, row: Observation) -> bool:
        """True if a row must be kept verbatim."""
        if row.priority is not Priority.HIGH or self.verbatim is Verbatim.NONE:
            return False
        return self.verbatim is Verbatim.HIGH or row.status is Status.OPEN or row.is_mutable


@record
class ObserverDeps:
    """An observer with its limits."""

    open: Callable[[], Observer]
    """Return the observer. Rules are imported only then."""
    model: SlicedObserver | None = None
    """A model that observes instead; its calls take time and money. None: `open` is used."""
    batch_tokens: int = BATCH_TOKENS
    """Tokens of a batch, at most."""
    batch_messages: int | None = None
    slice_tokens: int | None = None
    """Tokens of a batch shown to a model at once; None: all of them."""
    rules_stand_in: bool = False
    """True if rules observe the slices at which the model fails; otherwise the failure is raised."""
    takes_images: bool = False
    """True if the model takes images; they are then stored until they are observed."""

    @property
    def is_model(self) -> bool:
        """True if a model observes."""
        return self.model is not None


@record
class ReflectorDeps:
    """A reflector with its policy."""

    open: Callable[[], Reflector]
    """Return the reflector. Rules are imported only then."""
    policy: Policy = Policy()
    name: str = "rules"
    """Name recorded with each attempt, since another reflector may succeed with the same rows."""
    is_model: bool = False
    stand_in: Reflector | None = None
    """Reflects if the model fails; None: the failure is raised."""

    def mark(self, rows: Sequence[Observation], *, target: float | None = None) -> str:
        """Return a fingerprint of rows and of the way they are folded. Rows that gave nothing are tried again if it
        changes.
        """
        from omcli.memory.reflection import fingerprint  # noqa: PLC0415 - to reflect only

        policy = self.policy
        share = policy.target if target is None else target
        return fingerprint(rows, self.name, str(share), str(policy.rows), policy.verbatim, policy.meta)


@mutable_record
class LongWork:
    """Work that holds a lane throughout, if any is going on."""

    extend: Callable[[], None] = _extend_nothing
    """Extend its lease when due. Raise LaneTaken if the lease has expired."""
    wait: float = 0.0
    """Seconds to wait for other lanes, if more than `Deps.wait`."""


@record
class Deps:
    """Everything from outside that an operation uses."""

    open_store: Callable[[], Store]
    """Return the store, always the same one. A missing store is created then."""
    counter: TokenCounter
    clock: Clock
    new_id: Callable[[], str]
    """Return a new UUIDv7."""
    owner: str
    """Name of this process as the owner of leases."""
    wait: float
    """Seconds to wait for a lane held by another process."""
    observer: ObserverDeps
    reflector: ReflectorDeps
    warn: Callable[[str], None] = _ignore
    show_busy: Callable[[str], None] = _ignore
    show_progress: Callable[[str, TranscriptCounts], None] = _hide_progress
    long_work: LongWork = field(default_factory=LongWork)

    @property
    def store(self) -> Store:
        """The store of messages and rows. The first use raises the errors of opening it."""
        return self.open_store()

    def busy(self, text: str) -> None:
        """Tell the user the reason for a long wait. Raise LaneTaken as `LongWork.extend` does."""
        self.long_work.extend()
        self.show_busy(text)

    def progress(self, name: str, counts: TranscriptCounts) -> None:
        """Show an input's name and its counts so far. Raise LaneTaken as `LongWork.extend` does."""
        self.long_work.extend()
        self.show_progress(name, counts)


# ---- leases: one process at a time works in a lane of a session

LEASE_SECONDS = 600
"""Life of a lease that is not extended: a process that hangs blocks others for at most this long."""
_EXTEND_SECONDS = 60
"""Age in seconds from which a lease is extended again."""
_POLL_SECONDS = 0.1


@contextmanager
def hold(session: str, lane: Lane, deps: Deps, *, wait: float | None = None) -> Iterator[Callable[[], None]]:
    """Hold a lane of a session, and yield a function that extends the lease, or raises LaneTaken if it has expired.

    Raise LaneTaken if another process still holds it after `wait` seconds (`deps.wait` if None).
    """
    leases, clock, owner = deps.store.leases, deps.clock, deps.owner

    def claim() -> None:
        leases.claim(session, lane, owner=owner, now=clock.now(), expires_at=clock.after(LEASE_SECONDS))

    until = clock.monotonic() + (max(deps.wait, deps.long_work.wait) if wait is None else wait)
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
        with suppress(TryAgain, InputOutput):  # the work is done, and the lease ends with this process
            leases.release(session, lane, owner=owner)


def is_free(session: str, lane: Lane, deps: Deps) -> bool:
    """True if no process holds a lane. To find out, take the lane for a moment."""
    try:
        with hold(session, lane, deps, wait=0.0):
            return True
    except LaneTaken:
        return False


@contextmanager
def hold_throughout(session: str, lane: Lane, deps: Deps, *, wait: float = 0.0) -> Iterator[Callable[[], None]]:
    """Hold a lane for long work, and yield a function that extends its lease unless it was extended just before.

    Reports of progress extend the lease as well. `wait` is the least number of seconds to wait for the lanes inside.
    Raise LaneTaken at once if another process holds the lane.
    """
    with hold(session, lane, deps, wait=0.0) as claim:
        clock, work = deps.clock, deps.long_work
        last = clock.monotonic()

        def extend() -> None:
            nonlocal last
            if clock.monotonic() - last >= _EXTEND_SECONDS:
                claim()
                last = clock.monotonic()

        work.extend, work.wait = extend, wait
        try:
            yield extend
        finally:
            work.extend, work.wait = _extend_nothing, 0.0
