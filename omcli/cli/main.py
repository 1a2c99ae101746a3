"""The `om` process: its arguments, signals, streams and exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType, TracebackType
from typing import NoReturn

from omcli.base.errors import InputOutput, OmError
from omcli.cli.arguments import plain
from omcli.cli.command import command_first, ignore_unraisable
from omcli.cli.commands import COMMANDS, command
from omcli.cli.console import Console, Exit, drop_output

_GARBAGE = 50_000
"""New objects between garbage collections: with Python's default of 700 they take a twentieth of a short run and free
nothing.
"""
_INTERRUPTED = 130
_TERMINATED = 143


def main() -> NoReturn:
    """Run `om` with the arguments of this process and exit with its code."""
    _prepare()
    code = run(sys.argv[1:])
    drop_output()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run `om` with these arguments in this process and return the exit code; errors are printed on stderr."""
    console = Console(as_json="--json" in arguments or "--jsonl" in arguments)
    try:
        code = _run_command(list(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except OmError as error:
        console.error(error)
        code = error.exit_code
    except Exit as end:
        code = end.exit_code
    except OSError as error:
        failure = _failure(error)
        console.error(failure)
        code = failure.exit_code
    except KeyboardInterrupt:
        code = _INTERRUPTED
    return code


def _run_command(arguments: list[str]) -> int:
    if arguments and arguments[0].startswith("-"):
        arguments = command_first(arguments)
    if arguments and arguments[0] in COMMANDS and "_OM_COMPLETE" not in os.environ:
        wanted = command(arguments[0])
        values = plain(wanted.parameters, arguments[1:])
        if values is not None:
            wanted.run(values)
            return 0
    from omcli.cli.app import run_command  # the slow way; see `arguments`

    return run_command(arguments)


def _prepare() -> None:
    """Set up signals and streams like other command-line tools."""
    gc.set_threshold(_GARBAGE)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `om log | head` ends quietly, with 141
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stdout.buffer, RawIOBase):
        # With PYTHONUNBUFFERED, Python silently drops the part of a write that the system does not accept at once.
        sys.stdout = TextIOWrapper(
            BufferedWriter(sys.stdout.detach()), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        sys.__stdout__ = sys.stdout  # type: ignore[misc] # asked for the terminal's width


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind the run through its `finally` blocks, so that leases are released."""
    ignore_unraisable()
    raise SystemExit(_TERMINATED)


def print_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> NoReturn:
    """Print an unexpected error with its traceback, and exit."""
    sys.__excepthook__(kind, error, traceback)
    Console().error(
        OmError("this is a bug in om", hint="please report it with the lines above; no stored data is lost")
    )
    os._exit(OmError.exit_code)


def _failure(error: OSError) -> OmError:
    """Translate a system error that no lower layer has. Without a file name it concerns om's own output."""
    return InputOutput(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")
