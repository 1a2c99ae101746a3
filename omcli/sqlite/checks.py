"""Facts about a store for `om doctor`, such as faults of its file and held lanes, and about this Python's SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from omcli.base.errors import InputOutput
from omcli.base.record import record
from omcli.memory.ports import Lane
from omcli.sqlite.backups import cut_log
from omcli.sqlite.connection import check_version, connect, log_files, steps
from omcli.sqlite.dialect import Database, om_error
from omcli.sqlite.lanes import is_gone, last_errors, owner_name
from omcli.sqlite.sessions import WAITING

_RESET_FROM, _RESET_FIXED = (3, 7, 0), (3, 51, 3)
"""First SQLite with the WAL-reset bug, and first without it again: two writers that begin the log anew at the same
moment may lose pages.
"""
_WAITING_COUNTS = f"SELECT coalesce(sum(messages), 0), coalesce(sum(tokens), 0), min(since) FROM ({WAITING})"
_LAST_READINGS = """
    SELECT b.found FROM bookmarks AS b WHERE b.place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path)
"""


@record
class SqliteVersion:
    """The SQLite of this Python."""

    number: str
    has_reset_bug: bool
    has_words: bool
    """True if it has full-text search (FTS5)."""


@record
class HeldLane:
    """A lease: the right of a process to work in a lane of a session."""

    session: str
    lane: str
    owner: str
    expires_at: str

    @property
    def is_gone(self) -> bool:
        """True if the process is known to have ended."""
        return is_gone(self.owner)

    @property
    def name(self) -> str:
        return f"{owner_name(self.owner)} at the {self.lane} lane of {self.session or 'all sessions'}"


@record
class WaitingCounts:
    """Messages that no batch covers yet, and open failures."""

    messages: int
    tokens: int
    since: str | None
    """Earliest time since which a message waits: the last ingest of its session or, if the cursor has passed the
    message, the time at which it was hidden or merged. None if no messages wait.
    """
    errors: int


def version() -> SqliteVersion:
    """Return the version of this Python's SQLite, its known bug and its features."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
            has_words = True
        except sqlite3.OperationalError:
            has_words = False
    return SqliteVersion(
        number=sqlite3.sqlite_version,
        has_reset_bug=_RESET_FROM <= sqlite3.sqlite_version_info < _RESET_FIXED,
        has_words=has_words,
    )


def file_version(path: Path, *, wait: float) -> int:
    """Return the version of the schema in a file, without changing the file. Raise the errors of `connect` and
    `check_version`.
    """
    with closing(connect(path, "ro", wait=wait)) as connection:
        return check_version(connection, path=path, newest=len(steps()))


def first_fault(database: Database, *, thoroughly: bool = False) -> str | None:
    """Return the first fault of a store's file, or None if it is sound. Checking `thoroughly` takes longer, but also
    finds rows missing from indexes and references to missing rows.
    """
    from omcli.sqlite.backups import fault, lost_reference  # noqa: PLC0415 - a status line needs no backups

    with database.om_errors():
        if not thoroughly:
            return fault(database.connection)
        return fault(database.connection, check="integrity_check") or lost_reference(database.connection)


def held_leases(database: Database) -> tuple[HeldLane, ...]:
    with database.reading() as connection:
        found = connection.execute(
            "SELECT s.id AS session, l.lane, l.owner, l.expires_at FROM leases AS l"
            " JOIN sessions AS s ON s.number = l.session ORDER BY l.expires_at"
        ).fetchall()
    return tuple(
        HeldLane(session=row["session"], lane=row["lane"], owner=row["owner"], expires_at=row["expires_at"])
        for row in found
    )


def release(database: Database, lane: HeldLane) -> None:
    """Give a lease back, unless another owner holds it by now."""
    with database.writing() as connection:
        connection.execute(
            "DELETE FROM leases WHERE session = (SELECT number FROM sessions WHERE id = ?) AND lane = ? AND owner = ?",
            (lane.session, lane.lane, lane.owner),
        )


def waiting_counts(database: Database) -> WaitingCounts:
    with database.reading() as connection:
        messages, tokens, since = connection.execute(
            _WAITING_COUNTS, {"observe": Lane.OBSERVE, "counter": None}
        ).fetchone()
        return WaitingCounts(messages=messages, tokens=tokens, since=since, errors=len(last_errors(connection)))


def first_time(database: Database) -> str | None:
    """Return the earliest `seen_at` (when something new of a session was last stored) of all sessions, or None without
    any.
    """
    with database.reading() as connection:
        first: str | None = connection.execute("SELECT min(seen_at) FROM sessions").fetchone()[0]
    return first


def record_skips(database: Database) -> Mapping[str, int]:
    """Return the number of records in ingested files that were skipped, by reason (`TranscriptCounts.skipped`)."""
    skipped: Counter[str] = Counter()
    with database.reading() as connection:
        for (found,) in connection.execute(_LAST_READINGS):
            skipped.update(json.loads(found).get("tally", {}).get("skipped", {}) if found else {})
    return skipped


def compact_log(database: Database) -> int:
    """Write the write-ahead log into the store's file, and return the number of bytes left in the log: 0 unless another
    process still reads it.
    """
    with database.om_errors():
        cut_log(database.connection)
    return log_size(database.path)


def log_size(path: Path) -> int:
    """Return the size of a store's write-ahead log in bytes."""
    log, _ = log_files(path)
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def any_error(path: Path) -> Iterator[None]:
    """Raise om's errors instead of SQLite's inside the block. Errors that would be bugs elsewhere become InputOutput,
    because a damaged store may lack anything.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise om_error(error, path=path, wait=0) or InputOutput(
            f"{path} cannot be read: {error}", hint="`om restore` puts a backup in its place, and keeps it"
        ) from error
