"""Pending blocks in the store: what was observed ahead, until it is written down."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from omcli.memory import block_text
from omcli.memory.blocks import Block, Span, in_line, is_superfluous
from omcli.memory.observation import Source
from omcli.memory.ports import Batch, Lane
from omcli.memory.record import replace
from omcli.memory.session import Session
from omcli.sqlite import lanes, messages, rows


def put(connection: sqlite3.Connection, block: Block, *, session: int) -> None:
    """Keeps a block in place of those inside it. Raises StaleBatch where it is superfluous itself."""
    batch = block.batch
    span = Span(block.begins, batch.through)
    cursor = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    pending = connection.execute("SELECT after, through FROM blocks WHERE session = ?", (session,))
    others = list(map(Span._make, pending))
    if is_superfluous(span, others, cursor):
        raise lanes.stale(batch)
    held = [(session, other.after) for other in others if is_superfluous(other, [span], cursor)]
    connection.executemany("DELETE FROM blocks WHERE session = ? AND after = ?", held)
    columns: rows.Columns = {
        "session": session,
        "after": span.after,
        "through": span.through,
        "source": block.source,
        "at": block.at,
        "observed": block_text.written(block.observed, block.ids),
    }
    rows.insert(connection, "blocks", columns)
    lanes.note_batch(
        connection,
        batch,
        session=session,
        lane=Lane.OBSERVE,
        outcome=lanes.AHEAD,
        error=None,
        now=block.at,
        observations=len(block.ids),
    )


def find(connection: sqlite3.Connection, session: Session, *, number: int) -> Iterator[Block]:
    """The blocks of a session that can be written down one after another. `number` is the session's."""
    readable: dict[Span, Block] = {}
    for row in connection.execute("SELECT * FROM blocks WHERE session = ?", (number,)):
        span = Span(row["after"], row["through"])
        batch = Batch(session=session.id, after=span.after, through=span.through, messages=(), cwd=session.cwd)
        with suppress(ValueError):
            observed, ids = block_text.read(row["observed"])
            source = Source(row["source"])
            readable[span] = Block(
                batch=batch, begins=span.after, observed=observed, ids=ids, source=source, at=row["at"]
            )
    cursor = lanes.cursor(connection, session=number, lane=Lane.OBSERVE)
    for span, place in in_line(readable, cursor):
        block = readable[span]
        there = messages.between(connection, session=number, after=place, through=span.through)
        yield replace(block, batch=replace(block.batch, after=place, messages=there))
