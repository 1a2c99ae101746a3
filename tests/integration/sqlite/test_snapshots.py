"""Copies of the store beside it: several at one moment, from several threads, each whole and under its own name."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from omcli.base.record import replace
from omcli.memory.changes import OperationKind, OperationWrite, SessionTitle
from omcli.sqlite import SqliteStore
from tests.material import COUNTER, said, session

NOW = "2026-03-02T12:00:00.000Z"


def test_snapshots_of_one_moment_are_each_whole_and_have_names_of_their_own(tmp_path: Path) -> None:
    """T48: of eight that are made at once none is lost, and nothing is left beside them."""
    path = tmp_path / "om.db"
    SqliteStore.open(path, wait=10).close()

    def made(_: int) -> str:
        with closing(SqliteStore.open(path, wait=10)) as store:
            return store.backups.snapshot(now=NOW) or ""

    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(made, range(8)))
    assert len(names) == 8
    assert {str(each) for each in tmp_path.glob("om.db.*")} == names
    for name in names:
        with closing(sqlite3.connect(name)) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_store_in_which_a_title_was_forgotten_is_in_order(tmp_path: Path) -> None:
    """T48: SQLite 3.40 says otherwise of tables whose columns are in another order than their key."""
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        store.messages.append(replace(session(), title="Tides"), [said("hello")], counter=COUNTER, now=NOW)
        store.operations.change(
            OperationWrite(verb=OperationKind.FORGET, titles=(SessionTitle("s", "Tides"),)), now=NOW
        )
        assert store.tombstones.titles() == (SessionTitle("s", "Tides"),)
        name = store.backups.snapshot(now=NOW) or ""
        assert store.backups.back_up(keep=1, now="2026-03-05T12:00:00.000Z").path is not None
    with closing(sqlite3.connect(name)) as copy:
        assert copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
