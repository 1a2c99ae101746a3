"""The next batch of a session, and what came of one: its rows, what they replace, and the cursor."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omcli.memory.observation import Observation
from omcli.memory.ports import Batch, Lane, Outcome, Replacement
from omcli.sqlite import lanes, pictures, sessions
from omcli.sqlite import messages as message_table
from omcli.sqlite import observations as observation_table
from omcli.sqlite.messages import Stretch

if TYPE_CHECKING:
    from omcli.memory.reflection import Folding


def next_batch(
    connection: sqlite3.Connection, session: str, *, max_tokens: int, max_messages: int | None, ahead: bool
) -> Batch | None:
    """What waits first; None where nothing does. `ahead`: of what follows the last pending block."""
    number = sessions.number(connection, session)
    if number is None:
        return None
    stretch = message_table.uncovered(connection, session=number, ahead=ahead)
    length = message_table.next_length(
        connection, stretch, session=number, max_tokens=max_tokens, max_messages=max_messages
    )
    return _batch(connection, session, stretch, number=number, length=length)


def batch_up_to(connection: sqlite3.Connection, session: str, through: int) -> Batch | None:
    """What waits up to a message; None where that one does not wait."""
    number = sessions.number(connection, session)
    if number is None:
        return None
    stretch = message_table.uncovered(connection, session=number, through=through)
    length = message_table.length_up_to(connection, stretch, session=number, through=through)
    return _batch(connection, session, stretch, number=number, length=length)


def _batch(connection: sqlite3.Connection, session: str, stretch: Stretch, *, number: int, length: int) -> Batch | None:
    known = sessions.find(connection, session)
    return message_table.batch(connection, known, stretch, number=number, length=length) if known and length else None


def record(
    connection: sqlite3.Connection,
    batch: Batch,
    observations: Sequence[Observation],
    *,
    outcome: Outcome,
    now: str,
    replaced: Sequence[Replacement],
    used: Sequence[str],
    title: str | None,
    error: str | None,
    folding: Folding | None,
) -> None:
    """Writes down what came of a batch. Raises StaleBatch where it is not what waits any more."""
    session = sessions.numbered(connection, batch.session)
    is_late = batch.through <= lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    if is_late:
        lanes.cover_passed(connection, batch, session=session, outcome=outcome)
    else:
        lanes.advance(connection, batch, session=session, lane=Lane.OBSERVE, outcome=outcome)
    message_table.check_whole(connection, batch, session=session)
    lanes.drop_passed_blocks(connection, session=session)
    if folding is not None:
        from omcli.sqlite import foldings  # noqa: PLC0415 - few batches are folded at once

        foldings.fold(connection, folding, now=now)
    number = lanes.note_batch(
        connection,
        batch,
        session=session,
        lane=Lane.OBSERVE,
        outcome=outcome,
        error=error,
        now=now,
        observations=len(observations),
        is_late=is_late,
    )
    observation_table.add(connection, observations, batch=number)
    for replacement in replaced:
        observation_table.succeed(connection, replacement)
    observation_table.use(connection, used, now=now)
    if outcome in (Outcome.OBSERVED, Outcome.EMPTY):
        pictures.let_go(connection, (image.sha256 for kept in batch.messages for image in kept.message.images))
    if title is not None:
        sessions.entitle(connection, session, title)
