"""State of a merge: operations that both stores know, and the stores in which things arrived first."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from omcli.memory.changes import MemoryRecord
from omcli.sqlite import dialect
from omcli.sqlite.records import operation_ids
from omcli.sqlite.stamps import OWN, store_ids

LAST = "~"
"""Sorts after every instant and id."""


class MergeState:
    """The state of one merge, in one transaction."""

    def __init__(self, connection: sqlite3.Connection, *, counter: str) -> None:
        self.connection = connection
        self.counter = counter
        """Name of the counter of tokens in the records."""
        self.names = operation_ids(connection)
        self.operations = {name: number for number, name in self.names.items()}
        """Numbers of operations by id."""
        self.theirs: set[int] = set()
        """Operations in the records."""
        self.new: set[int] = set()
        """Those that this store did not know."""
        self.tombstones: set[str] = set()
        """Tombstones of new operations."""
        self.counts: Counter[str] = Counter()
        names = store_ids(connection)
        self._own = names[OWN]
        self._hosts = {name: number for number, name in names.items()}

    def store(self, name: str) -> int:
        """Return the number of a store."""
        if name not in self._hosts:
            self._hosts[name] = dialect.insert(self.connection, "hosts", {"id": name})
        return self._hosts[name]

    def note(self, kind: str, number: int, host: str, original: int) -> None:
        """Record that something new came from another store, in which it arrived first."""
        columns = {"kind": kind, "number": number, "host": self.store(host), "original": original}
        self.connection.execute(
            "INSERT INTO arrivals (kind, number, host, original) VALUES (:kind, :number, :host, :original)"
            " ON CONFLICT (kind, number) DO UPDATE SET host = :host, original = :original",
            columns,
        )

    def note_known(self, kind: str, number: int, record: MemoryRecord) -> None:
        """Record that something known is in another store as well. What counts as its first store is the same in both:
        the one with the lowest id.
        """
        found = self.connection.execute(
            "SELECT h.id, a.original FROM arrivals AS a JOIN hosts AS h ON h.number = a.host"
            " WHERE a.kind = ? AND a.number = ?",
            (kind, number),
        ).fetchone()
        theirs = record["host"], record["number"]
        if theirs < (tuple(found) if found else (self._own, number)):
            self.note(kind, number, *theirs)

    def is_undone(self, operation: int | None) -> bool:
        query = "SELECT 1 FROM operations WHERE number = ? AND undone_by IS NOT NULL"
        return self.connection.execute(query, (operation,)).fetchone() is not None

    def in_force(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of those of these operations that are known and were not undone."""
        numbers = (self.operations.get(name) for name in names)
        return [number for number in numbers if number is not None and not self.is_undone(number)]

    def order(self, operation: int | None) -> tuple[str, str]:
        """Return the sort key of an operation by time, the same in every store. None comes last."""
        name = self.names.get(operation or 0)
        return (name.split(".", 2)[2], name) if name else (LAST, LAST)

    def store_of(self, operation: int | None) -> str:
        """Return the id of the store in which an operation ran."""
        return self.names.get(operation or 0, "").partition(".")[0]

    def forgotten_by(self, digests: Sequence[str], *, is_theirs: bool) -> tuple[list[int], bool]:
        """Return the operations that forgot a text with one of these digests, and True if none can be undone.

        They are those that the store with the text did not know: not in the records if it `is_theirs`, otherwise new.
        What a store kept although it knew the operation is kept.
        """
        found = self.connection.execute(
            "SELECT DISTINCT o.number, o.final_at FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
            f" WHERE t.digest IN ({', '.join('?' * len(digests))}) AND o.undone_by IS NULL ORDER BY o.number",
            [*map(bytes.fromhex, digests)],
        ).fetchall()
        unknown = [
            row for row in found if (row["number"] not in self.theirs if is_theirs else row["number"] in self.new)
        ]
        undoable = [number for number, final_at in unknown if final_at is None]
        return undoable, bool(unknown) and not undoable
