"""How a row came to be, and what became of it."""

from __future__ import annotations

import sqlite3

from omcli.memory.changes import Traces
from omcli.sqlite import changes, observations


def traces(connection: sqlite3.Connection, reference: str) -> Traces:
    """The operations and the other rows that a row has to do with. Raises UnknownId."""
    row = observations.find(connection, reference)
    made_by, hidden_by, replaced = observations.traces(connection, row.id)
    successor = row.superseded_by and observations.at(connection, row.superseded_by)
    return Traces(
        made_by=changes.recorded(connection, made_by) if made_by else None,
        hidden_by=changes.recorded(connection, hidden_by) if hidden_by else None,
        replaced=tuple(replaced),
        made_of=observations.linked(connection, row.id, made_of=True),
        made_into=observations.linked(connection, row.id, made_of=False),
        successor=successor.observation if successor else None,
    )
