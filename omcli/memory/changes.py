"""Operations: recorded changes to memory, such as reflecting, pruning and forgetting, that can be undone as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from omcli.base.record import field, record
from omcli.memory.observation import Dropped, Observation
from omcli.memory.reflection import Scope

if TYPE_CHECKING:
    from omcli.memory.message import KeptMessage
    from omcli.memory.session import Author

UNDONE = "undone"
"""Reason stored with a row when the operation that made it is undone."""


class OperationKind(StrEnum):
    """Kind of operation, named after the command or step that performs it."""

    REFLECT = "reflect"
    COMPACT = "compact"
    """Several reflections made to fulfil one request."""
    PRUNE = "prune"
    FORGET = "forget"
    NOTE = "note"
    """A note that resolves rows, or the decision that one row supersedes another."""
    UNDO = "undo"


class SessionTitle(NamedTuple):
    """A current or former title of a session."""

    session: str
    title: str


@record
class OperationWrite:
    """An operation to write: the rows it adds, and the rows, messages and titles it hides.

    A row, message or title that two operations hide, other than by `dropped`, is restored only when both are undone.
    """

    verb: OperationKind
    scope: Scope = Scope()
    made: tuple[Observation, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    """Rows to hide but keep in the log. Rows that are already hidden do not change."""
    messages: tuple[int, ...] = ()
    """`seq` of messages to hide from tails, observers and searches."""
    forgotten: tuple[str, ...] = ()
    """Ids of rows to hide, each with a tombstone that keeps its text from being stored again."""
    replaced: tuple[str, ...] = ()
    """Ids of rows that the `forgotten` ones had replaced. They are hidden too, but without a tombstone."""
    titles: tuple[SessionTitle, ...] = ()
    """Session titles to hide, each with a tombstone."""
    digests: tuple[str, ...] = ()
    """Additional tombstones, for buffered observations that must not be written."""
    parts: tuple[str, ...] = ()
    """Lines and sentences of the hidden messages and rows that get tombstones of their own."""
    seen: int | None = None
    """Log position of the last row considered, if any. If the log has newer rows, the operation is rejected."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """The options of the request, without any hidden text. The store adds counts to them for prune and forget."""


@record
class Operation:
    """A recorded operation. Its counts include its parts."""

    number: int
    verb: OperationKind
    scope: Scope
    at: str
    made: int
    """Number of rows it wrote, except those that were permanently deleted."""
    hidden: int
    """Number of rows it hides, including those it moved out of the log."""
    messages: int
    """Number of messages it hides, not counting those in `uncounted` (see `Message.is_counted`)."""
    figures: Mapping[str, object]
    undoes: int | None = None
    """Number of the operation it undid."""
    undone_by: int | None = None
    """Number of the operation that undid it."""
    final_at: str | None = None
    """Instant at which undoing it became impossible because rows, messages or titles were permanently deleted."""
    uncounted: int = 0
    """Number of other messages it hides: events, queued prompts and the like."""
    author: Author | None = None
    """Who did it, if known."""

    @property
    def can_be_undone(self) -> bool:
        """True unless the operation is an undo, was undone, is final or changed nothing. The store may still refuse."""
        hides = self.hidden or self.messages or self.uncounted
        did = self.made or hides or self.figures.get("titles") or self.figures.get("ahead")
        return self.verb is not OperationKind.UNDO and self.undone_by is None and self.final_at is None and bool(did)


@record
class UndoPreview:
    undone: Operation
    rows: tuple[Observation, ...]
    """Rows to restore, in log order, except those replaced since."""
    gone: tuple[Observation, ...]
    """Rows that the operation wrote and that are still visible. They will be hidden."""
    messages: tuple[KeptMessage, ...]
    titles: tuple[SessionTitle, ...]
    held_by: tuple[int, ...]
    """Numbers of other operations that hide some of the same rows, messages or titles, so that these stay hidden."""


@record
class RelatedRows:
    """Rows derived from given rows and messages, and rows that the given rows replaced. Each tuple is in log order."""

    derived: tuple[Observation, ...]
    """Rows made from the given rows or messages, or replacing the given rows, directly or indirectly."""
    replaced: tuple[Observation, ...]
    """Rows that the given rows replaced, directly or indirectly, except those the given rows were made from."""


@record
class EraseResult:
    rows: int = 0
    messages: int = 0
    """Number of counted messages (see `Message.is_counted`)."""
    bytes_before: int = 0
    """Size of the store's files before the deletion, or 0 in a preview."""
    bytes_after: int = 0


@record
class CutResult:
    """The result of removing everything after a moment from a copy of the store."""

    messages: int
    """Number of removed messages, including those that are not counted (see `Message.is_counted`)."""
    undated: frozenset[str]
    """Ids of sessions with removed messages that may be older than the moment: no message up to them has a date."""
    is_mixed: bool
    """True if a row made before the moment was made from rows written after it, which means that a clock was wrong."""


@record
class RowHistory:
    """Origin and fate of one row."""

    made_by: Operation | None = None
    """Operation that wrote the row, or None if it was observed or imported, or is a note that resolves nothing."""
    hidden_by: Operation | None = None
    """Operation that hid the row, or None if it is visible or a later observation replaced it."""
    replaced: tuple[Observation, ...] = ()
    """Oldest first."""
    made_of: tuple[Observation, ...] = ()
    made_into: tuple[Observation, ...] = ()
    successor: Observation | None = None
    """Row that replaced this one."""


MemoryRecord = Mapping[str, Any]
"""A part of the memory as JSON, described in om-store(5)."""
RECORDS_HEADER: MemoryRecord = {"record": "memory", "version": 1}
"""The first record."""


class Records(Protocol):
    """The whole memory as records, to move it to another store."""

    def read(self) -> Iterator[MemoryRecord]:
        """Yield all records, as of one moment. Stores with the same memory yield the same records in the same order."""

    def merge(self, records: Iterable[MemoryRecord], *, counter: str, now: str) -> Mapping[str, int]:
        """Merge valid records in one transaction. `counter` is the counter of `tokens` in their messages and rows.
        Return the numbers of new sessions, operations, messages and rows, and of those erased or hidden as repeated,
        without zeros.
        """
