"""Ports of the store: one protocol per role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record
from omcli.memory.message import Incoming, KeptMessage
from omcli.memory.observation import Kind, Logged, LogQuery, Observation, Replacement
from omcli.memory.session import Author, EvictionPolicy, FreezePoint, Session, SessionSummary

if TYPE_CHECKING:  # these modules take long to import
    from omcli.memory.batch import Batch, BatchOutcome, Covered, Pending
    from omcli.memory.buffer import BufferedBatch
    from omcli.memory.changes import (
        EraseResult,
        Operation,
        OperationWrite,
        Records,
        RelatedRows,
        RowHistory,
        SessionTitle,
        UndoPreview,
    )
    from omcli.memory.reflection import ReflectionAttempt, ReflectionWrite, RowOutline, Scope
    from omcli.memory.retention import BackupResult, MessageOutline
    from omcli.memory.search import SearchIndex, Vectors
    from omcli.memory.transcript import Bookmark, IngestedFile, Origin


class Lane(StrEnum):
    """A kind of work on a session, or on all of them, with a lease of its own. Only OBSERVE has a cursor."""

    OBSERVE = "observe"
    REFLECT = "reflect"
    PRUNE = "prune"
    CONSOLIDATE = "consolidate"
    """Work on all sessions at once. It is a lane of the session whose id is empty."""
    WORK = "work"
    """Held by the session's only worker. Other processes leave observing and reflecting to that worker."""
    ASK = "ask"
    """Answering a question. It needs no lease; only model calls name this lane."""
    EMBED = "embed"
    """Making vectors of texts. It is a lane of the session whose id is empty."""


@record
class Appended:
    new: tuple[bool, ...]
    """For each given message, in order: True if it was new and its text was not forgotten."""
    forgotten: int = 0
    """Number of messages that were stored as hidden, because their text was forgotten."""


@record
class LaneError:
    """The last failure in a lane that has not succeeded since."""

    session: str | None
    """None for a reflection across sessions."""
    lane: Lane
    at: str
    error: str


@record
class StoreStatus:
    """Counts over the whole store. Token totals are given by counter and never added across counters."""

    sessions: int
    messages: int
    """Number of counted messages (see `Message.is_counted`)."""
    observations: int
    """Number of visible rows."""
    hidden: int
    """Number of superseded or dropped rows."""
    pending: int
    """Number of counted messages that no batch covers yet."""
    message_tokens: dict[str, int]
    """Tokens of all visible messages, including those not in `messages`."""
    observation_tokens: dict[str, int]
    """Tokens of all visible rows."""
    errors: tuple[LaneError, ...]
    """Unresolved failures, oldest first."""
    blocks: int = 0
    ahead: int = 0
    """Number of messages in `pending` that buffered batches contain."""


class MessageLog(Protocol):
    """The messages of all sessions, each stored once, in order of arrival."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        """Append the new messages in order, and create or update their session. Messages that were ever stored, in any
        session, are left as they are, except that one stored under its `formerly` identity gets the current identity.
        An exit code that exceeds 64 bits is dropped. Raise SessionTaken, and store nothing, if the session does not
        begin with the first `opening` messages (see `begins_with`).
        """

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        """Return True if these are the identities of the session's first messages, or begin with those of all its
        messages. Hidden and deleted messages count. Identities of messages in other sessions are skipped.
        """

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        """Return, for each identity, True if its message was ever ingested, even if it has been deleted since."""

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        """Return the last `count` visible messages of the session, oldest first."""

    def by_seq(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        """Return the visible messages with these `seq`, ascending, each once. Other numbers are ignored."""

    def by_key(self, key: str) -> KeptMessage:
        """Return the visible message with this printed id. Raise UnknownId if none or more than one has it."""

    def named(self, key: str) -> tuple[KeptMessage, ...]:
        """Return all messages with this printed id in order of arrival, even hidden ones, but not deleted ones."""

    def all(self, *, other_counter: str | None = None) -> Iterator[KeptMessage]:
        """Yield the visible messages of all sessions in order of arrival, read on demand. With `other_counter`, yield
        only those whose tokens were counted by another counter than this one.
        """

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        """Return the newest main-thread messages after a `seq`, oldest first: at most `max_tokens`, or one message."""

    def outline(self, session: str) -> tuple[MessageOutline, ...]:
        """Return the visible messages of the session in order, without their text."""

    def tokens(self, session: str) -> Mapping[str, int]:
        """Return the tokens of visible messages by counter: of the main thread if there is one, else of subagents."""

    def image(self, sha256: str) -> bytes | None:
        """Return the content of an image, or None if it was not kept or no pending message has it any more."""


class Bookmarks(Protocol):
    """Bookmarks, which record how far each file has been ingested."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        """Return the file's bookmarks with the same `Origin.terms`, by ascending offset."""

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        """Replace all bookmarks of a file by these, in order of offset. Messages before the last must be stored."""

    def files(self) -> tuple[IngestedFile, ...]:
        """Return all files that have bookmarks, sorted by path."""


class Batches(Protocol):
    """Pending messages, the outcomes of batches, and buffered batches."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        """Count the session's uncovered messages. With `ahead`, count only those after the last buffered batch."""

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        context_rows: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        """Return the next batch: the oldest uncovered messages, as many as `batch_length` allows. Return None if no
        message is left.

        Messages that the cursor has passed (`Batch.is_late`) are returned first, in batches of their own. Such batches
        contain no gap, have no `deferred_through`, and get only rows from earlier messages as context. Context
        rows are the newest `context_rows` visible observations of the session, and as many of the newest mutable ones
        (`Observation.is_mutable`). With `ahead`, the batch starts after the last buffered one and is never late.
        """

    def unobserved_up_to(self, session: str, through: int, *, context_rows: int = 0) -> Batch | None:
        """Return the uncovered messages up to the one with this `seq` as a batch, or None if that message is covered,
        hidden or unknown, or comes after the first run of late messages but before the cursor. Given the last `seq` of
        a batch that was read but not recorded, return that batch, without later messages.
        """

    def newest_unobserved(self, session: str, *, max_tokens: int, context_rows: int = 0) -> Batch | None:
        """Return the newest uncovered messages, also late ones, as a batch, or None. This batch cannot be recorded."""

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

        A `folding` is written first, and may raise its own StaleBatch (see `Reflections.fold`). Rows in `used` get
        `now` as their `last_used_at`. The session gets the `title` if it has none and the title was not forgotten.
        Batches that failed (with `error`), were deferred or are late do not move the cursor. Buffered batches that the
        cursor has passed are deleted, and so are images that no pending message has. A row whose text was forgotten is
        skipped and replaces nothing. A row that an operation has hidden is replaced once it is restored. Other
        replacements of hidden or unknown rows are ignored.

        Raise StaleBatch if the cursor is no longer at `batch.after` (batches after a buffered one may still fail or be
        deferred), if a message of a late batch is covered, or if messages in the range have been hidden or restored
        since the batch was read. Raise ValueError for rows or replacements unless the outcome is OBSERVED.

        Rows are linked to messages by `sources`; their `message_ids` are derived from these links when a row is read.
        Links to hidden and deleted messages are kept.
        """

    def covered(self, session: str) -> tuple[Covered, ...]:
        """Return the messages and rows of each batch of the session, in order. Batches without messages are skipped."""

    def buffer(self, block: BufferedBatch) -> None:
        """Store a batch that was observed ahead. Its rows are not visible until it is written, and the cursor does not
        move. Buffered batches contained in it are deleted. Raise StaleBatch if the cursor has passed the batch, if
        another buffered batch contains it, or if messages in its range have been hidden or restored since it was read.
        """

    def buffered(self, session: str) -> tuple[BufferedBatch, ...]:
        """Return the buffered batches that can be written one after another from the cursor (see `buffer.in_line`).

        Each starts where the previous one ends, without messages that the cursor has passed. One with hidden or deleted
        messages is returned without them and its title, which may derive from them. Unreadable ones are skipped.
        """

    def all_buffered(self) -> tuple[BufferedBatch, ...]:
        """Return all readable buffered batches without their messages, also those that cannot be written next."""


class Reflections(Protocol):
    """Reflections, including failed attempts."""

    def fold(self, folding: ReflectionWrite, *, now: str) -> None:
        """Write a reflection, even a failed or empty one, and hide the rows it folds, in one transaction.

        Raise StaleBatch if a row that was read is no longer visible, or if the operation that the reflection is part of
        was undone or made final.
        """

    def last_attempt(self, scope: Scope, mark: str | None = None) -> ReflectionAttempt | None:
        """Return the last attempt in a scope, if any. With `mark` (a fingerprint), the last that `is_about` it."""

    def has_changed(self, session: str, settings: str) -> bool:
        """Return False if the session's last reflection was made with these settings and left nothing worth folding
        (`ReflectionWrite.seen`), and `Rows.changes` has been the same since.
        """

    def outline(self, *, before: str, kept: str, counter: str) -> Iterator[RowOutline]:
        """Yield, in one transaction, visible rows dated before an instant, project by project, sorted by date. Items,
        pinned rows, open rows, and reflections without a session or with the tag `kept` are left out.
        """

    def ids(self, positions: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Yield, in one transaction, the ids of the rows at these positions, sorted, each with its position."""

    def support(self, observation: str) -> int:
        """Return the number of rows made from the row with this id."""

    def supports(self) -> Mapping[str, int]:
        """Map the id of each row to the number of rows made from it. Rows from which none was made are left out."""


class Operations(Protocol):
    """Operations: changes to several rows at once, which can be undone or made final, and their effect on each row."""

    def change(self, change: OperationWrite, *, now: str, for_good: bool = False) -> Operation:
        """Write an operation in one transaction and return it as recorded.

        Later reflections may be parts of an operation that hides nothing (`ReflectionWrite.part_of`). Unknown rows and
        messages are ignored. When pruning or forgetting, `for_good` also deletes everything the operation hides,
        including rows already hidden; disk space is freed later by `erase`. Raise StaleBatch if the log has rows
        after `OperationWrite.seen`.
        """

    def history(self, *, last: int | None = None) -> tuple[Operation, ...]:
        """Return the operations, newest first, without failed or empty reflections and without parts of others."""

    def undo(self, number: int | None = None, *, now: str) -> Operation:
        """Undo an operation, by default the last one that can be undone, and return the undo operation.

        Rows that it made are hidden. Everything it hid or forgot is restored unless another operation hides it too.
        Restored messages that were not observed are pending again, even if the cursor has passed them. Buffered batches
        made without them are deleted. Raise NotUndoable if the operation is unknown or cannot be undone.
        """

    def preview_undo(self, number: int | None = None) -> UndoPreview:
        """Return the effect that `undo` would have, without changing anything. Raise NotUndoable if `undo` would."""

    def erase(self, numbers: Sequence[int], *, now: str) -> EraseResult:
        """Permanently delete everything hidden by these prune and forget operations, and free the disk space.

        Rows that a deleted row replaced, buffered batches with deleted messages or forgotten text, and all bookmarks
        are deleted too. Other messages of such batches are observed again. Tombstones and the identities and printed
        ids of messages are kept. A reflection whose rows were deleted cannot be undone. Without numbers, only disk
        space is freed.
        """

    def preview_erase(self, numbers: Sequence[int]) -> EraseResult:
        """Count what `erase` would delete, without changing anything."""

    def traces(self, observation: str) -> RowHistory:
        """Return the origin and fate of the row with this id. Raise UnknownId if it is unknown or forgotten."""


class Tombstones(Protocol):
    """Forgotten rows, titles and text that must not be stored again."""

    def rows(self) -> tuple[Observation, ...]:
        """Return the forgotten rows and those they replaced, unless deleted, in log order, without their links."""

    def titles(self) -> tuple[SessionTitle, ...]:
        """Return the forgotten titles that are not yet deleted, sorted by session."""

    def has_messages(self, seqs: Sequence[int]) -> bool:
        """Return True if all messages with these `seq` are forgotten, and not only pruned."""

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        """Return, for each row, True if the store would skip it, because its text was forgotten."""

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        """Return, for each text, True if a title, message or row with it was forgotten. Rows of tool events don't
        count, nor do rows whose text is not distinctive.
        """


class Rows(Protocol):
    """All rows: observations, reflections, notes and items."""

    def add(self, *observations: Observation) -> None:
        """Add rows of no batch, such as notes or imported rows, and their sessions. Forgotten rows are skipped."""

    def log(self, query: LogQuery) -> Iterator[Logged]:
        """Yield the selected rows in log order, read on demand. Rows added during the iteration may be included."""

    def find(self, reference: str) -> Observation:
        """Return the row with this id, or with a handle that begins with these digits (at least 4), unless forgotten.
        Raise UnknownId unless exactly one row matches.
        """

    def find_all(self, ids: Iterable[str], *, bare: bool = False) -> Iterator[Observation | None]:
        """Yield, for each id, its row, or None if it is unknown or forgotten. `bare` is that of `LogQuery`."""

    def tokens(self, session: str, kinds: Iterable[Kind] = tuple(Kind)) -> Mapping[str, int]:
        """Return the tokens of the session's visible rows of these kinds, by counter."""

    def changes(self, session: str) -> int:
        """Return how often an observation or reflection of the session was added, hidden, restored or deleted."""


class TextSearch(Protocol):
    """Search over messages and rows, including hidden ones, to find what to forget."""

    def messages(self, text: str) -> tuple[KeptMessage, ...]:
        """Return the messages that contain `text`, in order of arrival. Normalise `text` with `folded_text` first."""

    def rows(self, text: str) -> tuple[Observation, ...]:
        """Return the rows that contain `text` (see `row_says`): rows of the log in order, then forgotten rows."""

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> RelatedRows:
        """Return the rows derived from given rows (by id) or messages, and the rows that the given rows replaced."""


class Sessions(Protocol):
    """The sessions and their statistics."""

    def find(self, session: str) -> Session | None:
        """Return the session with this id, or None if neither messages nor rows were ever added to it."""

    def ids(self, prefix: str = "") -> tuple[str, ...]:
        """Return the ids of sessions that begin with a prefix, sorted."""

    def prompt(self, session: str) -> str | None:
        """Return the beginning of the first visible prompt in the main thread, or None if there is none."""

    def summaries(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        """Return the sessions by descending `active_at`, `seen_at` and id, those without messages and rows last."""

    def authors(self) -> tuple[Author, ...]:
        """Return everyone who has written to the store, by name and machine."""

    def row_count(self, kinds: Iterable[Kind], *, session: str | None = None, hidden: bool = False) -> int:
        """Return the number of visible rows of these kinds in a session or in the store. With `hidden`, count all."""

    def with_work(
        self, counter: str, *, pending: int | None = None, rows: int | None = None, reflections: int | None = None
    ) -> tuple[str, ...]:
        """Return the ids of the sessions, in the order of `summaries`, that have at least this many tokens in `pending`
        messages, or in visible `rows`, or this many visible `reflections`. Any tokens of another counter are enough.
        """

    def status(self) -> StoreStatus:
        """Return counts over the whole store."""

    def freeze_point(
        self, session: str, *, own: str | None, project: str | None, eviction: EvictionPolicy, further: int = 0
    ) -> FreezePoint:
        """Return the freeze point of a session in the project `own`, after `further` additional cuts.

        The session's pack contains rows of `project`, or of all projects if `project` is None. The point moves when the
        tail is cut (see `EvictionPolicy`), when an operation that wrote rows for the session, or for no session, is
        made or undone, when a note is written, and when rows are imported.
        """


class Backups(Protocol):
    """Backups of the store, kept in its folder."""

    def snapshot(self, *, now: str) -> str | None:
        """Copy the whole store to a new file in its folder and return its path, or None if the store is temporary.
        Raise CannotCreate or InputOutput if this fails.
        """

    def back_up(self, *, keep: int, now: str) -> BackupResult:
        """Make a backup if one is due, check it, and remove all but the newest `keep` backups (at least 1). Raise
        InputOutput, and remove none, if the new one fails or is damaged. Without a new one, remove none if the newest
        is damaged.
        """

    def is_due(self, *, now: str) -> bool:
        """Return True if `back_up` would make a backup."""


class Leases(Protocol):
    """Leases on the lanes of sessions, so that only one process works on each."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        """Take the lease on a lane, or extend the owner's own. Raise LaneTaken if another owner holds it. A lease that
        has expired, or whose owner no longer runs, is taken over. A refused claim also shortens the current lease to
        the claim's own `expires_at`, so that a lease taken while the clock was wrong does not last.
        """

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        """Give the lease back. Do nothing if another owner holds it."""


class Store(Protocol):
    """Durable storage of messages and rows, divided into roles. Code that needs only one role takes that role alone.
    Every method is one transaction, but iterators read page by page unless they say otherwise. Text is returned
    unchanged, except that halves of surrogate pairs become U+FFFD. Methods that write may raise StoreLocked,
    InputOutput or, if the index of words was damaged and is mended now, TryAgain.
    """

    @property
    def author(self) -> Author | None: ...  # of what is written to it, if known
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
    def index(self) -> SearchIndex: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def backups(self) -> Backups: ...
    @property
    def records(self) -> Records: ...
    @property
    def leases(self) -> Leases: ...
