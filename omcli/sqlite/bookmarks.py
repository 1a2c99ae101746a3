"""Bookmarks in the store: how far files were taken in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from omcli.sqlite import rows

if TYPE_CHECKING:
    from omcli.memory.bookmark import Bookmark, Origin, TakenIn


def find(connection: sqlite3.Connection, origin: Origin) -> tuple[Bookmark, ...]:
    """The bookmarks of a file that is read in the same way, in its order."""
    from omcli.memory.bookmark import Bookmark  # noqa: PLC0415 - only who reads files waits for it

    found = rows.execute(
        connection,
        "SELECT place, digest, found, carried FROM bookmarks WHERE path = ? AND terms = ? ORDER BY place",
        (origin.path, origin.terms),
    )
    return tuple(
        Bookmark(offset=row["place"], digest=row["digest"], found=row["found"], carried=row["carried"]) for row in found
    )


def files(connection: sqlite3.Connection) -> tuple[TakenIn, ...]:
    """The files that have bookmarks, with the stamp of the last of each."""
    from omcli.memory.bookmark import STAMP, Origin, TakenIn  # noqa: PLC0415 - only who reads files waits for it

    found = rows.execute(
        connection,
        "SELECT path, terms, json_extract(found, ?) AS stamp FROM bookmarks AS b"
        " WHERE place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path) ORDER BY path",
        (f"$.{STAMP}",),
    )
    return tuple(TakenIn(origin=Origin(path=row["path"], terms=row["terms"]), stamp=row["stamp"]) for row in found)


def put(connection: sqlite3.Connection, origin: Origin, bookmarks: Iterable[Bookmark]) -> None:
    """Puts bookmarks into a file in place of those it had."""
    rows.execute(connection, "DELETE FROM bookmarks WHERE path = ?", (origin.path,))
    for bookmark in bookmarks:
        columns = {"path": origin.path, "place": bookmark.offset, "terms": origin.terms, "digest": bookmark.digest}
        rows.insert(connection, "bookmarks", {**columns, "found": bookmark.found, "carried": bookmark.carried})
