"""The `om` process: its arguments, signals, streams, exit code, and the compiled patterns that it keeps."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, TextIO

import omcli
from omcli.base import Program, programs
from omcli.base.errors import InputOutput, OmError
from omcli.cli.command import CliCommand, ignore_unraisable, shared_options
from omcli.cli.commands import ALIASES, COMMANDS, command
from omcli.cli.console import Colour, Console, Exit
from omcli.cli.options import Parameter, Values, plain
from omcli.cli.output import Output

_INTERRUPTED = 130
_TERMINATED = 143
_COMPILING = frozenset({"compact", "consolidate", "observe", "recall", "reflect", "tick"})
"""Commands that use so many patterns that compiling them takes longer than reading them from a file."""
_WRITABLE_BY_OTHERS = 0o022


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
    """Run `om` with these arguments in this process and return the exit code: always 0 if a client runs it as a hook.
    Errors are printed on stderr.
    """
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
    """Return the versions of this program, of Python and SQLite, and of the stores that this program writes."""
    from omcli.sqlite.checks import version
    from omcli.sqlite.connection import steps

    python = ".".join(map(str, sys.version_info[:3]))
    return {"version": omcli.__version__, "python": python, "sqlite": version().number, "store_version": len(steps())}


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
    """Move shared options that precede the command behind it. Their short names are written out, because a command may
    give a letter another meaning.

    Any other line is returned unchanged. If it is invalid, Typer reports the error.
    """
    if not arguments or not arguments[0].startswith("-"):
        return list(arguments)
    options = {name: parameter for parameter in shared_options() for name in parameter.declared.names}
    moved: list[str] = []
    rest = iter(enumerate(arguments))
    for at, word in rest:
        if word in COMMANDS or word in ALIASES:
            return [word, *moved, *arguments[at + 1 :]]
        found = _long_names(options, word)
        if not found:
            break
        moved += found
        last = options.get(found[-1])
        if last is not None and last.kind is not bool:
            moved += [value for _, value in islice(rest, 1)]
    return list(arguments)


def _long_names(options: Mapping[str, Parameter], word: str) -> list[str]:
    """Return a word with its short options written out: `--quiet` and `--directory` for `-qC`. The result is empty if
    the word has an unknown option or is not an option.
    """
    if word.startswith("--"):
        return [word] if word.partition("=")[0] in options else []
    found: list[str] = []
    for at, letter in enumerate(word[1:] if word.startswith("-") else "", start=2):
        option = options.get(f"-{letter}")
        if option is None:
            return []
        name = max(option.declared.names, key=len)
        if option.kind is not bool:
            return [*found, f"{name}={word[at:]}" if word[at:] else name]
        found.append(name)
    return found


# ---- compiled patterns


@contextmanager
def kept_code(arguments: Sequence[str]) -> Iterator[None]:
    """Read the compiled patterns of earlier runs, and keep new ones: compiling would take half of a short `om observe`.

    They are in small files of the user's cache folder, one for each command in `_COMPILING`. Nothing in them comes from
    transcripts. A file that is missing, damaged, of another version of om or Python, or that others could have written
    is ignored.
    """
    if not arguments or arguments[0] not in _COMPILING:
        yield
        return
    from omcli.settings import kept_code_folder

    path = kept_code_folder(os.environ) / arguments[0]
    with suppress(OSError, ValueError):
        programs.update(list(_read_code(path)))
    known = len(programs)
    yield
    if len(programs) > known:
        with suppress(OSError):  # they are compiled again next time
            _write_code(path)


def _read_code(path: Path) -> Iterator[tuple[tuple[str | bytes, int], Program]]:
    """Yield the compiled patterns in a file. Raise OSError or ValueError if it cannot be read or must not be used."""
    import json

    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & _WRITABLE_BY_OTHERS):
            raise ValueError("others could have written it")
        stamp, content = file.readline(), file.read()
    if stamp != _stamp(content):
        raise ValueError("damaged or of another version")
    head, _, codes = content.partition(b"\n")
    end = 0
    for text, is_bytes, flags, all_flags, length, groups, names, by_number in json.loads(head):
        begin, end = end, end + length
        expression = text.encode("latin-1") if is_bytes else text
        yield (expression, flags), (all_flags, memoryview(codes[begin:end]).cast("I"), groups, names, tuple(by_number))


def _write_code(path: Path) -> None:
    """Replace the file in one step. Raise OSError on failure."""
    import json
    from array import array

    codes = [array("I", code).tobytes() for _, code, *_ in programs.values()]
    head = [
        (
            *((expression.decode("latin-1"), True) if isinstance(expression, bytes) else (expression, False)),
            *(flags, all_flags, len(code), *rest),
        )
        for ((expression, flags), (all_flags, _, *rest)), code in zip(programs.items(), codes, strict=True)
    ]
    content = b"".join((json.dumps(head).encode(), b"\n", *codes))
    for folder in (path.parent.parent, path.parent):  # the mode is that of the last folder made
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    stream = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(stream, "wb") as file:
            file.write(_stamp(content) + content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink()
        raise


def _stamp(content: bytes) -> bytes:
    """Return the first line of a file with this content: the program and Python that wrote it, and a checksum."""
    import zlib

    made_by = (omcli.__version__, sys.version, sys.byteorder, zlib.crc32(content))
    return ascii(made_by).encode() + b"\n"
