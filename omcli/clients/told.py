"""Ids of the rows that hooks have shown to a session, so that an answer to a prompt repeats none of them.

There is one small file for each session in the user's state folder. Without it, rows may be shown again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import time

from omcli.processes import state_folder
from omcli.text.hashes import hash_of

_KEPT = 30 * 86_400
"""Seconds since its last change after which a file is deleted."""


def told(session: str, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the ids of the rows that were shown to the session."""
    with suppress(OSError):
        return frozenset(_file(session, environment).read_text(encoding="ascii", errors="replace").split())
    return frozenset()


def add_told(session: str, rows: Iterable[str], environment: Mapping[str, str], *, anew: bool = False) -> None:
    """Record that these rows were shown to the session. With `anew`, they replace the rows recorded before, and old
    files are deleted. Raise OSError if the rows cannot be written.
    """
    file = _file(session, environment)
    for folder in (file.parent.parent, file.parent):  # the mode is that of the last folder made
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if anew:
        _remove_stale(file.parent)
    stream = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if anew else os.O_APPEND), 0o600)
    with os.fdopen(stream, "w", encoding="ascii") as lines:
        lines.writelines(f"{row}\n" for row in rows)


def _file(session: str, environment: Mapping[str, str]) -> Path:
    return Path(state_folder(environment), "told", f"{hash_of(session):016x}")


def _remove_stale(folder: Path) -> None:
    for file in folder.iterdir():
        with suppress(OSError):
            if file.stat().st_mtime < time() - _KEPT:
                file.unlink()
