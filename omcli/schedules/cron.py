"""cron: a line in the user's crontab."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omcli.base.errors import CannotCreate, InputOutput
from omcli.schedules.host import ProgramResult, answer
from omcli.schedules.job import Daily, EntryAction, EntryChange, EntryText, Job, ScheduleResult, When, mark

PLACE = "crontab"
_HOUR = 60
_NONE_YET = re.compile(r"no crontab|no such file", re.IGNORECASE)
_SAFE = re.compile(r"[\w@+=:,./-]+", re.ASCII)


class Cron:
    """Edits the crontab by `crontab -l` and `crontab -`, as a person does by `crontab -e`."""

    name = "cron"

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        """The line."""
        words = " ".join(map(quoted, job.started))
        return (EntryText(place=PLACE, text=f"{_time(job.when)} {words} # {job.mark}\n"),)

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Puts the line where our line is, or at the end."""
        (part,) = self.parts(job)
        return _edit(job.name, part.text.encode(), dry_run=dry_run)

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Takes our line out."""
        return _edit(name, b"", dry_run=dry_run)


def quoted(word: str) -> str:
    """A word of a command in a crontab: for the shell, and before that for cron.

    cron makes a line break of each `%` without a backslash before it, within quotes as well. Some crons take that
    backslash away, others don't; outside of quotes the shell does it. Two backslashes are one to some, so that none
    stands beside another.
    """
    if _SAFE.fullmatch(word):
        return word
    inside = word.replace("'", "'\"'\"'").replace("\\", "\\''").replace("%", "'\\%'")
    return f"'{inside}'"


def edited(table: bytes, line: bytes, name: str) -> bytes:
    """A crontab with our line in place of those there are of ours, or at the end; without any for an empty line."""
    lines = list(_replaced(table.splitlines(keepends=True), line, f" # {mark(name)}".encode()))
    if line and line not in lines:
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        lines.append(line)
    return b"".join(lines)


def _replaced(lines: list[bytes], line: bytes, ours: bytes) -> Iterator[bytes]:
    for each in lines:
        if not each.rstrip().endswith(ours) or each.lstrip().startswith(b"#"):
            yield each
        elif line:
            yield line
            line = b""


def _edit(name: str, line: bytes, *, dry_run: bool) -> ScheduleResult:
    old = _table()
    new = edited(old, line, name)
    if new == old:
        return ScheduleResult(changes=(EntryChange(place=PLACE, step=EntryAction.KEEP),) if line else ())
    if not dry_run:
        found = _crontab("-", given=new)
        if found.code:
            raise CannotCreate(f"crontab does not take it: {found.complaint or f'it ended with {found.code}'}")
    had = edited(old, b"", name) != old
    return ScheduleResult(
        changes=(
            EntryChange(
                place=PLACE, step=(EntryAction.REPLACE if had else EntryAction.CREATE) if line else EntryAction.REMOVE
            ),
        )
    )


def _table() -> bytes:
    """The crontab as it is. What is not plainly none is an error: the next one written would take its place."""
    found = _crontab("-l")
    if found.code == 0:
        return found.output
    if _NONE_YET.search(found.complaint) and not found.output:
        return b""
    raise InputOutput(f"the crontab cannot be read: {found.complaint or f'crontab ended with {found.code}'}")


def _crontab(word: str, *, given: bytes = b"") -> ProgramResult:
    found = answer("crontab", word, given=given)
    if found is None:
        raise CannotCreate("there is no `crontab` here", hint="install cron, or use --systemd or --launchd")
    return found


def _time(when: When) -> str:
    if isinstance(when, Daily):
        return f"{when.minute} {when.hour} * * *"
    if when.minutes < _HOUR:
        return f"*/{when.minutes} * * * *"
    return f"0 */{when.minutes // _HOUR} * * *"
