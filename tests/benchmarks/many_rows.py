"""A team's memory with many rows, in a file and on a server: its size, and what many writers do in it together.

Run as `python -m tests.benchmarks.many_rows [--rows N] [--sessions N] [--writers N] [--folder FOLDER]`. Half of the
rows are messages, the others what was observed in them. They are written to the tables directly, and the indexes made
afterwards. With --folder the stores are kept there, and a later run fills only those that are empty.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from omcli.postgres import PostgresStore
from omcli.postgres.search import words_of
from omcli.sqlite import SqliteStore, dialect
from tests.benchmarks.many_writers import COMMON, measure, open_store, rare
from tests.material import COUNTER, NOW
from tests.postgres_server import PostgresServer, remove, started

_PROJECTS = 100
_SETTINGS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "'2GB'", "max_wal_size": "'8GB'"}
_MESSAGE = "seq session role counted key tokens counter text".split()
_ROW = (
    "position id session project kind type priority importance text observed_at tokens counter source batch generation"
    " visible"
).split()
_SIZES = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE relnamespace = 'om'::regnamespace AND relkind = 'r' ORDER BY pg_total_relation_size(oid) DESC LIMIT 6
"""


def _texts(number: int) -> Iterator[tuple[int, list[str]]]:
    chance = Random(number)
    for at in range(1, number + 1):
        yield at, chance.choices(COMMON, k=10) + [rare(chance) for _ in range(6)]


def tables(rows: int, sessions: int, writers: int) -> Iterator[tuple[str, Sequence[str], Iterable[Sequence[object]]]]:
    """Yield the tables with their columns and rows. A session has its messages in a row, and one batch."""
    half, each = rows // 2, rows // 2 // sessions
    whole = range(1, sessions + 1)

    def session(at: int) -> int:
        return min((at - 1) // each + 1, sessions)

    def digest(kind: str, at: int) -> bytes:
        return md5(f"{kind} {at}".encode(), usedforsecurity=False).digest()

    yield "projects", ["number", "path"], ((at + 1, f"/work/{at}") for at in range(_PROJECTS))
    names = ((at, f"{(at - 1) % writers}-{(at - 1) // writers}", "import", NOW) for at in whole)
    yield "sessions", ["number", "id", "agent", "seen_at"], names
    ends = {at: half if at == sessions else at * each for at in whole}
    columns = "number session lane after through outcome at observations".split()
    covered = ((at, at, "observe", (at - 1) * each, ends[at], "observed", NOW, each) for at in whole)
    yield "batches", columns, covered
    cursors = ((at, "observe", ends[at], ends[at]) for at in whole)
    yield "cursors", ["session", "lane", "covers_up_to", "offered_up_to"], cursors
    messages = ((at, session(at), "user", True, f"k{at}", 30, COUNTER, " ".join(words)) for at, words in _texts(half))
    yield "messages", _MESSAGE, messages
    yield "identities", ["identity", "message"], ((digest("message", at), at) for at in range(1, half + 1))
    same, made_by = ("observation", "fact", "medium", 5), (30, COUNTER, "rules")
    observed = (
        (
            at,
            digest("row", at),
            of := session(at),
            of % _PROJECTS + 1,
            *same,
            " ".join(words),
            NOW,
            *made_by,
            of,
            0,
            True,
        )
        for at, words in _texts(half)
    )
    yield "observations", _ROW, observed
    yield "observation_sources", ["observation", "message"], ((at, at) for at in range(1, half + 1))
    counts = [(at, COUNTER, ends[at] - (at - 1) * each) for at in whole]
    columns = "session counter messages counted tokens".split()
    yield "message_counts", columns, ((at, name, found, found, found * 30) for at, name, found in counts)
    columns = "session kind counter visible hidden tokens changes".split()
    yield "row_counts", columns, ((at, "observation", name, n, 0, n * 30, n) for at, name, n in counts)


def fill_server(store: PostgresStore, rows: int, sessions: int, writers: int) -> None:
    connection: Any  # of PostgreSQL
    with store.database.writing() as connection:
        connection.execute("SET LOCAL session_replication_role = replica")  # without triggers
        connection.execute("SET LOCAL maintenance_work_mem = '1GB'")
        found = connection.execute(
            "SELECT relname, pg_get_indexdef(oid) FROM pg_class WHERE relnamespace = 'om'::regnamespace"
            " AND relkind = 'i' AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = pg_class.oid)"
        ).fetchall()
        for name, _ in found:
            connection.execute(f"DROP INDEX {name}")
        for table, columns, made in tables(rows, sessions, writers):
            connection.copy(table, columns, made)
        stems = {word: stem for word, [stem] in zip(COMMON, words_of(COMMON), strict=True)}
        for table, number in (("message_words", "seq"), ("row_words", "position")):
            made = (
                (at, "{" + ",".join({stems.get(word, word) for word in words}) + "}") for at, words in _texts(rows // 2)
            )
            connection.copy(table, [number, "words"], made)
        for _, definition in found:
            connection.execute(definition)
        numbered = dict.fromkeys(("projects", "sessions", "batches"), "number")
        for table, column in (numbered | {"messages": "seq", "observations": "position"}).items():
            connection.execute(
                f"SELECT setval(pg_get_serial_sequence('om.{table}', '{column}'), max({column})) FROM {table}"
            )
        connection.execute("ANALYZE")


def fill_file(store: SqliteStore, rows: int, sessions: int, writers: int) -> None:
    with store.database.writing() as connection:
        dropped = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        dropped = [row for row in dropped if row["type"] in ("index", "trigger")]
        for kind, name, _ in dropped:
            connection.execute(f"DROP {kind} {name}")
        for table, columns, made in tables(rows, sessions, writers):
            places = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", made)
        for table in dialect.INDEXES:
            dialect.fill_index(connection, table)
        for *_, sql in dropped:
            connection.execute(sql)


def _filled(place: str, asked: Any) -> None:
    """Fill a store unless it is filled, and print how long that took."""
    with open_store(place) as store:
        with store.database.reading() as connection:
            (found,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
        if found:
            return
        since = time.monotonic()
        if isinstance(store, PostgresStore):
            fill_server(store, asked.rows, asked.sessions, asked.writers)
        else:
            fill_file(store, asked.rows, asked.sessions, asked.writers)
        print(f"filled {place.partition('?')[0]} in {time.monotonic() - since:.0f} s", flush=True)


def _server(folder: Path) -> tuple[PostgresServer, str]:
    """Start a server that waits for its disk, and return it with its database."""
    server = started(folder)
    if server.run("SHOW fsync") == [("off",)]:
        for name, value in _SETTINGS.items():
            server.run(f"ALTER SYSTEM SET {name} = {value}")
        server.run("CREATE DATABASE memory")
        server.stop()
        server = started(folder)
    return server, server.url_of("memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", type=Path, help="where the stores are kept")
    asked = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # the server may be another user's
        server, url = _server(folder / "server")
        try:
            for what, place in (("server", url), ("file", str(folder / "memory.db"))):
                _filled(place, asked)
                measure(
                    what,
                    place,
                    writers=asked.writers,
                    sessions=asked.sessions // asked.writers,
                    seconds=asked.seconds,
                )
            size = (folder / "memory.db").stat().st_size
            print(f"file: {size / 1e6:.0f} MB, {size / asked.rows:.0f} bytes for each row")
            for name, table, indexes in server.run(_SIZES, database="memory"):
                print(f"server: {name:20} {table / 1e6:8.0f} MB and its indexes {indexes / 1e6:8.0f} MB")
            ((size,),) = server.run("SELECT pg_database_size('memory')")
            print(f"server: {size / 1e6:.0f} MB, {size / asked.rows:.0f} bytes for each row")
        finally:
            server.stop()
            if asked.folder is None:
                with suppress(sqlite3.Error):
                    remove(folder / "server")


if __name__ == "__main__":
    main()
