"""What commands print on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.conftest import Om


def on_terminal(om: Om, *arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> str:
    """What a command prints on a terminal. It runs in this process, so it learns the width from a variable."""
    leader, follower = pty.openpty()
    with ThreadPoolExecutor(1) as pool:
        shown = pool.submit(all_of, leader)
        with os.fdopen(follower, "w", encoding="utf-8") as stdout:
            om(*arguments, env={"TERM": "xterm", "COLUMNS": str(columns), **(env or {})}, stdout=stdout)
        return shown.result()


def on_real_terminal(om: Om, *arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> str:
    """What a process prints on a terminal so wide, which it has to ask for that."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = om.environment({"TERM": "xterm", **(env or {})})
    with subprocess.Popen(om.command(*arguments), stdout=follower, stderr=subprocess.DEVNULL, env=environment):
        os.close(follower)
        return all_of(leader)


def answering(
    om: Om, *arguments: str, answers: Iterable[tuple[str, str]], env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run a process with a terminal of its own, where Ctrl-C is a signal, and send each answer once its question is
    printed. Assert that the terminal is left as it was. Return the exit code and everything that the terminal shows.
    """
    leader, follower = pty.openpty()
    terminal = os.dup(leader)
    before = termios.tcgetattr(terminal)
    program = subprocess.Popen(
        om.command(*arguments),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=om.environment({"TERM": "xterm", "COLUMNS": "100", **(env or {})}),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads here
    )
    os.close(follower)
    shown, seen = "", 0
    with program:
        for question, answer in answers:
            while question not in shown[seen:]:
                shown += os.read(leader, 4096).decode()
            seen = shown.index(question, seen) + len(question)
            os.write(leader, answer.encode())
        shown += all_of(leader)
    assert termios.tcgetattr(terminal) == before
    os.close(terminal)
    return program.returncode, shown.replace("\r\n", "\n")


def all_of(leader: int) -> str:
    """Everything that is written to a terminal until its other end is closed."""
    with os.fdopen(leader, "rb", buffering=0) as terminal:
        shown = b""
        with suppress(OSError):  # how Linux tells that the other end was closed
            while chunk := terminal.read(4096):
                shown += chunk
    return shown.decode().replace("\r\n", "\n")
