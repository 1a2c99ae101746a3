"""Backups of a store on disk: checked, only the newest few, and none unfinished."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from omcli.base.errors import InputOutput
from omcli.sqlite import SqliteStore
from tests.material import session


def day(number: int) -> str:
    """Four o'clock on a day of March."""
    return f"2026-03-{number:02}T04:00:00.000Z"


def backups(folder: Path) -> list[str]:
    """The days that there are backups of."""
    return sorted(file.name[len("om.db.2026-03-") :][:2] for file in folder.glob("om.db.2026*.bak"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store with a session."""
    with SqliteStore.open(tmp_path / "om.db", wait=5) as store:
        store.messages.append(session("s"), [], counter="words", now=day(1))
        yield store


def test_a_backup_a_day_of_which_the_newest_stay(store: SqliteStore, tmp_path: Path) -> None:
    """storage.md §6: a copy for each day that can be opened, is for the user alone, and is one of the newest three."""
    for number in range(1, 8):
        made = store.backups.back_up(keep=3, now=day(number))
        assert made.path is not None
        assert store.backups.back_up(keep=3, now=day(number).replace("04:", "09:")).path is None
    assert backups(tmp_path) == ["05", "06", "07"]
    newest = Path(str(made.path))
    assert stat.S_IMODE(newest.stat().st_mode) == 0o600
    with closing(SqliteStore.open(newest, wait=1, read_only=True)) as copy:
        assert copy.sessions.find("s") is not None


def test_a_damaged_store_costs_no_backup(store: SqliteStore, tmp_path: Path) -> None:
    """The last good one stays, however old, where a new one does not pass."""
    store.backups.back_up(keep=1, now=day(1))
    with closing(sqlite3.connect(tmp_path / "om.db")) as connection:
        connection.execute("INSERT INTO leases (session, lane, owner, expires_at) VALUES (4711, 'x', 'y', 'z')")
        connection.commit()
    with pytest.raises(InputOutput, match="belongs to a missing one of `sessions`"):
        store.backups.back_up(keep=1, now=day(2))
    assert backups(tmp_path) == ["01"]
    assert not list(tmp_path.glob("*.partial"))


def test_what_a_killed_run_left_over_is_removed(store: SqliteStore, tmp_path: Path) -> None:
    """A copy half done, not written to for ten minutes, goes; one that somebody may be at stays. So do too many whole
    ones.
    """
    old, young = (tmp_path / f"om.db.2026-02-0{number}T040000Z.bak.partial" for number in (1, 2))
    for file in (old, young, tmp_path / "om.db.v6.bak"):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 1_000,) * 2)
    for number in (1, 2, 3):
        store.backups.back_up(keep=5, now=day(number))
    assert not old.exists()
    assert young.exists()
    store.backups.back_up(keep=2, now=day(3))
    assert backups(tmp_path) == ["02", "03"]
    assert (tmp_path / "om.db.v6.bak").exists()


def test_an_empty_copy_goes_also_when_no_backup_is_due(store: SqliteStore, tmp_path: Path) -> None:
    """XE7: the run that claimed its name was killed before it wrote anything."""
    assert store.backups.back_up(keep=5, now=day(1)).path is not None
    left = tmp_path / "om.db.2026-03-01T050000Z.bak.partial"
    left.touch()
    os.utime(left, (time.time() - 1_000,) * 2)
    assert store.backups.back_up(keep=5, now=day(1).replace("04:", "06:")).path is None
    assert not left.exists()


def test_no_old_one_goes_where_the_newest_is_no_store(store: SqliteStore, tmp_path: Path) -> None:
    """Who looks only at names would remove the last good one."""
    for number in (1, 2, 3):
        store.backups.back_up(keep=5, now=day(number))
    (tmp_path / "om.db.2026-03-03T040000Z.bak").write_bytes(b"scrambled" * 1000)
    assert store.backups.back_up(keep=1, now=day(3)).removed == ()
    assert backups(tmp_path) == ["01", "02", "03"]
