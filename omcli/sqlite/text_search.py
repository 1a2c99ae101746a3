"""Text search in messages and rows, and finding the rows made from them, for `om forget`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from omcli.memory.changes import RelatedRows
from omcli.memory.coverage import row_says
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation
from omcli.memory.ports import TextSearch
from omcli.sqlite import codec, dialect, messages, rows, soft_delete
from omcli.sqlite.dialect import Table
from omcli.text.similarity import folded_text

_GIVEN = f"""given (position, id, superseded_by, supports) AS (
    SELECT position, id, superseded_by, NULL FROM observations WHERE {dialect.among("position", ":given")} UNION ALL
    SELECT position, id, superseded_by, supports FROM aside_observations WHERE {dialect.among("position", ":given")})
"""


class SqliteTextSearch(Table, TextSearch):
    """Search that reads all text, because there is no index of words."""

    def messages(self, text: str) -> tuple[KeptMessage, ...]:
        may, values = dialect.may_match(("text",), text)
        with self._database.reading() as connection:
            visible, hidden = (
                [
                    seq
                    for seq, said in connection.execute(f"SELECT seq, text FROM {table} WHERE {may}", values)
                    if text in folded_text(said)
                ]
                for table in ("messages", "(SELECT * FROM aside_messages WHERE NOT erased) AS hidden")
            )
            found = (*messages.by_seq(connection, visible), *messages.hidden_by_seq(connection, hidden))
        return tuple(sorted(found, key=lambda kept: kept.seq))

    def rows(self, text: str) -> tuple[Observation, ...]:
        may, values = dialect.may_match(("text", "tags", "metadata"), text)
        query = f"SELECT position FROM {{}} WHERE {may}"
        with self._database.reading() as connection:
            visible = _by_position(connection, connection.execute(query.format("observations"), values))
            hidden = [place for (place,) in connection.execute(query.format("aside_observations"), values)]
            found = (*visible, *(logged.observation for logged in soft_delete.by_position(connection, hidden)))
        return tuple(row for row in found if row_says(row, text))

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> RelatedRows:
        with self._database.reading() as connection:
            given = [position for row_id in rows for position in _position(connection, row_id)]
            values = {"given": dialect.as_list(given), "messages": dialect.as_list(messages)}
            return RelatedRows(
                derived=_by_position(connection, connection.execute(_derived(from_messages=bool(messages)), values)),
                replaced=_by_position(connection, connection.execute(_replaced(), values)),
            )


def _derived(*, from_messages: bool) -> str:
    """Return the query for rows derived from the given rows or messages, directly or through other rows."""
    sources = (
        " SELECT position, superseded_by FROM observations WHERE position IN (SELECT observation"
        f" FROM observation_sources WHERE {dialect.among('message', ':messages')}) UNION"
    )
    return (
        f"WITH RECURSIVE {_GIVEN}, of_it (position, successor) AS ("
        f" SELECT position, superseded_by FROM given UNION{sources if from_messages else ''}"
        " SELECT o.position, o.superseded_by FROM of_it"
        " JOIN observation_supports AS s ON s.supported = of_it.position"
        " JOIN observations AS o ON o.position = s.observation UNION"
        " SELECT o.position, o.superseded_by FROM of_it"
        f" JOIN observations AS o ON {codec.same_id('o.id', 'of_it.successor')}"
        ") SELECT position FROM of_it EXCEPT SELECT position FROM given"
    )


def _replaced() -> str:
    """Return the query for rows that the given rows replaced, except the rows they were made from."""
    made_of = dialect.each("coalesce(gone.made_of, '[]')")
    return (
        f"WITH RECURSIVE {_GIVEN}, gone (position, id, made_of) AS ("
        " SELECT position, id, supports FROM given UNION"
        " SELECT o.position, o.id, NULL FROM gone JOIN observations AS o ON o.superseded_by = gone.id"
        f" WHERE o.position NOT IN ({made_of}) AND NOT EXISTS"
        " (SELECT 1 FROM observation_supports AS s WHERE s.observation = gone.position AND s.supported = o.position)"
        ") SELECT position FROM gone EXCEPT SELECT position FROM given"
    )


def _position(connection: sqlite3.Connection, row_id: str) -> list[int]:
    """Return the log position of a row, hidden or not, as a list that is empty if the row is unknown."""
    values = codec.id_values(codec.packed(row_id))
    query = " UNION ALL ".join(
        f"SELECT position FROM {table} WHERE {codec.id_is()}" for table in ("observations", "aside_observations")
    )
    return [position for (position,) in connection.execute(query, values * 2)]


def _by_position(connection: sqlite3.Connection, found: sqlite3.Cursor) -> tuple[Observation, ...]:
    positions = dialect.as_list(position for (position,) in found.fetchall())
    return tuple(logged.observation for logged in rows.by_position(connection, dialect.each(), (positions,)))
