"""Rows in the store: adding and hiding them, and reading the log with filters."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

from omcli.base import record
from omcli.base.errors import UnknownId
from omcli.memory.observation import Kind, Logged, LogQuery, Observation, Replacement
from omcli.memory.ports import Rows
from omcli.memory.session import NO_PROJECT
from omcli.sqlite import codec, dialect, sessions
from omcli.sqlite.dialect import PAGE, Table
from omcli.text.instants import first_id

if TYPE_CHECKING:
    from omcli.memory.observation import Dropped
    from omcli.memory.session import Author

_SHORTEST_REFERENCE = 4
_HANDLE_DIGITS = 8
_MAY_CHANGE = " AND (status = 'open' OR type IN ('decision', 'fact', 'instruction', 'preference'))"
"""`Observation.is_mutable` as SQL, spelled like the index `observations_standing`: otherwise SQLite does not use it."""
_CHANGED_SINCE = "(o.observed_at >= ? OR o.dropped_at >= ? OR o.superseded_by >= ?)"
_LOOKED_BACK = 20_000
_REPLACED_SINCE = f"""(NOT o.visible AND o.position > ? - {_LOOKED_BACK} AND o.dropped_at IS NULL AND EXISTS
    (SELECT 1 FROM observations AS s WHERE {codec.same_id("s.id", "o.superseded_by")}
        AND s.position > ? AND s.dropped_at IS NULL))"""
"""Condition that a row was visible at a position in the log (given twice) and was replaced by a later row.

Only the last `_LOOKED_BACK` rows before the position are searched. Older rows that were replaced count as hidden, and
so do rows whose replacement was forgotten or dropped.
"""
_OBSERVED_SINCE = f"(o.hidden_by IS NULL AND {_REPLACED_SINCE})"
"""The same condition for rows replaced by observing. Rows of a session that an operation hid count as hidden."""
_NOT_REPLACED = "(o.superseded_by IS NULL OR o.hidden_by IS NOT NULL)"
"""Condition that a row was not replaced by observing, though an operation may have hidden it."""
_AND_REPLACED = """WITH RECURSIVE shown (position) AS (SELECT * FROM ({}) UNION
    SELECT o.position FROM shown JOIN observations AS s USING (position)
    JOIN observations AS o ON o.superseded_by = s.id
    WHERE o.session = s.session AND o.hidden_by IS NULL AND o.dropped_at IS NULL)
    SELECT position FROM shown ORDER BY 1 DESC LIMIT ?"""
"""Query that adds to another query's positions the rows that these replaced by observing, and keeps the last ones."""

_BEST = "SELECT position FROM (SELECT importance, position FROM ({}) ORDER BY 1 DESC, 2 DESC LIMIT ?)"
"""Query for the positions of the most important rows among those that another query selects."""

_OF_ID = codec.id_is()
_PLACE = f"SELECT position FROM observations WHERE {_OF_ID}"
_LINKED = (
    "SELECT l.observation, m.seq, coalesce(m.key, m.id) FROM observation_sources AS l JOIN {} AS m"
    f" ON m.seq = l.message WHERE {dialect.among('l.observation', ':which')}"
)
_SOURCES = f"{_LINKED.format('messages')} UNION ALL {_LINKED.format('aside_messages')} ORDER BY 1, 2"
"""Query for the source messages of rows, including hidden messages."""


class SqliteRows(Table, Rows):
    """Rows: the table `observations` and the tables that link to it."""

    def add(self, *observations: Observation) -> None:
        with self._database.writing() as connection:
            add(connection, observations, author=self._database.author)

    def log(self, query: LogQuery) -> Iterator[Logged]:
        def read(connection: sqlite3.Connection, after: int) -> Sequence[Logged]:
            return _log(connection, record.replace(query, after=after), limit=PAGE)

        whole = query.last is not None
        return self._database.read_all(read, place=lambda logged: logged.position, after=query.after, whole=whole)

    def find(self, reference: str) -> Observation:
        with self._database.reading() as connection:
            return find(connection, reference)

    def find_all(self, ids: Iterable[str], *, bare: bool = False) -> Iterator[Observation | None]:
        waiting = iter(ids)
        while page := tuple(islice(waiting, PAGE)):
            with self._database.reading() as connection:
                places = (connection.execute(_PLACE, _id_values(each)).fetchone() for each in page)
                listed = dialect.as_list(position for (position,) in filter(None, places))
                found = _select(connection, f"WHERE {dialect.among('o.position')}", (listed,), bare=bare)
            by_id = {logged.observation.id: logged.observation for logged in found}
            yield from map(by_id.get, page)

    def tokens(self, session: str, kinds: Iterable[Kind] = tuple(Kind)) -> Mapping[str, int]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            found = connection.execute(
                "SELECT counter, sum(tokens) AS tokens FROM row_counts WHERE session = ? AND visible > 0"
                f" AND {dialect.among('kind')} GROUP BY counter",
                (number, dialect.as_list(kinds)),
            )
            return {row["counter"]: row["tokens"] for row in found}

    def changes(self, session: str) -> int:
        with self._database.reading() as connection:
            return sessions.changes(connection, session)


def add(
    connection: sqlite3.Connection,
    observations: Iterable[Observation],
    *,
    author: Author | None,
    batch: int | None = None,
    made_by: int | None = None,
) -> None:
    """Add rows with their links, and update the sessions of rows without a batch. Forgotten rows are skipped."""
    # Cached, because the rows of a batch share their session and project.
    session = cache(partial(codec.add_session, connection))
    project = cache(partial(codec.add_project, connection))
    observations = tuple(observations)
    forgotten = sessions.are_forgotten(connection, observations)
    kept = [row for row, is_forgotten in zip(observations, forgotten, strict=True) if not is_forgotten]
    writer = codec.add_author(connection, author) if kept else None
    columns = [
        codec.observation_columns(
            row,
            session=None if row.session is None else session(row.session),
            project=None if row.project is None else project(row.project),
            batch=batch,
            author=writer,
        )
        | {"made_by": made_by}
        for row in kept
    ]
    placed = list(zip(dialect.insert_all(connection, "observations", columns), kept, strict=True))
    connection.executemany(
        "INSERT INTO observation_supports (observation, supported)"
        f" SELECT ?, position FROM observations WHERE {_OF_ID} ON CONFLICT DO NOTHING",
        [(position, *_id_values(supported)) for position, row in placed for supported in row.supports],
    )
    connection.executemany(
        "INSERT INTO observation_sources (observation, message) VALUES (?, ?)",
        [(position, seq) for position, row in placed for seq in sorted(set(row.sources))],
    )
    for name in dict.fromkeys(row.session for row in kept if row.session is not None and batch is None):
        its_rows = [row for row in kept if row.session == name]
        sessions.note_rows(connection, session(name), its_rows, author=writer)


def replace(connection: sqlite3.Connection, replacement: Replacement, *, hidden_by: int | None = None) -> None:
    """Mark a row as superseded by another, unless it is already hidden.

    If the other row is missing because its text was forgotten, nothing changes.
    """
    dialect.execute(
        connection,
        "UPDATE observations SET superseded_by = ?, reason = ?, hidden_by = ?, visible = FALSE"
        f" WHERE {_OF_ID} AND visible AND EXISTS (SELECT 1 FROM observations WHERE {_OF_ID})",
        (
            codec.packed(replacement.by),
            replacement.reason,
            hidden_by,
            *_id_values(replacement.row),
            *_id_values(replacement.by),
        ),
    )


def replace_when_visible(connection: sqlite3.Connection, replacement: Replacement) -> None:
    """Mark a row as superseded by an observation. If an operation has hidden it, do so once the row is restored."""
    replace(connection, replacement)
    place = _id_values(replacement.row)
    connection.execute(
        "INSERT INTO successors (row, by, reason) SELECT ?, ?, ? WHERE"
        f" EXISTS (SELECT 1 FROM observations WHERE {_OF_ID} AND hidden_by IS NOT NULL)"
        f" OR EXISTS (SELECT 1 FROM aside_observations WHERE {_OF_ID}) ON CONFLICT DO NOTHING",
        (codec.packed(replacement.row), codec.packed(replacement.by), replacement.reason, *place, *place),
    )


def replace_pending(connection: sqlite3.Connection) -> None:
    """Mark restored rows as superseded by the rows that replaced them while they were hidden."""
    for row, by, reason in connection.execute("SELECT row, by, reason FROM successors").fetchall():
        replace(connection, Replacement(row=codec.unpacked(row), by=codec.unpacked(by), reason=reason))


def pending_replacements(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the ids of hidden rows that will be superseded as soon as they are restored."""
    found = connection.execute(
        f"SELECT row FROM successors WHERE EXISTS (SELECT 1 FROM observations AS o WHERE {codec.same_id('o.id', 'by')})"
    )
    return frozenset(codec.unpacked(row) for (row,) in found)


def drop(connection: sqlite3.Connection, dropped: Dropped, *, now: str, hidden_by: int) -> None:
    """Hide a row, unless it is already hidden."""
    if dropped.by is not None:
        replace(connection, Replacement(row=dropped.row, by=dropped.by, reason=dropped.reason), hidden_by=hidden_by)
        return
    dialect.execute(
        connection,
        "UPDATE observations SET dropped_at = ?, reason = ?, hidden_by = ?, visible = FALSE"
        f" WHERE {_OF_ID} AND visible",
        (now, dropped.reason, hidden_by, *_id_values(dropped.row)),
    )


def mark_used(connection: sqlite3.Connection, used: Iterable[str], *, now: str) -> None:
    """Record that rows were used. The recorded instant never moves back."""
    connection.executemany(
        "UPDATE observations SET last_used_at = CASE WHEN last_used_at > ? THEN last_used_at ELSE ? END"
        f" WHERE {_OF_ID}",
        [(now, now, *_id_values(row)) for row in used],
    )


def are_visible(connection: sqlite3.Connection, references: Iterable[str]) -> bool:
    """Return True if all rows with these ids are visible."""
    query = f"SELECT 1 FROM observations WHERE {_OF_ID} AND visible"
    return all(connection.execute(query, _id_values(row)).fetchone() for row in references)


def has_rows_after(connection: sqlite3.Connection, position: int) -> bool:
    return connection.execute("SELECT 1 FROM observations WHERE position > ?", (position,)).fetchone() is not None


def at(connection: sqlite3.Connection, reference: str) -> Logged | None:
    """Return the row with this id, hidden or not, with its position, or None if it is not in the log."""
    return next(iter(_select(connection, f"WHERE {codec.id_is('o.')}", _id_values(reference))), None)


def by_position(connection: sqlite3.Connection, places: str, values: dialect.Values) -> tuple[Logged, ...]:
    """Return, in log order, the rows at the positions that the query `places` selects."""
    return _select(connection, f"WHERE o.position IN ({places}) ORDER BY o.position", values)


def by_query(connection: sqlite3.Connection, query: LogQuery, positions: str) -> tuple[Logged, ...]:
    """Return the rows that a query selects among those at the positions in a list, in log order."""
    condition, values = clauses(connection, query)
    where = f"WHERE {dialect.among('o.position')} AND {condition} ORDER BY o.position"
    return _select(connection, where, (positions, *values))


def clauses(connection: sqlite3.Connection, query: LogQuery) -> tuple[str, list[object]]:
    """Return the expression that is true for rows that a query selects, and its parameters."""
    conditions, values = _clauses(query, _Numbers.of(connection, query), visible=_visible(query))
    return " AND ".join(conditions), values


def _id_values(reference: str) -> tuple[bytes, bytes]:
    return codec.id_values(codec.packed(reference))


def context(
    connection: sqlite3.Connection, *, session: int, limit: int, known: Mapping[int, Observation]
) -> dict[int, Observation]:
    """Return a session's newest visible observations and its newest mutable ones, `limit` of each, by position, oldest
    first.

    `known` are rows read earlier. They are reused because the content of a visible row never changes.
    """
    newest = "SELECT position FROM observations WHERE session = :session AND visible AND kind = 'observation'{}"
    positions = [
        position
        for (position,) in connection.execute(
            f"SELECT * FROM ({newest.format('')} ORDER BY position DESC LIMIT :limit)"
            f" UNION SELECT * FROM ({newest.format(_MAY_CHANGE)} ORDER BY position DESC LIMIT :limit) ORDER BY 1",
            {"session": session, "limit": limit},
        )
    ]
    missing = dialect.as_list(position for position in positions if position not in known)
    read = _select(connection, f"WHERE {dialect.among('o.position')}", (missing,))
    rows_at = {**known, **{logged.position: logged.observation for logged in read}}
    return {position: rows_at[position] for position in positions}


def _log(connection: sqlite3.Connection, query: LogQuery, *, limit: int) -> tuple[Logged, ...]:
    """Return at most `limit` rows of a query, or its last rows if it asks for them."""
    if query.last is not None:
        return _last(connection, query, query.last)
    conditions, values = _clauses(query, _Numbers.of(connection, query), visible=_visible(query))
    clauses = f"WHERE {' AND '.join(conditions)} ORDER BY o.position LIMIT ?"
    return _as_of(query, _select(connection, clauses, (*values, limit), bare=query.bare))


def _last(connection: sqlite3.Connection, query: LogQuery, last: int) -> tuple[Logged, ...]:
    newest: list[str] = []
    best: list[str] = []
    values: list[object] = []
    # Hidden rows are searched separately, because the indexes contain only visible rows.
    replaced = () if query.as_of is None or query.hidden else ((query, _replaced_since(query)),)
    usual = _visible(record.replace(query, as_of=None))
    numbers = _Numbers.of(connection, query)
    for part, visible in (*((part, usual) for part in _parts(query)), *replaced):
        conditions, asked = _clauses(part, numbers, visible=visible)
        where = f"FROM observations AS o WHERE {' AND '.join(conditions)}"
        newest.append(f"SELECT o.position {where}")
        if visible == usual:  # read in the order of importance, not by a range of positions
            where = where.replace("o.position", dialect.without_index("o.position"))
        best.append(f"SELECT o.importance, o.position {where}")
        values += asked
    # All parts have the same order, so the indexes are merged and reading stops at the last row needed.
    positions = f"{' UNION ALL '.join(newest)} ORDER BY 1 DESC LIMIT ?"
    asked = [*values, last]
    if query.best:
        positions = f"SELECT * FROM ({positions}) UNION {_BEST.format(' UNION ALL '.join(best))}"
        asked += [*values, query.best]
    if query.has_replaced:
        positions = _AND_REPLACED.format(positions)
        asked.append(last + query.best)
    clauses = f"WHERE o.position IN ({positions}) ORDER BY o.position"
    return _as_of(query, _select(connection, clauses, asked, bare=query.bare))


def _visible(query: LogQuery) -> str:
    """Return the condition that `hidden`, `without_replaced` and `as_of` of a query set on the visibility of rows."""
    if query.hidden:
        return _NOT_REPLACED if query.without_replaced else "TRUE"
    return "o.visible" if query.as_of is None else f"(o.visible OR {_replaced_since(query)})"


def _replaced_since(query: LogQuery) -> str:
    """Return the condition for rows that were visible at `as_of` but are not now."""
    return _REPLACED_SINCE if query.session is None else _OBSERVED_SINCE


def _as_of(query: LogQuery, found: tuple[Logged, ...]) -> tuple[Logged, ...]:
    """Return the rows as they were at the query's `as_of` or, with `has_replaced`, before they were replaced."""
    if query.as_of is None and not query.has_replaced:
        return found
    return tuple(
        record.replace(
            logged,
            observation=record.replace(logged.observation, superseded_by=None, reason=None, last_used_at=None),
        )
        for logged in found
    )


def _parts(query: LogQuery) -> Iterator[LogQuery]:
    """Split a query for a project's observations by type, so that the index `observations_of_type` finds the last."""
    split = query.types if query.project is not None and query.kinds == (Kind.OBSERVATION,) else ()
    yield from (record.replace(query, types=(type_,)) for type_ in split) if split else (query,)


def find(connection: sqlite3.Connection, reference: str) -> Observation:
    """Return the row with this id or handle. Raise UnknownId unless exactly one row matches."""
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
    from uuid import UUID  # noqa: PLC0415 - not needed to read the log

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


def _clauses(query: LogQuery, numbers: _Numbers, *, visible: str) -> tuple[list[str], list[object]]:
    """Return the conditions of a query and their parameters. An unknown session or project matches no rows.

    `visible` is the condition for visible rows.
    """
    conditions: list[str] = ["o.position > ?"]
    values: list[object] = [query.after]

    def limit_to(condition: str, *asked: object) -> None:
        conditions.append(condition)
        values.extend(asked)

    # Spelled exactly like the conditions of the partial indexes, or SQLite does not use them.
    if query.kinds == (Kind.OBSERVATION,):
        limit_to("o.kind = 'observation'")
    elif query.kinds and Kind.OBSERVATION not in query.kinds:
        limit_to("o.kind <> 'observation'")
    if query.session is not None:
        limit_to("o.session = ?", numbers.session)
    if query.other_than is not None:
        limit_to(dialect.not_same("o.session", "?"), numbers.other_than or 0)
    if query.project == NO_PROJECT:
        limit_to("o.project IS NULL")
    elif query.project is not None:
        limit_to("o.project = ?", numbers.project)
    for column, words in (("kind", query.kinds), ("type", query.types), ("priority", query.priorities)):
        if words:
            listed = "', '".join(words)
            conditions.append(f"o.{column} IN ('{listed}')")
    since = query.changed_since
    for condition, *bounds in (
        (_CHANGED_SINCE, since, since, since and codec.packed(first_id(since))),
        ("coalesce(o.event_at, o.observed_at) >= ?", query.since),
        ("coalesce(o.event_at, o.observed_at) < ?", query.until),
        ("o.position <= ?", query.as_of),
        ("o.counter <> ?", query.other_counter),
        (f"o.author IN ({codec.OF_NAME})", query.author),
    ):
        if bounds[0] is not None:
            limit_to(condition, *bounds)
    limit_to(visible, *[query.as_of] * visible.count("?"))
    return conditions, values


class _Numbers(NamedTuple):
    """Numbers of what a query names: None if it names nothing, or nothing in the store."""

    session: int | None
    other_than: int | None
    project: int | None

    @classmethod
    def of(cls, connection: sqlite3.Connection, query: LogQuery) -> Self:
        session, other_than = (
            None if name is None else codec.session_number(connection, name)
            for name in (query.session, query.other_than)
        )
        project = None if query.project in (None, NO_PROJECT) else codec.project_number(connection, str(query.project))
        return cls(session=session, other_than=other_than, project=project)


def _select(
    connection: sqlite3.Connection, clauses: str, values: dialect.Values, *, bare: bool = False
) -> tuple[Logged, ...]:
    columns = codec.BARE_OBSERVATION if bare else codec.OBSERVATION
    found = dialect.execute(connection, f"SELECT {columns} {clauses}", values).fetchall()
    positions = [row[0] for row in found]
    sources = _sources(connection, positions) if not bare else {}
    linked = [sources.get(position, ()) for position in positions]
    read = list(map(codec.observation_reader(bare=bare), found, linked))
    logged = [Logged(position=position, observation=row) for position, row in zip(positions, read, strict=True)]
    return tuple(logged if bare else _with_supports(connection, logged))


def _with_supports(connection: sqlite3.Connection, read: list[Logged]) -> Iterator[Logged]:
    """Yield the rows, adding to reflections and items the ids of the rows they were made from."""
    made = [logged.position for logged in read if logged.observation.kind in (Kind.REFLECTION, Kind.ITEM)]
    supports: dict[int, list[str]] = defaultdict(list)
    if made:
        for position, identity in connection.execute(
            "SELECT l.observation, o.id FROM observation_supports AS l JOIN observations AS o"
            f" ON o.position = l.supported WHERE {dialect.among('l.observation')}"
            " ORDER BY l.observation, l.supported",
            (dialect.as_list(made),),
        ):
            supports[position].append(codec.unpacked(identity))
    for logged in read:
        of_it = supports.get(logged.position)
        row = logged.observation
        yield logged if not of_it else record.replace(logged, observation=record.replace(row, supports=tuple(of_it)))


def _sources(connection: sqlite3.Connection, positions: Iterable[int]) -> Mapping[int, Sequence[tuple[int, str]]]:
    """Map the position of each row to the `seq` and printed ids of its source messages, including hidden messages."""
    sources: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for position, seq, key in connection.execute(_SOURCES, {"which": dialect.as_list(positions)}):
        sources[position].append((seq, key))
    return sources
