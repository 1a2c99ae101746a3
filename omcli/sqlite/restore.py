"""Putting a backup in the place of a store, also of a damaged one."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from omcli.base.errors import BadInput, InputOutput, OmError, StoreLocked, UnusableStore
from omcli.base.record import record
from omcli.sqlite.backups import backup_files, copy_to, fault, label, remove, snapshot_of, unfinished_of
from omcli.sqlite.connection import APPLICATION_ID, check_version, connect, create, log_files, steps
from omcli.sqlite.dialect import BUSY, om_errors

_PAUSE = 0.05
_HEADER, _APPLICATION = 100, slice(68, 72)
"""Number of bytes in the header of a SQLite file, and the place of the application's id in it."""


@record
class RestoreResult:
    """The result of putting a backup in the place of a store."""

    backup: Path | None
    """The backup; None if there was no sound one, so that the next write creates a new store."""
    kept: Path | None
    """The file with the store's earlier content, or None if there was no store."""


def restore(path: Path, backup: Path, *, now: str, wait: float) -> RestoreResult:
    """Replace the content of the store by that of a backup. Other processes may use the store meanwhile.

    A sound store is copied first, as `snapshot` does. A damaged one is moved aside. Raise BadInput if the backup is
    damaged, empty, in use or the store itself, UnusableStore if it or the store is not om's, NewerStore if a later
    version wrote the backup, and StoreLocked if another process is writing.
    """
    with om_errors(path, wait=wait):
        log, _ = log_files(backup)
        found = "it is the store itself" if path.exists() and path.samefile(backup) else _fault_of_backup(backup)
        if found is None and log.exists() and log.stat().st_size:
            found = "it has a write-ahead log beside it, so it is in use or lacks its last changes"
        if found is not None:
            raise BadInput(f"{backup} cannot be restored: {found}", hint="`om restore --list` lists the backups")
        if not path.exists():
            _copy_over(path, backup, wait=wait)
            return RestoreResult(backup=backup, kept=None)
        if _fault_of(path, wait=wait) is not None:
            if not _is_of_om(path):
                raise UnusableStore(f"{path} is not a store", hint="move it out of the way, or name another with --db")
            return _replaced(path, [backup], now=now, wait=wait) or restore(path, backup, now=now, wait=wait)
        kept = snapshot_of(path, label(now), wait=wait)
        _copy_over(path, backup, wait=wait)
        return RestoreResult(backup=backup, kept=kept)


def replace_damaged(path: Path, *, now: str, wait: float) -> InputOutput | None:
    """Move a damaged store aside, with its write-ahead log, and put the newest sound backup in its place. Return the
    error that says so. Return None, and change nothing, if the store is sound or missing, if it may be the database of
    another program, or if it cannot be checked or replaced: the error that the caller has met tells why.
    """
    with suppress(OSError, OmError), om_errors(path, wait=wait):
        if not path.is_file():
            return None
        done = _replaced(path, [backup.path for backup in reversed(backup_files(path))], now=now, wait=wait)
        if done is not None:
            return InputOutput(
                f"{path} was damaged: it is kept as {done.kept}, and "
                f"{f'its backup {done.backup.name} is in its place' if done.backup else 'a new one will be created'}",
                hint="run the command again; `om consolidate` reads transcripts again that the backup lacks",
            )
    return None


def _replaced(path: Path, backups: Sequence[Path], *, now: str, wait: float) -> RestoreResult | None:
    path = Path(os.path.realpath(path))  # SQLite keeps its log beside the file that a link leads to
    with _only_one(path, wait=wait) as is_there:
        if not is_there or not _is_of_om(path) or _fault_of(path, wait=wait) is None:
            return None
        backup = next(filter(_is_whole, backups), None)
        unfinished = unfinished_of(path)
        remove(unfinished)
        if backup is not None:
            copy_to(backup, unfinished, wait=wait, immutable=True)
        kept = _moved(path, f"corrupted-{label(now)}")
        if backup is not None:
            unfinished.replace(path)
        else:
            path.unlink()
    return RestoreResult(backup=backup, kept=kept)


def _moved(path: Path, name: str) -> Path:
    """Give a damaged store a second name, and move its write-ahead log there, so that no new store takes the log for
    its own. The first name stays until the caller replaces it. So if the process is killed, the store is still there.
    """
    for number in count(1):
        kept = path.with_name(f"{path.name}.{name}{f'-{number}' if number > 1 else ''}")
        with suppress(FileExistsError):
            os.link(path, kept)
            for mine, theirs in zip(log_files(path), log_files(kept), strict=True):
                with suppress(FileNotFoundError):
                    mine.rename(theirs)
            return kept
    raise AssertionError


@contextmanager
def _only_one(path: Path, *, wait: float) -> Iterator[bool]:
    """Let only one process at a time replace a damaged store. Yield False if the file is gone or was replaced. Raise
    StoreLocked if another process holds it for longer than `wait` seconds.
    """
    until = time.monotonic() + wait
    try:
        stream = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        while not _locked(stream):
            if time.monotonic() > until:
                raise StoreLocked(f"another process holds {path} (waited {wait:g} s)", hint="try again later")
            time.sleep(_PAUSE)
        try:
            is_there = os.path.samestat(os.fstat(stream), path.stat())
        except FileNotFoundError:
            is_there = False
        yield is_there
    finally:
        os.close(stream)


def _locked(stream: int) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _copy_over(path: Path, backup: Path, *, wait: float) -> None:
    """Copy a backup into a store in one transaction, so that other processes see the old content or the new."""
    until = time.monotonic() + wait

    def check_wait(status: int, _remaining: int, _pages: int) -> None:
        if status in BUSY and time.monotonic() > until:
            raise StoreLocked(f"another process is using {path} (waited {wait:g} s)", hint="try again later")

    create(path)
    source = connect(backup, "ro", wait=wait, immutable=True)
    with closing(source), closing(connect(path, "rw", wait=wait)) as target:
        source.backup(target, progress=check_wait, sleep=0.05)


def _fault_of(path: Path, *, wait: float = 0, immutable: bool = False) -> str | None:
    """Return the first fault of a store's file, or None if it is sound. Raise UnusableStore if it is not om's or a
    later version wrote it, and sqlite3.Error if it cannot be read.
    """
    try:
        with closing(connect(path, "ro", wait=wait, immutable=immutable)) as connection:
            check_version(connection, path=path, newest=len(steps()))
            return fault(connection)
    except sqlite3.DatabaseError as error:
        # Anything else is not damage: the disk may fail to read, or the file may be locked.
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return str(error)


def _fault_of_backup(backup: Path) -> str | None:
    """Return the first fault of a backup, or None if it is sound. Raise as `_fault_of` does."""
    return _fault_of(backup, immutable=True) or (None if _is_of_om(backup) else "it is empty")


def _is_whole(backup: Path) -> bool:
    """Return True for a backup that can be put back by this program."""
    try:
        return _fault_of_backup(backup) is None
    except (OSError, sqlite3.Error, OmError):
        return False


def _is_of_om(path: Path) -> bool:
    """Return True if the header of a file says that om wrote it."""
    with path.open("rb") as stream:
        header = stream.read(_HEADER)
    return int.from_bytes(header[_APPLICATION], "big") == APPLICATION_ID
