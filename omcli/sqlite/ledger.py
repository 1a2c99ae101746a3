"""Model calls in the store: the ledger, the output mode that works for each endpoint, and notices about models."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from omcli import __version__
from omcli.llm.model import FailedCalls, ModelCall, OutputMode, Spent
from omcli.sqlite import codec, dialect
from omcli.sqlite.dialect import PAGE, Table

_COLUMNS = "at, lane, provider, model, input_tokens, output_tokens, cached_tokens, cost, duration, outcome"

_LEDGER = "\0ledger"
"""Takes the place of a session in locks: calls are of no session that others write to."""
_FAILING = f"""
    WITH recent AS (SELECT * FROM calls WHERE at >= ?), worked AS (
        SELECT lane, session, provider, max(CASE outcome WHEN 'ok' THEN number ELSE 0 END) AS number
        FROM recent GROUP BY lane, session, provider)
    SELECT c.lane, s.id AS session, c.provider, c.model, count(*) AS number, max(c.at) AS last
    FROM recent AS c JOIN worked AS w
        ON w.lane = c.lane AND {dialect.same("w.session", "c.session")} AND w.provider = c.provider
    LEFT JOIN sessions AS s ON s.number = c.session
    WHERE c.number > w.number AND c.outcome NOT IN
        ('ok', 'interrupted', 'not-allowed', 'unknown-model', 'bad-configuration')
    GROUP BY c.lane, c.session, s.id, c.provider, c.model ORDER BY last
"""


class SqliteLedger(Table):
    """Implementation of `llm.model.Ledger` and `OutputModes` in the tables `calls` and `rungs`, and printed notices."""

    def note_call(self, call: ModelCall) -> None:
        columns: dialect.Columns = {name: getattr(call, name) for name in _COLUMNS.split(", ")}
        with self._database.writing(_LEDGER) as connection:
            columns["session"] = None if call.session is None else codec.add_session(connection, call.session)
            dialect.insert(connection, "calls", columns)

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        """Yield the calls with `since <= at < until` in the order in which they were noted, read page by page."""

        def read(connection: sqlite3.Connection, after: int) -> Sequence[sqlite3.Row]:
            return connection.execute(
                f"SELECT c.number, s.id AS session, {', '.join(f'c.{name}' for name in _COLUMNS.split(', '))}"
                " FROM calls AS c LEFT JOIN sessions AS s ON s.number = c.session"
                " WHERE c.number > ? AND c.at >= ? AND (? IS NULL OR c.at < ?) ORDER BY c.number LIMIT ?",
                (after, since or "", until, until, PAGE),
            ).fetchall()

        for row in self._database.read_all(read, place=lambda row: int(row["number"])):
            yield ModelCall(session=row["session"], **{name: row[name] for name in _COLUMNS.split(", ")})

    def spent(self, *, since: str) -> Spent:
        """Return the tokens and cost of all calls since an instant. Unknown numbers count as 0."""
        with self._database.reading() as connection:
            tokens, cost = connection.execute(
                "SELECT coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0),"
                " coalesce(sum(cost), 0.0)"
                " FROM calls WHERE at >= ?",
                (since,),
            ).fetchone()
        return Spent(tokens=tokens, cost=cost)

    def failing(self, *, since: str) -> tuple[FailedCalls, ...]:
        with self._database.reading() as connection:
            found = connection.execute(_FAILING, (since,)).fetchall()
        return tuple(FailedCalls(**{name: row[name] for name in row.keys()}) for row in found)  # noqa: SIM118

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """Return the way in which an endpoint accepts structured output, or None if this version of om has not found it
        yet.
        """
        with self._database.reading() as connection:
            found = dialect.execute(
                connection,
                "SELECT rung FROM rungs WHERE endpoint = ? AND model = ? AND program = ?",
                (endpoint, model, __version__),
            ).fetchone()
        return OutputMode(found["rung"]) if found else None

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        with self._database.writing(_LEDGER) as connection:
            dialect.execute(
                connection,
                "INSERT INTO rungs (endpoint, model, rung, program) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (endpoint, model) DO UPDATE SET rung = excluded.rung, program = excluded.program",
                (endpoint, model, output_mode, __version__),
            )

    def is_first(self, notice: str, *, now: str) -> bool:
        """Record that a notice is printed. Return True if it was not recorded before."""
        with self._database.writing(_LEDGER) as connection:
            return bool(
                dialect.execute(
                    connection, "INSERT INTO notices (name, at) VALUES (?, ?) ON CONFLICT DO NOTHING", (notice, now)
                ).rowcount
            )
