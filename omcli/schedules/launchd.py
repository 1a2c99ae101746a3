"""Scheduling with launchd: a user agent per job."""

from __future__ import annotations

import os
import plistlib
import shlex
from pathlib import Path
from typing import Any

from omcli.schedules.job import (
    Daily,
    EntryStep,
    EntryText,
    Job,
    ScheduleResult,
    When,
    first_error,
    mark,
    remove_files,
    run_command,
    write_files,
)


class Launchd:
    """Scheduler that writes property lists to the folder `agents` and loads them with `launchctl`."""

    name = "launchd"

    def __init__(self, agents: Path) -> None:
        self._agents = agents

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        content = {
            "Label": _label(job.name),
            "ProgramArguments": list(job.started),
            **_time(job.when),
            "ProcessType": "Background",
        }
        text = plistlib.dumps(content, sort_keys=False).decode()
        text = text.replace("<dict>", f"<!-- {job.mark}, written by `om schedule` -->\n<dict>", 1)
        return (EntryText(place=str(self._path(job.name)), text=text),)

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Write the job's property list, and load it in place of an earlier one."""
        done = ScheduleResult(changes=write_files(self.parts(job), job.mark, dry_run=dry_run))
        load = ("launchctl", "bootstrap", _target(), str(self._path(job.name)))
        if dry_run:
            return done
        if all(change.step is EntryStep.KEEP for change in done.changes) and _is_active(job.name):
            return done
        _remove(job.name)
        error = first_error(load)
        return done if error is None else ScheduleResult(changes=done.changes, said=error, left=(shlex.join(load),))

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Remove the job's property list if it is om's, and then unload the agent."""
        done = ScheduleResult(changes=remove_files([self._path(name)], mark(name), dry_run=dry_run))
        if done.changes and not dry_run:
            _remove(name)
        return done

    def _path(self, name: str) -> Path:
        return self._agents / f"{_label(name)}.plist"


def _label(name: str) -> str:
    return f"om.{name}"


def _target() -> str:
    return f"gui/{os.getuid()}"


def _is_active(name: str) -> bool:
    found = run_command("launchctl", "print", f"{_target()}/{_label(name)}")
    return found is not None and found.code == 0


def _remove(name: str) -> None:
    """Unload the agent. Errors are ignored because the agent may not be loaded."""
    run_command("launchctl", "bootout", f"{_target()}/{_label(name)}")


def _time(when: When) -> dict[str, Any]:
    if isinstance(when, Daily):
        return {"StartCalendarInterval": {"Hour": when.hour, "Minute": when.minute}}
    return {"StartInterval": when.minutes * 60}
