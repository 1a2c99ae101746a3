"""Operations: changes that are recorded in one piece and can be undone, such as reflecting, pruning and forgetting."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from omcli.base.record import field, record
from omcli.memory.observation import Dropped, Observation
from omcli.memory.reflection import Scope

if TYPE_CHECKING:
    from omcli.memory.message import KeptMessage

UNDONE = "undone"
"""Reason stored with a row whose operation was undone."""


class OperationKind(StrEnum):
    """Kind of an operation."""

    REFLECT = "reflect"
    COMPACT = "compact"
    """Several reflections that one request asked for."""
    PRUNE = "prune"
    FORGET = "forget"
    NOTE = "note"
    """A row written by hand that replaces others."""
    UNDO = "undo"


class SessionTitle(NamedTuple):
    """A present or former title of a session."""

    session: str
    title: str


@record
class OperationWrite:
    """Rows and messages to hide in one piece.

    Whatever is hidden already is then hidden by this operation too, and restored when none of them holds it any more.
    """

    verb: OperationKind
    scope: Scope = Scope()
    made: tuple[Observation, ...] = ()
    """Rows to write."""
    dropped: tuple[Dropped, ...] = ()
    """Rows to hide but keep in the log; one that is hidden already stays as it is."""
    messages: tuple[int, ...] = ()
    """`seq` of messages to hide from tails, observers and searches."""
    forgotten: tuple[str, ...] = ()
    """Ids of rows to hide with a tombstone, so that their text is not stored again."""
    along: tuple[str, ...] = ()
    """Ids of rows to hide along with those, without a tombstone: the rows they replaced."""
    titles: tuple[SessionTitle, ...] = ()
    """Titles of sessions to hide with a tombstone."""
    digests: tuple[str, ...] = ()
    """Further tombstones, of buffered observations that must not be written."""
    seen: int | None = None
    """Position in the log of the last row looked at; newer rows make the operation stale."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """Options of the request, for people, without any hidden text. The store adds counts of `rows`, `messages`,
    `titles`, and of further tombstones as `ahead`."""


@record
class Operation:
    """An operation as recorded, with its parts."""

    number: int
    verb: OperationKind
    scope: Scope
    at: str
    made: int
    """Number of rows it wrote."""
    hidden: int
    """Number of rows it hid, in the log or out of it."""
    messages: int
    """Number of messages it hid (`Message.is_counted`)."""
    figures: Mapping[str, object]
    undoes: int | None = None
    """Number of the operation it undid."""
    undone_by: int | None = None
    """Number of the operation that undid it."""
    final_at: str | None = None
    """Instant at which everything it hid was deleted for good."""
    uncounted: int = 0
    """Number of other messages it hid: events, queued prompts and summaries."""

    @property
    def can_be_undone(self) -> bool:
        """True if it can be undone, as far as that shows without the rows."""
        put_aside = self.hidden or self.messages or self.uncounted
        did = self.made or put_aside or self.figures.get("titles") or self.figures.get("ahead")
        return self.verb is not OperationKind.UNDO and self.undone_by is None and self.final_at is None and bool(did)


@record
class UndoPreview:
    """Effect of undoing an operation."""

    undone: Operation
    """The operation before it is undone."""
    rows: tuple[Observation, ...]
    """Rows to restore, in log order, without those replaced meanwhile."""
    gone: tuple[Observation, ...]
    """Rows it wrote, which will be hidden."""
    messages: tuple[KeptMessage, ...]
    titles: tuple[SessionTitle, ...]
    held_by: tuple[int, ...]
    """Other operations that hide some of the same rows, messages or titles, which therefore stay hidden."""


@record
class RelatedRows:
    """Rows that derive from other rows and messages, or were replaced by them; in log order, without those rows
    themselves."""

    derived: tuple[Observation, ...]
    """Rows made from them, or replacing them, in any number of steps."""
    replaced: tuple[Observation, ...]
    """Rows they replaced, in any number of steps, except their sources."""


@record
class EraseResult:
    """Result of a permanent deletion."""

    rows: int = 0
    messages: int = 0
    """See `Message.is_counted`."""
    bytes_before: int = 0
    """Size of the store's files."""
    bytes_after: int = 0


@record
class RowHistory:
    """Origin and fate of a row."""

    made_by: Operation | None = None
    """Operation that wrote it; None if it was observed, noted or imported."""
    hidden_by: Operation | None = None
    """Operation that hid it; None if it is visible or a later observation replaced it."""
    replaced: tuple[Observation, ...] = ()
    """Rows it replaced, oldest first."""
    made_of: tuple[Observation, ...] = ()
    """Rows it was made from."""
    made_into: tuple[Observation, ...] = ()
    """Rows made from it."""
    successor: Observation | None = None
    """Row that replaced it."""
