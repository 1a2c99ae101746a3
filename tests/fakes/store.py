"""A store of its own for a test: SQLite in memory, the same program as over a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from omcli.sqlite import SqliteStore
from omcli.sqlite.cipher import learn
from omcli.sqlite.connection import open_temporary, steps
from omcli.sqlite.dialect import NOWHERE, Database
from omcli.sqlite.restore import change_key


@cache
def empty_store() -> bytes:
    """The file of a store that holds nothing. To write it takes less than to make a store step by step."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "om.db"
        SqliteStore.open(path, wait=1).close()
        return path.read_bytes()


KEY = "0123456789abcdef" * 4
"""A key for encrypted stores."""


@cache
def encrypted_store() -> bytes:
    """The file of an encrypted store that holds nothing. Learn `KEY` before it is opened."""
    learn(KEY)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "om.db"
        path.write_bytes(empty_store())
        change_key(path, KEY, wait=1)
        return path.read_bytes()


class MemoryStore(SqliteStore):
    """An empty store, gone with the test that made it."""

    def __init__(self, *, is_gone: Callable[[str], bool] = lambda _: False) -> None:
        super().__init__(Database(open_temporary(steps=steps()), path=NOWHERE, wait=0), is_gone=is_gone)

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # collected by another thread
            self.close()
