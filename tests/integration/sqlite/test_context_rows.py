"""Context rows are read with every batch: that costs the same in a long session as in a short one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from omcli.memory.observation import Status, Type
from omcli.sqlite import SqliteStore, rows
from omcli.sqlite.dialect import prepare, writing
from tests.material import COUNTER, NOW, row, said, session

TYPES = (Type.FILE_READ, Type.OUTCOME, Type.COMMAND_RUN, Type.REQUEST)


def steps_to_read(path: Path, many: int) -> int:
    """How many hundreds of steps SQLite takes to read what stands among so many rows, of which ten are open."""
    with SqliteStore.open(path, wait=1) as store:
        store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW)
    connection = prepare(sqlite3.connect(path, isolation_level=None))
    connection.row_factory = sqlite3.Row
    with writing(connection):
        for number in range(many):
            status = Status.OPEN if number < 10 else Status.DONE
            rows.add(connection, [row(number, type=TYPES[number % 4], status=status, sources=(1,))], author=None)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 100)
    found = rows.context(connection, session=1, limit=20, known={})
    connection.set_progress_handler(None, 0)
    connection.close()
    assert list(found) == [*range(1, 11), *range(many - 19, many + 1)], "the oldest that are open, and the newest"
    return steps


@pytest.mark.parametrize("times", [10, 50])
def test_context_rows_cost_the_same_in_a_session_of_any_length(tmp_path: Path, times: int) -> None:
    """A batch of a session with 100 000 rows is no slower."""
    short = steps_to_read(tmp_path / "short.db", 200)
    long = steps_to_read(tmp_path / "long.db", 200 * times)
    assert long <= short * 1.2 + 2


def test_rows_that_came_with_the_batch_before_are_not_read_again(tmp_path: Path) -> None:
    """The next batch of a run is shown mostly the same rows."""
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        store.messages.append(session(), [said("one"), said("two")], counter=COUNTER, now=NOW)
        for number in range(3):
            store.rows.add(row(number, text=f"row {number}"))
        first = store.batches.unobserved("s", max_tokens=10, context_rows=2)
        store.rows.add(row(3, text="row 3"))
        second = store.batches.unobserved("s", max_tokens=10, context_rows=2)
        assert first is not None
        assert second is not None
        assert [seen.text for seen in second.context_rows] == ["row 2", "row 3"]
        assert second.context_rows[0] is first.context_rows[1]
