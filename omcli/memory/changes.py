"""Operations: changes such as reflecting, pruning and forgetting, each recorded, and undone, as a whole."""

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
    """Kind of an operation, named after the command or step that performs it."""

    REFLECT = "reflect"
    COMPACT = "compact"
    """Several reflections made for one request."""
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
    """An operation to write: the rows it adds, and the rows, messages and titles it hides.

    What another operation already hides is then hidden by both, and visible again only once both are undone.
    """

    verb: OperationKind
    scope: Scope = Scope()
    made: tuple[Observation, ...] = ()
    """Rows to write."""
    dropped: tuple[Dropped, ...] = ()
    """Rows to hide but keep in the log. Rows already hidden don't change."""
    messages: tuple[int, ...] = ()
    """`seq` of messages to hide from tails, observers and searches."""
    forgotten: tuple[str, ...] = ()
    """Ids of rows to hide with a tombstone, so that their text is not stored again."""
    along: tuple[str, ...] = ()
    """Ids of the rows that the `forgotten` ones replaced, to hide without a tombstone."""
    titles: tuple[SessionTitle, ...] = ()
    """Titles of sessions to hide with a tombstone."""
    digests: tuple[str, ...] = ()
    """Further tombstones, for buffered observations that must not be written."""
    seen: int | None = None
    """Log position of the last row considered. If the log has newer rows, the operation is stale."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """Options of the request for display, without hidden text. The store adds the counts `rows`, `messages` and
    `titles`, and the number of `digests` as `ahead`."""


@record
class Operation:
    """A recorded operation. Its counts include those of the operations that are part of it."""

    number: int
    verb: OperationKind
    scope: Scope
    at: str
    made: int
    """Number of rows it wrote."""
    hidden: int
    """Number of rows it hid, including those it removed from the log."""
    messages: int
    """Number of messages it hid (`Message.is_counted`)."""
    figures: Mapping[str, object]
    undoes: int | None = None
    """Number of the operation it undid."""
    undone_by: int | None = None
    """Number of the operation that undid it."""
    final_at: str | None = None
    """Instant at which everything it hid was permanently deleted."""
    uncounted: int = 0
    """Number of other messages it hid: events, queued prompts and summaries."""

    @property
    def can_be_undone(self) -> bool:
        """True if nothing in the record prevents undoing it. The store may still refuse because of its rows."""
        put_aside = self.hidden or self.messages or self.uncounted
        did = self.made or put_aside or self.figures.get("titles") or self.figures.get("ahead")
        return self.verb is not OperationKind.UNDO and self.undone_by is None and self.final_at is None and bool(did)


@record
class UndoPreview:
    """Effect of undoing an operation."""

    undone: Operation
    """The operation to undo."""
    rows: tuple[Observation, ...]
    """Rows to restore, in log order, without those replaced since."""
    gone: tuple[Observation, ...]
    """Rows it wrote, which will be hidden."""
    messages: tuple[KeptMessage, ...]
    titles: tuple[SessionTitle, ...]
    held_by: tuple[int, ...]
    """Other operations that hide some of the same rows, messages or titles, which therefore stay hidden."""


@record
class RelatedRows:
    """Rows derived from given rows and messages, and rows that the given ones replaced; each in log order."""

    derived: tuple[Observation, ...]
    """Rows made from the given ones, or replacing them, directly or indirectly."""
    replaced: tuple[Observation, ...]
    """Rows that the given ones replaced, directly or indirectly, except the rows they were made from."""


@record
class EraseResult:
    """Result of a permanent deletion."""

    rows: int = 0
    messages: int = 0
    """See `Message.is_counted`."""
    bytes_before: int = 0
    """Size of the store's files before the deletion."""
    bytes_after: int = 0


@record
class RowHistory:
    """Origin and fate of a row."""

    made_by: Operation | None = None
    """Operation that wrote it; None if it was observed, noted or imported."""
    hidden_by: Operation | None = None
    """Operation that hid it; None if it is visible, or hidden because a later observation replaced it."""
    replaced: tuple[Observation, ...] = ()
    """Rows it replaced, oldest first."""
    made_of: tuple[Observation, ...] = ()
    """Rows it was made from."""
    made_into: tuple[Observation, ...] = ()
    """Rows made from it."""
    successor: Observation | None = None
    """Row that replaced it."""
