"""Taking out of a private copy of the store what came after a moment."""

from __future__ import annotations

import sqlite3

from omcli.memory.changes import CutResult
from omcli.memory.ports import Lane

_LATER = "CREATE TEMP TABLE later (session INTEGER, seq INTEGER, PRIMARY KEY (session, seq)) WITHOUT ROWID"
_CUTS = """
    CREATE TEMP TABLE cuts AS SELECT b.session AS session, min(b.after) AS after FROM batches AS b
    WHERE b.lane = 'observe' AND b.outcome IN ('observed', 'empty') AND EXISTS
        (SELECT 1 FROM later WHERE later.session = b.session AND later.seq > b.after AND later.seq <= b.through)
    GROUP BY b.session
"""
"""Each session's new cursor: the beginning of its first batch that has later messages."""
_GONE = "CREATE TEMP TABLE gone (position INTEGER PRIMARY KEY, id BLOB)"
_GO = """
    INSERT INTO gone SELECT o.position, o.id FROM observations AS o
    LEFT JOIN batches AS b ON b.number = o.batch LEFT JOIN cuts AS c ON c.session = b.session
    LEFT JOIN operations AS made ON made.number = o.made_by
    WHERE b.through > c.after OR made.at > :moment
        OR (o.batch IS NULL AND o.made_by IS NULL AND o.observed_at > :moment)
"""
_IS_MIXED = """
    SELECT 1 FROM observation_supports WHERE supported IN (SELECT position FROM gone)
        AND observation NOT IN (SELECT position FROM gone) LIMIT 1
"""
_CHANGES = (
    """UPDATE observations SET superseded_by = NULL, reason = NULL, hidden_by = NULL, visible = 1
        WHERE superseded_by IN (SELECT id FROM gone) AND dropped_at IS NULL""",
    "DELETE FROM successors WHERE by IN (SELECT id FROM gone)",
    "DELETE FROM observations WHERE position IN (SELECT position FROM gone)",
    "UPDATE observations SET last_used_at = NULL WHERE last_used_at > :moment",
    "DELETE FROM messages WHERE seq IN (SELECT seq FROM later)",
    "DELETE FROM blocks",
    "DELETE FROM passed_over WHERE message > (SELECT after FROM cuts WHERE cuts.session = passed_over.session)",
    """UPDATE cursors SET (covers_up_to, offered_up_to) =
        (SELECT after, after FROM cuts WHERE cuts.session = cursors.session)
        WHERE lane = :lane AND session IN (SELECT session FROM cuts)""",
    """UPDATE sessions SET seen_at = min(seen_at, :moment),
        last_at = coalesce((SELECT max(at) FROM messages WHERE session = number), min(last_at, :moment))""",
)


def cut_after(connection: sqlite3.Connection, moment: str) -> CutResult:
    """Take out what came after a moment (see `SqliteStore.cut_after`)."""
    later, undated = _later_messages(connection, moment)
    connection.execute(_LATER)
    connection.executemany("INSERT INTO later VALUES (?, ?)", later)
    connection.execute(_CUTS)
    connection.execute(_GONE)
    values = {"moment": moment, "lane": Lane.OBSERVE}
    connection.execute(_GO, values)
    is_mixed = connection.execute(_IS_MIXED).fetchone() is not None
    for change in _CHANGES:
        connection.execute(change, values)
    return CutResult(messages=len(later), undated=undated, is_mixed=is_mixed)


def _later_messages(connection: sqlite3.Connection, moment: str) -> tuple[list[tuple[int, int]], frozenset[str]]:
    """Return session and `seq` of the messages after a moment, and the ids of sessions for which this is a guess.

    A message without a date has that of the last one before it with a date or, if there is none, of the last ingest.
    """
    found = connection.execute(
        "SELECT s.number, s.id, s.seen_at, m.seq, m.at FROM messages AS m JOIN sessions AS s ON s.number = m.session"
        " ORDER BY m.session, m.seq"
    )
    later: list[tuple[int, int]] = []
    undated: set[str] = set()
    last: str | None = None
    session = 0
    for number, name, seen_at, seq, at in found:
        last = at or (last if number == session else None)
        session = number
        if (last or seen_at) > moment:
            later.append((number, seq))
            undated.update(() if last else (name,))
    return later, frozenset(undated)
