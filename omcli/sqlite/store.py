"""The store in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from omcli import __version__
from omcli.base.record import replace
from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Observation
from omcli.memory.ports import (
    Appended,
    Batch,
    Covered,
    Incoming,
    Lane,
    Logged,
    LogQuery,
    Outcome,
    Pending,
    Replacement,
    SessionSummary,
    StoreStatus,
)
from omcli.memory.session import Session
from omcli.sqlite import bookmarks as bookmark_table
from omcli.sqlite import lanes, owner, tombstones, transaction
from omcli.sqlite import messages as message_table
from omcli.sqlite import observations as observation_table
from omcli.sqlite import sessions as session_table
from omcli.sqlite.connection import NOWHERE, open_readable, open_temporary, open_writable, snapshot_beside
from omcli.sqlite.failures import explained
from omcli.sqlite.migrate import MIGRATIONS, steps

if TYPE_CHECKING:
    from omcli.llm.model import Call, Rung, Spent
    from omcli.memory.backups import BackedUp
    from omcli.memory.bookmark import Bookmark, Origin, TakenIn
    from omcli.memory.buffer import Block
    from omcli.memory.changes import Change, Erased, Kin, Recorded, Titled, Traces, Undoing
    from omcli.memory.freeze import Cutting, Horizon
    from omcli.memory.reflection import Attempt, Folding, Scope
    from omcli.memory.retention import Outlined


_Row = TypeVar("_Row")
_PAGE = 500
"""Rows read at once by what may read all of them."""


class SqliteStore:
    """A `memory.ports.Store` in one file; what each method promises is said there.

    Every method raises StoreLocked when it has to write and another process does not let it for `wait` seconds, and
    InputOutput when the disk refuses.
    """

    def __init__(
        self, connection: sqlite3.Connection, *, path: Path, wait: float, is_gone: Callable[[str], bool]
    ) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self._path = path
        self._wait = wait
        self._is_gone = is_gone
        self._standing: dict[int, Observation] = {}
        """What stood at the last batch, by position: most of it stands at the next."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        wait: float,
        read_only: bool = False,
        migrations: Path = MIGRATIONS,
        is_gone: Callable[[str], bool] = owner.is_gone,
    ) -> Self:
        """The store at `path`, made where there is none and brought up to date where it is old.

        `read_only` never writes: no store is then an empty one. `wait` is in seconds; `is_gone` tells whether the
        owner of a lease has ended. Raises CannotCreate, InputOutput, StoreLocked, NewerStore, MigrationFailed, and
        BadConfiguration for a file that is no store.
        """
        opened = open_readable if read_only else open_writable
        with explained(path, wait=wait, reading=read_only):
            connection = opened(path, wait=wait, steps=steps(migrations))
        return cls(connection, path=path, wait=wait, is_gone=is_gone)

    @classmethod
    def temporary(cls) -> Self:
        """A store that nobody else sees and that is gone when it is closed, or its process has ended."""
        with explained(NOWHERE, wait=0):
            connection = open_temporary(steps=steps())
        return cls(connection, path=NOWHERE, wait=0, is_gone=owner.is_gone)

    def close(self) -> None:
        """Closes the file; the store is of no use afterwards."""
        with explained(self._path, wait=self._wait):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What goes in: `Intake`.

    def append(
        self, session: Session, messages: Sequence[Incoming], *, counter: str, now: str, opening: int = 0
    ) -> Appended:
        """Keeps new messages and what is known of their session."""
        from omcli.sqlite import taking_in

        with self._writing() as connection:
            new = taking_in.append(connection, session, messages, counter=counter, now=now, opening=opening)
        return Appended(new=new)

    def begins_with(self, session: str, identities: Sequence[str]) -> bool:
        """Whether a session's first messages are these, as far as both go."""
        with self._of(session) as (connection, number):
            return number is None or message_table.begins_with(connection, identities, session=number)

    def known(self, identities: Sequence[str]) -> tuple[bool, ...]:
        """Which messages were taken in before."""
        with self._reading() as connection:
            return message_table.known(connection, identities)

    def newest(self, session: str, count: int) -> tuple[KeptMessage, ...]:
        """The last messages to arrive."""
        with self._of(session) as (connection, number):
            return message_table.newest(connection, session=number, count=count) if number is not None else ()

    def bookmarks(self, origin: Origin) -> tuple[Bookmark, ...]:
        """How far a file was taken in."""
        with self._reading() as connection:
            return bookmark_table.find(connection, origin)

    def put_bookmarks(self, origin: Origin, bookmarks: Sequence[Bookmark]) -> None:
        """Keeps the bookmarks of a file."""
        with self._writing() as connection:
            bookmark_table.put(connection, origin, bookmarks)

    def taken_in(self) -> tuple[TakenIn, ...]:
        """The files that were taken in."""
        with self._reading() as connection:
            return bookmark_table.files(connection)

    # What waits, and what came of it: `Observing`.

    def pending(self, session: str, *, ahead: bool = False) -> Pending:
        """How much of a session waits."""
        with self._of(session) as (connection, number):
            if number is None:
                return Pending(messages=0, tokens={}, fresh_tokens={})
            return message_table.pending(connection, session=number, ahead=ahead)

    def said_tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of the messages of a session's main thread, or of its subagents."""
        with self._of(session) as (connection, number):
            return {} if number is None else message_table.said_tokens(connection, session=number)

    def visible_tokens(self, session: str) -> Mapping[str, int]:
        """Tokens of the rows of a session."""
        with self._of(session) as (connection, number):
            return {} if number is None else observation_table.visible_tokens(connection, session=number)

    def unobserved(
        self,
        session: str,
        *,
        max_tokens: int,
        max_messages: int | None = None,
        standing: int = 0,
        ahead: bool = False,
    ) -> Batch | None:
        """The next batch of a session."""
        from omcli.sqlite import observing

        with self._reading() as connection:
            batch = observing.next_batch(
                connection, session, max_tokens=max_tokens, max_messages=max_messages, ahead=ahead
            )
            return self._beside(connection, batch, standing=standing)

    def unobserved_up_to(self, session: str, through: int, *, standing: int = 0) -> Batch | None:
        """The batch of a session that ends there."""
        from omcli.sqlite import observing

        with self._reading() as connection:
            batch = observing.batch_up_to(connection, session, through)
            return self._beside(connection, batch, standing=standing)

    def _beside(self, connection: sqlite3.Connection, batch: Batch | None, *, standing: int) -> Batch | None:
        """A batch with as many of the rows that stand."""
        number = session_table.number(connection, batch.session) if batch and standing else None
        if batch is None or number is None:
            return batch
        self._standing = observation_table.standing(connection, session=number, limit=standing, known=self._standing)
        stood = self._standing.values()
        # What was said later stays, whatever comes of these.
        return replace(batch, standing=tuple(row for row in stood if not batch.is_late or batch.follows(row)))

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
        """Writes a batch's rows, hides what they replace and moves the cursor, or nothing of it."""
        from omcli.sqlite import observing

        if (observations or replaced) and outcome is not Outcome.OBSERVED:
            raise ValueError(f"a batch that is {outcome} has no rows")
        with self._writing() as connection:
            observing.record(
                connection,
                batch,
                observations,
                outcome=outcome,
                now=now,
                replaced=replaced,
                used=used,
                title=title,
                error=error,
                folding=folding,
            )

    def put_block(self, block: Block) -> None:
        """Keeps what was observed ahead."""
        from omcli.sqlite import blocks

        with self._writing() as connection:
            blocks.put(connection, block, session=session_table.numbered(connection, block.batch.session))

    def blocks(self, session: str) -> tuple[Block, ...]:
        """What was observed ahead and can be written down."""
        with self._of(session) as (connection, number):
            if number is None or not lanes.last_end(connection, session=number, cursor=0)[1]:
                return ()
            from omcli.sqlite import blocks  # most sessions have none

            known = session_table.find(connection, session)
            return tuple(blocks.find(connection, known, number=number)) if known else ()

    def every_block(self) -> tuple[Block, ...]:
        """What was observed ahead, of all sessions."""
        from omcli.sqlite import blocks

        with self._reading() as connection:
            return tuple(blocks.every(connection))

    # Rows that others take the place of: `Reflecting`.

    def fold(self, folding: Folding, *, now: str) -> None:
        """Writes a reflection down, whole or not at all."""
        from omcli.sqlite import foldings

        with self._writing() as connection:
            foldings.fold(connection, folding, now=now)

    def last_attempt(self, scope: Scope, mark: str | None = None) -> Attempt | None:
        """The last reflection in a scope, or on these rows of it."""
        from omcli.sqlite import foldings

        with self._reading() as connection:
            return foldings.last_attempt(connection, scope, mark)

    def support(self, observation: str) -> int:
        """How many rows were made of one."""
        with self._reading() as connection:
            return observation_table.support(connection, observation)

    def supports(self) -> Mapping[str, int]:
        """How many rows were made of each."""
        with self._reading() as connection:
            return observation_table.supports(connection)

    # What is taken out of sight, and brought back: `Operations`.

    def change(self, change: Change, *, now: str, for_good: bool = False) -> Recorded:
        """Takes rows and messages out of sight, in one piece."""
        from omcli.sqlite import changes

        with self._writing() as connection:
            return changes.change(connection, change, now=now, for_good=for_good)

    def history(self, *, last: int | None = None) -> tuple[Recorded, ...]:
        """Operations, newest first."""
        from omcli.sqlite import changes

        with self._reading() as connection:
            return changes.history(connection, last=last)

    def undo(self, number: int | None = None, *, now: str) -> Recorded:
        """Takes an operation back."""
        from omcli.sqlite import changes

        with self._writing() as connection:
            return changes.undo(connection, number, now=now)

    def undoing(self, number: int | None = None) -> Undoing:
        """What taking an operation back would come to."""
        from omcli.sqlite import changes

        with self._reading() as connection:
            return changes.undoing(connection, number)

    def erasing(self, numbers: Sequence[int]) -> Erased:
        """What deleting for good would come to."""
        from omcli.memory.changes import Erased
        from omcli.sqlite import erasing

        with self._reading() as connection:
            rows, messages = erasing.foreseen(connection, numbers)
        return Erased(rows=rows, messages=messages)

    def erase(self, numbers: Sequence[int], *, now: str) -> Erased:
        """Deletes for good, and gives the room back to the disk."""
        from omcli.memory.changes import Erased
        from omcli.sqlite import erasing
        from omcli.sqlite.connection import size, vacuum

        before = size(self._path)
        with self._writing() as connection:
            rows, messages = erasing.erase(connection, numbers, now=now)
        with explained(self._path, wait=self._wait):
            vacuum(self._connection, wait=self._wait)
        return Erased(rows=rows, messages=messages, bytes_before=before, bytes_after=size(self._path))

    def put_aside(self) -> tuple[Observation, ...]:
        """The rows that were forgotten."""
        from omcli.sqlite import aside

        with self._reading() as connection:
            return aside.forgotten(connection)

    def titles_aside(self) -> tuple[Titled, ...]:
        """The titles that were forgotten."""
        from omcli.sqlite import aside

        with self._reading() as connection:
            return aside.titles(connection)

    def are_forgotten(self, rows: Sequence[Observation]) -> tuple[bool, ...]:
        """Whether what rows say was forgotten."""
        with self._reading() as connection:
            return tuple(tombstones.is_forgotten(connection, row) for row in rows)

    def are_forgotten_texts(self, texts: Sequence[str]) -> tuple[bool, ...]:
        """Whether texts were forgotten."""
        with self._reading() as connection:
            return tuple(tombstones.is_forgotten_text(connection, text) for text in texts)

    def traces(self, observation: str) -> Traces:
        """What became of a row."""
        from omcli.sqlite import tracing

        with self._reading() as connection:
            return tracing.traces(connection, observation)

    # What can be read: `Contents`.

    def outline(self, session: str) -> tuple[Outlined, ...]:
        """What a session's messages are."""
        with self._of(session) as (connection, number):
            return message_table.outline(connection, session=number) if number is not None else ()

    def said_in_messages(self, text: str) -> tuple[KeptMessage, ...]:
        """The messages that contain a text."""
        from omcli.sqlite import saying

        with self._reading() as connection:
            return saying.said_in_messages(connection, text)

    def said_in_rows(self, text: str) -> tuple[Observation, ...]:
        """The rows that contain it."""
        from omcli.sqlite import saying

        with self._reading() as connection:
            return saying.said_in_rows(connection, text)

    def messages_named(self, key: str) -> tuple[KeptMessage, ...]:
        """The messages with a printed id."""
        with self._reading() as connection:
            return message_table.named(connection, key)

    def kin(self, rows: Sequence[str], messages: Sequence[int]) -> Kin:
        """What rows and messages have to do with other rows."""
        from omcli.sqlite import saying

        with self._reading() as connection:
            return saying.kin(connection, rows, messages)

    def covered(self, session: str) -> tuple[Covered, ...]:
        """What each batch of a session covered."""
        from omcli.sqlite import covered

        with self._of(session) as (connection, number):
            return covered.covered(connection, session=number) if number is not None else ()

    def picture(self, sha256: str) -> bytes | None:
        """The bytes of an image that waits to be seen."""
        from omcli.sqlite import pictures

        with self._reading() as connection:
            return pictures.content(connection, sha256)

    def add(self, *observations: Observation) -> None:
        """Keeps rows that come from no batch."""
        with self._writing() as connection:
            observation_table.add(connection, observations)

    def log(self, query: LogQuery) -> Iterator[Logged]:
        """The rows a query asks for, read in pages: no transaction is open while the caller looks at one."""

        def read(connection: sqlite3.Connection, after: int) -> Sequence[Logged]:
            return observation_table.log(connection, replace(query, after=after), limit=_PAGE)

        whole = query.last is not None
        yield from self._pages(read, place=lambda logged: logged.position, after=query.after, whole=whole)

    def observation(self, reference: str) -> Observation:
        """The row that an id or the beginning of a handle names."""
        with self._reading() as connection:
            return observation_table.find(connection, reference)

    def messages(self, seqs: Iterable[int]) -> tuple[KeptMessage, ...]:
        """Messages by `seq`."""
        with self._reading() as connection:
            return message_table.by_seq(connection, seqs)

    def message(self, key: str) -> KeptMessage:
        """The message with a printed id."""
        with self._reading() as connection:
            return message_table.by_key(connection, key)

    def tail(self, session: str, *, max_tokens: int, after: int = 0) -> tuple[KeptMessage, ...]:
        """The end of a session's main thread."""
        with self._of(session) as (connection, number):
            if number is None:
                return ()
            return message_table.tail(connection, session=number, max_tokens=max_tokens, after=after)

    def horizon(
        self, session: str, *, own: str | None, project: str | None, cutting: Cutting, further: int = 0
    ) -> Horizon:
        """The horizon of a session's frozen pack."""
        from omcli.sqlite import horizons

        with self._of(session) as (connection, number):
            return horizons.horizon(
                connection, session=number or 0, own=own, project=project, cutting=cutting, further=further
            )

    def session(self, session: str) -> Session | None:
        """What is known about a session."""
        with self._reading() as connection:
            return session_table.find(connection, session)

    def sessions(self, *, project: str | None = None, last: int | None = None) -> tuple[SessionSummary, ...]:
        """Sessions with their counts, most recently seen first."""
        with self._reading() as connection:
            return session_table.summaries(connection, project=project, last=last)

    def status(self) -> StoreStatus:
        """The store in numbers."""
        with self._reading() as connection:
            return session_table.status(connection)

    def stored_texts(self) -> Iterator[Message | Observation]:
        """Every message, then every visible row, in pages like the log."""
        messages = partial(message_table.after, limit=_PAGE)
        yield from (kept.message for kept in self._pages(messages, place=lambda kept: kept.seq))
        yield from (logged.observation for logged in self.log(LogQuery()))

    # Copies of all of it: `Copies`.

    def snapshot(self, *, now: str) -> str:
        """Copies the store beside it."""
        from omcli.memory.backups import label

        with explained(self._path, wait=self._wait):
            return str(snapshot_beside(self._path, label(now), wait=self._wait))

    def back_up(self, *, keep: int, now: str) -> BackedUp:
        """Copies the store beside it where that is due, and removes old copies."""
        from omcli.sqlite import backups

        with explained(self._path, wait=self._wait):
            return backups.back_up(self._path, keep=keep, now=now, wait=self._wait)

    def wants_backup(self, *, now: str) -> bool:
        """Whether a backup is due."""
        from omcli.sqlite import backups

        return self._path.exists() and backups.is_due_for(self._path, now)

    # What models cost, and how they are asked: `memory.model.Ledger` and `Rungs`.

    def note_call(self, call: Call) -> None:
        """Writes a call down."""
        from omcli.sqlite import calls as call_table

        with self._writing() as connection:
            call_table.add(connection, call)

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[Call]:
        """Calls of a period, read in pages like the log."""
        from omcli.sqlite import calls as call_table

        def read(connection: sqlite3.Connection, after: int) -> Sequence[tuple[int, Call]]:
            return call_table.page(connection, after=after, since=since, until=until, limit=_PAGE)

        yield from (call for _, call in self._pages(read, place=lambda numbered: numbered[0]))

    def spent(self, *, since: str) -> Spent:
        """What calls have come to."""
        from omcli.sqlite import calls as call_table

        with self._reading() as connection:
            return call_table.spent(connection, since=since)

    def rung(self, endpoint: str, model: str) -> Rung | None:
        """How an endpoint takes structured output."""
        from omcli.sqlite import calls as call_table

        with self._reading() as connection:
            return call_table.rung(connection, endpoint, model, program=__version__)

    def put_rung(self, endpoint: str, model: str, rung: Rung) -> None:
        """Remembers it."""
        from omcli.sqlite import calls as call_table

        with self._writing() as connection:
            call_table.put_rung(connection, endpoint, model, rung, program=__version__)

    # Who is at work: `Leases`.

    def claim(self, session: str, lane: Lane, *, owner: str, now: str, expires_at: str) -> None:
        """Takes or extends the lease on a lane."""
        with self._writing() as connection:
            taken = lanes.claim(
                connection,
                session=session_table.numbered(connection, session),
                lane=lane,
                owner=owner,
                now=now,
                expires_at=expires_at,
                is_gone=self._is_gone,
            )
        if taken:
            raise taken

    def release(self, session: str, lane: Lane, *, owner: str) -> None:
        """Gives a lease back."""
        with self._writing() as connection:
            number = session_table.number(connection, session)
            if number is not None:
                lanes.release(connection, session=number, lane=lane, owner=owner)

    # How it is read and written.

    @contextmanager
    def _of(self, session: str) -> Iterator[tuple[sqlite3.Connection, int | None]]:
        """Reading of a session, with its number; None where there is no such session."""
        with self._reading() as connection:
            yield connection, session_table.number(connection, session)

    def _pages(
        self,
        read: Callable[[sqlite3.Connection, int], Sequence[_Row]],
        *,
        place: Callable[[_Row], int],
        after: int = 0,
        whole: bool = False,
    ) -> Iterator[_Row]:
        """What `read` gives behind a place, page by page: no transaction is open while the caller looks at one.

        `whole` says that the first page is all of it, whatever its length.
        """
        while True:
            with self._reading() as connection:
                page = read(connection, after)
            yield from page
            if whole or len(page) < _PAGE:
                return
            after = place(page[-1])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with explained(self._path, wait=self._wait), transaction.reading(self._connection) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        writing = transaction.writing(self._connection, wait=self._wait)
        with explained(self._path, wait=self._wait), writing as connection:
            yield connection
