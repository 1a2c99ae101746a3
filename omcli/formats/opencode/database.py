"""OpenCode's database: its sessions in the form of `opencode export`, one per line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from omcli.base.record import record
from omcli.formats import tables
from omcli.memory.transcript import ReaderState
from omcli.text.hashes import HashSet, hash_of, packed, unpacked

_TABLES = frozenset({"session", "message", "part"})
_BUSY = "try again when OpenCode is idle; `opencode export` writes a session as JSON"
_IN_MEMORY = 16 << 20
"""Maximum number of bytes of a database from a pipe that are kept in memory. A larger one goes to a temporary file."""
_LARGEST_PIECE = 16 << 20
"""Number of characters after which a session goes on in another line."""

_CHANGES = """
SELECT session.id, session.time_updated, said.at, done.at, done.parts
FROM session
LEFT JOIN (SELECT session_id AS id, max(time_updated) AS at FROM message GROUP BY session_id) said USING (id)
LEFT JOIN (SELECT session_id AS id, max(time_updated) AS at, count(*) AS parts FROM part GROUP BY session_id) done
  USING (id)
ORDER BY session.time_created, session.id
"""
_SESSION = "SELECT directory, parent_id, title FROM session WHERE id = ?"
_OF_SESSION = ("directory", "parentID", "title")
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY message_id, id"


@record
class SessionDatabase:
    """Sessions that changed since an earlier reading, as a stream, and the state for the next reading."""

    stream: BinaryIO
    state: ReaderState


@contextmanager
def opened(path: str, earlier: ReaderState | None) -> Iterator[SessionDatabase | None]:
    """Read OpenCode's database. Yield None if it belongs to another program.

    Changed sessions are copied first, so that a slow reader does not keep OpenCode from writing. Raise NoInput if the
    database is locked or damaged.
    """
    with SpooledTemporaryFile(_IN_MEMORY) as stream:
        with tables.opened(path, hint=_BUSY) as connection:
            is_known = tables.names(connection) >= _TABLES
            rows = connection.execute(_CHANGES).fetchall() if is_known else []
            seen = HashSet(unpacked(earlier["seen"]) if earlier and "seen" in earlier else ())
            now = {row[0]: hash_of(*map(str, row)) for row in rows}
            for session, change in now.items():
                if change not in seen:
                    stream.writelines(_lines(connection, session))
        stream.seek(0)
        state = {"seen": packed(HashSet(now.values()))}
        yield SessionDatabase(stream=cast(BinaryIO, stream), state=state) if is_known else None


def _lines(connection: sqlite3.Connection, session: str) -> Iterator[bytes]:
    """Yield a session with its messages as JSON, in several lines if it is long."""
    found = connection.execute(_SESSION, (session,)).fetchone()
    said = connection.execute(_MESSAGES, (session,)).fetchall()
    parts = connection.execute(_PARTS, (session,)).fetchall()
    if found is None:  # deleted a moment ago
        return
    info = {"id": session, **dict(zip(_OF_SESSION, found, strict=True))}
    of_message = {message: list(group) for message, group in groupby(parts, key=itemgetter(0))}
    messages: list[object] = []
    size = 0
    for message, data in said:
        if size > _LARGEST_PIECE:
            yield _line({"info": info, "messages": messages})
            messages, size = [], 0
        told = _object(data, id=message, sessionID=session)
        if isinstance(told.get("summary"), dict):
            del told["summary"]  # whole files, before and after
        own = of_message.get(message, [])
        messages.append({"info": told, "parts": [_object(text, id=part, messageID=message) for _, part, text in own]})
        size += sum(len(text) for _, _, text in own)
    yield _line({"info": info, "messages": messages})


def _object(data: str, **ids: str) -> dict[str, object]:
    """Return an object stored as JSON together with its ids, or only the ids if the JSON is invalid."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    return {**(found if isinstance(found, dict) else {}), **ids}


def _line(session: dict[str, object]) -> bytes:
    return json.dumps(session, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
