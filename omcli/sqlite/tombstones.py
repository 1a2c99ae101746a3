"""Tombstones in the store: what forgotten rows say, so that it is not taken in again."""

from __future__ import annotations

import sqlite3

from omcli.memory.observation import Observation, Source


def leave(connection: sqlite3.Connection, row: Observation, *, operation: int) -> None:
    """Leaves the tombstone of a row."""
    connection.execute("INSERT OR IGNORE INTO tombstones (digest, operation) VALUES (?, ?)", (_digest(row), operation))


def is_forgotten(connection: sqlite3.Connection, row: Observation) -> bool:
    """Whether what a row says was forgotten; what is written by hand was not."""
    if row.source is Source.USER or connection.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is None:
        return False
    found = connection.execute(
        "SELECT 1 FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        " WHERE t.digest = ? AND o.undone_by IS NULL LIMIT 1",
        (_digest(row),),
    )
    return found.fetchone() is not None


def _digest(row: Observation) -> bytes:
    from omcli.memory.changes import tombstone  # noqa: PLC0415 - most stores have none

    return bytes.fromhex(tombstone(row))
