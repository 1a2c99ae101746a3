"""Operations in the store: what is taken out of sight in one piece, taken back, or deleted for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from omcli.memory.changes import Change, Recorded, Verb
from omcli.memory.errors import NotUndoable
from omcli.memory.folding import Ending, Scope
from omcli.sqlite import observations, rows, sessions, tombstones

_UNDONE = "undone"
"""Why a row is out of sight that an operation made which was taken back."""
_PARTS = "(SELECT number FROM operations WHERE number = :number OR part_of = :number)"
"""An operation and its parts."""


def note(
    connection: sqlite3.Connection,
    verb: Verb,
    scope: Scope,
    *,
    now: str,
    figures: str,
    ending: Ending = Ending.DONE,
    error: str | None = None,
    fingerprint: str = "",
    part_of: int | None = None,
) -> int:
    """Writes an operation down and gives its number. `figures` is JSON."""
    return rows.insert(
        connection,
        "operations",
        {
            "verb": verb,
            "session": None if scope.session is None else sessions.numbered(connection, scope.session),
            "project": None if scope.project is None else sessions.numbered_project(connection, scope.project),
            "at": now,
            "outcome": ending,
            "error": error,
            "fingerprint": fingerprint,
            "figures": figures,
            "part_of": part_of,
        },
    )


def change(connection: sqlite3.Connection, change: Change, *, now: str) -> int:
    """Takes rows and messages out of sight, and gives the number of the operation."""
    number = note(connection, change.verb, change.scope, now=now, figures=rows.compact_json(dict(change.figures)))
    for dropped in change.dropped:
        observations.drop(connection, dropped, now=now, hidden_by=number)
    _put_messages_aside(connection, change.messages, number)
    for row in change.forgotten:
        _forget(connection, row, number)
    return number


def _put_messages_aside(connection: sqlite3.Connection, seqs: Sequence[int], number: int) -> None:
    """What is put aside already is from now on by this operation."""
    columns = _columns(connection, "messages")
    asked = "seq IN (SELECT value FROM json_each(?))"
    which = rows.compact_json(list(seqs))
    connection.execute(f"UPDATE aside_messages SET put_by = ? WHERE {asked}", (number, which))
    connection.execute(
        f"INSERT INTO aside_messages ({columns}, put_by) SELECT {columns}, ? FROM messages WHERE {asked}",
        (number, which),
    )
    connection.execute(f"DELETE FROM messages WHERE {asked}", (which,))


def _forget(connection: sqlite3.Connection, reference: str, number: int) -> None:
    """Puts a row aside, with its links, and leaves its tombstone."""
    found = observations.at(connection, reference)
    if found is None:
        return
    columns = _columns(connection, "observations")
    connection.execute(
        f"INSERT INTO aside_observations ({columns}, sources, supports, put_by) SELECT {columns},"
        " (SELECT json_group_array(message) FROM observation_sources WHERE observation = position),"
        " (SELECT json_group_array(supported) FROM observation_supports WHERE observation = position),"
        " ? FROM observations WHERE position = ?",
        (number, found.position),
    )
    connection.execute("DELETE FROM observations WHERE position = ?", (found.position,))
    tombstones.leave(connection, found.observation, operation=number)


def history(connection: sqlite3.Connection, *, last: int | None) -> tuple[Recorded, ...]:
    """The operations that something came of, newest first."""
    return _recorded(
        connection, "o.part_of IS NULL AND o.outcome = :done ORDER BY o.number DESC LIMIT :last", last=last
    )


def undo(connection: sqlite3.Connection, number: int | None, *, now: str) -> Recorded:
    """Takes an operation back, the last one that can be where none is named, and gives the undoing.

    Raises NotUndoable where there is none, or where another one stands on what it made.
    """
    undone = _to_undo(connection, number)
    _check_stands_alone(connection, undone.number)
    undoing = note(connection, Verb.UNDO, undone.scope, now=now, figures=rows.compact_json({"undoes": undone.number}))
    values = {"number": undone.number, "undoing": undoing, "now": now, "undone": _UNDONE}
    connection.execute(
        f"UPDATE operations SET undone_by = :undoing WHERE number IN {_PARTS} AND outcome = 'done'", values
    )
    connection.execute(
        "UPDATE observations SET superseded_by = NULL, dropped_at = NULL, reason = NULL, hidden_by = NULL, visible = 1"
        f" WHERE hidden_by IN {_PARTS}",
        values,
    )
    connection.execute(
        "UPDATE observations SET dropped_at = :now, reason = :undone, hidden_by = :undoing, visible = 0"
        f" WHERE made_by IN {_PARTS} AND visible",
        values,
    )
    _bring_messages_back(connection, undone.number)
    _bring_rows_back(connection, undone.number, now=now)
    return recorded(connection, undoing)


def _to_undo(connection: sqlite3.Connection, number: int | None) -> Recorded:
    if number is None:
        found = next((each for each in history(connection, last=None) if each.can_be_undone), None)
        if found is None:
            raise NotUndoable("there is nothing to undo", hint="`om history` lists what was done")
        return found
    known = _recorded(connection, "o.number = :number AND o.part_of IS NULL AND o.outcome = :done", number=number)
    if not known:
        raise NotUndoable(f"there is no operation {number}", hint="`om history` lists what was done")
    [found] = known
    if found.undone_by is not None:
        raise NotUndoable(f"operation {number} was undone by {found.undone_by}")
    if found.final_at is not None:
        raise NotUndoable(f"what operation {number} took out of sight was deleted at {found.final_at}")
    if found.verb is Verb.UNDO:
        raise NotUndoable(f"operation {number} is an undo itself", hint="run again what it took back")
    return found


def _check_stands_alone(connection: sqlite3.Connection, number: int) -> None:
    """Raises NotUndoable where rows that it made were folded, pruned or forgotten by another operation since."""
    (later,) = connection.execute(
        "SELECT max(coalesce(later.part_of, later.number)) FROM operations AS later WHERE later.undone_by IS NULL"
        f" AND later.number NOT IN {_PARTS} AND later.number IN"
        f" (SELECT hidden_by FROM observations WHERE made_by IN {_PARTS}"
        f" UNION ALL SELECT hidden_by FROM aside_observations WHERE made_by IN {_PARTS}"
        f" UNION ALL SELECT put_by FROM aside_observations WHERE made_by IN {_PARTS})",
        {"number": number},
    ).fetchone()
    if later is not None:
        raise NotUndoable(
            f"operation {later} has changed what operation {number} made", hint=f"undo {later} first: `om undo {later}`"
        )


def _bring_messages_back(connection: sqlite3.Connection, number: int) -> None:
    columns = _columns(connection, "messages")
    connection.execute(
        f"INSERT INTO messages ({columns}) SELECT {columns} FROM aside_messages WHERE put_by = ? ORDER BY seq",
        (number,),
    )
    connection.execute("DELETE FROM aside_messages WHERE put_by = ?", (number,))


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
        "UPDATE observations SET dropped_at = ?, reason = ?, visible = 0"
        f" WHERE position IN (SELECT value FROM json_each(?)) AND made_by IN {undone} AND visible",
        (now, _UNDONE, which),
    )


def erase(connection: sqlite3.Connection, numbers: Iterable[int], *, now: str) -> tuple[int, int]:
    """Deletes what prunings and forgettings took out of sight; gives how many rows and messages that were.

    Bookmarks go as well, and blocks that were made of it: what they carry may tell of it.
    """
    erased_rows = erased_messages = 0
    for number in numbers:
        for table, column in (("observations", "hidden_by"), ("aside_observations", "put_by")):
            gone = connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
            erased_rows += gone.rowcount
        connection.execute(
            "DELETE FROM blocks WHERE EXISTS (SELECT 1 FROM aside_messages AS m WHERE m.put_by = ?"
            " AND m.session = blocks.session AND m.seq > blocks.after AND m.seq <= blocks.through)",
            (number,),
        )
        erased_messages += connection.execute("DELETE FROM aside_messages WHERE put_by = ?", (number,)).rowcount
        connection.execute("UPDATE operations SET final_at = ? WHERE number = ? AND undone_by IS NULL", (now, number))
    if erased_rows or erased_messages:
        connection.execute("DELETE FROM bookmarks")
    return erased_rows, erased_messages


def recorded(connection: sqlite3.Connection, number: int) -> Recorded:
    """The operation of this number, which is there."""
    [found] = _recorded(connection, "o.number = :number", number=number)
    return found


def _recorded(
    connection: sqlite3.Connection, conditions: str, *, number: int | None = None, last: int | None = None
) -> tuple[Recorded, ...]:
    parts = "(SELECT p.number FROM operations AS p WHERE p.number = o.number OR p.part_of = o.number)"
    found = connection.execute(
        "SELECT o.number, o.verb, o.at, o.figures, o.undone_by, o.final_at, s.id AS session, p.path AS project,"
        f" (SELECT count(*) FROM observations WHERE made_by IN {parts})"
        f" + (SELECT count(*) FROM aside_observations WHERE made_by IN {parts}) AS made,"
        f" (SELECT count(*) FROM observations WHERE hidden_by IN {parts})"
        f" + (SELECT count(*) FROM aside_observations WHERE put_by = o.number) AS hidden,"
        " (SELECT count(*) FROM aside_messages WHERE put_by = o.number) AS messages"
        " FROM operations AS o LEFT JOIN sessions AS s ON s.number = o.session"
        f" LEFT JOIN projects AS p ON p.number = o.project WHERE {conditions}",
        {"number": number, "done": Ending.DONE, "last": -1 if last is None else last},
    )
    return tuple(map(_from_row, found))


def _from_row(row: sqlite3.Row) -> Recorded:
    figures = rows.parsed(row["figures"])
    return Recorded(
        number=row["number"],
        verb=Verb(row["verb"]),
        scope=Scope(session=row["session"], project=row["project"]),
        at=row["at"],
        made=row["made"],
        hidden=row["hidden"],
        messages=row["messages"],
        figures=figures,
        undoes=figures.get("undoes"),
        undone_by=row["undone_by"],
        final_at=row["final_at"],
    )


def _columns(connection: sqlite3.Connection, table: str) -> str:
    """The columns of a table, whatever later steps have added."""
    return ", ".join(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))
