"""Merging rows: the second half of `merge`, and the state that both halves share."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from omcli.memory.changes import UNDONE, MemoryRecord
from omcli.memory.coverage import row_tombstones
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Author
from omcli.sqlite import codec, dialect, erase, sessions, soft_delete
from omcli.sqlite.erase import ROW_TABLES
from omcli.sqlite.records import hidden_state, operation_ids
from omcli.sqlite.stamps import OWN, BatchRow, Stamp, store_ids

ELSEWHERE = "already in the memory of another store"
"""Reason stored with a row that repeats what another store observed or folded earlier."""
LAST = "~"
"""Sorts after every instant and id."""


class MergeState:
    """The operations, new tombstones and changes of a merge, and the stores in which things arrived first."""

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
        """Operations that this store did not know."""
        self.tombstones: set[str] = set()
        """Tombstones of new operations."""
        self.counts: Counter[str] = Counter()
        names = store_ids(connection)
        self._own = names[OWN]
        self._hosts = {name: number for number, name in names.items()}
        self._author_number = cache(partial(codec.add_author, connection))

    def store(self, name: str) -> int:
        """Return the number of the store with this id. Add the store if it is unknown."""
        if name not in self._hosts:
            self._hosts[name] = dialect.insert(self.connection, "hosts", {"id": name})
        return self._hosts[name]

    def note(self, kind: str, number: int, host: str, original: int) -> None:
        """Record the store in which something arrived first, and its number there."""
        columns = {"kind": kind, "number": number, "host": self.store(host), "original": original}
        self.connection.execute(
            "INSERT INTO arrivals (kind, number, host, original) VALUES (:kind, :number, :host, :original)"
            " ON CONFLICT (kind, number) DO UPDATE SET host = :host, original = :original",
            columns,
        )

    def note_known(self, kind: str, number: int, record: MemoryRecord) -> None:
        """For something known, take over the first store that the records give, if its id (or, with the same id, the
        number there) is lower than the one recorded here. So both stores give the same one in the end.
        """
        found = self.connection.execute(
            "SELECT h.id, a.original FROM arrivals AS a JOIN hosts AS h ON h.number = a.host"
            " WHERE a.kind = ? AND a.number = ?",
            (kind, number),
        ).fetchone()
        theirs = record["host"], record["number"]
        if theirs < (tuple(found) if found else (self._own, number)):
            self.note(kind, number, *theirs)

    def author(self, record: MemoryRecord, ours: int | None = None) -> int | None:
        """Return the number of the author of something in a record, or of `ours` if only this store has one. If both
        have one, it is the first by name and machine, in all stores.
        """
        if "author" not in record or "machine" not in record:
            return ours
        theirs = self._author_number(Author(name=record["author"], machine=record["machine"]))
        if ours in (None, theirs):
            return theirs
        query = "SELECT number FROM authors WHERE number IN (?, ?) ORDER BY name, machine LIMIT 1"
        found: int
        (found,) = self.connection.execute(query, (theirs, ours)).fetchone()
        return found

    def is_undone(self, operation: int | None) -> bool:
        query = "SELECT 1 FROM operations WHERE number = ? AND undone_by IS NOT NULL"
        return self.connection.execute(query, (operation,)).fetchone() is not None

    def in_force(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of the operations with these ids, without those that are unknown or were undone."""
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
        """Return the operations that forgot a text with one of these digests and can be undone. Also return True if
        operations forgot it, but none can be undone.

        Operations that the store with the text knew don't count, because it kept the text nevertheless. If the text
        `is_theirs`, these are the operations in the records; otherwise all but the new ones.
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


class _State(NamedTuple):
    """A row's visibility, with the reason why it is hidden. `hidden_by` is the id of an operation."""

    superseded_by: str | None = None
    dropped_at: str | None = None
    reason: str | None = None
    hidden_by: str | None = None

    @property
    def rank(self) -> tuple[bool, str, tuple[str, ...]]:
        """Sort key of two states of a row, of which the first is kept: one that hides the row because another store has
        it already (`ELSEWHERE`), then that of the earliest operation, then one without an operation.
        """
        at = self.hidden_by.split(".", 2)[2] if self.hidden_by else LAST
        rest = (self.hidden_by, self.superseded_by, self.dropped_at, self.reason)
        return self.reason != ELSEWHERE, at, tuple(each or LAST for each in rest)


_VISIBLE = _State()


class RowMerge:
    """The rows of a merge, taken in the order of the records. `finish` adds links, because linked rows may follow, and
    hides rows.
    """

    def __init__(self, state: MergeState) -> None:
        self._state = state
        self._connection = state.connection
        self._supports: list[tuple[int, Sequence[str]]] = []
        """Positions of new rows, with the ids of the rows they were made from."""
        self._hidden: list[tuple[str, int]] = []
        """Rows to hide, with the operations that hide them."""
        self._theirs: set[int] = set()
        """Positions of the rows in the records, if there are new tombstones."""
        self._candidates: set[int] = set()
        """Positions of rows that may repeat others: they share a source row with a new row, were made from a row that
        repeats another, or were made by an operation that lost against another in `_merge_state`.
        """

    def take(self, record: MemoryRecord, of_session: Mapping[int, Stamp]) -> BatchRow | None:
        """Add a new row, or merge the state of a known one. Leave out a row that was erased or forgotten for good.
        Return the row if it is new and belongs to a batch. `of_session` has the stamps of its session's messages in the
        records.
        """
        connection, identity = self._connection, codec.packed(record["id"])
        if connection.execute("SELECT 1 FROM erased_rows WHERE id = ?", (identity,)).fetchone():
            return None
        position = self._position(identity)
        if position is None:
            row = self._observation(record)
            operations, is_final = self._forgotten_by(row, is_theirs=True)
            if is_final:
                self.erase(identity)
                return None
            position = self._add(row, record)
        else:
            row, operations = None, []
            self._state.note_known("row", position, record)
            self._merge_state(position, record)
        if self._state.tombstones:
            self._theirs.add(position)
        operations += self._state.in_force(record.get("holds", ()))
        self._hidden += [(record["id"], operation) for operation in operations]
        connection.executemany(
            "INSERT INTO successors (row, by, reason) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(identity, codec.packed(by), reason) for by, reason in record.get("successors", ())],
        )
        if row is None or row.session is None or "batch" not in record:
            return None
        return BatchRow(
            position=position, text=row.text, stamp=Stamp(*record["batch"]), sources=row.sources, stamps=of_session
        )

    def finish(self) -> None:
        """Link new rows to the rows they were made from, and hide rows that operations in the records hid or forgot."""
        for position, made_of in self._supports:
            found = (self._position(codec.packed(each)) for each in made_of)
            self._connection.executemany(
                "INSERT INTO observation_supports (observation, supported) VALUES (?, ?)",
                [(position, supported) for supported in found if supported is not None],
            )
            self._add_candidates(
                "position IN (SELECT same.observation FROM observation_supports AS s JOIN observation_supports AS same"
                " USING (supported) WHERE s.observation = ?)",
                position,
            )
        self._find_forgotten()
        for row, operation in self._hidden:
            soft_delete.hide_rows(self._connection, [row], operation, is_forgotten=False)

    def hide_repeated(self, repeated: Iterable[BatchRow]) -> None:
        """Hide these rows, which repeat others, and then the candidates that repeat others too, by `_is_folded_again`
        or `_is_made_again`.
        """
        for row in repeated:
            self._hide(row.position, row.stamp.at)
        while self._candidates:
            position = self._candidates.pop()
            found = self._connection.execute(
                "SELECT made_by, observed_at, kind, text FROM observations"
                f" WHERE position = ? AND {dialect.not_same('reason', '?')}",
                (position, ELSEWHERE),
            ).fetchone()
            if found is not None and (self._is_folded_again(position, found) or self._is_made_again(position, found)):
                self._hide(position, found["observed_at"])

    def _is_folded_again(self, position: int, row: sqlite3.Row) -> bool:
        """Return True if each row that this one was made from repeats another or, if this one is a reflection, was
        hidden by an earlier reflection.
        """
        made_of = self._connection.execute(
            "SELECT coalesce(o.reason, a.reason) AS reason, by.number AS hidden_by FROM observation_supports AS s"
            " LEFT JOIN observations AS o ON o.position = s.supported"
            " LEFT JOIN aside_observations AS a ON a.position = s.supported"
            " LEFT JOIN operations AS by ON by.number = coalesce(o.hidden_by, a.hidden_by) AND by.verb = 'reflect'"
            " WHERE s.observation = ?",
            (position,),
        ).fetchall()
        made = self._state.order(row["made_by"]) if row["kind"] == Kind.REFLECTION else ("", "")
        return bool(made_of) and all(
            each["reason"] == ELSEWHERE or self._state.order(each["hidden_by"]) < made for each in made_of
        )

    def _is_made_again(self, position: int, row: sqlite3.Row) -> bool:
        """Return True if an earlier operation of another store made a row with the same kind and text, and from one of
        the rows that this one was made from.
        """
        found = self._connection.execute(
            "SELECT DISTINCT o.made_by FROM observation_supports AS s"
            " JOIN observation_supports AS same USING (supported)"
            " JOIN observations AS o ON o.position = same.observation"
            f" WHERE s.observation = ? AND o.kind = ? AND o.text = ? AND {dialect.not_same('o.reason', '?')}",
            (position, row["kind"], row["text"], ELSEWHERE),
        ).fetchall()
        made, host = self._state.order(row["made_by"]), self._state.store_of(row["made_by"])
        return any(self._state.order(by) < made and self._state.store_of(by) != host for (by,) in found)

    def erase(self, identity: bytes) -> None:
        """Delete a row for good."""
        self._state.counts["erased"] += erase.erase_row(self._connection, identity)

    def _position(self, identity: bytes) -> int | None:
        for table in ROW_TABLES:
            query = f"SELECT position FROM {table} WHERE {codec.id_is()}"
            if found := self._connection.execute(query, codec.id_values(identity)).fetchone():
                position: int = found["position"]
                return position
        return None

    def _observation(self, record: MemoryRecord) -> Observation:
        return Observation(
            id=record["id"],
            session=record.get("session"),
            project=record.get("project"),
            kind=Kind(record["kind"]),
            type=Type(record["type"]),
            priority=Priority(record["priority"]),
            importance=record["importance"],
            status=Status(record["status"]) if "status" in record else None,
            text=record["text"],
            observed_at=record["observed_at"],
            event_at=record.get("event_at"),
            refers_to=record.get("refers_to"),
            message_ids=(),
            sources=tuple(self._seq_of(record.get("sources", ()))),
            tokens=record["tokens"],
            counter=self._state.counter,
            source=Source(record["source"]),
            tags=tuple(record.get("tags", ())),
            metadata=record.get("metadata", {}),
            last_used_at=record.get("last_used_at"),
            generation=record.get("generation", 0),
        )

    def _seq_of(self, identities: Iterable[str]) -> list[int]:
        """Return the `seq` of the messages with these identities. Unknown ones are ignored."""
        query = "SELECT message FROM identities WHERE identity = ?"
        found = (self._connection.execute(query, (bytes.fromhex(identity),)).fetchone() for identity in identities)
        return sorted({row["message"] for row in found if row})

    def _add(self, row: Observation, record: MemoryRecord) -> int:
        connection, made_by = self._connection, self._state.operations.get(record.get("made_by", ""))
        columns = codec.observation_columns(
            row,
            session=None if row.session is None else codec.add_session(connection, row.session),
            project=None if row.project is None else codec.add_project(connection, row.project),
            batch=None,
            author=self._state.author(record),
        )
        columns |= {"made_by": made_by, **self._state_columns(self._state_of(record, made_by))}
        position = dialect.insert(connection, "observations", columns)
        connection.executemany(
            "INSERT INTO observation_sources (observation, message) VALUES (?, ?)",
            [(position, seq) for seq in row.sources],
        )
        self._state.note("row", position, record["host"], record["number"])
        self._state.counts["row"] += 1
        if "supports" in record:
            self._supports.append((position, record["supports"]))
        return position

    # How rows are hidden.

    def _state_of(self, record: MemoryRecord, made_by: int | None) -> _State:
        """Return a row's state in the records: visible if an operation that was undone here hides it. If it would be
        visible, but the operation that made it was undone here, return a state in which the undo hides it.
        """
        state = _State(*map(record.get, _State._fields))
        if state.hidden_by is not None and self._state.is_undone(self._state.operations.get(state.hidden_by)):
            state = _VISIBLE
        if state != _VISIBLE or not self._state.is_undone(made_by):
            return state
        undone_by, at = self._connection.execute(
            "SELECT u.number, u.at FROM operations AS o JOIN operations AS u ON u.number = o.undone_by"
            " WHERE o.number = ?",
            (made_by,),
        ).fetchone()
        return _State(dropped_at=at, reason=UNDONE, hidden_by=self._state.names[undone_by])

    def _merge_state(self, position: int, record: MemoryRecord) -> None:
        """Hide a known row if it is hidden in the records. If it is hidden in both stores, `_State.rank` decides. A
        later `last_used_at` is taken over, and so is its author (see `MergeState.author`).
        """
        found = (
            self._connection.execute(f"SELECT * FROM {table} WHERE position = ?", (position,)).fetchone()
            for table in ROW_TABLES
        )
        row = next(filter(None, found))
        ours = _State(**hidden_state(row, self._state.names))
        theirs = self._state_of(record, row["made_by"])
        if "last_used_at" in record:
            self._mark_used(position, record["last_used_at"])
        if (author := self._state.author(record, row["author"])) != row["author"]:
            self._set(position, {"author": author})
        if theirs in (ours, _VISIBLE):
            return
        if ours == _VISIBLE or theirs.rank < ours.rank:
            self._set_state(position, theirs)
        beaten = {ours.hidden_by, theirs.hidden_by} - {None, min(ours, theirs, key=lambda state: state.rank).hidden_by}
        for name in filter(None, beaten):
            self._add_candidates("made_by = ?", self._state.operations.get(name))

    def _mark_used(self, position: int, at: str) -> None:
        for table in ROW_TABLES:
            self._connection.execute(
                f"UPDATE {table} SET last_used_at = max(coalesce(last_used_at, :at), :at) WHERE position = :position",
                {"at": at, "position": position},
            )

    def _state_columns(self, state: _State) -> dialect.Columns:
        return {
            "superseded_by": codec.packed(state.superseded_by) if state.superseded_by else None,
            "dropped_at": state.dropped_at,
            "reason": state.reason,
            "hidden_by": self._state.operations.get(state.hidden_by or ""),
            "visible": state.superseded_by is None and state.dropped_at is None,
        }

    def _set_state(self, position: int, state: _State) -> None:
        self._set(position, self._state_columns(state))

    def _set(self, position: int, columns: dialect.Columns) -> None:
        changes = ", ".join(f"{column} = :{column}" for column in columns)
        for table in ROW_TABLES:
            values = {**columns, "position": position}
            self._connection.execute(f"UPDATE {table} SET {changes} WHERE position = :position", values)

    def _hide(self, position: int, at: str) -> None:
        self._set_state(position, _State(dropped_at=at, reason=ELSEWHERE))
        self._state.counts["repeated"] += 1
        self._add_candidates("position IN (SELECT observation FROM observation_supports WHERE supported = ?)", position)

    def _add_candidates(self, condition: str, value: int | None) -> None:
        found = self._connection.execute(f"SELECT position FROM observations WHERE {condition}", (value,))
        self._candidates.update(position for (position,) in found)

    # What was forgotten.

    def _forgotten_by(self, row: Observation, *, is_theirs: bool) -> tuple[list[int], bool]:
        """Return the result of `MergeState.forgotten_by`, or no operations for a row that the user wrote."""
        if row.source is Source.USER or not sessions.has_tombstones(self._connection):
            return [], False
        return self._state.forgotten_by(row_tombstones(row, session=row.session), is_theirs=is_theirs)

    def _find_forgotten(self) -> None:
        new = self._state.tombstones
        if not new:
            return
        read, found = codec.observation_reader(bare=True), []
        for table in ROW_TABLES:
            select = codec.BARE_OBSERVATION.replace("FROM observations", f"FROM {table}")
            for each in self._connection.execute(f"SELECT {select}"):
                row = read(each, ())
                if row.source is Source.USER or each["position"] in self._theirs:
                    continue
                if new.intersection(row_tombstones(row, session=row.session)):
                    found.append(row)
        for row in found:
            operations, is_final = self._forgotten_by(row, is_theirs=False)
            self._hidden += [(row.id, operation) for operation in operations]
            if is_final:
                self.erase(codec.packed(row.id))
