"""A table of rows whose status may change, with indexes for repeats, failures and requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from omcli.base.record import field, mutable_record, replace
from omcli.memory.observation import FAILURES, FILE_CHANGES, Draft, Status, Type
from omcli.text.phrases import times_in, with_times, without_times

if TYPE_CHECKING:
    from omcli.observers.rules.failures import OpenFailures

ASKED = frozenset({Type.REQUEST, Type.QUESTION})


@mutable_record
class RowTable:
    """Rows by number, in the order of writing; a row that changes gets a new number."""

    rows: dict[int, Draft] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    """Numbers of questions and requests."""
    failures: OpenFailures | None = None
    """Open failures; None until there is a row about a failure."""
    todo_list: int = -1
    """Number of the row with the latest todo list; -1 if there is none."""
    latest: int = 0
    """Largest `seq` among the rows' sources."""
    _by_key: dict[tuple[Type, str, str | None], int] = field(default_factory=dict)
    """Number of the last row with each key (`row_key`)."""
    _running: dict[int, int] = field(default_factory=dict)
    """Numbers of rows about running commands and subagents, by `seq` of the messages that started them."""
    _positions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sort keys of rows that replaced others in place."""
    _next: int = 0
    _first: int = 0

    def start_batch(self) -> None:
        """Mark all rows added so far as context rows."""
        self._first = self._next

    def changed_rows(self) -> tuple[Draft, ...]:
        """Return the rows that are new or changed."""
        rows = (self.rows[number] for number in sorted(self.new_numbers(), key=self.position))
        return tuple(row if row.replaces else replace(row, reason=None) for row in rows)

    def new_numbers(self) -> list[int]:
        """Return the numbers of rows that are new or changed."""
        return [number for number in range(self._first, self._next) if number in self.rows]

    def position(self, number: int) -> tuple[int, int]:
        """Return the sort key of a row: its last source, then its number."""
        return self._positions.get(number) or (self.rows[number].sources[-1], number)

    def remaining(self, numbers: Iterable[int]) -> Iterator[tuple[int, Draft]]:
        """Yield the rows that are still in the table. Settling one may replace others with the same text."""
        for number in tuple(numbers):
            if number in self.rows:
                yield number, self.rows[number]

    def running(self, sources: Iterable[int]) -> set[int]:
        """Return the numbers of rows about running commands that these messages started."""
        return {self._running[seq] for seq in sources if seq in self._running}

    def add(self, draft: Draft, position: tuple[int, int] | None = None) -> int:
        """Add a row unchanged, at the position of one that was removed if given, and return its number."""
        number = self._next
        self._next += 1
        self.rows[number] = draft
        self._by_key[row_key(draft)] = number
        if position is not None:
            self._positions[number] = position
        if draft.type in FAILURES:
            from omcli.observers.rules.failures import OpenFailures  # noqa: PLC0415

            self.failures = self.failures or OpenFailures()
            self.failures.add(number, draft, failure_directory(draft))
        if is_running(draft):
            self._running |= dict.fromkeys(draft.sources, number)
        if draft.type in ASKED and draft.sources:
            self.asked.add(number)
        if todo_texts(draft):
            self.todo_list = number
        self.latest = max(self.latest, *draft.sources[-1:], 0)
        return number

    def remove(self, number: int) -> Draft:
        """Remove a row and return it."""
        draft = self.rows.pop(number)
        self.asked.discard(number)
        key = row_key(draft)
        if self._by_key.get(key) == number:
            del self._by_key[key]
        if self.failures is not None:
            self.failures.remove(number)
        for seq in draft.sources:
            if self._running.get(seq) == number:
                del self._running[seq]
        return draft

    def replace(self, number: int, draft: Draft, *, reason: str) -> Draft:
        """Remove a row; return the draft that replaces it, with the sources and replacements of both."""
        old = self.remove(number)
        replaces = (*old.replaces, *(one for one in draft.replaces if one not in old.replaces))
        return replace(draft, sources=merged(old.sources, draft.sources), replaces=replaces, reason=reason)

    def merge_repeats(self, draft: Draft) -> Draft:
        """Merge a row with open failures that it repeats, and with a row that has the same text."""
        if draft.type in FAILURES and self.failures is not None:
            for number, row in self.remaining(self.failures.repeated_by(draft, failure_directory(draft))):
                draft = self.replace(number, with_count(row, draft), reason="failed again")
        if (same := self._by_key.get(row_key(draft))) is not None:
            draft = self.replace(same, with_count(self.rows[same], draft), reason="said again")
        return draft


def merged(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """Return the sources of both rows, sorted and without duplicates."""
    return tuple(sorted({*old, *new}))


def row_key(draft: Draft) -> tuple[Type, str, str | None]:
    """Return the key shared by repeated rows: type, text without its count, and a failure's directory."""
    text = without_times(draft.text) if _is_counted(draft) else draft.text
    return draft.type, text, failure_directory(draft)


def _is_counted(draft: Draft) -> bool:
    return draft.type in FAILURES or (draft.type is Type.COMMAND_RUN and "command" in draft.metadata)


def with_count(old: Draft, new: Draft) -> Draft:
    """Return the new row with the total number of occurrences, if they are counted."""
    if new.type in FILE_CHANGES:
        edits = _edits(old) + _edits(new) + (new.type is Type.FILE_CREATED)  # it existed already
        return replace(new, metadata=MappingProxyType({**new.metadata, "edits": edits}))
    if not _is_counted(new) or is_running(new):
        return new
    times = times_in(old.text) + times_in(new.text)
    metadata = MappingProxyType({**new.metadata, "times": times})
    return replace(new, text=with_times(without_times(new.text), times), metadata=metadata)


def _edits(draft: Draft) -> int:
    """Return the number of edits that a row about a file stands for."""
    edits = draft.metadata.get("edits")
    return edits if isinstance(edits, int) else 1


def failure_directory(draft: Draft) -> str | None:
    """Return the directory a failed command ran in, if known."""
    directory = draft.metadata.get("directory") if draft.type in FAILURES else None
    return directory if isinstance(directory, str) else None


def is_running(draft: Draft) -> bool:
    """Return True if a row is about a process that is still running."""
    return draft.status is Status.OPEN and isinstance(draft.metadata.get("process"), str)


def todo_texts(row: Draft | None) -> frozenset[str]:
    """Return the entries of a complete todo list; empty for other rows."""
    entries = row.metadata.get("todos") if row and row.type is Type.TODO_UPDATED else None
    if row is None or not isinstance(entries, list | tuple) or row.metadata.get("partial"):
        return frozenset()
    return frozenset(str(entry.get("text")) for entry in entries if isinstance(entry, dict))
