"""The queries of the store's roles on PostgreSQL: a connection that understands them, transactions and errors.

The roles write their SQL once, as `sqlite.dialect` spells it. `query_of` rewrites what PostgreSQL says otherwise:

- parameters: `?` and `:name`;
- lists: SQLite takes one as JSON and reads it with `json_each`, PostgreSQL takes an array, whose type it finds by the
  column, so that the column's index is used;
- `IS` between two values: `IS NOT DISTINCT FROM`;
- `INDEXED BY`: PostgreSQL has no such hint;
- merging the segments of an index of words: the server does so by itself.

What can be a function is one, in the schema `om` (see the first migration).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors as codes
from psycopg.adapt import Loader

from omcli.base.errors import CannotWrite, InputOutput, NotAllowed, OmError, StoreLocked, TryAgain
from omcli.sqlite import dialect
from omcli.sqlite.dialect import ValueList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg.abc import Buffer

    from omcli.memory.session import Author
    from omcli.sqlite.dialect import Values

_SENT_AT_ONCE = 200
"""Number of statements that are sent to the server in one message."""
SCHEMA = "om"
"""Schema of the database that contains everything of the store."""
_WRITING = 0x6F6D636C
"""Number of the advisory lock that a writer holds. SQLite's files have the same number in their header."""
_NUL, _STORED_NUL = "\0", "\ufdd0"
"""PostgreSQL refuses a NUL in text. It is stored as a code point that Unicode reserves for such uses, and read back."""
_UNSTORABLE = re.compile("[\ufdd0\ud800-\udfff]")
"""That code point, and halves of surrogate pairs: they become U+FFFD."""
_RETRIED = (codes.SerializationFailure, codes.DeadlockDetected, codes.UniqueViolation, codes.ExclusionViolation)
"""Errors that mean another writer was quicker: unique indexes keep what two sessions share, such as identities."""
_AWAY = (
    codes.AdminShutdown,
    codes.CrashShutdown,
    codes.CannotConnectNow,
    codes.TooManyConnections,
    codes.IdleSessionTimeout,
    codes.IdleInTransactionSessionTimeout,
)
"""Errors that mean the server ended the connection, or takes none at the moment."""
_REFUSED = re.compile(
    r'authentication failed|no password supplied|no pg_hba\.conf entry|role ".*" does not exist|not permitted to log in'
)
_NO_DATABASE = re.compile(r'database ".*" does not exist')
"""Words of a server that does not connect, and will not as long as nothing is changed. In other languages it counts as
away.
"""


# ---- queries


class _Query(NamedTuple):
    sql: str
    arrays: frozenset[str | int]
    """Names or places of the parameters that are arrays."""
    adds_texts: bool
    """True if it adds rows to a table whose texts are indexed."""


_TOKEN = re.compile(
    r"'(?:[^']|'')*'"
    r"|(?P<percent>%)"
    r"|(?P<column>[^\s(]\S*) IN \(SELECT value FROM json_each\((?P<list>\?|:\w+)\)\)"
    r"|(?P<each>SELECT value FROM json_each\()"
    r"|(?P<place>\?)"
    r"|(?<!:):(?P<name>[a-z_]+)"
    r"|(?P<merge>INSERT INTO (?P<index>\w+) \((?P=index)\) VALUES \('optimize'\))"
    r"|(?P<hint> INDEXED BY \w+)"
    r"|\bIS (?P<isnot>NOT )?(?!NOT\b|NULL\b|TRUE\b|FALSE\b|DISTINCT\b)"
)
"""Parts of a query that PostgreSQL writes differently, and strings, in which nothing is replaced but `%`."""
_ADDS_TEXTS = re.compile(r"\s*INSERT INTO (?:messages|observations)\b")


@cache
def query_of(sql: str) -> _Query:
    """Return a query of the roles as psycopg takes it for PostgreSQL."""
    arrays: set[str | int] = set()
    places = 0

    def parameter(name: str) -> str:
        nonlocal places
        if name != "?":
            return f"%({name[1:]})s"
        places += 1
        return "%s"

    def replace(found: re.Match[str]) -> str:
        if found["percent"]:
            return "%%"
        if found["column"]:
            column = _TOKEN.sub(replace, found["column"])
            arrays.add(places if found["list"] == "?" else found["list"][1:])
            return f"{column} = ANY({parameter(found['list'])})"
        if found["each"]:
            return "SELECT value::bigint FROM json_each("
        if found["place"] or found["name"]:
            return parameter(found[0])
        if found["hint"]:
            return ""
        if found["merge"]:
            return "SELECT 1"
        if found[0].startswith("IS"):
            return "IS DISTINCT FROM " if found["isnot"] else "IS NOT DISTINCT FROM "
        return found[0].replace("%", "%%")

    rewritten = _TOKEN.sub(replace, sql)
    return _Query(sql=rewritten, arrays=frozenset(arrays), adds_texts=_ADDS_TEXTS.match(sql) is not None)


class Row(tuple[Any, ...]):
    """A row of a result: a tuple whose values can also be read by the names of their columns."""

    __slots__ = ()
    names: Mapping[str, int] = {}

    def keys(self) -> list[str]:
        return list(self.names)

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self.names[key] if isinstance(key, str) else key)


@cache
def _row_type(columns: tuple[str, ...]) -> Callable[[Sequence[Any]], Row]:
    names = {name: place for place, name in reversed(list(enumerate(columns)))}
    return type("Row", (Row,), {"__slots__": (), "names": names})


def _rows(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], Row]:
    """Return a function that makes a row of a cursor's result (`psycopg.rows.RowFactory`)."""
    return _row_type(tuple(column.name for column in cursor.description or ()))


class _NumberReader(Loader):
    """Reads `numeric` as the integer that it is: PostgreSQL gives this type to sums of integers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text or "N" in text else int(text)


class _TextReader(Loader):
    """Reads text, with the NULs that it had."""

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return text.replace(_STORED_NUL, _NUL) if _STORED_NUL in text else text


class Connection:
    """A connection with the part of `sqlite3.Connection` that the roles use, for their queries (see `query_of`).

    Values are put into queries by the client, so that PostgreSQL need not know the types of parameters.
    """

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self.beginning = ""
        """Statement that begins a transaction. It is sent with the transaction's first query, or not at all."""
        self.has_new_texts = False
        """True if the transaction may have added texts that are not in the index of words."""
        raw.cursor_factory = psycopg.ClientCursor
        raw.row_factory = _rows
        raw.adapters.register_loader("numeric", _NumberReader)
        raw.adapters.register_loader("text", _TextReader)

    def execute(self, sql: str, values: Values = ()) -> psycopg.Cursor[Row]:
        cursor = self.raw.cursor()
        self.run(cursor, sql, values)
        return cursor

    def run(self, cursor: psycopg.Cursor[Any], sql: str, values: Values) -> None:
        """Run a query on a cursor of this connection."""
        query = query_of(sql)
        bound = _parameters(values, query.arrays)
        self.has_new_texts |= query.adds_texts
        begun = bool(self.beginning)
        sent = f"{self.beginning}; {query.sql}" if begun else query.sql
        try:
            cursor.execute(sent, bound)
        except (UnicodeEncodeError, psycopg.DataError) as error:
            if isinstance(error, psycopg.DataError) and error.sqlstate is not None:
                raise
            cursor.execute(sent, _clean_values(bound))  # it was refused by the client
        if begun:
            self.beginning = ""
            cursor.nextset()

    def executemany(self, sql: str, rows: Iterable[Values]) -> None:
        """Run a statement for each row. Many are sent at once, because answers take time to arrive."""
        query, waiting = query_of(sql), iter(rows)
        with self.raw.cursor() as cursor:
            assert isinstance(cursor, psycopg.ClientCursor)
            while some := [
                _clean_values(_parameters(values, query.arrays)) for values in islice(waiting, _SENT_AT_ONCE)
            ]:
                self.raw.execute("; ".join(cursor.mogrify(query.sql, values) for values in some).encode())

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add rows in a single statement, or one by one if policies limit which rows the user sees: PostgreSQL has no
        COPY then. New texts among them are not indexed.
        """
        names = ", ".join(columns)
        (is_limited,) = self.execute("SELECT row_security_active(?)", (table,)).fetchone() or (True,)
        if is_limited:
            self.executemany(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", rows)
            return
        with self.raw.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copying:
            for row in rows:
                copying.write_row([*map(_clean, row)])

    def cursor(self) -> Cursor:
        """Return a cursor for many rows, which are plain tuples."""
        return Cursor(self)

    def close(self) -> None:
        self.raw.close()


class Cursor:
    """A cursor that reads rows as plain tuples."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._raw = connection.raw.cursor(row_factory=psycopg.rows.tuple_row)

    def execute(self, sql: str, values: Values = ()) -> None:
        self._connection.run(self._raw, sql, values)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return self._raw.fetchmany(size)


def _parameters(values: Values, arrays: frozenset[str | int]) -> Mapping[str, object] | Sequence[object]:
    """Return parameters in which the lists that are arrays have become lists."""
    if not arrays:
        return values if isinstance(values, Mapping) else list(values)
    if isinstance(values, Mapping):
        return {name: _list_value(value) if name in arrays else value for name, value in values.items()}
    return [_list_value(value) if place in arrays else value for place, value in enumerate(values)]


def _list_value(value: object) -> object:
    return list(value.values) if isinstance(value, ValueList) else value


def _clean_values(values: Mapping[str, object] | Sequence[object]) -> Mapping[str, object] | Sequence[object]:
    """Return parameters without what PostgreSQL cannot store in text."""
    if isinstance(values, Mapping):
        return {name: _clean(value) for name, value in values.items()}
    return list(map(_clean, values))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value).replace(_NUL, _STORED_NUL)
    return [_clean(each) for each in value] if isinstance(value, list) else value


# ---- an open database: its transactions and errors


class ServerDatabase(dialect.Database):
    """A connection to one database. `name` is the URL without its password.

    Writers of the same session wait for each other, and those of the whole store for all, up to `wait` seconds. Writing
    raises StoreLocked after that, and TryAgain if another writer was quicker or the server went away. It is then not
    known if the transaction was committed, but whoever repeats it finds out.
    """

    def __init__(self, connection: Connection, *, name: str, wait: float, author: Author | None = None) -> None:
        self.connection = connection  # type: ignore[assignment]
        self.path = name  # type: ignore[assignment]
        self.wait = wait
        self.author = author

    def close(self) -> None:
        self.connection.close()

    def om_errors(self) -> AbstractContextManager[None]:
        return om_errors(self.path, wait=self.wait)  # type: ignore[arg-type]

    def reading(self) -> AbstractContextManager[Any]:
        return _Transaction(self)

    def writing(self, of: str | None = None) -> AbstractContextManager[Any]:
        return _Transaction(self, lock=_LOCK_ALL if of is None else f"{_LOCK_SHARED}, {_locked(of)}")

    def renew_index(self) -> None:
        from omcli.postgres.search import renew  # noqa: PLC0415 - it needs this module

        with self.writing() as connection:
            renew(connection)


_LOCK_ALL = f"pg_advisory_xact_lock({_WRITING})"
_LOCK_SHARED = f"pg_advisory_xact_lock_shared({_WRITING})"
"""Locks of the whole store, until the transaction ends: for a writer that nobody else may write beside, and for the
others.
"""


def _locked(session: str) -> str:
    """Return the lock of a session: its writers wait for each other, so that its messages get their numbers in the
    order in which they become visible. A cursor that has passed a number can then miss no message before it.
    """
    number = int.from_bytes(sha256(session.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
    return f"pg_advisory_xact_lock({number})"


def begin_writing(connection: Connection, *, lock: str = _LOCK_ALL, wait: float) -> None:
    """Begin a transaction, and take a lock for which it waits up to `wait` seconds.

    Statements see what others have committed in the meantime. What they decide on is theirs alone: it belongs to the
    locked session, or a unique index of the table makes the second of two writers fail.
    """
    connection.raw.execute(
        f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {max(1, int(wait * 1000))};"
        f"SELECT {lock}; SET LOCAL lock_timeout = 0".encode()
    )


class _Transaction:
    """A transaction (see `sqlite.dialect`), which writes if it takes a `lock` first."""

    def __init__(self, database: ServerDatabase, *, lock: str | None = None) -> None:
        self._connection: Connection = database.connection  # type: ignore[assignment]
        self._name = str(database.path)
        self._wait = database.wait
        self._lock = lock

    def __enter__(self) -> Connection:
        try:
            if self._lock is not None:
                begin_writing(self._connection, lock=self._lock, wait=self._wait)
            else:
                self._connection.beginning = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        except BaseException as error:
            self._end(error)
            raise
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._lock is not None:
                if self._connection.has_new_texts:
                    from omcli.postgres.search import index_new  # noqa: PLC0415 - it needs this module

                    index_new(self._connection)
                self._connection.execute("COMMIT")
        except BaseException as failure:
            self._end(failure)
            raise
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Roll back the transaction if it is still open, and raise om's error instead of PostgreSQL's."""
        self._connection.beginning, self._connection.has_new_texts = "", False
        if self._connection.raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.OperationalError):  # the connection is lost
                self._connection.raw.rollback()
        if isinstance(error, codes.UndefinedTable):
            self._check_allowed()
        if isinstance(error, psycopg.Error) and (found := om_error(error, name=self._name, wait=self._wait)):
            raise found from error

    def _check_allowed(self) -> None:
        """Raise NotAllowed if the user may not use the schema any more: PostgreSQL then says that it has no tables."""
        with om_errors(self._name, wait=self._wait):
            self._connection.execute(f"SELECT '{SCHEMA}.schema_version'::regclass")


@contextmanager
def om_errors(name: str, *, wait: float) -> Iterator[None]:
    """Raise om's errors instead of PostgreSQL's inside the block."""
    try:
        yield
    except psycopg.Error as error:
        if (found := om_error(error, name=name, wait=wait)) is not None:
            raise found from error
        raise


def om_error(error: psycopg.Error, *, name: str, wait: float) -> OmError | None:
    """Return om's error for one of PostgreSQL, or None for a bug."""
    if isinstance(error, codes.LockNotAvailable):
        return StoreLocked(
            f"another process is writing to {name} (waited {wait:g} s)", hint="try again, or wait longer with --wait"
        )
    if isinstance(error, _RETRIED):
        return TryAgain(f"another process was writing to {name}", hint="nothing is lost; run it again")
    if isinstance(error, (codes.DiskFull, codes.OutOfMemory)):
        return CannotWrite(f"no space left to write to {name}", hint="everything stored before is intact")
    # While connecting, libpq gives no code, but only the words of the server.
    said = _first_line(error) if isinstance(error, psycopg.OperationalError) and error.sqlstate is None else ""
    if isinstance(error, (codes.InvalidAuthorizationSpecification, codes.InvalidPassword)) or _REFUSED.search(said):
        return NotAllowed(f"{name} refuses this user or password", hint="check the URL, or the password in ~/.pgpass")
    if isinstance(error, (codes.InsufficientPrivilege, codes.ReadOnlySqlTransaction)):
        return NotAllowed(f"{name} does not allow this: {_first_line(error)}", hint="ask its owner for the rights")
    if isinstance(error, codes.InvalidCatalogName) or _NO_DATABASE.search(said):
        return InputOutput(f"{name} does not exist", hint="`createdb` creates a database")
    if isinstance(error, _AWAY) or said:
        return TryAgain(f"{name} cannot be reached: {_first_line(error)}", hint="nothing is lost; run it again")
    if isinstance(error, psycopg.OperationalError):
        return InputOutput(f"reading or writing {name} failed: {_first_line(error)}", hint="ask the server's log")
    return None


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
