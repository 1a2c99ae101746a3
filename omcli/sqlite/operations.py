"""Storing operations: atomic changes to the memory, including reflections, and undoing them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from omcli.base.errors import NotUndoable, StaleBatch
from omcli.memory.changes import UNDONE, EraseResult, Operation, OperationKind, OperationWrite, RowHistory, UndoPreview
from omcli.memory.coverage import message_tombstones, tombstone_of
from omcli.memory.message import Role
from omcli.memory.observation import PINNED, Observation
from omcli.memory.ports import Operations, Reflections
from omcli.memory.reflection import ReflectionAttempt, ReflectionOutcome, ReflectionWrite, RowOutline, Scope
from omcli.memory.session import Author
from omcli.sqlite import codec, dialect, erase, messages, rows, sessions, soft_delete
from omcli.sqlite.connection import size
from omcli.sqlite.dialect import Table
from omcli.text.instants import minute
from omcli.text.similarity import is_distinctive, said_words

_PARTS = "(SELECT number FROM operations WHERE number = :number OR part_of = :number)"
_MADE_AND_GONE = (
    "(SELECT whole.number, count(*) AS made FROM aside_observations AS row"
    " JOIN operations AS part ON part.number = row.made_by"
    " JOIN operations AS whole ON whole.number IN (part.number, part.part_of) GROUP BY whole.number)"
)
"""Number of rows that each operation and its parts made and that were moved out of the log. They are counted in one
query because no index supports this.
"""


class SqliteOperations(Table, Operations):
    """Operations in the table `operations`."""

    def change(self, change: OperationWrite, *, now: str, for_good: bool = False) -> Operation:
        with self._database.writing() as connection:
            return _change(connection, change, now=now, for_good=for_good, author=self._database.author)

    def history(self, *, last: int | None = None) -> tuple[Operation, ...]:
        with self._database.reading() as connection:
            return _history(connection, last=last)

    def undo(self, number: int | None = None, *, now: str) -> Operation:
        with self._database.writing() as connection:
            return _undo(connection, number, now=now, author=self._database.author)

    def preview_undo(self, number: int | None = None) -> UndoPreview:
        with self._database.reading() as connection:
            return _preview_undo(connection, number)

    def erase(self, numbers: Sequence[int], *, now: str) -> EraseResult:
        before = self._size()
        with self._database.writing() as connection:
            found, messages_found = erase.erase(connection, numbers, now=now)
        self._vacuum()
        after = self._size()
        return EraseResult(rows=found, messages=messages_found, bytes_before=before, bytes_after=after)

    def _size(self) -> int:
        return size(self._database.path) or 0

    def _vacuum(self) -> None:
        """Remove what was deleted from the file."""
        from omcli.sqlite.backups import vacuum  # noqa: PLC0415 - most operations delete nothing

        with self._database.om_errors():
            vacuum(self._database.connection, wait=self._database.wait)

    def preview_erase(self, numbers: Sequence[int]) -> EraseResult:
        with self._database.reading() as connection:
            found, messages_found = erase.preview(connection, numbers)
        return EraseResult(rows=found, messages=messages_found)

    def traces(self, observation: str) -> RowHistory:
        with self._database.reading() as connection:
            row = rows.find(connection, observation)
            id_values = codec.id_values(codec.packed(row.id))
            position, made_by, hidden_by = connection.execute(
                f"SELECT position, made_by, hidden_by FROM observations WHERE {codec.id_is()}", id_values
            ).fetchone()
            successor = row.superseded_by and rows.at(connection, row.superseded_by)

            def rows_at(places: str, *values: object) -> tuple[Observation, ...]:
                return tuple(logged.observation for logged in rows.by_position(connection, places, values))

            return RowHistory(
                made_by=recorded(connection, made_by) if made_by else None,
                hidden_by=recorded(connection, hidden_by) if hidden_by else None,
                replaced=rows_at("SELECT position FROM observations WHERE superseded_by = ?", codec.packed(row.id)),
                made_of=rows_at("SELECT supported FROM observation_supports WHERE observation = ?", position),
                made_into=rows_at("SELECT observation FROM observation_supports WHERE supported = ?", position),
                successor=successor.observation if successor else None,
            )


def note(
    connection: sqlite3.Connection,
    verb: OperationKind,
    scope: Scope,
    *,
    now: str,
    author: Author | None,
    figures: str,
    ending: ReflectionOutcome = ReflectionOutcome.DONE,
    error: str | None = None,
    fingerprint: str = "",
    part_of: int | None = None,
) -> int:
    """Record an operation and return its number. `figures` is JSON."""
    return dialect.insert(
        connection,
        "operations",
        {
            "verb": verb,
            "session": None if scope.session is None else codec.add_session(connection, scope.session),
            "project": None if scope.project is None else codec.add_project(connection, scope.project),
            "at": now,
            "outcome": ending,
            "error": error,
            "fingerprint": fingerprint,
            "figures": figures,
            "part_of": part_of,
            "author": codec.add_author(connection, author),
        },
    )


def _change(
    connection: sqlite3.Connection, change: OperationWrite, *, now: str, for_good: bool, author: Author | None
) -> Operation:
    """Write an operation and return it. Raise StaleBatch if rows were added since it was prepared."""
    if change.seen is not None and rows.has_rows_after(connection, change.seen):
        raise StaleBatch("rows were added meanwhile", hint="nothing was changed; run it again")
    figures: dict[str, object] = dict(change.figures)
    number = note(connection, change.verb, change.scope, now=now, author=author, figures=codec.compact_json(figures))
    rows.add(connection, change.made, made_by=number, author=author)
    for dropped in change.dropped:
        rows.drop(connection, dropped, now=now, hidden_by=number)
    if change.verb is OperationKind.FORGET:
        for kept in (
            *messages.by_seq(connection, change.messages),
            *messages.hidden_by_seq(connection, change.messages),
        ):
            text, is_tool = kept.message.text, kept.message.role in (Role.CALL, Role.RESULT)
            if is_distinctive(text if is_tool else said_words(text), is_tool=is_tool):
                soft_delete.add_tombstone(connection, message_tombstones(text)[0], operation=number)
    soft_delete.hide_messages(connection, change.messages, number)
    soft_delete.hide_rows(connection, change.forgotten, number, is_forgotten=True)
    soft_delete.hide_rows(connection, change.replaced, number, is_forgotten=False)
    titles = soft_delete.hide_titles(connection, change.titles, number)
    for digest in (*change.digests, *map(tombstone_of, change.parts)):
        soft_delete.add_tombstone(connection, digest, operation=number)
    done = recorded(connection, number)
    if change.verb in (OperationKind.PRUNE, OperationKind.FORGET):
        hidden = done.hidden
        if for_good:
            besides = [codec.packed(dropped.row) for dropped in change.dropped]
            hidden, _ = erase.erase(connection, [number], now=now, besides=besides)
        # These counts remain even if the rows are deleted later.
        figures |= {"rows": hidden, "messages": done.messages, "titles": titles}
        figures |= {"ahead": len(change.digests)} if change.digests else {}
        figures |= {"uncounted": done.uncounted} if done.uncounted else {}
        dialect.update(connection, "operations", {"figures": codec.compact_json(figures)}, number=number)
    return recorded(connection, number)


def _history(connection: sqlite3.Connection, *, last: int | None) -> tuple[Operation, ...]:
    return _recorded(
        connection, "o.part_of IS NULL AND o.outcome = :done ORDER BY o.at DESC, o.number DESC LIMIT :last", last=last
    )


def _undo(connection: sqlite3.Connection, number: int | None, *, now: str, author: Author | None) -> Operation:
    undone = _undoable(connection, number)
    _check_last(connection, undone.number)
    figures = codec.compact_json({"undoes": undone.number})
    undoing = note(connection, OperationKind.UNDO, undone.scope, now=now, author=author, figures=figures)
    take_back(connection, undone.number, undoing=undoing, now=now)
    rows.replace_pending(connection)
    return recorded(connection, undoing)


def take_back(connection: sqlite3.Connection, number: int, *, undoing: int, now: str) -> None:
    """Restore everything that an operation and its parts hid, unless another operation hides it too, and hide the rows
    that they made. `undoing` is the number of the undo.
    """
    values = {"number": number, "undoing": undoing, "now": now, "undone": UNDONE}
    connection.execute(
        f"UPDATE operations SET undone_by = :undoing WHERE number IN {_PARTS} AND outcome = 'done'", values
    )
    connection.execute(
        "UPDATE observations SET superseded_by = NULL, dropped_at = NULL, reason = NULL, hidden_by = NULL,"
        f" visible = TRUE WHERE hidden_by IN {_PARTS}",
        values,
    )
    connection.execute(
        "UPDATE observations SET dropped_at = :now, reason = :undone, hidden_by = :undoing, visible = FALSE"
        f" WHERE made_by IN {_PARTS} AND visible",
        values,
    )
    soft_delete.restore(connection, number, now=now)


def _preview_undo(connection: sqlite3.Connection, number: int | None) -> UndoPreview:
    undone = _undoable(connection, number)
    _check_last(connection, undone.number)
    values = {"number": undone.number}
    back = soft_delete.hidden_only_by(connection, undone.number)
    hidden = f"SELECT position FROM observations WHERE hidden_by IN {_PARTS} AND made_by IS NULL"
    hidden += f" UNION ALL SELECT position FROM observations WHERE hidden_by IN {_PARTS} AND made_by NOT IN {_PARTS}"
    made = f"SELECT position FROM observations WHERE made_by IN {_PARTS} AND visible"
    replaced = rows.pending_replacements(connection)
    there = [*rows.by_position(connection, hidden, values), *soft_delete.by_position(connection, back.rows)]
    return UndoPreview(
        undone=undone,
        rows=tuple(
            logged.observation
            for logged in sorted(there, key=lambda logged: logged.position)
            if logged.observation.id not in replaced
        ),
        gone=tuple(logged.observation for logged in rows.by_position(connection, made, values)),
        messages=messages.hidden_by_seq(connection, back.messages),
        titles=back.titles,
        held_by=soft_delete.other_operations(connection, undone.number),
    )


def _undoable(connection: sqlite3.Connection, number: int | None) -> Operation:
    if number is None:
        found = next((each for each in _history(connection, last=None) if each.can_be_undone), None)
        if found is None:
            raise NotUndoable("nothing to undo", hint="`om history` lists all operations")
        return found
    known = _recorded(connection, "o.number = :number AND o.part_of IS NULL AND o.outcome = :done", number=number)
    if not known:
        raise NotUndoable(f"no operation has the number {number}", hint="`om history` lists all operations")
    [found] = known
    if found.undone_by is not None:
        raise NotUndoable(f"operation {number} was undone by {found.undone_by}")
    if found.final_at is not None:
        raise NotUndoable(
            f"rows or messages of operation {number} were permanently deleted at {minute(found.final_at)}"
        )
    if found.verb is OperationKind.UNDO:
        raise NotUndoable(f"operation {number} is an undo itself", hint="run again the command it undid")
    return found


def _check_last(connection: sqlite3.Connection, number: int) -> None:
    (later,) = connection.execute(
        "SELECT max(coalesce(later.part_of, later.number)) FROM operations AS later WHERE later.undone_by IS NULL"
        f" AND later.number NOT IN {_PARTS} AND later.number IN"
        f" (SELECT hidden_by FROM observations WHERE made_by IN {_PARTS}"
        f" UNION ALL SELECT hidden_by FROM aside_observations WHERE made_by IN {_PARTS}"
        " UNION ALL SELECT held.operation FROM row_holds AS held"
        f" JOIN aside_observations AS o ON o.position = held.position WHERE o.made_by IN {_PARTS})",
        {"number": number},
    ).fetchone()
    if later is not None:
        raise NotUndoable(
            f"operation {later} has changed what operation {number} made", hint=f"undo {later} first: `om undo {later}`"
        )


def is_settled(connection: sqlite3.Connection, number: int) -> bool:
    query = "SELECT 1 FROM operations WHERE number = ? AND (undone_by IS NOT NULL OR final_at IS NOT NULL)"
    return connection.execute(query, (number,)).fetchone() is not None


def recorded(connection: sqlite3.Connection, number: int) -> Operation:
    """Return the operation with this number, which must exist."""
    [found] = _recorded(connection, "o.number = :number", number=number)
    return found


def _recorded(
    connection: sqlite3.Connection, conditions: str, *, number: int | None = None, last: int | None = None
) -> tuple[Operation, ...]:
    parts = "(SELECT p.number FROM operations AS p WHERE p.number = o.number OR p.part_of = o.number)"
    held = "SELECT count(*) FROM message_holds JOIN aside_messages ON seq = message WHERE operation = o.number"
    found = connection.execute(
        f"SELECT {codec.AUTHOR}, o.number, o.verb, o.at, o.figures, o.undone_by, o.final_at, s.id AS session,"
        " p.path AS project,"
        f" (SELECT count(*) FROM observations WHERE made_by IN {parts}) + coalesce(gone.made, 0) AS made,"
        f" (SELECT count(*) FROM observations WHERE hidden_by IN {parts})"
        " + (SELECT count(*) FROM row_holds WHERE operation = o.number) AS hidden,"
        f" ({held} AND counted) AS messages, ({held} AND NOT counted) AS uncounted"
        " FROM operations AS o LEFT JOIN sessions AS s ON s.number = o.session"
        f" LEFT JOIN projects AS p ON p.number = o.project{codec.with_author('o')}"
        f" LEFT JOIN {_MADE_AND_GONE} AS gone ON gone.number = o.number WHERE {conditions}",
        {"number": number, "done": ReflectionOutcome.DONE, "last": dialect.NO_LIMIT if last is None else last},
    )
    return tuple(map(_from_row, found))


def _from_row(row: sqlite3.Row) -> Operation:
    figures = codec.parsed(row["figures"])
    return Operation(
        number=row["number"],
        verb=OperationKind(row["verb"]),
        scope=Scope(session=row["session"], project=row["project"]),
        at=row["at"],
        made=row["made"],
        hidden=row["hidden"],
        messages=row["messages"],
        uncounted=row["uncounted"],
        figures=figures,
        undoes=figures.get("undoes"),
        undone_by=row["undone_by"],
        final_at=row["final_at"],
        author=codec.author(row),
    )


# ---- reflections and failed attempts

_OUTLINE = """
    SELECT p.path, coalesce(o.event_at, o.observed_at) AS dated, o.position,
        CASE WHEN o.counter = :counter THEN o.tokens END, CASE WHEN o.counter <> :counter THEN o.text END
    FROM observations AS o LEFT JOIN projects AS p ON p.number = o.project
    WHERE o.visible AND o.kind <> 'item' AND coalesce(o.status, '') <> 'open'
        AND coalesce(o.event_at, o.observed_at) < :before AND coalesce(instr(o.tags, :pinned), 0) = 0
        AND NOT (o.kind = 'reflection' AND (o.session IS NULL OR coalesce(instr(o.tags, :kept), 0) > 0))
    ORDER BY o.project NULLS FIRST, dated, o.position
"""


class SqliteReflections(Table, Reflections):
    """Reflections in the tables `operations` and `observation_supports`."""

    def fold(self, folding: ReflectionWrite, *, now: str) -> None:
        with self._database.writing(folding.scope.session) as connection:
            fold(connection, folding, now=now, author=self._database.author)

    def last_attempt(self, scope: Scope, mark: str | None = None) -> ReflectionAttempt | None:
        with self._database.reading() as connection:
            session = None if scope.session is None else codec.session_number(connection, scope.session)
            project = None if scope.project is None else codec.project_number(connection, scope.project)
            if (scope.session is not None and session is None) or (scope.project is not None and project is None):
                return None
            attempts = connection.execute(
                "SELECT at, outcome, error, fingerprint, figures, undone_by FROM operations"
                f" WHERE verb = ? AND {dialect.same('session', '?')} AND {dialect.same('project', '?')}"
                " ORDER BY number DESC",
                (OperationKind.REFLECT, session, project),
            )
            found = (_attempt(row, scope) for row in attempts)
            return next((attempt for attempt in found if mark is None or attempt.is_about(mark)), None)

    def has_changed(self, session: str, settings: str) -> bool:
        with self._database.reading() as connection:
            last = connection.execute(
                "SELECT unchanged FROM operations WHERE verb = ? AND session = ? AND project IS NULL"
                " ORDER BY number DESC LIMIT 1",
                (OperationKind.REFLECT, codec.session_number(connection, session)),
            ).fetchone()
            return last is None or last["unchanged"] != f"{settings} {sessions.changes(connection, session)}"

    def outline(self, *, before: str, kept: str, counter: str) -> Iterator[RowOutline]:
        with self._database.reading() as connection:
            values = {"before": before, "kept": f'"{kept}"', "pinned": f'"{PINNED}"', "counter": counter}
            for project, dated, position, tokens, text in connection.execute(_OUTLINE, values):
                yield RowOutline(project, dated, position, tokens if text is None else text)

    def ids(self, positions: Iterable[int]) -> Iterator[tuple[str, int]]:
        with self._database.reading() as connection:
            query = f"SELECT id, position FROM observations WHERE {dialect.among('position')} ORDER BY id"
            for packed, position in connection.execute(query, (dialect.as_list(positions),)):
                yield codec.unpacked(packed), position

    def support(self, observation: str) -> int:
        with self._database.reading() as connection:
            (number,) = connection.execute(
                "SELECT count(*) FROM observation_supports WHERE supported ="
                f" (SELECT position FROM observations WHERE {codec.id_is()})",
                codec.id_values(codec.packed(observation)),
            ).fetchone()
        assert isinstance(number, int)
        return number

    def supports(self) -> Mapping[str, int]:
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT o.id, made.number FROM"
                " (SELECT supported, count(*) AS number FROM observation_supports GROUP BY supported) AS made"
                " JOIN observations AS o ON o.position = made.supported"
            ).fetchall()
        return {codec.unpacked(identity): number for identity, number in found}


def fold(connection: sqlite3.Connection, folding: ReflectionWrite, *, now: str, author: Author | None) -> None:
    """Write a reflection, and hide the rows it folds.

    Raise StaleBatch if a row that was read is now hidden, or if the operation that the reflection is part of was undone
    or made final, because the reflection could then never be undone.
    """
    if not rows.are_visible(connection, folding.read):
        raise StaleBatch(
            "rows were replaced by another process while they were reflected on",
            hint="nothing was changed; run it again",
        )
    if folding.part_of is not None and is_settled(connection, folding.part_of):
        raise StaleBatch(
            f"operation {folding.part_of} was undone, or made final, before it came to its end",
            hint="rows it had not reached yet are unchanged; run it again",
        )
    settings, seen = folding.seen or ("", None)
    is_current = seen == sessions.changes(connection, folding.scope.session)
    number = note(
        connection,
        OperationKind.REFLECT,
        folding.scope,
        now=now,
        author=author,
        figures=codec.compact_json(dict(folding.figures)),
        ending=folding.ending,
        error=folding.error,
        fingerprint=folding.fingerprint,
        part_of=folding.part_of,
    )
    rows.add(connection, folding.rows, made_by=number, author=author)
    for replacement in folding.replaced:
        rows.replace(connection, replacement, hidden_by=number)
    for dropped in folding.dropped:
        rows.drop(connection, dropped, now=now, hidden_by=number)
    if is_current:
        mark = f"{settings} {sessions.changes(connection, folding.scope.session)}"
        dialect.update(connection, "operations", {"unchanged": mark}, number=number)


def _attempt(row: sqlite3.Row, scope: Scope) -> ReflectionAttempt:
    return ReflectionAttempt(
        scope=scope,
        at=row["at"],
        ending=ReflectionOutcome(row["outcome"]),
        fingerprint=row["fingerprint"],
        error=row["error"],
        figures=codec.parsed(row["figures"]),
        is_undone=row["undone_by"] is not None,
    )
