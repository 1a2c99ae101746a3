"""Progress: how far sessions are observed (cursors, the log of batches) and files ingested (bookmarks)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from omcli.base.errors import StaleBatch
from omcli.memory.batch import Batch, BatchOutcome
from omcli.memory.ports import Bookmarks, Lane, LaneError
from omcli.sqlite import dialect
from omcli.sqlite.database import Table

if TYPE_CHECKING:
    from omcli.memory.transcript import Bookmark, IngestedFile, Origin

BUFFERED = "ahead"
"""Outcome of a batch that was observed ahead and buffered."""


def cursor(connection: sqlite3.Connection, *, session: int, lane: Lane) -> int:
    """The `seq` up to which the session is covered; 0 for none."""
    found = connection.execute(
        "SELECT covers_up_to FROM cursors WHERE session = ? AND lane = ?", (session, lane)
    ).fetchone()
    return found["covers_up_to"] if found else 0


def last_end(connection: sqlite3.Connection, *, session: int, cursor: int) -> tuple[int, int]:
    """The end of a session's last buffered batch (the cursor if there is none), and the number of buffered batches."""
    end, buffered = connection.execute(
        "SELECT coalesce(max(through), 0), count(*) FROM blocks WHERE session = ?", (session,)
    ).fetchone()
    return max(end, cursor), buffered


def deferred(connection: sqlite3.Connection, *, session: int, after: int) -> int:
    """The `seq` up to which messages after this cursor were offered to an observer without a result; 0 for none."""
    (through,) = connection.execute(
        "SELECT coalesce(max(through), 0) FROM batches WHERE session = ? AND lane = ? AND after = ? AND outcome = ?"
        " AND NOT late",
        (session, Lane.OBSERVE, after, BatchOutcome.DEFERRED),
    ).fetchone()
    assert isinstance(through, int)
    return through


class Late(NamedTuple):
    """Restored messages before a cursor, with no covered message between them."""

    after: int
    through: int


def first_late(connection: sqlite3.Connection, *, session: int) -> Late | None:
    """The first messages of a session that its cursor has passed but no batch covers; None if there are none."""
    late = (
        "SELECT m.seq FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
        " WHERE p.session = :session ORDER BY p.message"
    )
    first = connection.execute(f"{late} LIMIT 1", {"session": session}).fetchone()
    if first is None:
        return None
    (through,) = connection.execute(
        f"SELECT max(seq) FROM ({late}) AS late"
        " WHERE seq < coalesce((SELECT min(seq) FROM messages WHERE session = :session"
        f" AND seq > :first AND seq NOT IN ({late})), seq + 1)",
        {"session": session, "first": first["seq"]},
    ).fetchone()
    return Late(after=first["seq"] - 1, through=through)


def cover(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> bool:
    """Mark a batch's messages as covered, unless its outcome leaves them pending. True if the batch is late.

    Raise StaleBatch if the batch is no longer pending or is incomplete.
    """
    is_late = batch.through <= cursor(connection, session=session, lane=Lane.OBSERVE)
    if is_late:
        _cover_late(connection, batch, session=session, outcome=outcome)
    else:
        _move(connection, batch, session=session, outcome=outcome)
    check_whole(connection, batch, session=session)
    covered = cursor(connection, session=session, lane=Lane.OBSERVE)
    connection.execute("DELETE FROM blocks WHERE session = ? AND through <= ?", (session, covered))
    return is_late


def _cover_late(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> None:
    which = dialect.as_list(kept.seq for kept in batch.messages)
    these = f"session = ? AND {dialect.among('message')}"
    (late,) = connection.execute(f"SELECT count(*) FROM passed_over WHERE {these}", (session, which)).fetchone()
    if not batch.messages or late != len(batch.messages):
        raise stale(batch)
    if outcome in (BatchOutcome.OBSERVED, BatchOutcome.EMPTY):
        connection.execute(f"DELETE FROM passed_over WHERE {these}", (session, which))


def _move(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: BatchOutcome) -> None:
    """Move the cursor from the batch's beginning to its end; if the outcome leaves it in place, only note the messages
    offered.

    The cursor is compared and set in one statement. Messages only offered may also begin where a buffered batch ends.
    """
    connection.execute(
        "INSERT INTO cursors (session, lane) VALUES (?, ?) ON CONFLICT DO NOTHING", (session, Lane.OBSERVE)
    )
    moved = connection.execute(
        "UPDATE cursors SET"
        " offered_up_to = CASE WHEN offered_up_to > :through THEN offered_up_to ELSE :through END,"
        " covers_up_to = CASE WHEN :stays THEN covers_up_to ELSE :through END"
        " WHERE session = :session AND lane = :lane AND (covers_up_to = :after OR (:stays AND EXISTS"
        " (SELECT 1 FROM blocks WHERE session = :session AND through = :after)))",
        {
            "through": batch.through,
            "stays": outcome in (BatchOutcome.FAILED, BatchOutcome.DEFERRED),
            "session": session,
            "lane": Lane.OBSERVE,
            "after": batch.after,
        },
    ).rowcount
    if not moved:
        raise stale(batch)


def check_whole(connection: sqlite3.Connection, batch: Batch, *, session: int) -> None:
    """Raise StaleBatch unless a batch holds exactly the messages that it would cover."""
    found = connection.execute(
        "SELECT seq FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
        (session, batch.after, batch.through),
    )
    if [seq for (seq,) in found] != [kept.seq for kept in batch.messages]:
        raise StaleBatch(
            f"messages of session {batch.session} were forgotten, or brought back, while they were observed",
            hint="nothing was lost; run it again for what is left",
        )


def stale(batch: Batch) -> StaleBatch:
    """The error for a batch that another process has recorded first."""
    return StaleBatch(
        f"session {batch.session} was worked on by another process meanwhile",
        hint="nothing was lost; run it again for what is left",
    )


def note_batch(
    connection: sqlite3.Connection,
    batch: Batch,
    *,
    session: int,
    outcome: str,
    error: str | None,
    now: str,
    observations: int,
    is_late: bool = False,
) -> int:
    """Log a batch with its outcome (`BatchOutcome`, BUFFERED), and return its number."""
    columns: dialect.Columns = {
        "session": session,
        "lane": Lane.OBSERVE,
        "after": batch.after,
        "through": batch.through,
        "outcome": outcome,
        "error": error,
        "at": now,
        "observations": observations,
        "late": is_late,
    }
    return dialect.insert(connection, "batches", columns)


def last_errors(connection: sqlite3.Connection) -> tuple[LaneError, ...]:
    """The latest batch of every lane, and the latest reflection of every scope, if it failed; oldest first."""
    same_scope = (
        f"{dialect.same('later.session', 'tried.session')} AND {dialect.same('later.project', 'tried.project')}"
    )
    found = connection.execute(
        "SELECT s.id AS session, b.lane, b.at, b.error FROM batches AS b JOIN sessions AS s ON s.number = b.session"
        " WHERE b.outcome = 'failed' AND b.number = (SELECT max(number) FROM batches AS later"
        " WHERE later.session = b.session AND later.lane = b.lane)"
        " UNION ALL SELECT s.id, 'reflect', tried.at, tried.error FROM operations AS tried"
        " LEFT JOIN sessions AS s ON s.number = tried.session"
        " WHERE tried.outcome = 'failed' AND tried.number = (SELECT max(number) FROM operations AS later"
        f" WHERE later.verb = tried.verb AND {same_scope}) ORDER BY 3"
    )
    return tuple(
        LaneError(session=row["session"], lane=Lane(row["lane"]), at=row["at"], error=row["error"] or "")
        for row in found
    )


# ---- bookmarks


class SqliteBookmarks(Table, Bookmarks):
    """Bookmarks in the table `bookmarks`."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        from omcli.memory.transcript import Bookmark  # noqa: PLC0415 - packs need no transcripts

        with self._database.reading() as connection:
            found = dialect.execute(
                connection,
                "SELECT place, digest, found, carried FROM bookmarks WHERE path = ? AND terms = ? ORDER BY place",
                (origin.path, origin.terms),
            ).fetchall()
        return tuple(
            Bookmark(offset=row["place"], digest=row["digest"], found=row["found"], carried=row["carried"])
            for row in found
        )

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        with self._database.writing() as connection:
            dialect.execute(connection, "DELETE FROM bookmarks WHERE path = ?", (origin.path,))
            for mark in bookmarks:
                columns = {"path": origin.path, "place": mark.offset, "terms": origin.terms, "digest": mark.digest}
                dialect.insert(connection, "bookmarks", {**columns, "found": mark.found, "carried": mark.carried})

    def files(self) -> tuple[IngestedFile, ...]:
        from omcli.memory.transcript import STAMP, IngestedFile, Origin  # noqa: PLC0415 - packs need no transcripts

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT path, terms, found FROM bookmarks AS b"
                " WHERE place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path) ORDER BY path"
            ).fetchall()
        return tuple(
            IngestedFile(
                origin=Origin(path=row["path"], terms=row["terms"]), stamp=dialect.parsed(row["found"]).get(STAMP)
            )
            for row in found
        )
