"""Run the program beside this one, as a user without all permissions, several at the same moment."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def start(*arguments: object, prepare: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    """The program of this folder, with its stdin and stdout."""
    command = [sys.executable, "-m", "tests.integration.sqlite.program", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=prepare,  # noqa: PLW1509 - this process has one thread
    )


def run(*arguments: object, prepare: Callable[[], None] | None = None) -> str:
    """What the program says."""
    with start(*arguments, prepare=prepare) as program:
        told, complaints = program.communicate(timeout=120)
    assert program.returncode == 0, complaints
    return told.strip()


def run_at_once(commands: Sequence[Sequence[object]]) -> list[str]:
    """What several programs say that begin to work at the same moment."""
    programs = [start(*command) for command in commands]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    answers = []
    for program in programs:
        with program:
            told, complaints = program.communicate(timeout=120)
        assert program.returncode == 0, complaints
        answers.append(told.strip())
    return answers


def heed_permissions() -> None:
    """Makes the next program subject to file permissions even if it runs as root. Linux; elsewhere root stays root."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
