"""The store in a single SQLite file, opened by role. All SQL is in this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from omcli.base.errors import InputOutput, NoKey
from omcli.sqlite.connection import (
    MIGRATIONS,
    exists,
    key_of,
    open_copy,
    open_for_reading,
    open_for_writing,
    open_temporary,
    steps,
)
from omcli.sqlite.dialect import NOWHERE, Database, om_errors

if TYPE_CHECKING:
    from omcli.memory.changes import CutResult
    from omcli.memory.session import Author
    from omcli.sqlite.backups import SqliteBackups
    from omcli.sqlite.batches import SqliteBatches
    from omcli.sqlite.lanes import SqliteLeases
    from omcli.sqlite.ledger import SqliteLedger
    from omcli.sqlite.merge import SqliteRecords
    from omcli.sqlite.messages import SqliteBookmarks, SqliteMessageLog
    from omcli.sqlite.operations import SqliteOperations, SqliteReflections
    from omcli.sqlite.rows import SqliteRows
    from omcli.sqlite.search import SqliteSearchIndex, SqliteTextSearch
    from omcli.sqlite.sessions import SqliteSessions, SqliteTombstones
    from omcli.sqlite.vectors import SqliteVectors


class SqliteStore:
    """A `memory.ports.Store` in one file. Each role is imported on first use, because a command needs only two or
    three.
    """

    def __init__(self, database: Database, *, is_gone: Callable[[str], bool] | None = None) -> None:
        self.database = database
        self._is_gone = is_gone

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        wait: float,
        read_only: bool = False,
        author: Author | None = None,
        migrations: Path = MIGRATIONS,
        is_gone: Callable[[str], bool] | None = None,
        learn_key: Callable[[str], object] | None = None,
    ) -> Self:
        """Open the store at `path`. Create it if it is missing, and migrate it if its schema is older.

        With `read_only` the file is never written, and a missing store is read as an empty one. `wait` is in seconds.
        The store notes the `author` with what is written.
        `is_gone` returns True if the owner of a lease has ended (default: `lanes.is_gone`). If this process does not
        know the key of an encrypted store, `learn_key` is called with the key's name, and must call `cipher.learn`.

        Raise CannotCreate if the file, or its copy before a migration, cannot be created, InputOutput if it cannot be
        read, written or copied or is damaged, StoreLocked if another process holds the lock, NewerStore if a later
        version wrote the store, MigrationFailed if a migration fails, UnusableStore if the file is not a store or
        SQLite is too old or lacks encryption or full-text search, and NoKey if the key is not known.
        """

        def back_up(old: int) -> None:
            from omcli.sqlite.backups import copy_store

            copy_store(path, f"v{old}", wait=wait)

        try:
            with om_errors(path, wait=wait, reading=read_only):
                _check_content(path)
                if read_only:
                    connection = open_for_reading(path, wait=wait, steps=steps(migrations))
                else:
                    connection = open_for_writing(path, wait=wait, steps=steps(migrations), back_up=back_up)
        except NoKey as error:
            if learn_key is None:
                raise
            learn_key(error.name)
            return cls.open(path, wait=wait, read_only=read_only, author=author, migrations=migrations, is_gone=is_gone)
        return cls(Database(connection, path=path, wait=wait, author=author), is_gone=is_gone)

    @classmethod
    def temporary(cls, *, is_gone: Callable[[str], bool] | None = None) -> Self:
        """Open a store for this process alone. It is deleted when it is closed or the process ends."""
        with om_errors(NOWHERE, wait=0):
            connection = open_temporary(steps=steps())
        return cls(Database(connection, path=NOWHERE, wait=0), is_gone=is_gone)

    @classmethod
    def copy_of(cls, path: Path, *, wait: float, learn_key: Callable[[str], object] | None = None) -> Self:
        """Open a private copy of the store at `path`, which is deleted like a temporary store. Leases are not copied.

        Raise the errors of `open` with `read_only`.
        """
        try:
            with om_errors(path, wait=wait, reading=True):
                _check_content(path)
                connection = open_copy(path, wait=wait, steps=steps())
        except NoKey as error:
            if learn_key is None:
                raise
            learn_key(error.name)
            return cls.copy_of(path, wait=wait)
        return cls(Database(connection, path=NOWHERE, wait=0))

    def cut_after(self, moment: str) -> CutResult:
        """Remove everything after a moment from a private copy: messages; in each session, the rows of the first batch
        with such a message and of all batches after it; and rows that were noted, imported or made by an operation.
        Rows that these had replaced become visible, and the other messages of these batches become pending. Later
        operations must be undone first.
        """
        from omcli.sqlite.backups import cut_after

        with self.database.writing() as connection:
            return cut_after(connection, moment)

    @property
    def author(self) -> Author | None:
        return self.database.author

    @property
    def key(self) -> str | None:
        """The store's key, or None if it is not encrypted."""
        return key_of(self.database.connection)

    def close(self) -> None:
        """Close the file. The store cannot be used afterwards."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def messages(self) -> SqliteMessageLog:
        from omcli.sqlite.messages import SqliteMessageLog

        return SqliteMessageLog(self.database)

    @cached_property
    def bookmarks(self) -> SqliteBookmarks:
        from omcli.sqlite.messages import SqliteBookmarks

        return SqliteBookmarks(self.database)

    @cached_property
    def batches(self) -> SqliteBatches:
        from omcli.sqlite.batches import SqliteBatches

        return SqliteBatches(self.database)

    @cached_property
    def reflections(self) -> SqliteReflections:
        from omcli.sqlite.operations import SqliteReflections

        return SqliteReflections(self.database)

    @cached_property
    def operations(self) -> SqliteOperations:
        from omcli.sqlite.operations import SqliteOperations

        return SqliteOperations(self.database)

    @cached_property
    def tombstones(self) -> SqliteTombstones:
        from omcli.sqlite.sessions import SqliteTombstones

        return SqliteTombstones(self.database)

    @cached_property
    def rows(self) -> SqliteRows:
        from omcli.sqlite.rows import SqliteRows

        return SqliteRows(self.database)

    @cached_property
    def search(self) -> SqliteTextSearch:
        from omcli.sqlite.search import SqliteTextSearch

        return SqliteTextSearch(self.database)

    @cached_property
    def index(self) -> SqliteSearchIndex:
        from omcli.sqlite.search import SqliteSearchIndex

        return SqliteSearchIndex(self.database)

    @cached_property
    def vectors(self) -> SqliteVectors:
        from omcli.sqlite.vectors import SqliteVectors

        return SqliteVectors(self.database)

    @cached_property
    def sessions(self) -> SqliteSessions:
        from omcli.sqlite.sessions import SqliteSessions

        return SqliteSessions(self.database)

    @cached_property
    def backups(self) -> SqliteBackups:
        from omcli.sqlite.backups import SqliteBackups

        return SqliteBackups(self.database)

    @cached_property
    def records(self) -> SqliteRecords:
        from omcli.sqlite.merge import SqliteRecords

        return SqliteRecords(self.database)

    @cached_property
    def leases(self) -> SqliteLeases:
        from omcli.sqlite.lanes import SqliteLeases, is_gone

        return SqliteLeases(self.database, is_gone=self._is_gone or is_gone)

    @cached_property
    def ledger(self) -> SqliteLedger:
        from omcli.sqlite.ledger import SqliteLedger

        return SqliteLedger(self.database)


def _check_content(path: Path) -> None:
    """Raise InputOutput if a file has no content although there is a sound backup: it was cut, and is not a new store.
    Raise the errors of `exists` and `has_backup`.
    """
    if exists(path) and path.stat().st_size == 0:
        from omcli.sqlite.restore import has_backup

        if has_backup(path):
            raise InputOutput(
                f"{path} is empty, although it has a backup", hint="`om restore` puts its last backup in its place"
            )
