"""Dependencies of operations (store, spool, token counter, clock, observer, reflector, limits), and leases of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from omcli.base import ignore
from omcli.base.errors import PASSING, InputOutput, LaneTaken, OmError, SessionTaken, TryAgain
from omcli.base.record import field, mutable_record, record
from omcli.memory.batch import Observer, SlicedObserver
from omcli.memory.message import Incoming, TokenCounter, reaches
from omcli.memory.observation import Observation, Priority, Status
from omcli.memory.ports import Appended, Lane, Store
from omcli.operations.clock import Clock

if TYPE_CHECKING:
    from omcli.memory.reflection import Reflector
    from omcli.memory.session import Session
    from omcli.operations.ingest.sessions import TranscriptCounts

_Thing = TypeVar("_Thing")
BATCH_TOKENS = 35_000
CONTEXT_ROWS = 150
"""Number of newest rows that accompany a batch, and also of newest mutable ones (`Observation.is_mutable`)."""


def _no(_: str) -> bool:
    """Return False, because no session waits, or no project turns memory off."""
    return False


class Verbatim(StrEnum):
    """The high-priority rows that are kept verbatim when rows are folded."""

    NONE = "none"
    OPEN = "open"
    """Rows that are open or mutable."""
    HIGH = "high"


class Meta(StrEnum):
    """Treatment of existing reflections when a session is reflected on again."""

    NEVER = "never"
    """Reflections are left as they are."""
    GENERATIONS = "generations"
    """Several reflections of one generation are folded into fewer of the next."""
    WHOLE = "whole"
    """Reflections are folded again, together with new rows."""


@record
class Policy:
    """Conditions for reflecting on a session, and the size of the result."""

    tokens: int | None = 20_000
    """A session is due when its rows reach this many tokens or, if not `inclusive`, exceed it. None means never."""
    inclusive: bool = True
    target: float = 0.5
    """Target size: a share of the tokens read if at most 1, otherwise a number of tokens."""
    rows: int = 0
    """Maximum number of reflections that a model makes at once, unless they would be too long. 0 means no limit."""
    verbatim: Verbatim = Verbatim.OPEN
    meta: Meta = Meta.NEVER
    meta_at: int = 5
    """Minimum number of reflections in a generation for them to be folded."""

    def is_due(self, tokens: int) -> bool:
        return self.tokens is not None and reaches(tokens, self.tokens, inclusive=self.inclusive)

    def target_of(self, tokens: int) -> int:
        """Return the number of tokens that should remain after folding this many."""
        return int(self.target * tokens) if self.target <= 1 else int(self.target)

    def covers(self, row: Observation) -> bool:
        """Return True if the row must be kept verbatim."""
        if row.priority is not Priority.HIGH or self.verbatim is Verbatim.NONE:
            return False
        return self.verbatim is Verbatim.HIGH or row.status is Status.OPEN or row.is_mutable


@record
class ObserverDeps:
    open: Callable[[], Observer]
    """Return the observer. Rules are imported only on this call."""
    model: SlicedObserver | None = None
    """Model that observes instead of `open`'s observer, if any. Its calls take time and money."""
    batch_tokens: int = BATCH_TOKENS
    """Maximum number of tokens in a batch."""
    batch_messages: int | None = None
    slice_tokens: int | None = None
    """Maximum number of a batch's tokens to show to a model at once. None means `batch_tokens`."""
    has_shared_rows: bool = False
    """True to show the model rows of other sessions in the project, in addition to the session's own notes, items and
    reflections.
    """
    rules_stand_in: bool = False
    """True if rules observe slices for which the model fails; otherwise the error is raised."""
    takes_images: bool = False
    """True if the model takes images; they are then stored until they are observed."""
    waits: Callable[[str], bool] = _no
    """Return True if a session waits because the model failed for it, and nothing stands in for the model."""

    @property
    def is_model(self) -> bool:
        return self.model is not None


@record
class ReflectorDeps:
    open: Callable[[], Reflector]
    """Return the reflector. Rules are imported only on this call."""
    policy: Policy = Policy()
    name: str = "rules"
    """Name recorded with each attempt, because another reflector may succeed with the same rows."""
    is_model: bool = False
    stand_in: Reflector | None = None
    """Reflector to use if the model fails or cannot make the rows shorter. None means that an error is raised."""
    waits: Callable[[str], bool] = _no
    """Return True if a session waits because the model failed for it, and nothing stands in for the model."""

    def mark(self, rows: Sequence[Observation], *, target: float | None = None) -> str:
        """Return a fingerprint of the rows, the reflector's name and the settings for folding. `target` overrides the
        policy's target.

        Rows that yielded nothing are tried again when their fingerprint changes.
        """
        return self.mark_of(sorted(row.id for row in rows), target=target)

    def mark_of(self, ids: Iterable[str], *, target: float | None = None) -> str:
        """Return the `mark` of rows by their sorted ids."""
        from omcli.memory.reflection import fingerprint_of  # noqa: PLC0415 - to reflect only

        return fingerprint_of(ids, *self._settings(self.policy.target if target is None else target))

    @property
    def settings(self) -> str:
        """A digest of the reflector's name and the settings for folding."""
        return self.mark_of(())

    def _settings(self, target: float) -> tuple[str, ...]:
        policy = self.policy
        return self.name, str(target), str(policy.rows), policy.verbatim, policy.meta


@mutable_record
class LongWork:
    """Work in progress that holds a lane from start to end, if there is any."""

    extend: Callable[[], None] = ignore
    """Extend the lease if needed. Raise LaneTaken if the lease had expired and another process has taken the lane."""
    wait: float = 0.0
    """Minimum number of seconds to wait for other lanes. `Deps.wait` applies if it is longer."""


@record
class StepCount:
    """Number of steps that are done, of all steps of long work."""

    noun: str
    done: int
    total: int


@record
class Deps:
    """All external resources that an operation uses."""

    open_store: Callable[[], Store]
    """Return the store, always the same object. By default, a missing store is created."""
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
    warn: Callable[[str], None] = ignore
    show_busy: Callable[[str], None] = ignore
    show_progress: Callable[[str, TranscriptCounts], None] = ignore
    show_steps: Callable[[StepCount | None], None] = ignore
    long_work: LongWork = field(default_factory=LongWork)
    is_off_in: Callable[[str], bool] = _no
    """Return True if memory is off in a session's directory, according to a file of its project."""
    open_spool: Callable[[OmError], Spool] | None = None
    """Return a file for an input that exists nowhere else, given the store's error. None means that the caller still
    has the input.
    """

    @property
    def store(self) -> Store:
        """The store of messages and rows. The first use raises any error in opening it."""
        return self.open_store()

    def busy(self, text: str) -> None:
        """Call `LongWork.extend`, then show the user the reason for a long wait."""
        self.long_work.extend()
        self.show_busy(text)

    def progress(self, name: str, counts: TranscriptCounts) -> None:
        """Call `LongWork.extend`, then show an input's name and its counts so far."""
        self.long_work.extend()
        self.show_progress(name, counts)

    def each(self, things: Sequence[_Thing], noun: str) -> Iterator[_Thing]:
        """Yield things, and show the user how many of them are done. A single one is not counted."""
        total = len(things)
        for done, thing in enumerate(things):
            if total > 1:
                self.show_steps(StepCount(noun=noun, done=done, total=total))
            yield thing
        if total > 1:
            self.show_steps(None)


# ---- the spool, for an input that the store cannot take and that nobody could pass again


class Spool(Protocol):
    """A file beside the store that takes an input in its place. It counts once `keep` has returned. Every method raises
    the store's error if the file cannot be written either.
    """

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> None:
        """Keep the arguments of a call of `MessageLog.append`."""

    def add(self, row: Observation) -> None:
        """Keep a row for `Rows.add`."""

    def keep(self) -> None:
        """Finish the file."""

    def empty_store(self) -> Store:
        """Return an empty store, to be read in place of one that cannot be opened."""


class StoreOrSpool:
    """The store or, from its first failure on, a file of the spool. It takes one input."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        open_spool: Callable[[OmError], Spool] | None = None,
        *,
        errors: tuple[type[OmError], ...] = PASSING,
    ) -> None:
        """Without `open_spool` all errors of the store are raised, otherwise all but `errors`."""
        self.open_store = open_store if open_spool is None else self._open_or_empty
        """Return the store to read from: an empty one if the store cannot be opened and the input is spooled."""
        self.error: OmError | None = None
        """Error for which the input is spooled."""
        self._open_store, self._open_spool, self._errors = open_store, open_spool, errors
        self._file: Spool | None = None
        self._empty: Store | None = None

    def _open_or_empty(self) -> Store:
        if self._empty is None:
            try:
                return self._open_store()
            except self._errors as error:
                self._empty = self._begin(error).empty_store()
        return self._empty

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int
    ) -> Appended | None:
        """Store messages and return the result, or spool them and return None. Raise SessionTaken as the store does."""
        if self._file is None:
            try:
                log = self._open_store().messages
                return log.append(session, messages, counter=counter, now=now, opening=opening)
            except SessionTaken:
                raise
            except self._errors as error:
                self._begin(error)
        self._spool(lambda file: file.append(session, messages, counter=counter, now=now, opening=opening))
        return None

    def add(self, row: Observation) -> None:
        """Store or spool a row that is the whole input."""
        if self._file is None:
            try:
                return self._open_store().rows.add(row)
            except self._errors as error:
                self._begin(error)
        self._spool(lambda file: file.add(row))
        return self.keep()

    def keep(self) -> None:
        """Finish the file, if there is one."""
        self._spool(lambda file: file.keep())

    def _begin(self, error: OmError) -> Spool:
        if self._open_spool is None:
            raise error
        self._file, self.error = self._open_spool(error), error
        return self._file

    def _spool(self, write: Callable[[Spool], None]) -> None:
        try:
            if self._file is not None:
                write(self._file)
        except OmError:  # nothing of the input is kept
            self._file = self.error = None
            raise


# ---- leases: one process at a time works in a lane of a session

LEASE_SECONDS = 600
"""Lifetime of a lease that is not extended. A process that hangs blocks others for no longer than this."""
_EXTEND_SECONDS = 60
"""Minimum number of seconds between two extensions of a lease."""
_POLL_SECONDS = 0.1


@contextmanager
def hold(session: str, lane: Lane, deps: Deps, *, wait: float | None = None) -> Iterator[Callable[[], None]]:
    """Hold a lane of a session, and yield a function that extends the lease. That function raises LaneTaken if the
    lease had expired and another process has taken the lane.

    Raise LaneTaken if another process still holds the lane after `wait` seconds (by default the longer of `deps.wait`
    and `deps.long_work.wait`).
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
        with suppress(TryAgain, InputOutput):  # the work is done, and the lease becomes free when this process ends
            leases.release(session, lane, owner=owner)


def is_free(session: str, lane: Lane, deps: Deps) -> bool:
    """Return True if no other process holds the lane. The lane is held for a moment to find out."""
    try:
        with hold(session, lane, deps, wait=0.0):
            return True
    except LaneTaken:
        return False


@contextmanager
def hold_and_extend(session: str, lane: Lane, deps: Deps, *, wait: float = 0.0) -> Iterator[Callable[[], None]]:
    """Hold a lane for long work, and yield a function that extends the lease, at most once a minute.

    Progress reports extend the lease too. `wait` is the minimum time in seconds to wait for other lanes during the
    work. Raise LaneTaken at once if another process holds the lane.
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
            work.extend, work.wait = ignore, 0.0
