"""Bookmarks in the store: how far files were ingested."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.ports import Bookmarks
from omcli.memory.transcript import STAMP, Bookmark, IngestedFile, Origin
from omcli.sqlite import dialect
from omcli.sqlite.database import Table


class SqliteBookmarks(Table, Bookmarks):
    """Bookmarks in the table `bookmarks`."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        with self._database.reading() as connection:
            found = dialect.execute(
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
            dialect.execute(connection, "DELETE FROM bookmarks WHERE path = ?", (origin.path,))
            for mark in bookmarks:
                columns = {"path": origin.path, "place": mark.offset, "terms": origin.terms, "digest": mark.digest}
                dialect.insert(connection, "bookmarks", {**columns, "found": mark.found, "carried": mark.carried})

    def files(self) -> tuple[IngestedFile, ...]:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT path, terms, found FROM bookmarks AS b"
                " WHERE place = (SELECT max(place) FROM bookmarks AS of WHERE of.path = b.path) ORDER BY path"
            ).fetchall()
        return tuple(
            IngestedFile(
                origin=Origin(path=row["path"], terms=row["terms"]), stamp=dialect.parsed(row["found"]).get(STAMP)
            )
            for row in found
        )
