"""What a run goes by: flags before `OM_*` variables, the project's file, the user's, the preset, the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omcli.memory.record import record
from omcli.settings.files import is_there, project_file, user_file
from omcli.settings.settings import Settings

PREFIX = "OM_"
FLAG = "flag"
"""Who says what the command line says."""
# What most runs are given, if anything: it needs no looking up.
_PLAIN_FLAGS = {"db", "wait"}
_PLAIN_VARIABLE = "OM_DB"


@record
class Files:
    """Where a run looks for configuration."""

    user: Path
    is_named: bool
    """The user's own is one that was asked for, and has to be there."""
    project: Path | None
    """The project's, if it has one."""

    @property
    def user_is_there(self) -> bool:
        """Whether there is anything to read of the user's."""
        return self.is_named or is_there(self.user)


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
    flag names and for a file that was asked for and cannot be read, BadUsage for a flag that makes no sense.
    """
    asked = {key: value for key, value in flags.items() if value is not None}
    variables = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text.strip()}
    found = files(environment, config)
    nothing_else = asked.keys() <= _PLAIN_FLAGS and variables.keys() <= {_PLAIN_VARIABLE}
    if nothing_else and not found.user_is_there and found.project is None:
        return _plain(asked, variables.get(_PLAIN_VARIABLE))

    from omcli.settings.layers import Layers  # noqa: PLC0415

    return Layers(flags=asked, variables=variables, files=found).settings()


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
