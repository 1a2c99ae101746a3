"""An open store file: its connection, the transactions on it, and what all roles of the store share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from omcli.sqlite import codec, transaction
from omcli.sqlite.failures import explained

_Row = TypeVar("_Row")
PAGE = 500
"""Rows read at once by a method that may read all of them."""


class Database:
    """A connection to one file. SQLite's errors are raised as om's.

    Writing raises StoreLocked if another process keeps it from it for `wait` seconds, and InputOutput if the disk
    refuses.
    """

    def __init__(self, connection: sqlite3.Connection, *, path: Path, wait: float) -> None:
        connection.row_factory = sqlite3.Row
        self.connection = connection
        self.path = path
        self.wait = wait

    def close(self) -> None:
        """Close the file."""
        with self.explained():
            self.connection.close()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise om's errors instead of SQLite's."""
        with explained(self.path, wait=self.wait):
            yield

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that reads from a single moment."""
        with self.explained(), transaction.reading(self.connection) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes all or nothing."""
        with self.explained(), transaction.writing(self.connection, wait=self.wait) as connection:
            yield connection

    @contextmanager
    def session(self, name: str) -> Iterator[tuple[sqlite3.Connection, int | None]]:
        """A reading transaction, and the number of a session; None if there is no such session."""
        with self.reading() as connection:
            yield connection, codec.session_number(connection, name)

    def pages(
        self,
        read: Callable[[sqlite3.Connection, int], Sequence[_Row]],
        *,
        place: Callable[[_Row], int],
        after: int = 0,
        whole: bool = False,
    ) -> Iterator[_Row]:
        """Rows that `read` returns behind a place, page by page: no transaction is open while the caller has one.

        `whole`: the first page is all of it, whatever its length.
        """
        while True:
            with self.reading() as connection:
                page = read(connection, after)
            yield from page
            if whole or len(page) < PAGE:
                return
            after = place(page[-1])


class Table:
    """A role of the store: methods on one table or a few, each method one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
