"""An open store file: its connection, transactions, and SQLite's errors as om's."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from omcli.base.errors import BadConfiguration, CannotCreate, InputOutput, OmError, StoreLocked
from omcli.sqlite import codec

_Row = TypeVar("_Row")
Translate = Callable[[sqlite3.Error], OmError | None]
PAGE = 500
"""Rows read at once by a method that may read all of them."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT})
_NO_INDEX = frozenset({sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP})
"""Errors that mean SQLite cannot create the index of the log, for example on a full disk."""


class Database:
    """A connection to one file.

    Writing raises StoreLocked if another process holds the lock for longer than `wait` seconds, and InputOutput on a
    disk error.
    """

    def __init__(self, connection: sqlite3.Connection, *, path: Path, wait: float) -> None:
        connection.row_factory = sqlite3.Row
        self.connection = connection
        self.path = path
        self.wait = wait

    def close(self) -> None:
        """Close the file."""
        with self.om_errors():
            self.connection.close()

    def om_errors(self) -> AbstractContextManager[None]:
        """Raise om's errors instead of SQLite's."""
        return om_errors(self.path, wait=self.wait)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Begin a transaction that reads from a single moment."""
        return _Transaction(self.connection, as_om_error=self._om_error)

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Begin a transaction that writes all or nothing."""
        return _Transaction(self.connection, writes=True, wait=self.wait, as_om_error=self._om_error)

    def session(self, name: str) -> AbstractContextManager[tuple[sqlite3.Connection, int | None]]:
        """Begin a transaction that reads, with the number of a session; None if the session does not exist."""
        return _SessionTransaction(self.reading(), name)

    def read_all(
        self,
        read: Callable[[sqlite3.Connection, int], Sequence[_Row]],
        *,
        place: Callable[[_Row], int],
        after: int = 0,
        whole: bool = False,
    ) -> Iterator[_Row]:
        """Yield the rows after a place, page by page. No transaction is open while the caller handles a row.

        With `whole`, the first page holds all rows, whatever its length.
        """
        while True:
            with self.reading() as connection:
                page = read(connection, after)
            yield from page
            if whole or len(page) < PAGE:
                return
            after = place(page[-1])

    def _om_error(self, error: sqlite3.Error) -> OmError | None:
        return om_error(error, path=self.path, wait=self.wait)


class Table:
    """A role of the store: methods on one table or a few, each method one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database


def writing(connection: sqlite3.Connection, *, wait: float = 0) -> AbstractContextManager[sqlite3.Connection]:
    """Begin a transaction that writes all or nothing, and raises SQLite's own errors."""
    return _Transaction(connection, writes=True, wait=wait)


class _Transaction:
    """A transaction: committed at the end of its block if it writes, and rolled back on any error.

    It is not a generator: Ctrl-C between two of its lines would leave the transaction open until garbage collection.

    A reading transaction must not write: it would fail at once if another process has written since it began, however
    long it could wait. A writing one takes the write lock first.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        writes: bool = False,
        wait: float = 0,
        as_om_error: Translate = lambda _: None,
    ) -> None:
        self._connection = connection
        self._writes = writes
        self._wait = wait
        self._as_om_error = as_om_error

    def __enter__(self) -> sqlite3.Connection:
        try:  # a signal that comes while BEGIN waits is raised when the transaction is open
            if self._writes:
                self._begin_writing(until=time.monotonic() + self._wait)
            else:
                self._connection.execute("BEGIN")
        except BaseException as error:
            self._end(error)
            raise
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._writes:
                self._connection.commit()
        except BaseException as failure:
            self._end(failure)
            raise
        self._end(error)

    def _begin_writing(self, *, until: float) -> None:
        """Take the write lock, in steps as long as the connection waits."""
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= until:
                    raise
            else:
                return

    def _end(self, error: BaseException | None) -> None:
        """Roll back a transaction that is still open, and raise om's error instead of SQLite's."""
        try:
            self._connection.rollback()
        except sqlite3.Error as failure:
            error = failure if error is None else error
        if isinstance(error, sqlite3.Error) and (translated := self._as_om_error(error)) is not None:
            raise translated from error


class _SessionTransaction:
    """A reading transaction that looks the session up first."""

    def __init__(self, transaction: AbstractContextManager[sqlite3.Connection], name: str) -> None:
        self._transaction = transaction
        self._name = name

    def __enter__(self) -> tuple[sqlite3.Connection, int | None]:
        connection = self._transaction.__enter__()
        try:
            return connection, codec.session_number(connection, self._name)
        except BaseException as error:
            self._transaction.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.__exit__(kind, error, trace)


def is_busy(error: sqlite3.Error) -> bool:
    """True if another process holds a lock: waiting helps."""
    return _code(error) in _BUSY


def cannot_open(error: sqlite3.Error) -> bool:
    """True if the file, or one of those SQLite keeps beside it, could not be opened or created."""
    return _code(error) in {sqlite3.SQLITE_CANTOPEN, *_UNWRITABLE} or error.sqlite_errorcode in _NO_INDEX


def om_error(error: sqlite3.Error, *, path: Path, wait: float, reading: bool = False) -> OmError | None:
    """The error to raise instead of SQLite's; None if the failure is a bug rather than a problem of the environment."""
    code = _code(error)
    if code in _BUSY:
        return StoreLocked(
            f"another process is writing to {path} (waited {wait:g} s)", hint="try again, or wait longer with --wait"
        )
    if code == sqlite3.SQLITE_FULL:
        return InputOutput(
            f"no space left to write to {path}",
            hint="free some space on that disk and try again; everything stored before is intact",
        )
    if code in _UNWRITABLE:
        return InputOutput(f"{path} cannot be written", hint="check the permissions of the file and of its folder")
    if code == sqlite3.SQLITE_IOERR:
        return InputOutput(f"reading or writing {path} failed: {error}", hint="check the disk and its free space")
    if code in _DAMAGED:
        return InputOutput(f"{path} is damaged: {error}", hint="keep a copy of it, then restore a backup")
    if code == sqlite3.SQLITE_NOTADB:
        return BadConfiguration(f"{path} is not a store", hint="name another file with --db")
    if code == sqlite3.SQLITE_CANTOPEN:
        kind = InputOutput if reading or path.is_file() else CannotCreate
        return kind(f"{path} cannot be opened", hint="check the permissions of the file and of its folder")
    return None


@contextmanager
def om_errors(path: Path, *, wait: float, reading: bool = False) -> Iterator[None]:
    """Raise om's errors instead of SQLite's inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        found = om_error(error, path=path, wait=wait, reading=reading)
        if found is None:
            raise
        raise found from error


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 if the error comes from Python's module and not from SQLite."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
