"""The configuration files: the user's own and the project's, where they lie and how they are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omcli.memory.errors import BadConfiguration

PROJECT_FILE = ".om.toml"
_LARGEST = 1_000_000
"""Bytes of a file that somebody may have written by hand."""


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


def is_there(path: Path) -> bool:
    """Whether there is something by this name, be it readable or not."""
    return os.path.lexists(path)


def read(path: Path) -> dict[str, Any]:
    """What a file says. Raises BadConfiguration where it cannot be read or is no TOML."""
    import tomllib  # noqa: PLC0415 - most runs have no file

    try:
        if not path.is_file():
            raise BadConfiguration(f"{path}: there is no such file")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise BadConfiguration(f"{path}: it has more than {_LARGEST} bytes")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise BadConfiguration(f"{path}: it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(f"{path}: it is no TOML: {error}") from None
