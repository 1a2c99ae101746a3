"""A store of its own for a test: SQLite in memory, the same program as over a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress

from omcli.sqlite import SqliteStore
from omcli.sqlite.connection import NOWHERE, open_temporary, steps
from omcli.sqlite.dialect import Database


class MemoryStore(SqliteStore):
    """An empty store, gone with the test that made it."""

    def __init__(self, *, is_gone: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__(Database(open_temporary(steps=steps()), path=NOWHERE, wait=0), is_gone=is_gone)

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # collected by another thread
            self.close()
