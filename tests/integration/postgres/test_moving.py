"""A store that is copied to a server and back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from omcli.base import telling
from omcli.base.errors import BadUsage
from omcli.memory.observation import LogQuery
from omcli.postgres import PostgresStore
from omcli.postgres.moving import copy_store
from omcli.postgres.vectors import PostgresVectors
from omcli.sqlite import SqliteStore
from omcli.sqlite.dialect import columns_of
from tests.conftest import Om
from tests.material import COUNTER, NOW, said, session

MODEL = "test/three"
STORIES = Path(__file__).parents[2] / "stories"


def tables(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a file, by table, without what belongs to the file alone."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
            " AND name NOT LIKE '%words%' AND name NOT LIKE 'sqlite_%'"
        )
        found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names.fetchall()}
    found.pop("leases")
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@pytest.fixture
def lived(om: Om) -> Om:
    """A store in which everything has happened that leaves rows somewhere."""
    for story in sorted(STORIES.glob("*.json*")):
        om("observe", story)
    om("note", "The depot closes at noon.", "--type", "fact")
    om("note", "Never call \0 on Sundays.")
    om("reflect", "--global", code=None)
    om("forget", "--match", "lint", "--yes", code=None)
    om("prune", "--keep-last", "5", "--yes", code=None)
    om("undo")
    om("forget", "--match", "release", "--yes", "--hard", code=None)
    with SqliteStore.open(om.db, wait=1) as store:
        places = store.vectors.missing(MODEL)
        texts = {part for parts in store.vectors.texts(places).values() for part in parts}
        store.vectors.put(MODEL, places, {text: [1.0, len(text), -3.0] for text in texts})
    return om


def test_both_engines_have_the_same_tables_with_the_same_columns(postgres_url: str) -> None:
    own = {"message_words", "row_words", "schema_version"}
    with SqliteStore.temporary() as file, PostgresStore.open(postgres_url, wait=1) as server:
        found = []
        for store, query in (
            (file, "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"),
            (server, "SELECT tablename FROM pg_tables WHERE schemaname = 'om'"),
        ):
            with store.database.reading() as connection:
                names = {name for (name,) in connection.execute(query)} - own
                found.append({name: {*columns_of(connection, name).split(", ")} for name in names})
    assert found[0] == found[1]


def test_a_store_that_is_moved_to_a_server_and_back_is_the_same(lived: Om, postgres_url: str, tmp_path: Path) -> None:
    with SqliteStore.open(lived.db, wait=1) as store, PostgresStore.open(postgres_url, wait=1) as server:
        copied = copy_store(store, server)
        assert copied["messages"] > 50
        assert copied["observations"] > 20
        assert copied["operations"] > 3
        assert min(copied[table] for table in ("aside_messages", "aside_observations", "tombstones")) > 0
        assert min(copied[table] for table in ("vector_models", "vectors", "message_vectors", "row_vectors")) > 0
        with SqliteStore.open(tmp_path / "back.db", wait=1) as back:
            assert copy_store(server, back) == copied
            assert list(back.records.read()) == list(store.records.read())
            back.index.check(thoroughly=True)
        server.index.check(thoroughly=True)
        by_index, by_all = PostgresVectors(server.database, few=0), store.vectors
        near, expected = (each.nearest(MODEL, [1, 50, 3], LogQuery(), most=3) for each in (by_index, by_all))
        assert [*near.messages.values()] == pytest.approx([*expected.messages.values()])
        ours = [logged.observation for logged in store.rows.log(LogQuery(hidden=True))]
        assert [logged.observation for logged in server.rows.log(LogQuery(hidden=True))] == ours
        # New rows get numbers of their own.
        assert server.messages.append(session("new"), [said("tide")], counter=COUNTER, now=NOW).new == (True,)
    assert tables(tmp_path / "back.db") == tables(lived.db)


def test_a_copy_that_was_interrupted_is_continued(lived: Om, postgres_url: str) -> None:
    class Interrupted(Exception):
        pass

    steps = 0

    def interrupt(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps % 5 == 0:
            raise Interrupted

    with SqliteStore.open(lived.db, wait=1) as store, PostgresStore.open(postgres_url, wait=1) as server:
        before = telling.set(interrupt)
        try:
            for _ in range(100):
                try:
                    copy_store(store, server)
                except Interrupted:
                    continue
                break
        finally:
            telling.reset(before)
        assert steps > 10
        assert list(server.records.read()) == list(store.records.read())


def test_a_store_with_a_memory_of_its_own_is_left_alone(lived: Om, postgres_url: str) -> None:
    with SqliteStore.open(lived.db, wait=1) as store, PostgresStore.open(postgres_url, wait=1) as server:
        server.messages.append(session("new"), [said("tide")], counter=COUNTER, now=NOW)
        with pytest.raises(BadUsage, match="is not empty"):
            copy_store(store, server)
        assert server.sessions.status().messages == 1
