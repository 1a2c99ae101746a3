"""systemd: a service and a timer of the user's own."""

from __future__ import annotations

from pathlib import Path

from omcli.schedules import host
from omcli.schedules.host import first_complaint
from omcli.schedules.job import SUCCESS_CODES, Daily, EntryAction, EntryText, Job, ScheduleResult, When, mark

_HOUR = 60
_UNSAFE = frozenset("'\"\\")
"""What systemd takes in no program's own path, however it is quoted."""


class Systemd:
    """Writes units, and tells `systemctl --user` of them."""

    name = "systemd"

    def __init__(self, units: Path) -> None:
        """`units` is the folder of the user's units."""
        self._units = units

    def parts(self, job: Job) -> tuple[EntryText, ...]:
        """The service and the timer."""
        service, timer = self._paths(job.name)
        return EntryText(place=str(service), text=_service(job)), EntryText(place=str(timer), text=_timer(job))

    def install(self, job: Job, *, dry_run: bool = False) -> ScheduleResult:
        """Writes both, and has the timer started."""
        changes = host.put(self.parts(job), job.mark, dry_run=dry_run)
        timer = self._paths(job.name)[1].name
        commands: list[tuple[str, ...]] = [("daemon-reload",), ("enable", "--now", timer)]
        if any(change.step is EntryAction.REPLACE for change in changes):
            commands.append(("restart", timer))  # it waits for the old time
        return ScheduleResult(changes=changes) if dry_run else _told(ScheduleResult(changes=changes), *commands)

    def remove(self, name: str, *, dry_run: bool = False) -> ScheduleResult:
        """Has the timer stopped, and takes both away."""
        service, timer = self._paths(name)
        ours = host.take((service, timer), mark(name), dry_run=True)
        if dry_run or not ours:
            return ScheduleResult(changes=ours)
        commands: list[tuple[str, ...]] = [("daemon-reload",)]
        if first_complaint(("systemctl", "--user", "disable", "--now", timer.name)) is not None:
            commands.insert(0, ("stop", timer.name))
        host.take((service, timer), mark(name), dry_run=False)
        wanted = self._units / "timers.target.wants" / timer.name
        if wanted.is_symlink() and not wanted.exists():  # nobody answered who would have taken it away
            host.unlink(wanted)
        return _told(ScheduleResult(changes=ours), *commands)

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._units / f"om-{name}.service", self._units / f"om-{name}.timer"


def quoted(word: str, *, is_program: bool = False) -> str:
    """A word of `ExecStart`. In a program's own path no variable is looked for, so that `$` is one."""
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


def _told(done: ScheduleResult, *commands: tuple[str, ...]) -> ScheduleResult:
    """The same, with what is left to be typed where systemd does not answer."""
    words = [("systemctl", "--user", *command) for command in commands]
    said = first_complaint(*words)
    return done if said is None else ScheduleResult(changes=done.changes, said=said, left=tuple(map(" ".join, words)))
