"""Merging the records of another store (see `records`) into this one.

The order of merging makes no difference: two stores that have taken in each other's records yield the same records.
Anything hidden, forgotten, deleted or undone in one is so in both. If both observed the same messages, the earlier
observation counts: rows of the later one are hidden, and so are rows that were folded only from such rows. If both
folded the same rows, the result of the later fold is hidden.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from omcli.memory.changes import MemoryRecord, Records
from omcli.memory.coverage import message_tombstones
from omcli.memory.session import BY_HAND
from omcli.sqlite import codec, dialect, erase, operations, rows, sessions, soft_delete
from omcli.sqlite.dialect import Table
from omcli.sqlite.merge_rows import LAST, MergeState, RowMerge
from omcli.sqlite.records import FLAGS, JSON_COLUMNS, MESSAGE_COLUMNS, SESSION_COLUMNS, UNDOES, read_records
from omcli.sqlite.stamps import MergedSession, Stamp, observed


class SqliteRecords(Table, Records):
    """All tables that hold memory, read and written as records."""

    def read(self) -> Iterator[MemoryRecord]:
        with self._database.reading() as connection:
            yield from read_records(connection)

    def merge(self, records: Iterable[MemoryRecord], *, counter: str, now: str) -> Mapping[str, int]:
        with self._database.writing() as connection:
            merge = Merge(connection, counter=counter, now=now)
            for record in records:
                merge.take(record)
            return merge.finish()


class Merge:
    """One merge, in one transaction. Take the records in their order, then finish."""

    def __init__(self, connection: sqlite3.Connection, *, counter: str, now: str) -> None:
        self._connection = connection
        self._now = now
        self._state = MergeState(connection, counter=counter)
        self._rows = RowMerge(self._state)
        self._sessions: dict[int, MergedSession] = {}
        self._waiting: dict[str, MemoryRecord] = {}
        """New operations by id, until all have been read."""
        self._theirs: set[int] = set()
        """`seq` of the messages in the records, if there are new tombstones."""
        self._final: list[tuple[int, str]] = []
        """Operations that became final, with the instant."""
        self._takers: dict[str, Callable[[MemoryRecord], None]] = {
            "session": self._take_session,
            "operation": self._take_operation,
            "message": self._take_message,
            "row": self._take_row,
            "erased": lambda record: self._rows.erase(codec.packed(record["id"])),
        }

    def take(self, record: MemoryRecord) -> None:
        if self._waiting and record["record"] != "operation":
            self._add_operations()
        self._takers[record["record"]](record)

    def finish(self) -> Mapping[str, int]:
        """Do the work that needs all records, and return the numbers of changes by kind."""
        connection, state = self._connection, self._state
        self._add_operations()
        self._find_forgotten()
        self._rows.finish()
        settled = [each.settle(connection, number_of=state.store, now=self._now) for each in self._sessions.values()]
        self._rows.hide_repeated(chain.from_iterable(settled))
        rows.replace_pending(connection)
        for number, at in self._final:
            erase.erase(connection, [number], now=at)
        if state.counts["erased"]:
            erase.clean(connection)
        return {what: number for what, number in state.counts.items() if number}

    # Sessions and operations.

    def _take_session(self, record: MemoryRecord) -> None:
        connection = self._connection
        self._state.counts["session"] += codec.session_number(connection, record["id"]) is None
        number = codec.add_session(connection, record["id"])
        known = connection.execute("SELECT * FROM sessions WHERE number = ?", (number,)).fetchone()
        title = record.get("title")
        theirs = {**record, "title": None if sessions.is_forgotten_text(connection, title) else title}
        is_later = (theirs.get("seen_at") or "") > (known["seen_at"] or "")
        merged: dialect.Columns = {
            name: _merged(name, known[name], theirs.get(name), is_later=is_later) for name in SESSION_COLUMNS
        }
        merged["author"] = self._state.author(record, known["author"])
        dialect.update(connection, "sessions", merged, number=number)

    def _take_operation(self, record: MemoryRecord) -> None:
        number, final_at = self._state.operations.get(record["id"]), record.get("final_at")
        if number is None:
            self._waiting[record["id"]] = record
            return
        self._state.theirs.add(number)
        known, ours = self._connection.execute(
            "SELECT final_at, author FROM operations WHERE number = ?", (number,)
        ).fetchone()
        if (author := self._state.author(record, ours)) != ours:
            dialect.update(self._connection, "operations", {"author": author}, number=number)
        if final_at and final_at < (known or LAST):
            dialect.update(self._connection, "operations", {"final_at": final_at}, number=number)
            self._final += [] if known else [(number, final_at)]

    def _add_operations(self) -> None:
        """Add the new operations, each after those that it names. They come in order of time, but the clock that gave
        an undo its time may have been slow.
        """
        while self._waiting:
            self._add_operation(self._waiting.pop(next(iter(self._waiting))))

    def _add_operation(self, record: MemoryRecord) -> None:
        connection, state = self._connection, self._state
        for named in (record.get(UNDOES, ""), record.get("part_of", "")):
            if named in self._waiting:
                self._add_operation(self._waiting.pop(named))
        name, session, project = record["id"], record.get("session"), record.get("project")
        host, original, at = name.split(".", 2)
        undone = state.operations.get(record.get(UNDOES, ""))
        columns = {
            "verb": record["verb"],
            "session": None if session is None else codec.add_session(connection, session),
            "project": None if project is None else codec.add_project(connection, project),
            "at": at,
            "outcome": record["outcome"],
            "error": record.get("error"),
            "fingerprint": record["fingerprint"],
            "figures": codec.compact_json({**record["figures"], **({UNDOES: undone} if undone else {})}),
            "part_of": state.operations.get(record.get("part_of", "")),
            "final_at": record.get("final_at"),
            "author": state.author(record),
        }
        number = dialect.insert(connection, "operations", columns)
        state.operations[name], state.names[number] = number, name
        state.counts["operation"] += 1
        state.note("operation", number, host, int(original))
        for digest in record.get("tombstones", ()):
            soft_delete.add_tombstone(connection, digest, operation=number)
            state.tombstones.add(digest)
        for of_session, title in record.get("titles", ()):
            soft_delete.hide_title(connection, codec.add_session(connection, of_session), title, number)
        if undone is not None and not state.is_undone(undone):
            operations.take_back(connection, undone, undoing=number, now=at)
        state.new.add(number)
        state.theirs.add(number)

    # Messages and rows.

    def _merged(self, session: int) -> MergedSession:
        if session not in self._sessions:
            self._sessions[session] = MergedSession(number=session, before=observed(self._connection, session))
        return self._sessions[session]

    def _take_message(self, record: MemoryRecord) -> None:
        connection, identity = self._connection, bytes.fromhex(record["identity"])
        found = connection.execute("SELECT message FROM identities WHERE identity = ?", (identity,)).fetchone()
        if found is None:
            merged = self._merged(codec.add_session(connection, record["session"]))
            seq = self._add_message(record, merged.number)
            connection.execute("INSERT INTO identities (identity, message) VALUES (?, ?)", (identity, seq))
            self._state.note("message", seq, record["host"], record["number"])
        else:
            seq = found["message"]
            merged = self._merged(self._session_of(seq))
            self._state.note_known("message", seq, record)
        if self._state.tombstones:
            self._theirs.add(seq)
        if "erased" in record:
            self._erase(seq)
        for operation in self._state.in_force(record.get("holds", ())):
            self._hold(seq, operation)
        if "observed" in record:
            merged.came[seq] = Stamp(*record["observed"])

    def _session_of(self, seq: int) -> int:
        """Return the session of a stored message."""
        session: int
        (session,) = self._connection.execute(
            "SELECT session FROM messages WHERE seq = :seq UNION ALL"
            " SELECT session FROM aside_messages WHERE seq = :seq",
            {"seq": seq},
        ).fetchone()
        return session

    def _add_message(self, record: MemoryRecord, session: int) -> int:
        columns = {each: _stored(each, record.get(each)) for each in MESSAGE_COLUMNS}
        columns |= {"session": session, "tokens": record["tokens"], "counter": self._state.counter}
        forgotten, is_final = self._forgotten_by(record.get("name"), record["text"], is_theirs=True)
        columns |= {"text": "", "name": None} if is_final else {}
        seq = dialect.insert(self._connection, "messages", columns)
        for operation in forgotten:
            self._hold(seq, operation)
        if is_final:
            self._erase(seq)
        self._state.counts["message"] += 1
        return seq

    def _forgotten_by(self, name: str | None, text: str, *, is_theirs: bool) -> tuple[list[int], bool]:
        if not text or not sessions.has_tombstones(self._connection):
            return [], False
        return self._state.forgotten_by(_tombstones_of(name, text), is_theirs=is_theirs)

    def _hold(self, seq: int, operation: int) -> None:
        """Hide a message for an operation, unless the operation hides it already."""
        held = "SELECT 1 FROM message_holds WHERE operation = ? AND message = ?"
        if self._connection.execute(held, (operation, seq)).fetchone() is None:
            soft_delete.hide_messages(self._connection, [seq], operation)

    def _erase(self, seq: int) -> None:
        """Keep only a stub of a message."""
        self._state.counts["erased"] += soft_delete.erase_message(self._connection, seq)

    def _find_forgotten(self) -> None:
        """Hide messages that are not in the records but have the text of a new tombstone. If no operation that forgot
        the text can be undone, keep only stubs.
        """
        new = self._state.tombstones
        tables = ("messages", "aside_messages") if new else ()
        found = []
        for table in tables:
            for seq, name, text in self._connection.execute(f"SELECT seq, name, text FROM {table} WHERE text <> ''"):
                if seq not in self._theirs and new.intersection(_tombstones_of(name, text)):
                    found.append((seq, name, text))
        for seq, name, text in found:
            forgotten, is_final = self._forgotten_by(name, text, is_theirs=False)
            for operation in forgotten:
                self._hold(seq, operation)
            if is_final:
                self._erase(seq)

    def _take_row(self, record: MemoryRecord) -> None:
        session = record.get("session")
        merged = None if session is None else self._merged(codec.add_session(self._connection, session))
        sourced = self._rows.take(record, merged.came if merged else {})
        if merged is not None and sourced is not None:
            merged.rows.append(sourced)


def _tombstones_of(name: str | None, text: str) -> tuple[str, ...]:
    """Return the tombstones by which a message is recognised as forgotten, with or without its speaker in front."""
    return message_tombstones(text) + (message_tombstones(f"{name}: {text}") if name else ())


def _stored(column: str, value: object) -> object:
    if value is None:
        return None
    if column in JSON_COLUMNS:
        return codec.compact_json(value)
    return bool(value) if column in FLAGS else value


def _merged(column: str, ours: str | None, theirs: str | None, *, is_later: bool) -> str | None:
    """Return a field of a session that both stores know. `is_later` means that the other store saw the session last:
    most of its values then win.
    """
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    if column == "agent" and BY_HAND in (ours, theirs):
        return theirs if ours == BY_HAND else ours
    if column == "first_at":
        return min(ours, theirs)
    if column in ("last_at", "seen_at"):
        return max(ours, theirs)
    return theirs if is_later else ours
