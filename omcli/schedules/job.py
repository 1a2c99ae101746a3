"""A scheduled job: its command, its time, and the interface of a scheduler."""

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
"""Script with which /bin/sh starts a job if the scheduler neither keeps logs nor reads keys from a file.

`$0` is the job, `$1` the log's folder, and `$2` the file with the keys, which thus appear in no argument or schedule.
The log is readable by its owner only and holds messages, not rows. A large one is rotated, and the last one is kept. If
the log cannot be written, messages go to the scheduler.
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
    """At a fixed interval."""

    minutes: int

    def __str__(self) -> str:
        return f"{self.minutes}m" if self.minutes < _HOUR else f"{self.minutes // _HOUR}h"


When = Daily | Every


@record
class Job:
    """A scheduled command of `om`."""

    name: str
    """Name of the command, and of its entry."""
    command: tuple[str, ...]
    """Its words, beginning with an absolute path."""
    when: When
    keys: Path
    """File of `NAME=VALUE` lines with its environment; may not exist."""
    logs: Path
    """Folder of its log if the scheduler keeps none."""

    @property
    def mark(self) -> str:
        """Mark of om's entry."""
        return mark(self.name)

    @property
    def started(self) -> tuple[str, ...]:
        """Words of the command that starts it by `START_SCRIPT`."""
        return ("/bin/sh", "-c", START_SCRIPT, self.name, str(self.logs), str(self.keys), *self.command)


SUCCESS_CODES = {"consolidate": (75,), "tick": (1, 75)}
"""Exit codes that are not failures: another process is doing the work, or nothing is due."""


def mark(name: str) -> str:
    """Return the mark for this job's entries."""
    return f"om:{name}"


def daily(text: str) -> Daily:
    """Parse a time of day `HH:MM`. Raise BadUsage if it is not valid."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text, re.ASCII)
    if found is None:
        raise BadUsage(f"`--at {text}` is not a valid time (expected HH:MM)", hint="from 00:00 to 23:59")
    return Daily(hour=int(found[1]), minute=int(found[2]))


def every(text: str) -> Every:
    """Parse an interval such as `15m` or `2h`. Raise BadUsage unless it divides an hour or a day."""
    found = re.fullmatch(r"([1-9][0-9]{0,3})(m|h)", text, re.ASCII)
    minutes = 0 if found is None else int(found[1]) * (_HOUR if found[2] == "h" else 1)
    if not minutes or (_HOUR if minutes < _HOUR else _DAY) % minutes or (minutes > _HOUR and minutes % _HOUR):
        raise BadUsage(
            f"`--every {text}` is not a valid interval (expected one that divides an hour or a day)",
            hint="5m, 10m, 15m, 30m, 1h, 2h, 6h, 12h, …",
        )
    return Every(minutes=minutes)


def check(job: Job) -> None:
    """Raise BadUsage if a path or argument has unprintable characters, which no schedule can contain."""
    for word in (*job.command, str(job.keys), str(job.logs)):
        if any(not character.isprintable() for character in word):
            raise BadUsage(f"{word!r} cannot be part of a schedule", hint="it has characters that are not printable")


@record
class EntryText:
    """An entry for a scheduler: a whole file, or a line of one."""

    place: str
    """The file."""
    text: str


class EntryStep(StrEnum):
    """Change to an entry."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    """The entry exists already."""
    REMOVE = "remove"


@record
class EntryChange:
    """Change to one entry."""

    place: str
    step: EntryStep


@record
class ScheduleResult:
    """Changes done or planned."""

    changes: tuple[EntryChange, ...]
    """Empty if there is nothing of om's to remove."""
    said: str = ""
    """Error of the scheduler's own program."""
    left: tuple[str, ...] = ()
    """Commands for the user to run if that program failed."""


class Scheduler(Protocol):
    """Runs programs by the clock. Entries that are not om's stay unchanged, to the byte."""

    name: str

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        """Return the job's entries; nothing is read or written."""
        ...

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Install the job, replacing an earlier entry. Raise CannotCreate or InputOutput on failure."""
        ...

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Remove the job's entry, if any. Raise CannotCreate or InputOutput on failure."""
        ...
