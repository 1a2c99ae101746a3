"""Sessions in the store, message and row counts, the freeze points of packs, and tombstones of forgotten text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from omcli.base.record import replace
from omcli.memory.message import MessageKind, Role
from omcli.memory.observation import Kind, Logged, Observation, Source
from omcli.memory.ports import Lane, Sessions, StoreStatus, Tombstones
from omcli.memory.session import BY_HAND, Author, EvictionPolicy, FreezePoint, Session, SessionSummary
from omcli.sqlite import codec, dialect, lanes
from omcli.sqlite.dialect import Table

if TYPE_CHECKING:
    from omcli.memory.changes import SessionTitle

_CURSOR = "coalesce((SELECT c.covers_up_to FROM cursors AS c WHERE c.session = s.number AND c.lane = :observe), 0)"
_AFTER = f"""
    (SELECT {{number}} FROM {dialect.by_index("messages AS m", "messages_of_session")}
        WHERE m.session = s.number AND m.seq > {_CURSOR})
"""
_PENDING = f"""
    ({_AFTER}
    + (SELECT {{number}} FROM passed_over AS p JOIN {dialect.by_index("messages AS m", "messages_of_session")}
        ON m.session = p.session AND m.seq = p.message WHERE p.session = s.number))
"""
_ALL = _PENDING.format(number="count(*)")
_COUNTED = _PENDING.format(number="count(*) FILTER (WHERE m.counted)")
_PROMPT_CHARACTERS = 300
_KNOWN = f"SELECT s.*, {codec.AUTHOR} FROM sessions AS s{codec.with_author('s')} WHERE s.id = ? AND s.agent IS NOT NULL"
_ACTIVE_AT = "min(coalesce(s.last_at, s.seen_at), s.seen_at)"
"""`SessionSummary.active_at` as SQL."""
_IS_EMPTY = """
    NOT EXISTS (SELECT 1 FROM message_counts WHERE session = s.number AND messages > 0)
    AND NOT EXISTS (SELECT 1 FROM row_counts WHERE session = s.number AND visible + hidden > 0)
"""
_LATEST_FIRST = f"{_IS_EMPTY}, {_ACTIVE_AT} DESC NULLS LAST, s.seen_at DESC NULLS LAST, s.id DESC"
_LATEST = f"""
    SELECT number FROM sessions AS s WHERE agent IS NOT NULL AND (:project IS NULL OR coalesce(cwd, '') = :project)
    ORDER BY {_LATEST_FIRST} LIMIT :last
"""
"""Query for the numbers of the last sessions. It is separate, so that only their messages are counted."""
WAITING = f"""
    SELECT s.number AS session, s.seen_at AS since, {_AFTER.format(number="count(*)")} AS messages,
        {_AFTER.format(number="sum(m.tokens)")} AS tokens,
        {_AFTER.format(number="count(*) FILTER (WHERE m.counter <> :counter)")} AS others
    FROM sessions AS s WHERE (SELECT max(m.seq) FROM messages AS m WHERE m.session = s.number) > {_CURSOR}
    UNION ALL SELECT m.session, p.since, 1, m.tokens, CASE WHEN m.counter <> :counter THEN 1 ELSE 0 END
    FROM passed_over AS p CROSS JOIN {dialect.by_index("messages AS m", "messages_of_session")}
    WHERE m.session = p.session AND m.seq = p.message
"""
"""Query for counts of pending messages, with the time since which they wait. Those of each session are counted in a
query of their own, because a planner would otherwise read all messages.
"""
_WITH_WORK = f"""
    SELECT s.id FROM sessions AS s
    LEFT JOIN (SELECT session, sum(tokens) AS tokens, sum(others) AS others
        FROM ({WAITING}) GROUP BY session) AS m ON m.session = s.number
    LEFT JOIN (SELECT session, sum(tokens) AS tokens, count(*) FILTER (WHERE counter <> :counter) AS others,
        sum(CASE WHEN kind = 'reflection' THEN visible ELSE 0 END) AS reflections FROM row_counts WHERE visible > 0
        GROUP BY session) AS o ON o.session = s.number
    WHERE s.agent IS NOT NULL AND (m.tokens >= :pending OR (m.others > 0 AND :pending IS NOT NULL)
        OR o.tokens >= :rows OR (o.others > 0 AND :rows IS NOT NULL) OR o.reflections >= :reflections)
    ORDER BY {_LATEST_FIRST}
"""
_BUFFERED = """
    SELECT (SELECT count(*) FROM blocks), count(DISTINCT m.seq) FILTER (WHERE m.counted)
    FROM blocks AS b LEFT JOIN cursors AS c ON c.session = b.session AND c.lane = :observe
    JOIN messages AS m ON m.session = b.session
        AND m.seq > b.after AND m.seq > coalesce(c.covers_up_to, 0) AND m.seq <= b.through
"""


class SqliteSessions(Table, Sessions):
    """Sessions in the table `sessions`, and counts from all tables."""

    def find(self, session: str) -> Session | None:
        with self._database.reading() as connection:
            return find(connection, session)

    def ids(self, prefix: str = "") -> tuple[str, ...]:
        with self._database.reading() as connection:
            found = dialect.execute(
                connection,
                "SELECT id FROM sessions WHERE agent IS NOT NULL AND substr(id, 1, length(:prefix)) = :prefix"
                " ORDER BY id",
                {"prefix": prefix},
            )
            return tuple(session for (session,) in found)

    def prompt(self, session: str) -> str | None:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT substr(text, 1, ?) FROM messages WHERE session = ? AND agent IS NULL AND role = ?"
                " AND (aside IS NULL OR aside = ?) ORDER BY seq LIMIT 1",
                (_PROMPT_CHARACTERS, codec.session_number(connection, session), Role.USER, MessageKind.NOTE),
            ).fetchone()
            return found[0] if found else None

    def summaries(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        with self._database.reading() as connection:
            return _summaries(connection, project=project, last=last)

    def authors(self) -> tuple[Author, ...]:
        with self._database.reading() as connection:
            found = connection.execute(f"SELECT {codec.AUTHOR} FROM authors AS a ORDER BY 1, 2")
            return tuple(filter(None, map(codec.author, found)))

    def row_count(self, kinds: Iterable[Kind], *, session: str | None = None, hidden: bool = False) -> int:
        with self._database.reading() as connection:
            of_session = "" if session is None else "session = :session AND"
            (found,) = connection.execute(
                "SELECT coalesce(sum(visible + CASE WHEN :hidden THEN hidden ELSE 0 END), 0) FROM row_counts"
                f" WHERE {of_session} {dialect.among('kind', ':kinds')}",
                {
                    "session": session and codec.session_number(connection, session),
                    "hidden": hidden,
                    "kinds": dialect.as_list(kinds),
                },
            ).fetchone()
            assert isinstance(found, int)
            return found

    def with_work(
        self, counter: str, *, pending: int | None = None, rows: int | None = None, reflections: int | None = None
    ) -> tuple[str, ...]:
        asked = {"observe": Lane.OBSERVE, "counter": counter, "pending": pending, "rows": rows}
        with self._database.reading() as connection:
            found = connection.execute(_WITH_WORK, {**asked, "reflections": reflections})
            return tuple(session for (session,) in found)

    def status(self) -> StoreStatus:
        with self._database.reading() as connection:
            return _status(connection)

    def freeze_point(
        self, session: str, *, own: str | None, project: str | None, eviction: EvictionPolicy, further: int = 0
    ) -> FreezePoint:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            return freeze_point(
                connection, session=number or 0, own=own, project=project, eviction=eviction, further=further
            )


class SqliteTombstones(Table, Tombstones):
    """Tombstones in the table `tombstones`; forgotten rows and titles in `aside_observations` and `aside_titles`."""

    def rows(self) -> tuple[Observation, ...]:
        with self._database.reading() as connection:
            return tuple(logged.observation for logged in hidden(connection, "ORDER BY o.position"))

    def titles(self) -> tuple[SessionTitle, ...]:
        from omcli.memory.changes import SessionTitle  # noqa: PLC0415 - only to forget

        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT s.id, t.title FROM aside_titles AS t JOIN sessions AS s ON s.number = t.session"
                " ORDER BY 1, 2"
            )
            return tuple(map(SessionTitle._make, found))

    def has_messages(self, seqs: Sequence[int]) -> bool:
        with self._database.reading() as connection:
            forgotten = (
                "SELECT count(DISTINCT message) FROM message_holds AS h JOIN operations AS o ON o.number = h.operation"
                f" WHERE o.verb = 'forget' AND o.undone_by IS NULL AND {dialect.among('message')}"
            )
            (found,) = connection.execute(forgotten, (dialect.as_list(seqs),)).fetchone()
        return bool(found == len(set(seqs)))

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            return are_forgotten(connection, rows)

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        with self._database.reading() as connection:
            has_any = has_tombstones(connection)
            return tuple(has_any and is_forgotten_text(connection, text) for text in texts)


def find(connection: sqlite3.Connection, session: str) -> Session | None:
    """Return a session, or None if no messages were ever appended to it and it has no rows."""
    row = dialect.execute(connection, _KNOWN, (session,)).fetchone()
    return codec.session(row) if row else None


def merge(connection: sqlite3.Connection, session: Session, *, now: str, author: Author | None) -> int:
    """Create or update a session, without its title if that was forgotten, and return the session's number. A new one
    gets the author.
    """
    place = codec.add_session(connection, session.id)
    known = find(connection, session.id)
    if is_forgotten_text(connection, session.title):
        session = replace(session, title=None)
    if known is None:
        first = {"seen_at": now, "author": codec.add_author(connection, author)}
        dialect.update(connection, "sessions", {**codec.session_columns(session), **first}, number=place)
    elif (merged := known.merged(session)) != known:
        dialect.update(connection, "sessions", codec.session_columns(merged), number=place)
    return place


def note_rows(connection: sqlite3.Connection, session: int, rows: Sequence[Observation], *, author: int | None) -> None:
    """Update a session that has rows but no transcript: `first_at` and `last_at` include the rows' own times. A new one
    gets the author, by number. Leave other sessions unchanged.
    """
    dialect.execute(
        connection,
        "UPDATE sessions SET agent = :agent, author = CASE WHEN agent IS NULL THEN :author ELSE author END,"
        " cwd = coalesce(cwd, :cwd), seen_at = max(coalesce(seen_at, :seen), :seen),"
        " first_at = min(coalesce(first_at, :first), :first), last_at = max(coalesce(last_at, :last), :last)"
        " WHERE number = :session AND (agent IS NULL OR agent = :agent)",
        {
            "agent": BY_HAND,
            "session": session,
            "author": author,
            "cwd": rows[0].project,
            "seen": max(row.observed_at for row in rows),
            "first": min(row.dated for row in rows),
            "last": max(row.dated for row in rows),
        },
    )


def set_title(connection: sqlite3.Connection, session: int, title: str) -> None:
    """Give a session this title, unless it has one or the title was forgotten."""
    if is_forgotten_text(connection, title):
        return
    dialect.execute(connection, "UPDATE sessions SET title = ? WHERE number = ? AND title IS NULL", (title, session))


def note_new(connection: sqlite3.Connection, session: int, *, instants: Sequence[str], now: str) -> None:
    """Record that messages with these instants were ingested.

    `first_at` only moves back and `last_at` only forward, because clocks are skewed and imports may arrive late.
    """
    dialect.execute(
        connection,
        "UPDATE sessions SET seen_at = CASE WHEN seen_at > :now THEN seen_at ELSE :now END,"
        " first_at = CASE WHEN first_at < :first THEN first_at ELSE coalesce(:first, first_at) END,"
        " last_at = CASE WHEN last_at > :last THEN last_at ELSE coalesce(:last, last_at) END"
        " WHERE number = :session",
        {"now": now, "first": min(instants, default=None), "last": max(instants, default=None), "session": session},
    )


def hidden(connection: sqlite3.Connection, clauses: str, *values: bytes | str) -> Iterator[Logged]:
    """Yield rows moved out of the log, with their former positions."""
    select = codec.OBSERVATION.replace("FROM observations", "FROM aside_observations")
    read = codec.observation_reader()
    for row in connection.execute(f"SELECT {select} {clauses}", values):
        yield Logged(position=row[0], observation=read(row, ()))


def are_forgotten(connection: sqlite3.Connection, rows: Sequence[Observation]) -> tuple[bool, ...]:
    """Return, for each row, True if its text was forgotten. Always return False for a row written by the user."""
    if not has_tombstones(connection):
        return (False,) * len(rows)
    from omcli.memory.coverage import row_tombstones  # noqa: PLC0415

    return tuple(
        row.source is not Source.USER and forgotten_by(connection, row_tombstones(row, session=row.session)) is not None
        for row in rows
    )


def is_forgotten_text(connection: sqlite3.Connection, text: str | None) -> bool:
    """Return True if a title with this text was forgotten, or a message or row with it, in any session. Rows of tool
    events and those with indistinct text don't count, because their tombstones depend on the session.
    """
    if text is None or not has_tombstones(connection):
        return False
    from omcli.memory.coverage import tombstones  # noqa: PLC0415

    return forgotten_by(connection, tombstones(text)) is not None


def has_tombstones(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM tombstones LIMIT 1").fetchone() is not None


def forgotten_by(connection: sqlite3.Connection, digests: Sequence[str]) -> int | None:
    """Return the number of the operation that forgot a text with one of these digests, or None. If there are several,
    prefer one that can be undone.
    """
    found = connection.execute(
        "SELECT o.number FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        f" WHERE t.digest IN ({', '.join('?' * len(digests))}) AND o.undone_by IS NULL"
        " ORDER BY o.final_at IS NOT NULL, o.number LIMIT 1",
        [*map(bytes.fromhex, digests)],
    ).fetchone()
    return found[0] if found else None


def _summaries(connection: sqlite3.Connection, *, project: str | None, last: int | None) -> tuple[SessionSummary, ...]:
    found = dialect.execute(
        connection,
        f"""
        SELECT s.*, {codec.AUTHOR}, {_COUNTED} AS pending, {_ALL} = 0 AS is_observed,
            (SELECT coalesce(sum(counted), 0) FROM message_counts WHERE session = s.number) AS messages,
            (SELECT coalesce(sum(visible), 0) FROM row_counts WHERE session = s.number) AS observations
        FROM sessions AS s{codec.with_author("s")}
        WHERE s.number IN ({_LATEST})
        ORDER BY {_LATEST_FIRST}
        """,
        {"observe": Lane.OBSERVE, "project": project, "last": dialect.NO_LIMIT if last is None else last},
    )
    return tuple(
        SessionSummary(
            session=codec.session(row),
            messages=row["messages"],
            observations=row["observations"],
            pending=row["pending"],
            is_observed=bool(row["is_observed"]),
            first_at=row["first_at"],
            last_at=row["last_at"],
            seen_at=row["seen_at"],
        )
        for row in found
    )


def _status(connection: sqlite3.Connection) -> StoreStatus:
    """Return counts that triggers keep. Only pending messages are counted one by one."""
    sessions, pending = connection.execute(
        f"SELECT count(s.agent), coalesce(sum({_COUNTED}), 0) FROM sessions AS s", {"observe": Lane.OBSERVE}
    ).fetchone()
    messages = connection.execute(
        "SELECT counter, sum(tokens) AS tokens, sum(counted) AS counted FROM message_counts"
        " GROUP BY counter HAVING sum(messages) > 0"
    ).fetchall()
    rows = connection.execute(
        "SELECT counter, sum(tokens) AS tokens, sum(visible) AS visible, sum(hidden) AS hidden FROM row_counts"
        " GROUP BY counter HAVING sum(visible + hidden) > 0"
    ).fetchall()
    blocks, ahead = connection.execute(_BUFFERED, {"observe": Lane.OBSERVE}).fetchone()
    return StoreStatus(
        sessions=sessions,
        messages=sum(row["counted"] for row in messages),
        observations=sum(row["visible"] for row in rows),
        hidden=sum(row["hidden"] for row in rows),
        pending=pending,
        message_tokens={row["counter"]: row["tokens"] for row in messages},
        observation_tokens={row["counter"]: row["tokens"] for row in rows if row["visible"]},
        errors=lanes.last_errors(connection),
        blocks=blocks,
        ahead=ahead,
    )


def changes(connection: sqlite3.Connection, session: str | None) -> int:
    """Return the number of changes to a session's observations and reflections (see `ports.Rows.changes`)."""
    query = "SELECT coalesce(sum(changes), 0) FROM row_counts WHERE session = ? AND kind IN (?, ?)"
    number = None if session is None else codec.session_number(connection, session)
    (found,) = connection.execute(query, (number, Kind.OBSERVATION, Kind.REFLECTION)).fetchone()
    assert isinstance(found, int)
    return found


# ---- the freeze point of a session's pack, derived from token sums, batches and operations

_FIRST = """
    SELECT min(position) FROM (
        SELECT position FROM (SELECT position FROM observations WHERE session = :session AND batch IS NOT NULL
            ORDER BY position LIMIT 1)
        UNION ALL SELECT position FROM aside_observations WHERE session = :session AND batch IS NOT NULL)
"""
_BATCH = """
    SELECT max(number) FROM batches
    WHERE session = :session AND lane = :lane AND outcome IN ('observed', 'empty') AND after < :message
"""
_OBSERVED = """
    SELECT position FROM observations WHERE session = :session AND batch <= :batch ORDER BY position DESC LIMIT 1
"""
_MADE = """
    SELECT max(position) FROM observations WHERE made_by IN (
        SELECT number FROM operations WHERE session = :session AND undone_by IS NULL
        UNION ALL
        SELECT number FROM operations WHERE session IS NULL AND (:project IS NULL OR project = :project)
            AND undone_by IS NULL)
"""
# Any row of the session, but only handwritten rows of the project, because its other rows come from sessions.
_WITHOUT_MESSAGE = """
    SELECT position FROM observations WHERE session = :session AND visible AND batch IS NULL AND made_by IS NULL
    ORDER BY position DESC LIMIT 1
"""
_OF_THE_PROJECT = """
    SELECT position FROM observations WHERE project = :own AND visible AND kind <> 'observation' AND session IS NULL
        AND batch IS NULL AND made_by IS NULL
    ORDER BY position DESC LIMIT 1
"""


def freeze_point(
    connection: sqlite3.Connection,
    *,
    session: int,
    own: str | None,
    project: str | None,
    eviction: EvictionPolicy,
    further: int,
) -> FreezePoint:
    """Return the freeze point of a session (see `ports.Sessions.freeze_point`)."""
    covered_up_to = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    said, covered = connection.execute(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(CASE WHEN seq <= ? THEN tokens ELSE 0 END), 0) FROM messages"
        " WHERE session = ? AND agent IS NULL",
        (covered_up_to, session),
    ).fetchone()
    evicted = eviction.evicted_tokens(said=said, covered=covered, further=further)
    message = covered_up_to if evicted is None else _end_of(connection, session=session, rest=said, evicted=evicted)
    position = _last_row(
        connection,
        {
            "session": session,
            "own": None if own is None else codec.project_number(connection, own),
            "project": None if project is None else codec.project_number(connection, project) or 0,
            "lane": Lane.OBSERVE,
            "message": message,
        },
    )
    return FreezePoint(message=message, position=position, at=_written(connection, position), is_last=evicted is None)


def _end_of(connection: sqlite3.Connection, *, session: int, rest: int, evicted: int) -> int:
    """Return the `seq` of the message at which the main thread's tokens since the start reach `evicted`, or 0 if
    `evicted` is 0.

    `rest` is the number of tokens in the whole main thread.
    """
    newest = connection.execute(
        "SELECT seq, tokens FROM messages WHERE session = ? AND agent IS NULL ORDER BY seq DESC", (session,)
    )
    for seq, tokens in newest if evicted else ():
        rest -= tokens
        if rest < evicted:
            assert isinstance(seq, int)
            return seq
    return 0


def _last_row(connection: sqlite3.Connection, values: dict[str, object]) -> int | None:
    """Return the position of the pack's last row, or None if nothing in the session was observed yet.

    It is the largest of: the position before the session's first observation; the last row up to the batch that
    contains the last message before the freeze point; the last row made by an operation that was not undone; and the
    last visible row that no batch or operation made (written by hand or imported), of the session or of its project.
    """

    def found(asked: str) -> int:
        (position,) = connection.execute(asked, values).fetchone() or (None,)
        return position or 0

    if not (first := found(_FIRST)):
        return None
    values["batch"] = found(_BATCH) if values["message"] else 0
    observed = found(_OBSERVED) if values["batch"] else 0
    return max(first - 1, observed, *map(found, (_MADE, _WITHOUT_MESSAGE, _OF_THE_PROJECT)))


def _written(connection: sqlite3.Connection, position: int | None) -> str | None:
    found = connection.execute(
        "SELECT observed_at FROM observations WHERE position <= ? ORDER BY position DESC LIMIT 1", (position,)
    ).fetchone()
    return found["observed_at"] if found else None
