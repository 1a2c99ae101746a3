"""Permanent deletion of hidden rows, messages and titles."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from omcli.sqlite import codec, dialect, messages, search, soft_delete, vectors

_REVERSIBLE = "('prune', 'forget')"
"""Verbs of operations that can be undone even if some of their rows are deleted."""
ROW_TABLES = ("observations", "aside_observations")
_BY_THEM = dialect.among("operation", ":which")
_HELD_BY_THEM = f"seq IN (SELECT message FROM message_holds WHERE {_BY_THEM}) AND NOT erased"


def erase(
    connection: sqlite3.Connection, numbers: Iterable[int], *, now: str, besides: Iterable[bytes] = ()
) -> tuple[int, int]:
    """Delete everything that these prune and forget operations hid, and rows that the deleted ones had replaced, with
    their words in the index and their vectors, and make the operations final. Return the numbers of deleted rows and
    counted messages.

    `besides` are ids of additional rows to delete. Buffered batches made from the messages or containing forgotten text
    are deleted too. If anything was deleted, so are all bookmarks, because they may contain some of the text.
    """
    which = dialect.as_list(numbers)
    _erase_buffered(connection, which)
    erased_rows, touched = _erase_rows(connection, _rows_to_erase(connection, which, besides))
    erased_messages, holding = _erase_messages(connection, which)
    titles, entitled = _erase_titles(connection, which)
    _settle(connection, which, touched | holding | entitled, now=now)
    if erased_rows or holding or titles:
        clean(connection)
    return erased_rows, erased_messages


def clean(connection: sqlite3.Connection) -> None:
    """Delete bookmarks, index entries and vectors that may still contain words of erased rows and messages."""
    connection.execute("DELETE FROM bookmarks")
    search.merge(connection)
    vectors.drop_unused(connection)


def preview(connection: sqlite3.Connection, numbers: Iterable[int]) -> tuple[int, int]:
    """Return the numbers of rows and counted messages that `erase` would delete."""
    which = dialect.as_list(numbers)
    (counted,) = connection.execute(
        f"SELECT count(*) FILTER (WHERE counted) FROM aside_messages WHERE {_HELD_BY_THEM}", {"which": which}
    ).fetchone()
    return len(_rows_to_erase(connection, which, ())), counted


def _rows_to_erase(connection: sqlite3.Connection, which: str, besides: Iterable[bytes]) -> set[bytes]:
    """Return the ids of the rows to delete: those that the operations hid, those in `besides`, and all rows that these
    replaced, directly or indirectly.
    """
    found = connection.execute(
        f"SELECT id FROM observations WHERE {dialect.among('hidden_by', ':which')}"
        " UNION ALL SELECT id FROM aside_observations AS o JOIN row_holds AS h ON h.position = o.position"
        f" WHERE {dialect.among('h.operation', ':which')}",
        {"which": which},
    )
    waiting = [*besides, *(identity for (identity,) in found)]
    before: dict[bytes, list[bytes]] = defaultdict(list)
    if waiting:
        for identity, successor in connection.execute(
            "SELECT id, superseded_by FROM observations WHERE superseded_by IS NOT NULL"
            " UNION ALL SELECT id, superseded_by FROM aside_observations WHERE superseded_by IS NOT NULL"
        ):
            before[successor].append(identity)
    gone: set[bytes] = set()
    while waiting:
        identity = waiting.pop()
        if identity not in gone:
            gone.add(identity)
            waiting += before[identity]
    return gone


def _erase_rows(connection: sqlite3.Connection, gone: set[bytes]) -> tuple[int, set[int]]:
    operations: set[int] = set()
    erased = 0
    for identity in gone:
        for table in ROW_TABLES:
            for position, *numbers in connection.execute(
                f"SELECT position, made_by, hidden_by FROM {table} WHERE {codec.id_is()}", codec.id_values(identity)
            ).fetchall():
                held = connection.execute("SELECT operation FROM row_holds WHERE position = ?", (position,))
                operations.update(number for number in (*numbers, *(each for (each,) in held)) if number)
        erased += erase_row(connection, identity)
    return erased, operations


def erase_row(connection: sqlite3.Connection, identity: bytes) -> int:
    """Delete a row, noting its id so that no other store brings it back. Return the number of deleted rows, 0 or 1."""
    connection.execute("INSERT INTO erased_rows (id) VALUES (?) ON CONFLICT DO NOTHING", (identity,))
    deletions = (f"DELETE FROM {table} WHERE {codec.id_is()}" for table in ROW_TABLES)
    return sum(connection.execute(each, codec.id_values(identity)).rowcount for each in deletions)


def _settle(connection: sqlite3.Connection, which: str, touched: set[int], *, now: str) -> None:
    """Mark the erased operations as final, and other operations that can no longer be undone.

    Other prune and forget operations can be undone as long as anything they hid is left.
    """
    is_open = "UPDATE operations SET final_at = :now WHERE undone_by IS NULL AND final_at IS NULL"
    connection.execute(f"{is_open} AND {dialect.among('number', ':which')}", {"now": now, "which": which})
    whole = f"SELECT coalesce(part_of, number) FROM operations WHERE {dialect.among('number', ':touched')}"
    connection.execute(
        f"{is_open} AND verb <> 'undo' AND number IN ({whole})"
        f" AND (verb NOT IN {_REVERSIBLE} OR NOT"
        " (EXISTS (SELECT 1 FROM observations WHERE hidden_by = number)"
        " OR EXISTS (SELECT 1 FROM aside_observations WHERE hidden_by = number)"
        " OR EXISTS (SELECT 1 FROM row_holds WHERE operation = number)"
        " OR EXISTS (SELECT 1 FROM aside_titles WHERE put_by = number)"
        " OR EXISTS (SELECT 1 FROM message_holds JOIN aside_messages ON seq = message"
        " WHERE operation = number AND NOT erased)))",
        {"now": now, "touched": dialect.as_list(sorted(touched))},
    )


def _erase_messages(connection: sqlite3.Connection, which: str) -> tuple[int, set[int]]:
    """Reduce the messages that the operations hid to stubs. Delete their images, unless another pending message has
    them, and the buffered batches with any of these messages.

    Return the number of counted messages and the operations that hid any of them.
    """
    values = {"which": which}
    found = connection.execute(
        f"SELECT seq, images, counted FROM aside_messages WHERE {_HELD_BY_THEM}", values
    ).fetchall()
    if not found:
        return 0, set()
    connection.execute(
        f"DELETE FROM blocks WHERE EXISTS (SELECT 1 FROM aside_messages AS m WHERE {_HELD_BY_THEM}"
        " AND m.session = blocks.session AND m.seq > blocks.after AND m.seq <= blocks.through)",
        values,
    )
    connection.execute(
        f"UPDATE aside_messages SET {soft_delete.STUB} WHERE {_HELD_BY_THEM}",
        values,
    )
    gone = {"gone": dialect.as_list(seq for seq, _, _ in found)}
    connection.execute(f"DELETE FROM passed_over WHERE {dialect.among('message', ':gone')}", gone)
    messages.drop_images(
        connection, (image["sha256"] for _, images, _ in found if images for image in codec.parsed(images))
    )
    holding = connection.execute(
        f"SELECT DISTINCT operation FROM message_holds WHERE {dialect.among('message', ':gone')}", gone
    )
    return sum(bool(counted) for _, _, counted in found), {number for (number,) in holding}


def _erase_titles(connection: sqlite3.Connection, which: str) -> tuple[int, set[int]]:
    same = "other.session = t.session AND other.title = t.title"
    by_them = dialect.among("t.put_by")
    found = connection.execute(
        f"SELECT DISTINCT other.put_by, other.session, other.title FROM aside_titles AS t"
        f" JOIN aside_titles AS other ON {same} WHERE {by_them}",
        (which,),
    ).fetchall()
    connection.executemany("DELETE FROM aside_titles WHERE put_by = ? AND session = ? AND title = ?", found)
    return len(found), {number for number, _, _ in found}


def _erase_buffered(connection: sqlite3.Connection, which: str) -> None:
    """Delete buffered batches that contain text forgotten by these operations. Their messages are observed again."""
    from omcli.sqlite import buffer  # noqa: PLC0415 - most stores have no buffered batches

    found = connection.execute(
        "SELECT t.digest FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        f" WHERE o.undone_by IS NULL AND {dialect.among('t.operation')}",
        (which,),
    )
    digests = frozenset(digest for (digest,) in found)
    if digests:
        buffer.erase_forgotten(connection, digests)
