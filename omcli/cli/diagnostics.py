"""Everything on stderr: notes, warnings, errors, progress; and the exit codes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType, TracebackType
from typing import NoReturn, TextIO

from omcli.memory.errors import InputOutput, OmError

UNREAD = 141
"""The exit code where nobody reads what is printed."""
_GARBAGE = 50_000
"""New objects after which Python looks for garbage: with its 700 that is a twentieth of a short run, and finds none."""
_USUAL_COLUMNS = 80
_INTERRUPTED = 130
_TERMINATED = 143
_INTERNAL = OmError.exit_code


class Ended(Exception):
    """The run is over, with an exit code, and all has been said."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Talk:
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
            from omcli.memory.rows import json_line

            path = {"path": about} if about else {}
            self._line(json_line({"schema": 1, "error": {**path, **as_dict(error)}}))
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
        from omcli.memory.text import one_line

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


def as_dict(error: OmError) -> dict[str, object]:
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


def main() -> NoReturn:
    """Runs `om` with the arguments of this process and ends it with the exit code of what happened."""
    _prepare()
    arguments = sys.argv[1:]
    talk = Talk(as_json="--json" in arguments or "--jsonl" in arguments)
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OmError as error:
        talk.error(error)
        code = error.exit_code
    except Ended as end:
        code = end.exit_code
    except OSError as error:
        failure = _failure(error)
        talk.error(failure)
        code = failure.exit_code
    except KeyboardInterrupt:
        code = _INTERRUPTED
    let_go_of_stdout()
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    # Not at the top: the commands import this module.
    from omcli.cli.commands import COMMANDS, command

    if arguments and arguments[0].startswith("-"):
        from omcli.cli.options import command_first

        arguments = command_first(arguments)
    if arguments and arguments[0] in COMMANDS and "_OM_COMPLETE" not in os.environ:
        from omcli.cli.arguments import plain

        wanted = command(arguments[0])
        given = plain(wanted.parameters, arguments[1:])
        if given is not None:
            wanted.run(given)
            return 0
    from omcli.cli.app import run

    return run(arguments)


def _prepare() -> None:
    """Makes signals and streams behave as those of other commands do."""
    gc.set_threshold(_GARBAGE)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `om log | head` ends quietly, with 141
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stdout.buffer, RawIOBase):
        # With PYTHONUNBUFFERED, Python drops without a word what the system does not take at once.
        sys.stdout = TextIOWrapper(
            BufferedWriter(sys.stdout.detach()), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        sys.__stdout__ = sys.stdout  # type: ignore[misc] # which is asked how wide the terminal is


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the run through its `finally`s, so that a lease is given back."""
    raise SystemExit(_TERMINATED)


def heed_interrupts() -> None:
    """From here on Ctrl-C ends a run through its `finally`s: it has something to give back."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def internal_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> NoReturn:
    """Ends the run on what nobody has foreseen."""
    sys.__excepthook__(kind, error, traceback)
    Talk().error(OmError("this is a bug in om", hint="please report it with the lines above; nothing kept is lost"))
    os._exit(_INTERNAL)


def _failure(error: OSError) -> OmError:
    """An error of the system that nobody below has put into words; without a file's name it is our own output's."""
    return InputOutput(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")


def let_go_of_stdout() -> None:
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
    from omcli.memory.text import printable

    return printable(text)
