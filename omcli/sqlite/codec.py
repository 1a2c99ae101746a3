"""Conversion between table rows and messages, sessions and observations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from omcli.base.record import positional_record, replace
from omcli.memory.message import Image, Incoming, KeptMessage, Message, MessageKind, Role
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Author, Session
from omcli.sqlite.dialect import Columns, Damaged, execute

_LARGEST_INTEGER = (1 << 63) - 1
_SESSION = ("id", "agent", "cwd", "branch", "title", "model", "parent")


@positional_record
class _Column:
    """A table column and the field it stores. Without `encode` and `decode`, the value is stored unchanged."""

    name: str
    encode: Callable[[Any], object] | None = None
    decode: Callable[[Any], object] | None = None
    sql: str = ""
    """SQL expression to read instead of the table's own column."""
    field: str = ""
    """Name of the field, if it differs from the column's."""


def _values(kind: type[Any]) -> Callable[[str | None], Any]:
    """Return a function that finds an enumeration's member by its value, or None for None. It raises Damaged for an
    unknown value. It uses a dictionary, which is fast, because a pack reads a thousand rows.
    """
    members: dict[str | None, Any] = {None: None, **{str(member): member for member in kind}}
    return _Members(members).__getitem__


class _Members(dict[str | None, Any]):
    def __missing__(self, word: str | None) -> Any:
        raise Damaged(f"unknown word {word!r:.40}")


# JSON columns.


def compact_json(value: object) -> str:
    import json  # noqa: PLC0415 - not needed for rows without tags

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parsed(text: str) -> Any:
    """Return the value of a JSON column. Raise Damaged if it is not JSON."""
    import json  # noqa: PLC0415

    try:
        return json.loads(text)
    except ValueError as error:
        raise Damaged(f"not JSON: {error}") from None


# Numbers of sessions, projects and authors.


def session_number(connection: sqlite3.Connection, session: str) -> int | None:
    """Return the number of a session, or None if the store does not know its id."""
    found = execute(connection, "SELECT number FROM sessions WHERE id = ?", (session,)).fetchone()
    return found["number"] if found else None


def add_session(connection: sqlite3.Connection, session: str) -> int:
    """Return the number of a session, assigning one if the store does not know its id."""
    found = session_number(connection, session)
    return _add(connection, "sessions", "id", session) if found is None else found


def project_number(connection: sqlite3.Connection, project: str) -> int | None:
    """Return the number of a project, or None if the store does not know it."""
    found = execute(connection, "SELECT number FROM projects WHERE path = ?", (project,)).fetchone()
    return found["number"] if found else None


def add_project(connection: sqlite3.Connection, project: str) -> int:
    """Return the number of a project, assigning one if the store does not know it."""
    found = project_number(connection, project)
    return _add(connection, "projects", "path", project) if found is None else found


def _add(connection: sqlite3.Connection, table: str, column: str, name: str) -> int:
    """Add a name, unless another writer has just added it, and return its number."""
    execute(connection, f"INSERT INTO {table} ({column}) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    (number,) = execute(connection, f"SELECT number FROM {table} WHERE {column} = ?", (name,)).fetchone()
    return int(number)


def add_author(connection: sqlite3.Connection, author: Author | None) -> int | None:
    """Return the number of an author, assigning one if the store does not know it; None if there is no author."""
    if author is None:
        return None
    query, values = "SELECT number FROM authors WHERE name = ? AND machine = ?", (author.name, author.machine)
    found = execute(connection, query, values).fetchone()
    if found is None:
        execute(connection, "INSERT INTO authors (name, machine) VALUES (?, ?) ON CONFLICT DO NOTHING", values)
        found = execute(connection, query, values).fetchone()
    return int(found["number"])


AUTHOR = "a.name, a.machine"
"""Columns to select for `author`, of the table that `with_author` adds as `a`."""


def with_author(table: str) -> str:
    """Return the SQL that joins the authors of a table's rows."""
    return f" LEFT JOIN authors AS a ON a.number = {table}.author"


OF_NAME = "SELECT number FROM authors WHERE name = ?"
"""Query for the numbers of the authors of a name, at all machines."""


def author(row: sqlite3.Row) -> Author | None:
    return None if row["name"] is None else Author(name=row["name"], machine=row["machine"])


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
    # A transcript may contain any number. Numbers that do not fit into 64 bits are dropped.
    _Column("exit_code", encode=lambda code: code if code is not None and abs(code) <= _LARGEST_INTEGER else None),
    _Column(
        "images",
        encode=_images,
        decode=lambda images: tuple(Image(**image) for image in parsed(images)) if images else (),
    ),
    _Column("text"),
)
MESSAGE = (
    "m.seq, s.id AS session, coalesce(m.key, m.id) AS printed_key, m.tokens, m.counter,"
    f" {', '.join(f'm.{column.name}' for column in _MESSAGE)}"
    " FROM messages AS m JOIN sessions AS s ON s.number = m.session"
)
"""Columns and tables to select for `message_reader`."""


def message_columns(incoming: Incoming, *, session: int, counter: str) -> Columns:
    """Return a message as columns of `messages`. `session` is the session's number."""
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
    """Return a function that builds a message from a row of MESSAGE."""
    result = "KeptMessage(seq=seq, session=session, key=key, message=Message({}), tokens=tokens, counter=counter)"
    scope = {"KeptMessage": KeptMessage, "Message": Message}
    return _compiled("row", "seq, session, key, tokens, counter", _MESSAGE, result, scope)


# Sessions.


def session_columns(session: Session) -> Columns:
    """Return a session as columns of `sessions`, without its id."""
    return {name: getattr(session, name) for name in _SESSION[1:]}


def session(row: sqlite3.Row) -> Session:
    return Session(**{name: row[name] for name in _SESSION}, author=author(row))


# Observations. A new column needs one line here and a migration.


# The `uuid` module is three times slower than these two functions, and importing it takes as long as a query.
def packed(uuid: str) -> bytes:
    return bytes.fromhex(uuid.replace("-", ""))


def unpacked(uuid: bytes) -> str:
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
_BARE = tuple(column if column.name != "metadata" else replace(column, decode=lambda _: {}) for column in _OBSERVATION)
"""`_OBSERVATION` without parsing the metadata."""
_FIELDS = (
    f"{', '.join(column.sql or f'o.{column.name}' for column in _OBSERVATION)} FROM observations AS o"
    " LEFT JOIN sessions AS s ON s.number = o.session LEFT JOIN projects AS p ON p.number = o.project"
)
BARE_OBSERVATION = f"o.position, {_FIELDS}"
OBSERVATION = f"o.position, {AUTHOR}, {_FIELDS}{with_author('o')}"
"""Columns and tables to select for `observation_reader`."""


def observation_columns(
    row: Observation, *, session: int | None, project: int | None, batch: int | None, author: int | None
) -> Columns:
    """Return an observation as columns of `observations`. Session, project, batch and author are given by number."""
    columns = _encode(_OBSERVATION, row)
    numbers = {"session": session, "project": project, "batch": batch, "author": author}
    return {**columns, **numbers, "visible": row.is_visible}


@cache
def observation_reader(*, bare: bool = False) -> Callable[[Iterable[Any], Sequence[tuple[int, str]]], Observation]:
    """Return a function that builds an observation from one result of the query OBSERVATION and its source messages
    (`seq`, printed id).

    If `bare`, the query is BARE_OBSERVATION, and its metadata and author are left empty.
    """
    sources = "message_ids=tuple([key for _, key in sources]), sources=tuple([seq for seq, _ in sources])"
    if bare:
        return _compiled("row, sources", "_", _BARE, f"Observation({{}}, {sources})", {"Observation": Observation})
    by = "author=Author(name=by, machine=machine) if by is not None else None"
    scope = {"Observation": Observation, "Author": Author}
    return _compiled("row, sources", "_, by, machine", _OBSERVATION, f"Observation({{}}, {sources}, {by})", scope)


def id_is(table: str = "") -> str:
    """Return the SQL condition that selects a row by its id. Its parameters are `id_values`. `table` is a prefix such
    as `o.`.

    It also compares the last bytes of the id, because the index starts with them (handles are the end of an id).
    """
    return f"substr({table}id, 13) = ? AND {table}id = ?"


def same_id(one: str, other: str) -> str:
    """Return the SQL condition that two columns hold the same id."""
    return f"substr({one}, 13) = substr({other}, 13) AND {one} = {other}"


def id_values(uuid: bytes) -> tuple[bytes, bytes]:
    """Return the parameters of `id_is`."""
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
    """Compile a function that takes a row and returns `result`, in which `{}` is replaced by the fields of `columns`.
    The row has the values named in `first`, then the columns.

    Reading the thousand rows of a pack would take twice as long with a loop over the columns of each row.
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
