"""Stamps (the time and store in which a message was observed), and a session's batches after two stores were merged."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from omcli.base.record import field, mutable_record
from omcli.memory.batch import BatchOutcome
from omcli.memory.ports import Lane
from omcli.sqlite import codec, dialect, messages

OWN = 1
"""Number of this store in the table `hosts`."""
_COVERING = "lane = 'observe' AND outcome IN ('observed', 'empty')"


class Stamp(NamedTuple):
    """Time and store in which a batch was observed. If a message was observed twice, the lower stamp counts."""

    at: str
    host: str


@mutable_record
class BatchRow:
    """A row of a batch, with the `seq` of its sources."""

    position: int
    text: str
    stamp: Stamp
    sources: Sequence[int]
    stamps: Mapping[int, Stamp]
    """Stamps of messages in the store in which the row was observed."""

    def is_repeated(self, merged: Mapping[int, Stamp]) -> bool:
        """Return True if all messages of the row's own batch that it cites were observed earlier in another store."""
        own = [seq for seq in self.sources if self.stamps.get(seq) == self.stamp]
        return bool(own) and all(merged[seq] < self.stamp for seq in own)


@mutable_record
class MergedSession:
    """A session of which records were merged."""

    number: int
    before: dict[int, Stamp]
    """Stamps of its observed messages before the merge, by `seq`."""
    came: dict[int, Stamp] = field(default_factory=dict)
    """Stamps of its messages in the records."""
    rows: list[BatchRow] = field(default_factory=list)
    """Its new rows that belong to a batch."""

    def settle(self, connection: sqlite3.Connection, *, number_of: Callable[[str], int], now: str) -> list[BatchRow]:
        """Write the session's batches and its cursor anew if the records changed the stamps of its messages, and link
        rows to their batches. Return the rows that repeat earlier observations of another store. `number_of` returns
        the number of a store.
        """
        merged = {seq: min(self.before.get(seq, stamp), stamp) for seq, stamp in self.came.items()}
        merged = {**self.before, **merged}
        is_conflict = any(self.before.get(seq, stamp) != stamp for seq, stamp in self.came.items())
        found = self.rows
        if is_conflict or merged != self.before:
            found = [*_rows_of_batches(connection, self.number, self.before), *found]
        repeated = [row for row in found if row.is_repeated(merged)]
        gone = {row.position for row in repeated}
        kept = [row for row in found if row.position not in gone]
        if is_conflict:
            repeated += _said_again(kept)
        if merged != self.before:
            batches = _write(connection, self.number, merged, number_of=number_of, now=now)
            _drop_images(connection, merged.keys() - self.before.keys())
            _set_batches(connection, batches, kept, merged)
        else:
            _set_batches(connection, _batches(connection, self.number), self.rows, merged)
        return repeated


def observed(connection: sqlite3.Connection, session: int) -> dict[int, Stamp]:
    """Map the `seq` of a session's observed messages, including hidden ones, to the stamps of their batches."""
    names = store_ids(connection)
    seqs = messages.seq_of(connection, session)
    found: dict[int, Stamp] = {}
    batches = connection.execute(
        f"SELECT after, through, at, host FROM batches WHERE session = ? AND {_COVERING} ORDER BY late, number",
        (session,),
    )
    for after, through, at, host in batches:
        for seq in seqs[bisect_right(seqs, after) : bisect_right(seqs, through)]:
            found[seq] = Stamp(at, names[host])
    for (seq,) in connection.execute("SELECT message FROM passed_over WHERE session = ?", (session,)):
        found.pop(seq, None)
    return found


def store_ids(connection: sqlite3.Connection) -> dict[int, str]:
    """Map the numbers of stores to their ids."""
    return dict(map(tuple, connection.execute("SELECT number, id FROM hosts")))


def _rows_of_batches(connection: sqlite3.Connection, session: int, before: Mapping[int, Stamp]) -> Iterator[BatchRow]:
    """Yield the session's rows of batches, including those moved out of the log."""
    names = store_ids(connection)
    linked = f"(SELECT {dialect.list_of('message')} FROM observation_sources WHERE observation = o.position)"
    found = connection.execute(
        f"SELECT o.position, o.text, b.at, b.host, {linked} AS sources FROM observations AS o"
        " JOIN batches AS b ON b.number = o.batch WHERE o.session = :session"
        " UNION ALL SELECT o.position, o.text, b.at, b.host, o.sources FROM aside_observations AS o"
        " JOIN batches AS b ON b.number = o.batch WHERE o.session = :session",
        {"session": session},
    ).fetchall()
    for position, text, at, host, sources in found:
        stamp = Stamp(at, names[host])
        yield BatchRow(position=position, text=text, stamp=stamp, sources=codec.parsed(sources), stamps=before)


def _said_again(rows: Iterable[BatchRow]) -> Iterator[BatchRow]:
    """Yield rows with the same text as a row of another store, if that row cites at least all of their sources."""
    of_text: dict[str, list[BatchRow]] = defaultdict(list)
    for row in rows:
        of_text[row.text].append(row)
    for same in of_text.values():
        best = min(same, key=lambda row: (-len(row.sources), row.stamp))
        cited = set(best.sources)
        for row in same:
            if row.stamp.host != best.stamp.host and cited.issuperset(row.sources):
                yield row


class _Written(NamedTuple):
    number: int
    after: int
    through: int
    stamp: Stamp


def _batches(connection: sqlite3.Connection, session: int) -> list[_Written]:
    names = store_ids(connection)
    found = connection.execute(
        f"SELECT number, after, through, at, host FROM batches WHERE session = ? AND {_COVERING} ORDER BY after",
        (session,),
    )
    return [_Written(number, after, through, Stamp(at, names[host])) for number, after, through, at, host in found]


def _write(
    connection: sqlite3.Connection,
    session: int,
    merged: Mapping[int, Stamp],
    *,
    number_of: Callable[[str], int],
    now: str,
) -> list[_Written]:
    """Replace a session's batches by one for each run of messages with the same stamp, delete its buffered batches,
    move the cursor to the last observed message, and list the earlier ones that are still pending in `passed_over`.
    """
    for table in ("observations", "aside_observations"):
        connection.execute(f"UPDATE {table} SET batch = NULL WHERE session = ?", (session,))
    connection.execute(f"DELETE FROM batches WHERE session = ? AND {_COVERING}", (session,))
    connection.execute("DELETE FROM blocks WHERE session = ?", (session,))
    seqs = messages.seq_of(connection, session)
    for stamp, run in groupby(seqs, key=merged.get):
        if stamp is not None:
            of_run = list(run)
            columns = {"session": session, "lane": Lane.OBSERVE, "after": of_run[0] - 1, "through": of_run[-1]}
            columns |= {"outcome": BatchOutcome.EMPTY, "at": stamp.at, "observations": 0, "host": number_of(stamp.host)}
            dialect.insert(connection, "batches", columns)
    last = max(merged)
    connection.execute(
        "INSERT INTO cursors (session, lane, covers_up_to, offered_up_to) VALUES (:session, :lane, :last, :last)"
        " ON CONFLICT (session, lane) DO UPDATE SET covers_up_to = :last,"
        " offered_up_to = max(cursors.offered_up_to, :last)",
        {"session": session, "lane": Lane.OBSERVE, "last": last},
    )
    pending = dialect.as_list(seq for seq in seqs if seq <= last and seq not in merged)
    values = {"session": session, "pending": pending, "now": now}
    these = dialect.among("message", ":pending")
    connection.execute(f"DELETE FROM passed_over WHERE session = :session AND NOT ({these})", values)
    connection.execute(
        "INSERT INTO passed_over (session, message, since)"
        f" SELECT :session, value, :now FROM ({dialect.each(':pending')}) AS pending WHERE value NOT IN"
        " (SELECT seq FROM aside_messages WHERE session = :session AND erased) ON CONFLICT DO NOTHING",
        values,
    )
    return _batches(connection, session)


def _set_batches(
    connection: sqlite3.Connection,
    batches: Sequence[_Written],
    sourced: Iterable[BatchRow],
    merged: Mapping[int, Stamp],
) -> None:
    """Link each row to the batch of its last source that has the row's stamp, or else to the last batch with that
    stamp. Mark these batches as observed, with their numbers of rows.
    """
    starts = [batch.after for batch in batches]
    of_stamp = {batch.stamp: batch.number for batch in batches}
    linked: list[tuple[int, int]] = []
    for row in sourced:
        own = max((seq for seq in row.sources if merged.get(seq) == row.stamp), default=None)
        number = of_stamp.get(row.stamp) if own is None else batches[bisect_right(starts, own - 1) - 1].number
        if number is not None:
            linked.append((number, row.position))
    for table in ("observations", "aside_observations"):
        connection.executemany(f"UPDATE {table} SET batch = ? WHERE position = ?", linked)
    for number, count in Counter(number for number, _ in linked).items():
        connection.execute(
            "UPDATE batches SET outcome = ?, observations = observations + ? WHERE number = ?",
            (BatchOutcome.OBSERVED, count, number),
        )


def _drop_images(connection: sqlite3.Connection, observed: Iterable[int]) -> None:
    """Delete the images of messages that were observed in another store."""
    found = connection.execute(
        f"SELECT images FROM messages WHERE {dialect.among('seq')} AND images IS NOT NULL",
        (dialect.as_list(observed),),
    ).fetchall()
    messages.drop_images(connection, [image["sha256"] for (images,) in found for image in codec.parsed(images)])
