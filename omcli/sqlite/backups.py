"""Copies of the store in its own folder, removal of everything after a moment from a private copy, and disk space."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

from omcli.base import ignore, telling
from omcli.base.errors import InputOutput, OmError, StoreLocked
from omcli.base.record import record
from omcli.memory.changes import CutResult
from omcli.memory.ports import Backups, Lane
from omcli.memory.retention import BackupResult
from omcli.sqlite.connection import connect, create, log_files, retry
from omcli.sqlite.dialect import NOWHERE, Table, om_errors

_UNFINISHED = ".partial"
"""Suffix of a copy's name until it is complete."""
_DEAD_AFTER = 600
"""Unfinished backups not written to for this long, in seconds, are considered abandoned. While SQLite copies, it writes
all the time.
"""
_FALSE_ALARM = "NULL value in aside_titles."
"""Beginning of the error that SQLite 3.40 reports for a sound table whose columns are not in the order of its key.
Stores with schema 8 or 9 have such a table.
"""
_MAX_FAULTS = 10_000
_PAGES = 2_000
"""Number of pages that are copied before a person is told."""
_PAUSE = 0.01


class SqliteBackups(Table, Backups):
    """Copies of the store's file in its own folder."""

    def snapshot(self, *, now: str) -> str | None:
        if self._database.path == NOWHERE:
            return None
        with self._database.om_errors():
            return str(snapshot_of(self._database.path, label(now), wait=self._database.wait))

    def back_up(self, *, keep: int, now: str) -> BackupResult:
        # Old backups are removed only after the new one has passed its check: if that fails, all are kept.
        path = self._database.path
        made = None
        with self._database.om_errors():
            if is_due(_backups(path), now):
                made = snapshot_of(path, label(now), wait=self._database.wait, thorough=True)
            _remove_unfinished(path)
            removed = _remove_surplus(path, made, keep=keep, now=now)
        return BackupResult(path=str(made) if made else None, removed=removed)

    def is_due(self, *, now: str) -> bool:
        path = self._database.path
        return path.exists() and is_due(_backups(path), now)


def copy_store(path: Path, name: str, *, wait: float) -> Path:
    """Copy the store to `<store>.<name>.bak` in its folder, replacing an older copy. Raise the errors of `copy_to`, and
    InputOutput instead of OSError.

    Nothing is replaced by an incomplete or damaged copy. Only the process that holds the store's lock may call this.
    """
    target = path.with_name(f"{path.name}.{name}.bak")
    with _copy_errors(path, target):
        remove(unfinished_of(target))  # left by a killed run
        return copy_to(path, target, wait=wait)


def snapshot_of(path: Path, name: str, *, wait: float, thorough: bool = False) -> Path:
    """Copy the store to the first free name: `<store>.<name>.bak`, `<store>.<name>-2.bak`, …

    `thorough` also checks foreign keys. Raise the errors of `copy_to`, and InputOutput instead of OSError.
    """
    for number in count(1):
        target = path.with_name(f"{path.name}.{name}{f'-{number}' if number > 1 else ''}.bak")
        with _copy_errors(path, target):
            if _claim(target):
                return copy_to(path, target, wait=wait, thorough=thorough)
    raise AssertionError


def copy_to(path: Path, target: Path, *, wait: float, thorough: bool = False, immutable: bool = False) -> Path:
    """Copy a store, or an `immutable` backup, to a file, check the copy, and return the file. An existing file is
    replaced. Raise InputOutput if the copy is damaged, OSError, and the errors of `create` and `connect`.
    """
    unfinished = unfinished_of(target)
    try:
        create(unfinished)
        source = connect(path, "ro", wait=wait, immutable=immutable)
        with closing(source), closing(connect(unfinished, "rw", wait=wait, like=source)) as copy:
            copy_all(source, copy, f"copying {path.name}")
            _check(copy, path, thorough=thorough)
        unfinished.replace(target)
    finally:
        remove(unfinished)
    return target


def copy_all(
    source: sqlite3.Connection,
    copy: sqlite3.Connection,
    what: str,
    *,
    check: Callable[[int], object] = ignore,
    sleep: float = 0.25,
) -> None:
    """Copy a database as it is at this moment, and tell how far the copy is. `check` is called with the result code
    while the copy waits for other processes, `sleep` seconds each time.
    """

    def after(status: int, remaining: int, total: int) -> None:
        check(status)
        telling.get()(what, "page", total - remaining, total)

    source.execute("BEGIN")
    source.execute("PRAGMA user_version").fetchone()
    try:
        source.backup(copy, pages=_PAGES, progress=after, sleep=sleep)
    finally:
        source.rollback()


def _check(copy: sqlite3.Connection, path: Path, *, thorough: bool) -> None:
    """Raise InputOutput if a copy is damaged.

    Foreign keys are checked only if `thorough`, because a dangling reference must not keep om from migrating the store.
    """
    found = fault(copy) or (lost_reference(copy) if thorough else None)
    if found is not None:
        raise InputOutput(
            f"a copy of {path}, made before changing it, is damaged: {found}",
            hint="the store is as it was, and may be damaged itself: `om restore` puts a backup in its place",
        )


def fault(connection: sqlite3.Connection, *, check: str = "quick_check") -> str | None:
    """Return the first fault of a file, or None if it is sound. `check` may be `integrity_check`, which takes longer
    and also compares indexes with their tables.
    """
    (first,) = connection.execute(f"PRAGMA {check}(1)").fetchone()
    if not first.startswith(_FALSE_ALARM):
        return None if first == "ok" else str(first)
    found = (each for (each,) in connection.execute(f"PRAGMA {check}({_MAX_FAULTS})"))
    return next((each for each in found if not each.startswith(_FALSE_ALARM)), None)


def lost_reference(connection: sqlite3.Connection) -> str | None:
    """Return the first reference to a missing row, or None."""
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    return None if lost is None else f"a row of `{lost[0]}` belongs to a missing one of `{lost[2]}`"


def _has_fault(copy: Path) -> bool:
    try:
        with om_errors(copy, wait=0), closing(connect(copy, "ro", wait=0, immutable=True)) as connection:
            return fault(connection) is not None
    except (sqlite3.Error, OmError):
        return True


def _claim(target: Path) -> bool:
    """Claim a name for a copy. Return True if the name was free. Only one of several processes can claim it."""
    unfinished = unfinished_of(target)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    # Checked last, because a process that claimed the name earlier may just have finished its copy.
    if target.exists():
        unfinished.unlink(missing_ok=True)
        return False
    return True


def unfinished_of(target: Path) -> Path:
    """Return the name of a copy until it is complete."""
    return target.with_name(f"{target.name}{_UNFINISHED}")


@contextmanager
def _copy_errors(path: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputOutput(
            f"cannot copy {path} to {target} before changing it: {error.strerror}",
            hint="check that file and its folder",
        ) from error


def remove(copy: Path) -> None:
    """Remove a copy and the files that SQLite keeps next to it."""
    journal = copy.with_name(f"{copy.name}-journal")  # of an unfinished copy
    for file in (copy, journal, *log_files(copy)):
        file.unlink(missing_ok=True)


def _remove_surplus(path: Path, made: Path | None, *, keep: int, now: str) -> tuple[str, ...]:
    """Remove surplus backups and return their paths. If `made` is None, do so only if the newest remaining one is
    sound.
    """
    found = by_age(_backups(path), now)
    gone = [path.with_name(backup.name) for backup in surplus(found, keep=keep, now=now)]
    if made is None and gone:
        staying = [path.with_name(backup.name) for backup in found]
        newest = next(backup for backup in reversed(staying) if backup not in gone)
        if _has_fault(newest):
            return ()
    gone = [backup for backup in gone if backup != made]
    for backup in gone:
        try:
            remove(backup)
        except OSError as error:
            raise InputOutput(f"cannot remove the old backup {backup}: {error.strerror}") from error
    return tuple(map(str, gone))


def _remove_unfinished(path: Path) -> None:
    """Remove old unfinished backups left by a killed run."""
    for name in _names(path):
        whole = name.removesuffix(_UNFINISHED)
        if whole == name or not backups_among([whole], path.name):
            continue
        unfinished = path.with_name(name)
        if time.time() - unfinished.stat().st_mtime > _DEAD_AFTER:
            remove(unfinished)


def _backups(path: Path) -> tuple[Backup, ...]:
    return backups_among(_names(path), path.name)


def _names(path: Path) -> list[str]:
    try:
        return [file.name for file in path.parent.iterdir()]
    except OSError as error:
        raise InputOutput(f"cannot look for backups beside {path}: {error.strerror}") from error


@record
class StoreCopy:
    """A copy of a store in its folder."""

    path: Path
    at: datetime
    """Time at which it was made, in UTC."""
    size: int
    """Number of bytes."""


def backup_files(path: Path) -> tuple[StoreCopy, ...]:
    """Return the dated backups of a store, sorted by date, even those from the future."""
    found = ((path.with_name(each.name), each.at) for each in (_backups(path) if path.parent.exists() else ()))
    return tuple(StoreCopy(path=copy, at=at, size=copy.stat().st_size) for copy, at in found if copy.is_file())


# ---- what came after a moment

_LATER = "CREATE TEMP TABLE later (session INTEGER, seq INTEGER, PRIMARY KEY (session, seq)) WITHOUT ROWID"
_CUTS = """
    CREATE TEMP TABLE cuts AS SELECT b.session AS session, min(b.after) AS after FROM batches AS b
    WHERE b.lane = 'observe' AND b.outcome IN ('observed', 'empty') AND EXISTS
        (SELECT 1 FROM later WHERE later.session = b.session AND later.seq > b.after AND later.seq <= b.through)
    GROUP BY b.session
"""
"""Each session's new cursor: the beginning of its first batch that has later messages."""
_GONE = "CREATE TEMP TABLE gone (position INTEGER PRIMARY KEY, id BLOB)"
_GO = """
    INSERT INTO gone SELECT o.position, o.id FROM observations AS o
    LEFT JOIN batches AS b ON b.number = o.batch LEFT JOIN cuts AS c ON c.session = b.session
    LEFT JOIN operations AS made ON made.number = o.made_by
    WHERE b.through > c.after OR made.at > :moment
        OR (o.batch IS NULL AND o.made_by IS NULL AND o.observed_at > :moment)
"""
_IS_MIXED = """
    SELECT 1 FROM observation_supports WHERE supported IN (SELECT position FROM gone)
        AND observation NOT IN (SELECT position FROM gone) LIMIT 1
"""
_CHANGES = (
    """UPDATE observations SET superseded_by = NULL, reason = NULL, hidden_by = NULL, visible = 1
        WHERE superseded_by IN (SELECT id FROM gone) AND dropped_at IS NULL""",
    "DELETE FROM successors WHERE by IN (SELECT id FROM gone)",
    "DELETE FROM observations WHERE position IN (SELECT position FROM gone)",
    "UPDATE observations SET last_used_at = NULL WHERE last_used_at > :moment",
    "DELETE FROM messages WHERE seq IN (SELECT seq FROM later)",
    "DELETE FROM blocks",
    "DELETE FROM passed_over WHERE message > (SELECT after FROM cuts WHERE cuts.session = passed_over.session)",
    """UPDATE cursors SET (covers_up_to, offered_up_to) =
        (SELECT after, after FROM cuts WHERE cuts.session = cursors.session)
        WHERE lane = :lane AND session IN (SELECT session FROM cuts)""",
    """UPDATE sessions SET seen_at = min(seen_at, :moment),
        last_at = coalesce((SELECT max(at) FROM messages WHERE session = number), min(last_at, :moment))""",
)


def cut_after(connection: sqlite3.Connection, moment: str) -> CutResult:
    """Remove everything that came after a moment (see `SqliteStore.cut_after`)."""
    later, undated = _later_messages(connection, moment)
    connection.execute(_LATER)
    connection.executemany("INSERT INTO later VALUES (?, ?)", later)
    connection.execute(_CUTS)
    connection.execute(_GONE)
    values = {"moment": moment, "lane": Lane.OBSERVE}
    connection.execute(_GO, values)
    is_mixed = connection.execute(_IS_MIXED).fetchone() is not None
    for change in _CHANGES:
        connection.execute(change, values)
    return CutResult(messages=len(later), undated=undated, is_mixed=is_mixed)


def _later_messages(connection: sqlite3.Connection, moment: str) -> tuple[list[tuple[int, int]], frozenset[str]]:
    """Return session and `seq` of the messages after a moment, and the ids of sessions for which this is a guess.

    A message without a date gets the date of the last dated one before it or, if there is none, of the last ingest.
    """
    found = connection.execute(
        "SELECT s.number, s.id, s.seen_at, m.seq, m.at FROM messages AS m JOIN sessions AS s ON s.number = m.session"
        " ORDER BY m.session, m.seq"
    )
    later: list[tuple[int, int]] = []
    undated: set[str] = set()
    last: str | None = None
    session = 0
    for number, name, seen_at, seq, at in found:
        last = at or (last if number == session else None)
        session = number
        if (last or seen_at) > moment:
            later.append((number, seq))
            undated.update(() if last else (name,))
    return later, frozenset(undated)


# ---- dated backups: their names, and which are due or to be removed

APART = timedelta(hours=20)
"""Minimum age of the newest backup before another is due. It is less than a day, so that a daily job may start early.
"""
_NAME = re.compile(r"\.(\d{4}-\d{2}-\d{2}T\d{6})Z(?:-(\d{1,6}))?\.bak\Z", re.ASCII)


@record
class Backup:
    """A backup, as described by its file name."""

    name: str
    at: datetime
    number: int
    """Distinguishes backups made in the same second."""


def label(now: str) -> str:
    """Return the label of a backup made at `now`, for the file name `<store>.<label>.bak`."""
    return f"{now[:19].replace(':', '')}Z"


def backups_among(names: Iterable[str], store: str) -> tuple[Backup, ...]:
    """Return a store's dated backups, by date, without copies made before migrations. `names` are the names of the
    files in the store's folder.
    """
    found = []
    for name in names:
        told = _NAME.fullmatch(name.removeprefix(store)) if name.startswith(store) else None
        at = _moment(told[1]) if told else None
        if told and at:
            found.append(Backup(name=name, at=at, number=int(told[2] or 1)))
    return tuple(sorted(found, key=lambda backup: (backup.at, backup.number)))


def is_due(backups: Iterable[Backup], now: str) -> bool:
    """Return True if another backup is due. Backups from the future are ignored: the clock must have been wrong."""
    moment = _of(now)
    return not any(moment - APART < backup.at <= moment for backup in backups)


_Dated = TypeVar("_Dated", Backup, StoreCopy)


def by_age(backups: Iterable[_Dated], now: str) -> tuple[_Dated, ...]:
    """Return backups sorted by date, oldest first. Those dated in the future come before all others, because the clock
    was wrong and their age is unknown.
    """
    moment = _of(now)
    return tuple(sorted(backups, key=lambda backup: (backup.at <= moment, backup.at)))


def surplus(backups: Iterable[Backup], *, keep: int, now: str) -> tuple[Backup, ...]:
    """Return all backups but the last `keep` in the order of `by_age`."""
    ordered = by_age(backups, now)
    return ordered[: max(0, len(ordered) - keep)]


def _of(now: str) -> datetime:
    return datetime.fromisoformat(now[:19])


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H%M%S")  # noqa: DTZ007 - all of them are UTC
    except ValueError:
        return None


# ---- disk space


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def vacuum(connection: sqlite3.Connection, *, wait: float) -> None:
    """Free the disk space of deleted rows, leaving no trace of them in the file or its write-ahead log.

    Raise StoreLocked if another process still reads an earlier state after `wait` seconds.
    """
    deadline = time.monotonic() + wait
    retry(connection, "VACUUM", deadline=deadline)
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # while a reader uses an earlier state
        if time.monotonic() > deadline:
            raise StoreLocked(
                "deleted rows may still be in the store's files: another process is reading them",
                hint="run `om prune --hard` once it is done",
            )
        time.sleep(_PAUSE)


def cut_log(connection: sqlite3.Connection) -> None:
    """Write the write-ahead log into the store's file and empty it, unless another process still reads it."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
