"""Transactions: one to read from a single moment, one to write."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from omcli.sqlite.failures import is_busy


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Everything read inside is of one moment.

    Not for writing: a read that turns into a write fails at once where others have written since, wait or no wait.
    """
    try:
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.rollback()


@contextmanager
def writing(connection: sqlite3.Connection, *, wait: float = 0) -> Iterator[sqlite3.Connection]:
    """All that is written inside is kept, or on any error nothing.

    Takes the write lock first, and waits for others for `wait` seconds, in steps as long as the connection waits.
    """
    try:  # from here: a signal that comes while BEGIN waits is raised when the transaction is open
        _begin_writing(connection, until=time.monotonic() + wait)
        yield connection
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _begin_writing(connection: sqlite3.Connection, *, until: float) -> None:
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= until:
                raise
        else:
            return
