"""Deleting for good what operations took out of sight."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable

from omcli.sqlite import rows

_REVERSIBLE = "('prune', 'forget')"
"""Verbs whose operations can be taken back for what is left of them."""


def erase(
    connection: sqlite3.Connection, numbers: Iterable[int], *, now: str, besides: Iterable[bytes] = ()
) -> tuple[int, int]:
    """Deletes what prunings and forgettings took out of sight; gives how many rows and messages that were.

    `besides` are ids of rows that go as well. Bookmarks go with it, and blocks that were made of the messages, or say
    what the rows do: what they carry may tell of it.
    """
    which = rows.compact_json(list(numbers))
    gone = _doomed(connection, which, besides)
    erased_rows = _erase_rows(connection, gone, now=now)
    erased_messages = _erase_messages(connection, which)
    by_them = "put_by IN (SELECT value FROM json_each(?))"
    titles = connection.execute(f"DELETE FROM aside_titles WHERE {by_them}", (which,)).rowcount
    connection.execute(
        "UPDATE operations SET final_at = ? WHERE undone_by IS NULL AND final_at IS NULL"
        " AND number IN (SELECT value FROM json_each(?))",
        (now, which),
    )
    _erase_blocks(connection, which)
    if erased_rows or erased_messages or titles:
        connection.execute("DELETE FROM bookmarks")
    return erased_rows, erased_messages


def _doomed(connection: sqlite3.Connection, which: str, besides: Iterable[bytes]) -> set[bytes]:
    """Ids of the rows to delete: what operations hid or put aside, and what those rows took the place of."""
    by_them = "IN (SELECT value FROM json_each(:which))"
    found = connection.execute(
        f"SELECT id FROM observations WHERE hidden_by {by_them}"
        f" UNION ALL SELECT id FROM aside_observations WHERE put_by {by_them}",
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


def _erase_rows(connection: sqlite3.Connection, gone: set[bytes], *, now: str) -> int:
    """Deletes rows; operations that would bring back but a part of what they hid, or made, are final from now on."""
    operations: set[int] = set()
    erased = 0
    for identity in gone:
        for table, mark in (("observations", "hidden_by"), ("aside_observations", "put_by")):
            found = f"FROM {table} WHERE substr(id, 13) = ? AND id = ?"
            key = (identity[12:], identity)
            for numbers in connection.execute(f"SELECT made_by, hidden_by, {mark} {found}", key).fetchall():
                operations.update(number for number in numbers if number)
            erased += connection.execute(f"DELETE {found}", key).rowcount
    whole = "SELECT coalesce(part_of, number) FROM operations WHERE number IN (SELECT value FROM json_each(:which))"
    connection.execute(
        "UPDATE operations SET final_at = :now WHERE undone_by IS NULL AND final_at IS NULL AND verb <> 'undo'"
        f" AND number IN ({whole})"
        f" AND (verb NOT IN {_REVERSIBLE} OR NOT"
        " (EXISTS (SELECT 1 FROM observations WHERE hidden_by = number)"
        " OR EXISTS (SELECT 1 FROM aside_observations WHERE number IN (put_by, hidden_by))"
        " OR EXISTS (SELECT 1 FROM aside_messages WHERE put_by = number AND NOT erased)))",
        {"now": now, "which": rows.compact_json(sorted(operations))},
    )
    return erased


def _erase_messages(connection: sqlite3.Connection, which: str) -> int:
    """Leaves of messages only stubs, and none of their images that no other message waits with."""
    by_them = "put_by IN (SELECT value FROM json_each(?)) AND NOT erased"
    images = connection.execute(
        f"SELECT DISTINCT image.value ->> 'sha256' FROM aside_messages, json_each(images) AS image WHERE {by_them}",
        (which,),
    ).fetchall()
    for (digest,) in images:
        connection.execute(
            "DELETE FROM pictures WHERE sha256 = ? AND NOT EXISTS"
            " (SELECT 1 FROM messages WHERE images IS NOT NULL AND instr(images, ?))",
            (bytes.fromhex(digest), digest),
        )
    connection.execute(
        "DELETE FROM blocks WHERE EXISTS (SELECT 1 FROM aside_messages AS m WHERE m.session = blocks.session"
        " AND m.seq > blocks.after AND m.seq <= blocks.through AND NOT m.erased"
        " AND m.put_by IN (SELECT value FROM json_each(?)))",
        (which,),
    )
    return connection.execute(
        "UPDATE aside_messages SET erased = 1, text = '', at = NULL, utc_offset = NULL, name = NULL, cwd = NULL,"
        f" tool = NULL, call_id = NULL, failed = NULL, exit_code = NULL, images = NULL WHERE {by_them}",
        (which,),
    ).rowcount


def _erase_blocks(connection: sqlite3.Connection, which: str) -> None:
    """Deletes the blocks that say what these operations left tombstones of; their messages are observed again."""
    from omcli.sqlite import blocks  # noqa: PLC0415 - most stores have none

    found = connection.execute(
        "SELECT t.digest FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
        " WHERE o.undone_by IS NULL AND t.operation IN (SELECT value FROM json_each(?))",
        (which,),
    )
    digests = frozenset(digest for (digest,) in found)
    if digests:
        blocks.erase_told(connection, digests)
