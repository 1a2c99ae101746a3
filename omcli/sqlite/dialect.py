"""SQL that only SQLite understands, transactions, and translation of SQLite's errors.

A store on another engine would have its own version of this module and of `search`. Most other SQL is portable (`ON
CONFLICT`, `CASE`, `coalesce`, parameters by name or `?`). Files and pragmas are in `connection` and `backups`.
"""

from __future__ import annotations

import sqlite3
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from omcli.base import errors, ignore, lazily, telling
from omcli.base.errors import CannotWrite, InputOutput, OmError, StoreDamaged, StoreLocked, TryAgain, UnusableStore
from omcli.memory.session import Author

_Row = TypeVar("_Row")
Columns = dict[str, object]
Values = Mapping[str, object] | Sequence[object]
Translate = Callable[[sqlite3.Error], OmError | None]
PAGE = 500
"""Number of rows read at once from a whole table."""
_ADDED_AT_ONCE = 32
"""Number of rows that a statement adds: of messages and observations, as many as fit into 999 parameters."""
_NUMBERS = {"messages": "seq", "observations": "position", "bookmarks": "place"}
"""Columns with the numbers of rows that are not called `number`."""

NOWHERE = Path("(temporary store)")
"""Path shown for a store without a file."""
NO_LIMIT = (1 << 63) - 1
"""The `LIMIT` that keeps all rows."""
_FIRST_CJK = "\u3040"
_LETTERS = lazily(r"[A-Za-z]+")
_HUMP = lazily(r"[a-z][A-Z]")
_BEFORE_HUMP = lazily(r"(?<=[a-z])(?=[A-Z])")
_LONG_WORD = lazily(r"[A-Za-z0-9_+/=]{300,}")
_LONE_SURROGATE = lazily("[\ud800-\udfff]")
BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_UNDECODABLE = "Could not decode to UTF-8"
"""Beginning of the error that Python raises, without a code, for text in a store that is not UTF-8."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT})
_OF_INDEX = frozenset({sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_CONSTRAINT})
"""Codes of errors of FTS5. CONSTRAINT without an extended code is one; om's own constraints give extended codes."""
_NO_INDEX = frozenset({sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP})
"""Errors that mean SQLite cannot create the index of the write-ahead log, for example on a full disk."""


def prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Give a connection the function of the index of words (`om_words`), and `telling` for a person. Return it."""
    connection.create_function("om_words", 1, index_text, deterministic=True)
    report_progress(connection, telling.get())
    return connection


def report_progress(connection: sqlite3.Connection, tell: Callable[[], object]) -> None:
    """Have statements call a function about every millisecond, if a person waits."""

    def go_on() -> None:
        try:
            tell()
        except BaseException as error:
            _raised[get_ident()] = error
            raise

    if telling.get() is not ignore:
        connection.set_progress_handler(go_on, 100_000)


_ENDED = ("user-defined function raised exception", "interrupted")
"""Messages of SQLite if one of its calls of Python was ended by an exception (see `interrupt_of`)."""
_raised: dict[int, BaseException] = {}
"""Exceptions that ended such a call, by thread: SQLite only says that a function failed."""


def interrupt_of(error: sqlite3.Error) -> BaseException | None:
    """Return the exception that ended a call of Python, by default Ctrl-C, or None if the error has another cause."""
    raised = _raised.pop(get_ident(), None) or (KeyboardInterrupt() if str(error) in _ENDED else None)
    return raised if _code(error) in (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERRUPT) else None


def index_text(text: str) -> str:
    """Return text as it is indexed: words longer than any name (such as encoded files) are left out, parts of names in
    camel case are added, and scripts without spaces are split into pairs of characters (see `split_cjk`).

    Words are deleted from the index by the same function, so changing it needs a migration that fills the index again.
    """
    try:
        text = _LONG_WORD.sub(" ", text)
        if _HUMP.search(text):
            names = sorted(word for word in set(_LETTERS.findall(text)) if _HUMP.search(word))
            text = f"{text} {_BEFORE_HUMP.sub(' ', ' '.join(names))}"
        if text.isascii() or max(text) < _FIRST_CJK:
            return text
        from omcli.text.terms import split_cjk  # noqa: PLC0415 - most text has no such characters

        return split_cjk(text)
    except BaseException as error:
        _raised[get_ident()] = error
        raise


def execute(connection: sqlite3.Connection, sql: str, values: Values = ()) -> sqlite3.Cursor:
    """Run a statement with values from outside. Halves of surrogate pairs, which SQLite rejects, become U+FFFD."""
    try:
        return connection.execute(sql, values)
    except UnicodeEncodeError:
        if isinstance(values, Mapping):
            return connection.execute(sql, {name: _clean_value(value) for name, value in values.items()})
        return connection.execute(sql, tuple(map(_clean_value, values)))


def insert(connection: sqlite3.Connection, table: str, columns: Columns) -> int:
    """Add a row and return its number."""
    return insert_all(connection, table, [columns])[0]


def insert_all(connection: sqlite3.Connection, table: str, rows: Sequence[Columns]) -> list[int]:
    """Add rows with the same columns and return their numbers.

    A statement adds many rows, because FTS5 writes the words that triggers give it to the file at every statement.
    """
    numbers: list[int] = []
    for at in range(0, len(rows), _ADDED_AT_ONCE):
        some = rows[at : at + _ADDED_AT_ONCE]
        values = tuple([value for columns in some for value in columns.values()])
        made = execute(connection, _insert_statement(table, tuple(some[0]), len(some)), values)
        numbers += [number for (number,) in made.fetchall()]
    return numbers


@cache
def _insert_statement(table: str, columns: tuple[str, ...], rows: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    number = _NUMBERS.get(table, "number")
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)} RETURNING {number}"


def update(connection: sqlite3.Connection, table: str, columns: Columns, *, number: int) -> None:
    changes = ", ".join(f"{column} = :{column}" for column in columns)
    execute(connection, f"UPDATE {table} SET {changes} WHERE number = :number", {**columns, "number": number})


class ValueList(str):
    """A list as a parameter: its JSON, which SQLite reads, and its `values`, for an engine with arrays."""

    values: tuple[object, ...]
    __slots__ = ("values",)


def as_list(values: Iterable[object]) -> ValueList:
    """Return the values as a single parameter for `each` and `among`: SQLite may be limited to 999 parameters, and one
    prepared statement then serves lists of any length.
    """
    import json  # noqa: PLC0415

    found = tuple(values)
    listed = ValueList(json.dumps(found))
    listed.values = found
    return listed


def each(parameter: str = "?") -> str:
    """Return the query for the values of a list."""
    return f"SELECT value FROM json_each({parameter})"


def among(column: str, parameter: str = "?") -> str:
    """Return the condition that a column's value is in a list."""
    return f"{column} IN ({each(parameter)})"


def list_of(column: str) -> str:
    """Return the expression that collects a column's values in a group into a list."""
    return f"json_group_array({column})"


def merge_index(connection: sqlite3.Connection, table: str) -> None:
    """Remove deleted words from the file of an index, in which they stay until FTS5 merges segments."""
    connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


INDEXES = {
    "message_words": ("messages", "seq, om_words(coalesce(name || ' ', '') || text)"),
    "row_words": ("observations", "position, om_words(text)"),
}
"""The indexes of words, each with its table and with the numbers and texts that it is made from."""
_AS_CREATED = """
    INSERT OR REPLACE INTO {0}_config VALUES ('version', 4);
    INSERT OR REPLACE INTO {0}_data VALUES (1, x''), (10, x'00000000000000')
"""
"""Statements that bring the tables in which FTS5 keeps an index into a state that it can open."""


def fill_index(connection: sqlite3.Connection, table: str) -> None:
    """Rebuild an index from the messages or rows that it is for, however damaged it is."""
    try:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    except sqlite3.Error:
        for statement in _AS_CREATED.format(table).split(";"):
            connection.execute(statement)
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
    source, columns = INDEXES[table]
    connection.execute(f"INSERT INTO {table} (rowid, text) SELECT {columns} FROM {source}")


def has_text(column: str) -> str:
    """Return the condition that a text has more than spaces, tabs and line ends."""
    return f"trim({column}, ' \t\n\r') <> ''"


def digest_query(images: str) -> str:
    """Return the query for image digests. `images` is a query for JSON lists of images."""
    return f"SELECT image.value ->> 'sha256' FROM ({images}) AS lists, json_each(lists.images) AS image"


def digest_text(column: str) -> str:
    """Return the expression for bytes as hexadecimal text, because lists cannot hold bytes."""
    return f"lower(hex({column}))"


def same(one: str, other: str) -> str:
    """Return the condition that two values are equal or both NULL. `IS NOT DISTINCT FROM` needs SQLite 3.39."""
    return f"{one} IS {other}"


def not_same(one: str, other: str) -> str:
    return f"{one} IS NOT {other}"


def without_index(column: str) -> str:
    """Return a column in a form that uses no index, so that the planner uses the index of another condition."""
    return f"+{column}"


def by_index(table: str, index: str) -> str:
    """Return a table that SQLite must read by this index, because its planner would choose a worse one."""
    return f"{table} INDEXED BY {index}"


def with_word(table: str) -> tuple[str, str, str]:
    """Return an index of words, its column with the numbers of texts, and a condition with a parameter for a query."""
    return table, "rowid", f"{table} MATCH ?"


HAS_FOLDED = "({0} GLOB :folded OR instr({0}, char(0)))"
"""Condition for a column with characters that `:folded` lists, or with a NUL."""


def columns_of(connection: sqlite3.Connection, table: str) -> str:
    """Return all columns of a table, including those added by later migrations."""
    return ", ".join(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


class Damaged(sqlite3.DatabaseError):
    """A cell has a value that om does not write."""


def _clean_value(value: object) -> object:
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


# ---- an open file: its connection, transactions and errors


class Database:
    """A connection of an author to one file. Writing raises StoreLocked if another process holds the lock for longer
    than `wait` seconds, InputOutput if the disk fails or the store is damaged, and TryAgain if the index was rebuilt.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, path: Path, wait: float, author: Author | None = None
    ) -> None:
        connection.row_factory = sqlite3.Row
        self.connection = connection
        self.path = path
        self.wait = wait
        self.author = author

    def close(self) -> None:
        with self.om_errors():
            self.connection.close()

    def om_errors(self) -> AbstractContextManager[None]:
        """Raise om's errors instead of SQLite's inside the block."""
        return om_errors(self.path, wait=self.wait)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Begin a transaction that reads the state at a single moment."""
        return _Transaction(self.connection, as_om_error=self._om_error)

    def writing(self, of: str | None = None) -> AbstractContextManager[sqlite3.Connection]:  # noqa: ARG002
        """Begin a transaction that writes everything or nothing. `of` is the session, if it writes only to one: SQLite
        has one writer at a time, but another engine need not let writers of different sessions wait for each other.
        """
        return _Transaction(self.connection, writes=True, wait=self.wait, as_om_error=self._om_error_of_writing)

    def renew_index(self) -> None:
        """Make the index of words again from the messages and rows."""
        with _Transaction(self.connection, writes=True, wait=self.wait, as_om_error=self._om_error) as connection:
            for table in INDEXES:
                fill_index(connection, table)

    def read_all(
        self,
        read: Callable[[sqlite3.Connection, int], Sequence[_Row]],
        *,
        place: Callable[[_Row], int],
        after: int = 0,
        whole: bool = False,
    ) -> Iterator[_Row]:
        """Yield the rows after a position, page by page. No transaction is open while the caller handles a row.

        `place` returns a row's position. `whole` says that `read` returns all rows at once.
        """
        while True:
            with self.reading() as connection:
                page = read(connection, after)
            yield from page
            if whole or len(page) < PAGE:
                return
            after = place(page[-1])

    def _om_error_of_writing(self, error: sqlite3.Error) -> OmError | None:
        """Return the error to raise. A damaged index of words is rebuilt, because no row can be written otherwise."""
        found = self._om_error(error)
        if not isinstance(found, errors.IndexDamaged) or self.path == NOWHERE:
            return found  # rebuilding that of a private copy would mend nothing
        self.renew_index()
        return TryAgain("the index of words was damaged and has been rebuilt", hint="nothing is lost; run it again")

    def _om_error(self, error: sqlite3.Error) -> OmError | None:
        return om_error(error, path=self.path, wait=self.wait)


class Table:
    """Base class of a role, whose methods work on one or more tables. Each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database


def writing(connection: sqlite3.Connection, *, wait: float = 0) -> AbstractContextManager[sqlite3.Connection]:
    """Begin a transaction that writes everything or nothing and raises SQLite's own errors."""
    return _Transaction(connection, writes=True, wait=wait)


class _Transaction:
    """A transaction. At the end of its block it is committed if it writes; on any error it is rolled back.

    It is not a generator, because Ctrl-C between two lines of one would leave it open until garbage collection. A
    reading one must not write: if another process has written since it began, a write would fail at once, regardless of
    the time it may wait. A writing transaction takes the write lock first.
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
        try:  # a signal during BEGIN is raised only once the transaction is open
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
        """Take the write lock, retrying until the given time. Each attempt lasts up to the connection's timeout."""
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= until:
                    raise
            else:
                return

    def _end(self, error: BaseException | None) -> None:
        """Roll back the transaction if it is still open, and raise om's error instead of SQLite's."""
        try:
            self._connection.rollback()
        except sqlite3.Error as failure:
            error = failure if error is None else error
        if isinstance(error, sqlite3.Error) and (translated := self._as_om_error(error)) is not None:
            raise translated from error


def is_busy(error: sqlite3.Error) -> bool:
    """Return True if another process holds a lock, so that waiting helps."""
    return _code(error) in BUSY


def cannot_open(error: sqlite3.Error) -> bool:
    """Return True if the file, or one of those SQLite keeps next to it, could not be opened or created."""
    return _code(error) in {sqlite3.SQLITE_CANTOPEN, *_UNWRITABLE} or error.sqlite_errorcode in _NO_INDEX


def om_error(error: sqlite3.Error, *, path: Path, wait: float, reading: bool = False) -> OmError | None:
    """Return om's error for one of SQLite, or None for a bug. Raise the exception that ended a call of Python."""
    if (interrupt := interrupt_of(error)) is not None:
        raise interrupt from None
    code = _code(error)
    if code in BUSY:
        return StoreLocked(
            f"another process is writing to {path} (waited {wait:g} s)", hint="try again, or wait longer with --wait"
        )
    if code == sqlite3.SQLITE_FULL:
        return CannotWrite(
            f"no space left to write to {path}",
            hint="free some space on that disk and try again; everything stored before is intact",
        )
    if code in _UNWRITABLE:
        return InputOutput(f"{path} cannot be written", hint="check the permissions of the file and of its folder")
    if code == sqlite3.SQLITE_IOERR:
        return CannotWrite(f"reading or writing {path} failed: {error}", hint="check the disk and its free space")
    if is_of_index(error):
        return index_damaged(path)
    if code in _DAMAGED or isinstance(error, Damaged) or str(error).startswith(_UNDECODABLE):
        return StoreDamaged(f"{path} is damaged: {error}", hint="`om restore` puts a backup in its place, and keeps it")
    if code == sqlite3.SQLITE_NOTADB:
        return UnusableStore(f"{path} is not a store", hint="name another file with --db")
    if code == sqlite3.SQLITE_CANTOPEN:
        kind = InputOutput if reading or path.is_file() else errors.CannotCreate
        return kind(f"{path} cannot be opened", hint="check the permissions of the file and of its folder")
    return None


def is_of_index(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) in _OF_INDEX or str(error).startswith("invalid fts5 file format")


def index_damaged(path: Path) -> errors.IndexDamaged:
    return errors.IndexDamaged(f"the index of words in {path} is damaged", hint="`om recall` rebuilds it")


@contextmanager
def om_errors(path: Path, *, wait: float, reading: bool = False) -> Iterator[None]:
    """Raise om's errors instead of SQLite's inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        if (found := om_error(error, path=path, wait=wait, reading=reading)) is not None:
            raise found from error
        raise


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code, or 0 if Python's `sqlite3` module raised the error rather than SQLite."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
