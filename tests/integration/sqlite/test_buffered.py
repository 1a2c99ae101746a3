"""Buffered batches in a file that another program has written to: one that cannot be read is skipped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from omcli.memory.batch import Batch, BatchOutcome, Observed
from omcli.memory.buffer import BufferedBatch
from omcli.memory.observation import Draft, Source, Type
from omcli.sqlite import SqliteStore
from tests.material import COUNTER, NOW, row_id, said, session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "om.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """A store with six messages, and three blocks of two."""
    with SqliteStore.open(path, wait=1) as store:
        store.messages.append(session(), [said(word) for word in "abcdef"], counter=COUNTER, now=NOW)
        for after in (0, 2, 4):
            batch = Batch(
                session="s", after=after, through=after + 2, messages=store.messages.by_seq([after + 1, after + 2])
            )
            draft = Draft(text="noted", type=Type.FACT, importance=5, sources=(after + 1,))
            observed, ids = Observed(drafts=(draft,)), (row_id(after),)
            store.batches.buffer(
                BufferedBatch(batch=batch, begins=after, observed=observed, ids=ids, source=Source.MODEL, at=NOW)
            )
        yield store


def change(path: Path, after: int, how: Callable[[dict[str, Any]], object] | None = None, **columns: str) -> None:
    """Writes something else into a block."""
    with closing(sqlite3.connect(path)) as connection, connection:
        if how is not None:
            (text,) = connection.execute("SELECT observed FROM blocks WHERE after = ?", (after,)).fetchone()
            document = json.loads(text)
            how(document)
            columns["observed"] = json.dumps(document)
        for column, value in columns.items():
            connection.execute(f"UPDATE blocks SET {column} = ? WHERE after = ?", (value, after))


def ends(store: SqliteStore) -> list[tuple[int, int]]:
    return [(block.batch.after, block.batch.through) for block in store.batches.buffered("s")]


@pytest.mark.parametrize(
    ("how", "columns"),
    [
        (None, {"observed": "{"}),
        (None, {"observed": "[]"}),
        (None, {"source": "somebody"}),
        (lambda document: document["rows"][0].update(type="rumour"), {}),
        (lambda document: document["rows"][0].update(id="x"), {}),
        (lambda document: document.pop("used"), {}),
    ],
)
def test_a_block_that_cannot_be_read_is_passed_over_and_its_messages_wait(
    store: SqliteStore, path: Path, how: Callable[[dict[str, Any]], object] | None, columns: dict[str, str]
) -> None:
    """Those behind it follow once its messages are covered otherwise."""
    change(path, 2, how, **columns)
    assert ends(store) == [(0, 2)]
    store.batches.record(store.batches.buffered("s")[0].batch, [], outcome=BatchOutcome.EMPTY, now=NOW)
    assert ends(store) == []
    batch = store.batches.unobserved("s", max_tokens=30)
    assert batch is not None
    assert (batch.after, batch.through) == (2, 5)
    store.batches.record(batch, [], outcome=BatchOutcome.EMPTY, now=NOW)
    assert ends(store) == [(5, 6)]


def test_a_block_whose_text_is_no_unicode_is_kept_with_what_is(store: SqliteStore) -> None:
    """Half a surrogate pair, which a model may write."""
    store.messages.append(session(), [said("g")], counter=COUNTER, now=NOW)
    batch = store.batches.unobserved("s", max_tokens=100, ahead=True)
    assert batch is not None
    draft = Draft(text="noted \ud83d", type=Type.FACT, importance=5, sources=(7,), tags=("\udc00",))
    store.batches.buffer(
        BufferedBatch(
            batch=batch, begins=6, observed=Observed(drafts=(draft,), title="\ud83d"), ids=(row_id(9),),
            source=Source.MODEL, at=NOW,
        )
    )  # fmt: skip
    (kept,) = store.batches.buffered("s")[3:]
    assert (kept.observed.drafts[0].text, kept.observed.title) == ("noted \ufffd", "\ufffd")
