"""Scheduled runs of `om`: building a command line that repeats the settings of this run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.errors import BadConfiguration, BadUsage
from omcli.processes import state_folder
from omcli.schedules.job import Job, When, check
from omcli.settings.settings import ServerUrl

if TYPE_CHECKING:
    from omcli.settings.settings import Files, Settings

_PASSED = ("db", "preset", "counter", "wait")
"""Settings passed on as flags with the same names."""
_KEYS = re.compile(r"OM_[A-Z_]+|ANTHROPIC_[A-Z_]+|OPENAI_[A-Z_]+|[A-Z]+_API_KEY")
"""Variables that a scheduled run would lack, apart from `_OTHERWISE`."""
_OTHERWISE = {"OM_CONFIG", "OM_DISABLED", *(f"OM_{key.upper()}" for key in _PASSED)}
_SECONDS = 60


def job(name: str, when: When, settings: Settings, files: Files) -> Job:
    """Return a job for the scheduler: the command `name` of om, with this run's store and configuration files.

    Settings in `_PASSED` are passed on as flags if a flag or variable sets them. Other flags and variables are not
    passed on; configuration files are read again. Raise BadUsage if a file name cannot be used in a schedule.
    """
    from omcli.settings import user_file

    made = Job(
        name=name,
        command=(*om_command(), name, *_options(settings, files), *(("-q",) if name == "tick" else ())),
        when=when,
        keys=user_file(os.environ).parent.absolute() / "env",
        logs=Path(state_folder(os.environ)),
    )
    check(made)
    return made


def om_command() -> tuple[str, ...]:
    """Return the words that start this `om`: its script, or its Python with the module."""
    script = Path(sys.argv[0]).absolute()
    if script.name != "__main__.py" and script.is_file() and os.access(script, os.X_OK):
        return (str(script),)
    return (sys.executable, "-P", "-m", "omcli")


def try_out(job: Job) -> None:
    """Run `om --version` as a scheduler would, with almost no environment. Raise BadConfiguration if that fails."""
    words = (*om_command(), "--version")
    try:
        process = subprocess.run(
            words, env={"HOME": _user_folder()}, cwd="/", capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadConfiguration(f"{job.command[0]} cannot be started by others: {error}") from error
    if process.returncode:
        said = process.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
        raise BadConfiguration(
            f"{job.command[0]} cannot be started by others: {said[-1]}", hint="install om, and run that one"
        )


def missing_keys(environment: Mapping[str, str], keys: Path) -> list[str]:
    """Return the variables that a scheduled run would lack: they are set now but not in the key file."""
    try:
        text = keys.read_text("utf-8", errors="replace")
    except OSError:
        text = ""
    there = set(re.findall(r"^\s*(?:export\s+)?(\w+)=", text, re.MULTILINE))
    return sorted(name for name in environment if _KEYS.fullmatch(name) and name not in there | _OTHERWISE)


def is_open(keys: Path) -> bool:
    """Return True if other users have any access to the key file, and False if it is missing or cannot be looked at."""
    try:
        return bool(keys.stat().st_mode & 0o077)
    except OSError:
        return False


def _options(settings: Settings, files: Files) -> list[str]:
    """Return flags for the settings in `_PASSED` that flags or variables set, and for files that would not be found
    without this environment.
    """
    said = {key: settings.origin(key) for key in _PASSED}
    flags = []
    for key, by in said.items():
        is_moved = key == "db" and by == "default" and "XDG_DATA_HOME" in os.environ
        if by == "flag" or by.startswith("OM_") or is_moved:
            value = getattr(settings, key)
            if isinstance(value, ServerUrl):
                value = _visible_url(value)
            flags += [f"--{key}", str(value.absolute() if isinstance(value, Path) else _plain(value))]
    if files.is_named or (files.has_user_file and "XDG_CONFIG_HOME" in os.environ):
        flags += ["--config", str(files.user.absolute())]
    return flags


def _visible_url(url: ServerUrl) -> str:
    """Return a URL for a command line that other users can see. Raise BadUsage if it has a password."""
    if url.has_secret:
        raise BadUsage(
            "the URL of the store has a password, which everyone would see in a schedule",
            hint="put the password into ~/.pgpass, or the URL into your file: `om config set db URL`",
        )
    return url.url


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _user_folder() -> str:
    return os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises if there is none
