"""The next batch of a session, and the outcome of one: its rows, the rows they replace, and the cursor."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from omcli.base.record import replace
from omcli.memory.batch import Batch, Outcome
from omcli.memory.observation import Observation, Replacement
from omcli.memory.ports import Batches, Covered, Lane, Pending
from omcli.sqlite import codec, cursors, messages, rows, sessions
from omcli.sqlite.database import Database, Table
from omcli.sqlite.messages import Stretch

if TYPE_CHECKING:
    from omcli.memory.buffer import Block
    from omcli.memory.reflection import Folding


class SqliteBatches(Table, Batches):
    """Batches in the tables `batches`, `cursors` and `blocks`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._context: dict[int, Observation] = {}
        """Rows that came with the last batch, by position: most of them come with the next."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        with self._database.session(session) as (connection, number):
            if number is None:
                return Pending(messages=0, tokens={}, fresh_tokens={})
            return _pending(connection, session=number, ahead=ahead)

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        standing: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        with self._database.session(session) as (connection, number):
            if number is None:
                return None
            stretch = messages.uncovered(connection, session=number, ahead=ahead)
            length = messages.next_length(
                connection, stretch, session=number, max_tokens=max_tokens, max_messages=max_messages
            )
            batch = _batch(connection, session, stretch, number=number, length=length)
            return self._with_context(connection, batch, session=number, limit=standing)

    def unobserved_up_to(self, session: str, through: int, *, standing: int = 0) -> Batch | None:
        with self._database.session(session) as (connection, number):
            if number is None:
                return None
            stretch = messages.uncovered(connection, session=number, through=through)
            length = messages.length_up_to(connection, stretch, session=number, through=through)
            batch = _batch(connection, session, stretch, number=number, length=length)
            return self._with_context(connection, batch, session=number, limit=standing)

    def _with_context(
        self, connection: sqlite3.Connection, batch: Batch | None, *, session: int, limit: int
    ) -> Batch | None:
        """A batch with at most so many context rows of either kind."""
        if batch is None or not limit:
            return batch
        self._context = rows.standing(connection, session=session, limit=limit, known=self._context)
        found = self._context.values()
        # Rows of what was said later stay, whatever comes of these.
        return replace(batch, standing=tuple(row for row in found if not batch.is_late or batch.follows(row)))

    def record(
        self,
        batch: Batch,
        observations: Sequence[Observation],
        *,
        outcome: Outcome,
        now: str,
        replaced: Sequence[Replacement] = (),
        used: Sequence[str] = (),
        title: str | None = None,
        error: str | None = None,
        folding: Folding | None = None,
    ) -> None:
        if (observations or replaced) and outcome is not Outcome.OBSERVED:
            raise ValueError(f"a batch that is {outcome} has no rows")
        with self._database.writing() as connection:
            session = codec.numbered_session(connection, batch.session)
            is_late = _cover(connection, batch, session=session, outcome=outcome)
            if folding is not None:
                from omcli.sqlite import reflections  # noqa: PLC0415 - few batches are folded at once

                reflections.fold(connection, folding, now=now)
            number = cursors.note_batch(
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
            rows.add(connection, observations, batch=number)
            for replacement in replaced:
                rows.succeed(connection, replacement)
            rows.use(connection, used, now=now)
            if outcome in (Outcome.OBSERVED, Outcome.EMPTY):
                _drop_images(connection, batch)
            if title is not None:
                sessions.entitle(connection, session, title)

    def covered(self, session: str) -> tuple[Covered, ...]:
        with self._database.session(session) as (connection, number):
            return _covered(connection, session=number) if number is not None else ()

    def buffer(self, block: Block) -> None:
        from omcli.sqlite import buffer  # noqa: PLC0415 - most sessions have none

        with self._database.writing() as connection:
            buffer.put(connection, block, session=codec.numbered_session(connection, block.batch.session))

    def buffered(self, session: str) -> tuple[Block, ...]:
        with self._database.session(session) as (connection, number):
            if number is None or not cursors.last_end(connection, session=number, cursor=0)[1]:
                return ()
            from omcli.sqlite import buffer  # noqa: PLC0415 - most sessions have none

            known = sessions.find(connection, session)
            return tuple(buffer.find(connection, known, number=number)) if known else ()

    def all_buffered(self) -> tuple[Block, ...]:
        from omcli.sqlite import buffer  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return tuple(buffer.every(connection))


def _batch(connection: sqlite3.Connection, session: str, stretch: Stretch, *, number: int, length: int) -> Batch | None:
    known = sessions.find(connection, session)
    return messages.batch(connection, known, stretch, number=number, length=length) if known and length else None


def _cover(connection: sqlite3.Connection, batch: Batch, *, session: int, outcome: Outcome) -> bool:
    """Move the cursor as the outcome asks. True if the batch is late. Raises StaleBatch if it is no longer pending."""
    is_late = batch.through <= cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    if is_late:
        cursors.cover_passed(connection, batch, session=session, outcome=outcome)
    else:
        cursors.advance(connection, batch, session=session, lane=Lane.OBSERVE, outcome=outcome)
    messages.check_whole(connection, batch, session=session)
    cursors.drop_passed_blocks(connection, session=session)
    return is_late


def _drop_images(connection: sqlite3.Connection, batch: Batch) -> None:
    digests = {image.sha256 for kept in batch.messages for image in kept.message.images}
    if digests:
        from omcli.sqlite import images  # noqa: PLC0415 - most batches have none

        images.let_go(connection, digests)


def _pending(connection: sqlite3.Connection, *, session: int, ahead: bool = False) -> Pending:
    """How much of a session follows its cursor, or was passed by it; `ahead`: follows its last pending block."""
    cursor = cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    end, blocks = cursors.last_end(connection, session=session, cursor=cursor)
    after = end if ahead else cursor
    offered = cursors.deferred(connection, session=session, after=after)
    found = connection.execute(
        "SELECT counter, count(*), sum(tokens), sum(fresh) FROM ("
        "SELECT counter, tokens, iif(seq > :offered, tokens, 0) AS fresh FROM messages"
        " WHERE session = :session AND seq > :after"
        " UNION ALL SELECT m.counter, m.tokens, m.tokens FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
        " WHERE p.session = :session AND NOT :ahead) GROUP BY counter",
        {"offered": offered, "session": session, "after": after, "ahead": ahead},
    ).fetchall()
    return Pending(
        messages=sum(number for _, number, _, _ in found),
        tokens={counter: tokens for counter, _, tokens, _ in found},
        fresh_tokens={counter: fresh for counter, _, _, fresh in found},
        blocks=blocks,
    )


def _covered(connection: sqlite3.Connection, *, session: int) -> tuple[Covered, ...]:
    """The stretches that batches covered, in order; places are among all messages that the session ever had."""
    batches = connection.execute(
        "SELECT number, after, through FROM batches WHERE session = ? AND lane = ? AND outcome IN (?, ?)"
        " ORDER BY after, number",
        (session, Lane.OBSERVE, Outcome.OBSERVED, Outcome.EMPTY),
    ).fetchall()
    seqs = messages.of_session(connection, session)
    ends = {row["number"]: (bisect_right(seqs, row["after"]), bisect_right(seqs, row["through"])) for row in batches}
    held = {number: (start, end) for number, (start, end) in ends.items() if start < end}
    outer = {seqs[place] for start, end in held.values() for place in (start, end - 1)}
    keys = messages.keys(connection, outer)
    positions: dict[int, list[int]] = defaultdict(list)
    for number, position in connection.execute(
        "SELECT batch, position FROM observations WHERE session = ? AND batch IS NOT NULL ORDER BY position", (session,)
    ):
        positions[number].append(position)
    return tuple(
        Covered(
            first=keys[seqs[start]],
            last=keys[seqs[end - 1]],
            start=start,
            end=end,
            positions=tuple(positions[number]),
        )
        for number, (start, end) in held.items()
    )
