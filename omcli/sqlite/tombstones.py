"""Tombstones in the store: fingerprints of forgotten text, which keep it from coming back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omcli.memory.observation import Observation, Source
from omcli.memory.ports import Logged, Tombstones
from omcli.sqlite import codec
from omcli.sqlite.dialect import Table

if TYPE_CHECKING:
    from omcli.memory.changes import SessionTitle


class SqliteTombstones(Table, Tombstones):
    """Tombstones in the table `tombstones`; forgotten rows and titles in `aside_observations` and `aside_titles`."""

    def rows(self) -> tuple[Observation, ...]:
        with self._database.reading() as connection:
            return tuple(logged.observation for logged in hidden_rows(connection, "ORDER BY o.position"))

    def titles(self) -> tuple[SessionTitle, ...]:
        from omcli.memory.changes import SessionTitle  # noqa: PLC0415 - only to forget

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT s.id, t.title FROM aside_titles AS t JOIN sessions AS s ON s.number = t.session"
                " ORDER BY 1, 2"
            )
            return tuple(map(SessionTitle._make, found))

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            return tuple(is_forgotten(connection, row) for row in rows)

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            return tuple(is_forgotten_text(connection, text) for text in texts)


def add_row(connection: sqlite3.Connection, row: Observation, *, operation: int) -> None:
    """Add the tombstone of a row."""
    from omcli.memory.coverage import tombstone  # noqa: PLC0415 - most stores have none

    add(connection, tombstone(row), operation=operation)


def add_title(connection: sqlite3.Connection, title: str, *, operation: int) -> None:
    """Add the tombstone of a session's title."""
    from omcli.memory.coverage import tombstone_of  # noqa: PLC0415

    add(connection, tombstone_of(title), operation=operation)


def add(connection: sqlite3.Connection, digest: str, *, operation: int) -> None:
    """Add a tombstone."""
    connection.execute(
        "INSERT INTO tombstones (digest, operation) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (bytes.fromhex(digest), operation),
    )


def is_forgotten(connection: sqlite3.Connection, row: Observation) -> bool:
    """True if a row's text was forgotten. Always False for a row written by hand."""
    if row.source is Source.USER or not _has_any(connection):
        return False
    from omcli.memory.coverage import tombstone  # noqa: PLC0415

    return _exists(connection, tombstone(row))


def is_forgotten_text(connection: sqlite3.Connection, text: str | None) -> bool:
    """True if a title or a fact was forgotten in any session."""
    if text is None or not _has_any(connection):
        return False
    from omcli.memory.coverage import tombstone_of  # noqa: PLC0415

    return _exists(connection, tombstone_of(text))


def _has_any(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


def _exists(connection: sqlite3.Connection, digest: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        " WHERE t.digest = ? AND o.undone_by IS NULL LIMIT 1",
        (bytes.fromhex(digest),),
    )
    return found.fetchone() is not None


def hidden_rows(connection: sqlite3.Connection, clauses: str, *values: bytes | str) -> Iterator[Logged]:
    """Yield hidden rows with their former log positions."""
    select = codec.OBSERVATION.replace("FROM observations", "FROM aside_observations")
    read = codec.observation_reader()
    for row in connection.execute(f"SELECT {select} {clauses}", values):
        yield Logged(position=row[0], observation=read(row, ()))
