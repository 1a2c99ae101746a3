"""The freeze point of a session's pack: found from sums of tokens, from batches and from operations."""

from __future__ import annotations

import sqlite3

from omcli.memory.ports import Lane
from omcli.memory.session import EvictionPolicy, FreezePoint
from omcli.sqlite import codec, cursors

_FIRST = """
    SELECT min(position) FROM (
        SELECT position FROM (SELECT position FROM observations WHERE session = :session AND batch IS NOT NULL
            ORDER BY position LIMIT 1)
        UNION ALL SELECT position FROM aside_observations WHERE session = :session AND batch IS NOT NULL)
"""
_BATCH = """
    SELECT max(number) FROM batches
    WHERE session = :session AND lane = :lane AND outcome IN ('observed', 'empty') AND after < :message
"""
_OBSERVED = """
    SELECT position FROM observations WHERE session = :session AND batch <= :batch ORDER BY position DESC LIMIT 1
"""
_MADE = """
    SELECT max(position) FROM observations WHERE made_by IN (
        SELECT number FROM operations WHERE session = :session AND undone_by IS NULL
        UNION ALL
        SELECT number FROM operations WHERE session IS NULL AND (:project IS NULL OR project = :project)
            AND undone_by IS NULL)
"""
# Any row of the session; of the project only rows written by hand: its others come from sessions.
_WITHOUT_MESSAGE = """
    SELECT position FROM observations WHERE session = :session AND visible AND batch IS NULL AND made_by IS NULL
    ORDER BY position DESC LIMIT 1
"""
_OF_THE_PROJECT = """
    SELECT position FROM observations WHERE project = :own AND visible AND kind <> 'observation' AND session IS NULL
        AND batch IS NULL AND made_by IS NULL
    ORDER BY position DESC LIMIT 1
"""


def freeze_point(
    connection: sqlite3.Connection,
    *,
    session: int,
    own: str | None,
    project: str | None,
    eviction: EvictionPolicy,
    further: int,
) -> FreezePoint:
    """The freeze point of a session of the project `own`, whose pack holds rows of `project`, or of all for None."""
    covered_up_to = cursors.cursor(connection, session=session, lane=Lane.OBSERVE)
    said, covered = connection.execute(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(CASE WHEN seq <= ? THEN tokens ELSE 0 END), 0) FROM messages"
        " WHERE session = ? AND agent IS NULL",
        (covered_up_to, session),
    ).fetchone()
    evicted = eviction.evicted_tokens(said=said, covered=covered, further=further)
    message = covered_up_to if evicted is None else _end_of(connection, session=session, rest=said, evicted=evicted)
    position = _last_row(
        connection,
        {
            "session": session,
            "own": None if own is None else codec.project_number(connection, own),
            "project": None if project is None else codec.project_number(connection, project) or 0,
            "lane": Lane.OBSERVE,
            "message": message,
        },
    )
    return FreezePoint(message=message, position=position, at=_written(connection, position), is_last=evicted is None)


def _end_of(connection: sqlite3.Connection, *, session: int, rest: int, evicted: int) -> int:
    """`seq` of the message with which a session of `rest` tokens has reached `evicted` of them; 0 for none."""
    newest = connection.execute(
        "SELECT seq, tokens FROM messages WHERE session = ? AND agent IS NULL ORDER BY seq DESC", (session,)
    )
    for seq, tokens in newest if evicted else ():
        rest -= tokens
        if rest < evicted:
            assert isinstance(seq, int)
            return seq
    return 0


def _last_row(connection: sqlite3.Connection, values: dict[str, object]) -> int | None:
    """The last row of the pack; None if nothing of the session was observed yet.

    Rows that were there before come first; then those of the batch that the messages before the freeze point end in,
    those that operations made which were not undone, and those without messages: written by hand, or imported.
    """

    def found(asked: str) -> int:
        (position,) = connection.execute(asked, values).fetchone() or (None,)
        return position or 0

    if not (first := found(_FIRST)):
        return None
    values["batch"] = found(_BATCH) if values["message"] else 0
    observed = found(_OBSERVED) if values["batch"] else 0
    return max(first - 1, observed, *map(found, (_MADE, _WITHOUT_MESSAGE, _OF_THE_PROJECT)))


def _written(connection: sqlite3.Connection, position: int | None) -> str | None:
    """The time at which the last row up to this position was written."""
    found = connection.execute(
        "SELECT observed_at FROM observations WHERE position <= ? ORDER BY position DESC LIMIT 1", (position,)
    ).fetchone()
    return found["observed_at"] if found else None
