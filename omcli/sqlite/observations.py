"""Observations in the store: adding them, and the log in all the ways it can be narrowed."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from omcli.memory.errors import UnknownId
from omcli.memory.observation import Observation
from omcli.memory.ports import Logged, LogQuery
from omcli.sqlite import rows, sessions

_SHORTEST_REFERENCE = 4
_HANDLE_DIGITS = 8


def add(connection: sqlite3.Connection, row: Observation, *, batch: int | None = None) -> None:
    """Keeps a row and its links to messages."""
    position = rows.insert(
        connection,
        "observations",
        rows.observation_columns(
            row,
            session=None if row.session is None else sessions.numbered(connection, row.session),
            project=None if row.project is None else sessions.numbered_project(connection, row.project),
            batch=batch,
        ),
    )
    connection.executemany(
        "INSERT INTO observation_sources (observation, message) VALUES (?, ?)",
        ((position, seq) for seq in sorted(set(row.sources))),
    )


def log(connection: sqlite3.Connection, query: LogQuery, *, limit: int) -> tuple[Logged, ...]:
    """The first rows that a query asks for, at most `limit`; where it asks for the last, those."""
    conditions, values = _conditions(connection, query)
    order = "ASC" if query.last is None else "DESC"
    found = _select(
        connection,
        f"WHERE {' AND '.join(conditions)} ORDER BY o.position {order} LIMIT ?",
        (*values, limit if query.last is None else query.last),
    )
    return found if query.last is None else found[::-1]


def find(connection: sqlite3.Connection, reference: str) -> Observation:
    """The row with this id, or whose handle begins with these 4 digits or more. Raises UnknownId."""
    wanted = reference.strip().lower()
    found = _by_id(connection, wanted) or _by_handle(connection, wanted)
    if not found and len(wanted) < _SHORTEST_REFERENCE:
        raise UnknownId(f"`{reference}` is too short", hint=f"give at least {_SHORTEST_REFERENCE} digits of the id")
    if not found:
        raise UnknownId(f"no row has the id `{reference}`", hint="`om log` prints the ids of rows")
    if len(found) > 1:
        ids = ", ".join(logged.observation.id for logged in found[:5])
        raise UnknownId(f"`{reference}` could be {len(found)} rows", hint=f"give more of the id: {ids}")
    return found[0].observation


def _by_id(connection: sqlite3.Connection, reference: str) -> tuple[Logged, ...]:
    try:
        identity = UUID(reference).bytes
    except ValueError:
        return ()
    # Both conditions: the index holds the end of the id first.
    return _select(connection, "WHERE substr(o.id, 13) = ? AND o.id = ?", (identity[12:], identity))


def _by_handle(connection: sqlite3.Connection, reference: str) -> tuple[Logged, ...]:
    if not _SHORTEST_REFERENCE <= len(reference) <= _HANDLE_DIGITS:
        return ()
    try:
        lowest, highest = (bytes.fromhex(reference.ljust(_HANDLE_DIGITS, digit)) for digit in "0f")
    except ValueError:
        return ()
    return _select(connection, "WHERE substr(o.id, 13) BETWEEN ? AND ? ORDER BY o.position", (lowest, highest))


def _conditions(connection: sqlite3.Connection, query: LogQuery) -> tuple[list[str], list[object]]:
    """What a query asks for as SQL conditions and their values. A name that never came up matches nothing."""
    conditions, values = ["o.position > ?"], [query.after]
    wanted: list[tuple[str, object]] = []
    if query.session is not None:
        wanted.append(("o.session = ?", sessions.number(connection, query.session)))
    if query.project is not None:
        wanted.append(("o.project = ?", sessions.project_number(connection, query.project)))
    for column, words in (("kind", query.kinds), ("type", query.types), ("priority", query.priorities)):
        if words:
            wanted.append((f"o.{column} IN (SELECT value FROM json_each(?))", json.dumps(words)))
    if query.since is not None:
        wanted.append(("coalesce(o.event_at, o.observed_at) >= ?", query.since))
    if query.until is not None:
        wanted.append(("coalesce(o.event_at, o.observed_at) < ?", query.until))
    if not query.hidden:
        conditions.append("o.visible")
    return [*conditions, *(sql for sql, _ in wanted)], [*values, *(value for _, value in wanted)]


def _select(connection: sqlite3.Connection, clauses: str, values: rows.Values) -> tuple[Logged, ...]:
    found = rows.execute(connection, f"SELECT {rows.OBSERVATION} {clauses}", values).fetchall()
    sources = _sources(connection, (row["position"] for row in found))
    return tuple(
        Logged(position=row["position"], observation=rows.observation(row, sources[row["position"]])) for row in found
    )


def _sources(connection: sqlite3.Connection, positions: Iterable[int]) -> dict[int, list[tuple[int, str]]]:
    """For each row the messages it came from, as far as they are still there: `seq` and printed id."""
    sources: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for position, seq, key in connection.execute(
        "SELECT l.observation, m.seq, coalesce(m.key, m.id) FROM observation_sources AS l"
        " JOIN messages AS m ON m.seq = l.message WHERE l.observation IN (SELECT value FROM json_each(?))"
        " ORDER BY l.observation, m.seq",
        (json.dumps(list(positions)),),
    ):
        sources[position].append((seq, key))
    return sources
