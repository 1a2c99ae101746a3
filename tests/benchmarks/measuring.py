"""What a process costs, and how many times what another one costs.

Instructions are counted where `perf` may count them, because they are the same in every run; otherwise processor time
is measured, in pairs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import Any, Self

OM = (sys.executable, "-c", "from omcli.__main__ import main; main()")
"""What the `om` of an installation runs, of this checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process took from start to end."""

    cpu: float
    """Seconds, user and system."""
    wall: float
    """Seconds."""
    instructions: int | None = None
    """Of the process itself, without the kernel's; None if they cannot be counted."""

    @property
    def work(self) -> float:
        """What ratios are made of: instructions, or seconds of processor time."""
        return self.cpu if self.instructions is None else self.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two commands run in turns: the middle of their costs, and of the ratios of each pair."""

    ratio: float
    """How many times the work of the other."""
    lowest: float
    """The ratio below which a quarter of the pairs lie …"""
    highest: float
    """… and above which another quarter does."""
    wall: float
    cost: Cost
    other: Cost

    @classmethod
    def of(cls, pairs: Sequence[tuple[Cost, Cost]]) -> Self:
        """What a number of pairs come to."""
        ratios = sorted(one.work / other.work for one, other in pairs)
        return cls(
            ratio=median(ratios),
            lowest=ratios[len(ratios) // 4],
            highest=ratios[-1 - len(ratios) // 4],
            wall=median(one.wall / other.wall for one, other in pairs),
            cost=_middle([one for one, _ in pairs]),
            other=_middle([other for _, other in pairs]),
        )


def compared(one: Callable[[], Cost], other: Callable[[], Cost], *, pairs: int) -> Compared:
    """Runs two commands in turns, so that what else the machine does meets both; the first pair only warms up."""
    measured = [(one(), other()) for _ in range(pairs + 1)]
    return Compared.of(measured[1:] or measured)


def run(
    *command: str | Path,
    stdin: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Collection[int] = (0,),
) -> Cost:
    """Runs a command to its end, its output going nowhere. Raises RuntimeError unless it ends with one of the codes."""
    arguments = list(map(str, command))
    streams = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    if stdin is not None:
        streams[0] = (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0)
    environment = {**_environment(), **(env or {})}
    if not can_count_instructions():
        return _spawned(arguments, environment, streams, codes)
    with NamedTemporaryFile("r") as counted:
        cost = _spawned([*_counting(counted.name), *arguments], environment, streams, codes)
        return replace(cost, instructions=_instructions(counted.read()))


def _spawned(
    command: list[str], environment: Mapping[str, str], streams: list[tuple[Any, ...]], codes: Collection[int]
) -> Cost:
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=streams)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if (code := os.waitstatus_to_exitcode(status)) not in codes:
        raise RuntimeError(f"ended with {code}: {' '.join(command)}")
    return Cost(cpu=used.ru_utime + used.ru_stime, wall=wall)


@cache
def can_count_instructions() -> bool:
    """True if `perf` is there, is allowed, and knows this processor."""
    if shutil.which("perf") is None:
        return False
    with NamedTemporaryFile("r") as counted:
        ended = subprocess.run(
            [*_counting(counted.name), sys.executable, "-c", "pass"], capture_output=True, check=False
        )
        return ended.returncode == 0 and _instructions(counted.read()) is not None


def _counting(into: str) -> list[str]:
    return [shutil.which("perf") or "perf", "stat", "-x", ",", "-e", "instructions:u", "-o", into, "--"]


def _instructions(counted: str) -> int | None:
    """Return the number in what `perf stat -x ,` writes, or None if it counted nothing."""
    numbers = [line.partition(",")[0] for line in counted.splitlines() if "instructions" in line]
    return int(numbers[0]) if numbers and numbers[0].isdigit() else None


def machine() -> str:
    """Return a line that names the machine, what runs on it, and what ratios are made of."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    unit = "instructions" if can_count_instructions() else "processor time, the middle of pairs"
    return f"{system}; Python {platform.python_version()}; ratios of {unit}"


_PEAK = """
import os, resource, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak(*command: str | Path, codes: Collection[int] = (0,)) -> int:
    """The most bytes of memory that a command holds at once. Raises RuntimeError unless it ends with one of the codes.

    It is started by a process of its own: one that has just been started counts as large as the one that started it.
    """
    watched = [sys.executable, "-S", "-c", _PEAK, *map(str, command)]
    ended = subprocess.run(
        watched,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
        check=False,
    )
    if ended.returncode not in codes:
        raise RuntimeError(f"ended with {ended.returncode}: {' '.join(map(str, command))}")
    return int(ended.stderr.split()[-1]) * (1 if sys.platform == "darwin" else 1024)


def _environment() -> dict[str, str]:
    """The environment without what would change a run; `om` is the one of this checkout."""
    changing = ("OM_", "CLAUDE", "PYTHONDONTWRITEBYTECODE", "PYTHONPROFILE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return {**kept, "PYTHONPATH": str(Path(__file__).parents[2])}


def _middle(costs: Sequence[Cost]) -> Cost:
    counted = [cost.instructions for cost in costs if cost.instructions is not None]
    return Cost(
        cpu=median(cost.cpu for cost in costs),
        wall=median(cost.wall for cost in costs),
        instructions=int(median(counted)) if counted else None,
    )
