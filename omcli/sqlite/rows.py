"""Rows of the tables as messages, sessions and observations, and back."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from omcli.memory.message import Aside, Image, KeptMessage, Message, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.ports import Incoming
from omcli.memory.session import Session

Columns = dict[str, object]
Values = Mapping[str, object] | Sequence[object]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST_INTEGER = (1 << 63) - 1

MESSAGE = (
    "m.seq, s.id AS session, coalesce(m.key, m.id) AS printed_key, m.role, m.aside, m.id, m.at, m.name, m.agent, m.cwd,"
    " m.tool, m.call_id, m.failed, m.exit_code, m.images, m.tokens, m.counter, m.text"
    " FROM messages AS m JOIN sessions AS s ON s.number = m.session"
)
"""What `kept_message` reads."""

OBSERVATION = (
    "o.position, o.id, s.id AS session, p.path AS project, o.kind, o.type, o.priority, o.status, o.importance, o.text,"
    " o.observed_at, o.event_at, o.refers_to, o.tokens, o.counter, o.source, o.tags, o.metadata, o.generation,"
    " o.last_used_at, o.superseded_by, o.dropped_at, o.reason FROM observations AS o"
    " LEFT JOIN sessions AS s ON s.number = o.session LEFT JOIN projects AS p ON p.number = o.project"
)
"""What `observation` reads."""


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
    named = ", ".join(f":{column}" for column in columns)
    number = execute(connection, f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({named})", columns).lastrowid
    assert number is not None
    return number


def update(connection: sqlite3.Connection, table: str, columns: Columns, *, number: int) -> None:
    """Changes columns of the row with this number."""
    changes = ", ".join(f"{column} = :{column}" for column in columns)
    execute(connection, f"UPDATE {table} SET {changes} WHERE number = :number", {**columns, "number": number})


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
        "name": message.name,
        "agent": message.agent,
        "cwd": message.cwd,
        "tool": message.tool,
        "call_id": message.call_id,
        "failed": message.failed,
        "exit_code": _storable(message.exit_code),
        "images": _compact_json([asdict(image) for image in message.images]) if message.images else None,
        "tokens": incoming.tokens,
        "counter": counter,
        "text": message.text,
    }


def kept_message(row: sqlite3.Row) -> KeptMessage:
    """A message from a row of MESSAGE."""
    message = Message(
        role=Role(row["role"]),
        text=row["text"],
        aside=Aside(row["aside"]) if row["aside"] else None,
        id=row["id"],
        at=row["at"],
        name=row["name"],
        agent=row["agent"],
        cwd=row["cwd"],
        tool=row["tool"],
        call_id=row["call_id"],
        failed=None if row["failed"] is None else bool(row["failed"]),
        exit_code=row["exit_code"],
        images=tuple(Image(**image) for image in json.loads(row["images"])) if row["images"] else (),
    )
    return KeptMessage(
        seq=row["seq"],
        session=row["session"],
        key=row["printed_key"],
        message=message,
        tokens=row["tokens"],
        counter=row["counter"],
    )


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
        "id": UUID(row.id).bytes,
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
        "tags": _compact_json(row.tags) if row.tags else None,
        "metadata": _compact_json(dict(row.metadata)) if row.metadata else None,
        "batch": batch,
        "generation": row.generation,
        "last_used_at": row.last_used_at,
        "superseded_by": UUID(row.superseded_by).bytes if row.superseded_by else None,
        "dropped_at": row.dropped_at,
        "reason": row.reason,
        "visible": row.is_visible,
    }


def observation(row: sqlite3.Row, sources: Iterable[tuple[int, str]]) -> Observation:
    """An observation from a row of OBSERVATION and the messages (`seq`, printed id) it came from."""
    linked = tuple(sources)
    return Observation(
        id=str(UUID(bytes=row["id"])),
        session=row["session"],
        project=row["project"],
        kind=Kind(row["kind"]),
        type=Type(row["type"]),
        priority=Priority(row["priority"]),
        importance=row["importance"],
        status=Status(row["status"]) if row["status"] else None,
        text=row["text"],
        observed_at=row["observed_at"],
        event_at=row["event_at"],
        refers_to=row["refers_to"],
        message_ids=tuple(key for _, key in linked),
        sources=tuple(seq for seq, _ in linked),
        tokens=row["tokens"],
        counter=row["counter"],
        source=Source(row["source"]),
        tags=tuple(json.loads(row["tags"])) if row["tags"] else (),
        metadata=json.loads(row["metadata"]) if row["metadata"] else {},
        last_used_at=row["last_used_at"],
        generation=row["generation"],
        superseded_by=str(UUID(bytes=row["superseded_by"])) if row["superseded_by"] else None,
        dropped_at=row["dropped_at"],
        reason=row["reason"],
    )


def _compact_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _well_formed(value: object) -> object:
    """The value; in text, halves of surrogate pairs, which are no Unicode by themselves, become U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def _storable(number: int | None) -> int | None:
    """The number, or None where it does not fit into 64 bits: what a transcript claims may be absurd."""
    return number if number is not None and abs(number) <= _LARGEST_INTEGER else None
