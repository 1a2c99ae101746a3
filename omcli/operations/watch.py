"""Following files: each round ingests changed files and does the work that is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from omcli.base.errors import (
    ELSEWHERE,
    OF_MATERIAL,
    OF_MODELS,
    BadInput,
    InputOutput,
    NoInput,
    OmError,
    SessionTaken,
    TryAgain,
    Waiting,
)
from omcli.base.record import mutable_record, record, replace
from omcli.operations import tick
from omcli.operations.clock import Clock
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.tick import Due, TickReport

_PATIENCE = 60.0
"""Seconds to wait before calling a model again after it failed."""


@record
class FoundFiles:
    files: Mapping[str, Stamp]
    faults: Mapping[str, OmError]
    """Errors by path."""


class FilesToWatch(Protocol):
    def look(self) -> FoundFiles:
        """Return all files, reading only their metadata."""
        ...

    def is_guess(self, path: str) -> bool:
        """Return True if the file was only guessed to be a transcript."""
        ...

    def exists(self, path: str) -> bool:
        """Return True if the file still exists."""
        ...


@record
class RoundDeps:
    """Resources of one round, closed when the round ends."""

    deps: Deps
    when: Due
    transcript: Callable[[str], FileInput]


@record
class WatchError:
    """An error in a file, a folder or the store. The work is retried."""

    about: str
    """The file or folder, or empty for the store."""
    error: OmError


@record
class RoundEnd:
    """The end of a round."""

    files: int
    """Number of files being followed."""


Event = FileReport | TickReport | WatchError | RoundEnd


class Watch:
    """Follows files: each round ingests changed files and does the work due in their sessions.

    A file with an error is read again when it changes. The store, and a session with an error, are tried again in a
    later round. A model that failed is called again after a minute or, if the messages of a session caused the failure,
    once that session has new ones. An error of a file, a session or the store is yielded once, until there is a success
    or a different error. Work that other processes are doing or have done is not an error.
    """

    def __init__(
        self,
        places: FilesToWatch,
        opened: Callable[[], AbstractContextManager[RoundDeps]],
        *,
        clock: Clock,
        at_most_every: float,
    ) -> None:
        """`at_most_every` is the minimum time in seconds between two ingests of a file."""
        self._places = places
        self._opened = opened
        self._clock = clock
        self._debouncer = Debouncer(at_most_every)
        self._waiting: dict[str, float] = {}
        """Maps sessions to the time of their next attempt."""
        self._asked_from = 0.0
        """Models are not called before this time."""
        self._said: dict[str, str] = {}

    def run(self, interval: float) -> Iterator[Event]:
        """Run rounds, with pauses of `interval` seconds. Raise errors that no later round can fix."""
        while True:
            yield from self.round()
            self._clock.sleep(interval)

    def round(self) -> Iterator[Event]:
        """Run one round. Raise errors that no later round can fix, such as a store written by a later version of om."""
        looked, now = self._places.look(), self._clock.monotonic()
        yield from self._errors(looked)
        due = self._debouncer.due(looked.files, now)
        again = [session for session, at in self._waiting.items() if at <= now]
        if due or again:
            try:
                with self._opened() as opened:
                    yield from self._take_in(opened, looked, due)
                    for session in again:
                        yield from self._tick(opened, session)
                self._said.pop("", None)
            except (TryAgain, InputOutput) as error:
                if self._is_new("", error):
                    yield WatchError(about="", error=error)
        yield RoundEnd(files=len(looked.files))

    def _errors(self, looked: FoundFiles) -> Iterator[WatchError]:
        for place, error in looked.faults.items():
            if self._is_new(place, error):
                yield WatchError(about=place, error=error)

    def _take_in(self, opened: RoundDeps, looked: FoundFiles, due: Iterable[str]) -> Iterator[Event]:
        """Ingest files, and do the work due in their sessions. Raise errors that affect every file."""
        for path in sorted(due):  # a session sorts before its subagents
            (report,) = ingest_files([opened.transcript(path)], opened.deps)
            error = report.error
            if error is not None and not isinstance(error, (BadInput, NoInput)):
                self._debouncer.mark_failed(path, self._clock.monotonic())
                if isinstance(error, SessionTaken):
                    continue
                raise error
            self._debouncer.mark_ingested(path, looked.files[path], self._clock.monotonic())
            if self._is_worth_report(report):
                yield report
            if report.new_messages or report.pending or report.counts.asides:
                for session in report.sessions:
                    yield from self._tick(opened, session)

    def _is_worth_report(self, report: FileReport) -> bool:
        path, error = report.path, report.error
        if error is None:
            self._said.pop(path, None)
            return report.new_messages > 0
        if isinstance(error, BadInput) and self._places.is_guess(path):
            return False
        return (not isinstance(error, NoInput) or self._places.exists(path)) and self._is_new(path, error)

    def _tick(self, opened: RoundDeps, session: str) -> Iterator[TickReport]:
        """Do the work due in a session, or put it off if models must not be called yet. Raise errors that affect every
        session.
        """
        self._waiting.pop(session, None)
        if self._clock.monotonic() < self._asked_from:
            self._waiting[session] = self._asked_from
            return
        deps = opened.deps
        if deps.observer.waits(session) or deps.reflector.waits(session):  # the wait may end without a new message
            self._waiting[session] = self._clock.monotonic() + _PATIENCE
        for ticked in tick.tick(deps, opened.when, sessions=[session]):
            error = ticked.error
            if error is None:
                self._said.pop(session, None)
            else:
                self._put_off(session, error)
            if error is None or (not isinstance(error, ELSEWHERE) and self._is_new(session, error)):
                yield ticked
            elif ticked.rows:
                yield replace(ticked, error=None)
            if error is not None and not isinstance(error, (*OF_MODELS, *ELSEWHERE)):
                raise error

    def _put_off(self, session: str, error: OmError) -> None:
        if isinstance(error, OF_MATERIAL):
            return  # the same request would fail again, at the same cost
        now = self._clock.monotonic()
        self._waiting[session] = now
        if isinstance(error, OF_MODELS):
            self._waiting[session] = now + _PATIENCE
        if isinstance(error, OF_MODELS) and not isinstance(error, Waiting):
            self._asked_from = now + _PATIENCE

    def _is_new(self, about: str, error: OmError) -> bool:
        is_news = self._said.get(about) != error.message
        self._said[about] = error.message
        return is_news


Stamp = tuple[int, ...]
"""State of a file. Equal stamps mean that the file has not changed."""


@mutable_record
class _Known:
    """State of a file. Times are in seconds on the monotonic clock."""

    looked: Stamp
    """Stamp at the last look."""
    changed_at: float
    """Time of the first look that found the file changed since its last ingest."""
    taken: Stamp | None = None
    """Stamp at its last ingest."""
    tried_at: float | None = None


class Debouncer:
    """Decides which files to ingest now.

    A changed file is ingested once two successive looks find it in the same state, or after `seconds` if it keeps
    changing, but never twice within `seconds`. The file stays due until its last state is ingested.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._has_looked = False

    def due(self, looked: Mapping[str, Stamp], now: float) -> list[str]:
        """Return the files to ingest now. The first call returns all files."""
        self._known = {path: known for path, known in self._known.items() if path in looked}
        due = [path for path, stamp in looked.items() if self._is_due(path, stamp, now)]
        self._has_looked = True
        return due

    def mark_ingested(self, path: str, stamp: Stamp, now: float) -> None:
        """Record that a file was ingested in this or a later state."""
        self._known[path].taken = stamp
        self._known[path].tried_at = now

    def mark_failed(self, path: str, now: float) -> None:
        self._known[path].tried_at = now

    def _is_due(self, path: str, stamp: Stamp, now: float) -> bool:
        known = self._known.get(path)
        if known is None:
            self._known[path] = _Known(looked=stamp, changed_at=now)
            return not self._has_looked
        is_settled, was_taken = stamp == known.looked, known.looked == known.taken
        known.looked = stamp
        if stamp == known.taken:
            return False
        if was_taken:
            known.changed_at = now
        since = known.tried_at if is_settled else max(known.changed_at, known.tried_at or known.changed_at)
        return since is None or now >= since + self._seconds
