"""The store's checks: its file, schema, index of words, permissions, disk and backups."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.errors import CannotCreate, IndexDamaged, InputOutput
from omcli.base.record import replace
from omcli.doctor import DAY, Check, Doctor, Section, counted, failure, pass_, shown, size, skip, warn
from omcli.processes import state_folder
from omcli.settings.settings import ServerUrl
from omcli.sqlite import checks, cipher
from omcli.sqlite.backups import Backup, backups_among, by_age
from omcli.sqlite.connection import log_files, spool_folder
from omcli.sqlite.restore import other_files
from omcli.sqlite.spool import state_of
from omcli.text.instants import minute
from omcli.wiring.policies import backups, store_version

if TYPE_CHECKING:
    from omcli.settings.settings import Settings
    from omcli.sqlite import SqliteStore

_NETWORK = frozenset(
    "9p afs beegfs ceph cifs davfs fuse.davfs2 fuse.rclone fuse.sshfs glusterfs fuse.glusterfs gpfs lustre ncpfs nfs"
    " nfs4 prl_fs smb3 smbfs vboxsf virtiofs".split()
)
"""File systems of other machines, on which the locks of SQLite's write-ahead log don't work."""
_MOUNTS = Path("/proc/mounts")
_LEAST_FREE = 20_000_000
"""Bytes of free space below which a run may fail."""
_COPIES = 2
"""Number of copies of the store for which there should be space: a backup, and the store while it is vacuumed."""
_LARGE_LOG = 64_000_000
"""Bytes that a write-ahead log has only if a process keeps SQLite from shortening it. Usually it has at most 4 MB."""
_OLD_BACKUP = 7 * DAY
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READ = stat.S_IRGRP | stat.S_IROTH


def section(settings: Settings) -> Section:
    if isinstance(settings.db, ServerUrl):
        return {
            "store": _database,
            "index": _index,
            "vectors": _vectors,
            "permissions": _private,
            "password": _secret_url,
            "spool": _spool,
            "backups": _server_backups,
        }
    return {
        "store": _file,
        "integrity": _fault,
        "index": _index,
        "permissions": _private,
        "disk": _place,
        "log": _log,
        "spool": _spool,
        "backups": _backups,
    }


def _file(doctor: Doctor) -> Iterator[Check]:
    path = shown(doctor.path, doctor.environment)
    if not doctor.wiring.has_store:
        yield _folder(doctor) or skip("store", f"{path} is not created yet", "`om observe FILE` creates it")
        return
    counts = doctor.store.sessions.status()
    known, found = store_version(doctor.settings), checks.file_version(doctor.path, wait=doctor.settings.wait)
    secret = f"encrypted by SQLCipher {cipher.version()}" if doctor.store.key else "not encrypted"
    older = f"schema {found}, which the next command that writes brings to {known}; " if found < known else ""
    yield pass_(
        "store",
        f"{path}: {older}{counted(counts.sessions, 'session')}, {counted(counts.messages, 'message')},"
        f" {counted(counts.observations, 'row')}, {size(doctor.wiring.store_size or 0)}, {secret}",
    )
    if not os.access(doctor.path, os.W_OK):
        yield failure("store", f"{path} cannot be written", "check the permissions of the file")
    elif not os.access(doctor.path.parent, os.W_OK):
        yield failure(
            "store",
            f"{shown(doctor.path.parent, doctor.environment)} cannot be written",
            "SQLite needs files beside it",
        )


def _folder(doctor: Doctor) -> Check | None:
    """Return a failed check if the store cannot be created, otherwise None."""
    folder = next(each for each in doctor.path.absolute().parents if each.exists())
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    where = shown(folder, doctor.environment)
    return failure("store", f"{where} cannot be written, so no store can be created", "name another place with --db")


def _fault(doctor: Doctor) -> Iterator[Check]:
    if not doctor.has_store:
        return
    begun = doctor.wiring.clock.monotonic()
    found = checks.first_fault(doctor.store.database, thoroughly=doctor.is_thorough)
    took = f"{(doctor.wiring.clock.monotonic() - begun) * 1000:.0f} ms"
    if found is None:
        yield pass_("integrity", f"{'all of it' if doctor.is_thorough else 'quick check'}: sound ({took})")
    else:
        newest = next(reversed(_dated_backups(doctor)), None)
        copy = f"; the newest is {newest.name}" if newest else ""
        yield failure("integrity", f"damaged: {found}", f"`om restore` puts a backup in its place, and keeps it{copy}")


def _index(doctor: Doctor) -> Iterator[Check]:
    if not doctor.has_store:
        return
    try:
        if doctor.is_thorough and not doctor.settings.disabled:
            doctor.write(lambda store: store.index.check(thoroughly=True))
        else:
            doctor.store.index.check()
    except IndexDamaged:
        yield failure(
            "index", "the index of words is damaged", "`om doctor --fix` rebuilds it", partial(_renew_index, doctor)
        )
    else:
        yield pass_("index", "the index of words agrees with messages and rows")


def _renew_index(doctor: Doctor) -> str:
    doctor.write(lambda store: store.index.renew())
    return "rebuilt"


def _private(doctor: Doctor) -> Iterator[Check]:
    """Check that other users have no access to the files of om. A folder that the user chose for the store is not
    checked.
    """
    files = [doctor.path, spool_folder(doctor.path), *backups(doctor.path)]
    if checks.log_size(doctor.path):
        files.append(log_files(doctor.path)[0])
    files += [doctor.files.user.parent / "env", *_below(Path(state_folder(doctor.environment)))]
    if doctor.settings.origin("db") == "default":
        files.append(doctor.path.parent)
    is_private = True
    for path in filter(Path.exists, files):
        found = path.stat()
        if not found.st_mode & _OTHERS:
            continue
        is_private = False
        reason = _reason_to_keep(path.lstat())
        yield warn(
            "permissions",
            f"others may {'read' if found.st_mode & _READ else 'use'} {shown(path, doctor.environment)}"
            f" (mode {stat.S_IMODE(found.st_mode):04o})",
            reason or "`om doctor --fix` makes it private",
            None if reason else partial(_make_private, path),
        )
    if is_private:
        what = "om's logs and its spool" if doctor.is_on_server else "the store and its logs"
        yield pass_("permissions", f"only you can read {what}")


def _below(folder: Path) -> Iterable[Path]:
    """Return the files and folders in a folder, without links, because their targets may not belong to om."""
    return sorted(path for path in folder.glob("*") if not path.is_symlink()) if folder.is_dir() else ()


def _reason_to_keep(found: os.stat_result) -> str:
    """Return the reason not to change the mode of a file or folder, or an empty string if only om uses it."""
    if stat.S_ISLNK(found.st_mode):
        return "it is a link; change the mode of what it leads to"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    has_names = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return "it has other names (hard links); `chmod` changes all of them" if has_names else ""


def _make_private(path: Path) -> str:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if reason := _reason_to_keep(found):
            raise CannotCreate(reason)
        os.fchmod(opened, stat.S_IMODE(found.st_mode) & ~_OTHERS)
    finally:
        os.close(opened)
    return "made private"


def _place(doctor: Doctor) -> Iterator[Check]:
    folder = next(each for each in doctor.path.absolute().parents if each.exists())
    found = os.statvfs(folder)
    free, needed = found.f_bavail * found.f_frsize, (doctor.wiring.store_size or 0) * _COPIES + _LEAST_FREE
    where = shown(folder, doctor.environment)
    if free < _LEAST_FREE:
        yield failure("disk", f"{size(free)} free at {where}", "free some space: nothing can be remembered")
    elif free < needed:
        yield warn("disk", f"{size(free)} free at {where}, less than a backup may need", "free some space")
    else:
        yield pass_("disk", f"{size(free)} free at {where}")
    if _MOUNTS.is_file():
        system = file_system(os.path.realpath(folder), _MOUNTS.read_text("utf-8", errors="replace"))
        if system in _NETWORK:
            yield warn(
                "disk",
                f"{where} is on a network file system ({system}), where SQLite's locks don't work",
                "keep the store on a local disk (--db, OM_DB), and use it from one machine at a time",
            )


def file_system(path: str, mounts: str) -> str:
    """Return the type of the file system at a path, according to the lines of /proc/mounts, or an empty string."""
    best, found = -1, ""
    for line in mounts.splitlines():
        _, place, system, *_ = [*line.split(" "), "", "", ""]
        place = place.replace("\\040", " ").rstrip("/")
        if (path == place or path.startswith(f"{place}/")) and len(place) >= best:
            best, found = len(place), system
    return found


def _log(doctor: Doctor) -> Iterator[Check]:
    if not doctor.has_store:
        return
    length = checks.log_size(doctor.path)
    if length < _LARGE_LOG:
        yield pass_("log", f"write-ahead log: {size(length)}")
    else:
        yield warn(
            "log",
            f"the write-ahead log has {size(length)}: a process that reads keeps it from being shortened",
            "`om doctor --fix` shortens it once that process has ended",
            partial(_compact_log, doctor),
        )


def _compact_log(doctor: Doctor) -> str:
    left: list[int] = []
    doctor.write(lambda store: left.append(checks.compact_log(store.database)))
    if left[0]:
        raise InputOutput(f"{size(left[0])} are left, because another process is still reading")
    return "written into the store"


def _spool(doctor: Doctor) -> Iterator[Check]:
    found = state_of(doctor.path)
    if found is None:
        return
    where = shown(found.folder, doctor.environment)
    hint = "`om doctor --fix` stores what can be read"
    if not found.files:
        hint = f"their messages may be missing: `om sessions`; then delete them from {where}"
    yield warn("spool", f"{where}: {found.in_words}", hint, partial(_take_in, doctor) if found.files else None)


def _take_in(doctor: Doctor) -> str:
    doctor.write(lambda _: None)
    left = state_of(doctor.path)
    if left is not None and left.files:
        raise InputOutput(f"{left.in_words} could not be stored")
    return "stored"


def _backups(doctor: Doctor) -> Iterator[Check]:
    """Check the backups. They matter most if this SQLite has the WAL-reset bug (see `_sqlite` in `program.py`)."""
    if not doctor.has_store:
        return
    hint = "`om consolidate` makes one a day; `om schedule` runs it"
    if doctor.store.key and (others := other_files(doctor.path, doctor.store.key)):
        said = f"not encrypted with the store's key: {', '.join(each.name for each in others)}"
        yield warn("backups", said, "`om store encrypt --backups convert`, or `delete`")
    for aside in sorted(doctor.path.parent.glob(f"{glob.escape(doctor.path.name)}.corrupted-*Z*")):
        if aside.name.endswith(("-wal", "-shm")):
            continue
        said = f"a damaged store was replaced by its backup, and is kept as {shown(aside, doctor.environment)}"
        yield warn("backups", said, "delete that file once nothing is missed: `om log`, `om sessions`")
    if not doctor.settings.consolidate.backups:
        yield warn("backups", "turned off by `consolidate.backups = 0`", "set it to 1 or more")
        return
    found = _dated_backups(doctor)
    if not found:
        first = checks.first_time(doctor.store.database)
        if first is None or first > doctor.ago(_OLD_BACKUP):
            yield skip("backups", "none yet", hint)
        else:
            yield warn("backups", "none, although the store is more than a week old", hint)
        return
    newest, number = found[-1].at, f"{len(found)} kept"
    days = (datetime.fromisoformat(doctor.now.removesuffix("Z")) - newest).total_seconds() / DAY
    if days > _OLD_BACKUP / DAY:
        yield warn("backups", f"{number}, the newest {days:.0f} days old", hint)
    else:
        yield pass_("backups", f"{number}, the newest of {minute(newest.isoformat())}")


def _dated_backups(doctor: Doctor) -> tuple[Backup, ...]:
    return by_age(backups_among((path.name for path in backups(doctor.path)), doctor.path.name), doctor.now)


# ---- a store on a server


def _database(doctor: Doctor) -> Iterator[Check]:
    url = doctor.settings.db
    if not doctor.wiring.has_store:
        yield skip("store", f"{url} has no store yet", "`om observe FILE` creates it")
        return
    counts = doctor.store.sessions.status()
    yield pass_(
        "store",
        f"{url}: {counted(counts.sessions, 'session')}, {counted(counts.messages, 'message')},"
        f" {counted(counts.observations, 'row')}, {size(doctor.wiring.store_size or 0)}",
    )


def _secret_url(doctor: Doctor) -> Iterator[Check]:
    """Check that nobody else can read the password, if the URL is in a file."""
    url, by = doctor.settings.db, Path(doctor.settings.origin("db"))
    if isinstance(url, ServerUrl) and url.has_secret and by.is_file() and by.stat().st_mode & _OTHERS:
        where = shown(by, doctor.environment)
        yield warn("password", f"others may read the password in {where}", f"`chmod 600 {where}`, or use ~/.pgpass")


def _vectors(doctor: Doctor) -> Iterator[Check]:
    """Check that the server finds the nearest vectors by itself, if the store has any."""
    from omcli.postgres.vectors import PostgresVectors  # noqa: PLC0415 - most stores are files

    def index_all(store: SqliteStore) -> None:
        assert isinstance(store.vectors, PostgresVectors)
        store.vectors.renew()

    def settle() -> str:
        doctor.write(index_all)
        return "indexed"

    vectors = doctor.store.vectors if doctor.has_store else None
    if isinstance(vectors, PostgresVectors) and not vectors.has_index():
        text = "each search reads all vectors, because the database has no index of them"
        yield replace(skip("vectors", text, "`CREATE EXTENSION vector` there, then `om doctor --fix`"), settle=settle)


def _server_backups(doctor: Doctor) -> Iterator[Check]:
    if doctor.has_store:
        yield skip("backups", "om makes none of a database", "`pg_dump` does, or the tools of the server")
