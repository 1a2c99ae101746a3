"""Scheduling with systemd: a user service and a timer per job."""

from __future__ import annotations

from pathlib import Path

from omcli.schedules.job import (
    SUCCESS_CODES,
    Daily,
    EntryStep,
    EntryText,
    Job,
    ScheduleResult,
    When,
    first_error,
    mark,
    remove_file,
    remove_files,
    write_files,
)

_HOUR = 60
_UNSAFE = frozenset("'\"\\")
"""Characters that systemd does not accept in the path of a program, even in quotes."""


class Systemd:
    """Scheduler that writes units to the folder `units` and enables them with `systemctl --user`."""

    name = "systemd"

    def __init__(self, units: Path) -> None:
        self._units = units

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        service, timer = self._paths(job.name)
        return EntryText(place=str(service), text=_service(job)), EntryText(place=str(timer), text=_timer(job))

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Write the service and timer units, and start the timer."""
        changes = write_files(self.parts(job), job.mark, dry_run=dry_run)
        timer = self._paths(job.name)[1].name
        commands: list[tuple[str, ...]] = [("daemon-reload",), ("enable", "--now", timer)]
        if any(change.step is EntryStep.REPLACE for change in changes):
            commands.append(("restart", timer))  # otherwise the old time remains in effect
        return ScheduleResult(changes=changes) if dry_run else _run(ScheduleResult(changes=changes), *commands)

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Remove the service and timer units that are om's. If there are any, stop the timer."""
        service, timer = self._paths(name)
        ours = remove_files((service, timer), mark(name), dry_run=True)
        if dry_run or not ours:
            return ScheduleResult(changes=ours)
        commands: list[tuple[str, ...]] = [("daemon-reload",)]
        if first_error(("systemctl", "--user", "disable", "--now", timer.name)) is not None:
            commands.insert(0, ("stop", timer.name))
        remove_files((service, timer), mark(name), dry_run=False)
        wanted = self._units / "timers.target.wants" / timer.name
        if wanted.is_symlink() and not wanted.exists():  # systemctl would have removed the link, but did not run
            remove_file(wanted)
        return _run(ScheduleResult(changes=ours), *commands)

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._units / f"om-{name}.service", self._units / f"om-{name}.timer"


def quoted(word: str, *, is_program: bool = False) -> str:
    """Quote a word of `ExecStart`.

    In the path of a program `$` is not escaped, because systemd expands no variables there.
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped if is_program else escaped.replace("$", "$$")}"'


def _service(job: Job) -> str:
    program, *arguments = job.command
    if not _UNSAFE.isdisjoint(program):
        program, arguments = "/bin/sh", ["-c", 'exec "$0" "$@"', *job.command]
    words = [quoted(program, is_program=True), *map(quoted, arguments)]
    return f"""\
# {job.mark}, written by `om schedule`
[Unit]
Description=om {job.name}
Documentation=man:om-{job.name}(1)

[Service]
Type=oneshot
EnvironmentFile=-{str(job.keys).replace("%", "%%")}
ExecStart={" ".join(words)}
SuccessExitStatus={" ".join(map(str, SUCCESS_CODES[job.name]))}
StandardOutput=null
StandardError=journal
Nice=10
"""


def _timer(job: Job) -> str:
    return f"""\
# {job.mark}, written by `om schedule`
[Unit]
Description=When to run om {job.name}
Documentation=man:om-schedule(1)

[Timer]
OnCalendar={_time(job.when)}
Persistent=true

[Install]
WantedBy=timers.target
"""


def _time(when: When) -> str:
    if isinstance(when, Daily):
        return f"*-*-* {when.hour:02}:{when.minute:02}:00"
    if when.minutes < _HOUR:
        return f"*-*-* *:00/{when.minutes}:00"
    return f"*-*-* 00/{when.minutes // _HOUR}:00:00"


def _run(done: ScheduleResult, *commands: tuple[str, ...]) -> ScheduleResult:
    """Run `systemctl` commands, and return the result.

    If a command fails, its error is added to the result, together with all of the commands for the user to run by hand.
    """
    words = [("systemctl", "--user", *command) for command in commands]
    error = first_error(*words)
    return done if error is None else ScheduleResult(changes=done.changes, said=error, left=tuple(map(" ".join, words)))
