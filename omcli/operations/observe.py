"""Taking transcripts in: messages are kept, and what matters in them is written down as observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress

from omcli.memory.errors import BadInput, InputOutput, LaneTaken, OmError, TryAgain
from omcli.memory.observation import Draft, Kind, Observation, Priority
from omcli.memory.ports import Batch, Lane, Outcome, Replacement
from omcli.memory.record import field, record
from omcli.memory.transcript import Transcript
from omcli.operations.append import Intake
from omcli.operations.conversations import Conversations
from omcli.operations.tally import Counts
from omcli.operations.workshop import Workshop

BATCH_TOKENS = 35_000
"""What an observer is shown at once, at most."""
STANDING_ROWS = 150
"""Rows an observer is shown of what was written before: the newest, and the newest that may change."""
LEASE_SECONDS = 600
"""How long a lane stays ours without a sign of life; every batch extends it."""
_POLL_SECONDS = 0.1


@record
class Input:
    """Something to take in: its name in reports, and how to open it. Opening raises OmError for what can't be read."""

    name: str
    open: Callable[[], AbstractContextManager[Transcript]]


@record
class FileReport:
    """What became of one input. Where `error` is set, the rest tells how far it came; kept messages stay kept."""

    path: str
    format: str | None = None
    """None for an empty input, and for one that could not be opened."""
    session_id: str | None = None
    """The session of its messages: the first one named in the input, unless one was given or had to be derived."""
    sessions: tuple[str, ...] = ()
    """All of them, in order of appearance."""
    cwd: str | None = None
    counts: Counts = field(default_factory=Counts)
    new_messages: int = 0
    known_messages: int = 0
    """Those that were in the store before, or came twice; with the new ones all that were kept."""
    side_messages: int = 0
    """Messages of side chains beside the main thread."""
    images: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Records, or parts of them, that gave no message, by reason."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Those of them that may have been messages."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Secrets taken out, by rule."""
    unread_bytes: int = 0
    """The beginning of a file that is as it was when it was taken in, and was not read again. All the other numbers and
    names here are of the whole file nonetheless."""
    observations: int = 0
    """Rows written."""
    error: OmError | None = None


def _ignored(row: Observation) -> None:
    """Nobody is told of a row."""


def observe_files(
    inputs: Iterable[Input],
    workshop: Workshop,
    *,
    session: str | None = None,
    each: Callable[[Observation], None] = _ignored,
) -> Iterator[FileReport]:
    """Takes in one input after another; what is wrong with one is said in its report and stops no other.

    `session` overrides what the inputs say about theirs. `each` is told every row once it is in the store: a report
    does not hold them, since a transcript may give more than fit into memory.
    """
    for entry in inputs:
        yield _observe_file(entry, workshop, session, each)


def _observe_file(
    entry: Input, workshop: Workshop, session: str | None, each: Callable[[Observation], None]
) -> FileReport:
    intake, rows = None, 0
    try:
        with entry.open() as transcript:
            if transcript.format is None:
                return FileReport(path=entry.name, session_id=session)
            conversations = Conversations(transcript, open_store=workshop.open_store, session=session)
            intake = Intake(conversations, workshop)
            intake.append(entry.name)
        if intake.conversations.tally.found_nothing:
            raise BadInput(f"nothing in it is a message of format `{transcript.format}`")
        if transcript.origin is not None and intake.bookmarks:
            workshop.store.put_bookmarks(transcript.origin, intake.bookmarks)
        for session_id in intake.sessions:
            for written in observe_session(session_id, workshop):
                rows += len(written)
                for row in written:
                    each(row)
    except OmError as error:
        return _report(entry.name, intake, rows, error)
    return _report(entry.name, intake, rows)


def observe_session(session_id: str, workshop: Workshop) -> Iterator[tuple[Observation, ...]]:
    """Observes a session's messages until none is left, and yields the rows of each batch once they are written.

    Raises LaneTaken while somebody else is at it, StaleBatch where somebody was quicker; nothing is lost either way.
    """
    store, clock = workshop.store, workshop.clock
    if store.unobserved(session_id, max_tokens=1) is None:
        return  # no need to wait for somebody else
    with _lane(session_id, workshop) as extend:
        session = store.session(session_id)
        project = session.project if session else None
        while batch := store.unobserved(session_id, max_tokens=BATCH_TOKENS, standing=STANDING_ROWS):
            extend()
            drafts = workshop.observer.observe(batch).drafts
            keys = _keys(batch)
            rows = tuple(_row(draft, batch.session, project, keys, workshop) for draft in drafts)
            outcome = Outcome.OBSERVED if rows else Outcome.EMPTY
            store.record(batch, rows, outcome=outcome, now=clock.now(), replaced=_replacements(drafts, rows))
            yield rows


@contextmanager
def _lane(session_id: str, workshop: Workshop) -> Iterator[Callable[[], None]]:
    """Holds the session's observe lane; the function it gives extends the lease."""
    store, clock, owner = workshop.store, workshop.clock, workshop.owner

    def claim() -> None:
        expires_at = clock.later(LEASE_SECONDS)
        store.claim(session_id, Lane.OBSERVE, owner=owner, now=clock.now(), expires_at=expires_at)

    until = clock.monotonic() + workshop.wait
    while True:
        try:
            claim()
        except LaneTaken:
            if clock.monotonic() >= until:
                raise
            clock.sleep(_POLL_SECONDS)
        else:
            break
    try:
        yield claim
    finally:
        with suppress(TryAgain, InputOutput):  # what was done is done; and the lease ends with this process
            store.release(session_id, Lane.OBSERVE, owner=owner)


def _keys(batch: Batch) -> dict[int, str]:
    """The keys of all messages that rows of a batch may come from, by their `seq`."""
    last_said = (batch.last_said,) if batch.last_said else ()
    keys = {seq: key for row in batch.standing for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return keys | {kept.seq: kept.key for kept in (*batch.earlier_calls, *last_said, *batch.messages)}


def _row(draft: Draft, session: str, project: str | None, keys: Mapping[int, str], workshop: Workshop) -> Observation:
    return Observation(
        id=workshop.new_id(),
        session=session,
        project=project,
        kind=Kind.OBSERVATION,
        type=draft.type,
        priority=draft.priority or Priority.of_importance(draft.importance),
        importance=draft.importance,
        status=draft.status,
        text=draft.text,
        observed_at=workshop.clock.now(),
        event_at=draft.event_at,
        refers_to=draft.refers_to,
        message_ids=tuple(keys[seq] for seq in draft.sources),
        sources=draft.sources,
        tokens=workshop.counter.text(draft.text),
        counter=workshop.counter.name,
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
    )


def _replacements(drafts: Iterable[Draft], rows: Iterable[Observation]) -> list[Replacement]:
    return [
        Replacement(row=replaced, by=row.id, reason=draft.reason or "replaced")
        for draft, row in zip(drafts, rows, strict=True)
        for replaced in draft.replaces
    ]


def _report(name: str, intake: Intake | None, rows: int, error: OmError | None = None) -> FileReport:
    if intake is None:
        return FileReport(path=name, error=error)
    reading, tally = intake.conversations, intake.conversations.tally
    new, known = (
        kept.of_side_chains if tally.is_side_chain else kept.of_main_thread for kept in (intake.new, intake.known)
    )
    return FileReport(
        path=name,
        format=reading.format,
        session_id=intake.sessions[0] if intake.sessions else reading.named,
        sessions=tuple(intake.sessions),
        cwd=reading.cwd,
        counts=tally.counts,
        new_messages=new.messages,
        known_messages=known.messages,
        side_messages=0 if tally.is_side_chain else tally.of_side_chains.messages,
        images=tally.images,
        skipped=dict(tally.skipped),
        faults=dict(tally.faults),
        redactions=dict(intake.redactions),
        unread_bytes=reading.earlier.unread_bytes if reading.earlier else 0,
        observations=rows,
        error=error,
    )
