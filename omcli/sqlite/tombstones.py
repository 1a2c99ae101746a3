"""Tombstones in the store: what forgotten rows say, so that it is not taken in again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omcli.memory.observation import Observation, Source
from omcli.memory.ports import Tombstones
from omcli.sqlite.database import Table

if TYPE_CHECKING:
    from omcli.memory.changes import Titled


class SqliteTombstones(Table, Tombstones):
    """Tombstones in the table of that name, and forgotten rows and titles in those of what is hidden."""

    def rows(self) -> tuple[Observation, ...]:
        from omcli.sqlite import soft_delete  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return tuple(logged.observation for logged in soft_delete.aside(connection, "ORDER BY o.position"))

    def titles(self) -> tuple[Titled, ...]:
        from omcli.memory.changes import Titled  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT s.id, t.title FROM aside_titles AS t JOIN sessions AS s ON s.number = t.session"
                " ORDER BY 1, 2"
            )
            return tuple(map(Titled._make, found))

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            return tuple(is_forgotten(connection, row) for row in rows)

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            return tuple(is_forgotten_text(connection, text) for text in texts)


def leave(connection: sqlite3.Connection, row: Observation, *, operation: int) -> None:
    """Leaves the tombstone of a row."""
    from omcli.memory.coverage import tombstone  # noqa: PLC0415 - most stores have none

    _leave(connection, tombstone(row), operation)


def leave_title(connection: sqlite3.Connection, title: str, *, operation: int) -> None:
    """Leaves the tombstone of a session's title."""
    from omcli.memory.coverage import tombstone_of  # noqa: PLC0415

    _leave(connection, tombstone_of(title), operation)


def leave_digest(connection: sqlite3.Connection, digest: str, *, operation: int) -> None:
    """Leaves a tombstone of what is no row, nor a title."""
    _leave(connection, digest, operation)


def is_forgotten(connection: sqlite3.Connection, row: Observation) -> bool:
    """Whether what a row says was forgotten; what is written by hand was not."""
    if row.source is Source.USER or not _are_any(connection):
        return False
    from omcli.memory.coverage import tombstone  # noqa: PLC0415

    return _is_there(connection, tombstone(row))


def is_forgotten_text(connection: sqlite3.Connection, text: str | None) -> bool:
    """Whether a text was forgotten, in no session in particular: a session's title, or a fact."""
    if text is None or not _are_any(connection):
        return False
    from omcli.memory.coverage import tombstone_of  # noqa: PLC0415

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
