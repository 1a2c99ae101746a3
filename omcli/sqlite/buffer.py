"""Buffered batches in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from omcli.base.record import replace
from omcli.memory import buffer as buffer_text
from omcli.memory.batch import Batch
from omcli.memory.buffer import BufferedBatch, Span, in_line, is_covered
from omcli.memory.coverage import row_tombstones, tombstones
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Source
from omcli.memory.ports import Lane
from omcli.memory.session import Session
from omcli.sqlite import codec, dialect, lanes, messages, sessions


def put(connection: sqlite3.Connection, block: BufferedBatch, *, session: int) -> None:
    """Store and log a buffered batch, and delete those that it contains or that the cursor has passed.

    Raise StaleBatch if the cursor has passed the batch, if another buffered batch contains it, or if messages in its
    range have been hidden or restored since it was read.
    """
    batch = block.batch
    span = Span(block.begins, batch.through)
    cursor = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    pending = connection.execute("SELECT after, through FROM blocks WHERE session = ?", (session,))
    others = list(map(Span._make, pending))
    if is_covered(span, others, cursor):
        raise lanes.stale(batch)
    lanes.check_whole(connection, batch, session=session)
    held = [(session, other.after) for other in others if is_covered(other, [span], cursor)]
    connection.executemany("DELETE FROM blocks WHERE session = ? AND after = ?", held)
    columns: dialect.Columns = {
        "session": session,
        "after": span.after,
        "through": span.through,
        "source": block.source,
        "at": block.at,
        "observed": buffer_text.written(block.observed, block.ids),
    }
    dialect.insert(connection, "blocks", columns)
    lanes.note_batch(
        connection,
        batch,
        session=session,
        outcome=lanes.BUFFERED,
        error=None,
        now=block.at,
        observations=len(block.ids),
    )


def find(connection: sqlite3.Connection, session: Session, *, number: int) -> Iterator[BufferedBatch]:
    """Yield the session's buffered batches that can be written one after another. `number` is the session's number."""
    readable = {Span(block.begins, block.batch.through): block for block in _read(connection, session, number=number)}
    cursor = lanes.cursor(connection, session=number, lane=Lane.OBSERVE)
    for span, place in in_line(readable, cursor):
        block = readable[span]
        left = _messages(connection, session=number, after=place, through=span.through)
        block = replace(block, batch=replace(block.batch, after=place, messages=left))
        # The title may derive from a hidden message.
        is_less = _has_hidden(connection, session=number, after=span.after, through=span.through)
        yield replace(block, observed=replace(block.observed, title=None)) if is_less else block


def find_all(connection: sqlite3.Connection) -> Iterator[BufferedBatch]:
    """Yield the readable buffered batches of all sessions, without their messages."""
    names = connection.execute("SELECT id, number FROM sessions WHERE number IN (SELECT session FROM blocks)")
    for name, number in names.fetchall():
        session = sessions.find(connection, name)
        if session is not None:
            yield from _read(connection, session, number=number)


def _messages(connection: sqlite3.Connection, *, session: int, after: int, through: int) -> tuple[KeptMessage, ...]:
    return messages.select(
        connection, "WHERE m.session = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq", (session, after, through)
    )


def _has_hidden(connection: sqlite3.Connection, *, session: int, after: int, through: int) -> bool:
    query = "SELECT 1 FROM aside_messages WHERE session = ? AND seq > ? AND seq <= ? LIMIT 1"
    return connection.execute(query, (session, after, through)).fetchone() is not None


def _read(connection: sqlite3.Connection, session: Session, *, number: int) -> Iterator[BufferedBatch]:
    """Yield the readable buffered batches of a session, by their first message, without their messages."""
    for row in connection.execute("SELECT * FROM blocks WHERE session = ? ORDER BY after", (number,)):
        after, through = row["after"], row["through"]
        batch = Batch(session=session.id, after=after, through=through, messages=(), cwd=session.cwd)
        with suppress(ValueError):
            observed, ids = buffer_text.read(row["observed"])
            source = Source(row["source"])
            yield BufferedBatch(batch=batch, begins=after, observed=observed, ids=ids, source=source, at=row["at"])


def erase_forgotten(connection: sqlite3.Connection, digests: frozenset[bytes]) -> None:
    """Delete the buffered batches that contain a row or a title with one of these tombstones."""
    forgotten = [
        (codec.session_number(connection, block.batch.session), block.begins)
        for block in find_all(connection)
        if not digests.isdisjoint(_tombstones(block))
    ]
    connection.executemany("DELETE FROM blocks WHERE session = ? AND after = ?", forgotten)


def _tombstones(block: BufferedBatch) -> Iterator[bytes]:
    for draft in block.observed.drafts:
        yield from map(bytes.fromhex, row_tombstones(draft, session=block.batch.session))
    if block.observed.title is not None:
        yield from map(bytes.fromhex, tombstones(block.observed.title))
