"""What the store holds that contains a text, and what was made of it: for forgetting."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from omcli.memory.changes import Kin
from omcli.memory.coverage import row_says
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation
from omcli.sqlite import codec, messages, rows, soft_delete
from omcli.text.similarity import wording

_FOLDED = "\u00df\u0130\u0149\u017f\u01f0\u1e96-\u1e9a\u1e9e\u212a\ufb00-\ufb06"
"""What becomes ASCII letters, or has some, where case does not matter: sharp s, ligatures, the sign of the kelvin."""


def messages_containing(connection: sqlite3.Connection, text: str) -> tuple[KeptMessage, ...]:
    """The messages that contain a text as `wording` has it, by `seq`; those that are put aside as well."""
    may, values = _may_say(("text",), text)
    found = {
        table: [
            seq
            for seq, said in connection.execute(f"SELECT seq, text FROM {table} WHERE {may} AND {whole}", values)
            if text in wording(said)
        ]
        for table, whole in (("messages", "1"), ("aside_messages", "NOT erased"))
    }
    there = messages.by_seq(connection, found["messages"])
    gone = messages.aside(connection, found["aside_messages"])
    return tuple(sorted((*there, *gone), key=lambda kept: kept.seq))


def rows_containing(connection: sqlite3.Connection, text: str) -> tuple[Observation, ...]:
    """The rows that contain it, hidden or not, in the log's order; behind them those that are put aside."""
    may, values = _may_say(("text", "tags", "metadata"), text)
    asked = f"SELECT position FROM {{}} WHERE {may}"
    there = _rows(connection, [place for (place,) in connection.execute(asked.format("observations"), values)])
    gone = [place for (place,) in connection.execute(asked.format("aside_observations"), values)]
    rows_found = (*there, *(logged.observation for logged in soft_delete.at_places(connection, gone)))
    return tuple(row for row in rows_found if row_says(row, text))


def kin(connection: sqlite3.Connection, ids: Sequence[str], seqs: Sequence[int]) -> Kin:
    """What was made of rows and messages, and what the rows had taken the place of, in the log's order."""
    values = {
        "given": codec.compact_json([place for row_id in ids for place in _places(connection, row_id)]),
        "messages": codec.compact_json(list(seqs)),
    }
    named = "{} IN (SELECT value FROM json_each(:{}))"
    source = f"SELECT observation FROM observation_sources WHERE {named.format('message', 'messages')}" if seqs else ""
    derived = connection.execute(
        f"WITH RECURSIVE {_GIVEN}, of_it (position, successor) AS ("
        " SELECT position, superseded_by FROM given UNION"
        + (f" SELECT position, superseded_by FROM observations WHERE position IN ({source}) UNION" if source else "")
        + " SELECT o.position, o.superseded_by FROM of_it"
        " JOIN observation_supports AS s ON s.supported = of_it.position"
        " JOIN observations AS o ON o.position = s.observation UNION"
        " SELECT o.position, o.superseded_by FROM of_it"
        f" JOIN observations AS o ON {codec.same_id('o.id', 'of_it.successor')}"
        ") SELECT position FROM of_it EXCEPT SELECT position FROM given",
        values,
    ).fetchall()
    replaced = connection.execute(
        f"WITH RECURSIVE {_GIVEN}, gone (position, id, made_of) AS ("
        " SELECT position, id, supports FROM given UNION"
        " SELECT o.position, o.id, NULL FROM gone JOIN observations AS o ON o.superseded_by = gone.id"
        " WHERE o.position NOT IN (SELECT value FROM json_each(coalesce(gone.made_of, '[]'))) AND NOT EXISTS"
        " (SELECT 1 FROM observation_supports AS s WHERE s.observation = gone.position AND s.supported = o.position)"
        ") SELECT position FROM gone EXCEPT SELECT position FROM given",
        values,
    ).fetchall()
    return Kin(
        derived=_rows(connection, [place for (place,) in derived]),
        replaced=_rows(connection, [place for (place,) in replaced]),
    )


_GIVEN = (
    "given (position, id, superseded_by, supports) AS ("
    " SELECT position, id, superseded_by, NULL FROM observations"
    " WHERE position IN (SELECT value FROM json_each(:given)) UNION ALL"
    " SELECT position, id, superseded_by, supports FROM aside_observations"
    " WHERE position IN (SELECT value FROM json_each(:given)))"
)
"""The rows that are asked about, those that are put aside as well."""


def _places(connection: sqlite3.Connection, row_id: str) -> list[int]:
    """The place that a row has in the log, or had."""
    values = codec.id_values(codec.packed(row_id))
    asked = " UNION ALL ".join(
        f"SELECT position FROM {table} WHERE {codec.id_is()}" for table in ("observations", "aside_observations")
    )
    return [place for (place,) in connection.execute(asked, values * 2)]


def _rows(connection: sqlite3.Connection, places: Sequence[int]) -> tuple[Observation, ...]:
    """The rows of the log at these places."""
    found = rows.at_places(connection, "SELECT value FROM json_each(?)", (codec.compact_json(list(places)),))
    return tuple(logged.observation for logged in found)


def _may_say(columns: Sequence[str], text: str) -> tuple[str, dict[str, str]]:
    """A condition that holds wherever one of the columns contains a text, and seldom elsewhere; and its values.

    It looks for the longest word of ASCII letters and digits, in any case, and passes what would have to be folded.
    """
    words = sorted(re.findall("[a-z0-9]+", text), key=len)
    if not words:
        return "1", {}
    says = "(instr(lower({0}), :word) OR {0} GLOB :folded OR instr({0}, char(0)))"
    return f"({' OR '.join(says.format(column) for column in columns)})", {
        "word": words[-1],
        "folded": f"*[{_FOLDED}]*",
    }
