"""Pending blocks in the store: what was observed ahead, until it is written down."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from omcli.base.record import replace
from omcli.memory import buffer as block_text
from omcli.memory.batch import Batch
from omcli.memory.buffer import Block, Span, in_line, is_superfluous
from omcli.memory.coverage import tombstone_of, tombstone_to_be
from omcli.memory.observation import Source
from omcli.memory.ports import Lane
from omcli.memory.session import Session
from omcli.sqlite import codec, cursors, messages, sessions


def put(connection: sqlite3.Connection, block: Block, *, session: int) -> None:
    """Keeps a block in place of those inside it.

    Raises StaleBatch where it is superfluous itself, and where its messages are not all there, or others between them.
    """
    batch = block.batch
    span = Span(block.begins, batch.through)
    cursor = cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    pending = connection.execute("SELECT after, through FROM blocks WHERE session = ?", (session,))
    others = list(map(Span._make, pending))
    if is_superfluous(span, others, cursor):
        raise cursors.stale(batch)
    messages.check_whole(connection, batch, session=session)
    held = [(session, other.after) for other in others if is_superfluous(other, [span], cursor)]
    connection.executemany("DELETE FROM blocks WHERE session = ? AND after = ?", held)
    columns: codec.Columns = {
        "session": session,
        "after": span.after,
        "through": span.through,
        "source": block.source,
        "at": block.at,
        "observed": block_text.written(block.observed, block.ids),
    }
    codec.insert(connection, "blocks", columns)
    cursors.note_batch(
        connection,
        batch,
        session=session,
        lane=Lane.OBSERVE,
        outcome=cursors.AHEAD,
        error=None,
        now=block.at,
        observations=len(block.ids),
    )


def find(connection: sqlite3.Connection, session: Session, *, number: int) -> Iterator[Block]:
    """The blocks of a session that can be written down one after another. `number` is the session's."""
    readable = {Span(block.begins, block.batch.through): block for block in _read(connection, session, number=number)}
    cursor = cursors.cursor(connection, session=number, lane=Lane.OBSERVE)
    for span, place in in_line(readable, cursor):
        block = readable[span]
        there = messages.between(connection, session=number, after=place, through=span.through)
        block = replace(block, batch=replace(block.batch, after=place, messages=there))
        # Nobody knows which of the messages a title came from.
        is_less = messages.are_aside(connection, session=number, after=span.after, through=span.through)
        yield replace(block, observed=replace(block.observed, title=None)) if is_less else block


def every(connection: sqlite3.Connection) -> Iterator[Block]:
    """The blocks of all sessions, without their messages."""
    names = connection.execute("SELECT id, number FROM sessions WHERE number IN (SELECT session FROM blocks)")
    for name, number in names.fetchall():
        session = sessions.find(connection, name)
        if session is not None:
            yield from _read(connection, session, number=number)


def _read(connection: sqlite3.Connection, session: Session, *, number: int) -> Iterator[Block]:
    """The blocks of a session that can be read, oldest first, without their messages."""
    for row in connection.execute("SELECT * FROM blocks WHERE session = ? ORDER BY after", (number,)):
        after, through = row["after"], row["through"]
        batch = Batch(session=session.id, after=after, through=through, messages=(), cwd=session.cwd)
        with suppress(ValueError):
            observed, ids = block_text.read(row["observed"])
            source = Source(row["source"])
            yield Block(batch=batch, begins=after, observed=observed, ids=ids, source=source, at=row["at"])


def erase_told(connection: sqlite3.Connection, digests: frozenset[bytes]) -> None:
    """Deletes the blocks that say what has one of these tombstones."""
    told = [
        (codec.session_number(connection, block.batch.session), block.begins)
        for block in every(connection)
        if not digests.isdisjoint(_tombstones(block))
    ]
    connection.executemany("DELETE FROM blocks WHERE session = ? AND after = ?", told)


def _tombstones(block: Block) -> Iterator[bytes]:
    """The tombstones of all that a block says."""
    for draft in block.observed.drafts:
        yield bytes.fromhex(tombstone_to_be(draft, session=block.batch.session))
    if block.observed.title is not None:
        yield bytes.fromhex(tombstone_of(block.observed.title))
