"""A job of the machine: its command, its time, and the interface of a scheduler."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from omcli.base.errors import BadUsage
from omcli.base.record import record

START_SCRIPT = (
    'u=$(umask); umask 077; l=$1/$0.log; mkdir -p "$1" && touch "$l" && test -f "$l" &&'
    ' { test $(wc -c <"$l") -lt 1000000 || mv "$l" "$l.1"; } && exec >/dev/null 2>>"$l"; umask "$u"; '
    'if [ -r "$2" ]; then set -a; . "$2"; set +a; fi; shift 2; exec "$@"'
)
"""How /bin/sh starts a job where the scheduler neither keeps what a program says nor reads keys from a file.

Its `$0` is the job, `$1` the folder of the log, `$2` the file with the keys: they are in no argument and no schedule.
The log is for its owner only, and holds what is said, no rows: those are in the store. A large one gives way to a new
one, and the last of those is kept. Where there can be none, what is said is left to the scheduler.
"""
_HOUR = 60
_DAY = 24 * _HOUR


@record
class Daily:
    """Once a day, by the machine's clock."""

    hour: int
    minute: int

    def __str__(self) -> str:
        return f"{self.hour:02}:{self.minute:02}"


@record
class Every:
    """Again and again, so many minutes apart."""

    minutes: int

    def __str__(self) -> str:
        return f"{self.minutes}m" if self.minutes < _HOUR else f"{self.minutes // _HOUR}h"


When = Daily | Every


@record
class Job:
    """A command of `om` that the machine is to run."""

    name: str
    """The command, and what the entry is known by."""
    command: tuple[str, ...]
    """Its words, the first one an absolute path."""
    when: When
    keys: Path
    """The file of `NAME=VALUE` lines that its environment comes from, if there is one."""
    logs: Path
    """The folder of its log, where the scheduler keeps none."""

    @property
    def mark(self) -> str:
        """What tells the entry from those of others."""
        return mark(self.name)

    @property
    def started(self) -> tuple[str, ...]:
        """The words of a command that starts it by `START_SCRIPT`."""
        return ("/bin/sh", "-c", START_SCRIPT, self.name, str(self.logs), str(self.keys), *self.command)


SUCCESS_CODES = {"consolidate": (75,), "tick": (1, 75)}
"""Exit codes that are no failure of a job: another one is at it, or nothing is due."""


def mark(name: str) -> str:
    """What an entry of this job is marked with."""
    return f"om:{name}"


def daily(said: str) -> Daily:
    """The time of day that `HH:MM` means. Raises BadUsage."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", said, re.ASCII)
    if found is None:
        raise BadUsage(f"`--at {said}` is no time of day", hint="HH:MM, from 00:00 to 23:59")
    return Daily(hour=int(found[1]), minute=int(found[2]))


def every(said: str) -> Every:
    """How far apart `15m` or `2h` means. Raises BadUsage for what no hour or no day can be divided into."""
    found = re.fullmatch(r"([1-9][0-9]{0,3})(m|h)", said, re.ASCII)
    minutes = 0 if found is None else int(found[1]) * (_HOUR if found[2] == "h" else 1)
    if not minutes or (_HOUR if minutes < _HOUR else _DAY) % minutes or (minutes > _HOUR and minutes % _HOUR):
        raise BadUsage(
            f"`--every {said}` does not divide an hour or a day", hint="5m, 10m, 15m, 30m, 1h, 2h, 6h, 12h, …"
        )
    return Every(minutes=minutes)


def check(job: Job) -> None:
    """Raises BadUsage for names of files that no schedule can hold: with line breaks, or in no encoding."""
    for word in (*job.command, str(job.keys), str(job.logs)):
        if any(not character.isprintable() for character in word):
            raise BadUsage(f"a schedule cannot hold the name {word!r}", hint="it has characters that are not printable")


@record
class EntryText:
    """A text that a scheduler reads."""

    place: str
    """The file that it is, or what it is a line of."""
    text: str


class EntryAction(StrEnum):
    """What becomes of a part."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    """It is there already."""
    REMOVE = "remove"


@record
class EntryChange:
    """What becomes of one part."""

    place: str
    step: EntryAction


@record
class ScheduleResult:
    """What was done, or would be."""

    changes: tuple[EntryChange, ...]
    """Nothing where there is nothing of ours to be removed."""
    said: str = ""
    """What the scheduler's own program said, where it did not take notice."""
    left: tuple[str, ...] = ()
    """Commands that are left to be typed then."""


class Scheduler(Protocol):
    """Something that runs programs by the clock. What is not ours stays as it is, to the byte."""

    name: str

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        """The job as the scheduler reads it; nothing is looked at, and nothing done."""
        ...

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Puts it in its place, also in that of an earlier one. Raises CannotCreate, InputOutput."""
        ...

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Takes the entry of a job away, if there is one. Raises CannotCreate, InputOutput."""
        ...
