"""Rows of the tables as messages, sessions and observations, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from omcli.base.patterns import lazily
from omcli.memory.message import Aside, Image, KeptMessage, Message, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.ports import Incoming
from omcli.memory.session import Session

_ROLES = {str(member): member for member in Role}
_ASIDES: dict[str | None, Aside | None] = {None: None, **{str(member): member for member in Aside}}
_KINDS = {str(member): member for member in Kind}
_TYPES = {str(member): member for member in Type}
_PRIORITIES = {str(member): member for member in Priority}
_STATUSES: dict[str | None, Status | None] = {None: None, **{str(member): member for member in Status}}
_SOURCES = {str(member): member for member in Source}

Columns = dict[str, object]
Values = Mapping[str, object] | Sequence[object]

_LONE_SURROGATE = lazily("[\ud800-\udfff]")
_LARGEST_INTEGER = (1 << 63) - 1

MESSAGE = (
    "m.seq, s.id AS session, coalesce(m.key, m.id) AS printed_key, m.role, m.aside, m.id, m.at, m.utc_offset, m.name,"
    " m.agent, m.cwd, m.tool, m.call_id, m.failed, m.exit_code, m.images, m.tokens, m.counter, m.text"
    " FROM messages AS m JOIN sessions AS s ON s.number = m.session"
)
"""What `kept_message` reads, in the order in which it does."""

OBSERVATION = (
    "o.position, o.id, s.id AS session, p.path AS project, o.kind, o.type, o.priority, o.status, o.importance, o.text,"
    " o.observed_at, o.event_at, o.refers_to, o.tokens, o.counter, o.source, o.tags, o.metadata, o.generation,"
    " o.last_used_at, o.superseded_by, o.dropped_at, o.reason FROM observations AS o"
    " LEFT JOIN sessions AS s ON s.number = o.session LEFT JOIN projects AS p ON p.number = o.project"
)
"""What `observation` reads, in the order in which it does."""


def execute(connection: sqlite3.Connection, sql: str, values: Values = ()) -> sqlite3.Cursor:
    """Runs a statement whose values come from outside, and may not be proper Unicode."""
    try:
        return connection.execute(sql, values)
    except UnicodeEncodeError:
        if isinstance(values, Mapping):
            return connection.execute(sql, {name: _well_formed(value) for name, value in values.items()})
        return connection.execute(sql, tuple(map(_well_formed, values)))


def insert(connection: sqlite3.Connection, table: str, columns: Columns) -> int:
    """Adds a row and gives its number."""
    number = execute(connection, _insertion(table, tuple(columns)), tuple(columns.values())).lastrowid
    assert number is not None
    return number


@cache
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    """The statement that adds a row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(connection: sqlite3.Connection, table: str, columns: Columns, *, number: int) -> None:
    """Changes columns of the row with this number."""
    changes = ", ".join(f"{column} = :{column}" for column in columns)
    execute(connection, f"UPDATE {table} SET {changes} WHERE number = :number", {**columns, "number": number})


def session_number(connection: sqlite3.Connection, session: str) -> int | None:
    """The number of a session, None where its name has never come up."""
    found = execute(connection, "SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()
    return found["number"] if found else None


def numbered_session(connection: sqlite3.Connection, session: str) -> int:
    """The number of a session; its name gets one where it comes up for the first time."""
    found = session_number(connection, session)
    return insert(connection, "sessions", {"id": session}) if found is None else found


def project_number(connection: sqlite3.Connection, project: str) -> int | None:
    """The number of a project, None where it has never come up."""
    found = execute(connection, "SELECT number FROM projects WHERE path = ?", (project,)).fetchone()
    return found["number"] if found else None


def numbered_project(connection: sqlite3.Connection, project: str) -> int:
    """The number of a project; it gets one where it comes up for the first time."""
    found = project_number(connection, project)
    return insert(connection, "projects", {"path": project}) if found is None else found


def message_columns(incoming: Incoming, *, session: int, counter: str) -> Columns:
    """A message as a row of `messages`; `session` is the number."""
    message = incoming.message
    return {
        "session": session,
        "role": message.role,
        "aside": message.aside,
        "counted": message.is_counted,
        "id": message.id,
        "key": None if incoming.key == message.id else incoming.key,
        "at": message.at,
        "utc_offset": message.utc_offset,
        "name": message.name,
        "agent": message.agent,
        "cwd": message.cwd,
        "tool": message.tool,
        "call_id": message.call_id,
        "failed": message.failed,
        "exit_code": _storable(message.exit_code),
        "images": compact_json([_image(image) for image in message.images]) if message.images else None,
        "tokens": incoming.tokens,
        "counter": counter,
        "text": message.text,
    }


def kept_message(row: Iterable[Any]) -> KeptMessage:
    """A message from a row of MESSAGE."""
    seq, session, key, role, aside, id_, at, utc_offset, name, agent, cwd, tool, call_id, failed, exit_code, *more = row
    images, tokens, counter, text = more
    message = Message(
        role=_ROLES[role],
        text=text,
        aside=_ASIDES[aside],
        id=id_,
        at=at,
        utc_offset=utc_offset,
        name=name,
        agent=agent,
        cwd=cwd,
        tool=tool,
        call_id=call_id,
        failed=None if failed is None else bool(failed),
        exit_code=exit_code,
        images=tuple(Image(**image) for image in parsed(images)) if images else (),
    )
    return KeptMessage(seq=seq, session=session, key=key, message=message, tokens=tokens, counter=counter)


def session_columns(session: Session) -> Columns:
    """What is known about a session as columns of `sessions`, without its id."""
    return {
        "agent": session.agent,
        "cwd": session.cwd,
        "branch": session.branch,
        "title": session.title,
        "model": session.model,
        "parent": session.parent,
    }


def session(row: sqlite3.Row) -> Session:
    """A session from a row of `sessions`."""
    return Session(
        id=row["id"],
        agent=row["agent"],
        cwd=row["cwd"],
        branch=row["branch"],
        title=row["title"],
        model=row["model"],
        parent=row["parent"],
    )


def observation_columns(row: Observation, *, session: int | None, project: int | None, batch: int | None) -> Columns:
    """An observation as a row of `observations`; session, project and batch by their numbers."""
    return {
        "id": packed(row.id),
        "session": session,
        "project": project,
        "kind": row.kind,
        "type": row.type,
        "priority": row.priority,
        "status": row.status,
        "importance": row.importance,
        "text": row.text,
        "observed_at": row.observed_at,
        "event_at": row.event_at,
        "refers_to": row.refers_to,
        "tokens": row.tokens,
        "counter": row.counter,
        "source": row.source,
        "tags": compact_json(row.tags) if row.tags else None,
        "metadata": compact_json(dict(row.metadata)) if row.metadata else None,
        "batch": batch,
        "generation": row.generation,
        "last_used_at": row.last_used_at,
        "superseded_by": packed(row.superseded_by) if row.superseded_by else None,
        "dropped_at": row.dropped_at,
        "reason": row.reason,
        "visible": row.is_visible,
    }


def observation(row: Iterable[Any], sources: Sequence[tuple[int, str]], *, bare: bool = False) -> Observation:
    """An observation from a row of OBSERVATION and the messages (`seq`, printed id) it came from."""
    # By place and from tables: a pack chooses among a thousand rows, and names take half of the time.
    _, uuid, session, project, kind, type_, priority, status, importance, text, observed_at, event_at, *more = row
    refers_to, tokens, counter, source, tags, metadata, generation, used_at, superseded_by, dropped_at, reason = more
    return Observation(
        id=spelt(uuid),
        session=session,
        project=project,
        kind=_KINDS[kind],
        type=_TYPES[type_],
        priority=_PRIORITIES[priority],
        importance=importance,
        status=_STATUSES[status],
        text=text,
        observed_at=observed_at,
        event_at=event_at,
        refers_to=refers_to,
        message_ids=tuple([key for _, key in sources]),
        sources=tuple([seq for seq, _ in sources]),
        tokens=tokens,
        counter=counter,
        source=_SOURCES[source],
        tags=tuple(parsed(tags)) if tags else (),
        metadata=parsed(metadata) if metadata and not bare else {},
        last_used_at=used_at,
        generation=generation,
        superseded_by=spelt(superseded_by) if superseded_by else None,
        dropped_at=dropped_at,
        reason=reason,
    )


def _image(image: Image) -> dict[str, object]:
    return {"media_type": image.media_type, "size": image.size, "sha256": image.sha256}


# `uuid` does the same, in three times the time, after an import that takes as long as a query.
def packed(uuid: str) -> bytes:
    """A UUID as its 16 bytes."""
    return bytes.fromhex(uuid.replace("-", ""))


def id_is(table: str = "") -> str:
    """The condition that finds a row by its id, of a table that is given a short name, such as `o.`; see `id_values`.

    Both conditions are needed: the index holds the end of the id first, by which rows are called.
    """
    return f"substr({table}id, 13) = ? AND {table}id = ?"


def same_id(one: str, other: str) -> str:
    """The condition that one column has the id of a row that another one names."""
    return f"substr({one}, 13) = substr({other}, 13) AND {one} = {other}"


def id_values(uuid: bytes) -> tuple[bytes, bytes]:
    """The values of `id_is`."""
    return uuid[12:], uuid


def spelt(uuid: bytes) -> str:
    """16 bytes as a UUID is written."""
    digits = uuid.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def compact_json(value: object) -> str:
    """A value as JSON."""
    import json  # noqa: PLC0415 - a pack is made without, if no row has tags

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parsed(text: str) -> Any:
    """A value that was stored as JSON."""
    import json  # noqa: PLC0415

    return json.loads(text)


def _well_formed(value: object) -> object:
    """The value; in text, halves of surrogate pairs, which are no Unicode by themselves, become U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def _storable(number: int | None) -> int | None:
    """The number, or None where it does not fit into 64 bits: what a transcript claims may be absurd."""
    return number if number is not None and abs(number) <= _LARGEST_INTEGER else None
