"""Rows of the tables as messages, sessions and observations, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from omcli.memory.message import Image, Incoming, KeptMessage, Message, MessageKind, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Session
from omcli.sqlite.dialect import Columns, compact_json, execute, insert, parsed

_LARGEST_INTEGER = (1 << 63) - 1
_SESSION = ("id", "agent", "cwd", "branch", "title", "model", "parent")


class _Column(NamedTuple):
    """A column of a table and the field it holds; without functions the value is stored as it is."""

    name: str
    encode: Callable[[Any], object] | None = None
    decode: Callable[[Any], object] | None = None
    sql: str = ""
    """Expression to read, if it is not the column of the table itself."""
    field: str = ""
    """Name of the field, if it is not that of the column."""


def _values(kind: type[Any]) -> Callable[[str | None], Any]:
    """Return a lookup of an enumeration's members by value. It is a table because a pack reads a thousand rows."""
    members: dict[str | None, Any] = {None: None, **{str(member): member for member in kind}}
    return members.__getitem__


# Numbers of sessions and projects.


def session_number(connection: sqlite3.Connection, session: str) -> int | None:
    """The number of a session; None if the store has never seen its name."""
    found = execute(connection, "SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()
    return found["number"] if found else None


def add_session(connection: sqlite3.Connection, session: str) -> int:
    """The number of a session, assigned now if the store has never seen its name."""
    found = session_number(connection, session)
    return insert(connection, "sessions", {"id": session}) if found is None else found


def project_number(connection: sqlite3.Connection, project: str) -> int | None:
    """The number of a project; None if the store has never seen it."""
    found = execute(connection, "SELECT number FROM projects WHERE path = ?", (project,)).fetchone()
    return found["number"] if found else None


def add_project(connection: sqlite3.Connection, project: str) -> int:
    """The number of a project, assigned now if the store has never seen it."""
    found = project_number(connection, project)
    return insert(connection, "projects", {"path": project}) if found is None else found


# Messages.


def _images(images: Sequence[Image]) -> str | None:
    named = [{"media_type": image.media_type, "size": image.size, "sha256": image.sha256} for image in images]
    return compact_json(named) if named else None


_MESSAGE = (
    _Column("role", decode=_values(Role)),
    _Column("aside", decode=_values(MessageKind), field="kind"),
    _Column("id"),
    _Column("at"),
    _Column("utc_offset"),
    _Column("name"),
    _Column("agent"),
    _Column("cwd"),
    _Column("tool"),
    _Column("call_id"),
    _Column("failed", decode=lambda failed: None if failed is None else bool(failed)),
    # A transcript may contain any number; one that does not fit into 64 bits is dropped.
    _Column("exit_code", encode=lambda code: code if code is not None and abs(code) <= _LARGEST_INTEGER else None),
    _Column(
        "images",
        encode=_images,
        decode=lambda images: tuple(Image(**image) for image in parsed(images)) if images else (),
    ),
    _Column("text"),
)
"""Columns of `messages` and fields of Message."""
MESSAGE = (
    "m.seq, s.id AS session, coalesce(m.key, m.id) AS printed_key, m.tokens, m.counter,"
    f" {', '.join(f'm.{column.name}' for column in _MESSAGE)}"
    " FROM messages AS m JOIN sessions AS s ON s.number = m.session"
)
"""Columns and tables to select for `message_reader`."""


def message_columns(incoming: Incoming, *, session: int, counter: str) -> Columns:
    """A message as a row of `messages`; `session` is the number."""
    message = incoming.message
    return {
        "session": session,
        "key": None if incoming.key == message.id else incoming.key,
        "tokens": incoming.tokens,
        "counter": counter,
        "counted": message.is_counted,
        **_encode(_MESSAGE, message),
    }


@cache
def message_reader() -> Callable[[Iterable[Any]], KeptMessage]:
    """A function that makes a message of a row of MESSAGE."""
    result = "KeptMessage(seq=seq, session=session, key=key, message=Message({}), tokens=tokens, counter=counter)"
    scope = {"KeptMessage": KeptMessage, "Message": Message}
    return _compiled("row", "seq, session, key, tokens, counter", _MESSAGE, result, scope)


# Sessions.


def session_columns(session: Session) -> Columns:
    """A session as columns of `sessions`, without its id."""
    return {name: getattr(session, name) for name in _SESSION[1:]}


def session(row: sqlite3.Row) -> Session:
    """A session from a row of `sessions`."""
    return Session(**{name: row[name] for name in _SESSION})


# Observations. A new column needs one line here, and a migration.


# The module `uuid` is three times slower, and importing it takes as long as a query.
def packed(uuid: str) -> bytes:
    """A UUID as its 16 bytes."""
    return bytes.fromhex(uuid.replace("-", ""))


def unpacked(uuid: bytes) -> str:
    """16 bytes as the text of a UUID."""
    digits = uuid.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_OBSERVATION = (
    _Column("id", encode=packed, decode=unpacked),
    _Column("session", sql="s.id"),
    _Column("project", sql="p.path"),
    _Column("kind", decode=_values(Kind)),
    _Column("type", decode=_values(Type)),
    _Column("priority", decode=_values(Priority)),
    _Column("status", decode=_values(Status)),
    _Column("importance"),
    _Column("text"),
    _Column("observed_at"),
    _Column("event_at"),
    _Column("refers_to"),
    _Column("tokens"),
    _Column("counter"),
    _Column("source", decode=_values(Source)),
    _Column(
        "tags",
        encode=lambda tags: compact_json(tags) if tags else None,
        decode=lambda tags: tuple(parsed(tags)) if tags else (),
    ),
    _Column(
        "metadata",
        encode=lambda metadata: compact_json(dict(metadata)) if metadata else None,
        decode=lambda metadata: parsed(metadata) if metadata else {},
    ),
    _Column("generation"),
    _Column("last_used_at"),
    _Column("superseded_by", encode=lambda id_: packed(id_) if id_ else None, decode=lambda id_: id_ and unpacked(id_)),
    _Column("dropped_at"),
    _Column("reason"),
)
"""Columns of `observations` and fields of Observation."""
_BARE = tuple(column if column.name != "metadata" else column._replace(decode=lambda _: {}) for column in _OBSERVATION)
"""The same columns, without reading the metadata."""
OBSERVATION = (
    f"o.position, {', '.join(column.sql or f'o.{column.name}' for column in _OBSERVATION)} FROM observations AS o"
    " LEFT JOIN sessions AS s ON s.number = o.session LEFT JOIN projects AS p ON p.number = o.project"
)
"""Columns and tables to select for `observation_reader`."""


def observation_columns(row: Observation, *, session: int | None, project: int | None, batch: int | None) -> Columns:
    """An observation as a row of `observations`; session, project and batch by their numbers."""
    columns = _encode(_OBSERVATION, row)
    return {**columns, "session": session, "project": project, "batch": batch, "visible": row.is_visible}


@cache
def observation_reader(*, bare: bool = False) -> Callable[[Iterable[Any], Sequence[tuple[int, str]]], Observation]:
    """A function that makes an observation of a row of OBSERVATION and the messages (`seq`, printed id) it came from.

    With `bare`, its metadata stay unread.
    """
    result = (
        "Observation({}, message_ids=tuple([key for _, key in sources]), sources=tuple([seq for seq, _ in sources]))"
    )
    columns = _BARE if bare else _OBSERVATION
    return _compiled("row, sources", "_", columns, result, {"Observation": Observation})


def id_is(table: str = "") -> str:
    """The condition that finds a row by its id, with the values of `id_values`; `table` is a prefix such as `o.`.

    It tests the id's end as well, since the index begins with that: handles are taken from it.
    """
    return f"substr({table}id, 13) = ? AND {table}id = ?"


def same_id(one: str, other: str) -> str:
    """The condition that two columns hold the same id."""
    return f"substr({one}, 13) = substr({other}, 13) AND {one} = {other}"


def id_values(uuid: bytes) -> tuple[bytes, bytes]:
    """The values of `id_is`."""
    return uuid[12:], uuid


def _encode(columns: Iterable[_Column], fields: object) -> Columns:
    encoded: Columns = {}
    for column in columns:
        value = getattr(fields, column.field or column.name)
        encoded[column.name] = column.encode(value) if column.encode else value
    return encoded


def _compiled(
    parameters: str, first: str, columns: Iterable[_Column], result: str, scope: dict[str, Any]
) -> Callable[..., Any]:
    """Compile a function that makes `result` of a row: its `first` values, and `columns`, whose fields replace `{}`.

    A pack reads a thousand rows, which takes twice as long with a loop over the columns of each.
    """
    names, fields = [first], []
    for column in columns:
        names.append(column.name)
        fields.append(f"{column.field or column.name}={column.name}")
        if column.decode:
            scope[f"_{column.name}"] = column.decode
            fields[-1] = f"{column.field or column.name}=_{column.name}({column.name})"
    made = result.format(", ".join(fields))
    exec(f"def read({parameters}):\n    {', '.join(names)} = row\n    return {made}", scope)  # noqa: S102
    read: Callable[..., Any] = scope["read"]
    return read
