"""Reflections in the store: what they made and hid, and what was tried."""

from __future__ import annotations

import sqlite3

from omcli.base.errors import StaleBatch
from omcli.memory.changes import Verb
from omcli.memory.reflection import Attempt, Ending, Folding, Scope
from omcli.sqlite import changes, observations, rows, sessions


def fold(connection: sqlite3.Connection, folding: Folding, *, now: str) -> None:
    """Writes a reflection down.

    Raises StaleBatch where a row it was made from has gone out of sight, or what it is a part of cannot be taken back
    any more: the part could never be.
    """
    if not observations.in_sight(connection, folding.read):
        raise StaleBatch(
            "rows were replaced by another process while they were reflected on",
            hint="nothing was changed; run it again",
        )
    if folding.part_of is not None and changes.is_over(connection, folding.part_of):
        raise StaleBatch(
            f"operation {folding.part_of} was undone, or made final, before it came to its end",
            hint="what it had not done yet is left as it was; run it again",
        )
    number = changes.note(
        connection,
        Verb.REFLECT,
        folding.scope,
        now=now,
        figures=rows.compact_json(dict(folding.figures)),
        ending=folding.ending,
        error=folding.error,
        fingerprint=folding.fingerprint,
        part_of=folding.part_of,
    )
    observations.add(connection, folding.rows, made_by=number)
    for replacement in folding.replaced:
        observations.replace(connection, replacement, hidden_by=number)
    for dropped in folding.dropped:
        observations.drop(connection, dropped, now=now, hidden_by=number)


def last_attempt(connection: sqlite3.Connection, scope: Scope, mark: str | None) -> Attempt | None:
    """The last reflection in a scope; with a fingerprint the last that read or left those rows."""
    session = None if scope.session is None else sessions.number(connection, scope.session)
    project = None if scope.project is None else sessions.project_number(connection, scope.project)
    if (scope.session is not None and session is None) or (scope.project is not None and project is None):
        return None
    attempts = connection.execute(
        "SELECT at, outcome, error, fingerprint, figures, undone_by FROM operations"
        " WHERE verb = ? AND session IS ? AND project IS ? ORDER BY number DESC",
        (Verb.REFLECT, session, project),
    )
    found = (_attempt(row, scope) for row in attempts)
    return next((attempt for attempt in found if mark is None or attempt.is_about(mark)), None)


def _attempt(row: sqlite3.Row, scope: Scope) -> Attempt:
    return Attempt(
        scope=scope,
        at=row["at"],
        ending=Ending(row["outcome"]),
        fingerprint=row["fingerprint"],
        error=row["error"],
        figures=rows.parsed(row["figures"]),
        is_undone=row["undone_by"] is not None,
    )
