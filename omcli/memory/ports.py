"""What the core needs from outside: a store and a token counter. Each has a fake under the same tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record
from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Kind, Observation, Priority, Type
from omcli.memory.session import Session

if TYPE_CHECKING:  # what reads no file waits for no hash
    from omcli.memory.backups import BackedUp
    from omcli.memory.bookmark import Bookmark, Origin, TakenIn
    from omcli.memory.buffer import Block
    from omcli.memory.changes import Change, Erased, Kin, Recorded, Titled, Traces, Undoing
    from omcli.memory.freeze import Cutting, Horizon
    from omcli.memory.reflection import Attempt, Folding, Scope
    from omcli.memory.retention import Outlined


class Lane(StrEnum):
    """Work that goes through a session in order; each lane has a cursor and a lease of its own."""

    OBSERVE = "observe"
    REFLECT = "reflect"
    PRUNE = "prune"
    CONSOLIDATE = "consolidate"
    """All that is looked after at once; of no session in particular, that with the empty id."""
    WORK = "work"
    """The place of a session's one worker, who observes and reflects: others leave it to that one."""


class Outcome(StrEnum):
    """What became of a batch."""

    OBSERVED = "observed"
    EMPTY = "empty"
    """Nothing worth noting: covered all the same."""
    DEFERRED = "deferred"
    """Nothing worth noting yet: the cursor stays, and what follows may give it a meaning."""
    FAILED = "failed"
    """The observer failed: nothing was written and the cursor stayed."""


@record
class Incoming:
    """A message on its way into the store."""

    message: Message
    identity: str
    """What makes it the same message when it comes again (`identity`). Unique over the whole store."""
    key: str
    """Its id in print."""
    tokens: int
    formerly: str | None = None
    """The identity that stores of schema 1 have it under, where it is another."""


@record
class Batch:
    """Messages of one session that no observation covers yet, with the two ends they were read between."""

    session: str
    after: int
    """The cursor when the batch was read: everything up to this `seq` is covered, or was observed ahead."""
    through: int
    """Where the cursor will be when the batch is recorded."""
    messages: tuple[KeptMessage, ...]
    earlier_calls: tuple[KeptMessage, ...] = ()
    """Calls before the batch whose results are in it: for reading along, already covered. Of several with one call id,
    the latest."""
    last_said: KeptMessage | None = None
    """The main thread's last assistant text before the batch: what its first prompt may answer. Already covered."""
    cwd: str | None = None
    """The session's working directory."""
    standing: tuple[Observation, ...] = ()
    """Visible observations of the session, oldest first, that the batch may settle, overrule or repeat."""
    deferred_through: int = 0
    """Up to which `seq` the messages were offered before, from the same cursor, without giving anything yet."""
    is_late: bool = False
    """Whether the cursor has passed the messages: they were put aside while they waited, and came back."""

    def follows(self, row: Observation) -> bool:
        """Whether a row is of messages that were said before those of the batch."""
        return bool(row.sources) and max(row.sources) <= self.after


@record
class Replacement:
    """A row goes out of sight since another says what it said, or what became of it."""

    row: str
    """Its id."""
    by: str
    """The id of the row that takes its place."""
    reason: str


@record
class Pending:
    """Messages of a session that no observation covers yet."""

    messages: int
    tokens: Mapping[str, int]
    """By counter; numbers of two counters are never added."""
    fresh_tokens: Mapping[str, int]
    """Of those, what was not offered to an observer yet."""
    blocks: int = 0
    """How many blocks of the session are pending."""


@record
class Appended:
    """What an append did: one entry per message given, in order, True where it was new."""

    new: tuple[bool, ...]


@record
class LogQuery:
    """Which rows to show. Every field narrows; the defaults show all visible rows."""

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
    """Only what was in sight when the log ended with this position, and has not been dropped since. Rows that others
    took the place of meanwhile are there, as they were, but for those of `session` that an operation hid; of no row it
    is told when it was last used."""
    bare: bool = False
    """Without what takes longest to read: `sources`, `message_ids` and `metadata` are empty."""


@record
class Logged:
    """A row of the log with its position: the order in which rows were added."""

    position: int
    observation: Observation


@record
class Covered:
    """Messages of a session that one batch covered, and the rows that it gave."""

    first: str
    """The printed id of the first message."""
    last: str
    """That of the last one."""
    start: int
    """The place of the first message among all of the session, from 0."""
    end: int
    """The place after the last one."""
    positions: tuple[int, ...]
    """Of the rows (`Logged.position`), hidden or not, but none that is put aside."""


@record
class SessionSummary:
    """A session and what the store holds of it."""

    session: Session
    messages: int
    """Counted messages (`Message.is_counted`)."""
    observations: int
    """Visible rows."""
    pending: int
    """Stored messages that no observation batch covers yet."""
    first_at: str | None
    last_at: str | None
    """The earliest and the latest instant of its messages, where any has one."""
    seen_at: str
    """Instant at which something new of it was last taken in."""


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
    """Pending blocks."""
    ahead: int = 0
    """Of the pending messages, those that were observed ahead."""


class Intake(Protocol):
    """Taking in: messages, each once, and how far files were read."""

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        """Keeps the messages that are not yet there, in order, and merges what is known of the session.

        The first `opening` of the messages have to be those that the session begins with (`begins_with`): where it does
        not, SessionTaken is raised and nothing is kept.

        A message whose identity is already stored, in any session, is left as it is; one that is stored under the
        identity it had formerly goes by the present one from then on. The session is there afterwards,
        also where no message is given. An exit code that does not fit into 64 bits is dropped.
        """

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        """Whether a session's first messages are those of these identities, in order, as far as both of them go.

        Identities whose messages are kept in another session, or are gone, are passed over. A session without messages
        begins with anything.
        """

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        """For each identity whether its message was ever taken in, be it there or gone."""

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        """The last messages of a session to arrive, oldest first, at most so many."""

    def bookmarks(self, origin: Origin) -> tuple[Bookmark, ...]:
        """How far a file was taken in, by ascending offset; none where it was read on other terms."""

    def put_bookmarks(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        """Keeps bookmarks of a file, of ascending offsets, in place of all it had. What they speak for must be kept."""

    def taken_in(self) -> tuple[TakenIn, ...]:
        """Every file that there are bookmarks of, by path."""


class Observing(Protocol):
    """Observing: what waits, in batches, what came of them, and what was observed ahead."""

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        """How much of a session no observation covers yet; `ahead`: and no pending block has."""

    def said_tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of all messages of a session's main thread, by counter; of its subagents' where it has none."""

    def visible_tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of a session's rows in sight, by counter."""

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        standing: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        """The oldest uncovered messages of a session, at most `max_tokens` but at least one; None where none is left.

        Those that came back behind the cursor are the first; no batch has others beside them, nor covered ones between
        them, and only rows come with it that are of messages before it. They are never deferred.

        The batch does not end between a call and its result where the two, and what stands between them, fit into one
        batch (`batching`). With it come the newest `standing` observations of the session that are in sight, and the
        newest `standing` of those that may change (`Observation.may_change`). `ahead`: the oldest behind the last
        pending block.
        """

    def unobserved_up_to(self, session: str, through: int, *, standing: int = 0) -> Batch | None:
        """The uncovered messages of a session up to the one with this `seq`, as a batch; None where it is none of them.

        A batch that was read before is read again that way, whatever was said since.
        """

    def record(
        self,
        batch: Batch,
        observations: Sequence[Observation],
        *,
        outcome: Outcome,
        now: str,
        replaced: Sequence[Replacement] = (),
        used: Sequence[str] = (),
        title: str | None = None,
        error: str | None = None,
        folding: Folding | None = None,
    ) -> None:
        """Writes a batch's rows, hides what they replace and moves the cursor to `batch.through`, or nothing of it.

        A `folding` is written down before them, as `fold` does: all of both, or nothing of either.

        What is out of sight already, or not there, is not replaced. `used` are ids of rows that mattered: they were
        used `now`. The session gets the `title` where it has none. FAILED records the error and leaves the cursor,
        DEFERRED leaves it as well; both also go for a batch behind the last pending block. Blocks that the cursor has
        passed are gone. A late batch leaves the cursor where it is, whatever its outcome. A row that is passed over,
        since what it says was forgotten, takes nobody's place. Raises StaleBatch, whatever the outcome, where the
        cursor is no longer `batch.after`, or of a late batch a message is covered; and where messages of it were put
        aside meanwhile, or brought back between them; ValueError for rows or replacements of a batch that is not
        OBSERVED.

        What links a row to its messages is `sources`. Read again, `message_ids` are the printed ids of those; a source
        that names no message is left out, but not one whose message was put aside or deleted.
        """

    def put_block(self, block: Block) -> None:
        """Keeps what was observed ahead until it is activated. Nothing of it is in sight, and the cursor stays.

        Pending blocks inside it are gone. Raises StaleBatch where the cursor has passed it, another has all of it, or
        messages of it were put aside meanwhile, or brought back between them.
        """

    def blocks(self, session: str) -> tuple[Block, ...]:
        """The pending blocks that can be written down one after another, oldest first (`blocks.in_line`).

        The first begins at the cursor, each other where the one before ends. Messages that are gone are left out, with
        the title, which may have come from them, and so is what the cursor has passed; a block that cannot be read is
        as good as none.
        """

    def every_block(self) -> tuple[Block, ...]:
        """The pending blocks of all sessions, also those behind a gap, each as it was put but for its messages."""


class Reflecting(Protocol):
    """Reflecting: rows folded into fewer ones, and what was tried in vain."""

    def fold(self, folding: Folding, *, now: str) -> None:
        """Writes a reflection down, with all it makes and hides, or nothing of it.

        Raises StaleBatch where a row it was made from is no longer in sight, or what it is a part of was undone or made
        final.
        """

    def last_attempt(self, scope: Scope, mark: str | None = None) -> Attempt | None:
        """The last reflection that was made or tried in a scope; with a fingerprint the last that read or left those
        rows."""

    def support(self, observation: str) -> int:
        """How many rows were made of the row with this id."""

    def supports(self) -> Mapping[str, int]:
        """The same of every row, by id, that any was made of."""


class Copies(Protocol):
    """Copies of the store beside it."""

    def snapshot(self, *, now: str) -> str:
        """Copies the whole store to a file of its own and tells its name. Raises CannotCreate, InputOutput."""

    def back_up(self, *, keep: int, now: str) -> BackedUp:
        """Copies the whole store where the last copy is a day old, and removes all but the newest `keep` (from 1).

        A copy counts where it was looked through and found in order. Raises InputOutput; no copy is removed then.
        """

    def wants_backup(self, *, now: str) -> bool:
        """Whether `back_up` would make a copy."""


class Operations(Protocol):
    """What is done in one piece, taken back or made final; and what became of rows by it."""

    def change(self, change: Change, *, now: str, for_good: bool = False) -> Recorded:
        """Takes rows and messages out of sight, all of it or nothing, and gives the operation as it was written down.

        With nothing to take out of sight it begins an operation that others are a part of (`Folding.part_of`). A row
        or a message that is not there is left out. `for_good` deletes all of it in the same transaction, rows that are
        out of sight already as well; `erase` then gives the room back. Raises StaleBatch where rows have come that were
        not looked at (`Change.seen`).
        """

    def history(self, *, last: int | None = None) -> tuple[Recorded, ...]:
        """The operations that something came of, newest first; what is a part of another one is told with that."""

    def undo(self, number: int | None = None, *, now: str) -> Recorded:
        """Takes an operation back - the last one that can be, where none is named - and gives the undoing.

        What it hid is in sight again, what it made is not, and what it put aside is back where it was, unless another
        operation that stands has put it aside as well. A message that waited to be observed waits again, also where the
        cursor has passed it meanwhile; a pending block around it that was made without it goes. Raises NotUndoable.
        """

    def undoing(self, number: int | None = None) -> Undoing:
        """What `undo` would come to; nothing changes. Raises NotUndoable as that does."""

    def erase(self, numbers: Sequence[int], *, now: str) -> Erased:
        """Deletes for good what these prunings and forgettings took out of sight, and gives the room back to the disk.

        With a row go those that it took the place of. Tombstones and identities stay, and of a message its printed id.
        What was taken back has nothing to delete; for no numbers at all only room is given back. A reflection whose
        rows were deleted cannot be undone any more.
        A pending block that has one of the messages goes with them: the others are observed again.
        """

    def erasing(self, numbers: Sequence[int]) -> Erased:
        """What `erase` would come to, but for the room; nothing changes."""

    def put_aside(self) -> tuple[Observation, ...]:
        """The rows that were forgotten and are not deleted, in the log's order; without what they are linked to."""

    def titles_aside(self) -> tuple[Titled, ...]:
        """The titles that were forgotten and are not deleted, by session."""

    def are_forgotten(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        """For each row whether what it says was forgotten: the store passes it over when it is to be kept."""

    def are_forgotten_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        """For each text whether something that says it in any session, or a title, was forgotten."""

    def traces(self, observation: str) -> Traces:
        """What became of the row with this id, and how it came to be."""


class Contents(Protocol):
    """What is kept: messages, rows and sessions, to be read; and rows that come from no batch."""

    def outline(self, session: str) -> tuple[Outlined, ...]:
        """The messages of a session without what they say, in order."""

    def said_in_messages(self, text: str) -> tuple[KeptMessage, ...]:
        """The messages that contain a text (`wording`), in the order in which they came; what is put aside as well."""

    def said_in_rows(self, text: str) -> tuple[Observation, ...]:
        """The rows that contain it (`row_says`), hidden or not, in the log's order; behind them what is put aside."""

    def messages_named(self, key: str) -> tuple[KeptMessage, ...]:
        """The messages with a printed id, in the order in which they came; what is put aside as well."""

    def kin(self, rows: Sequence[str], messages: Sequence[int]) -> Kin:
        """What was made of rows of these ids, put aside or not, and of messages; what the rows took the place of."""

    def covered(self, session: str) -> tuple[Covered, ...]:
        """What the batches of a session covered, in order; a batch whose messages are gone is left out.

        Places are among all messages that the session ever had.
        """

    def picture(self, sha256: str) -> bytes | None:
        """The bytes of an image that came with a message, until a batch covers that; None where they are not kept."""

    def add(self, *observations: Observation) -> None:
        """Keeps rows that come from no batch: a note, what was imported. Their sessions need not exist."""

    def log(self, query: LogQuery) -> Iterator[Logged]:
        """Rows in the order they were added, read on demand: what is added meanwhile may come as well."""

    def observation(self, reference: str) -> Observation:
        """The row with this id, hidden or not, or whose handle begins with these 4 digits or more.

        Raises UnknownId for none and for several.
        """

    def messages(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        """Messages by `seq`, ascending, each once; unknown ones are left out."""

    def message(self, key: str) -> KeptMessage:
        """The message with this printed id. Raises UnknownId for none and for several."""

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        """The newest messages of a session's main thread behind a `seq`, oldest first, at most `max_tokens` but at
        least one."""

    def horizon(
        self, session: str, *, own: str | None, project: str | None, cutting: Cutting, further: int = 0
    ) -> Horizon:
        """The horizon of the frozen pack of a session in the project `own`, with `further` cuts than there have to be.
        The pack holds rows of `project`, of all projects for None.

        It moves when the tail is cut (`Cutting`), when an operation makes rows of the session, or of none, when such
        an operation is undone, and when rows come that no message tells: written by hand, or taken in from elsewhere.
        """

    def session(self, session: str) -> Session | None:
        """A session by its id; None where nothing was ever appended to it, also if rows belong to it."""

    def sessions(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        """Sessions, most recently seen first; of those seen at one instant, the greatest id."""

    def status(self) -> StoreStatus:
        """The store in numbers."""

    def stored_texts(self) -> Iterator[Message | Observation]:
        """Every message and every visible row, for counting them anew with another counter."""


class Leases(Protocol):
    """Who is at a lane of a session."""

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        """Takes the lease on a lane, or extends it for its owner. Raises LaneTaken while another holds it.

        A lease that has expired, or whose owner is known to be gone, is taken over. The error names the owner. A lease
        that keeps others out lasts no longer than the last of them asked for: clocks go wrong, and back.
        """

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        """Gives the lease back; does nothing where somebody else holds it."""


class Store(Intake, Observing, Reflecting, Operations, Contents, Copies, Leases, Protocol):
    """Messages and rows, kept for good. Every method is one transaction; none is open between two calls.

    Text comes back as it was given, but for halves of surrogate pairs: they are no Unicode and become U+FFFD. What
    writes raises StoreLocked and InputOutput. Who needs only a part of it asks for one of the roles above.
    """


class TokenCounter(Protocol):
    """A way to count tokens, by name. Two counters' numbers are never added."""

    @property
    def name(self) -> str:
        """What stored counts are labelled with."""

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def message(self, message: Message) -> int:
        """Tokens of one message, with the overhead the counter adds per message and image."""

    def conversation(self, messages: Iterable[Message]) -> int:
        """Tokens of a transcript, with the overhead the counter adds once."""

    def remembering(self) -> TokenCounter:
        """A counter that counts the same, made for texts that share lines: it may remember those."""
