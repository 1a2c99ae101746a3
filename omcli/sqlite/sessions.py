"""Sessions and projects in the store, and counts of what it holds of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from omcli.base.record import replace
from omcli.memory.ports import Lane, SessionSummary, StoreStatus
from omcli.memory.session import Session
from omcli.sqlite import lanes, rows, tombstones

_PENDING = """
    ((SELECT count(*) FROM messages AS m WHERE m.session = s.number AND m.seq >
        coalesce((SELECT c.covers_up_to FROM cursors AS c WHERE c.session = s.number AND c.lane = :observe), 0))
    + (SELECT count(*) FROM passed_over AS p JOIN messages AS m INDEXED BY messages_of_session
        ON m.session = p.session AND m.seq = p.message WHERE p.session = s.number))
"""
_AHEAD = """
    SELECT (SELECT count(*) FROM blocks), count(DISTINCT m.seq)
    FROM blocks AS b LEFT JOIN cursors AS c ON c.session = b.session AND c.lane = :observe
    JOIN messages AS m ON m.session = b.session
        AND m.seq > max(b.after, coalesce(c.covers_up_to, 0)) AND m.seq <= b.through
"""


def number(connection: sqlite3.Connection, session: str) -> int | None:
    """The number of a session, None where its name has never come up."""
    found = rows.execute(connection, "SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()
    return found["number"] if found else None


def numbered(connection: sqlite3.Connection, session: str) -> int:
    """The number of a session; its name gets one where it comes up for the first time."""
    found = number(connection, session)
    return rows.insert(connection, "sessions", {"id": session}) if found is None else found


def project_number(connection: sqlite3.Connection, project: str) -> int | None:
    """The number of a project, None where it has never come up."""
    found = rows.execute(connection, "SELECT number FROM projects WHERE path = ?", (project,)).fetchone()
    return found["number"] if found else None


def numbered_project(connection: sqlite3.Connection, project: str) -> int:
    """The number of a project; it gets one where it comes up for the first time."""
    found = project_number(connection, project)
    return rows.insert(connection, "projects", {"path": project}) if found is None else found


def find(connection: sqlite3.Connection, session: str) -> Session | None:
    """What is known about a session, None where nothing but its name is."""
    sql = "SELECT * FROM sessions WHERE id = ? AND agent IS NOT NULL"
    row = rows.execute(connection, sql, (session,)).fetchone()
    return rows.session(row) if row else None


def merge(connection: sqlite3.Connection, session: Session, *, now: str) -> int:
    """Keeps what is known about a session together with what was known before, and gives its number."""
    place = numbered(connection, session.id)
    known = find(connection, session.id)
    if tombstones.is_forgotten_text(connection, session.title):
        session = replace(session, title=None)
    if known is None:
        rows.update(connection, "sessions", {**rows.session_columns(session), "seen_at": now}, number=place)
    elif (merged := known.merged(session)) != known:
        rows.update(connection, "sessions", rows.session_columns(merged), number=place)
    return place


def entitle(connection: sqlite3.Connection, session: int, title: str) -> None:
    """Gives a session a title, where it has none and this one was not forgotten."""
    if tombstones.is_forgotten_text(connection, title):
        return
    rows.execute(connection, "UPDATE sessions SET title = ? WHERE number = ? AND title IS NULL", (title, session))


def note_new(connection: sqlite3.Connection, session: int, *, instants: Sequence[str], now: str) -> None:
    """Notes that messages of these instants were taken in. Times only move outwards: clocks skew, imports come late."""
    rows.execute(
        connection,
        "UPDATE sessions SET seen_at = max(seen_at, :now),"
        " first_at = coalesce(min(first_at, :first), first_at, :first),"
        " last_at = coalesce(max(last_at, :last), last_at, :last) WHERE number = :session",
        {"now": now, "first": min(instants, default=None), "last": max(instants, default=None), "session": session},
    )


def summaries(connection: sqlite3.Connection, *, project: str | None, last: int | None) -> tuple[SessionSummary, ...]:
    """Sessions with their counts, most recently seen first."""
    found = rows.execute(
        connection,
        f"""
        SELECT s.*, {_PENDING} AS pending,
            (SELECT count(*) FROM messages AS m WHERE m.session = s.number AND m.counted) AS messages,
            (SELECT count(*) FROM observations AS o WHERE o.session = s.number AND o.visible) AS observations
        FROM sessions AS s
        WHERE s.agent IS NOT NULL AND (:project IS NULL OR s.cwd = :project)
        ORDER BY s.seen_at DESC, s.id DESC LIMIT :last
        """,
        {"observe": Lane.OBSERVE, "project": project, "last": -1 if last is None else last},
    )
    return tuple(
        SessionSummary(
            session=rows.session(row),
            messages=row["messages"],
            observations=row["observations"],
            pending=row["pending"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            seen_at=row["seen_at"],
        )
        for row in found
    )


def status(connection: sqlite3.Connection) -> StoreStatus:
    """The store in numbers, from indexes; only what came back behind a cursor is looked up message by message."""
    sessions, pending = connection.execute(
        f"SELECT count(s.agent), coalesce(sum({_PENDING}), 0) FROM sessions AS s", {"observe": Lane.OBSERVE}
    ).fetchone()
    messages = connection.execute(
        "SELECT counter, sum(tokens) AS tokens, sum(counted) AS number FROM messages GROUP BY counter"
    ).fetchall()
    observations = connection.execute(
        "SELECT visible, counter, sum(tokens) AS tokens, count(*) AS number FROM observations GROUP BY visible, counter"
    ).fetchall()
    visible = [row for row in observations if row["visible"]]
    blocks, ahead = connection.execute(_AHEAD, {"observe": Lane.OBSERVE}).fetchone()
    return StoreStatus(
        sessions=sessions,
        messages=sum(row["number"] for row in messages),
        observations=sum(row["number"] for row in visible),
        hidden=sum(row["number"] for row in observations if not row["visible"]),
        pending=pending,
        message_tokens={row["counter"]: row["tokens"] for row in messages},
        observation_tokens={row["counter"]: row["tokens"] for row in visible},
        errors=lanes.unanswered_errors(connection),
        blocks=blocks,
        ahead=ahead,
    )
