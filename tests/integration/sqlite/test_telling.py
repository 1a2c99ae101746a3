"""Long statements tell a person that they go on, and end when the person interrupts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from omcli.base import telling
from omcli.base.errors import OmError
from omcli.sqlite import SqliteStore
from omcli.sqlite.checks import any_error
from omcli.sqlite.dialect import om_errors

LONG = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*) FROM n"


@contextmanager
def told(tell: Callable[..., object]) -> Iterator[None]:
    before = telling.set(tell)
    yield
    telling.reset(before)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_long_statement_tells_that_it_goes_on(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []
    with told(lambda *said: calls.append(said)), SqliteStore.open(tmp_path / "m.db", wait=0) as store:
        calls.clear()
        store.database.connection.execute(LONG).fetchone()
    assert len(calls) > 5
    assert set(calls) == {()}


def test_nothing_is_called_if_nobody_waits(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "m.db", wait=0) as store, told(interrupt):
        assert store.database.connection.execute(LONG).fetchone()[0] == 100_000


def test_an_interrupt_ends_a_long_statement(tmp_path: Path) -> None:
    with told(interrupt), SqliteStore.open(tmp_path / "m.db", wait=0) as store:
        with pytest.raises(KeyboardInterrupt), store.database.writing() as connection:
            connection.execute(LONG).fetchone()
        for errors in (om_errors(tmp_path, wait=0), any_error(tmp_path)):
            with pytest.raises(KeyboardInterrupt), errors:
                store.database.connection.execute(LONG).fetchone()
        assert store.sessions.status().messages == 0, "the store can be used as before"


def test_a_copy_tells_how_many_pages_are_done(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []
    with told(lambda *said: calls.append(said)), SqliteStore.open(tmp_path / "m.db", wait=0) as store:
        store.backups.snapshot(now="2026-11-20T10:00:00Z")
    [(what, noun, done, total)] = [said for said in calls if said]
    assert (what, noun) == ("copying m.db", "page")
    assert done == total


def test_a_copy_is_not_made_if_it_is_interrupted(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "m.db", wait=0) as store:
        with told(interrupt), pytest.raises((KeyboardInterrupt, OmError)):
            store.backups.snapshot(now="2026-11-20T10:00:00Z")
        assert not list(tmp_path.glob("*.bak*"))
