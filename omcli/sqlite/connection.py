"""Opening the file of a store, migrating it to this program's schema in numbered steps, checking its index of words."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from omcli.base.errors import CannotCreate, InputOutput, MigrationFailed, NewerStore, UnusableStore
from omcli.sqlite.dialect import (
    INDEXES,
    NOWHERE,
    cannot_open,
    is_busy,
    is_of_index,
    om_error,
    prepare,
    writing,
)

_OLDEST_SQLITE = (3, 38)
"""Minimum version: STRICT tables need 3.37, and json_each is always available from 3.38 on."""
_SHORT_WAIT_MS = 100
"""Milliseconds, at most, that SQLite itself waits for a write lock. During that time it does not notice Ctrl-C."""
_PAUSE = 0.01
_ANOTHER = "name another file with --db"
_OTHER = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
"""Things that a path can lead to besides a file. Anything else is a device."""


def open_for_writing(
    path: Path, *, wait: float, steps: Sequence[Path], back_up: Callable[[int], object]
) -> sqlite3.Connection:
    """Open the store at `path`. Create or migrate it with the schema's `steps` if needed.

    Before a migration, `back_up` is called with the old version. Raise the errors of `create`, `connect`,
    `check_version`, `migrate` and `back_up`, and SQLite's own.
    """
    create(path)
    _let_write_log(path)
    connection = connect(path, "rw", wait=wait)
    try:
        # Checked first, so that a store from a later version stays unchanged.
        check_version(connection, path=path, newest=len(steps))
        # Lets readers work during a write. If several processes set this at once on a new file, SQLite does not wait:
        # of 320 attempts, eight at a time, 7 failed at once with "locked".
        retry(connection, "PRAGMA journal_mode = WAL", deadline=time.monotonic() + wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, steps, path=path, back_up=back_up)
        # A writer waits in steps of this length (`dialect._Transaction`).
        connection.execute(f"PRAGMA busy_timeout = {min(int(wait * 1000), _SHORT_WAIT_MS)}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_temporary(*, steps: tuple[Path, ...]) -> sqlite3.Connection:
    """Open a store for this process alone, which is on disk only if it does not fit into SQLite's cache.

    Its file has no name, so the system frees the space however the process ends.
    """
    connection = prepare(sqlite3.connect("", isolation_level=None))
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.deserialize(_empty(steps))
        empty.backup(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def open_copy(path: Path, *, wait: float, steps: Sequence[Path]) -> sqlite3.Connection:
    """Open a private copy of the store at `path`, without its leases. Like a temporary store, it is on disk only if it
    does not fit into SQLite's cache, and never if the store is encrypted.

    Raise the errors of `open_for_reading`.
    """
    connection = _private_copy(open_for_reading(path, wait=wait, steps=steps), place="")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("DELETE FROM leases")
    return connection


@cache
def _empty(steps: tuple[Path, ...]) -> bytes:
    """Return an empty store as bytes. It is cached because a program may open many temporary stores."""
    with closing(prepare(sqlite3.connect(":memory:", isolation_level=None))) as connection:
        migrate(connection, steps, path=NOWHERE)
        return connection.serialize()


def open_for_reading(path: Path, *, wait: float, steps: Sequence[Path]) -> sqlite3.Connection:
    """Open the store at `path` for reading. The file is never written to.

    If there is no file, return an empty store in memory. A store with an older schema is copied into memory and
    migrated there, so that it can be read until a write migrates the file.

    SQLite may leave an empty `-wal` and a `-shm` file next to the store, which the next writer removes. Raise the
    errors of `exists`, `connect`, `check_version` and `migrate`, and SQLite's own.
    """
    connection = _reader(path, wait=wait) if exists(path) else prepare(sqlite3.connect(":memory:"))
    try:
        if check_version(connection, path=path, newest=len(steps)) < len(steps):
            connection = _private_copy(connection, place=":memory:")
            migrate(connection, steps, path=path)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def connect(
    path: Path,
    mode: str,
    *,
    wait: float,
    immutable: bool = False,
    like: sqlite3.Connection | None = None,
    tried: os.stat_result | None = None,
) -> sqlite3.Connection:
    """Connect to a file in mode `ro` or `rw`, and read its header. Transactions begin and end only explicitly.

    An `immutable` file is read without locks and without a write-ahead log. An empty file is encrypted `like` the
    database that is to be copied into it. An unreadable file is tried again with the key that its header names, unless
    it is the one that was `tried`. Raise UnusableStore if SQLite is too old, the errors of `cipher.known_key` and
    `cipher.connect`, and SQLite's own.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise UnusableStore(
            f"this Python has SQLite {sqlite3.sqlite_version}, om needs 3.38 or later", hint="use a newer Python"
        )
    uri = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    key = key_of(like) if like and not path.stat().st_size else keys.get(path)
    if key is None:
        connection = prepare(sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None))
    else:
        from omcli.sqlite import cipher  # noqa: PLC0415 - most stores are not encrypted

        connection = cipher.connect(uri, key, wait=wait)
    try:
        connection.execute("PRAGMA user_version").fetchone()  # the first read opens the write-ahead log
    except sqlite3.Error as error:
        connection.close()
        unreadable = sqlite3.SQLITE_NOTADB if key is None else sqlite3.SQLITE_CORRUPT
        if getattr(error, "sqlite_errorcode", 0) != unreadable:
            raise
        found = path.stat()
        if tried and os.path.samestat(found, tried):
            raise
        from omcli.sqlite.cipher import known_key  # noqa: PLC0415

        # It is encrypted, or its encrypted or decrypted copy has just taken its place.
        keys[path] = known_key(path)
        return connect(path, mode, wait=wait, immutable=immutable, tried=found)
    return connection


keys: dict[Path, str | None] = {}
"""Keys of the encrypted files that this process has opened. They are opened with the same driver from then on: if
another one opened and closed such a file, the system would release SQLite's locks on it.
"""


def key_of(connection: sqlite3.Connection) -> str | None:
    """Return the key of an encrypted database, or None if it is not encrypted."""
    return getattr(connection, "key", None)


def _reader(path: Path, *, wait: float) -> sqlite3.Connection:
    try:
        return connect(path, "ro", wait=wait)
    except sqlite3.Error as error:
        # In a read-only folder or on a full disk, SQLite cannot create its -shm file. Other processes cannot write
        # there either, so the file may be read as it is, unless an earlier writer left a log next to it.
        if not cannot_open(error) or _has_log(path):
            raise
        return connect(path, "ro", wait=wait, immutable=True)


def _private_copy(source: sqlite3.Connection, *, place: str) -> sqlite3.Connection:
    """Return a copy in memory or in a file without a name, and close the source. An encrypted one stays in memory."""
    with closing(source):
        if (key := key_of(source)) is None:
            copy = prepare(sqlite3.connect(place, isolation_level=None))
        else:
            from omcli.sqlite import cipher  # noqa: PLC0415

            copy = cipher.in_memory(key)
        source.backup(copy)
    return copy


def retry(connection: sqlite3.Connection, statement: str, *, deadline: float) -> None:
    """Run a statement, retrying while another process holds a lock, until `deadline` (in monotonic time)."""
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def size(path: Path) -> int | None:
    """Return the size of a store and its write-ahead log in bytes, or None if the store is missing."""
    log, _ = log_files(path)
    found = None
    with suppress(FileNotFoundError):  # the log is removed when the last writer closes
        found = path.stat().st_size
        found += log.stat().st_size
    return found


def create(path: Path) -> None:
    """Create the file and its folder if they are missing, accessible only to the user. SQLite gives its additional
    files the same permissions.

    Raise CannotCreate if this fails, and the errors of `exists`.
    """
    if exists(path):
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise CannotCreate(
            f"cannot create {path}: {error.strerror}", hint="name a place you can write to with --db"
        ) from error


def log_files(path: Path) -> tuple[Path, Path]:
    """Return the two files SQLite keeps next to an open store: the write-ahead log and its index."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def spool_folder(path: Path) -> Path:
    """Return the folder beside a store for input that the store could not take (see `spool`). If the path is a link,
    the folder is beside the file that the link leads to.
    """
    return Path(f"{os.path.realpath(path) if path.is_symlink() else path}.spool")


def _let_write_log(path: Path) -> None:
    """Make the log files writable if the store is.

    SQLite gives them the store's permissions. If a write-protected store is read, files may remain that cannot be
    written when the store is writable again.
    """
    for file in log_files(path):
        with suppress(OSError):  # it may be deleted at any moment, or belong to another user
            if ~file.stat().st_mode & (mode := path.stat().st_mode) & stat.S_IWUSR:
                file.chmod(stat.S_IMODE(mode))


def _has_log(path: Path) -> bool:
    log, _ = log_files(path)
    return log.exists() and log.stat().st_size > 0


def exists(path: Path) -> bool:
    """Return True if the file exists, and False if nothing exists at its path.

    Raise UnusableStore if the path leads to something else (opening a named pipe would wait for ever) or follows a
    broken link (its target may be on a disk that is not mounted). Raise CannotCreate if one of the path's folders is a
    file, and InputOutput if one of them cannot be searched.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        for part in (path, *path.parents):
            if part.is_symlink() and not part.exists():
                raise UnusableStore(
                    f"{part} is a link to {part.readlink()}, which does not exist", hint=_ANOTHER
                ) from None
        return False
    except NotADirectoryError as error:
        raise CannotCreate(f"cannot create {path}: {error.strerror}", hint=_ANOTHER) from error
    except OSError as error:
        raise InputOutput(
            f"cannot read {path}: {error.strerror}", hint="check the permissions of its folder"
        ) from error
    if not stat.S_ISREG(mode):
        raise UnusableStore(f"{path} is not a store but {_OTHER.get(stat.S_IFMT(mode), 'a device')}", hint=_ANOTHER)
    return True


# ---- migrations

MIGRATIONS = Path(__file__).with_name("migrations")
"""Folder of the schema's steps. It is a plain path because importing importlib.resources takes longer than opening the
store.
"""
APPLICATION_ID = 0x6F6D636C
"""`omcl` in the file's header. The first step writes it."""
_HEADER, _APPLICATION = 100, slice(68, 72)
"""Number of bytes in the header of a SQLite file, and the place of the application's id in it."""

_STATE = """
    SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
        (SELECT count(*) FROM sqlite_schema)
"""
"""Version, application id and number of schema objects. They are read in one statement, because another process might
create a store between two statements.
"""


def steps(folder: Path = MIGRATIONS) -> tuple[Path, ...]:
    """Return the files of all steps in order. The first step creates version 1. Files are read only when they run."""
    return tuple(folder / name for name in sorted(os.listdir(folder)) if name.endswith(".sql"))  # noqa: PTH208


def whole_file(step: Path) -> Path:
    """Return the path of the schema as it is after a step: the step's path, ending in `.schema`.

    It makes the same new store as all steps, in a third of the time. Only the newest step has such a file.
    """
    return step.with_suffix(".schema")


def check_version(connection: sqlite3.Connection, *, path: Path, newest: int) -> int:
    """Return the schema version of an open file, 0 for an empty one, without changing it.

    Raise NewerStore if a later version wrote the store, and UnusableStore if the database is not a store.
    """
    found, owner, objects = connection.execute(_STATE).fetchone()
    if owner != APPLICATION_ID and (owner or found or objects):
        raise UnusableStore(f"{path} is a database of another program", hint=_ANOTHER)
    if found > newest:
        raise NewerStore(
            f"{path} has schema version {found}, this om knows versions up to {newest}",
            hint="upgrade om, or name another file with --db",
        )
    assert isinstance(found, int)
    return found


def is_of_om(path: Path) -> bool:
    """Return True if the header of a file says that om wrote it. A damaged file need not be readable by SQLite."""
    from omcli.sqlite.cipher import key_name  # noqa: PLC0415 - most stores are not encrypted

    with path.open("rb") as stream:
        header = stream.read(_HEADER)
    return int.from_bytes(header[_APPLICATION], "big") == APPLICATION_ID or key_name(path) is not None


def migrate(
    connection: sqlite3.Connection, steps: Sequence[Path], *, path: Path, back_up: Callable[[int], object] | None = None
) -> None:
    """Run the steps that a store lacks. Each step and its version number are written in one transaction.

    A new store is created in one transaction: from the schema beside the last step, or with all steps. For an existing
    store, `back_up` is called with the old version before the first step, under the write lock. Raise MigrationFailed
    if a step fails, UnusableStore without FTS5, and NewerStore if another process has just migrated the store further.
    """
    while version(connection) != len(steps):
        with writing(connection):
            # Read again under the lock, because another process may have migrated the store in the meantime.
            before = check_version(connection, path=path, newest=len(steps))
            if before == len(steps):
                return
            if before and back_up:
                back_up(before)
            back_up = None
            if not before and (whole := whole_file(steps[-1])).is_file():
                _run(connection, whole.read_text("utf-8"), path=path, after=len(steps))
                return
            for step in range(before, before + 1 if before else len(steps)):
                _run(connection, steps[step].read_text("utf-8"), path=path, after=step + 1)


def version(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    assert isinstance(number, int)
    return number


def each_statement(sql: str) -> Iterator[str]:
    """Yield the statements of a script one by one, because `executescript` would commit first."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if ";" in line and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _run(connection: sqlite3.Connection, sql: str, *, path: Path, after: int) -> None:
    try:
        for statement in each_statement(sql):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {after}")
    except sqlite3.Error as error:
        if om_error(error, path=path, wait=0):
            raise
        if "no such module" in str(error):
            raise UnusableStore(
                "this Python's SQLite has no full-text search (FTS5)", hint="use another Python"
            ) from error
        raise MigrationFailed(
            f"{path} could not be brought from schema version {after - 1} to {after}: {error}; rolled back",
            hint="the store is unchanged; keep using the om that wrote it",
        ) from error


# ---- indexes of words

_TOKENIZER = "porter unicode61 remove_diacritics 2"
"""The tokenizer of the indexes, as in their migration."""
_PAGES = """
    SELECT count(*), total(hex(substr(block, 3, 2)) BETWEEN '0004' AND printf('%04X', length(block))),
        total(hex(substr(block, 3, 2)) < printf('%04X', length(block))), (SELECT count(*) FROM {0}_idx),
        (SELECT hex(substr(block, 6, 1)) NOT IN ('', '00') FROM {0}_data WHERE id = 10)
    FROM {0}_data WHERE id > 10 AND id >> 36 & 1 = 0
"""
"""Numbers of pages of an index: all; sound ones, whose third and fourth bytes (the end of their entries) are at least 4
and at most the page's length; pages with a list of the places of words after the entries; pages that FTS5 finds by
their first word. The last column is true if record 10 lists any segment.
"""


def is_index_whole(connection: sqlite3.Connection, table: str) -> bool:
    """Return False if an index has lost a record in a way that FTS5 does not notice. The check takes 5 ms for
    100,000 messages.

    Record 1 begins with the number of indexed texts, record 10 lists the index's segments, and records above 10 are
    pages of these segments. Records with bit 36, which only index long lists, are not checked.
    """
    pages, sound, with_words, listed, has_parts = connection.execute(_PAGES.format(table)).fetchone()
    (texts,) = connection.execute(f"SELECT count(*) FROM {INDEXES[table][0]}").fetchone()
    totals = connection.execute(f"SELECT block FROM {table}_data WHERE id = 1").fetchone()
    return (
        sound == pages
        and with_words <= listed
        and bool(has_parts) == bool(pages)
        and totals is not None
        and _first_number(totals[0]) == texts
    )


def _first_number(block: bytes) -> int:
    """Return the number at the beginning of a record: seven bits in each byte, the highest first."""
    number = 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number


def is_index_complete(connection: sqlite3.Connection, table: str) -> bool:
    """Return False if FTS5 finds an index damaged when it reads all of it."""
    try:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    except sqlite3.Error as error:
        if not is_of_index(error):
            raise
        return False
    return True


def marked_texts(texts: Iterable[str], query: str, *, marks: tuple[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the index of each text that matches, and the text with marks around the words."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE lines USING fts5 (text, tokenize = '{_TOKENIZER}')")
        connection.executemany("INSERT INTO lines (rowid, text) VALUES (?, ?)", enumerate(texts))
        yield from connection.execute(
            "SELECT rowid, highlight(lines, 0, ?, ?) FROM lines WHERE lines MATCH ? ORDER BY rowid",
            (*marks, query),
        )
