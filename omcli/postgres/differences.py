"""Roles of which a server does something otherwise than a file: leases, deleting for good, and backups."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from omcli.memory.ports import Lane
from omcli.memory.retention import BackupResult
from omcli.sqlite.backups import SqliteBackups
from omcli.sqlite.dialect import Database
from omcli.sqlite.lanes import SqliteLeases
from omcli.sqlite.operations import SqliteOperations
from omcli.text.instants import later

_TOLERATED = 1.0
"""Seconds by which a clock may differ. What is measured includes the way to the server and back."""


class PostgresLeases(SqliteLeases):
    """Leases whose times are those of the server, because the clocks of several machines differ.

    `clock` is the clock that the times given to `claim` are from, in Unix time.
    """

    def __init__(
        self, database: Database, *, is_gone: Callable[[str], bool], clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(database, is_gone=is_gone)
        self._clock = clock
        self._ahead: float | None = None
        """Seconds by which the server's clock is ahead of this one, or None before the first claim."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        if self._ahead is None:
            with self._database.reading() as connection:
                (theirs,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
            ahead = float(theirs) - self._clock()
            self._ahead = ahead if abs(ahead) > _TOLERATED else 0.0
        now, expires_at = (later(each, self._ahead) if self._ahead else each for each in (now, expires_at))
        super().claim(session, lane, owner=owner, now=now, expires_at=expires_at)


class PostgresOperations(SqliteOperations):
    """Operations on a server, which reuses the space of deleted rows by itself."""

    def _size(self) -> int:
        with self._database.om_errors():
            return size(self._database.connection)

    def _vacuum(self) -> None:
        pass


class PostgresBackups(SqliteBackups):
    """No backups: the server has tools for that, and its files are not ours."""

    def snapshot(self, *, now: str) -> None:  # noqa: ARG002
        return

    def back_up(self, *, keep: int, now: str) -> BackupResult:  # noqa: ARG002
        return BackupResult(path=None)

    def is_due(self, *, now: str) -> bool:  # noqa: ARG002
        return False


def size(connection: Any) -> int:
    """Return the size of the whole database in bytes."""
    (found,) = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(found)
