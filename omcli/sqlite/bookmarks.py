"""Bookmarks in the store: how far files were ingested."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.ports import Bookmarks
from omcli.memory.transcript import STAMP, Bookmark, Origin, TakenIn
from omcli.sqlite import codec
from omcli.sqlite.database import Table


class SqliteBookmarks(Table, Bookmarks):
    """Bookmarks in the table `bookmarks`."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        with self._database.reading() as connection:
            found = codec.execute(
                connection,
                "SELECT place, digest, found, carried FROM bookmarks WHERE path = ? AND terms = ? ORDER BY place",
                (origin.path, origin.terms),
            ).fetchall()
        return tuple(
            Bookmark(offset=row["place"], digest=row["digest"], found=row["found"], carried=row["carried"])
            for row in found
        )

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        with self._database.writing() as connection:
            codec.execute(connection, "DELETE FROM bookmarks WHERE path = ?", (origin.path,))
            for mark in bookmarks:
                columns = {"path": origin.path, "place": mark.offset, "terms": origin.terms, "digest": mark.digest}
                codec.insert(connection, "bookmarks", {**columns, "found": mark.found, "carried": mark.carried})

    def files(self) -> tuple[TakenIn, ...]:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT path, terms, json_extract(found, ?) AS stamp FROM bookmarks AS b"
                " WHERE place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path) ORDER BY path",
                (f"$.{STAMP}",),
            ).fetchall()
        return tuple(TakenIn(origin=Origin(path=row["path"], terms=row["terms"]), stamp=row["stamp"]) for row in found)
