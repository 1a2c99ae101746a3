"""Ingesting files: store the messages of each transcript, and bookmarks of how far it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from omcli.base.errors import OF_MODELS, BadInput, OmError
from omcli.base.record import field, record
from omcli.memory.transcript import Transcript
from omcli.operations.deps import Deps
from omcli.operations.ingest.counts import MessageCounts
from omcli.operations.ingest.messages import MessageWriter
from omcli.operations.ingest.sessions import TranscriptSessions


@record
class FileInput:
    """A transcript to ingest: its name in reports, and a way to open it. Opening raises OmError."""

    name: str
    open: Callable[[], AbstractContextManager[Transcript]]


@record
class FileReport:
    """The outcome of one input. With an `error` the counts go up to the point where it occurred; stored messages stay
    stored.
    """

    path: str
    format: str | None = None
    """None for an empty input, and for one that could not be opened."""
    session_id: str | None = None
    """The session of the messages: the given one, else the first one named in the input, else a derived one."""
    sessions: tuple[str, ...] = ()
    """All sessions of the input, in order of appearance."""
    cwd: str | None = None
    abandoned: frozenset[str] = frozenset()
    """Ids of messages on branches that the conversation left, if all of the input was read."""
    counts: MessageCounts = field(default_factory=MessageCounts)
    new_messages: int = 0
    known_messages: int = 0
    """Messages that were stored before, or that occur twice. Together with the new ones these are all messages kept."""
    side_messages: int = 0
    """Messages of side chains, if there is a main thread as well."""
    images: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of records, or parts of records, without a message, by reason."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Skipped records that may have been messages, by reason."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Removed secrets, by rule."""
    unread_bytes: int = 0
    """Size of the unchanged beginning of a file, which was not read again. All other fields describe the whole file."""
    observations: int = 0
    """Rows written."""
    pending: int = 0
    """Messages of its sessions that no observation covers yet."""
    message_tokens: int = 0
    """Tokens of the messages from which these rows were made."""
    observation_tokens: int = 0
    """Tokens of the rows, by the same counter."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Corrections to the replies of a model, by kind."""
    error: OmError | None = None


def ingest_files(inputs: Iterable[FileInput], deps: Deps, *, session: str | None = None) -> Iterator[FileReport]:
    """Store the messages of each input, and yield its report; an error in one stops no other.

    `session` overrides the sessions that the inputs name.
    """
    for entry in inputs:
        intake, error = None, None
        try:
            with entry.open() as transcript:
                if transcript.format is None:
                    yield FileReport(path=entry.name, session_id=session)
                    continue
                conversations = TranscriptSessions(transcript, open_store=deps.open_store, session=session)
                intake = MessageWriter(conversations, deps)
                intake.append(entry.name)
            if conversations.tally.found_nothing:
                raise BadInput(f"nothing in it is a message of format `{transcript.format}`")
            _keep_bookmarks(transcript, intake, deps)
        except OmError as failure:
            error = failure
        yield FileReport(path=entry.name, error=error) if intake is None else _report(entry.name, intake, error, deps)


def count_pending(sessions: Iterable[str], deps: Deps) -> int:
    """Return the number of messages of these sessions that no observation covers yet."""
    return sum(deps.store.batches.pending(session_id).messages for session_id in sessions)


def _keep_bookmarks(transcript: Transcript, intake: MessageWriter, deps: Deps) -> None:
    """Store the bookmarks of a file, the last one with the file's stamp; for an unchanged file store only the stamp."""
    if transcript.origin is None:
        return
    bookmarks, store = intake.bookmarks, deps.store.bookmarks
    known = store.find(transcript.origin) if transcript.stamp and not bookmarks else ()
    if bookmarks or (known and known[-1].stamp != transcript.stamp):
        *others, last = bookmarks or known
        store.put(transcript.origin, (*others, last.with_stamp(transcript.stamp)))


def _report(name: str, intake: MessageWriter, error: OmError | None, deps: Deps) -> FileReport:
    reading, tally = intake.conversations, intake.conversations.tally
    new, known = (kept.side_counts if tally.is_side_only else kept.main_counts for kept in (intake.new, intake.known))
    return FileReport(
        path=name,
        format=reading.format,
        session_id=intake.sessions[0] if intake.sessions else reading.named,
        sessions=tuple(intake.sessions),
        cwd=reading.cwd,
        abandoned=reading.abandoned if reading.earlier is None else frozenset(),
        counts=tally.counts,
        new_messages=new.messages,
        known_messages=known.messages,
        side_messages=0 if tally.is_side_only else tally.side_counts.messages,
        images=tally.images,
        skipped=dict(tally.skipped),
        faults=dict(tally.faults),
        redactions=dict(intake.redactions),
        unread_bytes=reading.earlier.unread_bytes if reading.earlier else 0,
        pending=count_pending(intake.sessions, deps) if error is None or isinstance(error, OF_MODELS) else 0,
        error=error,
    )
