"""Cursors: how far a session has been worked through, and the outcome of each batch."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from omcli.base.errors import StaleBatch
from omcli.memory.batch import Batch, Outcome
from omcli.memory.ports import Lane, LaneError
from omcli.sqlite import codec

AHEAD = "ahead"
"""What became of a batch that was observed ahead: it is kept as a block."""


def cursor(connection: sqlite3.Connection, *, session: int, lane: Lane) -> int:
    """Up to which `seq` the session is covered; 0 where nothing is."""
    found = connection.execute(
        "SELECT covers_up_to FROM cursors WHERE session = ? AND lane = ?", (session, lane)
    ).fetchone()
    return found["covers_up_to"] if found else 0


def last_end(connection: sqlite3.Connection, *, session: int, cursor: int) -> tuple[int, int]:
    """Where the last pending block of a session ends, the cursor where there is none; and how many there are."""
    end, blocks = connection.execute(
        "SELECT coalesce(max(through), 0), count(*) FROM blocks WHERE session = ?", (session,)
    ).fetchone()
    return max(end, cursor), blocks


def drop_passed_blocks(connection: sqlite3.Connection, *, session: int) -> None:
    """Lets the pending blocks go that the cursor has come to the end of."""
    passed = cursor(connection, session=session, lane=Lane.OBSERVE)
    connection.execute("DELETE FROM blocks WHERE session = ? AND through <= ?", (session, passed))


class Passed(NamedTuple):
    """Messages that came back behind a cursor, as far as no covered one is between them."""

    after: int
    through: int


def passed(connection: sqlite3.Connection, *, session: int) -> Passed | None:
    """The first messages of a session that its cursor has passed and no batch covers; None where there are none."""
    late = (
        "SELECT m.seq FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
        " WHERE p.session = :session ORDER BY p.message"
    )
    first = connection.execute(f"{late} LIMIT 1", {"session": session}).fetchone()
    if first is None:
        return None
    (through,) = connection.execute(
        f"SELECT max(seq) FROM ({late}) WHERE seq < coalesce((SELECT min(seq) FROM messages WHERE session = :session"
        f" AND seq > :first AND seq NOT IN ({late})), seq + 1)",
        {"session": session, "first": first["seq"]},
    ).fetchone()
    return Passed(after=first["seq"] - 1, through=through)


def cover_passed(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: Outcome) -> None:
    """Covers messages that the cursor has passed, unless the outcome leaves them as they are. Raises StaleBatch."""
    which = codec.compact_json([kept.seq for kept in batch.messages])
    these = "session = ? AND message IN (SELECT value FROM json_each(?))"
    (late,) = connection.execute(f"SELECT count(*) FROM passed_over WHERE {these}", (session, which)).fetchone()
    if not batch.messages or late != len(batch.messages):
        raise stale(batch)
    if outcome in (Outcome.OBSERVED, Outcome.EMPTY):
        connection.execute(f"DELETE FROM passed_over WHERE {these}", (session, which))


def deferred(connection: sqlite3.Connection, *, session: int, after: int) -> int:
    """Up to which `seq` an observer was shown messages from this cursor on that gave nothing yet; 0 for none."""
    (through,) = connection.execute(
        "SELECT coalesce(max(through), 0) FROM batches WHERE session = ? AND lane = ? AND after = ? AND outcome = ?"
        " AND NOT late",
        (session, Lane.OBSERVE, after, Outcome.DEFERRED),
    ).fetchone()
    assert isinstance(through, int)
    return through


def advance(connection: sqlite3.Connection, batch: Batch, *, session: int, lane: Lane, outcome: Outcome) -> None:
    """Moves the cursor from the batch's beginning to its end, or after a failure only notes what was tried.

    Raises StaleBatch where the cursor is not, or no longer, where the batch begins; what was only tried may also begin
    where a pending block ends.
    """
    connection.execute("INSERT OR IGNORE INTO cursors (session, lane) VALUES (?, ?)", (session, lane))
    moved = connection.execute(
        "UPDATE cursors SET offered_up_to = max(offered_up_to, :through),"
        " covers_up_to = iif(:stays, covers_up_to, :through)"
        " WHERE session = :session AND lane = :lane AND (covers_up_to = :after OR (:stays AND EXISTS"
        " (SELECT 1 FROM blocks WHERE session = :session AND through = :after)))",
        {
            "through": batch.through,
            "stays": outcome in (Outcome.FAILED, Outcome.DEFERRED),
            "session": session,
            "lane": lane,
            "after": batch.after,
        },
    ).rowcount
    if not moved:
        raise stale(batch)


def stale(batch: Batch) -> StaleBatch:
    """The error for a batch that another process has come before."""
    return StaleBatch(
        f"session {batch.session} was worked on by another process meanwhile",
        hint="nothing was lost; run it again for what is left",
    )


def note_batch(
    connection: sqlite3.Connection,
    batch: Batch,
    *,
    session: int,
    lane: Lane,
    outcome: str,
    error: str | None,
    now: str,
    observations: int,
    is_late: bool = False,
) -> int:
    """Writes down what became of a batch (`Outcome`, AHEAD) and gives its number."""
    return codec.insert(
        connection,
        "batches",
        {
            "session": session,
            "lane": lane,
            "after": batch.after,
            "through": batch.through,
            "outcome": outcome,
            "error": error,
            "at": now,
            "observations": observations,
            "late": is_late,
        },
    )


def unanswered_errors(connection: sqlite3.Connection) -> tuple[LaneError, ...]:
    """The latest batch of every lane, and the latest reflection of every scope, where it failed; oldest first."""
    found = connection.execute(
        "SELECT s.id AS session, b.lane, b.at, b.error FROM batches AS b JOIN sessions AS s ON s.number = b.session"
        " WHERE b.outcome = 'failed' AND b.number = (SELECT max(number) FROM batches AS later"
        " WHERE later.session = b.session AND later.lane = b.lane)"
        " UNION ALL SELECT s.id, 'reflect', tried.at, tried.error FROM operations AS tried"
        " LEFT JOIN sessions AS s ON s.number = tried.session"
        " WHERE tried.outcome = 'failed' AND tried.number = (SELECT max(number) FROM operations AS later"
        " WHERE later.verb = tried.verb AND later.session IS tried.session AND later.project IS tried.project)"
        " ORDER BY 3"
    )
    return tuple(
        LaneError(session=row["session"], lane=Lane(row["lane"]), at=row["at"], error=row["error"] or "")
        for row in found
    )
