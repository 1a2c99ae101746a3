"""Replacing the file of a store: by a backup, also if it is damaged, or by an encrypted or decrypted copy."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from omcli.base import ignore, lazily, telling
from omcli.base.errors import BadInput, InputOutput, OmError, StoreLocked, UnusableStore
from omcli.base.record import record
from omcli.sqlite import cipher
from omcli.sqlite.backups import (
    backup_files,
    by_age,
    copy_all,
    copy_to,
    fault,
    flush,
    label,
    lost_reference,
    remove,
    snapshot_of,
    unfinished_of,
)
from omcli.sqlite.connection import (
    check_version,
    connect,
    create,
    is_of_om,
    key_of,
    log_files,
    open_for_writing,
    steps,
)
from omcli.sqlite.dialect import BUSY, interrupt_of, om_errors, report_progress

_PAUSE = 0.05


@record
class RestoreResult:
    """The result of putting a backup in the place of a store."""

    backup: Path | None
    """The backup; None if there was no sound one, so that the next write creates a new store."""
    kept: Path | None
    """The file with the store's earlier content, or None if there was no store, or an empty one."""


def restore(path: Path, backup: Path, *, now: str, wait: float) -> RestoreResult:
    """Replace the content of the store by a backup. Other processes may use the store meanwhile.

    A sound store is copied first, as `snapshot` does. A damaged one is moved aside. Raise UnusableStore if the store is
    not om's or a later version wrote it, BadInput if a sound one has another key than the backup, StoreLocked if
    another process is writing, InputOutput or CannotCreate if a copy fails, and the errors of `check_backup`.
    """
    check_backup(path, backup, wait=wait)
    with om_errors(path, wait=wait):
        if is_missing(path):
            _copy_over(path, backup, wait=wait)
            return RestoreResult(backup=backup, kept=None)
        if _fault_of(path, wait=wait) is not None:
            if not is_of_om(path):
                raise UnusableStore(f"{path} is not a store", hint="move it out of the way, or name another with --db")
            return _replaced(path, [backup], now=now, wait=wait) or restore(path, backup, now=now, wait=wait)
        kept = snapshot_of(path, label(now), wait=wait)
        _copy_over(path, backup, wait=wait)
        return RestoreResult(backup=backup, kept=kept)


def check_backup(path: Path, backup: Path, *, wait: float) -> None:
    """Raise BadInput if a backup is damaged, empty, in use or the store itself, UnusableStore if it is not om's,
    NewerStore if a later version wrote it, and InputOutput, CannotCreate or NoKey if it cannot be read.
    """
    with om_errors(backup, wait=wait):
        log, _ = log_files(backup)
        found = "it is the store itself" if path.exists() and path.samefile(backup) else _fault_of_backup(backup)
        if found is None and log.exists() and log.stat().st_size:
            found = "it has a write-ahead log beside it, so it is in use or lacks its last changes"
        if found is not None:
            raise BadInput(f"{backup} cannot be restored: {found}", hint="`om restore --list` lists the backups")


def is_missing(path: Path) -> bool:
    """Return True if a store is missing or is an empty file."""
    return not path.exists() or not path.stat().st_size


def replace_damaged(path: Path, *, now: str, wait: float) -> InputOutput | None:
    """Move a damaged store aside, with its write-ahead log, and put the newest sound backup, or an empty store, in its
    place. Put a backup in the place of an empty store, too. Return an error that reports this.

    Return None, and change nothing, if the store is sound or missing, is empty without a backup, may be the database of
    another program, or cannot be checked or replaced (the caller's own error explains that).
    """
    with suppress(OSError, OmError), om_errors(path, wait=wait):
        if not path.is_file():
            return None
        backups = [backup.path for backup in reversed(by_age(backup_files(path), now))]
        is_empty = is_missing(path)
        done = _restore_empty(path, backups, wait=wait) if is_empty else _replaced(path, backups, now=now, wait=wait)
        if done is not None:
            return InputOutput(
                f"{path} was {f'damaged: it is kept as {done.kept}, and' if done.kept else 'empty:'} "
                f"{f'its backup {done.backup.name} is in its place' if done.backup else 'a new one will be created'}",
                hint="run the command again; `om consolidate` reads transcripts again that the backup lacks",
            )
    return None


def has_backup(path: Path) -> bool:
    """Return True if a store has a sound backup. Raise NoKey if that depends on a key that is missing."""
    backups = [backup.path for backup in backup_files(path)]
    if any(map(_is_whole, backups)):
        return True
    for backup in backups:
        cipher.known_key(backup)
    return False


def _restore_empty(path: Path, backups: Sequence[Path], *, wait: float) -> RestoreResult | None:
    """Copy the first sound backup into an empty store. A process that has just created the store then uses the copy."""
    with _only_one(path, wait=wait) as is_there:
        backup = next(filter(_is_whole, backups), None)
        if not is_there or not is_missing(path) or backup is None:
            return None
        _copy_over(path, backup, wait=wait)
    return RestoreResult(backup=backup, kept=None)


def _replaced(path: Path, backups: Sequence[Path], *, now: str, wait: float) -> RestoreResult | None:
    path = Path(os.path.realpath(path))  # SQLite keeps its log beside the file that a link leads to
    with _only_one(path, wait=wait) as is_there:
        if not is_there or not is_of_om(path) or _fault_of(path, wait=wait) is None:
            return None
        backup = next(filter(_is_whole, backups), None)
        unfinished = unfinished_of(path)
        remove(unfinished)
        key = cipher.known_key(path)
        if backup is not None:
            copy_to(backup, unfinished, wait=wait, immutable=True)
        elif key is not None:  # otherwise the new store would not be encrypted
            open_for_writing(unfinished, wait=wait, steps=steps(), back_up=ignore).close()
        else:
            create(unfinished)
        if cipher.known_key(unfinished) != key:
            change_key(unfinished, key, wait=wait)
        _take_after(path, unfinished)
        kept = _moved(path, f"corrupted-{label(now)}")
        unfinished.replace(path)
    return RestoreResult(backup=backup, kept=kept)


def _moved(path: Path, name: str) -> Path:
    """Give a damaged store a second name, and move its write-ahead log there, so that no new store takes the log for
    its own. The first name stays until the caller replaces it. So if the process is killed, the store is still there.
    """
    for number in count(1):
        kept = path.with_name(f"{path.name}.{name}{f'-{number}' if number > 1 else ''}")
        with suppress(FileExistsError):
            _add_name(path, kept)
            for mine, theirs in zip(log_files(path), log_files(kept), strict=True):
                with suppress(FileNotFoundError):
                    mine.rename(theirs)
            return kept
    raise AssertionError


def _add_name(path: Path, second: Path) -> None:
    """Give a file a second name or, on a file system without hard links, copy it. Raise FileExistsError if the name is
    taken.
    """
    try:
        os.link(path, second)
    except FileExistsError:
        raise
    except OSError:
        with path.open("rb") as source, second.open("xb") as copy:
            _take_after(path, second)
            shutil.copyfileobj(source, copy)


def _take_after(path: Path, other: Path) -> None:
    """Give another file the mode of a store and, if that is allowed, its owner."""
    found = path.stat()
    with suppress(PermissionError):
        os.chown(other, found.st_uid, found.st_gid)
    other.chmod(stat.S_IMODE(found.st_mode))


@contextmanager
def _only_one(path: Path, *, wait: float) -> Iterator[bool]:
    """Let only one process at a time replace a damaged store. Yield False if the file is gone or was replaced. Raise
    StoreLocked if another process holds it for longer than `wait` seconds.
    """
    try:
        stream = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        _claim(stream, path, wait=wait)
        try:
            is_there = os.path.samestat(os.fstat(stream), path.stat())
        except FileNotFoundError:
            is_there = False
        yield is_there
    finally:
        os.close(stream)


def _claim(stream: int, path: Path, *, wait: float) -> None:
    until = time.monotonic() + wait
    while not _locked(stream):
        if time.monotonic() > until:
            raise StoreLocked(f"another process holds {path} (waited {wait:g} s)", hint="try again later")
        time.sleep(_PAUSE)


def _locked(stream: int) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _copy_over(path: Path, backup: Path, *, wait: float) -> None:
    """Copy a backup into a store in one transaction, so that other processes see the old content or the new."""
    until = time.monotonic() + wait

    def check_wait(status: int) -> None:
        if status in BUSY and time.monotonic() > until:
            raise StoreLocked(f"another process is using {path} (waited {wait:g} s)", hint="try again later")

    create(path)
    source = connect(backup, "ro", wait=wait, immutable=True)
    with closing(source), closing(connect(path, "rw", wait=wait, like=source)) as target:
        if key_of(source) != key_of(target):
            raise BadInput(
                f"{backup} cannot be restored: it and the store are not encrypted with the same key",
                hint="`om store encrypt --backups convert` encrypts backups as the store; `decrypt` decrypts them",
            )
        copy_all(source, target, f"restoring {backup.name}", check=check_wait, sleep=0.05)


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
    return _fault_of(backup, immutable=True) or (None if is_of_om(backup) else "it is empty")


def _is_whole(backup: Path) -> bool:
    """Return True for a backup that can be put back by this program."""
    try:
        with om_errors(backup, wait=0):
            return _fault_of_backup(backup) is None
    except (OSError, sqlite3.Error, OmError):
        return False


# ---- encrypting and decrypting

_REPLACED = b"another file is in the place of this one"
_BLOCK = 1 << 20
_KEPT = lazily(
    r"\.(?:partial|corrupted-DATE|(?:DATE|v\d+)\.bak(?:\.partial)?)".replace("DATE", r"\d{4}-\d\d-\d\dT\d{6}Z(?:-\d+)?")
)
"""Name of a copy, after the name of the store."""


def change_key(path: Path, key: str | None, *, wait: float) -> None:
    """Encrypt a store or a backup with a key, or decrypt it if the key is None. Other processes are shut out meanwhile.

    The file stays whole until a checked copy takes its place in one step, so this may be killed at any moment. If it
    was not encrypted, its old content is overwritten then. A copy that a killed run left is removed.

    Raise StoreLocked if another process uses the file, UnusableStore if it has several names or SQLCipher is not
    installed, InputOutput if the copy fails or differs, OSError, and the errors of `cipher.known_key` and `create`.
    """
    path = Path(os.path.realpath(path))
    now = cipher.known_key(path)
    if path.stat().st_nlink > 1:
        raise UnusableStore(
            f"{path} has several names (hard links)", hint="leave only one: `find -samefile` finds them"
        )
    unfinished = unfinished_of(path)
    old = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # closing it ends locks, so it is closed last
    try:
        _claim(old, path, wait=wait)  # two that wait for each other's connections would wait for ever
        with om_errors(path, wait=wait), closing(cipher.connect(_url(path), now, wait=0)) as source:
            _keep_others_out(source, path, old, wait=wait)
            remove(unfinished)
            try:
                create(unfinished)
                _export(source, unfinished, key)
                _check_same(source, unfinished, key)
                unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
                flush(unfinished)
            except BaseException:
                remove(unfinished)
                raise
            unfinished.replace(path)
            flush(path.parent)
            _erase(old, whole=now is None)
    finally:
        os.close(old)


def _url(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


def _keep_others_out(connection: sqlite3.Connection, path: Path, opened: int, *, wait: float) -> None:
    """Write the log into the file, and lock the file until the connection is closed. Raise StoreLocked if another
    process uses the file, or has just replaced the one that is `opened`.
    """
    until = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA main.locking_mode = EXCLUSIVE")  # first, so that nobody comes in between
            connection.execute("PRAGMA main.journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            (mode,) = connection.execute("PRAGMA main.journal_mode").fetchone()
        except sqlite3.DatabaseError as error:
            mode = "unknown"
            if os.path.samestat(os.fstat(opened), path.stat()) and error.sqlite_errorcode not in BUSY:
                raise
        if not os.path.samestat(os.fstat(opened), path.stat()):
            raise StoreLocked(f"another process has just encrypted or decrypted {path}", hint="run it again")
        if mode == "delete":
            return
        with suppress(sqlite3.DatabaseError):  # if it is locked, nothing is to be given back
            connection.execute("PRAGMA main.locking_mode = NORMAL")
            connection.execute("PRAGMA main.user_version").fetchone()
        if time.monotonic() > until:
            raise StoreLocked(
                f"another process uses {path} (waited {wait:g} s)", hint="stop `om watch`, `om mcp` and the like first"
            )
        time.sleep(_PAUSE)


def _export(source: sqlite3.Connection, target: Path, key: str | None) -> None:
    """Copy a database into an empty file, with another key or with none. Raise InputOutput if that fails."""
    source.execute(f"ATTACH ? AS copy KEY {cipher.quoted(key) if key else repr('')}", (str(target),))
    source.execute("PRAGMA copy.journal_mode = OFF")
    source.execute("PRAGMA copy.synchronous = OFF")
    (pages,), (page,) = (source.execute(f"PRAGMA main.{name}").fetchone() for name in ("page_count", "page_size"))
    report_progress(
        source, lambda: telling.get()(f"writing {target.name}", "page", target.stat().st_size // page, pages)
    )
    try:
        source.execute("SELECT sqlcipher_export('copy')")
        telling.get()(f"writing {target.name}", "page", pages, pages)
    except sqlite3.DatabaseError as error:  # the function gives no other code than that it failed
        if (interrupt := interrupt_of(error)) is not None:
            raise interrupt from None
        raise InputOutput(
            f"{target} cannot be written: {error}", hint="the store is as it was; `om doctor` checks it and the disk"
        ) from error
    for number in ("user_version", "application_id"):
        source.execute(f"PRAGMA copy.{number} = {source.execute(f'PRAGMA main.{number}').fetchone()[0]}")
    source.execute("PRAGMA copy.journal_mode = WAL")  # otherwise nobody would hold a lock between two statements
    source.execute("DETACH copy")


def _check_same(source: sqlite3.Connection, target: Path, key: str | None) -> None:
    """Raise InputOutput if a copy is damaged, or has another schema or other numbers of rows than its source."""
    with closing(cipher.connect(_url(target), key, wait=0)) as copy:
        found = fault(copy) or lost_reference(copy)
        if found is None and _content(copy) != _content(source):
            found = "it lacks something"
    if found is not None:
        raise InputOutput(
            f"the copy {target} is damaged: {found}", hint="the store is as it was; `om doctor` checks it"
        )


def _content(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return the schema of a database, its version, and the number of rows in each table."""
    schema = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    ).fetchall()
    counts = [connection.execute(f'SELECT count(*) FROM "{name}"').fetchone() for (name,) in tables]
    return [*schema, *counts, connection.execute("PRAGMA user_version").fetchone()]


def _erase(opened: int, *, whole: bool) -> None:
    """Make a replaced file unreadable for processes that wait for it: they look for the new one then.

    If `whole`, nothing of its content is left on a disk that writes in place.
    """
    size = os.fstat(opened).st_size
    os.pwrite(opened, _REPLACED, 0)
    for place in range(len(_REPLACED), size if whole else len(_REPLACED), _BLOCK):
        os.pwrite(opened, bytes(min(_BLOCK, size - place)), place)
    os.fsync(opened)


def other_files(path: Path, key: str | None) -> tuple[Path, ...]:
    """Return the files that om has kept beside a store (backups, unfinished ones too, and damaged stores) and that are
    not encrypted with its `key` or, if that is None, are encrypted. Empty files are left out.
    """
    beside = sorted(path.parent.iterdir()) if path.parent.is_dir() else ()
    kept = (each for each in beside if each.name.startswith(path.name) and _KEPT.fullmatch(each.name, len(path.name)))
    name = key and cipher.name_of(key)
    return tuple(each for each in kept if each.stat().st_size and cipher.key_name(each) != name)


def change_backup(file: Path, key: str | None, *, delete: bool, wait: float) -> None:
    """Encrypt one of the `other_files` of a store with its key, or decrypt it, or `delete` it. An unfinished one is
    deleted. Raise InputOutput if it cannot be changed, and the errors of `change_key`.
    """
    try:
        if not delete and not file.name.endswith(".partial"):
            change_key(file, key, wait=wait)
            return
        if key is not None and file.stat().st_nlink == 1:
            with file.open("r+b", buffering=0) as stream:
                _erase(stream.fileno(), whole=True)
        remove(file)
    except OSError as error:
        raise InputOutput(f"{file}: {error.strerror}") from error
