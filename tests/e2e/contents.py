"""What a store holds, table by table, told so that two stores can be compared."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

Contents = dict[str, list[tuple[object, ...]]]

_PASSING = {"leases", "hosts"}
"""Tables that say who is at work, or which store it is, not what was kept."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the store as it lies there, with its log: looking at the store itself would leave a mark."""
    with TemporaryDirectory() as folder:
        for file in filter(Path.is_file, path.parent.glob(f"{path.name}*")):  # and not the spool
            shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder) / path.name)) as connection:
            yield connection


def contents(path: Path) -> Contents:
    """Every row of every table. Ids of observations, which are random, are told by the row's position instead."""
    with opened(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        positions = dict(connection.execute("SELECT id, 'row ' || position FROM observations"))
        tables = {name: kind for _, name, kind, *_ in connection.execute("PRAGMA main.table_list")}
        kept = [name for name, kind in tables.items() if kind == "table" and name not in _PASSING]
        words = {name: _words(connection, name) for name, kind in tables.items() if kind == "virtual"}
        return {table: _rows(connection, table, positions) for table in kept} | words


def _rows(connection: sqlite3.Connection, table: str, positions: Mapping[object, str]) -> list[tuple[object, ...]]:
    """The stamp of a file that has just been written is not noted: it says when a run was, not what was taken in."""
    if table == "bookmarks":
        connection.execute("UPDATE bookmarks SET found = json_remove(found, '$.stamp')")
    found = connection.execute(f"SELECT * FROM {table}")
    return sorted((tuple(positions.get(value, value) for value in row) for row in found), key=repr)


def _words(connection: sqlite3.Connection, index: str) -> list[tuple[object, ...]]:
    """The words of an index with the numbers of what they are in; how they are stored differs from run to run."""
    connection.execute(f"CREATE VIRTUAL TABLE temp.terms_of_{index} USING fts5vocab(main, {index}, instance)")
    return sorted(connection.execute(f"SELECT term, doc FROM terms_of_{index}").fetchall())


def number_of(path: Path, table: str) -> int:
    """How many rows a table has, for a start none; of a store that is in use."""
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]:
            return 0
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert isinstance(count, int)
    return count


def is_writable(path: Path) -> bool:
    """Whether nobody is in the middle of writing."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


def assert_covered_once(path: Path) -> None:
    """The batches of each session follow each other without a gap or an overlap, from the first message to the last."""
    with opened(path) as connection:
        reached: dict[int, int] = {}
        for session, after, through in connection.execute(
            "SELECT session, after, through FROM batches WHERE lane = 'observe'"
            " AND outcome NOT IN ('failed', 'ahead') ORDER BY number"
        ):
            assert after == reached.get(session, 0)
            reached[session] = through
        cursors = dict(connection.execute("SELECT session, covers_up_to FROM cursors WHERE lane = 'observe'"))
        last = dict(connection.execute("SELECT session, max(seq) FROM messages GROUP BY session"))
    assert reached == cursors == last


def phase(path: Path) -> str:
    """How far a run came that takes new sessions in, one after another."""
    if not path.exists() or not path.stat().st_size:
        return "starting"
    with opened(path) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return "starting"
        appended, covered = (
            {session for (session,) in connection.execute(f"SELECT DISTINCT session FROM {table}")}
            for table in ("messages", "cursors")
        )
    if not appended:
        return "made"
    return "observing" if appended == covered else "appending"
