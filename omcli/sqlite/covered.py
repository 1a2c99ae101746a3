"""What of a session was observed: the messages that each batch covered, and the rows that it gave."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import defaultdict

from omcli.memory.ports import Covered, Lane, Outcome
from omcli.sqlite import messages


def covered(connection: sqlite3.Connection, *, session: int) -> tuple[Covered, ...]:
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
