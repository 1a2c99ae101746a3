"""What a run goes by: flags before `OM_*` variables, the project's file, the user's, the preset, the defaults."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.settings.settings import FLAG, PREFIX, Files, Settings, is_there

PROJECT_FILE = ".om.toml"
# What most runs are given, if anything: it needs no looking up.
_PLAIN_FLAGS = {"db", "wait"}
_PLAIN_VARIABLE = "OM_DB"


def files(environment: Mapping[str, str], config: Path | None = None) -> Files:
    """The files of a run; `config`, or else `OM_CONFIG`, names another one than the user's own."""
    named = environment.get("OM_CONFIG", "")
    if config is None and named:
        config = Path(named).expanduser()
    return Files(user=config or user_file(environment), is_named=config is not None, project=project_file())


def resolve(flags: Mapping[str, object], environment: Mapping[str, str], *, config: Path | None = None) -> Settings:
    """Settles every setting. `flags` are values by key, None where the command line is silent.

    What makes no sense in a variable or a file is left out, with a warning, and the preset's value holds. Unknown keys
    of files are warned of; unknown variables are somebody else's. Raises BadConfiguration for an unknown preset that a
    flag names and for a file that was asked for and cannot be read, BadUsage for a flag that makes no sense, or that
    there is no key for.
    """
    asked = {key: value for key, value in flags.items() if value is not None}
    variables = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text.strip()}
    found = files(environment, config)
    nothing_else = asked.keys() <= _PLAIN_FLAGS and variables.keys() <= {_PLAIN_VARIABLE}
    if nothing_else and not found.user_is_there and found.project is None:
        return _plain(asked, variables.get(_PLAIN_VARIABLE))

    from omcli.settings.layers import Layers  # noqa: PLC0415

    return Layers(flags=asked, variables=variables, files=found).settings(default_store=default_store)


def _plain(asked: Mapping[str, object], store: str | None) -> Settings:
    """The defaults, with what needs no more than to be put there."""
    values = dict(asked)
    origins = dict.fromkeys(asked, FLAG)
    if "db" not in asked:
        values["db"] = Path(store).expanduser() if store else default_store()
        origins |= {"db": _PLAIN_VARIABLE} if store else {}
    return Settings(**values, origins=origins)  # type: ignore[arg-type]


def default_store() -> Path:
    """`memory.db` in the user's data folder for `om`."""
    # 3 ms that a run with a store of its own need not pay.
    from platformdirs import user_data_path  # noqa: PLC0415

    return user_data_path("om", appauthor=False) / "memory.db"


def user_file(environment: Mapping[str, str]) -> Path:
    """Where the user's own file lies, or would: `config.toml` in the user's configuration folder for `om`."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # What platformdirs comes to as well, but that takes 3 ms of every run.
        folder = environment.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")  # noqa: PTH111
        return Path(folder, "om", "config.toml")
    from platformdirs import user_config_path  # noqa: PLC0415

    return user_config_path("om", appauthor=False) / "config.toml"


def project_file() -> Path | None:
    """The file of the project that the current directory is in: the nearest one above.

    The search ends with the root of a Git repository, and before the home directory: what lies there is of no project.
    """
    return next((folder / PROJECT_FILE for folder in _folders() if is_there(folder / PROJECT_FILE)), None)


def _folders() -> Iterator[Path]:
    try:
        here = Path.cwd()
    except OSError:
        return
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    for folder in (here, *here.parents):
        if folder == home and folder != here:
            return
        yield folder
        if os.path.lexists(folder / ".git"):
            return
