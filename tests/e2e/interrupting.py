"""Ctrl-C at chosen points of a run: a program that runs one command line again and again, in a process each."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import _GeneratorContextManager
from pathlib import Path
from types import FrameType

Interrupted = tuple[int, str]
"""An exit code and stderr."""

_ENTER = _GeneratorContextManager.__enter__.__code__


def runs(*words: str | Path, at: str, points: int, env: Mapping[str, str], cwd: Path) -> Iterator[Interrupted]:
    """Run a command line undisturbed, then interrupted at so many points, spread over all of it. Yield each result.

    `at` is `call` (points are calls of functions) or `enter` (points are ends of `__enter__` of context managers).
    """
    command = [sys.executable, __file__, at, str(points), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, cwd=cwd) as program:
        assert program.stdout is not None
        for line in program.stdout:
            code, stderr = json.loads(line)
            yield code, stderr
    assert program.returncode == 0


def _main(at: str, points: int, words: list[str]) -> None:
    import omcli.__main__  # noqa: PLC0415 - once for all runs
    import omcli.cli.app  # noqa: PLC0415 - likewise

    sys.argv = [omcli.__main__.__file__, *words]
    with mmap.mmap(-1, 16) as count:
        print(json.dumps(_run(at, 0, count)), flush=True)
        total = int(count[:])
        for moment in sorted({max(1, total * point // points) for point in range(1, points + 1)}):
            print(json.dumps(_run(at, moment, count)), flush=True)


def _run(at: str, moment: int, count: mmap.mmap) -> Interrupted:
    with tempfile.TemporaryFile() as stderr:
        pid = os.fork()
        if not pid:
            nothing = os.open(os.devnull, os.O_RDWR)
            for target, stream in enumerate((nothing, nothing, stderr.fileno())):
                os.dup2(stream, target)
            _interrupt_at(at, moment, count)
            sys.modules["omcli.__main__"].main()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        stderr.seek(0)
        return code, stderr.read().decode()


def _interrupt_at(at: str, moment: int, count: mmap.mmap) -> None:
    seen = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal seen
        if event == "call" if at == "call" else event == "c_return" and frame.f_code is _ENTER:
            seen += 1
            if not moment:
                count[:] = b"%16d" % seen
            if seen == moment:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
