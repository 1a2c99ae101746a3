"""Copying a whole store into an empty one on the other engine, table by table.

Both engines have the same tables and columns, so that rows are copied as they are: numbers, ids, hidden rows and what
can be undone. An interrupted copy is continued after the last row of each table. Leases are left behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from omcli.base import telling
from omcli.base.errors import BadUsage, InputOutput
from omcli.sqlite import dialect
from omcli.sqlite.codec import compact_json
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
_AT_ONCE = 500
_MOST_BYTES = 8 << 20
"""Maximum size of the rows that are copied in one transaction, unless a single row is larger."""


def copy_store(source: SqliteStore, target: SqliteStore) -> Mapping[str, int]:
    """Copy a store into an empty one, or go on with an interrupted copy. Return the numbers of rows by table.

    Nobody can write to the source in the meantime. Raise BadUsage if the target has a memory of its own, and
    InputOutput if it is not equal in the end.
    """
    with source.database.writing() as reading:
        _adopt(reading, target.database)
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
        _go_on_counting(target.database)
    _check(source, target)
    return copied


def _adopt(reading: Any, target: Database) -> None:
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
    keys = key.split(", ")
    with target.reading() as there:
        order = ", ".join(f"{each} DESC" for each in keys)
        last = there.execute(f"SELECT {key} FROM {table} ORDER BY {order} LIMIT 1").fetchone()
    while rows := list(_page(reading, table, columns, key, last)):
        with target.writing() as writing:
            _insert(writing, table, columns, rows)
        places = [columns.index(each) for each in keys]
        last = tuple(rows[-1][place] for place in places)
        yield len(rows)


def _page(reading: Any, table: str, columns: list[str], key: str, last: tuple[Any, ...] | None) -> Iterator[list[Any]]:
    """Yield the next rows of a table, in the order of its key."""
    after = "" if last is None else f"WHERE ({key}) > ({', '.join('?' * len(last))})"
    query = f"SELECT {', '.join(columns)} FROM {table} {after} ORDER BY {key} LIMIT {_AT_ONCE}"
    later = _LATER.get(table, ())
    flags = [name in _FLAGS and table not in _COUNTS for name in columns]
    size = 0
    for row in reading.execute(query, tuple(last or ())):
        values = [bool(value) if flag and value is not None else value for flag, value in zip(flags, row, strict=True)]
        for name in later:
            values[columns.index(name)] = None
        yield values
        size += sum(len(value) for value in values if isinstance(value, (str, bytes)))
        if size > _MOST_BYTES:
            return


def _insert(writing: Any, table: str, columns: list[str], rows: list[list[Any]]) -> None:
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


def _go_on_counting(target: Database) -> None:
    """Let the numbers of new rows begin after those that were copied. SQLite does so by itself."""
    from omcli.postgres.dialect import ServerDatabase  # noqa: PLC0415 - a file may be the target

    if not isinstance(target, ServerDatabase):
        return
    with target.writing() as writing:
        counted = writing.execute(
            "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE attidentity <> '' AND relnamespace = to_regnamespace('om')"
        ).fetchall()
        for table, column in counted:
            sequence = f"pg_get_serial_sequence('om.{table}', '{column}')"
            writing.execute(f"SELECT setval({sequence}, coalesce(max({column}), 0) + 1, FALSE) FROM {table}")


def _check(source: SqliteStore, target: SqliteStore) -> None:
    """Raise InputOutput unless both stores give the same export."""
    ours, theirs = (_digest(store) for store in (source, target))
    if ours != theirs:
        raise InputOutput(
            f"{target.database.path} is not equal to {source.database.path}",
            hint="the source is unchanged; empty the target and run it again",
        )


def _digest(store: SqliteStore) -> bytes:
    """Return a digest of all records, in their order."""
    found = sha256()
    for number, record in enumerate(store.records.read()):
        found.update(compact_json(record).encode("utf-8", "surrogatepass") + b"\n")
        if number % _AT_ONCE == 0:
            telling.get()("checking", "record", number, None)
    return found.digest()
