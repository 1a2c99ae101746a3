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
from typing import Any, TextIO, cast

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
    with _as_a_process([argv0, *words], cwd), CliRunner().isolation(input=stdin, env=changes) as (printed, told, _):
        try:
            code = _run(words, stdout or sys.stdout)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
        sys.stderr.flush()
        ended = Ended(
            words=tuple(words), code=code, stdout=printed.getvalue().decode(), stderr=told.getvalue().decode()
        )
    if code == _INTERRUPTED:
        raise KeyboardInterrupt  # whoever runs the tests has pressed Ctrl-C
    return ended


def _run(words: Sequence[str], stdout: TextIO) -> int:
    """Run the command line in the streams, the environment and the time zone that are set now."""
    time.tzset()
    with redirect_stdout(stdout):
        cast(TextIOWrapper, sys.stdout).reconfigure(errors="backslashreplace")
        return cli.run(list(words))


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
