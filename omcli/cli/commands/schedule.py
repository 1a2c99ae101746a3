"""`om schedule`: run maintenance regularly with cron, systemd or launchd."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.cli.command import Run, with_shared
from omcli.cli.options import DryRunOption, option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omcli.schedules.job import EntryText, Job, Scheduler, ScheduleResult

_EXAMPLES = """\b
om schedule --cron
om schedule --systemd --at 04:30 --install
om schedule --systemd --every 15m --install
om schedule --launchd --remove --dry-run
"""


@with_shared(examples=_EXAMPLES)
def schedule(
    run: Run,
    *,
    cron: Annotated[bool, option("--cron", help="Use cron: a line in the crontab.")] = False,
    systemd: Annotated[bool, option("--systemd", help="Use systemd: a user service and a timer.")] = False,
    launchd: Annotated[bool, option("--launchd", help="Use launchd (macOS): a launch agent.")] = False,
    at: Annotated[
        str | None, option("--at", metavar="HH:MM", help="Run `om consolidate` daily at this time.  [default: 03:00]")
    ] = None,
    every: Annotated[
        str | None, option("--every", metavar="INTERVAL", help="Run `om tick` at this interval instead: 15m, 1h.")
    ] = None,
    install: Annotated[bool, option("--install", help="Install the job, replacing an earlier one.")] = False,
    remove: Annotated[bool, option("--remove", help="Remove the jobs that om installed.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run `om consolidate` every day.

    Prints the job, or installs or removes it. The job runs this `om` with the same store, preset, counter and
    configuration. It never contains API keys. Put them into the file `env` in om's configuration folder, one
    NAME='VALUE' per line, and keep that file private (chmod 600).

    stderr of each run is kept: with systemd in the journal (journalctl --user -u om-consolidate, or om-tick with
    --every), otherwise in consolidate.log or tick.log in om's state folder. cron skips runs while the machine is off;
    systemd and launchd catch up. User timers of systemd run while you are logged in, or always after `loginctl
    enable-linger`.

    The exit code is 73 if the job cannot be installed (crontab is missing or rejects it), and 74 if an installed job
    cannot be read or removed. If systemd or launchd does not respond, the files are written and the remaining commands
    are printed.
    """
    from omcli.schedules import scheduler

    chosen = scheduler(_scheduler(cron=cron, systemd=systemd, launchd=launchd), os.environ)
    if install and remove:
        raise BadUsage("`--install` and `--remove` exclude each other")
    if dry_run and not (install or remove):
        raise BadUsage("`--dry-run` needs `--install` or `--remove`")
    if (install or remove) and run.is_read_only("nothing is changed"):
        return
    if not remove:
        _schedule(run, chosen, _job(run, at, every), install=install, dry_run=dry_run)
    elif at is not None or every is not None:
        raise BadUsage("`--remove` excludes `--at` and `--every`")
    else:
        _remove(run, chosen, dry_run=dry_run)


def _scheduler(**asked: bool) -> str:
    """Return the name of the chosen scheduler. Raise BadUsage if none is chosen, or if several are, because the job
    would run several times.
    """
    from omcli.schedules import default_name

    names = [name for name, is_asked in asked.items() if is_asked]
    if len(names) == 1:
        return names[0]
    raise BadUsage(
        "no scheduler given" if not names else f"`--{names[0]}` and `--{names[1]}` exclude each other",
        hint=f"one of --cron, --systemd and --launchd; usual here: {default_name()}",
    )


def _job(run: Run, at: str | None, every: str | None) -> Job:
    from omcli.schedules import job
    from omcli.wiring.scheduling import job as made

    if at is not None and every is not None:
        raise BadUsage("`--at` and `--every` exclude each other")
    if every is not None:
        return made("tick", job.every(every), run.settings, run.files)
    return made("consolidate", job.daily("03:00" if at is None else at), run.settings, run.files)


def _schedule(run: Run, chosen: Scheduler, job: Job, *, install: bool, dry_run: bool) -> None:
    from omcli.wiring.scheduling import is_open, missing_keys, try_out

    if install:
        try_out(job)
    parts = chosen.parts(job)
    done = chosen.install(job, dry_run=dry_run) if install else None
    missing = missing_keys(os.environ, job.keys)
    if run.json:
        run.output.document(
            {
                "scheduler": chosen.name,
                "job": job.name,
                "when": str(job.when),
                "command": list(job.command),
                "keys": str(job.keys),
                "missed": missing,
                "parts": [{"place": part.place, "text": part.text} for part in parts],
                **(_as_dict(done, dry_run=dry_run) if done else {}),
            }
        )
    elif done is None:
        run.output.text(_text(parts))
    if missing:
        run.console.note(f"a scheduled run will not see {', '.join(missing)}; it reads {job.keys}")
    if is_open(job.keys):
        run.console.warn(f"{job.keys} is readable by others; run `chmod 600` on it")
    if done is not None:
        _print_result(run, done, dry_run=dry_run)


def _remove(run: Run, chosen: Scheduler, *, dry_run: bool) -> None:
    from omcli.schedules.job import SUCCESS_CODES, ScheduleResult

    found = [chosen.remove(name, dry_run=dry_run) for name in SUCCESS_CODES]
    done = ScheduleResult(
        changes=tuple(change for each in found for change in each.changes),
        said=next((each.said for each in found if each.said), ""),
        left=tuple(dict.fromkeys(command for each in found for command in each.left)),
    )
    if run.json:
        run.output.document({"scheduler": chosen.name, **_as_dict(done, dry_run=dry_run)})
    if not done.changes:
        run.console.note("nothing to remove")
    _print_result(run, done, dry_run=dry_run)


def _print_result(run: Run, done: ScheduleResult, *, dry_run: bool) -> None:
    """Print one line per change, unless `--json` is given, and the commands that must be run by hand."""
    if not run.json:
        for change in done.changes:
            run.output.line(f"{change.step:<7}  {change.place}")
    if done.left:
        run.console.warn(f"{done.said}; run yourself: {' && '.join(done.left)}")
    if dry_run:
        run.console.note("dry run: nothing was changed")


def _text(parts: Iterable[EntryText]) -> str:
    """Return the parts of the job as text; if there are several, each follows its file name."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0].text
    return "\n".join(f"# {part.place}\n{part.text}" for part in parts)


def _as_dict(done: ScheduleResult, *, dry_run: bool) -> dict[str, object]:
    return {
        "changes": [{"place": change.place, "step": change.step} for change in done.changes],
        "said": done.said,
        "left": list(done.left),
        "dry_run": dry_run,
    }
