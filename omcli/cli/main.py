"""The `om` process: its arguments, signals, streams and exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType, TracebackType
from typing import NoReturn, TextIO

from omcli.base.errors import InputOutput, OmError
from omcli.cli.command import CliCommand, ignore_unraisable, shared_options
from omcli.cli.commands import ALIASES, COMMANDS, command
from omcli.cli.console import Colour, Console, Exit
from omcli.cli.options import Parameter, Values, plain
from omcli.cli.output import Output

_INTERRUPTED = 130
_TERMINATED = 143


def prepare() -> None:
    """Set up signals and streams as other command-line tools do."""
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
        sys.__stdout__ = sys.stdout  # type: ignore[misc] # Python reads the terminal's width from it


def run(arguments: Sequence[str]) -> int:
    """Run `om` with these arguments in this process and return the exit code. Errors are printed on stderr."""
    console = Console(as_json="--json" in arguments or "--jsonl" in arguments)
    try:
        words = command_first(arguments)
        words[:1] = [ALIASES.get(word, word) for word in words[:1]]
        code = 0
        if (text := _help(words)) is not None:
            Output(Colour.NEVER).text(text)
        elif sorted(words) == ["--json", "--version"]:
            Output(Colour.NEVER).document(_version_document())
        elif (plain_command := _plain_command(words)) is not None:
            wanted, values = plain_command
            wanted.run(values)
        else:
            from omcli.cli.app import run_command  # slow; see `options`
            from omcli.cli.hooks import note_retired

            code = 0 if note_retired(words, console.note) else run_command(words)
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
    return 0 if _is_hook(arguments) else code


def _is_hook(arguments: Sequence[str]) -> bool:
    """Return True if a client runs this as a hook, and not a person. Clients take exit codes for decisions."""
    return "hook" in arguments and command_first(arguments)[0] == "hook" and not _is_terminal(sys.stdin)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is None or stream.isatty()


def _help(words: Sequence[str]) -> str | None:
    """Return the help that a command line asks for, or None if it says anything else. Typer parses other lines."""
    if words[-1:] not in (["--help"], ["-h"]) or "_OM_COMPLETE" in os.environ:
        return None
    from omcli.cli.help import command_help, main_help

    if len(words) == 1:
        return main_help()
    return command_help(words[0]) if len(words) == 2 and words[0] in COMMANDS else None


def _version_document() -> dict[str, object]:
    """Return the versions of this program, of what it runs on, and of the stores that it writes."""
    from omcli import __version__
    from omcli.sqlite.checks import version
    from omcli.sqlite.connection import steps

    python = ".".join(map(str, sys.version_info[:3]))
    return {"version": __version__, "python": python, "sqlite": version().number, "store_version": len(steps())}


def _plain_command(words: Sequence[str]) -> tuple[CliCommand, Values] | None:
    """Return the command of a plain command line and its values, or None if Typer has to parse the line."""
    if not words or words[0] not in COMMANDS or "_OM_COMPLETE" in os.environ:
        return None
    wanted = command(words[0])
    values = plain(wanted.parameters, words[1:])
    return None if values is None else (wanted, values)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind the run through its `finally` blocks, so that leases are released."""
    ignore_unraisable()
    raise SystemExit(_TERMINATED)


def print_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> NoReturn:
    """Print an unexpected exception with its traceback, and exit."""
    sys.__excepthook__(kind, error, traceback)
    Console().error(
        OmError("this is a bug in om", hint="please report it with the lines above; no stored data is lost")
    )
    os._exit(OmError.exit_code)


def _failure(error: OSError) -> OmError:
    """Translate a system error that no lower layer has translated. Without a file name it concerns om's own output."""
    return InputOutput(f"{error.filename or 'cannot write the output'}: {error.strerror or error}")


def command_first(arguments: Sequence[str]) -> list[str]:
    """Move shared options that precede the command behind it.

    Any other line is returned unchanged. If it is invalid, Typer reports the error.
    """
    if not arguments or not arguments[0].startswith("-"):
        return list(arguments)
    options = {name: parameter for parameter in shared_options() for name in parameter.declared.names}
    rest = iter(enumerate(arguments))
    for at, word in rest:
        if word in COMMANDS or word in ALIASES:
            return [word, *arguments[:at], *arguments[at + 1 :]]
        takes_next = _takes_next(options, word)
        if takes_next is None:
            break
        if takes_next:
            next(rest, None)
    return list(arguments)


def _takes_next(options: Mapping[str, Parameter], word: str) -> bool | None:
    """Return True if the next word is the option's value, and None if the word is not a known option. `-qC DIR` is read
    as `-q -C DIR`.
    """
    if word.startswith("--"):
        name, has_value, _ = word.partition("=")
        return None if name not in options else options[name].kind is not bool and not has_value
    if not word.startswith("-") or word == "-":
        return None
    for at, letter in enumerate(word[1:], start=2):
        option = options.get(f"-{letter}")
        if option is None:
            return None
        if option.kind is not bool:
            return at == len(word)
    return False
