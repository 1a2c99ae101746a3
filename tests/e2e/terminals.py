"""What commands print on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
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


def all_of(leader: int) -> str:
    """Everything that is written to a terminal until its other end is closed."""
    with os.fdopen(leader, "rb", buffering=0) as terminal:
        shown = b""
        with suppress(OSError):  # how Linux tells that the other end was closed
            while chunk := terminal.read(4096):
                shown += chunk
    return shown.decode().replace("\r\n", "\n")
