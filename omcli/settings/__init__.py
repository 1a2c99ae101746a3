"""Resolving settings: options, then `OM_*` variables, the project's file, the user's file, the preset, the defaults."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.base import lazily
from omcli.base.errors import BadConfiguration, BadUsage, OmError
from omcli.base.record import replace
from omcli.settings.settings import FLAG, PREFIX, Files, ServerUrl, Settings, exists, expanded, place_of

PROJECT_FILE = ".om.toml"
_PI_FILE = "memory.json"
# Most runs set only these, and their values need no parsing.
_PLAIN_FLAGS = {"db", "wait"}
_PLAIN_VARIABLE = "OM_DB"
_URL = lazily(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def files(environment: Mapping[str, str], config: Path | None = None, folder: Path | None = None) -> Files:
    """Return the configuration files of a run. `config`, or otherwise `OM_CONFIG`, replaces the user's file, and
    `folder` the current directory.
    """
    named = environment.get("OM_CONFIG", "")
    if config is None and named:
        config = expanded(named)
    pi_user = Path(os.path.expanduser("~"), ".pi", "agent", _PI_FILE)  # noqa: PTH111 - Path.home() raises if there is none
    return Files(
        user=config or user_file(environment),
        is_named=config is not None,
        project=project_file(folder),
        pi_user=pi_user if exists(pi_user) else None,
        pi_project=_pi_project_file(folder),
    )


def resolve(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    config: Path | None = None,
    folder: Path | None = None,
) -> Settings:
    """Resolve all settings. `flags` are values by key; None means not given. `folder` replaces the current directory.

    Invalid values in variables and files, unknown keys in files, and files that cannot be read are ignored with a
    warning; unknown variables are ignored silently.

    Raise BadConfiguration if a flag names an unknown preset, if a file given explicitly cannot be read, or if a
    variable or file gives a path that cannot be the store's. Raise BadUsage if a flag has an invalid value or an
    unknown key.
    """
    asked = {key: value for key, value in flags.items() if value is not None}
    if isinstance(name := asked.get("db"), str):
        asked["db"] = place_of(name)
    variables = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text.strip()}
    found = files(environment, config, folder)
    nothing_else = asked.keys() <= _PLAIN_FLAGS and variables.keys() <= {_PLAIN_VARIABLE}
    if nothing_else and not found.has_user_file and found.project is None:
        return _with_store(_plain(asked, variables.get(_PLAIN_VARIABLE)))

    from omcli.settings.layers import Layers  # noqa: PLC0415

    return _with_store(Layers(flags=asked, variables=variables, files=found).settings(default_store=default_store))


def _with_store(settings: Settings) -> Settings:
    """Return the settings with the path of the store expanded. If it cannot be the path of a file or the URL of a
    database, raise BadUsage for an option, otherwise BadConfiguration.
    """
    db, by = settings.db, settings.origin("db")
    if isinstance(db, ServerUrl):
        if not (fault := db.fault):
            return settings
        raise _bad_store(by, f"{db.url.partition('//')[0]}//…", fault, "`%40` is `@` and `%2F` is `/` in a password")
    path = expanded(db)
    shown, hint = str(db), "the store is a file: name its path"
    wrong = "names a folder" if path.name in ("", "..") else ""
    if url := _URL.match(shown):  # `Path` has removed a slash; not shown whole, because it may contain a password
        wrong, shown = "is a URL", f"{url[0]}/…"
        hint = "name the path of a file, or a database as postgresql://user@host/database"
    elif shown == ":memory:" or shown.startswith("file:"):  # SQLite's names for databases that may not be files
        wrong, hint = "is not a path", "a store in memory would end with the command: name the path of a file"
    if path.parts[:1] and path.parts[0].startswith("~"):
        wrong = "names an unknown user"
    if wrong:
        raise _bad_store(by, shown, wrong, hint)
    return settings if path == db else replace(settings, db=path)


def _bad_store(by: str, shown: str, wrong: str, hint: str) -> OmError:
    error = BadUsage if by == FLAG else BadConfiguration
    return error(f"`{'--db' if by == FLAG else by} {shown}` {wrong}", hint=hint)


def _plain(asked: Mapping[str, object], store: str | None) -> Settings:
    """Return the defaults with the values of flags and the path of the store, which need no parsing."""
    values = dict(asked)
    origins = dict.fromkeys(asked, FLAG)
    if "db" not in asked:
        values["db"] = place_of(store) if store else default_store()
        origins |= {"db": _PLAIN_VARIABLE} if store else {}
    return Settings(**values, origins=origins)  # type: ignore[arg-type]


def default_store() -> Path:
    """Return the path of `memory.db` in the user's data folder for `om`."""
    # Imported here because it takes 3 ms, which a run with `--db` saves.
    from platformdirs import user_data_path  # noqa: PLC0415

    return user_data_path("om", appauthor=False) / "memory.db"


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of `config.toml` in the user's configuration folder for `om`; it may not exist."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # The same result as platformdirs, which would take 3 ms of every run.
        folder = environment.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")  # noqa: PTH111
        return Path(folder, "om", "config.toml")
    from platformdirs import user_config_path  # noqa: PLC0415

    return user_config_path("om", appauthor=False) / "config.toml"


def kept_code_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of compiled patterns in the user's cache folder for `om`; it may not exist."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # The same result as platformdirs, which would take 3 ms of every run.
        folder = environment.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")  # noqa: PTH111
        return Path(folder, "om", "patterns")
    from platformdirs import user_cache_path  # noqa: PLC0415

    return user_cache_path("om", appauthor=False) / "patterns"


def is_off_in(folder: str, environment: Mapping[str, str]) -> bool:
    """Return True if a project file is in a folder or above it, and the settings there, without flags, disable writing.
    A relative path gives False.
    """
    path = Path(folder)
    has_file = path.is_absolute() and (project_file(path) or _pi_project_file(path)) is not None
    return has_file and resolve({}, environment, folder=path).disabled


def project_file(folder: Path | None = None) -> Path | None:
    """Return the nearest project file in the folder, by default the current directory, or above; None if there is none.

    The search ends at the root of a Git repository, and before the home directory, unless that is the folder itself.
    """
    return next((file for each in project_folders(folder) if exists(file := each / PROJECT_FILE)), None)


def _pi_project_file(folder: Path | None = None) -> Path | None:
    """Return pi's nearest `memory.json` for a project, which is searched for like the project file."""
    return next((file for each in project_folders(folder) if exists(file := each / ".pi" / _PI_FILE)), None)


def project_folders(here: Path | None = None) -> Iterator[Path]:
    """Yield the folder, by default the current directory, and its parents. Stop after the root of a Git repository, or
    before the home directory unless that is the folder.
    """
    try:
        here = here or Path.cwd()
    except OSError:
        return
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    for folder in (here, *here.parents):
        if folder == home and folder != here:
            return
        yield folder
        if os.path.lexists(folder / ".git"):
            return
