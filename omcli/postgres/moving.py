"""Copying a whole store into an empty one on the other engine, table by table.

Both engines have the same tables and columns, so that rows are copied as they are: numbers, ids, hidden rows and what
can be undone. An interrupted copy is continued after the last row of each table. Leases are left behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from omcli.base import telling
from omcli.base.errors import BadUsage, InputOutput
from omcli.sqlite import dialect
from omcli.sqlite.dialect import Database

if TYPE_CHECKING:
    from omcli.sqlite import SqliteStore

_KEYS = {
    "hosts": "number",
    "authors": "number",
    "sessions": "number",
    "projects": "number",
    "operations": "number",
    "batches": "number",
    "cursors": "session, lane",
    "messages": "seq",
    "identities": "identity",
    "observations": "position",
    "observation_sources": "observation, message",
    "observation_supports": "observation, supported",
    "aside_messages": "seq",
    "aside_observations": "position",
    "tombstones": "digest, operation",
    "message_holds": "operation, message",
    "row_holds": "operation, position",
    "aside_titles": "put_by, session, title",
    "passed_over": "session, message",
    "blocks": "number",
    "successors": "row, by",
    "pictures": "sha256",
    "vector_models": "number",
    "vectors": "number",
    "message_vectors": "seq, part",
    "row_vectors": "position, part",
    "arrivals": "kind, number",
    "erased_rows": "id",
    "calls": "number",
    "rungs": "endpoint, model",
    "notices": "name",
    "bookmarks": "path, place",
}
"""Tables with their keys, each after those that it refers to."""
_COUNTS = {"message_counts": "session, counter", "row_counts": "session, kind, counter"}
"""Tables that triggers fill while rows are copied. What is in them at the end is replaced."""
_FLAGS = frozenset({"counted", "failed", "erased", "visible", "late"})
"""Columns that are integers in SQLite and booleans in PostgreSQL, unless they are in `_COUNTS`."""
_LATER = {"operations": ("undone_by",)}
"""Columns that may refer to a later row of the same table. They are set when all rows are there."""
_AT_ONCE = 5_000
_MOST_BYTES = 8 << 20
"""Maximum size of the rows, as Python prints them, of one transaction, unless a single row is larger."""


def copy_store(source: SqliteStore, target: SqliteStore, *, private: bool = False) -> Mapping[str, int]:
    """Copy a store into an empty one, or go on with an interrupted copy. Return the numbers of rows by table.

    Nobody can write to the source in the meantime. Raise BadUsage if the target has a memory of its own, and
    InputOutput if it is not equal in the end. A `private` copy is of a single moment: others go on writing, and it is
    not compared.
    """
    with source.database.reading() if private else source.database.writing() as reading:
        _take_id(reading, target.database)
        copied: dict[str, int] = {}
        total = sum(_count(reading, table) for table in _KEYS)
        done = 0
        for table, key in _KEYS.items():
            for number in _copy(reading, target.database, table, key):
                done += number
                telling.get()("copying", "row", done, total)
            copied[table] = _count(reading, table)
            done = sum(copied.values())
        with target.database.writing() as writing:
            for table, columns in _LATER.items():
                _set_later(reading, writing, table, columns)
            for table in _COUNTS:
                writing.execute(f"DELETE FROM {table}")
        for table, key in _COUNTS.items():
            for _ in _copy(reading, target.database, table, key):
                pass
        _prepare(target.database)
        if not private:
            _check(source.database, reading, target.database)
    return copied


def _take_id(reading: Any, target: Database) -> None:
    """Give the target the source's own id, unless it has it already. Raise BadUsage if the target is not empty."""
    (own,) = reading.execute("SELECT id FROM hosts WHERE number = 1").fetchone()
    with target.writing() as writing:
        (theirs,) = writing.execute("SELECT id FROM hosts WHERE number = 1").fetchone()
        if theirs == own:
            return
        if any(_count(writing, table) for table in _KEYS if table not in ("hosts", "notices")):
            raise BadUsage(
                f"{target.path} is not empty", hint="name an empty one; `om import` merges an export into a memory"
            )
        for table in ("hosts", "notices"):
            writing.execute(f"DELETE FROM {table}")
        writing.execute("INSERT INTO hosts (number, id) VALUES (1, ?)", (own,))


def _count(connection: Any, table: str) -> int:
    (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


def _copy(reading: Any, target: Database, table: str, key: str) -> Iterator[int]:
    """Copy the rows of a table after the last one that the target has. Yield the number of rows of each transaction."""
    columns = dialect.columns_of(reading, table).split(", ")
    later = [columns.index(each) for each in _LATER.get(table, ())]
    with target.reading() as there:
        order = ", ".join(f"{each} DESC" for each in key.split(", "))
        last = there.execute(f"SELECT {key} FROM {table} ORDER BY {order} LIMIT 1").fetchone()
    for rows in _parts_of_table(reading, table, columns, key, after=last):
        for row in rows:
            for place in later:
                row[place] = None
        with target.writing() as writing:
            _insert(writing, table, columns, rows)
        yield len(rows)


def _parts_of_table(
    connection: Any, table: str, columns: list[str], key: str, *, after: tuple[Any, ...] | None = None
) -> Iterator[list[list[Any]]]:
    """Yield the rows of a table in the order of its key, as many at once as fit into a transaction."""
    places = [columns.index(each) for each in key.split(", ")]
    while page := list(_rows_after(connection, table, columns, key, after)):
        after = tuple(page[-1][place] for place in places)
        yield page


def _rows_after(
    connection: Any, table: str, columns: list[str], key: str, after: tuple[Any, ...] | None
) -> Iterator[list[Any]]:
    condition = "" if after is None else f"WHERE ({key}) > ({', '.join('?' * len(after))})"
    query = f"SELECT {', '.join(columns)} FROM {table} {condition} ORDER BY {key} LIMIT {_AT_ONCE}"
    flags = [place for place, name in enumerate(columns) if name in _FLAGS and table not in _COUNTS]
    size = 0
    for row in connection.execute(query, tuple(after or ())):
        values = list(row)
        for place in flags:
            values[place] = None if values[place] is None else bool(values[place])
        yield values
        size += len(repr(values))
        if size > _MOST_BYTES:
            return


def _insert(writing: Any, table: str, columns: list[str], rows: list[list[Any]]) -> None:
    if not isinstance(writing, sqlite3.Connection):
        writing.copy(table, columns, rows)
        return
    at_once = max(1, 900 // len(columns))
    for at in range(0, len(rows), at_once):
        some = rows[at : at + at_once]
        places = ", ".join([f"({', '.join('?' * len(columns))})"] * len(some))
        values = tuple(value for row in some for value in row)
        writing.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places}", values)


def _set_later(reading: Any, writing: Any, table: str, columns: tuple[str, ...]) -> None:
    key = _KEYS[table]
    for column in columns:
        found = reading.execute(f"SELECT {column}, {key} FROM {table} WHERE {column} IS NOT NULL")
        writing.executemany(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", [tuple(row) for row in found])


def _prepare(target: Database) -> None:
    """Let a server index the texts that were copied, count new rows on from the last one, and look at the tables, so
    that it plans queries well from the first one on. SQLite has done so by itself.
    """
    from omcli.postgres.dialect import ServerDatabase  # noqa: PLC0415 - a file may be the target

    if not isinstance(target, ServerDatabase):
        return
    target.renew_index()
    with target.writing() as writing:
        counted = writing.execute(
            "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE attidentity <> '' AND relnamespace = to_regnamespace('om')"
        ).fetchall()
        for table, column in counted:
            sequence = f"pg_get_serial_sequence('om.{table}', '{column}')"
            writing.execute(f"SELECT setval({sequence}, coalesce(max({column}), 0) + 1, FALSE) FROM {table}")
        writing.execute(f"ANALYZE {', '.join((*_KEYS, *_COUNTS, 'message_words', 'row_words'))}")


def _check(source: Database, reading: Any, target: Database) -> None:
    """Raise InputOutput unless both stores have the same rows."""
    for table, key in (_KEYS | _COUNTS).items():
        with target.reading() as there:
            if _digest(reading, table, key) != _digest(there, table, key):
                raise InputOutput(
                    f"{target.path} is not equal to {source.path}: `{table}` differs",
                    hint="the source is unchanged; empty the target and run it again",
                )


def _digest(connection: Any, table: str, key: str) -> bytes:
    """Return a digest of the rows of a table. The one character that a server cannot store counts as what it stores."""
    found = sha256()
    number = 0
    columns = sorted(dialect.columns_of(connection, table).split(", "))
    for page in _parts_of_table(connection, table, columns, key):
        for row in page:
            found.update(repr(row).replace(r"\ufdd0", "\ufffd").encode())
        number += len(page)
        telling.get()("checking", "row", number, None)
    return found.digest()
