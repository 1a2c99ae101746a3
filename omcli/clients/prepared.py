"""Packs for sessions that are about to start, prepared after the last change of the store.

Most of the time between the start of a hook and its answer goes into loading the code that reads a store and makes a
pack. So the text of a pack is kept in a small file of the user's state folder, with the state of everything that it
depends on: the files of the store, the variables and the files of settings. If any of them differs, the pack is made
again.
"""

import json
import os
from time import time

import omcli
from omcli.processes import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_LASTS = 86_400
"""Seconds after which a pack is made again. All rows fade alike, so their order changes little in a day."""
_PRIME = (1 << 61) - 1
"""Divisor that gives folders short names: loading a library for checksums takes longer than finding the pack."""
_VARIABLES = (
    *("OM_CONFIG", "OM_CONTEXT_", "OM_COUNTER", "OM_DB", "OM_DISABLED", "OM_EFFECTIVE_CONTEXT", "OM_ENABLED"),
    *("OM_HOOK_", "OM_MEMORY", "OM_NOTATION", "OM_PRESET", "OM_SCOPE", "OM_WAIT", "XDG_", "HOME"),
)
"""Beginnings of the variables that a pack depends on. Others, such as those for models, may hold secrets."""


def find(client: str, folder: str, environment: "Mapping[str, str]") -> str | None:
    """Return the pack for a new session in a folder, "" if it is empty, or None if it has to be made."""
    kept = _kept(client, folder, environment)
    holds = kept is not None and kept["store"] == store_state(kept["db"]) and 0 <= time() - kept["at"] < _LASTS
    return kept["text"] if kept is not None and holds else None


def has_settings(client: str, folder: str, environment: "Mapping[str, str]") -> bool:
    """Return True if a pack was kept under the settings that hold now, whether or not the store has changed."""
    return _kept(client, folder, environment) is not None


def keep(
    client: str,
    folder: str,
    environment: "Mapping[str, str]",
    *,
    config: str,
    db: str,
    state: object,
    text: str,
) -> None:
    """Keep the pack for sessions that will start in `folder`. `config` and `db` are the paths of the user's file of
    settings and of the store. `state` is the store's `store_state` before the pack was made: if it has changed since,
    or the pack cannot be written, the pack is not kept.
    """
    if state != store_state(db):
        return
    files = {path: _state(path) for path in (config, *_of_project(folder))}
    kept = {"given": _given(client, folder, environment), "files": files, "db": db, "store": state}
    kept |= {"at": time(), "text": text}
    path = _file(client, folder, environment)
    unfinished = f"{path}.{os.getpid()}"
    try:
        for above in (state_folder(environment), os.path.dirname(path)):  # the mode is that of the last folder made
            os.makedirs(above, mode=0o700, exist_ok=True)
        stream = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(stream, "w", encoding="utf-8", errors="backslashreplace") as lines:
            json.dump(kept, lines)
        os.replace(unfinished, path)
    except OSError:
        _remove(unfinished)
    else:
        _remove_stale(os.path.dirname(path))


def clear(environment: "Mapping[str, str]") -> None:
    """Delete all packs, because something in them was forgotten. Raise OSError if one cannot be deleted."""
    folder = os.path.dirname(_file("", "", environment))
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        os.unlink(os.path.join(folder, name))


def _remove_stale(folder: str) -> None:
    """Delete packs that are too old to be used, such as those of folders that are gone."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        state = _state(path)
        if state is not None and state[2] / 1e9 < time() - _LASTS:
            _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def store_state(db: str) -> list[list[int] | None]:
    """Return the inode, size and time of a store's file and of its WAL. Every change of the store changes one of these.
    An empty WAL counts as none, because reading makes one.
    """
    wal = _state(f"{db}-wal")
    return [_state(db), wal if wal and wal[1] else None]


def _file(client: str, folder: str, environment: "Mapping[str, str]") -> str:
    number = int.from_bytes(folder.encode(errors="replace"), "big") % _PRIME
    return os.path.join(state_folder(environment), "packs", f"{client}-{number:016x}")


def _kept(client: str, folder: str, environment: "Mapping[str, str]") -> "dict[str, Any] | None":
    """Return the pack kept for a folder, with its dependencies; None if there is none or the settings may have changed
    since.
    """
    try:
        with open(_file(client, folder, environment), encoding="utf-8") as stream:
            kept: dict[str, Any] = json.load(stream)
        is_whole = kept.keys() >= {"db", "store", "at"} and isinstance(kept["text"], str)
        same = is_whole and kept["given"] == _given(client, folder, environment)
        return kept if same and all(_state(path) == look for path, look in kept["files"].items()) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _given(client: str, folder: str, environment: "Mapping[str, str]") -> dict[str, object]:
    """Return all that a pack depends on, apart from files, as JSON values."""
    variables = {name: value for name, value in environment.items() if name.startswith(_VARIABLES)}
    return {"om": omcli.__version__, "client": client, "folder": folder, "variables": variables}


def _of_project(folder: str) -> "Iterator[str]":
    """Yield the paths that decide which project's file holds in a folder."""
    while True:
        yield os.path.join(folder, ".om.toml")
        yield os.path.join(folder, ".git")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _state(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns]  # the second one is used above
