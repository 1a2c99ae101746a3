"""Checks of the settings and of the program itself: its Python, its SQLite, and another `om` on PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shutil import which
from sysconfig import get_path, get_preferred_scheme

from omcli import __version__
from omcli.doctor import DAY, Check, Doctor, Section, failure, pass_, shown, skip, warn
from omcli.processes import GUARD
from omcli.settings.layers import variable_name
from omcli.settings.settings import PREFIX
from omcli.settings.values import KEYS
from omcli.sqlite import checks
from omcli.wiring.policies import backups

_OWN_VARIABLES = {"OM_CONFIG", "OM_ENABLED", "OM_KEY", "OM_MEMORY", GUARD}
"""Variables of om that are not settings."""
_PACKAGE = "omcli"
_RETIRED = "observational-memory"
_SCRIPT = 4_000
"""Bytes of a program to read; a script of pip has a few hundred."""
_RECENT_BACKUP = 7 * DAY


def of_settings() -> Section:
    return {"settings": _settings, "variables": _unknown}


def of_system() -> Section:
    return {"python": _version, "sqlite": _sqlite, "path": _path}


def _settings(doctor: Doctor) -> Iterator[Check]:
    """Report values that were ignored, and thresholds that do not fit together."""
    said = doctor.settings
    if said.disabled:
        yield skip("settings", f"disabled by {said.origin('disabled')}: nothing new is remembered")
        return
    wrong = [failure("settings", warning, "om-config(5) lists all settings") for warning in said.warnings]
    wrong += _token_settings(doctor)
    yield from wrong
    if not wrong:
        files = [doctor.files.user if doctor.files.has_user_file else None, doctor.files.project]
        read = ", ".join(shown(file, doctor.environment) for file in files if file) or "no configuration file"
        yield pass_("settings", f"preset {said.preset}, {read}")


def _token_settings(doctor: Doctor) -> Iterator[Check]:
    said = doctor.settings
    for key, value in (("observe.tokens", said.observe.tokens), ("reflect.tokens", said.reflect.tokens)):
        if value is not None and value <= 0 and _is_chosen(doctor, key):
            yield failure(
                "settings",
                f"`{key} = {value}` from {said.origin(key)}: a model would be asked about every message",
                "set a number above 0",
            )
    tail, tokens = said.context.tail, said.observe.tokens
    is_chosen = _is_chosen(doctor, "context.tail") or _is_chosen(doctor, "observe.tokens")
    if is_chosen and tail is not None and tokens > 0 and 0 < tail <= tokens:
        yield warn(
            "settings",
            f"`context.tail = {tail}` is not above `observe.tokens = {tokens}`: messages may leave the tail of a pack"
            " before a model has observed them",
            "raise `context.tail` or lower `observe.tokens`",
        )


def _is_chosen(doctor: Doctor, key: str) -> bool:
    """Return True if the user has set this key. Values of presets are taken to be right."""
    return not doctor.settings.origin(key).startswith(("default", "preset "))


def _unknown(doctor: Doctor) -> Iterator[Check]:
    known = {*map(variable_name, KEYS), *_OWN_VARIABLES}
    unknown = sorted(name for name in doctor.environment if name.startswith(PREFIX) and name not in known)
    if unknown:
        yield skip("variables", f"unknown to om and ignored: {', '.join(unknown)}", "om-config(5) lists all settings")


def _version(doctor: Doctor) -> Iterator[Check]:
    number = ".".join(map(str, sys.version_info[:3]))
    yield pass_("python", f"om {__version__} with Python {number}, {shown(sys.executable, doctor.environment)}")


def _sqlite(doctor: Doctor) -> Iterator[Check]:
    found = checks.version()
    if not found.has_words:
        yield failure("sqlite", f"SQLite {found.number} has no full-text search (FTS5)", "use another Python")
        return
    text = f"SQLite {found.number} with full-text search"
    if not found.has_reset_bug or doctor.is_on_server:
        yield pass_("sqlite", text)
        return
    text += "; before 3.51.3, two writers at the same moment may damage a store, very rarely"
    is_new = not doctor.has_store or (checks.first_time(doctor.store.database) or "9") > doctor.ago(_RECENT_BACKUP)
    if is_new or _has_backup(doctor):
        yield pass_("sqlite", text)
    else:
        yield warn("sqlite", text, "keep backups: `om consolidate` makes and checks them")


def _has_backup(doctor: Doctor) -> bool:
    """Return True if a backup of the last week is kept."""
    since = doctor.wiring.clock.milliseconds() / 1000 - _RECENT_BACKUP
    return any(path.stat().st_mtime >= since for path in backups(doctor.path))


def _path(doctor: Doctor) -> Iterator[Check]:
    found = which("om", path=doctor.environment.get("PATH", ""))
    if found is None:
        yield pass_("path", "no other `om` on PATH")
    else:
        place, kind = shown(found, doctor.environment), kind_of(Path(found))
        if kind == _RETIRED:
            hint = f"`pip uninstall {_RETIRED}`, or put this om first; hooks run this one by its path"
            yield warn("path", f"`om` is {place}, the retired {_RETIRED}", hint)
        elif kind is not None and is_own(Path(found)):
            yield pass_("path", f"`om` is {place}")
        else:
            what = "another program" if kind is None else "another installation of om"
            yield warn("path", f"`om` is {place}, {what}", "put this om first; hooks run this one by its path")
    try:
        retired = distribution(_RETIRED)
    except PackageNotFoundError:
        return
    yield warn(
        "path", f"{_RETIRED} {retired.version} is installed beside om", f"`pip uninstall {_RETIRED}`, then reinstall om"
    )


def kind_of(program: Path) -> str | None:
    """Return the distribution that a program is a script of, ours or the retired one, or None for any other program.
    Only its first bytes are read; it is not run.
    """
    beginning = _beginning(program)
    if _PACKAGE.encode() in beginning:
        return _PACKAGE
    return _RETIRED if b"observational_memory" in beginning or _RETIRED.encode() in beginning else None


def is_own_start(words: Sequence[str]) -> bool:
    """Return True if words start the installation of om that runs. A shebang proves nothing: a project's file may have
    any shebang.
    """
    program, *module = words
    if module:
        is_python = program == sys.executable or _is_same(program, sys.executable)
        return is_python and module in (["-m", _PACKAGE], ["-P", "-m", _PACKAGE])
    folders = {get_path("scripts"), get_path("scripts", get_preferred_scheme("user"))}
    scripts = (sys.argv[0], *(os.path.join(folder, "om") for folder in folders))  # noqa: PTH118
    return os.path.realpath(program) in map(os.path.realpath, scripts)


def _is_same(program: str, other: str) -> bool:
    """Return True if these are names of one program in one folder. In a virtual environment, links lead elsewhere."""
    folders = {os.path.realpath(Path(each).parent) for each in (program, other)}
    return len(folders) == 1 and os.path.realpath(program) == os.path.realpath(other)


def read_by(script: Path) -> str | None:
    """Return the path of the program that runs a script, or None if it is not a script or cannot be read."""
    try:
        first = _beginning(script).partition(b"\n")[0].decode(errors="replace")
    except OSError:
        return None
    return first[2:].split()[0] if first.startswith("#!") and first[2:].split() else None


def _beginning(program: Path) -> bytes:
    """Return the first bytes of a program; nothing if it is not a regular file, since reading that may never end."""
    if not program.is_file():
        return b""
    with program.open("rb") as stream:
        return stream.read(_SCRIPT)


def is_own(script: Path) -> bool:
    """Return True if a program starts this installation of om: the running script, the running Python, or a script
    whose first line names that Python.
    """
    if str(script) == sys.executable or os.path.realpath(script) == os.path.realpath(sys.argv[0]):
        return True
    return read_by(script) == sys.executable
