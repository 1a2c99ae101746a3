"""OpenCode's database, as OpenCode writes it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE session (
  id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  data text NOT NULL
);
CREATE TABLE part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL
);
"""


@contextmanager
def database(path: Path, *, log: bool = False) -> Iterator[sqlite3.Connection]:
    """A new or existing database; its log is written into the database when it is closed."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if is_new:
            connection.execute(f"PRAGMA journal_mode = {'wal' if log else 'delete'}")
            connection.executescript(_SCHEMA)
        yield connection


def put(connection: sqlite3.Connection, session: dict[str, Any]) -> None:
    """Write a session of an export, or what has changed in it."""
    info, now = session["info"], session["info"]["time"]["updated"]
    _put(
        connection, "session", info["id"], info["projectID"], info.get("parentID"), info["slug"], info["directory"],
        info["title"], info["version"], info["time"]["created"], now,
    )  # fmt: skip
    for message in session["messages"]:
        said = message["info"]
        data = {key: value for key, value in said.items() if key not in ("id", "sessionID")}
        at = said["time"]["created"]
        _put(connection, "message", said["id"], info["id"], at, at, json.dumps(data))
        for part in message["parts"]:
            data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
            _put(connection, "part", part["id"], said["id"], info["id"], at, at, json.dumps(data))


def _put(connection: sqlite3.Connection, table: str, *values: object) -> None:
    places = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)
