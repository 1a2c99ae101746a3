"""Migrating a store to the schema of this program, one numbered step at a time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from omcli.base.errors import BadConfiguration, MigrationFailed, NewerStore
from omcli.sqlite.database import om_error, writing

MIGRATIONS = Path(__file__).with_name("migrations")
"""The steps of the schema. A plain path: importing importlib.resources takes longer than opening the store."""
APPLICATION_ID = 0x6F6D636C
"""`omcl` in the file's header, set by the first step."""

_STATE = """
    SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
        (SELECT count(*) FROM sqlite_schema)
"""
"""Version, owner and number of objects, in one statement: between two, another process may create a store."""


def steps(folder: Path = MIGRATIONS) -> tuple[Path, ...]:
    """The files of all steps, in order; the first makes version 1. They are read when they run."""
    return tuple(folder / name for name in sorted(os.listdir(folder)) if name.endswith(".sql"))  # noqa: PTH208


def check_version(connection: sqlite3.Connection, *, path: Path, newest: int) -> int:
    """Return the schema version of an opened file, 0 for an empty one; change nothing.

    Raises NewerStore for a store of a later program, BadConfiguration for a database that is not a store.
    """
    found, owner, objects = connection.execute(_STATE).fetchone()
    if owner != APPLICATION_ID and (owner or found or objects):
        raise BadConfiguration(f"{path} is a database of another program", hint="name another file with --db")
    if found > newest:
        raise NewerStore(
            f"{path} has schema version {found}, this om knows versions up to {newest}",
            hint="upgrade om, or name another file with --db",
        )
    assert isinstance(found, int)
    return found


def migrate(
    connection: sqlite3.Connection, steps: Sequence[Path], *, path: Path, back_up: Callable[[int], object] | None = None
) -> None:
    """Run the steps a store lacks, each with its version number in one transaction; none if it is current.

    A new store is made in one transaction: it exists with every step, or not at all. `back_up` is called with the
    old version before the first step of any other, when the write lock is held. Raises MigrationFailed if a step
    fails, NewerStore if another process has migrated further meanwhile.
    """
    while version(connection) != len(steps):
        with writing(connection):
            # Read again under the lock: another process may have done the work while this one waited.
            before = check_version(connection, path=path, newest=len(steps))
            if before == len(steps):
                return
            if before and back_up:
                back_up(before)
            back_up = None
            for step in range(before, before + 1 if before else len(steps)):
                _run(connection, steps[step].read_text("utf-8"), path=path, after=step + 1)


def version(connection: sqlite3.Connection) -> int:
    """The schema version in the file's header."""
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    assert isinstance(number, int)
    return number


def each_statement(sql: str) -> Iterator[str]:
    """Yield the statements of a script one by one: `executescript` would commit first."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _run(connection: sqlite3.Connection, sql: str, *, path: Path, after: int) -> None:
    try:
        for statement in each_statement(sql):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {after}")
    except sqlite3.Error as error:
        if om_error(error, path=path, wait=0):
            raise
        raise MigrationFailed(
            f"{path} could not be brought from schema version {after - 1} to {after}: {error}; rolled back",
            hint="the store is unchanged; keep using the om that wrote it",
        ) from error
