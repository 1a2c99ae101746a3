"""The store in a PostgreSQL database. Its roles are those of `sqlite`, whose queries `dialect` translates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Self

from omcli.base.errors import BadConfiguration
from omcli.sqlite import SqliteStore

if TYPE_CHECKING:
    from omcli.memory.session import Author
    from omcli.postgres.differences import PostgresBackups, PostgresLeases, PostgresOperations
    from omcli.postgres.search import PostgresSearchIndex, PostgresTextSearch
    from omcli.postgres.vectors import PostgresVectors


class PostgresStore(SqliteStore):
    """A `memory.ports.Store` in the schema `om` of a database."""

    @classmethod
    def open(  # type: ignore[override]
        cls,
        url: str,
        *,
        wait: float,
        name: str = "the database",
        read_only: bool = False,
        author: Author | None = None,
        is_gone: Callable[[str], bool] | None = None,
    ) -> Self | SqliteStore:
        """Open the store in a database. Create it if it is missing, and migrate it if its schema is older.

        With `read_only`, nothing is written, except that an older schema is migrated, and a missing store is read as an
        empty one. `wait` is in seconds. Errors call the store by `name`, because the URL may have a password. The store
        notes the `author` with what is written. `is_gone` returns True if the owner of a lease has ended (default:
        `lanes.is_gone`).

        Raise BadConfiguration without psycopg, TryAgain if the server cannot be reached, NotAllowed if it refuses the
        user, InputOutput if the database does not exist, StoreLocked, NewerStore, MigrationFailed, and UnusableStore if
        the schema is not om's or the server is too old.
        """
        try:
            from omcli.postgres.connection import check_version, connect, migrate, newest
            from omcli.postgres.dialect import ServerDatabase, om_errors
        except ImportError:
            raise BadConfiguration("psycopg is not installed", hint="pip install 'omcli[postgres]'") from None

        with om_errors(name, wait=wait):
            connection = connect(url)
            try:
                if not read_only:
                    migrate(connection, name=name, wait=wait)
                elif (found := check_version(connection, name=name)) < newest():
                    if not found:
                        connection.close()
                        return SqliteStore.temporary(is_gone=is_gone)
                    migrate(connection, name=name, wait=wait)
            except BaseException:
                connection.close()
                raise
        return cls(ServerDatabase(connection, name=name, wait=wait, author=author), is_gone=is_gone)

    @property
    def key(self) -> None:
        """None: a server encrypts its files by itself."""
        return

    @cached_property
    def search(self) -> PostgresTextSearch:
        from omcli.postgres.search import PostgresTextSearch

        return PostgresTextSearch(self.database)

    @cached_property
    def index(self) -> PostgresSearchIndex:
        from omcli.postgres.search import PostgresSearchIndex

        return PostgresSearchIndex(self.database)

    @cached_property
    def vectors(self) -> PostgresVectors:
        from omcli.postgres.vectors import FEW, PostgresVectors

        return PostgresVectors(self.database, few=FEW)

    @cached_property
    def operations(self) -> PostgresOperations:
        from omcli.postgres.differences import PostgresOperations

        return PostgresOperations(self.database)

    @cached_property
    def backups(self) -> PostgresBackups:
        from omcli.postgres.differences import PostgresBackups

        return PostgresBackups(self.database)

    @cached_property
    def leases(self) -> PostgresLeases:
        from omcli.postgres.differences import PostgresLeases
        from omcli.sqlite.lanes import is_gone

        return PostgresLeases(self.database, is_gone=self._is_gone or is_gone)
