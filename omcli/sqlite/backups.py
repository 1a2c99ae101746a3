"""Backups of the store: copies beside it that were looked through, and the newest few of them."""

from __future__ import annotations

import time
from pathlib import Path

from omcli.base.errors import InputOutput
from omcli.memory.ports import Backups
from omcli.memory.retention import Backup, BackupResult, backups_among, is_due, label, surplus
from omcli.sqlite.connection import PARTIAL, is_sound, remove, snapshot_beside
from omcli.sqlite.database import Table

_DEAD_AFTER = 86_400
"""Seconds after which nobody works on an unfinished copy any more."""


class SqliteBackups(Table, Backups):
    """Copies of the store's file beside it."""

    def snapshot(self, *, now: str) -> str:
        with self._database.explained():
            return str(snapshot_beside(self._database.path, label(now), wait=self._database.wait))

    def back_up(self, *, keep: int, now: str) -> BackupResult:
        # None is removed before a newer one has passed: where the copy cannot be made, or is damaged, all stay.
        path = self._database.path
        made = None
        with self._database.explained():
            if is_due(_beside(path), now):
                made = snapshot_beside(path, label(now), wait=self._database.wait, thorough=True)
                _sweep(path)
            return BackupResult(path=str(made) if made else None, removed=_thinned(path, made, keep=keep, now=now))

    def is_due(self, *, now: str) -> bool:
        path = self._database.path
        return path.exists() and is_due(_beside(path), now)


def _thinned(path: Path, made: Path | None, *, keep: int, now: str) -> tuple[str, ...]:
    """Removes the oldest; where none was made just now, only if the newest of those that stay is sound."""
    found = _beside(path)
    gone = [path.with_name(backup.name) for backup in surplus(found, keep=keep, now=now)]
    if made is None and gone:
        staying = [path.with_name(backup.name) for backup in found]
        newest = next(backup for backup in reversed(staying) if backup not in gone)
        if not is_sound(newest):
            return ()
    gone = [backup for backup in gone if backup != made]
    for backup in gone:
        try:
            remove(backup)
        except OSError as error:
            raise InputOutput(f"cannot remove the old backup {backup}: {error.strerror}") from error
    return tuple(map(str, gone))


def _beside(path: Path) -> tuple[Backup, ...]:
    return backups_among(_names(path), path.name)


def _names(path: Path) -> list[str]:
    try:
        return [file.name for file in path.parent.iterdir()]
    except OSError as error:
        raise InputOutput(f"cannot look for backups beside {path}: {error.strerror}") from error


def _sweep(path: Path) -> None:
    """Removes copies that a killed run left half done."""
    for name in _names(path):
        whole = name.removesuffix(PARTIAL)
        if whole == name or not backups_among([whole], path.name):
            continue
        partial = path.with_name(name)
        if time.time() - partial.stat().st_mtime > _DEAD_AFTER:
            remove(partial)
