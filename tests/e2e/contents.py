"""What a store holds, table by table, told so that two stores can be compared: a file, or a database on a server.

Queries may have SQLite's `?`.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from omcli.sqlite.dialect import prepare
from tests.postgres_server import PostgresServer

Contents = dict[str, list[tuple[object, ...]]]
Place: TypeAlias = Path | str
"""The path of a file, or the URL of a database."""

_PASSING = {"leases", "hosts"}
"""Tables that say who is at work, or which store it is, not what was kept."""
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'om'::regnamespace AND relkind = 'r'"


@contextmanager
def opened(store: Place) -> Iterator[Any]:
    """A copy of the store as it lies there, with its log: looking at the store itself would leave a mark."""
    if isinstance(store, str):
        with connected(store) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
        return
    with TemporaryDirectory() as folder:
        for file in filter(Path.is_file, store.parent.glob(f"{store.name}*")):  # and not the spool
            shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder) / store.name)) as copy:
            yield copy


@contextmanager
def connected(store: Place, *, wait: float = 60) -> Iterator[Any]:
    """The store itself. Every statement is committed at once."""
    if isinstance(store, Path):
        with closing(prepare(sqlite3.connect(store, timeout=wait, isolation_level=None))) as file:
            yield file
        return
    from omcli.postgres.connection import connect

    with closing(connect(store)) as connection:
        yield connection


@contextmanager
def held(store: Place) -> Iterator[None]:
    """Somebody else is in the middle of writing."""
    with connected(store) as connection:
        if isinstance(connection, sqlite3.Connection):
            is_new = connection.execute("PRAGMA page_count").fetchone() == (0,)
            connection.execute(f"BEGIN {'EXCLUSIVE' if is_new else 'IMMEDIATE'}")
        else:
            from omcli.postgres.dialect import begin_writing

            begin_writing(connection, wait=60)
        yield
        connection.execute("ROLLBACK")


def rows(store: Place, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What a statement finds in a store that may be in use, or what it changes there."""
    with connected(store) as connection:
        found = connection.execute(sql, values)
        return [tuple(row) for row in found.fetchall()] if found.description else []


def exists(store: Place) -> bool:
    """Whether there is a store, even an empty one."""
    if isinstance(store, Path):
        return store.exists()
    return rows(store, "SELECT to_regnamespace('om') IS NOT NULL") == [(True,)]


def remove(store: Place) -> None:
    """Delete a store."""
    if isinstance(store, Path):
        store.unlink(missing_ok=True)
    else:
        rows(store, "DROP SCHEMA IF EXISTS om CASCADE")


def copy(store: Place, target: Place) -> None:
    """Put a copy of a store that nobody uses in place of another one."""
    if isinstance(store, Path):
        assert isinstance(target, Path)
        remove(target)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(store, target)
    else:
        assert isinstance(target, str)
        database, template = (urlsplit(url).path[1:] for url in (target, store))
        server = PostgresServer(PostgresServer(store).url_of("postgres"))
        server.drop(database)
        server.run(f"CREATE DATABASE {database} TEMPLATE {template}")


def make_newer(store: Place) -> None:
    """Have a store say that a later version of om wrote it."""
    rows(
        store, "PRAGMA user_version = 9999" if isinstance(store, Path) else "UPDATE om.schema_version SET number = 9999"
    )


def beside(store: Place) -> list[str]:
    """The other files in the folder of a store, none where it is on a server."""
    return [path.name for path in store.parent.iterdir() if path != store] if isinstance(store, Path) else []


def users(store: str) -> int:
    """How many connections there are to a database, without that of this question."""
    [(number,)] = rows(store, "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()")
    return int(number)


def stored(store: Place) -> bytes:
    """All that is in a store: the bytes of the file and its log, or all rows of the database."""
    if isinstance(store, Path):
        near = filter(Path.is_file, sorted(store.parent.glob(f"{store.name}*")))
        files = {path.name: path.read_bytes() for path in near if not path.name.endswith(("-shm", ".bak"))}
        return b"\0".join(b"\0".join((name.encode(), content)) for name, content in files.items() if content)
    if not exists(store):
        return b""
    with opened(store) as connection:
        tables = sorted(table for (table,) in connection.execute(_TABLES))
        found = {table: sorted(connection.execute(f"SELECT t::text FROM {table} AS t")) for table in tables}
    return "\0".join(text for table in tables for text in (table, *(text for (text,) in found[table]))).encode()


def contents(store: Place) -> Contents:
    """Every row of every table. Ids of observations, which are random, are told by the row's position instead."""
    with opened(store) as connection:
        if isinstance(connection, sqlite3.Connection):
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            kinds = {name: kind for _, name, kind, *_ in connection.execute("PRAGMA main.table_list")}
            tables = [name for name, kind in kinds.items() if kind == "table"]
            words = {name: _words(connection, name) for name, kind in kinds.items() if kind == "virtual"}
        else:
            tables, words = [name for (name,) in connection.execute(_TABLES)], {}
        positions = {
            row: f"row {position}" for row, position in connection.execute("SELECT id, position FROM observations")
        }
        return {table: _rows(connection, table, positions) for table in tables if table not in _PASSING} | words


def _rows(connection: Any, table: str, positions: Mapping[object, str]) -> list[tuple[object, ...]]:
    """The stamp of a file that has just been written is not noted: it says when a run was, not what was taken in."""
    found = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description or ()]

    def told(name: str, value: object) -> object:
        if (table, name) == ("bookmarks", "found"):
            return json.dumps({key: each for key, each in json.loads(str(value)).items() if key != "stamp"})
        return repr(value) if isinstance(value, list) else positions.get(value, value)

    return sorted((tuple(map(told, names, row)) for row in found.fetchall()), key=repr)


def _words(connection: sqlite3.Connection, index: str) -> list[tuple[object, ...]]:
    """The words of an index with the numbers of what they are in; how they are stored differs from run to run."""
    connection.execute(f"CREATE VIRTUAL TABLE temp.terms_of_{index} USING fts5vocab(main, {index}, instance)")
    return sorted(connection.execute(f"SELECT term, doc FROM terms_of_{index}").fetchall())


def number_of(store: Place, table: str) -> int:
    """How many rows a table has, for a start none; of a store that is in use."""
    tables = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    if isinstance(store, str):
        tables = f"SELECT count(*) FROM ({_TABLES}) AS found WHERE relname = ?"
    with connected(store) as connection:
        if connection.execute(tables, (table,)).fetchone() == (0,):
            return 0
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
    assert isinstance(count, int)
    return count


def is_writable(store: Place) -> bool:
    """Whether nobody is in the middle of writing."""
    with connected(store, wait=0) as connection:
        if not isinstance(connection, sqlite3.Connection):
            from omcli.sqlite.connection import APPLICATION_ID

            return bool(connection.execute(f"SELECT pg_try_advisory_xact_lock({APPLICATION_ID})").fetchone()[0])
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


def assert_covered_once(store: Place) -> None:
    """The batches of each session follow each other without a gap or an overlap, from the first message to the last."""
    with opened(store) as connection:
        reached: dict[int, int] = {}
        for session, after, through in connection.execute(
            "SELECT session, after, through FROM batches WHERE lane = 'observe'"
            " AND outcome NOT IN ('failed', 'ahead') ORDER BY number"
        ):
            assert after == reached.get(session, 0)
            reached[session] = through
        cursors = dict(
            connection.execute("SELECT session, covers_up_to FROM cursors WHERE lane = 'observe'").fetchall()
        )
        last = dict(connection.execute("SELECT session, max(seq) FROM messages GROUP BY session").fetchall())
    assert reached == cursors == last


def phase(store: Place) -> str:
    """How far a run came that takes new sessions in, one after another."""
    if not exists(store) or (isinstance(store, Path) and not store.stat().st_size):
        return "starting"
    with opened(store) as connection:
        if isinstance(connection, sqlite3.Connection) and connection.execute("PRAGMA user_version").fetchone() == (0,):
            return "starting"
        appended, covered = (
            {session for (session,) in connection.execute(f"SELECT DISTINCT session FROM {table}")}
            for table in ("messages", "cursors")
        )
    if not appended:
        return "made"
    return "observing" if appended == covered else "appending"
