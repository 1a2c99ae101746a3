"""Reflections in the store: rows they made and hid, and attempts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from omcli.base.errors import StaleBatch
from omcli.memory.changes import OperationKind
from omcli.memory.ports import Reflections
from omcli.memory.reflection import ReflectionAttempt, ReflectionOutcome, ReflectionWrite, Scope
from omcli.sqlite import codec, dialect, operations, rows
from omcli.sqlite.database import Table


class SqliteReflections(Table, Reflections):
    """Reflections in the tables `operations` and `observation_supports`."""

    def fold(self, folding: ReflectionWrite, *, now: str) -> None:
        with self._database.writing() as connection:
            fold(connection, folding, now=now)

    def last_attempt(self, scope: Scope, mark: str | None = None) -> ReflectionAttempt | None:
        with self._database.reading() as connection:
            session = None if scope.session is None else codec.session_number(connection, scope.session)
            project = None if scope.project is None else codec.project_number(connection, scope.project)
            if (scope.session is not None and session is None) or (scope.project is not None and project is None):
                return None
            attempts = connection.execute(
                "SELECT at, outcome, error, fingerprint, figures, undone_by FROM operations"
                f" WHERE verb = ? AND {dialect.same('session', '?')} AND {dialect.same('project', '?')}"
                " ORDER BY number DESC",
                (OperationKind.REFLECT, session, project),
            )
            found = (_attempt(row, scope) for row in attempts)
            return next((attempt for attempt in found if mark is None or attempt.is_about(mark)), None)

    def support(self, observation: str) -> int:
        with self._database.reading() as connection:
            (number,) = connection.execute(
                "SELECT count(*) FROM observation_supports WHERE supported ="
                f" (SELECT position FROM observations WHERE {codec.id_is()})",
                codec.id_values(codec.packed(observation)),
            ).fetchone()
        assert isinstance(number, int)
        return number

    def supports(self) -> Mapping[str, int]:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT o.id, made.number FROM"
                " (SELECT supported, count(*) AS number FROM observation_supports GROUP BY supported) AS made"
                " JOIN observations AS o ON o.position = made.supported"
            ).fetchall()
        return {codec.unpacked(identity): number for identity, number in found}


def fold(connection: sqlite3.Connection, folding: ReflectionWrite, *, now: str) -> None:
    """Write a reflection.

    Raises StaleBatch if a row it was made from is hidden now, or if what it is a part of was undone or made final: the
    part could never be undone.
    """
    if not rows.are_visible(connection, folding.read):
        raise StaleBatch(
            "rows were replaced by another process while they were reflected on",
            hint="nothing was changed; run it again",
        )
    if folding.part_of is not None and operations.is_settled(connection, folding.part_of):
        raise StaleBatch(
            f"operation {folding.part_of} was undone, or made final, before it came to its end",
            hint="rows it had not reached yet are unchanged; run it again",
        )
    number = operations.note(
        connection,
        OperationKind.REFLECT,
        folding.scope,
        now=now,
        figures=dialect.compact_json(dict(folding.figures)),
        ending=folding.ending,
        error=folding.error,
        fingerprint=folding.fingerprint,
        part_of=folding.part_of,
    )
    rows.add(connection, folding.rows, made_by=number)
    for replacement in folding.replaced:
        rows.replace(connection, replacement, hidden_by=number)
    for dropped in folding.dropped:
        rows.drop(connection, dropped, now=now, hidden_by=number)


def _attempt(row: sqlite3.Row, scope: Scope) -> ReflectionAttempt:
    return ReflectionAttempt(
        scope=scope,
        at=row["at"],
        ending=ReflectionOutcome(row["outcome"]),
        fingerprint=row["fingerprint"],
        error=row["error"],
        figures=dialect.parsed(row["figures"]),
        is_undone=row["undone_by"] is not None,
    )
