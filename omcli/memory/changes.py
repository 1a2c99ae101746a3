"""What is done to memory in one piece, written down so that it can be taken back: folding, pruning, forgetting."""

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
"""Why a row is out of sight that an operation made which was taken back."""


class OperationKind(StrEnum):
    """What was done."""

    REFLECT = "reflect"
    COMPACT = "compact"
    """Several reflections that were one to who asked for it."""
    PRUNE = "prune"
    FORGET = "forget"
    NOTE = "note"
    """A row by hand, in place of others."""
    UNDO = "undo"


class SessionTitle(NamedTuple):
    """A title that a session has, or had."""

    session: str
    title: str


@record
class OperationWrite:
    """Rows and messages to be taken out of sight in one piece.

    What is put aside already is so by this change as well, and comes back when none of them stands any more.
    """

    verb: OperationKind
    scope: Scope = Scope()
    made: tuple[Observation, ...] = ()
    """Rows that it writes down."""
    dropped: tuple[Dropped, ...] = ()
    """Rows that stay in the log, hidden; one that is out of sight already stays as it is."""
    messages: tuple[int, ...] = ()
    """`seq` of messages that are put aside: no tail, no observer and nobody who asks is shown them."""
    forgotten: tuple[str, ...] = ()
    """Ids of rows that are put aside, hidden or not, and leave a tombstone: what they say is not taken in again."""
    along: tuple[str, ...] = ()
    """Ids of rows that are put aside with those, and leave none: what they took the place of."""
    titles: tuple[SessionTitle, ...] = ()
    """Titles of sessions that are put aside, and leave a tombstone."""
    digests: tuple[str, ...] = ()
    """Further tombstones: of what was observed ahead, and is not to be written down."""
    seen: int | None = None
    """The place in the log of the last row looked at to find those; where rows have come since, it is stale."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """What it was asked to do, for people; nothing of what it takes out of sight. The store adds how many `rows`,
    `messages` and `titles` that were, and `ahead`, how many of the further tombstones there are."""


@record
class Operation:
    """An operation as it was written down, with its parts."""

    number: int
    verb: OperationKind
    scope: Scope
    at: str
    made: int
    """Rows that it made."""
    hidden: int
    """Rows that are out of sight by it, in the log or put aside."""
    messages: int
    """Messages that are put aside by it (`Message.is_counted`)."""
    figures: Mapping[str, object]
    undoes: int | None = None
    """The operation that it took back."""
    undone_by: int | None = None
    """The operation that took it back."""
    final_at: str | None = None
    """When what it took out of sight was deleted for good."""
    uncounted: int = 0
    """What is put aside by it beside those: events, and what was queued or summed up."""

    @property
    def can_be_undone(self) -> bool:
        """Whether it can be taken back, as far as can be told without the rows."""
        put_aside = self.hidden or self.messages or self.uncounted
        did = self.made or put_aside or self.figures.get("titles") or self.figures.get("ahead")
        return self.verb is not OperationKind.UNDO and self.undone_by is None and self.final_at is None and bool(did)


@record
class UndoPreview:
    """What it comes to when an operation is taken back."""

    undone: Operation
    """As it was before."""
    rows: tuple[Observation, ...]
    """Rows that are there again, in the log's order, but for those that others have taken the place of meanwhile."""
    gone: tuple[Observation, ...]
    """Rows that it made, and that leave sight."""
    messages: tuple[KeptMessage, ...]
    titles: tuple[SessionTitle, ...]
    held_by: tuple[int, ...]
    """Operations that stand, and have some of the rows, messages or titles out of sight as well: those stay so."""


@record
class RelatedRows:
    """What rows and messages have to do with other rows, in the log's order; none of it is among them."""

    derived: tuple[Observation, ...]
    """Rows that were made of them, or took their place, however many steps later."""
    replaced: tuple[Observation, ...]
    """Rows that they took the place of, in however many steps, but for what they were made of."""


@record
class EraseResult:
    """What was deleted for good."""

    rows: int = 0
    messages: int = 0
    """`Message.is_counted`."""
    bytes_before: int = 0
    """Of the store's files."""
    bytes_after: int = 0


@record
class RowHistory:
    """What became of a row, and how it came to be."""

    made_by: Operation | None = None
    """The operation that made it; None where it was observed, noted or taken in."""
    hidden_by: Operation | None = None
    """The operation that took it out of sight; None where a later observation did, or nothing has."""
    replaced: tuple[Observation, ...] = ()
    """The rows that it took the place of, oldest first."""
    made_of: tuple[Observation, ...] = ()
    """The rows that it was made of."""
    made_into: tuple[Observation, ...] = ()
    """The rows that were made of it."""
    successor: Observation | None = None
    """The row that took its place."""
