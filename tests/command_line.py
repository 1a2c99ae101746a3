"""Running an `om` command line inside the process of the tests."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from omcli.cli import main as cli

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The exit code and the output of a command."""

    words: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON Lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def expected(self, code: int | None) -> Ended:
        """Check that it ended with this code (None for any) and without a traceback."""
        told = f"om {' '.join(self.words)}\n{self.stdout[-2000:]}\n{self.stderr[-4000:]}"
        assert "Traceback" not in self.stderr, told
        assert code is None or self.code == code, f"ended with {self.code}, not {code}: {told}"
        return self


def run_here(
    argv0: str,
    words: Sequence[str],
    *,
    stdin: str | bytes,
    env: Mapping[str, str],
    cwd: Path,
    stdout: TextIO | None = None,
) -> Ended:
    """Run a command line as `python -m omcli` does, and leave nothing of it behind in this process.

    What it prints goes to `stdout` if that is given, such as a terminal. An exception that `om` does not handle is
    raised: in a process of its own it would be printed as a bug.
    """
    assert threading.current_thread() is threading.main_thread(), "commands that run at once are processes: om.process"
    here = dict(os.environ)
    changes: dict[str, str | None] = {name: value for name, value in env.items() if here.get(name) != value}
    changes |= dict.fromkeys(here.keys() - env.keys())
    with _as_a_process([argv0, *words], cwd):
        ended = CliRunner().invoke(_APP, list(words), input=stdin, env=changes, catch_exceptions=False, stdout=stdout)
    if ended.exit_code == _INTERRUPTED:
        raise KeyboardInterrupt  # whoever runs the tests has pressed Ctrl-C
    return Ended(
        words=tuple(words),
        code=ended.exit_code,
        stdout=ended.stdout_bytes.decode(),
        stderr=ended.stderr_bytes.decode(),
    )


class _WholeLine(TyperCommand):
    """All of `om`, which reads its arguments itself: plain lines without Typer, the others with it."""

    def main(
        self, args: Sequence[str] | None = None, *_: object, stdout: TextIO | None = None, **__: object
    ) -> NoReturn:
        time.tzset()
        with redirect_stdout(stdout or sys.stdout):
            cast(TextIOWrapper, sys.stdout).reconfigure(errors="backslashreplace")
            sys.exit(cli.run(list(args or ())))


_APP = typer.Typer(add_completion=False)
_APP.command(cls=_WholeLine)(lambda: None)


@contextmanager
def _as_a_process(argv: Sequence[str], cwd: Path) -> Iterator[None]:
    """Give a run the arguments and the current directory of a process, and put back what it changed."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    arguments, folder, mask = sys.argv, os.open(".", os.O_RDONLY), os.umask(0o022)
    os.umask(mask)
    sys.argv = list(argv)
    os.chdir(cwd)
    try:
        yield
    finally:
        sys.argv = arguments
        os.fchdir(folder)
        os.close(folder)
        os.umask(mask)
        time.tzset()
        for number, handler in handlers.items():
            signal.signal(number, handler)
