"""The ledger of model calls, and the output modes of endpoints, in the store file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from omcli.base.record import replace
from omcli.llm.model import ModelCall, OutputMode, Spent
from omcli.sqlite import SqliteStore

CALL = ModelCall(
    at="2026-02-10T14:32:00.000Z",
    lane="observe",
    session="s",
    provider="anthropic",
    model="small",
    input_tokens=900,
    output_tokens=100,
    cached_tokens=400,
    cost=0.0014,
    duration=812,
    outcome="ok",
)
LATER = "2026-02-11T00:00:00.000Z"


def test_calls_come_back_as_they_were_and_by_period(tmp_path: Path) -> None:
    silent = replace(CALL, at=LATER, session=None, input_tokens=None, output_tokens=None, cost=None, outcome="refused")
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        store.ledger.note_call(CALL)
        store.ledger.note_call(silent)
        assert list(store.ledger.calls()) == [CALL, silent]
        assert list(store.ledger.calls(since=LATER)) == [silent]
        assert list(store.ledger.calls(until=LATER)) == [CALL]


def test_what_was_spent_counts_what_endpoints_told(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        assert store.ledger.spent(since="") == Spent(tokens=0, cost=0)
        store.ledger.note_call(CALL)
        store.ledger.note_call(replace(CALL, at=LATER, output_tokens=None, cost=None))
        assert store.ledger.spent(since="") == Spent(tokens=1900, cost=0.0014)
        assert store.ledger.spent(since=LATER) == Spent(tokens=900, cost=0)


def test_what_an_endpoint_takes_is_remembered_until_om_changes(tmp_path: Path) -> None:
    """F83: retried at the top after a version change."""
    path = tmp_path / "om.db"
    with SqliteStore.open(path, wait=1) as store:
        assert store.ledger.output_mode("http://here", "small") is None
        store.ledger.put_output_mode("http://here", "small", OutputMode.JSON_OBJECT)
        store.ledger.put_output_mode("http://here", "small", OutputMode.PROMPT)
        assert store.ledger.output_mode("http://here", "small") is OutputMode.PROMPT
        assert store.ledger.output_mode("http://there", "small") is None
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE rungs SET program = 'another'")
    with SqliteStore.open(path, wait=1) as store:
        assert store.ledger.output_mode("http://here", "small") is None
