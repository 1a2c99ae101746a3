"""Ports: the store as the core asks for it, role by role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record
from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Kind, Observation, Priority, Replacement, Type
from omcli.memory.session import EvictionPolicy, FreezePoint, Session

if TYPE_CHECKING:  # what reads no file waits for no hash
    from omcli.memory.batch import Batch, BatchOutcome
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
    """Work that goes through a session in order; each lane has a cursor and a lease of its own."""

    OBSERVE = "observe"
    REFLECT = "reflect"
    PRUNE = "prune"
    CONSOLIDATE = "consolidate"
    """All sessions at once: a lane of the session with the empty id."""
    WORK = "work"
    """Held by a session's one worker, which observes and reflects: other processes leave both to it."""


@record
class Incoming:
    """A message on its way into the store."""

    message: Message
    identity: str
    """Equal if the same message comes again (`memory.identity`). Unique over the whole store."""
    key: str
    """Its printed id."""
    tokens: int
    formerly: str | None = None
    """Its identity in stores of schema 1, if that is another."""


@record
class Pending:
    """Messages of a session that no observation covers yet."""

    messages: int
    tokens: Mapping[str, int]
    """By counter; numbers of two counters are never added."""
    fresh_tokens: Mapping[str, int]
    """Tokens of those that were not offered to an observer yet."""
    blocks: int = 0
    """Number of buffered batches of the session."""


@record
class Appended:
    """Result of an append: for each message given, in order, True if it was new."""

    new: tuple[bool, ...]


@record
class LogQuery:
    """A selection of rows. Every field narrows it; the defaults select all visible rows."""

    session: str | None = None
    other_than: str | None = None
    """Rows of every session but this one, and of none."""
    project: str | None = None
    kinds: tuple[Kind, ...] = ()
    types: tuple[Type, ...] = ()
    priorities: tuple[Priority, ...] = ()
    since: str | None = None
    """Instant: rows dated at or after it."""
    until: str | None = None
    """Instant: rows dated before it."""
    hidden: bool = False
    """Superseded and dropped rows as well."""
    after: int = 0
    """Rows added after this position (`Logged.position`), for following a log."""
    last: int | None = None
    """Only the last this many."""
    as_of: int | None = None
    """Only rows that were visible when the log ended with this position, and have not been dropped since. Rows that
    were replaced meanwhile come as they were, but for those of `session` that an operation hid; `last_used_at` is
    empty."""
    bare: bool = False
    """Without the fields that take longest to read: `sources`, `message_ids` and `metadata` are empty."""


@record
class Logged:
    """A row of the log with its position: the order in which rows were added."""

    position: int
    observation: Observation


@record
class Covered:
    """Messages of a session that one batch covered, and its rows."""

    first: str
    """The printed id of the first message."""
    last: str
    """The printed id of the last one."""
    start: int
    """The place of the first message among all of the session, from 0."""
    end: int
    """The place after the last one."""
    positions: tuple[int, ...]
    """Of the rows (`Logged.position`), superseded and dropped ones as well, but no forgotten ones."""


@record
class SessionSummary:
    """A session, and counts of its messages and rows."""

    session: Session
    messages: int
    """Counted messages (`Message.is_counted`)."""
    observations: int
    """Visible rows."""
    pending: int
    """Stored messages that no observation batch covers yet."""
    first_at: str | None
    last_at: str | None
    """The earliest and the latest instant of its messages, if any has one."""
    seen_at: str
    """Instant at which messages of it were last ingested."""


@record
class LaneError:
    """The last failure of a lane that no later success has followed."""

    session: str | None
    """None for a reflection across sessions."""
    lane: Lane
    at: str
    error: str


@record
class StoreStatus:
    """The whole store in numbers. Token totals are per counter and never added across counters."""

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
    """Of all stored messages, counted or not, by counter."""
    observation_tokens: dict[str, int]
    """Of visible rows, by counter."""
    errors: tuple[LaneError, ...]
    """Oldest first."""
    blocks: int = 0
    """Buffered batches."""
    ahead: int = 0
    """Pending messages in buffered batches."""


class MessageLog(Protocol):
    """The messages of all sessions, each once, in the order in which they arrived."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        """Append the messages that are new, in order, and merge the facts about their session.

        The first `opening` of the messages have to be those that the session begins with (`begins_with`): if it does
        not, SessionTaken is raised and nothing is kept.

        A message whose identity is already stored, in any session, is left as it is; one that is stored under the
        identity it had formerly goes by the present one from then on. The session is there afterwards,
        even if no message is given. An exit code that does not fit into 64 bits is dropped.
        """

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        """True if a session's first messages are those of these identities, in order, as far as both of them go.

        Identities whose messages are kept in another session, or were deleted, are skipped. A session without messages
        begins with anything.
        """

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        """For each identity True if its message was ever ingested, even if it was deleted since."""

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        """The last messages of a session to arrive, oldest first, at most so many."""

    def by_seq(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        """Messages by `seq`, ascending, each once; unknown ones are left out."""

    def by_key(self, key: str) -> KeptMessage:
        """The message with this printed id. Raises UnknownId for none and for several."""

    def named(self, key: str) -> tuple[KeptMessage, ...]:
        """The messages with a printed id, in the order of arrival; hidden ones as well."""

    def all(self) -> Iterator[KeptMessage]:
        """Every message of every session, read on demand."""

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        """The newest messages of a session's main thread behind a `seq`, oldest first, at most `max_tokens` but at
        least one."""

    def outline(self, session: str) -> tuple[MessageOutline, ...]:
        """The messages of a session without their texts, in order."""

    def tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of all messages of a session's main thread, by counter; of its subagents' if it has none."""

    def image(self, sha256: str) -> bytes | None:
        """The bytes of an image that came with a message, until a batch covers that; None if they are not kept."""


class Bookmarks(Protocol):
    """Places up to which files were ingested."""

    def find(self, origin: Origin) -> tuple[Bookmark, ...]:
        """The bookmarks of a file, by ascending offset; none if it was read on other terms."""

    def put(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        """Replace all bookmarks of a file, by ascending offset. Messages before the last one must be stored."""

    def files(self) -> tuple[IngestedFile, ...]:
        """Every file that has bookmarks, by path."""


class Batches(Protocol):
    """Messages that wait to be observed, in batches, and the outcome of each; also of those observed ahead."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        """Messages of a session that no observation covers yet; `ahead`: only those in no buffered batch."""

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        context_rows: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        """The oldest uncovered messages of a session, at most `max_tokens` but at least one; None if none is left.

        Those that came back behind the cursor are the first; no batch has others beside them, nor covered ones between
        them, and only rows come with it that are of messages before it. They are never deferred.

        The batch does not end between a call and its result if the two, and what is between them, fit into one
        batch (`batching`). With it come the newest `context_rows` observations of the session that are visible, and the
        newest `context_rows` of those that may change (`Observation.is_mutable`). `ahead`: the oldest behind the last
        buffered batch.
        """

    def unobserved_up_to(self, session: str, through: int, *, context_rows: int = 0) -> Batch | None:
        """The uncovered messages of a session up to the one with this `seq`, as a batch; None if it is none of them.

        A batch that was read before is read again that way, whatever was said since.
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
        """Write a batch's rows, hide those they replace and move the cursor to `batch.through`, or nothing of it.

        A `folding` is written before them, as `Reflections.fold` does: all of both, or nothing of either.

        A row that is hidden already, or does not exist, is not replaced. `used` are ids of rows that mattered: they
        were used `now`. The session gets the `title` if it has none. FAILED records the error and leaves the cursor,
        DEFERRED leaves it as well; both also go for a batch behind the last buffered one. Buffered batches that the
        cursor has passed are deleted. A late batch leaves the cursor where it is, whatever its outcome. A row that is
        skipped, since its text was forgotten, replaces nothing. Raises StaleBatch, whatever the outcome, if the
        cursor is no longer `batch.after`, or if a message of a late batch is covered; and if messages of it were
        hidden meanwhile, or brought back between them; ValueError for rows or replacements of a batch that is not
        OBSERVED.

        What links a row to its messages is `sources`. Read again, `message_ids` are the printed ids of those; a source
        that names no message is left out, but not one whose message was hidden or deleted.
        """

    def covered(self, session: str) -> tuple[Covered, ...]:
        """The messages and rows of each batch of a session, in order; a batch whose messages are gone is left out.

        Places are among all messages that the session ever had.
        """

    def buffer(self, block: BufferedBatch) -> None:
        """Keep a batch that was observed ahead until it is written. None of its rows is visible, and the cursor stays.

        Buffered batches inside it are deleted. Raises StaleBatch if the cursor has passed it, another has all of it, or
        messages of it were hidden meanwhile, or brought back between them.
        """

    def buffered(self, session: str) -> tuple[BufferedBatch, ...]:
        """The buffered batches that can be written one after another, oldest first (`blocks.in_line`).

        The first begins at the cursor, each other where the one before ends. Deleted messages are left out, with
        the title, which may have come from them, and so are messages the cursor has passed; a batch that cannot be
        read is skipped.
        """

    def all_buffered(self) -> tuple[BufferedBatch, ...]:
        """The buffered batches of all sessions, also those behind a gap, each as it was put but for its messages."""


class Reflections(Protocol):
    """Rows folded into fewer ones, and attempts that failed."""

    def fold(self, folding: ReflectionWrite, *, now: str) -> None:
        """Write a reflection, with all it makes and hides, or nothing of it.

        Raises StaleBatch if a row it was made from is no longer visible, or if what it is a part of was undone or made
        final.
        """

    def last_attempt(self, scope: Scope, mark: str | None = None) -> ReflectionAttempt | None:
        """The last reflection that was made or tried in a scope; with a fingerprint the last that read or left those
        rows."""

    def support(self, observation: str) -> int:
        """Number of rows that were made of the row with this id."""

    def supports(self) -> Mapping[str, int]:
        """The same of every row, by id, that any was made of."""


class Operations(Protocol):
    """Changes made in one piece, undone in one piece or made final; and the traces they left on rows."""

    def change(self, change: OperationWrite, *, now: str, for_good: bool = False) -> Operation:
        """Hide rows and messages, all of them or nothing, and return the operation as it was recorded.

        With nothing to hide it begins an operation that others are a part of (`ReflectionWrite.part_of`). A row or a
        message that does not exist is left out. `for_good` deletes all of it in the same transaction, rows that are
        hidden already as well; `erase` then frees the disk space. Raises StaleBatch if rows have come that were not
        looked at (`OperationWrite.seen`).
        """

    def history(self, *, last: int | None = None) -> tuple[Operation, ...]:
        """The operations that had an effect, newest first; parts of another one are counted with that."""

    def undo(self, number: int | None = None, *, now: str) -> Operation:
        """Undo an operation - the last one that can be, if none is named - and return the undoing.

        Rows it hid are visible again, rows it made are not, and what it forgot is back where it was, unless another
        operation that was not undone has hidden it as well. A message that waited to be observed waits again, even if
        the cursor has passed it meanwhile; a buffered batch around it that was made without it goes. Raises
        NotUndoable.
        """

    def preview_undo(self, number: int | None = None) -> UndoPreview:
        """The effect `undo` would have; nothing changes. Raises NotUndoable as that does."""

    def erase(self, numbers: Sequence[int], *, now: str) -> EraseResult:
        """Delete for good what these prunings and forgettings hid, and free the disk space.

        With a row go those that it replaced. Tombstones and identities stay, and of a message its printed id.
        What was undone has nothing to delete; for no numbers at all only space is freed. A reflection whose
        rows were deleted cannot be undone any more.
        A buffered batch that has one of the messages goes with them: the others are observed again.
        """

    def preview_erase(self, numbers: Sequence[int]) -> EraseResult:
        """Counts of what `erase` would delete; nothing changes."""

    def traces(self, observation: str) -> RowHistory:
        """The operations and rows that the row with this id came from and went to."""


class Tombstones(Protocol):
    """Rows, titles and texts that were forgotten and must not come back."""

    def rows(self) -> tuple[Observation, ...]:
        """The rows that were forgotten and are not deleted, in the log's order; without their links."""

    def titles(self) -> tuple[SessionTitle, ...]:
        """The titles that were forgotten and are not deleted, by session."""

    def match(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        """For each row True if its text was forgotten: the store skips it when it is to be kept."""

    def match_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        """For each text True if something that says it in any session, or a title, was forgotten."""


class Rows(Protocol):
    """All rows: observations, reflections, notes and items."""

    def add(self, *observations: Observation) -> None:
        """Keep rows that come from no batch: a note, or imported rows. Their sessions need not exist."""

    def log(self, query: LogQuery) -> Iterator[Logged]:
        """Rows in the order they were added, read on demand: rows added meanwhile may come as well."""

    def find(self, reference: str) -> Observation:
        """The row with this id, hidden or not, or whose handle begins with these 4 digits or more.

        Raises UnknownId for none and for several.
        """

    def tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of a session's visible rows, by counter."""


class TextSearch(Protocol):
    """Messages and rows by a text in them, hidden or not: for forgetting."""

    def messages(self, text: str) -> tuple[KeptMessage, ...]:
        """The messages that contain a text (`wording`), in the order of arrival."""

    def rows(self, text: str) -> tuple[Observation, ...]:
        """The rows that contain a text (`row_says`), in the log's order; forgotten ones behind them."""

    def related(self, rows: Sequence[str], messages: Sequence[int]) -> RelatedRows:
        """Rows made of the rows of these ids, and of messages; and rows that those rows replaced."""


class Sessions(Protocol):
    """The sessions, and numbers of each and of all."""

    def find(self, session: str) -> Session | None:
        """A session by its id; None if nothing was ever appended to it, even if rows belong to it."""

    def summaries(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        """Sessions, most recently seen first; of those seen at one instant, the greatest id."""

    def status(self) -> StoreStatus:
        """The whole store in numbers."""

    def freeze_point(
        self, session: str, *, own: str | None, project: str | None, eviction: EvictionPolicy, further: int = 0
    ) -> FreezePoint:
        """The freeze point of the pack of a session in the project `own`, with `further` cuts than there have to be.
        The pack holds rows of `project`, of all projects for None.

        It moves when the tail is cut (`EvictionPolicy`), when an operation makes rows of the session, or of none, when
        such an operation is undone, and when rows come that no message gave: written by hand, or imported.
        """


class Backups(Protocol):
    """Copies of the store beside it."""

    def snapshot(self, *, now: str) -> str:
        """Copy the whole store to a file of its own and return its name. Raises CannotCreate, InputOutput."""

    def back_up(self, *, keep: int, now: str) -> BackupResult:
        """Copy the whole store if the last copy is a day old, and remove all but the newest `keep` (from 1).

        A copy counts if it was checked and found in order. Raises InputOutput; no copy is removed then.
        """

    def is_due(self, *, now: str) -> bool:
        """True if `back_up` would make a copy."""


class Leases(Protocol):
    """Owners of the lanes of sessions."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        """Take the lease on a lane, or extend it for its owner. Raises LaneTaken while another holds it.

        A lease that has expired, or whose owner is known to be gone, is taken over. The error names the owner. A lease
        that keeps others out lasts no longer than the last of them asked for: clocks go wrong, and back.
        """

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        """Give the lease back; does nothing if another owner holds it."""


class Store(Protocol):
    """Messages and rows, kept for good, by role. Every method of a role is one transaction; none is open between two.

    Text comes back as it was given, but for halves of surrogate pairs: they are not Unicode and become U+FFFD. Methods
    that write raise StoreLocked and InputOutput. Code that needs only one role asks for that role.
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
