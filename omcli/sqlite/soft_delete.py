"""What is put aside: moved out of the tables that are read, with all whose doing it was, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from omcli.memory.changes import UNDONE, Titled
from omcli.memory.ports import Lane, Logged
from omcli.sqlite import codec, rows, tombstones


def put_messages(connection: sqlite3.Connection, seqs: Sequence[int], number: int) -> None:
    """Puts messages aside by an operation; what is aside already is so by this one as well."""
    columns = _columns(connection, "messages")
    asked = "seq IN (SELECT value FROM json_each(:which))"
    values = {"which": codec.compact_json(list(seqs)), "number": number, "lane": Lane.OBSERVE}
    connection.execute(
        "INSERT OR IGNORE INTO passed_over (session, message, since)"
        " SELECT m.session, m.seq, (SELECT at FROM operations WHERE number = :number)"
        " FROM messages AS m LEFT JOIN cursors AS c ON c.session = m.session AND c.lane = :lane"
        f" WHERE m.{asked} AND m.seq > coalesce(c.covers_up_to, 0)",
        values,
    )
    connection.execute(f"INSERT INTO aside_messages ({columns}) SELECT {columns} FROM messages WHERE {asked}", values)
    connection.execute(f"DELETE FROM messages WHERE {asked}", values)
    connection.execute(
        "INSERT INTO message_holds (operation, message)"
        f" SELECT :number, seq FROM aside_messages WHERE {asked} AND NOT erased",
        values,
    )


def put_rows(connection: sqlite3.Connection, references: Iterable[str], number: int, *, is_said: bool) -> None:
    """Puts rows aside, with their links; with a tombstone where what they say is not to come back.

    What is aside already is so by this operation as well.
    """
    columns = _columns(connection, "observations")
    for reference in references:
        if found := rows.at(connection, reference):
            connection.execute(
                f"INSERT INTO aside_observations ({columns}, sources, supports) SELECT {columns},"
                " (SELECT json_group_array(message) FROM observation_sources WHERE observation = position),"
                " (SELECT json_group_array(supported) FROM observation_supports WHERE observation = position)"
                " FROM observations WHERE position = ?",
                (found.position,),
            )
            connection.execute("DELETE FROM observations WHERE position = ?", (found.position,))
        found = found or at(connection, reference)
        if found is None:
            continue
        connection.execute(
            "INSERT OR IGNORE INTO row_holds (operation, position) VALUES (?, ?)", (number, found.position)
        )
        if is_said:
            tombstones.leave(connection, found.observation, operation=number)


def at_places(connection: sqlite3.Connection, places: Sequence[int]) -> Iterator[Logged]:
    """The rows that left these places in the log."""
    which = "WHERE o.position IN (SELECT value FROM json_each(?)) ORDER BY o.position"
    yield from aside(connection, which, codec.compact_json(list(places)))


def held_by_others(connection: sqlite3.Connection, number: int) -> tuple[int, ...]:
    """The other operations that have something aside that this one has."""
    shared = "SELECT other.operation FROM {table} AS h JOIN {table} AS other USING ({what}) WHERE h.operation = :number"
    found = connection.execute(
        f"{shared.format(table='message_holds', what='message')}"
        " AND message IN (SELECT seq FROM aside_messages WHERE NOT erased)"
        f" UNION {shared.format(table='row_holds', what='position')}"
        " UNION SELECT other.put_by FROM aside_titles AS t JOIN aside_titles AS other USING (session, title)"
        " WHERE t.put_by = :number EXCEPT SELECT :number ORDER BY 1",
        {"number": number},
    )
    return tuple(each for (each,) in found)


def at(connection: sqlite3.Connection, reference: str) -> Logged | None:
    """The row with this id, with its place in the log that it left; None where it is not aside."""
    found = aside(connection, f"WHERE {codec.id_is('o.')}", *codec.id_values(codec.packed(reference)))
    return next(iter(found), None)


def aside(connection: sqlite3.Connection, clauses: str, *values: bytes | str) -> Iterator[Logged]:
    select = codec.OBSERVATION.replace("FROM observations", "FROM aside_observations")
    for row in connection.execute(f"SELECT {select} {clauses}", values):
        yield Logged(position=row[0], observation=codec.observation(row, ()))


def put_titles(connection: sqlite3.Connection, wanted: Iterable[Titled], number: int) -> int:
    """Takes titles of sessions that have them, each with a tombstone; gives how many were found.

    What is aside already is so by this operation as well.
    """
    taken = 0
    for name, title in dict.fromkeys(wanted):
        session = codec.session_number(connection, name)
        values = {"session": session, "title": title, "number": number}
        had = codec.execute(
            connection, "UPDATE sessions SET title = NULL WHERE number = :session AND title = :title", values
        ).rowcount
        are_aside = "SELECT 1 FROM aside_titles WHERE session = :session AND title = :title"
        if not had and not codec.execute(connection, are_aside, values).fetchone():
            continue
        codec.execute(
            connection,
            "INSERT INTO aside_titles (session, title, put_by) VALUES (:session, :title, :number)",
            values,
        )
        tombstones.leave_title(connection, title, operation=number)
        taken += 1
    return taken


def bring_back(connection: sqlite3.Connection, number: int, *, now: str) -> None:
    """Brings back what an operation has put aside, but for what another one has as well."""
    back = coming_back(connection, number)
    for held in ("message_holds", "row_holds"):
        connection.execute(f"DELETE FROM {held} WHERE operation = ?", (number,))
    _bring_messages_back(connection, back.messages)
    _bring_rows_back(connection, back.rows, now=now)
    connection.execute("DELETE FROM aside_titles WHERE put_by = ?", (number,))
    for name, title in back.titles:
        codec.execute(connection, "UPDATE sessions SET title = ? WHERE id = ? AND title IS NULL", (title, name))


class Back(NamedTuple):
    """What is aside by an operation and by no other one."""

    messages: tuple[int, ...]
    """`seq` of each."""
    rows: tuple[int, ...]
    """The place of each in the log."""
    titles: tuple[Titled, ...]


def coming_back(connection: sqlite3.Connection, number: int) -> Back:
    """What would come back without this operation. Of one that was taken back there is nothing aside any more."""

    def alone(table: str, what: str) -> tuple[int, ...]:
        found = connection.execute(
            f"SELECT h.{what} FROM {table} AS h WHERE h.operation = :number AND NOT EXISTS"
            f" (SELECT 1 FROM {table} AS other WHERE other.{what} = h.{what} AND other.operation <> :number)"
            " ORDER BY 1",
            {"number": number},
        )
        return tuple(place for (place,) in found)

    titled = connection.execute(
        "SELECT s.id, t.title FROM aside_titles AS t JOIN sessions AS s ON s.number = t.session"
        " WHERE t.put_by = :number AND NOT EXISTS (SELECT 1 FROM aside_titles AS other"
        " WHERE other.session = t.session AND other.title = t.title AND other.put_by <> :number) ORDER BY 1",
        {"number": number},
    )
    return Back(
        messages=alone("message_holds", "message"),
        rows=alone("row_holds", "position"),
        titles=tuple(map(Titled._make, titled.fetchall())),
    )


def _bring_messages_back(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """Messages wait again where they waited; what was observed ahead around them since, without them, goes."""
    columns = _columns(connection, "messages")
    came = "SELECT seq FROM aside_messages WHERE NOT erased AND seq IN (SELECT value FROM json_each(:which))"
    values = {"which": codec.compact_json(list(seqs)), "lane": Lane.OBSERVE}
    connection.execute(
        f"DELETE FROM blocks WHERE EXISTS (SELECT 1 FROM passed_over AS p WHERE p.message IN ({came})"
        " AND p.session = blocks.session AND p.message > blocks.after AND p.message <= blocks.through"
        " AND blocks.at >= p.since)",
        values,
    )
    # What the cursor has not come to is covered as ever.
    connection.execute(
        f"DELETE FROM passed_over WHERE message IN ({came}) AND message >"
        " coalesce((SELECT covers_up_to FROM cursors AS c WHERE c.session = passed_over.session AND lane = :lane), 0)",
        values,
    )
    connection.execute(
        f"INSERT INTO messages ({columns}) SELECT {columns} FROM aside_messages WHERE seq IN ({came}) ORDER BY seq",
        values,
    )
    connection.execute(f"DELETE FROM aside_messages WHERE seq IN ({came})", values)


def _bring_rows_back(connection: sqlite3.Connection, positions: Sequence[int], *, now: str) -> None:
    """Rows come back as they were; where what hid or made one was undone meanwhile, as that left the others."""
    columns = _columns(connection, "observations")
    which = codec.compact_json(list(positions))
    asked = "position IN (SELECT value FROM json_each(?))"
    came = connection.execute(
        f"SELECT position, sources, supports FROM aside_observations WHERE {asked}", (which,)
    ).fetchall()
    connection.execute(
        f"INSERT INTO observations ({columns}) SELECT {columns} FROM aside_observations WHERE {asked}"
        " ORDER BY position",
        (which,),
    )
    connection.execute(f"DELETE FROM aside_observations WHERE {asked}", (which,))
    for position, sources, supports in came:
        for table, column, linked in (
            ("observation_sources", "message", sources),
            ("observation_supports", "supported", supports),
        ):
            connection.execute(
                f"INSERT INTO {table} (observation, {column}) SELECT ?, value FROM json_each(?)", (position, linked)
            )
    undone = "(SELECT number FROM operations WHERE undone_by IS NOT NULL)"
    connection.execute(
        "UPDATE observations SET superseded_by = NULL, dropped_at = NULL, reason = NULL, hidden_by = NULL, visible = 1"
        f" WHERE {asked} AND hidden_by IN {undone}",
        (which,),
    )
    connection.execute(
        "UPDATE observations SET dropped_at = ?, reason = ?, visible = 0,"
        " hidden_by = (SELECT undone_by FROM operations WHERE number = made_by)"
        f" WHERE {asked} AND made_by IN {undone} AND visible",
        (now, UNDONE, which),
    )


def _columns(connection: sqlite3.Connection, table: str) -> str:
    """The columns of a table, whatever later steps have added."""
    return ", ".join(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))
