"""Transactions: one to read from a single moment, one to write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Everything read inside is of one moment.

    Not for writing: a read that turns into a write fails at once where others have written since, wait or no wait.
    """
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.rollback()


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is written inside is kept, or on any error nothing. Takes the write lock first, waiting for others."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
