"""Everything on stderr: notes, results, warnings, errors, questions and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import IO, TYPE_CHECKING, TextIO

from omcli.base.errors import OmError
from omcli.text.clean import json_line, one_line, single_line

if TYPE_CHECKING:
    from omcli.cli.progress import ProgressMeter
    from omcli.cli.terminal import KeyReader, StatusLine
    from omcli.operations.deps import StepCount

_SECONDS_OF_LINES = 5.0
"""Seconds between two lines of progress if lines cannot be erased."""
UNREAD = 141
"""Exit code if the reader of stdout has closed the pipe."""


class Exit(Exception):
    """Ends the run with an exit code after everything was printed."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Colour(StrEnum):
    """Condition for using colour. Colour never carries meaning."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Console:
    """Prints notes, results, warnings, errors, questions and progress on stderr, each on one line. `quiet` hides all
    but errors and questions, and `as_json` prints errors as JSON.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        as_json: bool = False,
        colour: Colour = Colour.AUTO,
        verbose: bool = False,
        into: TextIO | None = None,
    ) -> None:
        """If a stream `into` is given, everything goes there instead of to stderr, without questions and progress."""
        self._into = into
        self._quiet = quiet
        self._as_json = as_json
        self._colour = colour
        self._verbose = verbose
        self._status: StatusLine | None = None
        self._meter: ProgressMeter | None = None
        self._has_output = False

    @property
    def is_quiet(self) -> bool:
        return self._quiet

    def note(self, text: str) -> None:
        """Print a note, unless quiet."""
        if not self._quiet:
            self._line(f"om: {text}")

    def report(self, text: str) -> None:
        """Print a result, unless quiet."""
        if not self._quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """Print a warning, unless quiet."""
        if not self._quiet:
            self._line(text, label="om: warning: ", style="yellow")

    def error(self, error: OmError, *, about: str = "") -> None:
        """Print an error and its hint; `about` is the file or session it concerns."""
        if self._as_json:
            path = {"path": about} if about else {}
            self._line(json_line({"schema": 1, "error": {**path, **error_as_dict(error)}}))
            return
        self._line(f"{f'{about}: ' if about else ''}{error.message}", label="om: error: ", style="bold red")
        if error.hint:
            self._line(error.hint, label="hint: ", style="cyan")

    def warn_of(self, error: OmError, *, about: str = "") -> None:
        """Print an error as a warning, without its hint, because the run continues."""
        self.warn(f"{f'{about}: ' if about else ''}{error.message}")

    def progress(self, text: str) -> None:
        """Show what is being done on the last line of a terminal, unless quiet. The next output replaces it.

        If lines cannot be erased, as in a pipe or on a dumb terminal, a verbose run prints a line every few seconds,
        and others show nothing.
        """
        if (meter := self._progress_meter()) is not None:
            meter.show(text)

    def steps(self, count: StepCount | None) -> None:
        """Add to the progress how many steps are done, at what rate, and the time left. None ends that."""
        if (meter := self._progress_meter()) is not None:
            meter.begin(count)

    def step(self, text: str = "", noun: str = "", done: int = 0, total: int = 0) -> None:
        """Show the progress of work below the operations, or that work goes on (`base.telling`)."""
        if (meter := self._progress_meter()) is not None:
            if text:
                from omcli.operations.deps import StepCount

                meter.begin(StepCount(noun=noun, done=done, total=total))
                meter.show(text)
                if done == total:
                    meter.begin(None)
            elif not (self._has_output and sys.stdout.isatty()):  # rows that appear, or a pager, show it themselves
                meter.tick()

    @property
    def shows_progress(self) -> bool:
        """True if a person sees progress: on a terminal, or in a verbose run."""
        return not self._quiet and self._into is None and (self._verbose or self._can_erase)

    @property
    def _can_erase(self) -> bool:
        return self.can_ask and os.environ.get("TERM") != "dumb"

    def _progress_meter(self) -> ProgressMeter | None:
        if self._meter is None and self.shows_progress:
            from omcli.cli.progress import ProgressMeter

            show, every = (self._show_status, 0.0) if self._can_erase else (self.note, _SECONDS_OF_LINES)
            self._meter = ProgressMeter(show, clock=time.monotonic, every=every)
        return self._meter

    def _show_status(self, text: str) -> None:
        if self._status is None:
            from omcli.cli.terminal import StatusLine

            self._status = StatusLine(sys.stderr, has_colour=has_colour(self._colour, sys.stderr))
        self._status.show(single_line(one_line(text)))

    @property
    def can_ask(self) -> bool:
        """True if stderr is a terminal."""
        return self._into is None and _is_terminal()

    def ask(self, question: str) -> str | None:
        """Ask a question and return the stripped answer, or None if stderr is not a terminal."""
        if not self.can_ask:
            return None
        self._prompt(question)
        return sys.stdin.readline().strip()

    def ask_key(self, question: str, reader: KeyReader, keys: str) -> str | None:
        """Ask a question that is answered by one of these keys. Return None at the end of input."""
        self._prompt(question)
        key = None
        try:
            key = reader.key(keys)
        finally:
            sys.stderr.write(f"{key or ''}\n")
        return key

    def _prompt(self, question: str) -> None:
        self.clear()
        sys.stderr.write(f"{single_line(question)} ")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the progress line."""
        if self._status is not None:
            with suppress(OSError):
                self._status.clear()

    def before_output(self) -> None:
        """Erase the progress line before something is printed on stdout."""
        self._has_output = True
        self.clear()

    def _line(self, text: str, *, label: str = "", style: str = "") -> None:
        stream = self._into or sys.stderr
        if stream is None:
            return
        self.clear()
        if style and self.can_ask and has_colour(self._colour, stream):
            from omcli.cli.terminal import styled

            label = styled(label, style)
        with suppress(OSError):
            stream.write(f"{label}{single_line(text)}\n")


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def has_colour(colour: Colour, stream: IO[str] | None) -> bool:
    """Return True if output on the stream is coloured, given the option and the variables NO_COLOR, FORCE_COLOR and
    TERM.
    """
    if colour is not Colour.AUTO:
        return colour is Colour.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"


def unknown_session(session: str) -> str:
    """Return a note that the store does not contain the session."""
    return f"unknown session `{session}`; `om sessions` lists them"


def size(number: int) -> str:
    """Format a number of bytes as kB or MB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"


def error_as_dict(error: OmError) -> dict[str, object]:
    """Return an error as JSON."""
    hint = {"hint": error.hint} if error.hint else {}
    return {"slug": error.slug, "message": error.message, **hint, "exit_code": error.exit_code}


@contextmanager
def named(name: str) -> Iterator[None]:
    """Add the input's name to the message of errors raised inside."""
    try:
        yield
    except OmError as error:
        error.message = f"{name}: {error.message}"
        raise


def drop_output() -> None:
    """Flush stdout or, if it cannot be written, discard its output: Python would try to write it again on exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
