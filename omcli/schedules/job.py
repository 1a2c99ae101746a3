"""Scheduled jobs: a command, its time, and the interface of schedulers."""

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
"""Script for `/bin/sh` that starts a job under a scheduler that neither keeps logs nor reads keys from a file.

`$0` is the job's name, `$1` the log folder and `$2` the key file, so that no key appears in an argument or schedule.
Only its owner can read the log. It contains diagnostics but no rows. A log of 1 MB or more is renamed, replacing the
previous one. If the log cannot be written, the scheduler receives the output instead.
"""
_HOUR = 60
_DAY = 24 * _HOUR


@record
class Daily:
    """A time of day, in local time."""

    hour: int
    minute: int

    def __str__(self) -> str:
        return f"{self.hour:02}:{self.minute:02}"


@record
class Every:
    """A fixed interval between runs."""

    minutes: int

    def __str__(self) -> str:
        return f"{self.minutes}m" if self.minutes < _HOUR else f"{self.minutes // _HOUR}h"


When = Daily | Every


@record
class Job:
    name: str
    """Name of the `om` command, also used for the scheduler's entries."""
    command: tuple[str, ...]
    """Words of the command. The first is an absolute path."""
    when: When
    keys: Path
    """File of `NAME=VALUE` lines with environment variables for the job. It need not exist."""
    logs: Path
    """Folder for the job's log if the scheduler does not keep one."""

    @property
    def mark(self) -> str:
        """Text that marks the job's entries as om's."""
        return mark(self.name)

    @property
    def started(self) -> tuple[str, ...]:
        """Words of the command that starts the job through `START_SCRIPT`."""
        return ("/bin/sh", "-c", START_SCRIPT, self.name, str(self.logs), str(self.keys), *self.command)


SUCCESS_CODES = {"consolidate": (75,), "tick": (1, 75)}
"""Exit codes other than 0 that are not failures: another process is doing the work, or nothing is due."""


def mark(name: str) -> str:
    """Return the text that marks the entries of the job with this name as om's."""
    return f"om:{name}"


def daily(text: str) -> Daily:
    """Parse a time of day in the form `HH:MM`. Raise BadUsage if it is not valid."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text, re.ASCII)
    if found is None:
        raise BadUsage(f"`--at {text}` is not a valid time (expected HH:MM)", hint="from 00:00 to 23:59")
    return Daily(hour=int(found[1]), minute=int(found[2]))


def every(text: str) -> Every:
    """Parse an interval such as `15m` or `2h`. Raise BadUsage unless it divides an hour or a day evenly."""
    found = re.fullmatch(r"([1-9][0-9]{0,3})(m|h)", text, re.ASCII)
    minutes = 0 if found is None else int(found[1]) * (_HOUR if found[2] == "h" else 1)
    if not minutes or (_HOUR if minutes < _HOUR else _DAY) % minutes or (minutes > _HOUR and minutes % _HOUR):
        raise BadUsage(
            f"`--every {text}` is not a valid interval (expected one that divides an hour or a day)",
            hint="5m, 10m, 15m, 30m, 1h, 2h, 6h, 12h, …",
        )
    return Every(minutes=minutes)


def check(job: Job) -> None:
    """Raise BadUsage if a path or argument contains unprintable characters, which schedules cannot represent."""
    for word in (*job.command, str(job.keys), str(job.logs)):
        if any(not character.isprintable() for character in word):
            raise BadUsage(f"{word!r} cannot be part of a schedule", hint="it has characters that are not printable")


@record
class EntryText:
    """The text of an entry in a scheduler: a whole file, or one line of a file."""

    place: str
    """Path of the file, or `crontab`."""
    text: str


class EntryStep(StrEnum):
    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    """The entry already exists and needs no change."""
    REMOVE = "remove"


@record
class EntryChange:
    place: str
    step: EntryStep


@record
class ScheduleResult:
    """Changes made, or planned in a dry run."""

    changes: tuple[EntryChange, ...]
    """Empty if there was nothing to remove."""
    said: str = ""
    """Error printed by the scheduler's own program, if it failed."""
    left: tuple[str, ...] = ()
    """Commands that the user has to run if the scheduler's own program failed."""


class Scheduler(Protocol):
    """Interface to a program that runs jobs at given times. Entries that are not om's are never changed."""

    name: str

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        """Return the job's entries, without reading or writing any file."""
        ...

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Install the job, replacing its earlier entries.

        Raise CannotCreate or InputOutput if an entry cannot be read or written, or a program does not end in time.
        Other failures of `systemctl` and `launchctl` are part of the result instead (`ScheduleResult.said`).
        """
        ...

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Remove the job's entries, if any. Errors are raised or returned as by `install`."""
        ...
