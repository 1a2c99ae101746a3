"""Calls of models in the store: the ledger, and how endpoints take structured output."""

from __future__ import annotations

import sqlite3

from omcli.llm.model import Call, Rung, Spent
from omcli.sqlite import rows, sessions

_COLUMNS = "at, lane, provider, model, input_tokens, output_tokens, cached_tokens, cost, duration, outcome"


def add(connection: sqlite3.Connection, call: Call) -> None:
    """Writes a call down."""
    columns: rows.Columns = {name: getattr(call, name) for name in _COLUMNS.split(", ")}
    columns["session"] = None if call.session is None else sessions.numbered(connection, call.session)
    rows.insert(connection, "calls", columns)


def page(
    connection: sqlite3.Connection, *, after: int, since: str | None, until: str | None, limit: int
) -> tuple[tuple[int, Call], ...]:
    """Calls of a period with their numbers, oldest first, at most `limit` of those behind a number."""
    found = connection.execute(
        f"SELECT c.number, s.id AS session, {', '.join(f'c.{name}' for name in _COLUMNS.split(', '))}"
        " FROM calls AS c LEFT JOIN sessions AS s ON s.number = c.session"
        " WHERE c.number > ? AND c.at >= ? AND (? IS NULL OR c.at < ?) ORDER BY c.number LIMIT ?",
        (after, since or "", until, until, limit),
    )
    return tuple(
        (row["number"], Call(session=row["session"], **{name: row[name] for name in _COLUMNS.split(", ")}))
        for row in found
    )


def spent(connection: sqlite3.Connection, *, since: str) -> Spent:
    """What calls from an instant on have come to."""
    tokens, cost = connection.execute(
        "SELECT coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0), total(cost)"
        " FROM calls WHERE at >= ?",
        (since,),
    ).fetchone()
    return Spent(tokens=tokens, cost=cost)


def rung(connection: sqlite3.Connection, endpoint: str, model: str, *, program: str) -> Rung | None:
    """How an endpoint took structured output, as this version of the program found out."""
    found = rows.execute(
        connection,
        "SELECT rung FROM rungs WHERE endpoint = ? AND model = ? AND program = ?",
        (endpoint, model, program),
    ).fetchone()
    return Rung(found["rung"]) if found else None


def put_rung(connection: sqlite3.Connection, endpoint: str, model: str, rung: Rung, *, program: str) -> None:
    """Remembers what worked."""
    rows.execute(
        connection,
        "INSERT OR REPLACE INTO rungs (endpoint, model, rung, program) VALUES (?, ?, ?, ?)",
        (endpoint, model, rung, program),
    )
