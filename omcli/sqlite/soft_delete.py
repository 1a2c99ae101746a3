"""Soft deletion: moving what pruning and forgetting hide to separate tables (`aside_…`), and back.

Each operation that hides a message or row has a line in the tables of holds. Once an operation is undone, messages and
rows that no other operation holds are restored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from omcli.memory.changes import UNDONE, SessionTitle
from omcli.memory.coverage import tombstone, tombstone_of
from omcli.memory.observation import NEXT_STEP, Logged
from omcli.memory.ports import Lane
from omcli.sqlite import codec, dialect, rows, sessions


def hide_messages(connection: sqlite3.Connection, seqs: Sequence[int], number: int) -> None:
    """Hide messages for the operation `number`. Messages already hidden are now hidden by this operation as well.

    Pending ones are listed in `passed_over`, because the cursor may pass them: when restored, they are pending again.
    """
    columns = dialect.columns_of(connection, "messages")
    these = dialect.among("seq", ":which")
    values = {"which": dialect.as_list(seqs), "number": number, "lane": Lane.OBSERVE}
    connection.execute(
        "INSERT INTO passed_over (session, message, since)"
        " SELECT m.session, m.seq, (SELECT at FROM operations WHERE number = :number)"
        " FROM messages AS m LEFT JOIN cursors AS c ON c.session = m.session AND c.lane = :lane"
        f" WHERE m.{these} AND m.seq > coalesce(c.covers_up_to, 0) ON CONFLICT DO NOTHING",
        values,
    )
    connection.execute(f"INSERT INTO aside_messages ({columns}) SELECT {columns} FROM messages WHERE {these}", values)
    connection.execute(f"DELETE FROM messages WHERE {these}", values)
    connection.execute(
        "INSERT INTO message_holds (operation, message)"
        f" SELECT :number, seq FROM aside_messages WHERE {these} AND NOT erased",
        values,
    )


STUB = (
    "erased = TRUE, text = '', at = NULL, utc_offset = NULL, name = NULL, cwd = NULL, tool = NULL, call_id = NULL,"
    " failed = NULL, exit_code = NULL, images = NULL"
)
"""Assignments that reduce a hidden message to a stub."""


def erase_message(connection: sqlite3.Connection, seq: int) -> bool:
    """Reduce a message to a stub, whether it is hidden or not. Return False if it is one already."""
    columns = dialect.columns_of(connection, "messages")
    connection.execute(f"INSERT INTO aside_messages ({columns}) SELECT {columns} FROM messages WHERE seq = ?", (seq,))
    connection.execute("DELETE FROM messages WHERE seq = ?", (seq,))
    connection.execute("DELETE FROM passed_over WHERE message = ?", (seq,))
    query = f"UPDATE aside_messages SET {STUB} WHERE seq = ? AND NOT erased"
    return bool(connection.execute(query, (seq,)).rowcount)


def is_final(connection: sqlite3.Connection, number: int) -> bool:
    """Return True if an operation became final, because something that it hid or made was deleted."""
    (final,) = connection.execute("SELECT final_at IS NOT NULL FROM operations WHERE number = ?", (number,)).fetchone()
    return bool(final)


def hide_forgotten(connection: sqlite3.Connection, seq: int, number: int, *, is_final: bool) -> None:
    """Hide a new message for the operation that forgot its text. If that operation `is_final`, keep only a stub."""
    hide_messages(connection, [seq], number)
    if is_final:
        erase_message(connection, seq)


def hide_rows(connection: sqlite3.Connection, references: Iterable[str], number: int, *, is_forgotten: bool) -> None:
    """Hide rows and their links for the operation `number`. If `is_forgotten`, add tombstones for their text.

    Rows that another operation has moved already are now hidden by this operation as well.
    """
    columns = dialect.columns_of(connection, "observations")
    for reference in references:
        if found := rows.at(connection, reference):
            connection.execute(
                f"INSERT INTO aside_observations ({columns}, sources, supports) SELECT {columns},"
                f" (SELECT {dialect.list_of('message')} FROM observation_sources WHERE observation = position),"
                f" (SELECT {dialect.list_of('supported')} FROM observation_supports WHERE observation = position)"
                " FROM observations WHERE position = ?",
                (found.position,),
            )
            connection.execute("DELETE FROM observations WHERE position = ?", (found.position,))
        found = found or at(connection, reference)
        if found is None:
            continue
        connection.execute(
            "INSERT INTO row_holds (operation, position) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (number, found.position),
        )
        if is_forgotten:
            row = found.observation
            add_tombstone(connection, tombstone(row, session=row.session), operation=number)
            if step := str(row.metadata.get(NEXT_STEP, "")):
                add_tombstone(connection, tombstone_of(step, session=row.session), operation=number)


def add_tombstone(connection: sqlite3.Connection, digest: str, *, operation: int) -> None:
    connection.execute(
        "INSERT INTO tombstones (digest, operation) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (bytes.fromhex(digest), operation),
    )


def by_position(connection: sqlite3.Connection, positions: Sequence[int]) -> Iterator[Logged]:
    which = f"WHERE {dialect.among('o.position')} ORDER BY o.position"
    yield from sessions.hidden(connection, which, dialect.as_list(positions))


def other_operations(connection: sqlite3.Connection, number: int) -> tuple[int, ...]:
    """Return the other operations that hide something hidden by the operation `number`."""
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
    """Return the hidden row with this id and its former log position, or None if no hidden row has this id."""
    found = sessions.hidden(connection, f"WHERE {codec.id_is('o.')}", *codec.id_values(codec.packed(reference)))
    return next(iter(found), None)


def hide_titles(connection: sqlite3.Connection, wanted: Iterable[SessionTitle], number: int) -> int:
    """Remove these titles from their sessions, add a tombstone for each, and return the number of titles found.

    Titles already hidden are now hidden by this operation as well.
    """
    taken = 0
    for name, title in dict.fromkeys(wanted):
        session = codec.session_number(connection, name)
        known = (
            "SELECT 1 FROM sessions WHERE number = :session AND title = :title"
            " UNION ALL SELECT 1 FROM aside_titles WHERE session = :session AND title = :title"
        )
        values = {"session": session, "title": title}
        if session is None or not dialect.execute(connection, known, values).fetchone():
            continue
        hide_title(connection, session, title, number)
        add_tombstone(connection, tombstone_of(title), operation=number)
        taken += 1
    return taken


def hide_title(connection: sqlite3.Connection, session: int, title: str, number: int) -> None:
    """Note that the operation `number` hides a title, and remove it from its session."""
    values = {"session": session, "title": title, "number": number}
    dialect.execute(connection, "UPDATE sessions SET title = NULL WHERE number = :session AND title = :title", values)
    dialect.execute(
        connection,
        "INSERT INTO aside_titles (session, title, put_by) VALUES (:session, :title, :number) ON CONFLICT DO NOTHING",
        values,
    )


def restore(connection: sqlite3.Connection, number: int, *, now: str) -> None:
    """Restore messages, rows and titles that the operation `number` moved aside, unless another one hides them too."""
    back = hidden_only_by(connection, number)
    for table in ("message_holds", "row_holds"):
        connection.execute(f"DELETE FROM {table} WHERE operation = ?", (number,))
    _restore_messages(connection, back.messages)
    _restore_rows(connection, back.rows, now=now)
    connection.execute("DELETE FROM aside_titles WHERE put_by = ?", (number,))
    for name, title in back.titles:
        dialect.execute(connection, "UPDATE sessions SET title = ? WHERE id = ? AND title IS NULL", (title, name))


class Hidden(NamedTuple):
    """Everything hidden by one operation and by no other."""

    messages: tuple[int, ...]
    """`seq` of the messages."""
    rows: tuple[int, ...]
    """Log positions of the rows."""
    titles: tuple[SessionTitle, ...]


def hidden_only_by(connection: sqlite3.Connection, number: int) -> Hidden:
    """Return everything hidden by this operation alone. After it was undone, that is nothing."""

    def only(table: str, what: str) -> tuple[int, ...]:
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
    return Hidden(
        messages=only("message_holds", "message"),
        rows=only("row_holds", "position"),
        titles=tuple(map(SessionTitle._make, titled.fetchall())),
    )


def _restore_messages(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """Restore messages. Those that were pending when they were hidden are pending again.

    Delete buffered batches that span such messages but were made without them.
    """
    columns = dialect.columns_of(connection, "messages")
    came = f"SELECT seq FROM aside_messages WHERE NOT erased AND {dialect.among('seq', ':which')}"
    values = {"which": dialect.as_list(seqs), "lane": Lane.OBSERVE}
    connection.execute(
        f"DELETE FROM blocks WHERE EXISTS (SELECT 1 FROM passed_over AS p WHERE p.message IN ({came})"
        " AND p.session = blocks.session AND p.message > blocks.after AND p.message <= blocks.through"
        " AND blocks.at >= p.since)",
        values,
    )
    # Messages after the cursor are covered by ordinary batches.
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


def _restore_rows(connection: sqlite3.Connection, positions: Sequence[int], *, now: str) -> None:
    """Restore rows as they were, except for the effects of operations that were undone in the meantime.

    A row that such an operation superseded or dropped becomes visible, and a row that it made is dropped.
    """
    columns = dialect.columns_of(connection, "observations")
    which = dialect.as_list(positions)
    these = dialect.among("position")
    came = connection.execute(
        f"SELECT position, sources, supports FROM aside_observations WHERE {these}", (which,)
    ).fetchall()
    connection.execute(
        f"INSERT INTO observations ({columns}) SELECT {columns} FROM aside_observations WHERE {these}"
        " ORDER BY position",
        (which,),
    )
    connection.execute(f"DELETE FROM aside_observations WHERE {these}", (which,))
    for position, sources, supports in came:
        for table, column, linked in (
            ("observation_sources", "message", sources),
            ("observation_supports", "supported", supports),
        ):
            connection.execute(
                f"INSERT INTO {table} (observation, {column}) SELECT ?, value FROM ({dialect.each()}) AS linked",
                (position, linked),
            )
    undone = "(SELECT number FROM operations WHERE undone_by IS NOT NULL)"
    connection.execute(
        "UPDATE observations SET superseded_by = NULL, dropped_at = NULL, reason = NULL, hidden_by = NULL,"
        f" visible = TRUE WHERE {these} AND hidden_by IN {undone}",
        (which,),
    )
    connection.execute(
        "UPDATE observations SET dropped_at = ?, reason = ?, visible = FALSE,"
        " hidden_by = (SELECT undone_by FROM operations WHERE number = made_by)"
        f" WHERE {these} AND made_by IN {undone} AND visible",
        (now, UNDONE, which),
    )
