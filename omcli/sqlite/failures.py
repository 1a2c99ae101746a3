"""What SQLite says went wrong, as om's errors: the one place that reads its error codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omcli.base.errors import BadConfiguration, CannotCreate, InputOutput, OmError, StoreLocked

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT})
_NO_INDEX = frozenset({sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP})
"""The index of the log cannot be made: on a full disk, for one."""


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds a lock: waiting helps."""
    return _code(error) in _BUSY


def is_unopenable(error: sqlite3.Error) -> bool:
    """Whether the file, or one of those SQLite keeps beside it, could not be opened or made."""
    return _code(error) in {sqlite3.SQLITE_CANTOPEN, *_UNWRITABLE} or error.sqlite_errorcode in _NO_INDEX


def explanation(error: sqlite3.Error, *, path: Path, wait: float, reading: bool = False) -> OmError | None:
    """The error to raise instead, or None where the failure is a fault of the program and not of its surroundings."""
    code = _code(error)
    if code in _BUSY:
        return StoreLocked(
            f"another process is writing to {path} (waited {wait:g} s)", hint="try again, or wait longer with --wait"
        )
    if code == sqlite3.SQLITE_FULL:
        return InputOutput(
            f"no room to write to {path}",
            hint="free some space on that disk and try again; what was stored before is whole",
        )
    if code in _UNWRITABLE:
        return InputOutput(f"{path} cannot be written", hint="check the permissions of the file and of its folder")
    if code == sqlite3.SQLITE_IOERR:
        return InputOutput(f"reading or writing {path} failed: {error}", hint="check the disk and its free space")
    if code in _DAMAGED:
        return InputOutput(f"{path} is damaged: {error}", hint="keep a copy of it, then restore a backup")
    if code == sqlite3.SQLITE_NOTADB:
        return BadConfiguration(f"{path} is not a store", hint="name another file with --db")
    if code == sqlite3.SQLITE_CANTOPEN:
        kind = InputOutput if reading or path.is_file() else CannotCreate
        return kind(f"{path} cannot be opened", hint="check the permissions of the file and of its folder")
    return None


@contextmanager
def explained(path: Path, *, wait: float, reading: bool = False) -> Iterator[None]:
    """Raises om's errors for what SQLite raises inside."""
    try:
        yield
    except sqlite3.Error as error:
        told = explanation(error, path=path, wait=wait, reading=reading)
        if told is None:
            raise
        raise told from error


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 where the error comes from Python's module and not from SQLite."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
