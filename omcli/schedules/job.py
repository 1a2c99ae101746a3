"""Scheduled jobs, the interface of schedulers, and their files and programs."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from omcli.base.errors import BadUsage, CannotCreate, InputOutput
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
"""Exit codes other than 0 that are not failures, by command: 75 if another process is doing the work, and 1 if nothing
is due.
"""


def mark(name: str) -> str:
    """Return the text that marks the entries of the job with this name as om's."""
    return f"om:{name}"


def daily(text: str) -> Daily:
    """Parse a time of day in the form `HH:MM` or `H:MM`. Raise BadUsage if it is not valid."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text, re.ASCII)
    if found is None:
        raise BadUsage(f"`--at {text}` is not a valid time (expected HH:MM)", hint="from 00:00 to 23:59")
    return Daily(hour=int(found[1]), minute=int(found[2]))


def every(text: str) -> Every:
    """Parse an interval such as `15m` or `2h`. Raise BadUsage unless it divides an hour evenly, or is a number of whole
    hours that divides a day evenly.
    """
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
    """Error of the scheduler's own program, if it failed or was not found."""
    left: tuple[str, ...] = ()
    """Commands that the user has to run if the scheduler's own program failed or was not found."""


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


# ---- files and programs


def write_files(parts: Iterable[EntryText], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Write each part to its file unless the file already has this text, and return the changes.

    `mark`, which is part of every text, identifies om's files. Raise CannotCreate, before anything is written, if a
    file exists that is not om's. Also raise CannotCreate if a file cannot be written, and InputOutput if one cannot be
    read.
    """
    planned = [(part, _step(part, mark)) for part in parts]
    for part, step in planned:
        if step is not EntryStep.KEEP and not dry_run:
            _write(Path(part.place), part.text)
    return tuple(EntryChange(place=part.place, step=step) for part, step in planned)


def remove_files(paths: Iterable[Path], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Remove the files that contain `mark`, and return the changes.

    Raise InputOutput if a file cannot be read or removed.
    """
    ours = [path for path in paths if mark in (_content(path) or "")]
    for path in ours:
        if not dry_run:
            remove_file(path)
    return tuple(EntryChange(place=str(path), step=EntryStep.REMOVE) for path in ours)


def remove_file(path: Path) -> None:
    """Remove a file if it exists. Raise InputOutput if it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputOutput(f"cannot remove {path}: {error.strerror}") from error


def _step(part: EntryText, mark: str) -> EntryStep:
    content = _content(Path(part.place))
    if content is None:
        return EntryStep.CREATE
    if mark not in content:
        raise CannotCreate(f"{part.place} already exists and was not created by om", hint="move it out of the way")
    return EntryStep.KEEP if content == part.text else EntryStep.REPLACE


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputOutput(f"cannot read {path}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    """Write a file atomically. Raise CannotCreate if it cannot be written."""
    path = Path(os.path.realpath(path))  # write to a link's target, so that the link is kept
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise CannotCreate(f"cannot create {path}: {error.strerror}") from error


_SECONDS = 30.0


@record
class CommandResult:
    code: int
    output: bytes
    error: str
    """First line of the program's stderr."""


def run_command(*words: str, given: bytes = b"") -> CommandResult | None:
    """Run a program in the C locale, or return None if it does not exist.

    Raise InputOutput if the program cannot be started or does not end in time.
    """
    try:
        process = subprocess.run(
            words,
            input=given,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        raise InputOutput(f"`{' '.join(words)}` did not end within {_SECONDS:g} seconds") from None
    except OSError as error:
        raise InputOutput(f"`{words[0]}` cannot be started: {error.strerror}") from error
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return CommandResult(code=process.returncode, output=process.stdout, error=lines[0].strip() if lines else "")


def first_error(*commands: tuple[str, ...]) -> str | None:
    """Run commands until one fails, and return its error; None if all succeed."""
    for command in commands:
        found = run_command(*command)
        if found is None:
            return f"`{command[0]}` was not found"
        if found.code:
            return found.error or f"`{' '.join(command)}` ended with {found.code}"
    return None
