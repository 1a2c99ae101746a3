"""`om install` and `om uninstall`, for clients such as Claude Code; `om schedule`, for the system's scheduler."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, OmError
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit
from omcli.cli.options import DryRunOption, argument, option
from omcli.clients import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from omcli.clients.files import ClientFile, KeptFiles
    from omcli.schedules.job import EntryText, Job, Scheduler, ScheduleResult

    Plan = Callable[[str], tuple[ClientFile, ...]]

_EXAMPLES = """\b
om install claude-code codex
om install --all --dry-run
om install gemini --project
claude --plugin-dir "$(om install claude-code --plugin)"
"""
_EXAMPLES_OF_UNINSTALL = """\b
om uninstall codex
om uninstall --all
om uninstall claude-code --project
"""
_WITHOUT = ("db", "counter", "wait", "now")


def client_names() -> list[str]:
    """Return the clients."""
    return list(CLIENTS)


NamesArgument = Annotated[
    list[str] | None,
    argument(metavar="CLIENT...", help=f"Clients: {', '.join(CLIENTS)}.", autocompletion=client_names),
]
ProjectOption = Annotated[
    bool, option("--project", help="Only for the project in the current directory, instead of all of yours.")
]


@with_shared(examples=_EXAMPLES, without=_WITHOUT)
def install(
    run: Run,
    names: NamesArgument = None,
    *,
    all_: Annotated[bool, option("--all", help="All clients that are found on this machine.")] = False,
    project: ProjectOption = False,
    remove: Annotated[bool, option("--remove", help="Uninstall; the same as `om uninstall`.")] = False,
    plugin: Annotated[
        bool, option("--plugin", help="With claude-code: print the folder of its plugin, and install nothing.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Have clients such as Claude Code use the memory.

    Each client is given hooks that run this `om` by its absolute path (or an extension that does), and a skill that
    tells its agent when to look something up and when to note something. Other entries are left as they are. Entries
    that already run `om hook` are replaced, even if options, variables or a program such as timeout come first, and so
    are those of a retired tool that was also called `om`. Commands that are replaced are printed.

    Claude Code gets hooks in settings.json, or with --project in .claude/settings.local.json, which is not meant to be
    committed: the path of om holds only on this machine. Codex and Cursor get a hooks.json, Gemini CLI hooks in
    settings.json, pi an extension and OpenCode a plugin. The skill is put where the client looks: Claude Code has a
    folder of its own, all others read ~/.agents/skills. Variables that move a client's folder are respected, such as
    CLAUDE_CONFIG_DIR and CODEX_HOME.

    The files are written in one step each, and their former content is kept in om's state folder for `om uninstall`. If
    something fails for one client, nothing is changed for it, the others are done, and the exit code is that of the
    first error: 66 if a file cannot be read, 73 if it cannot be written or is not om's, 78 if it is not valid JSON.

    --plugin prints the folder of a plugin for Claude Code with the same hooks and skill, which runs the `om` on PATH.
    Use it instead of `om install claude-code`.
    """
    if plugin:
        if names != ["claude-code"]:
            raise BadUsage("only Claude Code has plugins", hint="`om install claude-code --plugin`")
        _print_folder(run)
    elif remove:
        _uninstall(run, names, is_all=all_, is_project=project, dry_run=dry_run)
    else:
        _install(run, names, is_all=all_, is_project=project, dry_run=dry_run)


@with_shared(examples=_EXAMPLES_OF_UNINSTALL, without=_WITHOUT)
def uninstall(
    run: Run,
    names: NamesArgument = None,
    *,
    all_: Annotated[bool, option("--all", help="All clients.")] = False,
    project: ProjectOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Undo `om install`.

    A file that nobody has changed since gets back the content that it had before, byte for byte; one that was missing
    is removed, with the folders that were created for it. From a file that was changed, only om's own entries are
    removed. What is remembered stays.
    """
    _uninstall(run, names, is_all=all_, is_project=project, dry_run=dry_run)


def _install(run: Run, names: list[str] | None, *, is_all: bool, is_project: bool, dry_run: bool) -> None:
    from omcli.clients.install import TABLE, is_found, plan_install

    if run.is_read_only("nothing is changed"):
        return
    found = [name for name in CLIENTS if is_found(name, os.environ)]
    chosen = _chosen(names, found, is_all=is_all)
    if not chosen:
        run.console.note(f"no client was found; name one: {', '.join(CLIENTS)}")
    om, project, originals = _om(), Path.cwd() if is_project else None, _kept_files()
    made = _Changes(run, originals, is_dry=dry_run)
    made.make(chosen, lambda name: plan_install(name, om, originals, os.environ, project), originals.install)
    made.report(om=list(om))
    for name in made.done:
        if name not in found:
            run.console.note(f"{TABLE[name].title} was not found on this machine; its files are written all the same")
        if name not in made.changed:
            run.console.note(f"{name}: already installed")
    if made.changed:
        _print_notes(run, om, is_project=is_project)
    for name in made.changed:
        run.console.note(f"{name}: {TABLE[name].todo}")
    made.end()


def _uninstall(run: Run, names: list[str] | None, *, is_all: bool, is_project: bool, dry_run: bool) -> None:
    from omcli.clients.install import plan_uninstall

    if run.is_read_only("nothing is changed"):
        return
    chosen = _chosen(names, CLIENTS, is_all=is_all)
    project, originals = Path.cwd() if is_project else None, _kept_files()
    made = _Changes(run, originals, is_dry=dry_run)
    made.make(
        chosen,
        lambda name: plan_uninstall(name, originals, os.environ, project, leaving=chosen),
        originals.uninstall,
    )
    made.report()
    if made.done and not made.changed:
        run.console.note("nothing to remove")
    left = originals.paths() if is_all and not is_project and not dry_run else ()
    if left:
        run.console.note(f"still installed: {', '.join(map(str, left))}; try `om -C DIR uninstall --all --project`")
    made.end()


class _Changes:
    """The changes of files for several clients. An error for one of them does not stop the others."""

    def __init__(self, run: Run, originals: KeptFiles, *, is_dry: bool) -> None:
        self._run, self._originals, self._is_dry = run, originals, is_dry
        self._errors: list[OmError] = []
        self.done: dict[str, tuple[ClientFile, ...]] = {}

    @property
    def changed(self) -> list[str]:
        """The clients for which a file is changed."""
        return [name for name, changes in self.done.items() if any(change.step != "keep" for change in changes)]

    def make(self, names: Collection[str], plan: Plan, write: Callable[[Collection[ClientFile]], None]) -> None:
        """Make the changes for each client, unless this is a dry run, and print them."""
        with nullcontext() if self._is_dry else self._originals.locked():
            planned: set[Path] = set()
            for name in names:
                try:
                    # A file that several clients read is changed only for the first one.
                    changes = tuple(change for change in plan(name) if change.path not in planned)
                    if not self._is_dry:
                        write(changes)
                except OmError as error:
                    self._run.console.error(error, about=name)
                    self._errors.append(error)
                else:
                    self._print(changes)
                    self.done[name] = changes
                    planned.update(change.path for change in changes)

    def _print(self, changes: Collection[ClientFile]) -> None:
        if self._run.json:
            return
        for change in changes:
            if change.step == "keep":
                continue
            events = f"  ({', '.join(change.events)})" if change.events else ""
            self._run.output.line(f"{change.step:<7}  {change.path}{events}")
            for command in change.replaced:
                self._run.output.line(f"         without `{command}`")

    def report(self, **more: object) -> None:
        """Print all changes as JSON if asked for, and say so if this was a dry run."""
        if self._run.json:
            clients = {
                name: [
                    {
                        "path": str(change.path),
                        "step": change.step,
                        "events": list(change.events),
                        "replaced": list(change.replaced),
                    }
                    for change in changes
                ]
                for name, changes in self.done.items()
            }
            self._run.output.document({**more, "clients": clients, "dry_run": self._is_dry})
        if self._is_dry:
            self._run.console.note("dry run: nothing was changed")

    def end(self) -> None:
        """Raise Exit with the code of the first error, if there was one."""
        if self._errors:
            raise Exit(self._errors[0].exit_code)


def _chosen(names: list[str] | None, all_names: Collection[str], *, is_all: bool) -> tuple[str, ...]:
    """Return the clients in their usual order. Raise BadUsage for no name, an unknown name, or names with `--all`."""
    known = f"one of {', '.join(CLIENTS)}"
    if is_all and names:
        raise BadUsage("`--all` excludes names of clients", hint=known)
    if not is_all and not names:
        raise BadUsage("no client given", hint=f"{known}, or `--all`")
    unknown = [name for name in names or () if name not in CLIENTS]
    if unknown:
        raise BadUsage(f"unknown client `{unknown[0]}`", hint=known)
    return tuple(name for name in CLIENTS if name in (all_names if is_all else names or ()))


def _kept_files() -> KeptFiles:
    from omcli.clients.files import KeptFiles
    from omcli.processes import state_folder

    return KeptFiles(Path(state_folder(os.environ), "install"))


def _om() -> tuple[str, ...]:
    """Return the words that start this `om`: its program, or its Python with the module. Raise BadUsage if a hook
    cannot have such words.
    """
    from omcli.wiring.scheduling import om_command

    words = om_command()
    beside = Path(sys.executable).with_name("om")
    if Path(words[0]).name != "om" and os.access(beside, os.X_OK):
        words = (str(beside),)
    elif len(words) == 1 and Path(words[0]).name != "om":
        words = (sys.executable, "-P", "-m", "omcli")
    for word in words:
        if not word.isprintable():
            raise BadUsage(f"{word!r} cannot be part of a hook", hint="it has characters that are not printable")
    return words


def _print_notes(run: Run, om: tuple[str, ...], *, is_project: bool) -> None:
    program = Path(om[0])
    if program.is_relative_to(os.environ.get("TMPDIR") or "/tmp"):  # noqa: S108 - nothing is written there
        run.console.note(f"hooks run {program}, in a folder for temporary files; install om elsewhere")
    elif (program.parents[1] / "pyvenv.cfg").exists():
        run.console.note(
            f"hooks run {program}, as long as that virtual environment is there; pipx or uv tool lasts longer"
        )
    if shutil.which("om") is None:
        run.console.note("`om` is not on PATH: hooks work, but agents cannot look anything up")
    if is_project:
        run.console.note("the files name the path of om on this machine, so keep them out of the repository")


def _print_folder(run: Run) -> None:
    from omcli.clients.install import DATA

    folder = str(DATA / "claude-code")
    if run.json:
        run.output.document({"plugin": folder})
    else:
        run.output.line(folder)


# ---- regular maintenance

_EXAMPLES_OF_SCHEDULE = """\b
om schedule --cron
om schedule --systemd --at 04:30 --install
om schedule --systemd --every 15m --install
om schedule --launchd --remove --dry-run
"""


@with_shared(examples=_EXAMPLES_OF_SCHEDULE)
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
    remove: Annotated[bool, option("--remove", help="Remove the jobs that om installed with this scheduler.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run `om consolidate` every day.

    Prints the job, or installs or removes it. Name the scheduler with --cron, --systemd or --launchd. The job runs this
    `om` with the same store, preset, counter and configuration. It never contains API keys. Put them into the file
    `env` in om's configuration folder, one NAME='VALUE' per line, and keep that file private (chmod 600).

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
