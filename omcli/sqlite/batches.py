"""Choosing a session's next batch, and recording a batch: its rows, the rows they replace, and the cursor."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchOutcome, Covered, MessageSize, Pending, batch_length
from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Observation, Replacement
from omcli.memory.ports import Batches, Lane
from omcli.sqlite import codec, dialect, lanes, messages, rows, sessions
from omcli.sqlite.dialect import Database, Table

if TYPE_CHECKING:
    from omcli.memory.buffer import BufferedBatch
    from omcli.memory.reflection import ReflectionWrite

_LAST = (1 << 63) - 1
"""Upper limit of `seq`."""


class SqliteBatches(Table, Batches):
    """Batches in the tables `batches`, `cursors`, `passed_over` and `blocks`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._context: dict[int, Observation] = {}
        """Context rows of the last batch, by position: most of them belong to the next one as well."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            if number is None:
                return Pending(messages=0, counted=0, tokens={}, fresh_tokens={})
            return _pending(connection, session=number, ahead=ahead)

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        context_rows: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            if number is None:
                return None
            span = _uncovered(connection, session=number, ahead=ahead)
            waiting = connection.execute(
                "SELECT tokens, role, call_id FROM messages WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq",
                (number, span.after, span.through),
            )
            length = batch_length(map(MessageSize._make, waiting), max_tokens=max_tokens, max_messages=max_messages)
            return self._batch(connection, session, span, number=number, length=length, context_rows=context_rows)

    def unobserved_up_to(self, session: str, through: int, *, context_rows: int = 0) -> Batch | None:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            if number is None:
                return None
            span = _uncovered(connection, session=number, through=through)
            if through > span.through:
                return None
            count, last = connection.execute(
                "SELECT count(*), max(seq) FROM messages WHERE session = ? AND seq > ? AND seq <= ?",
                (number, span.after, through),
            ).fetchone()
            length = count if last == through else 0
            return self._batch(connection, session, span, number=number, length=length, context_rows=context_rows)

    def newest_unobserved(self, session: str, *, max_tokens: int, context_rows: int = 0) -> Batch | None:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            if number is None:
                return None
            cursor = lanes.cursor(connection, session=number, lane=Lane.OBSERVE)
            newest = connection.execute(
                "SELECT seq, tokens FROM messages WHERE session = :session AND seq > :cursor"
                " UNION ALL SELECT m.seq, m.tokens FROM passed_over AS p JOIN messages AS m ON m.seq = p.message"
                " WHERE p.session = :session ORDER BY 1 DESC",
                {"session": number, "cursor": cursor},
            )
            chosen: list[int] = []
            for seq, tokens in newest:
                max_tokens -= tokens
                if chosen and max_tokens < 0:
                    break
                chosen.append(seq)
            if not chosen:
                return None
            span = _Span(after=chosen[-1] - 1, through=chosen[0], is_late=False)
            batch = self._batch(connection, session, span, number=number, length=len(chosen), context_rows=context_rows)
            return batch and replace(batch, through=chosen[0], messages=messages.by_seq(connection, chosen))

    def _batch(
        self, connection: sqlite3.Connection, session: str, span: _Span, *, number: int, length: int, context_rows: int
    ) -> Batch | None:
        """Return the first `length` messages of a span as a batch with context rows, or None if `length` is 0."""
        known = sessions.find(connection, session) if length else None
        if known is None:
            return None
        batch = _read(connection, span, name=session, cwd=known.cwd, session=number, length=length)
        if not context_rows:
            return batch
        self._context = rows.context(connection, session=number, limit=context_rows, known=self._context)
        found = self._context.values()
        # A late batch does not change rows from later messages.
        return replace(batch, context_rows=tuple(row for row in found if not batch.is_late or batch.follows(row)))

    def record(
        self,
        batch: Batch,
        observations: Sequence[Observation],
        *,
        outcome: BatchOutcome,
        now: str,
        replaced: Sequence[Replacement] = (),
        used: Sequence[str] = (),
        title: str | None = None,
        error: str | None = None,
        folding: ReflectionWrite | None = None,
    ) -> None:
        if (observations or replaced) and outcome is not BatchOutcome.OBSERVED:
            raise ValueError(f"a batch that is {outcome} has no rows")
        digests = {image.sha256 for kept in batch.messages for image in kept.message.images}
        # An image may belong to messages of several sessions.
        with self._database.writing(None if digests else batch.session) as connection:
            session = codec.add_session(connection, batch.session)
            is_late = lanes.cover(connection, batch, session=session, outcome=outcome)
            if folding is not None:
                from omcli.sqlite import operations  # noqa: PLC0415 - most batches are recorded without folding

                operations.fold(connection, folding, now=now, author=self._database.author)
            number = lanes.note_batch(
                connection,
                batch,
                session=session,
                outcome=outcome,
                error=error,
                now=now,
                observations=len(observations),
                is_late=is_late,
            )
            rows.add(connection, observations, batch=number, author=self._database.author)
            for replacement in replaced:
                rows.replace_when_visible(connection, replacement)
            rows.mark_used(connection, used, now=now)
            if outcome in (BatchOutcome.OBSERVED, BatchOutcome.EMPTY):
                messages.drop_images(connection, digests)
            if title is not None:
                sessions.set_title(connection, session, title)

    def covered(self, session: str) -> tuple[Covered, ...]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            return _covered(connection, session=number) if number is not None else ()

    def buffer(self, block: BufferedBatch) -> None:
        from omcli.sqlite import buffer  # noqa: PLC0415 - most sessions have no buffered batches

        with self._database.writing(block.batch.session) as connection:
            buffer.put(connection, block, session=codec.add_session(connection, block.batch.session))

    def buffered(self, session: str) -> tuple[BufferedBatch, ...]:
        with self._database.reading() as connection:
            number = codec.session_number(connection, session)
            if number is None or not lanes.last_end(connection, session=number, cursor=0)[1]:
                return ()
            from omcli.sqlite import buffer  # noqa: PLC0415 - most sessions have no buffered batches

            known = sessions.find(connection, session)
            return tuple(buffer.find(connection, known, number=number)) if known else ()

    def all_buffered(self) -> tuple[BufferedBatch, ...]:
        from omcli.sqlite import buffer  # noqa: PLC0415 - for forgetting only

        with self._database.reading() as connection:
            return tuple(buffer.find_all(connection))


class _Span(NamedTuple):
    """Uncovered messages of a session with `after < seq <= through`."""

    after: int
    through: int
    is_late: bool
    """True if the cursor has passed the messages."""


def _uncovered(
    connection: sqlite3.Connection, *, session: int, ahead: bool = False, through: int | None = None
) -> _Span:
    """Return the messages to observe next: the first run of late ones if there are any, otherwise all after the cursor.
    With `ahead`, return all after the last buffered batch.

    With `through`, the `seq` of a message to be covered, late ones are returned only if the cursor has reached it.
    """
    cursor = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    if ahead:
        end, _ = lanes.last_end(connection, session=session, cursor=cursor)
        return _Span(after=end, through=_LAST, is_late=False)
    late = lanes.first_late(connection, session=session) if through is None or through <= cursor else None
    if late is not None:
        return _Span(after=late.after, through=late.through, is_late=True)
    return _Span(after=cursor, through=_LAST, is_late=False)


def _read(
    connection: sqlite3.Connection, span: _Span, *, name: str, cwd: str | None, session: int, length: int
) -> Batch:
    """Return the first `length` messages of a span as a batch. `length` is at least 1."""
    found = messages.select(
        connection, "WHERE m.session = ? AND m.seq > ? ORDER BY m.seq LIMIT ?", (session, span.after, length)
    )
    last_said = messages.select(
        connection,
        "WHERE m.session = ? AND m.seq <= ? AND m.agent IS NULL AND m.role = ? ORDER BY m.seq DESC LIMIT 1",
        (session, span.after, Role.ASSISTANT),
    )
    return Batch(
        session=name,
        after=span.after,
        through=found[-1].seq,
        messages=found,
        earlier_calls=_earlier_calls(connection, found, session=session, after=span.after),
        last_said=last_said[0] if last_said else None,
        cwd=cwd,
        deferred_through=0 if span.is_late else lanes.deferred(connection, session=session, after=span.after),
        is_late=span.is_late,
    )


def _earlier_calls(
    connection: sqlite3.Connection, batch: Sequence[KeptMessage], *, session: int, after: int
) -> tuple[KeptMessage, ...]:
    """Return the earlier calls whose results are in the batch. If several calls share an id, return the latest."""
    called: set[str] = set()
    missing: list[str] = []
    for kept in batch:
        call_id = kept.message.call_id
        if call_id is None:
            continue
        if kept.message.role is Role.RESULT and call_id not in called:
            missing.append(call_id)
        called.add(call_id)
    if not missing:
        return ()
    # Use the index of calls, because the index of sessions would read all earlier messages.
    found = connection.execute(
        f"SELECT max(seq) FROM messages WHERE role = 'call' AND {dialect.among('call_id')}"
        f" AND {dialect.without_index('session')} = ? AND {dialect.without_index('seq')} <= ? GROUP BY call_id",
        (dialect.as_list(missing), session, after),
    )
    return messages.by_seq(connection, (seq for (seq,) in found))


def _pending(connection: sqlite3.Connection, *, session: int, ahead: bool = False) -> Pending:
    cursor = lanes.cursor(connection, session=session, lane=Lane.OBSERVE)
    end, blocks = lanes.last_end(connection, session=session, cursor=cursor)
    after = end if ahead else cursor
    offered = lanes.deferred(connection, session=session, after=after)
    found = connection.execute(
        "SELECT counter, count(*), count(*) FILTER (WHERE counted), sum(tokens), sum(fresh) FROM ("
        "SELECT counter, counted, tokens, CASE WHEN seq > :offered THEN tokens ELSE 0 END AS fresh FROM messages"
        " WHERE session = :session AND seq > :after"
        " UNION ALL SELECT m.counter, m.counted, m.tokens, m.tokens FROM passed_over AS p"
        " JOIN messages AS m ON m.seq = p.message WHERE p.session = :session AND NOT :ahead) AS waiting"
        " GROUP BY counter",
        {"offered": offered, "session": session, "after": after, "ahead": ahead},
    ).fetchall()
    return Pending(
        after=after,
        late=frozenset() if ahead else lanes.late_messages(connection, session=session),
        messages=sum(number for _, number, _, _, _ in found),
        counted=sum(number for _, _, number, _, _ in found),
        tokens={counter: tokens for counter, _, _, tokens, _ in found},
        fresh_tokens={counter: fresh for counter, _, _, _, fresh in found},
        blocks=blocks,
    )


def _covered(connection: sqlite3.Connection, *, session: int) -> tuple[Covered, ...]:
    batches = connection.execute(
        "SELECT number, after, through FROM batches WHERE session = ? AND lane = ? AND outcome IN (?, ?)"
        " ORDER BY after, number",
        (session, Lane.OBSERVE, BatchOutcome.OBSERVED, BatchOutcome.EMPTY),
    ).fetchall()
    seqs = messages.seq_of(connection, session)
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
