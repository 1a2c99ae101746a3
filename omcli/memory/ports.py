"""Ports: the protocols of the store, one per role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record
from omcli.memory.message import Incoming, KeptMessage
from omcli.memory.observation import Kind, Observation, Priority, Replacement, Type
from omcli.memory.session import EvictionPolicy, FreezePoint, Session, SessionSummary

if TYPE_CHECKING:  # these import modules that take long to load
    from omcli.memory.batch import Batch, BatchOutcome, Covered, Pending
    from omcli.memory.buffer import BufferedBatch
    from omcli.memory.changes import (
        EraseResult,
        Operation,
        OperationWrite,
        RelatedRows,
        RowHistory,
        SessionTitle,
        UndoPreview,
    )
    from omcli.memory.reflection import ReflectionAttempt, ReflectionWrite, Scope
    from omcli.memory.retention import BackupResult, MessageOutline
    from omcli.memory.transcript import Bookmark, IngestedFile, Origin


class Lane(StrEnum):
    """A kind of work that goes through a session in order. Each lane has its own cursor and lease."""

    OBSERVE = "observe"
    REFLECT = "reflect"
    PRUNE = "prune"
    CONSOLIDATE = "consolidate"
    """Works on all sessions at once, as a lane of the session with the empty id."""
    WORK = "work"
    """Held by the one worker of a session. Other processes leave observing and reflecting to it."""


@record
class Appended:
    """Result of an append."""

    new: tuple[bool, ...]
    """For each message given, in order, True if it was new."""


@record
class LogQuery:
    """A selection of rows. By default all visible rows; most fields narrow it."""

    session: str | None = None
    other_than: str | None = None
    """Only rows of sessions other than this one, or of no session."""
    project: str | None = None
    kinds: tuple[Kind, ...] = ()
    types: tuple[Type, ...] = ()
    priorities: tuple[Priority, ...] = ()
    since: str | None = None
    """Only rows dated at or after this instant."""
    until: str | None = None
    """Only rows dated before this instant."""
    hidden: bool = False
    """Include superseded and dropped rows."""
    after: int = 0
    """Only rows added after this position (`Logged.position`), to follow the log."""
    last: int | None = None
    """Only this many rows, the last ones."""
    as_of: int | None = None
    """Only rows that were visible when the log ended at this position and have not been dropped since. Rows replaced
    since are returned as they were then, except those of `session` that an operation hid. `last_used_at` is empty."""
    bare: bool = False
    """Leave `sources`, `message_ids` and `metadata` empty, which take longest to read."""


@record
class Logged:
    """A row of the log with its position, which increases in the order in which rows were added."""

    position: int
    observation: Observation


@record
class LaneError:
    """The last failure of a lane that has not succeeded since."""

    session: str | None
    """None for a reflection across sessions."""
    lane: Lane
    at: str
    error: str


@record
class StoreStatus:
    """Counts over the whole store. Token totals are by counter and never added across counters."""

    sessions: int
    messages: int
    """Counted messages (`Message.is_counted`)."""
    observations: int
    """Visible rows."""
    hidden: int
    """Superseded or dropped rows."""
    pending: int
    """Stored messages that no observation batch covers yet."""
    message_tokens: dict[str, int]
    """Tokens of all stored messages, counted or not."""
    observation_tokens: dict[str, int]
    """Tokens of visible rows."""
    errors: tuple[LaneError, ...]
    """Unresolved failures, oldest first."""
    blocks: int = 0
    """Number of buffered batches."""
    ahead: int = 0
    """Number of pending messages in buffered batches."""


class MessageLog(Protocol):
    """The messages of all sessions, each stored once, in the order in which they arrived."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        """Append the new messages, in order, and create or update their session.

        Raise SessionTaken, and store nothing, if the session does not begin with the first `opening` messages
        (`begins_with`). A message already stored, in any session, is left as it is; one stored under its `formerly`
        identity gets the present one. An exit code that exceeds 64 bits is dropped.
        """

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        """Return True if a session begins with these messages, or, if it is shorter, consists of the first of them.

        Identities of messages that are stored in another session, or were deleted, are skipped.
        """

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        """Return for each identity True if its message was ever ingested, even if it has been deleted since."""

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        """Return the `count` messages of a session that arrived last, oldest first."""

    def by_seq(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        """Return messages by `seq`, ascending, each once. Unknown numbers are ignored."""

    def by_key(self, key: str) -> KeptMessage:
        """Return the message with this printed id. Raise UnknownId if there is none, or more than one."""

    def named(self, key: str) -> tuple[KeptMessage, ...]:
        """Return all messages with this printed id, hidden ones included, in order of arrival."""

    def all(self) -> Iterator[KeptMessage]:
        """Yield every message of every session, read on demand."""

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        """Return the newest main-thread messages after a `seq`, oldest first: at least one, else up to `max_tokens`."""

    def outline(self, session: str) -> tuple[MessageOutline, ...]:
        """Return the messages of a session without their text, in order."""

    def tokens(self, session: str) -> Mapping[str, int]:
        """Return the tokens of a session's main thread, by counter; those of its subagents if it has no main thread."""

    def image(self, sha256: str) -> bytes | None:
        """Return the content of an image; None if it was not kept, or its message has been observed."""


class Bookmarks(Protocol):
    """Bookmarks: how far each file has been ingested."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        """Return the bookmarks of a file, by ascending offset; none if its terms have changed."""

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        """Replace all bookmarks of a file, by ascending offset. Messages before the last one must be stored."""

    def files(self) -> tuple[IngestedFile, ...]:
        """Return all files with bookmarks, sorted by path."""


class Batches(Protocol):
    """Messages waiting to be observed, the outcomes of batches, and buffered batches."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        """Count the messages of a session that no observation covers yet; with `ahead`, only those not buffered."""

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        context_rows: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        """Return the next batch: the oldest uncovered messages, as many as `batch_length` allows; None if none is left.

        Messages restored before the cursor come first, in batches of their own (`Batch.is_late`), which contain no gap,
        have only rows from earlier messages as context, and are never deferred. Context rows are the newest
        `context_rows` visible observations of the session, and as many of those that may change
        (`Observation.is_mutable`). With `ahead`, the batch starts after the last buffered one.
        """

    def unobserved_up_to(self, session: str, through: int, *, context_rows: int = 0) -> Batch | None:
        """Return the uncovered messages up to the one with this `seq` as a batch; None if that one is not uncovered.

        This reads an earlier batch again, without messages that have arrived since.
        """

    def record(
        self,
        batch: Batch,
        observations: Sequence[Observation],
        *,
        outcome: BatchOutcome,
        now: str,
        replaced: Sequence[Replacement] = (),
        used: Sequence[str] = (),
        title: str | None = None,
        error: str | None = None,
        folding: ReflectionWrite | None = None,
    ) -> None:
        """Write a batch's rows, hide the rows they replace and move the cursor to `batch.through`, in one transaction.

        A `folding` is written first, in the same transaction (`Reflections.fold`). Rows in `used` get `now` as their
        `last_used_at`. The session gets the `title` if it has none. FAILED (which records `error`), DEFERRED and late
        batches leave the cursor where it is. Buffered batches that the cursor has passed are deleted. A row whose text
        was forgotten is skipped and replaces nothing; a replaced row that is hidden or unknown is ignored.

        Raise StaleBatch if the cursor is no longer `batch.after` (a batch after the last buffered one may fail or be
        deferred), if a message of a late batch is covered, or if messages in the range have been hidden or restored
        since the batch was read. Raise ValueError for rows or replacements unless the outcome is OBSERVED.

        Rows are linked to messages by `sources`; `message_ids` are derived from it when a row is read. Sources that
        never were messages are dropped, those of hidden and deleted messages are kept.
        """

    def covered(self, session: str) -> tuple[Covered, ...]:
        """Return the messages and rows of each batch of a session, in order. Those without messages now are skipped."""

    def buffer(self, block: BufferedBatch) -> None:
        """Store a batch that was observed ahead, until it is written. Its rows are not visible, and the cursor stays.

        Buffered batches nested in it are deleted. Raise StaleBatch if the cursor has passed it, another one contains
        it, or messages in its range have been hidden or restored since it was read.
        """

    def buffered(self, session: str) -> tuple[BufferedBatch, ...]:
        """Return the buffered batches that can be written one after another from the cursor (`buffer.in_line`).

        Each starts where the previous one ends, without messages the cursor has passed. A batch with deleted messages
        comes without them and without its title, which may derive from them. Unreadable batches are skipped.
        """

    def all_buffered(self) -> tuple[BufferedBatch, ...]:
        """Return the buffered batches of all sessions, including those after a gap, without messages that are gone."""


class Reflections(Protocol):
    """Reflections, and attempts at them that failed."""

    def fold(self, folding: ReflectionWrite, *, now: str) -> None:
        """Write a reflection's rows and hide those it folds, in one transaction.

        Raise StaleBatch if a row that was read is no longer visible, or if the operation it is part of has been undone
        or made final.
        """

    def last_attempt(self, scope: Scope, mark: str | None = None) -> ReflectionAttempt | None:
        """Return the last attempt in a scope; with the fingerprint `mark`, the last that read or left those rows."""

    def support(self, observation: str) -> int:
        """Return the number of rows made from the row with this id."""

    def supports(self) -> Mapping[str, int]:
        """Return `support` by id for all rows from which others were made."""


class Operations(Protocol):
    """Operations that change several rows at once, which can be undone or made final, and their traces on rows."""

    def change(self, change: OperationWrite, *, now: str, for_good: bool = False) -> Operation:
        """Write an operation in one transaction and return it as recorded.

        If it hides nothing, it starts an operation that others can be part of (`ReflectionWrite.part_of`). Unknown rows
        and messages are ignored. `for_good` also deletes everything in it, including rows already hidden; `erase` then
        frees the disk space. Raise StaleBatch if the log has rows after `OperationWrite.seen`.
        """

    def history(self, *, last: int | None = None) -> tuple[Operation, ...]:
        """Return the operations that had an effect, newest first. Parts of an operation count towards it."""

    def undo(self, number: int | None = None, *, now: str) -> Operation:
        """Undo an operation, by default the last one that can be undone, and return the operation that undoes it.

        Rows it made are hidden, and everything it hid or forgot is restored, unless another operation hides it too. A
        restored message that was not yet observed waits again, even if the cursor has passed it; buffered batches that
        were made without it are deleted. Raise NotUndoable if the operation is unknown or can't be undone.
        """

    def preview_undo(self, number: int | None = None) -> UndoPreview:
        """Return the effect `undo` would have, without changing anything. Raise NotUndoable as `undo` does."""

    def erase(self, numbers: Sequence[int], *, now: str) -> EraseResult:
        """Permanently delete what the prune and forget operations with these numbers hid, and free the disk space.

        Rows that a deleted row replaced are deleted too, and so are buffered batches with deleted messages, so that the
        other messages are observed again. Tombstones, and the identities and printed ids of messages, are kept. A
        reflection whose rows were deleted can't be undone. Without numbers, only disk space is freed.
        """

    def preview_erase(self, numbers: Sequence[int]) -> EraseResult:
        """Count what `erase` would delete, without changing anything."""

    def traces(self, observation: str) -> RowHistory:
        """Return the origin and fate of the row with this id."""


class Tombstones(Protocol):
    """Forgotten rows, titles and text, which must not be stored again."""

    def rows(self) -> tuple[Observation, ...]:
        """Return the forgotten rows that are not deleted yet, in log order, without their links."""

    def titles(self) -> tuple[SessionTitle, ...]:
        """Return the forgotten titles that are not deleted yet, sorted by session."""

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        """Return for each row True if its text was forgotten, so that the store would skip it."""

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        """Return for each text True if a title, or a row of any session, with this text was forgotten."""


class Rows(Protocol):
    """All rows: observations, reflections, notes and items."""

    def add(self, *observations: Observation) -> None:
        """Add rows that come from no batch: a note, or imported rows. Their sessions need not exist."""

    def log(self, query: LogQuery) -> Iterator[Logged]:
        """Yield the selected rows in log order, read on demand. Rows added during the iteration may be included."""

    def find(self, reference: str) -> Observation:
        """Return the row with this id or handle (4 digits or more), hidden or not. Raise UnknownId unless it is one."""

    def tokens(self, session: str) -> Mapping[str, int]:
        """Return the tokens of a session's visible rows, by counter."""


class TextSearch(Protocol):
    """Search for messages and rows to forget, including hidden ones."""

    def messages(self, text: str) -> tuple[KeptMessage, ...]:
        """Return the messages that contain `text` (compared by `folded_text`), in order of arrival."""

    def rows(self, text: str) -> tuple[Observation, ...]:
        """Return the rows that contain `text` (`row_says`), in log order, followed by forgotten ones."""

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> RelatedRows:
        """Return the rows derived from the rows with these ids and from these messages, and those the rows replaced."""


class Sessions(Protocol):
    """The sessions, with statistics."""

    def find(self, session: str) -> Session | None:
        """Return the session with this id; None if no messages were ever appended to it, even if it has rows."""

    def summaries(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        """Return sessions, those ingested last first; at equal instants by descending id."""

    def status(self) -> StoreStatus:
        """Return counts over the whole store."""

    def freeze_point(
        self, session: str, *, own: str | None, project: str | None, eviction: EvictionPolicy, further: int = 0
    ) -> FreezePoint:
        """Return the freeze point for the pack of a session in the project `own`, after `further` additional cuts.

        The pack has rows of `project`, or of all projects if it is None. The point moves when the tail is cut
        (`EvictionPolicy`), when an operation that wrote rows for the session, or for no session, is made or undone, and
        when rows are noted or imported.
        """


class Backups(Protocol):
    """Backups of the store, in the same folder."""

    def snapshot(self, *, now: str) -> str:
        """Copy the whole store to a new file and return its name. May raise CannotCreate or InputOutput."""

    def back_up(self, *, keep: int, now: str) -> BackupResult:
        """Make a backup if one is due, check it, and remove all but the newest `keep` (at least 1).

        Raise InputOutput if the backup fails or is damaged; then none is removed.
        """

    def is_due(self, *, now: str) -> bool:
        """Return True if `back_up` would make a backup."""


class Leases(Protocol):
    """Leases on the lanes of sessions, so that only one process works on each."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        """Take the lease on a lane, or extend one's own. Raise LaneTaken, which names the owner, if another holds it.

        A lease that has expired, or whose owner no longer runs, is taken over. A refused claim also shortens the lease
        to its own `expires_at`, so that one taken while the clock was wrong does not last.
        """

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        """Give the lease back. Do nothing if another owner holds it."""


class Store(Protocol):
    """Durable storage of messages and rows, divided into roles. Code that needs only one role asks for that role.

    Every method of a role is one transaction. Text is returned unchanged, except that halves of surrogate pairs, which
    are not valid Unicode, become U+FFFD. Methods that write may raise StoreLocked or InputOutput.
    """

    @property
    def messages(self) -> MessageLog: ...
    @property
    def bookmarks(self) -> Bookmarks: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def reflections(self) -> Reflections: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def tombstones(self) -> Tombstones: ...
    @property
    def rows(self) -> Rows: ...
    @property
    def search(self) -> TextSearch: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def backups(self) -> Backups: ...
    @property
    def leases(self) -> Leases: ...
