"""Everything on stderr: notes, warnings, errors, progress; and the exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from omcli.base.errors import OmError

UNREAD = 141
"""The exit code if the reader of stdout has gone away."""
_USUAL_COLUMNS = 80


class Exit(Exception):
    """The run is over, with an exit code, and all has been said."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Console:
    """What a run tells people. `quiet` leaves errors alone; `as_json` makes an error one JSON object."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._progress = False

    def note(self, text: str) -> None:
        """Says something worth knowing."""
        if not self._quiet:
            self._line(f"om: {text}")

    def report(self, text: str) -> None:
        """Says what was done."""
        if not self._quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """Says what may be wrong."""
        if not self._quiet:
            self._line(f"om: warning: {text}")

    def error(self, error: OmError, *, about: str = "") -> None:
        """Says what went wrong, and what to try; `about` is what it happened to."""
        if self._as_json:
            from omcli.memory.row_json import json_line

            path = {"path": about} if about else {}
            self._line(json_line({"schema": 1, "error": {**path, **error_as_dict(error)}}))
            return
        self._line(f"om: error: {f'{about}: ' if about else ''}{error.message}")
        if error.hint:
            self._line(f"hint: {error.hint}")

    def warn_of(self, error: OmError, *, about: str = "") -> None:
        """Says what went wrong as a warning: the run goes on all the same, or never was about that."""
        self.warn(f"{f'{about}: ' if about else ''}{error.message}")

    def progress(self, text: str) -> None:
        """Shows how far a long run is, on a line of a terminal that can clear one; the next line takes its place."""
        if self._quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return
        from omcli.cli.columns import fitted
        from omcli.text.clean import one_line

        self._progress = True
        shown = fitted(one_line(text), _columns(sys.stderr) - 1, in_front=True)  # numbers are at its end
        sys.stderr.write(f"\r\033[K{shown}")
        sys.stderr.flush()

    def ask(self, question: str) -> str | None:
        """What is answered to a question, without spaces around it; None where nobody sees it."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        self.clear()
        sys.stderr.write(f"{_printable(question)} ")
        sys.stderr.flush()
        return sys.stdin.readline().strip()

    def clear(self) -> None:
        """Takes away what `progress` shows: something else is about to be printed there."""
        if self._progress and sys.stderr is not None:
            self._progress = False
            with suppress(OSError):  # nobody is left to be told
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()

    def _line(self, text: str) -> None:
        if sys.stderr is None:
            return
        self.clear()
        with suppress(OSError):
            sys.stderr.write(f"{_printable(text)}\n")


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Bytes, in a unit that people read."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.0f} kB"


def error_as_dict(error: OmError) -> dict[str, object]:
    """An error as JSON output has it."""
    hint = {"hint": error.hint} if error.hint else {}
    return {"slug": error.slug, "message": error.message, **hint, "exit_code": error.exit_code}


@contextmanager
def named(name: str) -> Iterator[None]:
    """Puts the input's name before the message of what goes wrong with it."""
    try:
        yield
    except OmError as error:
        error.message = f"{name}: {error.message}"
        raise


def discard_stdout() -> None:
    """Drops what could not be written, or Python would try once more on its way out and complain in its own words."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _columns(terminal: TextIO) -> int:
    """How wide a terminal is; a usual width where it does not say."""
    with suppress(OSError):
        return os.get_terminal_size(terminal.fileno()).columns or _USUAL_COLUMNS
    return _USUAL_COLUMNS


def _printable(text: str) -> str:
    from omcli.text.clean import printable

    return printable(text)
