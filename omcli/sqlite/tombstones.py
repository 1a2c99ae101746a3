"""Tombstones in the store: what forgotten rows say, so that it is not taken in again."""

from __future__ import annotations

import sqlite3

from omcli.memory.observation import Observation, Source


def leave(connection: sqlite3.Connection, row: Observation, *, operation: int) -> None:
    """Leaves the tombstone of a row."""
    from omcli.memory.changes import tombstone  # noqa: PLC0415 - most stores have none

    _leave(connection, tombstone(row), operation)


def leave_title(connection: sqlite3.Connection, title: str, *, operation: int) -> None:
    """Leaves the tombstone of a session's title."""
    from omcli.memory.changes import tombstone_of  # noqa: PLC0415

    _leave(connection, tombstone_of(title), operation)


def leave_digest(connection: sqlite3.Connection, digest: str, *, operation: int) -> None:
    """Leaves a tombstone of what is no row, nor a title."""
    _leave(connection, digest, operation)


def is_forgotten(connection: sqlite3.Connection, row: Observation) -> bool:
    """Whether what a row says was forgotten; what is written by hand was not."""
    if row.source is Source.USER or not _are_any(connection):
        return False
    from omcli.memory.changes import tombstone  # noqa: PLC0415

    return _is_there(connection, tombstone(row))


def is_forgotten_text(connection: sqlite3.Connection, text: str | None) -> bool:
    """Whether a text was forgotten, in no session in particular: a session's title, or a fact."""
    if text is None or not _are_any(connection):
        return False
    from omcli.memory.changes import tombstone_of  # noqa: PLC0415

    return _is_there(connection, tombstone_of(text))


def _leave(connection: sqlite3.Connection, digest: str, operation: int) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO tombstones (digest, operation) VALUES (?, ?)", (bytes.fromhex(digest), operation)
    )


def _are_any(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


def _is_there(connection: sqlite3.Connection, digest: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        " WHERE t.digest = ? AND o.undone_by IS NULL LIMIT 1",
        (bytes.fromhex(digest),),
    )
    return found.fetchone() is not None
