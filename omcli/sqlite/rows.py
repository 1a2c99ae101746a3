"""Rows in the store: adding and hiding them, and the log in all the ways it can be narrowed."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from omcli.base import record
from omcli.base.errors import UnknownId
from omcli.memory.observation import Kind, Observation, Replacement
from omcli.memory.ports import Logged, LogQuery, Rows
from omcli.sqlite import codec, tombstones
from omcli.sqlite.database import PAGE, Table

if TYPE_CHECKING:
    from omcli.memory.changes import Kin
    from omcli.memory.observation import Dropped

_SHORTEST_REFERENCE = 4
_HANDLE_DIGITS = 8
_MAY_CHANGE = " AND (status = 'open' OR type IN ('decision', 'fact', 'instruction', 'preference'))"
"""`Observation.may_change`, in the words of the index `observations_standing`: only then does SQLite use it."""

_LOOKED_BACK = 20_000
_REPLACED_SINCE = f"""(NOT o.visible AND o.position > ? - {_LOOKED_BACK} AND o.dropped_at IS NULL AND EXISTS
    (SELECT 1 FROM observations AS s WHERE {codec.same_id("s.id", "o.superseded_by")}
        AND s.position > ? AND s.dropped_at IS NULL))"""
"""Whether a row was in sight at a place in the log (said twice), and has gone behind a later one since.

Rows are looked through for it, so only so many before that place are, and older ones that are replaced are gone. Where
what took a row's place was forgotten or dropped, so is what the row says."""
_OBSERVED_SINCE = f"(o.hidden_by IS NULL AND {_REPLACED_SINCE})"
"""The same by observing. A session's own rows that an operation hides are hidden at once."""

_OF_ID = codec.id_is()


class SqliteRows(Table, Rows):
    """Rows in the table `observations` and its links."""

    def add(self, *observations: Observation) -> None:
        with self._database.writing() as connection:
            add(connection, observations)

    def log(self, query: LogQuery) -> Iterator[Logged]:
        def read(connection: sqlite3.Connection, after: int) -> Sequence[Logged]:
            return _log(connection, record.replace(query, after=after), limit=PAGE)

        whole = query.last is not None
        return self._database.pages(read, place=lambda logged: logged.position, after=query.after, whole=whole)

    def find(self, reference: str) -> Observation:
        with self._database.reading() as connection:
            return find(connection, reference)

    def containing(self, text: str) -> tuple[Observation, ...]:
        from omcli.sqlite import text_search  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return text_search.rows_containing(connection, text)

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> Kin:
        from omcli.sqlite import text_search  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return text_search.kin(connection, rows, messages)

    def tokens(self, session: str) -> Mapping[str, int]:
        with self._database.session(session) as (connection, number):
            found = connection.execute(
                "SELECT counter, sum(tokens) AS tokens FROM observations WHERE session = ? AND visible"
                " GROUP BY counter",
                (number,),
            )
            return {row["counter"]: row["tokens"] for row in found}


def add(
    connection: sqlite3.Connection,
    observations: Iterable[Observation],
    *,
    batch: int | None = None,
    made_by: int | None = None,
) -> None:
    """Keeps rows and their links to messages and to the rows they were made of; what was forgotten is passed over."""
    # Of one batch all have the same.
    session = cache(partial(codec.numbered_session, connection))
    project = cache(partial(codec.numbered_project, connection))
    links: list[tuple[int, int]] = []
    for row in observations:
        if tombstones.is_forgotten(connection, row):
            continue
        columns = codec.observation_columns(
            row,
            session=None if row.session is None else session(row.session),
            project=None if row.project is None else project(row.project),
            batch=batch,
        )
        position = codec.insert(connection, "observations", columns | {"made_by": made_by} if made_by else columns)
        links += [(position, seq) for seq in sorted(set(row.sources))]
        _link_supports(connection, position, row.supports)
    connection.executemany("INSERT INTO observation_sources (observation, message) VALUES (?, ?)", links)


def _link_supports(connection: sqlite3.Connection, position: int, supports: Iterable[str]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO observation_supports (observation, supported)"
        f" SELECT ?, position FROM observations WHERE {_OF_ID}",
        [(position, *_identity(row)) for row in supports],
    )


def replace(connection: sqlite3.Connection, replacement: Replacement, *, hidden_by: int | None = None) -> None:
    """Hides a row behind the one that replaces it; one that is out of sight already stays as it is.

    So it does where the other is not there: what it says was forgotten.
    """
    codec.execute(
        connection,
        f"UPDATE observations SET superseded_by = ?, reason = ?, hidden_by = ?, visible = 0 WHERE {_OF_ID} AND visible"
        f" AND EXISTS (SELECT 1 FROM observations WHERE {_OF_ID})",
        (
            codec.packed(replacement.by),
            replacement.reason,
            hidden_by,
            *_identity(replacement.row),
            *_identity(replacement.by),
        ),
    )


def succeed(connection: sqlite3.Connection, replacement: Replacement) -> None:
    """Hides a row behind one that was observed: at once, or when it is back from where operations have put it."""
    replace(connection, replacement)
    place = _identity(replacement.row)
    connection.execute(
        "INSERT OR IGNORE INTO successors (row, by, reason) SELECT ?, ?, ? WHERE"
        f" EXISTS (SELECT 1 FROM observations WHERE {_OF_ID} AND hidden_by IS NOT NULL)"
        f" OR EXISTS (SELECT 1 FROM aside_observations WHERE {_OF_ID})",
        (codec.packed(replacement.row), codec.packed(replacement.by), replacement.reason, *place, *place),
    )


def hide_succeeded(connection: sqlite3.Connection) -> None:
    """Hides rows that are back behind those that took their place meanwhile."""
    for row, by, reason in connection.execute("SELECT row, by, reason FROM successors").fetchall():
        replace(connection, Replacement(row=codec.spelt(row), by=codec.spelt(by), reason=reason))


def succeeded(connection: sqlite3.Connection) -> frozenset[str]:
    """The ids of rows that go behind others as soon as they are back."""
    found = connection.execute(
        f"SELECT row FROM successors WHERE EXISTS (SELECT 1 FROM observations AS o WHERE {codec.same_id('o.id', 'by')})"
    )
    return frozenset(codec.spelt(row) for (row,) in found)


def drop(connection: sqlite3.Connection, dropped: Dropped, *, now: str, hidden_by: int) -> None:
    """Hides a row; one that is out of sight already stays as it is."""
    if dropped.by is not None:
        replace(connection, Replacement(row=dropped.row, by=dropped.by, reason=dropped.reason), hidden_by=hidden_by)
        return
    codec.execute(
        connection,
        f"UPDATE observations SET dropped_at = ?, reason = ?, hidden_by = ?, visible = 0 WHERE {_OF_ID} AND visible",
        (now, dropped.reason, hidden_by, *_identity(dropped.row)),
    )


def use(connection: sqlite3.Connection, used: Iterable[str], *, now: str) -> None:
    """Notes that rows mattered; times only move on."""
    connection.executemany(
        f"UPDATE observations SET last_used_at = max(coalesce(last_used_at, ''), ?) WHERE {_OF_ID}",
        [(now, *_identity(row)) for row in used],
    )


def in_sight(connection: sqlite3.Connection, references: Iterable[str]) -> bool:
    """Whether all rows of these ids are visible."""
    asked = f"SELECT 1 FROM observations WHERE {_OF_ID} AND visible"
    return all(connection.execute(asked, _identity(row)).fetchone() for row in references)


def have_come_since(connection: sqlite3.Connection, position: int) -> bool:
    """Whether the log has rows behind this place."""
    return connection.execute("SELECT 1 FROM observations WHERE position > ?", (position,)).fetchone() is not None


def at(connection: sqlite3.Connection, reference: str) -> Logged | None:
    """The row with this id, hidden or not, with its place; None where it is not in the log."""
    return next(iter(_select(connection, f"WHERE {codec.id_is('o.')}", _identity(reference))), None)


def at_places(connection: sqlite3.Connection, places: str, values: codec.Values) -> tuple[Logged, ...]:
    """The rows at these places, which are a query, in the log's order."""
    return _select(connection, f"WHERE o.position IN ({places}) ORDER BY o.position", values)


def traces(connection: sqlite3.Connection, reference: str) -> tuple[int | None, int | None, Sequence[Observation]]:
    """The operations that made and hid a row, and the rows it took the place of, oldest first."""
    made_by, hidden_by = connection.execute(
        f"SELECT made_by, hidden_by FROM observations WHERE {_OF_ID}", _identity(reference)
    ).fetchone()
    replaced = _select(connection, "WHERE o.superseded_by = ? ORDER BY o.position", (codec.packed(reference),))
    return made_by, hidden_by, [logged.observation for logged in replaced]


def linked(connection: sqlite3.Connection, reference: str, *, made_of: bool) -> tuple[Observation, ...]:
    """The rows that the row with this id was made of, or those that were made of it."""
    mine, theirs = ("observation", "supported") if made_of else ("supported", "observation")
    found = _select(
        connection,
        f"WHERE o.position IN (SELECT {theirs} FROM observation_supports WHERE {mine} ="
        f" (SELECT position FROM observations WHERE {_OF_ID})) ORDER BY o.position",
        _identity(reference),
    )
    return tuple(logged.observation for logged in found)


def _identity(reference: str) -> tuple[bytes, bytes]:
    """The values of `_OF_ID`."""
    return codec.id_values(codec.packed(reference))


def standing(
    connection: sqlite3.Connection, *, session: int, limit: int, known: Mapping[int, Observation]
) -> dict[int, Observation]:
    """A session's newest observations in sight, and the newest that may change, `limit` of each; by position, oldest
    first. `known` are some that were read before: a row that is in sight is as it was written."""
    newest = "SELECT position FROM observations WHERE session = :session AND visible AND kind = 'observation'{}"
    positions = [
        position
        for (position,) in connection.execute(
            f"SELECT * FROM ({newest.format('')} ORDER BY position DESC LIMIT :limit)"
            f" UNION SELECT * FROM ({newest.format(_MAY_CHANGE)} ORDER BY position DESC LIMIT :limit) ORDER BY 1",
            {"session": session, "limit": limit},
        )
    ]
    missing = codec.compact_json([position for position in positions if position not in known])
    read = _select(connection, "WHERE o.position IN (SELECT value FROM json_each(?))", (missing,))
    rows_at = {**known, **{logged.position: logged.observation for logged in read}}
    return {position: rows_at[position] for position in positions}


def _log(connection: sqlite3.Connection, query: LogQuery, *, limit: int) -> tuple[Logged, ...]:
    """The first rows that a query asks for, at most `limit`; where it asks for the last, those."""
    if query.last is not None:
        return _last(connection, query, query.last)
    conditions, values = _conditions(connection, query, sight=_sight(query))
    clauses = f"WHERE {' AND '.join(conditions)} ORDER BY o.position LIMIT ?"
    return _as_of(query, _select(connection, clauses, (*values, limit), bare=query.bare))


def _last(connection: sqlite3.Connection, query: LogQuery, last: int) -> tuple[Logged, ...]:
    """The last rows that a query asks for."""
    parts: list[str] = []
    values: list[object] = []
    # Indexes of rows in sight do not have those that were: of the same query these are looked for apart.
    replaced = () if query.as_of is None or query.hidden else ((query, _gone(query)),)
    for part, sight in (*((part, "o.visible") for part in _parts(query)), *replaced):
        conditions, asked = _conditions(connection, part, sight=sight)
        parts.append(f"SELECT o.position FROM observations AS o WHERE {' AND '.join(conditions)}")
        values += asked
    # All in the same order: SQLite merges what the indexes give, and reads no further than the last.
    positions = f"{' UNION ALL '.join(parts)} ORDER BY 1 DESC LIMIT ?"
    clauses = f"WHERE o.position IN ({positions}) ORDER BY o.position"
    return _as_of(query, _select(connection, clauses, (*values, last), bare=query.bare))


def _sight(query: LogQuery) -> str:
    """The condition for rows that are in sight, or were as of when a query asks for."""
    return "o.visible" if query.as_of is None else f"(o.visible OR {_gone(query)})"


def _gone(query: LogQuery) -> str:
    """The condition for rows that were in sight as of when a query asks for."""
    return _REPLACED_SINCE if query.session is None else _OBSERVED_SINCE


def _as_of(query: LogQuery, found: tuple[Logged, ...]) -> tuple[Logged, ...]:
    """Rows as they were then, where a query asks for that."""
    if query.as_of is None:
        return found
    return tuple(
        record.replace(
            logged,
            observation=record.replace(logged.observation, superseded_by=None, reason=None, last_used_at=None),
        )
        for logged in found
    )


def _parts(query: LogQuery) -> Iterator[LogQuery]:
    """Queries that find the same together: one for each type, where the index `observations_of_type` gives its last."""
    if query.project is None or query.kinds != (Kind.OBSERVATION,) or not query.types:
        yield query
        return
    for type_ in query.types:
        yield record.replace(query, types=(type_,))


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
    from uuid import UUID  # noqa: PLC0415 - reading the log need not wait for it

    try:
        identity = UUID(reference).bytes
    except ValueError:
        return ()
    return _select(connection, f"WHERE {codec.id_is('o.')}", codec.id_values(identity))


def _by_handle(connection: sqlite3.Connection, reference: str) -> tuple[Logged, ...]:
    if not _SHORTEST_REFERENCE <= len(reference) <= _HANDLE_DIGITS:
        return ()
    try:
        lowest, highest = (bytes.fromhex(reference.ljust(_HANDLE_DIGITS, digit)) for digit in "0f")
    except ValueError:
        return ()
    return _select(connection, "WHERE substr(o.id, 13) BETWEEN ? AND ? ORDER BY o.position", (lowest, highest))


def _conditions(connection: sqlite3.Connection, query: LogQuery, *, sight: str) -> tuple[list[str], list[object]]:
    """What a query asks for as SQL conditions and their values, `sight` for being in sight. A name that never came up
    matches nothing.
    """
    conditions: list[str] = ["o.position > ?"]
    values: list[object] = [query.after]

    def narrow(condition: str, *asked: object) -> None:
        conditions.append(condition)
        values.extend(asked)

    # In the words of the partial indexes: only then does SQLite use them.
    if query.kinds == (Kind.OBSERVATION,):
        narrow("o.kind = 'observation'")
    elif query.kinds and Kind.OBSERVATION not in query.kinds:
        narrow("o.kind <> 'observation'")
    if query.session is not None:
        narrow("o.session = ?", codec.session_number(connection, query.session))
    if query.other_than is not None:
        narrow("o.session IS NOT ?", codec.session_number(connection, query.other_than) or 0)
    if query.project is not None:
        narrow("o.project = ?", codec.project_number(connection, query.project))
    for column, words in (("kind", query.kinds), ("type", query.types), ("priority", query.priorities)):
        if words:
            narrow(f"o.{column} IN ({', '.join('?' * len(words))})", *words)
    for condition, bound in (
        ("coalesce(o.event_at, o.observed_at) >= ?", query.since),
        ("coalesce(o.event_at, o.observed_at) < ?", query.until),
        ("o.position <= ?", query.as_of),
    ):
        if bound is not None:
            narrow(condition, bound)
    if not query.hidden:
        narrow(sight, *[query.as_of] * sight.count("?"))
    return conditions, values


def _select(
    connection: sqlite3.Connection, clauses: str, values: codec.Values, *, bare: bool = False
) -> tuple[Logged, ...]:
    found = codec.execute(connection, f"SELECT {codec.OBSERVATION} {clauses}", values).fetchall()
    sources = _sources(connection, (row[0] for row in found)) if not bare else {}
    read = [
        Logged(position=row[0], observation=codec.observation(row, sources.get(row[0], ()), bare=bare)) for row in found
    ]
    return tuple(read if bare else _with_supports(connection, read))


def _with_supports(connection: sqlite3.Connection, read: list[Logged]) -> Iterator[Logged]:
    """Rows with the ids of those they were made of: reflections and items have some."""
    made = [logged.position for logged in read if logged.observation.kind in (Kind.REFLECTION, Kind.ITEM)]
    supports: dict[int, list[str]] = defaultdict(list)
    if made:
        for position, identity in connection.execute(
            "SELECT l.observation, o.id FROM observation_supports AS l JOIN observations AS o"
            " ON o.position = l.supported WHERE l.observation IN (SELECT value FROM json_each(?))"
            " ORDER BY l.observation, l.supported",
            (codec.compact_json(made),),
        ):
            supports[position].append(codec.spelt(identity))
    for logged in read:
        of_it = supports.get(logged.position)
        row = logged.observation
        yield logged if not of_it else record.replace(logged, observation=record.replace(row, supports=tuple(of_it)))


def _sources(connection: sqlite3.Connection, positions: Iterable[int]) -> Mapping[int, Sequence[tuple[int, str]]]:
    """For each row the messages it came from, those that are put aside as well: `seq` and printed id."""
    sources: dict[int, list[tuple[int, str]]] = defaultdict(list)
    of_them = (
        "SELECT l.observation, m.seq, coalesce(m.key, m.id) FROM observation_sources AS l JOIN {} AS m"
        " ON m.seq = l.message WHERE l.observation IN (SELECT value FROM json_each(:which))"
    )
    for position, seq, key in connection.execute(
        f"{of_them.format('messages')} UNION ALL {of_them.format('aside_messages')} ORDER BY 1, 2",
        {"which": codec.compact_json(list(positions))},
    ):
        sources[position].append((seq, key))
    return sources
