"""SQL that only SQLite understands, in one place; a store on another engine would have its own such module.

All other SQL is portable: the roles use `ON CONFLICT`, `CASE`, `coalesce`, and parameters by name or `?`. Files,
pragmas and locks, which are also specific to SQLite, are in `connection`, `database`, `backups` and `migrate`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from omcli.base.patterns import lazily

Columns = dict[str, object]
Values = Mapping[str, object] | Sequence[object]

NO_LIMIT = -1
"""The `LIMIT` that keeps all rows: only SQLite takes a negative one."""
_LONE_SURROGATE = lazily("[\ud800-\udfff]")
_FOLDED = "\u00df\u0130\u0149\u017f\u01f0\u1e96-\u1e9a\u1e9e\u212a\ufb00-\ufb06"
"""Letters that become or contain ASCII letters when case is ignored: sharp s, ligatures, the kelvin sign."""


def execute(connection: sqlite3.Connection, sql: str, values: Values = ()) -> sqlite3.Cursor:
    """Run a statement with values from outside. Half a surrogate pair, which SQLite does not take, becomes U+FFFD."""
    try:
        return connection.execute(sql, values)
    except UnicodeEncodeError:
        if isinstance(values, Mapping):
            return connection.execute(sql, {name: _clean_value(value) for name, value in values.items()})
        return connection.execute(sql, tuple(map(_clean_value, values)))


def insert(connection: sqlite3.Connection, table: str, columns: Columns) -> int:
    """Add a row and return its number. Every table with a number has it as rowid."""
    number = execute(connection, _insert_statement(table, tuple(columns)), tuple(columns.values())).lastrowid
    assert number is not None
    return number


@cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def update(connection: sqlite3.Connection, table: str, columns: Columns, *, number: int) -> None:
    """Change columns of the row with this number."""
    changes = ", ".join(f"{column} = :{column}" for column in columns)
    execute(connection, f"UPDATE {table} SET {changes} WHERE number = :number", {**columns, "number": number})


def as_list(values: Iterable[object]) -> str:
    """Values as one parameter, for `each` and `among`.

    SQLite may be limited to 999 parameters; besides, one prepared statement then serves lists of any length.
    """
    return compact_json(list(values))


def each(parameter: str = "?") -> str:
    """The query for the values of a list."""
    return f"SELECT value FROM json_each({parameter})"


def among(column: str, parameter: str = "?") -> str:
    """The condition that a column is one of a list."""
    return f"{column} IN ({each(parameter)})"


def list_of(column: str) -> str:
    """The values of a group as a list."""
    return f"json_group_array({column})"


def digest_query(images: str) -> str:
    """The query for the digests of images, `images` being a query for lists of them."""
    return f"SELECT image.value ->> 'sha256' FROM ({images}) AS lists, json_each(lists.images) AS image"


def digest_text(column: str) -> str:
    """Bytes as hexadecimal text: a list holds no bytes."""
    return f"lower(hex({column}))"


def same(one: str, other: str) -> str:
    """The condition that two values are equal, or both NULL: `IS NOT DISTINCT FROM` comes with SQLite 3.39."""
    return f"{one} IS {other}"


def not_same(one: str, other: str) -> str:
    """The opposite of `same`."""
    return f"{one} IS NOT {other}"


def without_index(column: str) -> str:
    """A column without its index, so that the planner takes the one of another condition."""
    return f"+{column}"


def by_index(table: str, index: str) -> str:
    """A table that is read by one index, if the planner would choose a worse one."""
    return f"{table} INDEXED BY {index}"


def columns_of(connection: sqlite3.Connection, table: str) -> str:
    """All columns of a table, including those that later migrations add."""
    return ", ".join(name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def may_match(columns: Sequence[str], text: str) -> tuple[str, dict[str, str]]:
    """Return a condition, with its values, that holds if one of the columns contains `text`, and seldom otherwise.

    It searches for the longest word of ASCII letters and digits, ignoring case, since `lower` knows only ASCII. Rows
    with letters that need case folding always match, and so do those with a NUL, where `instr` stops.
    """
    words = sorted(re.findall("[a-z0-9]+", text), key=len)
    if not words:
        return "1", {}
    contains = "(instr(lower({0}), :word) OR {0} GLOB :folded OR instr({0}, char(0)))"
    return f"({' OR '.join(contains.format(column) for column in columns)})", {
        "word": words[-1],
        "folded": f"*[{_FOLDED}]*",
    }


def compact_json(value: object) -> str:
    """A value as JSON text."""
    import json  # noqa: PLC0415 - a pack is made without, if no row has tags

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parsed(text: str) -> Any:
    """A value that was stored as JSON text."""
    import json  # noqa: PLC0415

    return json.loads(text)


def _clean_value(value: object) -> object:
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
