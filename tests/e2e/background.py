"""Workers that were left in the background: how many there were, and when they are done."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from omcli.sqlite.lanes import is_gone
from tests.conftest import Om

EAGER = {"OM_OBSERVE_TOKENS": "1", "OM_OBSERVE_BLOCK_AFTER": "0"}
"""Anything that waits is due, and never so much that it is done at once."""


def log_of(om: Om) -> Path:
    """Where workers write."""
    return om.home / ".local" / "state" / "om" / "background.log"


def told(om: Om) -> list[dict[str, Any]]:
    """What the log tells of workers that began or ended."""
    text = ""
    with suppress(FileNotFoundError):
        text = log_of(om).read_text()
    return [json.loads(line) for line in text.split("\n")[:-1] if line.startswith('{"at"')]


def begun(om: Om) -> list[str]:
    """The workers that began, as `host:pid:start`."""
    return [line["worker"] for line in told(om) if "ended" not in line]


def codes(om: Om) -> list[int]:
    """What those ended with that are done."""
    return [line["ended"] for line in told(om) if "ended" in line]


def at_work(om: Om) -> list[int]:
    """The processes that are still there."""
    return [int(worker.split(":")[1]) for worker in begun(om) if not is_gone(worker)]


def running(om: Om) -> list[int]:
    """All programs that see this store in their environment, also those that have not come to say anything yet."""
    found, seen = list[int](), f"OM_DB={om.place}".encode()
    for process in Path("/proc").glob("[0-9]*"):  # none where the system has no such folder
        with suppress(OSError):
            if seen in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def stop(pid: int) -> None:
    """Stops a program, and comes back when all of it stands still (where the system has no /proc, at once)."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: set(states(Path("/proc").glob(f"{pid}/task/[0-9]*"))) <= {"T", "Z", "X"})


def is_any_left(group: int) -> bool:
    """Whether a process of a group is still there that is more than an entry which nobody has cleared away."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        left = [process for process in Path("/proc").glob("[0-9]*") if group_of(int(process.name)) == group]
        return not Path("/proc/self").exists() or not set(states(left)) <= {"Z", "X"}
    return False


def group_of(pid: int) -> int | None:
    """The group of a process; None where it is gone."""
    with suppress(OSError):
        return os.getpgid(pid)
    return None


def states(found: Iterable[Path]) -> Iterator[str]:
    """The state letters of processes or threads by their folders, but for those that are gone."""
    for folder in found:
        with suppress(OSError):
            yield (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]


def wait_until(is_so: Callable[[], object], *, seconds: float = 60) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def wait_for_workers(om: Om, number: int) -> None:
    """Waits until so many workers have begun, and no program is left that runs on this store or is about to."""
    wait_until(lambda: len(begun(om)) >= number and not at_work(om) and not running(om))
