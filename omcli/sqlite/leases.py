"""Leases in the store: the owner of each lane of a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from omcli.base.errors import LaneTaken
from omcli.memory.ports import Lane, Leases
from omcli.sqlite import codec
from omcli.sqlite.database import Database, Table
from omcli.sqlite.owner import named


class SqliteLeases(Table, Leases):
    """Leases in the table `leases`. `is_gone` tells if an owner has ended."""

    def __init__(self, database: Database, *, is_gone: Callable[[str], bool]) -> None:
        super().__init__(database)
        self._is_gone = is_gone

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        with self._database.writing() as connection:
            number = codec.numbered_session(connection, session)
            held = connection.execute(
                "SELECT owner, expires_at, id FROM leases JOIN sessions ON number = session"
                " WHERE session = ? AND lane = ?",
                (number, lane),
            ).fetchone()
            if held is None or held["owner"] == owner or held["expires_at"] <= now or self._is_gone(held["owner"]):
                connection.execute(
                    "INSERT OR REPLACE INTO leases (session, lane, owner, expires_at) VALUES (?, ?, ?, ?)",
                    (number, lane, owner, expires_at),
                )
                return
            until = _shortened(connection, held, session=number, lane=lane, expires_at=expires_at)
        # Raised when the shorter lease is kept.
        raise LaneTaken(
            f"{named(held['owner'])} is at the {lane} lane of session {held['id']}",
            hint=f"its messages are kept; try again when it is done, at the latest at {until}",
        )

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        with self._database.writing() as connection:
            number = codec.session_number(connection, session)
            connection.execute("DELETE FROM leases WHERE session = ? AND lane = ? AND owner = ?", (number, lane, owner))


def _shortened(connection: sqlite3.Connection, held: sqlite3.Row, *, session: int, lane: Lane, expires_at: str) -> str:
    """Shorten a lease to what another process asked for, and return its end.

    Its holder may have died under a clock that was ahead of ours: its lease would not end in years. A holder that
    lives asks again at its next batch.
    """
    until: str = min(held["expires_at"], expires_at)
    connection.execute(
        "UPDATE leases SET expires_at = :until WHERE session = :session AND lane = :lane AND expires_at > :until",
        {"until": until, "session": session, "lane": lane},
    )
    return until
