"""The SQLite databases of other programs, read without changing them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from omcli.base.errors import NoInput

_WAL_MODE = 2
"""Version of the file format (byte 18) if changes are written to a log beside the database first."""
_PATIENCE = 1.0
"""Seconds to wait for another program that is writing."""
_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"


@contextmanager
def opened(path: str, *, hint: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading. Raise NoInput with the hint if it is locked, damaged or missing."""
    try:
        with closing(sqlite3.connect(_url(path), uri=True, timeout=_PATIENCE)) as connection:
            connection.text_factory = _as_text
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise NoInput(f"the database cannot be read: {error}", hint=hint) from error


def names(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the tables."""
    return frozenset(name for (name,) in connection.execute(_NAMES))


def lines(path: str, tables: Sequence[str]) -> list[str] | None:
    """Return the rows of these tables as lines of JSON: the name of the table, with a list that holds the row.

    Columns with bytes are left out. Return None if a table is missing.
    """
    with opened(path, hint="try again when the program that it belongs to is closed") as connection:
        if not names(connection).issuperset(tables):
            return None
        return [line for table in tables for line in _lines(connection, table)]


def _lines(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    rows = connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
    columns = [column[0] for column in rows.description]
    for row in rows:
        fields = {name: value for name, value in zip(columns, row, strict=True) if not isinstance(value, bytes)}
        yield json.dumps({table: [fields]}, ensure_ascii=False)


def _as_text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _url(path: str) -> str:
    """Return the address at which a database is opened without writing.

    SQLite creates files beside a database with a log, even to read it. This is avoided while the log is empty: nobody
    has the database open then, and it can be read like a file that never changes. For a log that a crash left behind,
    SQLite does add its index.
    """
    with Path(path).open("rb") as file:
        has_log_mode = file.read(20)[18:19] == bytes([_WAL_MODE])
    log = Path(f"{path}-wal")
    is_at_rest = has_log_mode and not (log.exists() and log.stat().st_size)
    return f"{Path(path).resolve().as_uri()}?mode=ro{'&immutable=1' if is_at_rest else ''}"
