"""Connecting to a database, and creating or migrating the store in it."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

from omcli.base.errors import BadConfiguration, MigrationFailed, NewerStore, UnusableStore
from omcli.postgres.dialect import SCHEMA, Connection, begin_writing, om_error
from omcli.sqlite.connection import steps

MIGRATIONS = Path(__file__).with_name("migrations")
"""Folder of the schema's steps. A step has the number of SQLite's step that makes the same tables."""
_OLDEST = 160000
"""Minimum version of the server: older ones need a name for each subquery."""
_CONNECT_TIMEOUT = 10
_CONTENTS = """
    SELECT to_regclass(:schema || '.schema_version') IS NOT NULL,
        EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(:schema))
        OR EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = to_regnamespace(:schema))
"""
"""Query that tells if a schema has the table of om's version, and if it has any tables or functions."""


def connect(url: str) -> Connection:
    """Connect to a database. Transactions begin and end only explicitly. Raise BadConfiguration if psycopg cannot read
    the URL, UnusableStore if the server is too old, and psycopg's other errors.
    """
    try:
        raw = psycopg.connect(
            url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT, application_name="om", client_encoding="utf8"
        )
    except psycopg.ProgrammingError as error:
        named = re.search(r"query parameter: (\"\w+\")", str(error))  # it may repeat the URL with its password
        fault = f"has an unknown option: {named[1]}" if named else "cannot be read"
        raise BadConfiguration(
            f"the URL of the database {fault}", hint="like postgresql://user@host/database"
        ) from None
    if raw.info.server_version < _OLDEST:
        raw.close()
        raise UnusableStore(
            f"the server is PostgreSQL {raw.info.server_version // 10_000}, om needs {_OLDEST // 10_000} or later",
            hint="name a store on another server, or in a file, with --db",
        )
    raw.execute(f"SET search_path = {SCHEMA}, pg_catalog")
    return Connection(raw)


def newest(folder: Path = MIGRATIONS) -> int:
    """Return the number of the last migration."""
    return number_of(steps(folder)[-1])


def number_of(step: Path) -> int:
    return int(step.name.partition("_")[0])


def check_version(connection: Connection, *, name: str, folder: Path = MIGRATIONS) -> int:
    """Return the version of the store's schema, or 0 if there is no store yet.

    Raise NewerStore if a later version wrote the store, and UnusableStore if the schema is not om's.
    """
    foreign = UnusableStore(
        f"the schema `{SCHEMA}` in {name} belongs to another program", hint="name another database with --db"
    )
    (has_version, has_others) = connection.execute(_CONTENTS, {"schema": SCHEMA}).fetchone() or (False, False)
    if not has_version:
        if has_others:
            raise foreign
        return 0
    try:
        (found,) = connection.execute("SELECT max(number) FROM schema_version").fetchone() or (None,)
    except psycopg.errors.UndefinedColumn:
        raise foreign from None
    if found is None:
        raise foreign
    if found > newest(folder):
        raise NewerStore(
            f"{name} has schema version {found}, this om knows versions up to {newest(folder)}",
            hint="upgrade om, or name another database with --db",
        )
    return int(found)


def migrate(connection: Connection, *, name: str, wait: float, folder: Path = MIGRATIONS) -> None:
    """Run the steps that the store lacks, in one transaction, under the lock of all writers.

    Raise MigrationFailed if a step fails, and the errors of `check_version`.
    """
    if check_version(connection, name=name, folder=folder) == newest(folder):
        return
    before = 0
    try:
        begin_writing(connection, wait=wait)
        before = check_version(connection, name=name, folder=folder)  # another process may have migrated it
        if not before:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        for step in steps(folder):
            if number_of(step) > before:
                connection.raw.execute(step.read_text("utf-8").encode())
                connection.execute("UPDATE schema_version SET number = ?", (number_of(step),))
        connection.execute("COMMIT")
    except BaseException as error:
        connection.raw.rollback()
        if not isinstance(error, psycopg.Error) or om_error(error, name=name, wait=wait):
            raise
        raise MigrationFailed(
            f"{name} could not be brought from schema version {before} to {newest(folder)}: {error}; rolled back",
            hint="the store is unchanged; keep using the om that wrote it",
        ) from error
