"""Opening the store's file: to read and write, or only to read."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

from omcli.base.errors import BadConfiguration, CannotCreate, InputOutput, StoreLocked
from omcli.sqlite.database import is_busy, is_unopenable
from omcli.sqlite.migrate import check_version, migrate

NOWHERE = Path("(temporary store)")
"""What stands for the path of a store that has none."""
_OLDEST_SQLITE = (3, 38)
"""STRICT tables need 3.37, json_each is always there from 3.38."""
PARTIAL = ".partial"
"""What the name of a copy ends with until it is whole."""
_FALSE_ALARM = "NULL value in aside_titles."
"""What SQLite 3.40 says of a sound table whose columns are in another order than its key; schemas 8 and 9 have that."""
_FAULTS = 10_000
"""How many faults are looked at."""
_DEAF_MS = 100
"""Milliseconds that SQLite itself waits for a lock."""
_PAUSE = 0.01
"""Seconds between two tries."""


def open_writable(path: Path, *, wait: float, steps: Sequence[Path]) -> sqlite3.Connection:
    """The store at `path`, made or brought up to date where needed. `steps` are those of the schema.

    Raises CannotCreate, NewerStore, MigrationFailed, BadConfiguration, and SQLite's own errors.
    """
    _create(path)
    _permit_beside(path)
    connection = _connect(path, "rw", wait=wait)
    try:
        # Before anything is set: a store that is not for us stays as it is.
        check_version(connection, path=path, newest=len(steps))
        _use_wal(connection, wait=wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, steps, path=path, back_up=lambda old: copy_beside(path, f"v{old}", wait=wait))
        # Who writes waits in such steps (`transaction`): within one, SQLite hears no Ctrl-C.
        connection.execute(f"PRAGMA busy_timeout = {min(int(wait * 1000), _DEAF_MS)}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_temporary(*, steps: tuple[Path, ...]) -> sqlite3.Connection:
    """A store of this process alone, on disk where it does not fit into SQLite's cache.

    Its file has no name: the system takes the room back when the process ends, however it does.
    """
    connection = sqlite3.connect("", isolation_level=None)
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.deserialize(_empty(steps))
        empty.backup(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@cache
def _empty(steps: tuple[Path, ...]) -> bytes:
    """A store with nothing in it: made once, for a program may open many temporary ones."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, steps, path=NOWHERE)
        return connection.serialize()


def open_readable(path: Path, *, wait: float, steps: Sequence[Path]) -> sqlite3.Connection:
    """The store at `path` for reading; the file is never written to.

    Where there is none, an empty store in memory. A store of an older schema is copied into memory and brought up to
    date there, so that reading works until the next write does the same for the file.

    SQLite may leave an empty `-wal` and a `-shm` beside the file; the next writer removes them. Raises NewerStore,
    BadConfiguration, and SQLite's own errors.
    """
    connection = _connect_readable(path, wait=wait) if _is_there(path) else sqlite3.connect(":memory:")
    try:
        if check_version(connection, path=path, newest=len(steps)) < len(steps):
            connection = _copied_into_memory(connection)
            migrate(connection, steps, path=path)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str, *, wait: float, immutable: bool = False) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise BadConfiguration(
            f"this Python has SQLite {sqlite3.sqlite_version}, om needs 3.38 or later", hint="use a newer Python"
        )
    uri = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    # isolation_level None: transactions begin and end where the code says so.
    return sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)


def _connect_readable(path: Path, *, wait: float) -> sqlite3.Connection:
    connection = _connect(path, "ro", wait=wait)
    try:
        connection.execute("PRAGMA user_version").fetchone()  # the first read opens the write-ahead log
    except sqlite3.Error as error:
        connection.close()
        # In a folder that cannot be written, or on a full disk, SQLite cannot put its -shm there. Nobody writes there
        # either: the file may be read as it is, unless somebody who could write has left a log beside it.
        if not is_unopenable(error) or _has_log(path):
            raise
        return _connect(path, "ro", wait=wait, immutable=True)
    return connection


def _copied_into_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    connection.close()
    return copy


def _use_wal(connection: sqlite3.Connection, *, wait: float) -> None:
    """Lets readers and a writer work side by side.

    Where several set this at once on a new file, SQLite does not wait: of 320, in eights, 7 were told "locked" at once.
    """
    _insist(connection, "PRAGMA journal_mode = WAL", deadline=time.monotonic() + wait)


def _insist(connection: sqlite3.Connection, statement: str, *, deadline: float) -> None:
    """Runs a statement, again and again while others are in its way."""
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def vacuum(connection: sqlite3.Connection, *, wait: float) -> None:
    """Gives what was deleted back to the disk, and leaves nothing of it in the file or in the log beside it."""
    deadline = time.monotonic() + wait
    _insist(connection, "VACUUM", deadline=deadline)
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # somebody reads what was there before
        if time.monotonic() > deadline:
            raise StoreLocked(
                "what was deleted may still stand in the store's files: another process is reading them",
                hint="run `om prune --hard` once it is done",
            )
        time.sleep(_PAUSE)


def size(path: Path) -> int:
    """Bytes of a store and of the log beside it."""
    log, _ = _beside(path)
    return sum(file.stat().st_size for file in (path, log) if file.exists())


def _create(path: Path) -> None:
    """Makes the file, and its folder, for the user alone. SQLite gives the files beside it the same permissions."""
    try:
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise CannotCreate(
            f"cannot create {path}: {error.strerror}", hint="name a place you can write to with --db"
        ) from error


def _permit_beside(path: Path) -> None:
    """Lets the files beside a store be written that may be written itself.

    SQLite makes them with the permissions of the store, and leaves them: who has read one that was write-protected
    leaves files that nobody could write to once it no longer is.
    """
    for file in _beside(path):
        with suppress(OSError):  # it may go at any moment, or be somebody else's
            if ~file.stat().st_mode & (mode := path.stat().st_mode) & stat.S_IWUSR:
                file.chmod(stat.S_IMODE(mode))


def copy_beside(path: Path, name: str, *, wait: float) -> Path:
    """A copy of the store beside it, `<store>.<name>.bak`: whole and sound, or not at all. Raises InputOutput.

    It takes the place of an older one. Only one process may be at it: whoever holds the lock of the store.
    """
    target = path.with_name(f"{path.name}.{name}.bak")
    with _copying(path, target):
        remove(_partial(target))  # of a run that was killed
        return _copied(path, target, wait=wait)


def snapshot_beside(path: Path, name: str, *, wait: float, thorough: bool = False) -> Path:
    """A copy like `copy_beside`'s under a name that nobody has: `<store>.<name>.bak`, `<store>.<name>-2.bak`, …

    `thorough`: also where a row of it leads nowhere it is no copy.
    """
    for number in count(1):
        target = path.with_name(f"{path.name}.{name}{f'-{number}' if number > 1 else ''}.bak")
        with _copying(path, target):
            if _is_claimed(target):
                return _copied(path, target, wait=wait, thorough=thorough)
    raise AssertionError


@contextmanager
def _copying(path: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputOutput(
            f"cannot copy {path} to {target} before changing it: {error.strerror}",
            hint="check that file and its folder",
        ) from error


def _partial(target: Path) -> Path:
    return target.with_name(f"{target.name}{PARTIAL}")


def _is_claimed(target: Path) -> bool:
    """Whether the name was free, and its unfinished copy is now ours: of several processes it is one's."""
    partial = _partial(target)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    # Looked for last: whoever had the name before gave the unfinished copy up only by finishing it.
    if target.exists():
        partial.unlink(missing_ok=True)
        return False
    return True


def _copied(path: Path, target: Path, *, wait: float, thorough: bool = False) -> Path:
    partial = _partial(target)
    try:
        _create(partial)
        _copy(path, partial, wait=wait, thorough=thorough)
        partial.replace(target)
    finally:
        remove(partial)
    return target


def is_sound(copy: Path) -> bool:
    """Whether a copy of a store can be read, and is in order."""
    try:
        with closing(_connect(copy, "ro", wait=0, immutable=True)) as connection:
            return _fault(connection) is None
    except sqlite3.Error:
        return False


def _fault(connection: sqlite3.Connection) -> str | None:
    """What is wrong with a file; None where it is in order."""
    (first,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if not first.startswith(_FALSE_ALARM):
        return None if first == "ok" else str(first)
    found = (told for (told,) in connection.execute(f"PRAGMA quick_check({_FAULTS})"))
    return next((told for told in found if not told.startswith(_FALSE_ALARM)), None)


def _copy(path: Path, target: Path, *, wait: float, thorough: bool) -> None:
    with closing(_connect(path, "ro", wait=wait)) as source, closing(_connect(target, "rw", wait=wait)) as copy:
        source.backup(copy)
        fault = _fault(copy)
        # Else not foreign keys as well: a row that leads nowhere is copied as it is, and must not keep om from work.
        lost = copy.execute("PRAGMA foreign_key_check").fetchone() if thorough and fault is None else None
        if lost is not None:
            fault = f"a row of `{lost[0]}` belongs to one of `{lost[2]}` that is not there"
    if fault is not None:
        raise InputOutput(
            f"a copy of {path}, made before changing it, is damaged: {fault}",
            hint="the store is as it was, and may be damaged itself: keep a copy of it, then restore a backup",
        )


def remove(path: Path) -> None:
    """Removes a copy, and what SQLite keeps beside it."""
    journal = path.with_name(f"{path.name}-journal")  # of a copy that is being made
    for file in (path, journal, *_beside(path)):
        file.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputOutput(
            f"cannot read {path}: {error.strerror}", hint="check the permissions of its folder"
        ) from error
    return True


def _has_log(path: Path) -> bool:
    log, _ = _beside(path)
    return log.exists() and log.stat().st_size > 0


def _beside(path: Path) -> tuple[Path, Path]:
    """The two files SQLite keeps beside a store that is open: the write-ahead log and its index."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
