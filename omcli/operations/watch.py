"""Following files: what is new in them is taken in, and what is due of it is done."""

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
)
from omcli.base.record import mutable_record, record, replace
from omcli.operations import tick
from omcli.operations.clock import Clock
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.tick import Due, Ticked

_PATIENCE = 60.0
"""Seconds until a model that failed is asked again, unless there is something new."""


@record
class Looked:
    """What there is to follow."""

    files: Mapping[str, Stamp]
    faults: Mapping[str, OmError]
    """What could not be looked at, by its name."""


class Places(Protocol):
    """Where the files are."""

    def look(self) -> Looked:
        """Looks at all of them, at no more cost than that."""
        ...

    def is_guess(self, path: str) -> bool:
        """Whether a file may well be no transcript, and need not."""
        ...

    def is_there(self, path: str) -> bool:
        """Whether a file has not vanished meanwhile."""
        ...


@record
class Opened:
    """What a round works with, closed when the round is over."""

    ingesting: Deps
    ticking: Deps
    """The same with the models of the settings."""
    when: Due
    transcript: Callable[[str], FileInput]


@record
class Trouble:
    """What keeps something from being looked at or written; it is tried again."""

    about: str
    """The file or folder; empty for the store."""
    error: OmError


@record
class Rested:
    """The end of a round."""

    files: int
    """How many are followed."""


Event = FileReport | Ticked | Trouble | Rested


class Watch:
    """Follows files: round by round it looks, takes in what has changed, and does what is due of that.

    What goes wrong with a file is said once, until it changes; what goes wrong with the store is said once, and tried
    again. A model that fails is asked again after a minute, one that declines when there is more to show. What
    somebody else is at is no trouble.
    """

    def __init__(
        self,
        places: Places,
        opened: Callable[[], AbstractContextManager[Opened]],
        *,
        clock: Clock,
        at_most_every: float,
    ) -> None:
        """`at_most_every` is in seconds: no file is taken in more often."""
        self._places = places
        self._opened = opened
        self._clock = clock
        self._pace = Pace(at_most_every)
        self._waiting: dict[str, float] = {}
        """Sessions that are to be looked at again, and when."""
        self._asked_from = 0.0
        """When models may be asked again."""
        self._said: dict[str, str] = {}

    def rounds(self, interval: float) -> Iterator[Event]:
        """One round after another, `interval` seconds apart. Raises what no later round will mend."""
        while True:
            yield from self.round()
            self._clock.sleep(interval)

    def round(self) -> Iterator[Event]:
        """One round. Raises what no later one will mend, such as a store of a later version."""
        looked, now = self._places.look(), self._clock.monotonic()
        yield from self._faults(looked)
        due = self._pace.due(looked.files, now)
        again = [session for session, at in self._waiting.items() if at <= now]
        if due or again:
            try:
                with self._opened() as opened:
                    yield from self._take_in(opened, looked, due)
                    for session in again:
                        yield from self._tick(opened, session)
                self._said.pop("", None)
            except (TryAgain, InputOutput) as error:
                if self._is_news("", error):
                    yield Trouble(about="", error=error)
        yield Rested(files=len(looked.files))

    def _faults(self, looked: Looked) -> Iterator[Trouble]:
        for place, error in looked.faults.items():
            if self._is_news(place, error):
                yield Trouble(about=place, error=error)

    def _take_in(self, opened: Opened, looked: Looked, due: Iterable[str]) -> Iterator[Event]:
        """Takes the files in. Raises what keeps every file from being taken in."""
        for path in sorted(due):  # a session comes before its subagents, as their names do
            (report,) = ingest_files([opened.transcript(path)], opened.ingesting)
            error = report.error
            if error is not None and not isinstance(error, (BadInput, NoInput)):
                self._pace.tried(path, self._clock.monotonic())
                if isinstance(error, SessionTaken):
                    continue
                raise error
            self._pace.took(path, looked.files[path], self._clock.monotonic())
            if self._is_worth_saying(report):
                yield report
            if report.new_messages or report.pending:
                for session in report.sessions:
                    yield from self._tick(opened, session)

    def _is_worth_saying(self, report: FileReport) -> bool:
        path, error = report.path, report.error
        if error is None:
            self._said.pop(path, None)
            return report.new_messages > 0
        if isinstance(error, BadInput) and self._places.is_guess(path):
            return False
        return (not isinstance(error, NoInput) or self._places.is_there(path)) and self._is_news(path, error)

    def _tick(self, opened: Opened, session: str) -> Iterator[Ticked]:
        """Does what is due of a session. Raises what keeps every session from being worked on."""
        self._waiting.pop(session, None)
        if self._clock.monotonic() < self._asked_from:
            self._waiting[session] = self._asked_from
            return
        for ticked in tick.tick(opened.ticking, opened.when, sessions=[session]):
            error = ticked.error
            if error is None:
                self._said.pop(session, None)
            else:
                self._put_off(session, error)
            if error is None or (not isinstance(error, ELSEWHERE) and self._is_news(session, error)):
                yield ticked
            elif ticked.rows:
                yield replace(ticked, error=None)
            if error is not None and not isinstance(error, (*OF_MODELS, *ELSEWHERE)):
                raise error

    def _put_off(self, session: str, error: OmError) -> None:
        """When a session is looked at again of which not all was done."""
        if isinstance(error, OF_MATERIAL):
            return  # the same would come of the same, and cost as much
        now = self._clock.monotonic()
        self._waiting[session] = now
        if isinstance(error, OF_MODELS):
            self._waiting[session] = self._asked_from = now + _PATIENCE

    def _is_news(self, about: str, error: OmError) -> bool:
        is_news = self._said.get(about) != error.message
        self._said[about] = error.message
        return is_news


Stamp = tuple[int, ...]
"""What a file is told from its earlier and later states by."""


@mutable_record
class _Known:
    """What is known of a file; times are seconds on a clock that only measures durations."""

    looked: Stamp
    """As it was at the last look."""
    changed_at: float
    """When it was first seen to be other than what was taken in."""
    taken: Stamp | None = None
    """As it was when it was taken in last."""
    tried_at: float | None = None


class Pace:
    """Decides it, look by look.

    A file that is as it was at the look before is taken in; one that changes with every look is when `seconds` have
    passed, and none is more often than that. Its last state is taken in whatever happens: what is not taken in is due
    until it is.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._has_looked = False

    def due(self, looked: Mapping[str, Stamp], now: float) -> list[str]:
        """What is to be taken in of the files that there are; at the first look that is all of them."""
        self._known = {path: known for path, known in self._known.items() if path in looked}
        due = [path for path, stamp in looked.items() if self._is_due(path, stamp, now)]
        self._has_looked = True
        return due

    def took(self, path: str, stamp: Stamp, now: float) -> None:
        """Notes that a file was taken in, at least as it was at that look."""
        self._known[path].taken = stamp
        self._known[path].tried_at = now

    def tried(self, path: str, now: float) -> None:
        """Notes that a file could not be taken in now, whatever is in it."""
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
