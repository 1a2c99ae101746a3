"""Who holds a lease: this program as text, and whether another one is still there."""

from __future__ import annotations

import os
from pathlib import Path

_UNKNOWN = "-"
_DEAD = frozenset("ZX")
"""States of a Linux program that has ended and is only waiting for its parent to notice."""


def this_process(worker: str = "") -> str:
    """This program as `host:pid:start`. The start tells it from a later one that is given the same pid.

    Behind it, as `/worker`, the one of those that work in it.
    """
    pid = os.getpid()
    state = _state_and_start(pid)
    return f"{os.uname().nodename}:{pid}:{state[1] if state else _UNKNOWN}{worker and f'/{worker}'}"


def is_gone(owner: str) -> bool:
    """Whether the owner is known to have ended. Never for one on another host, nor for text that names no owner."""
    host, pid, start = _parts(owner)
    if host != os.uname().nodename or not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    state = _state_and_start(pid)
    return state is not None and (state[0] in _DEAD or start not in (state[1], _UNKNOWN))


def named(owner: str) -> str:
    """The owner for people: `process 4711`, with its host where that is another one."""
    host, pid, _ = _parts(owner)
    if not pid:
        return owner
    return f"process {pid}" if host == os.uname().nodename else f"process {pid} on {host}"


def _parts(owner: str) -> tuple[str, int, str]:
    """Host, pid and start, of whichever worker; pid 0 where the text names no owner."""
    host, _, rest = owner.partition(":") if owner.count(":") == 2 else ("", "", "")
    pid, _, start = rest.partition("/")[0].partition(":")
    return host, int(pid) if pid.isascii() and pid.isdecimal() else 0, start


def _state_and_start(pid: int) -> tuple[str, str] | None:
    """State letter and start (clock ticks after boot) of a program, where the system has /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[
        2
    ].split()  # the name before it is in parentheses, and may hold spaces and more of them
    return fields[0], fields[19]
