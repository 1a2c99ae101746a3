"""Encrypted files: SQLCipher as a driver that behaves like `sqlite3`, and the keys of this process.

A key is 64 hexadecimal digits, 256 random bits. Its name, the beginning of its hash, is in the file's first 16 bytes,
which SQLCipher leaves to its caller as a salt. So a wrong key is never taken for a damaged file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from omcli.base.errors import BadInput, NoKey, UnusableStore
from omcli.sqlite.dialect import interrupt_of, om_errors, prepare

try:
    from sqlcipher3 import dbapi2 as driver
except ImportError:
    driver = None

MARK = b"omcl"
"""Beginning of each encrypted file. The name of its key follows."""
_HEADER = 16
_NAME = 12
_DETAILED = {
    "UNIQUE": sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    "NOT": sqlite3.SQLITE_CONSTRAINT_NOTNULL,
    "CHECK": sqlite3.SQLITE_CONSTRAINT_CHECK,
    "FOREIGN": sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY,
    "fts5:": sqlite3.SQLITE_CORRUPT_VTAB,
}
"""Extended result codes by the first word of an error's message, because the driver gives only primary ones."""
_known: dict[str, str] = {}
"""Keys that this process has been given, by name."""


def name_of(key: str) -> str:
    """Return the name of a key: 24 hexadecimal digits that tell nothing about it."""
    return sha256(b"key of a store of om:" + bytes.fromhex(key)).digest()[:_NAME].hex()


def key_name(path: Path) -> str | None:
    """Return the name of the key that a file is encrypted with, or None if the file is unreadable or not encrypted by
    om. This must not be called while the process is connected to the file (see `connection.keys`).
    """
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER)
    except OSError:
        return None
    return header[len(MARK) :].hex() if header.startswith(MARK) and len(header) == _HEADER else None


def learn(key: str) -> str:
    """Let this process open files that are encrypted with a key, and return the key's name."""
    name = name_of(key)
    _known[name] = key
    return name


def known_key(path: Path) -> str | None:
    """Return the key of a file, or None if it is not encrypted. Raise NoKey if this process has not learnt the key."""
    name = key_name(path)
    if name is None:
        return None
    if name not in _known:
        raise NoKey(f"{path} is encrypted, and its key is missing", hint="om-store(5) says where keys are", name=name)
    return _known[name]


def version() -> str:
    """Return the version of SQLCipher, or an empty text if it is not installed."""
    if driver is None:
        return ""
    connection = driver.connect(":memory:")
    (found,) = connection.execute("PRAGMA cipher_version").fetchone()
    connection.close()
    return str(found).split()[0]


def connect(uri: str, key: str | None, *, wait: float) -> sqlite3.Connection:
    """Connect to a file by SQLCipher without reading it. If the key is None, the file must not be encrypted.

    Raise UnusableStore if SQLCipher is not installed.
    """
    if driver is None:
        raise UnusableStore(
            "sqlcipher3 is not installed, which encrypted files need", hint="pip install 'omcli[encryption]'"
        )
    connection: SecretDatabase = driver.connect(
        uri, uri=True, timeout=wait, isolation_level=None, factory=SecretDatabase
    )
    connection.key = key
    connection.execute("PRAGMA cipher_log_level = NONE")  # it would write to stderr
    if key is not None:
        connection.execute(f"PRAGMA key = {quoted(key)}")
        connection.execute("PRAGMA cipher_compatibility = 4")
    connection.execute("PRAGMA temp_store = MEMORY")
    return prepare(connection)


def in_memory(key: str) -> sqlite3.Connection:
    """Return an empty database in memory into which one with this key can be copied."""
    return connect(":memory:", key, wait=0)


def quoted(key: str) -> str:
    """Return a key with the salt that names it, as SQLCipher expects it."""
    return f"\"x'{key}{MARK.hex()}{name_of(key)}'\""


# ---- exports

_EXPORT = 0x6F6D6578
"""`omex`, the application's id in an encrypted export, by which it differs from a store."""


def write_lines(path: Path, lines: Iterable[bytes], *, key: str) -> None:
    """Write lines into an empty file, encrypted. They need not fit into memory.

    Raise InputOutput if the file cannot be written, and UnusableStore if SQLCipher is not installed.
    """
    with om_errors(path, wait=0), closing(connect(f"{path.absolute().as_uri()}?mode=rw", key, wait=0)) as connection:
        # A file that is not whole never takes its place, so it needs no journal.
        for statement in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            f"PRAGMA application_id = {_EXPORT}",
        ):
            connection.execute(statement)
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL)")
        connection.executemany(
            "INSERT INTO lines (line) VALUES (CAST(? AS TEXT))", ((line.rstrip(b"\n"),) for line in lines)
        )
        connection.execute("COMMIT")


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of an encrypted export. Raise BadInput if it is damaged or something else, UnusableStore if
    SQLCipher is not installed, and the errors of `known_key`.
    """
    key = known_key(path)
    try:
        with closing(connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", key, wait=0)) as connection:
            if connection.execute("PRAGMA application_id").fetchone() != (_EXPORT,):
                raise BadInput("it is an encrypted store, not an export", hint="`om restore FILE` puts it in place")
            for (line,) in connection.execute("SELECT CAST(line AS BLOB) FROM lines ORDER BY number"):
                yield line
    except sqlite3.DatabaseError as error:
        if (interrupt := interrupt_of(error)) is not None:
            raise interrupt from None
        raise BadInput(f"it is damaged: {error}", hint="export it again; nothing of it was imported") from error


# ---- the driver


def _as_sqlite_error(error: Exception) -> sqlite3.Error:
    """Return the error of `sqlite3` that an error of the driver stands for.

    NOTADB becomes CORRUPT, because the key is known to be right by its name in the file's header.
    """
    found: sqlite3.Error = getattr(sqlite3, type(error).__name__, sqlite3.Error)(*error.args)
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        code = sqlite3.SQLITE_CORRUPT if code == sqlite3.SQLITE_NOTADB else code
        found.sqlite_errorcode = _DETAILED.get(str(error).partition(" ")[0], code)
        found.sqlite_errorname = getattr(error, "sqlite_errorname", "")
    return found


def _with_sqlite_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, **options: Any) -> Any:
        try:
            return method(*values, **options)
        except driver.Error as error:
            raise _as_sqlite_error(error) from None

    return call


class SecretCursor(driver.Cursor if driver else object):  # type: ignore[misc]
    """A cursor of the driver that raises errors of `sqlite3`."""

    if driver:
        execute = _with_sqlite_errors(driver.Cursor.execute)
        executemany = _with_sqlite_errors(driver.Cursor.executemany)
        fetchone = _with_sqlite_errors(driver.Cursor.fetchone)
        fetchmany = _with_sqlite_errors(driver.Cursor.fetchmany)
        fetchall = _with_sqlite_errors(driver.Cursor.fetchall)
        __next__ = _with_sqlite_errors(driver.Cursor.__next__)


class SecretDatabase(driver.Connection if driver else object):  # type: ignore[misc]
    """A connection of the driver that raises errors of `sqlite3`, and has rows like those of `sqlite3`."""

    key: str | None = None
    _has_names = False

    if driver:
        commit = _with_sqlite_errors(driver.Connection.commit)
        rollback = _with_sqlite_errors(driver.Connection.rollback)
        backup = _with_sqlite_errors(driver.Connection.backup)
        close = _with_sqlite_errors(driver.Connection.close)

    def cursor(self) -> SecretCursor:
        made: Any = super().cursor(SecretCursor)
        if self._has_names:
            made.row_factory = driver.Row
        return made  # type: ignore[no-any-return]

    def _set_rows(self, kind: type | None) -> None:
        """Give rows named columns, as `sqlite3.Row` does, or make them plain tuples if `kind` is None."""
        self._has_names = kind is not None

    row_factory = property(lambda self: sqlite3.Row if self._has_names else None, _set_rows)
