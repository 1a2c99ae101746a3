"""What is put aside: moved out of the tables that are read, with whose doing it was, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from omcli.memory.changes import UNDONE
from omcli.memory.observation import Observation
from omcli.sqlite import observations, rows, sessions, tombstones


def put_messages(connection: sqlite3.Connection, seqs: Sequence[int], number: int) -> None:
    """Puts messages aside by an operation; what is aside already is from now on by this one."""
    columns = _columns(connection, "messages")
    asked = "seq IN (SELECT value FROM json_each(?))"
    which = rows.compact_json(list(seqs))
    connection.execute(f"UPDATE aside_messages SET put_by = ? WHERE {asked} AND NOT erased", (number, which))
    connection.execute(
        f"INSERT INTO aside_messages ({columns}, put_by) SELECT {columns}, ? FROM messages WHERE {asked}",
        (number, which),
    )
    connection.execute(f"DELETE FROM messages WHERE {asked}", (which,))


def put_rows(connection: sqlite3.Connection, references: Iterable[str], number: int, *, is_said: bool) -> None:
    """Puts rows aside, with their links; with a tombstone where what they say is not to come back.

    What is aside already is from now on so by this operation.
    """
    columns = _columns(connection, "observations")
    for reference in references:
        if found := observations.at(connection, reference):
            connection.execute(
                f"INSERT INTO aside_observations ({columns}, sources, supports, put_by) SELECT {columns},"
                " (SELECT json_group_array(message) FROM observation_sources WHERE observation = position),"
                " (SELECT json_group_array(supported) FROM observation_supports WHERE observation = position),"
                " ? FROM observations WHERE position = ?",
                (number, found.position),
            )
            connection.execute("DELETE FROM observations WHERE position = ?", (found.position,))
        row = found.observation if found else _put_again(connection, reference, number)
        if row is not None and is_said:
            tombstones.leave(connection, row, operation=number)


def forgotten(connection: sqlite3.Connection) -> tuple[Observation, ...]:
    """The rows that are aside, without their links."""
    return _aside(connection, "ORDER BY o.position")


def _put_again(connection: sqlite3.Connection, reference: str, number: int) -> Observation | None:
    """A row that is aside already goes over to another operation, with its tombstone; None where there is none."""
    of_it, identity = "WHERE substr(id, 13) = ? AND id = ?", rows.packed(reference)
    key = (identity[12:], identity)
    for row in _aside(connection, of_it.replace("id", "o.id"), *key):
        (before,) = connection.execute(f"SELECT put_by FROM aside_observations {of_it}", key).fetchone()
        tombstones.take_away(connection, row, operation=before)
        connection.execute(f"UPDATE aside_observations SET put_by = ? {of_it}", (number, *key))
        return row
    return None


def _aside(connection: sqlite3.Connection, clauses: str, *values: bytes) -> tuple[Observation, ...]:
    select = rows.OBSERVATION.replace("FROM observations", "FROM aside_observations")
    return tuple(rows.observation(row, ()) for row in connection.execute(f"SELECT {select} {clauses}", values))


def put_titles(connection: sqlite3.Connection, names: Iterable[str], number: int) -> int:
    """Takes the titles of sessions, each with a tombstone; gives how many had one."""
    taken = 0
    for name in names:
        session = sessions.number(connection, name)
        for (title,) in connection.execute(
            "SELECT title FROM sessions WHERE number = ? AND title IS NOT NULL", (session,)
        ).fetchall():
            connection.execute(
                "INSERT INTO aside_titles (session, title, put_by) VALUES (?, ?, ?)", (session, title, number)
            )
            tombstones.leave_title(connection, title, operation=number)
            connection.execute("UPDATE sessions SET title = NULL WHERE number = ?", (session,))
            taken += 1
    return taken


def bring_back(connection: sqlite3.Connection, number: int, *, now: str) -> None:
    """Brings back what an operation has put aside."""
    _bring_messages_back(connection, number)
    _bring_rows_back(connection, number, now=now)
    connection.execute(
        "UPDATE sessions SET title = taken.title FROM aside_titles AS taken"
        " WHERE taken.session = sessions.number AND taken.put_by = ? AND sessions.title IS NULL",
        (number,),
    )
    connection.execute("DELETE FROM aside_titles WHERE put_by = ?", (number,))


def _bring_messages_back(connection: sqlite3.Connection, number: int) -> None:
    """Messages wait again where they waited; what was observed ahead around them since, without them, goes."""
    columns = _columns(connection, "messages")
    connection.execute(
        "DELETE FROM blocks WHERE at >= (SELECT at FROM operations WHERE number = :number) AND EXISTS"
        " (SELECT 1 FROM aside_messages AS m WHERE m.session = blocks.session"
        " AND m.seq > blocks.after AND m.seq <= blocks.through AND m.put_by = :number AND NOT m.erased)",
        {"number": number},
    )
    connection.execute(
        f"INSERT INTO messages ({columns}) SELECT {columns} FROM aside_messages"
        " WHERE put_by = ? AND NOT erased ORDER BY seq",
        (number,),
    )
    connection.execute("DELETE FROM aside_messages WHERE put_by = ? AND NOT erased", (number,))


def _bring_rows_back(connection: sqlite3.Connection, number: int, *, now: str) -> None:
    """Rows come back as they were; where what hid or made one was undone meanwhile, as that left the others."""
    columns = _columns(connection, "observations")
    came = connection.execute(
        "SELECT position, sources, supports FROM aside_observations WHERE put_by = ?", (number,)
    ).fetchall()
    connection.execute(
        f"INSERT INTO observations ({columns}) SELECT {columns} FROM aside_observations WHERE put_by = ?"
        " ORDER BY position",
        (number,),
    )
    connection.execute("DELETE FROM aside_observations WHERE put_by = ?", (number,))
    for position, sources, supports in came:
        for table, column, linked in (
            ("observation_sources", "message", sources),
            ("observation_supports", "supported", supports),
        ):
            connection.execute(
                f"INSERT INTO {table} (observation, {column}) SELECT ?, value FROM json_each(?)", (position, linked)
            )
    which = rows.compact_json([position for position, _, _ in came])
    undone = "(SELECT number FROM operations WHERE undone_by IS NOT NULL)"
    connection.execute(
        "UPDATE observations SET superseded_by = NULL, dropped_at = NULL, reason = NULL, hidden_by = NULL, visible = 1"
        f" WHERE position IN (SELECT value FROM json_each(?)) AND hidden_by IN {undone}",
        (which,),
    )
    connection.execute(
        "UPDATE observations SET dropped_at = ?, reason = ?, visible = 0,"
        " hidden_by = (SELECT undone_by FROM operations WHERE number = made_by)"
        f" WHERE position IN (SELECT value FROM json_each(?)) AND made_by IN {undone} AND visible",
        (now, UNDONE, which),
    )


def _columns(connection: sqlite3.Connection, table: str) -> str:
    """The columns of a table, whatever later steps have added."""
    return ", ".join(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))
