"""Scheduling with cron: one line per job in the user's crontab."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omcli.base.errors import CannotCreate, InputOutput
from omcli.schedules.job import (
    CommandResult,
    Daily,
    EntryChange,
    EntryStep,
    EntryText,
    Job,
    ScheduleResult,
    When,
    mark,
    run_command,
)

PLACE = "crontab"
_HOUR = 60
_NONE_YET = re.compile(r"no crontab|no such file", re.IGNORECASE)
_SAFE = re.compile(r"[\w@+=:,./-]+", re.ASCII)


class Cron:
    """Scheduler that edits the crontab with `crontab -l` and `crontab -`."""

    name = "cron"

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        words = " ".join(map(quoted, job.started))
        return (EntryText(place=PLACE, text=f"{_time(job.when)} {words} # {job.mark}\n"),)

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Replace the job's earlier line in the crontab, or append a new one."""
        (part,) = self.parts(job)
        return _apply(job.name, part.text.encode(), dry_run=dry_run)

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        return _apply(name, b"", dry_run=dry_run)


def quoted(word: str) -> str:
    """Quote a word of a command in a crontab, for the shell and for cron.

    cron turns each `%` into a line break unless a backslash precedes it, even within quotes. Some crons remove this
    backslash and others don't, so it is put outside the quotes, where the shell removes it. Some crons read two
    backslashes as one, so adjacent backslashes are separated by quotes.
    """
    if _SAFE.fullmatch(word):
        return word
    inside = word.replace("'", "'\"'\"'").replace("\\", "\\''").replace("%", "'\\%'")
    return f"'{inside}'"


def with_line(table: bytes, line: bytes, name: str) -> bytes:
    """Return the crontab with `line` in place of the job's lines, or at the end if it has none of these. If `line` is
    empty, remove the job's lines.
    """
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


def _apply(name: str, line: bytes, *, dry_run: bool) -> ScheduleResult:
    old = _table()
    new = with_line(old, line, name)
    if new == old:
        return ScheduleResult(changes=(EntryChange(place=PLACE, step=EntryStep.KEEP),) if line else ())
    if not dry_run:
        found = _run_cron("-", given=new)
        if found.code:
            raise CannotCreate(f"crontab refused the change: {found.error or f'exit code {found.code}'}")
    had = with_line(old, b"", name) != old
    return ScheduleResult(
        changes=(
            EntryChange(
                place=PLACE, step=(EntryStep.REPLACE if had else EntryStep.CREATE) if line else EntryStep.REMOVE
            ),
        )
    )


def _table() -> bytes:
    """Return the user's crontab; empty if there is none.

    Raise InputOutput if the crontab cannot be read, because writing replaces all of it.
    """
    found = _run_cron("-l")
    if found.code == 0:
        return found.output
    if _NONE_YET.search(found.error) and not found.output:
        return b""
    raise InputOutput(f"the crontab cannot be read: {found.error or f'exit code {found.code}'}")


def _run_cron(word: str, *, given: bytes = b"") -> CommandResult:
    found = run_command("crontab", word, given=given)
    if found is None:
        raise CannotCreate("`crontab` was not found", hint="install cron, or use --systemd or --launchd")
    return found


def _time(when: When) -> str:
    if isinstance(when, Daily):
        return f"{when.minute} {when.hour} * * *"
    if when.minutes < _HOUR:
        return f"*/{when.minutes} * * * *"
    return f"0 */{when.minutes // _HOUR} * * *"
