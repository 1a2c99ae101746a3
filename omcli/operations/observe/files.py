"""Taking transcripts in: messages are kept, and what matters in them is written down as observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from omcli.base.errors import OF_MATERIAL, OF_MODELS, BadInput, OmError
from omcli.base.record import field, mutable_record, record, replace
from omcli.memory.observation import Observation
from omcli.memory.transcript import Bookmark, Transcript
from omcli.operations.deps import Workshop
from omcli.operations.ingest.counts import MessageCounts
from omcli.operations.ingest.messages import Intake
from omcli.operations.ingest.sessions import Conversations
from omcli.operations.observe.session import Step, observe_session


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
    abandoned: frozenset[str] = frozenset()
    """Ids of messages on branches that the conversation did not go on from, where all of the input was read."""
    counts: MessageCounts = field(default_factory=MessageCounts)
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
    pending: int = 0
    """Messages of its sessions that no observation covers yet."""
    message_tokens: int = 0
    """Of the messages that these rows were made from."""
    observation_tokens: int = 0
    """Of the rows, by the same counter."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """What had to be put right in what a model replied, by kind."""
    error: OmError | None = None


@mutable_record
class _Written:
    """What the observer has come to so far."""

    rows: int = 0
    message_tokens: int = 0
    observation_tokens: int = 0
    findings: Counter[str] = field(default_factory=Counter)

    def add(self, step: Step) -> None:
        self.rows += len(step.rows)
        self.message_tokens += step.message_tokens
        self.observation_tokens += sum(row.tokens for row in step.rows)
        self.findings.update(step.findings)


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
        report = _observe_file(entry, workshop, session, each)
        if isinstance(report.error, OF_MODELS) and not isinstance(report.error, OF_MATERIAL):
            workshop = replace(workshop, observer=None)  # it would fail again; the rest is kept
        yield report


def _observe_file(
    entry: Input, workshop: Workshop, session: str | None, each: Callable[[Observation], None]
) -> FileReport:
    intake, written = None, _Written()
    try:
        with entry.open() as transcript:
            if transcript.format is None:
                return FileReport(path=entry.name, session_id=session)
            conversations = Conversations(transcript, open_store=workshop.open_store, session=session)
            intake = Intake(conversations, workshop)
            intake.append(entry.name)
        if intake.conversations.tally.found_nothing:
            raise BadInput(f"nothing in it is a message of format `{transcript.format}`")
        _remember(transcript, intake.bookmarks, workshop)
        for session_id in intake.sessions if workshop.observer else ():
            for step in observe_session(session_id, workshop):
                written.add(step)
                for row in step.rows:
                    each(row)
    except OmError as error:
        pending = _pending(intake, workshop) if intake and isinstance(error, OF_MODELS) else 0
        return _report(entry.name, intake, written, error, pending=pending)
    return _report(entry.name, intake, written, pending=_pending(intake, workshop))


def _remember(transcript: Transcript, bookmarks: Sequence[Bookmark], workshop: Workshop) -> None:
    """Keeps how far a file was taken in, and that nothing of it is left; of one that is as it was, the latter."""
    if transcript.origin is None:
        return
    known = workshop.store.bookmarks.find(transcript.origin) if transcript.stamp and not bookmarks else ()
    if bookmarks or (known and known[-1].stamp != transcript.stamp):
        *others, last = bookmarks or known
        workshop.store.bookmarks.put(transcript.origin, (*others, last.stamped(transcript.stamp)))


def _pending(intake: Intake, workshop: Workshop) -> int:
    return sum(workshop.store.batches.pending(session_id).messages for session_id in intake.sessions)


def _report(
    name: str, intake: Intake | None, written: _Written, error: OmError | None = None, *, pending: int = 0
) -> FileReport:
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
        abandoned=reading.abandoned if reading.earlier is None else frozenset(),
        counts=tally.counts,
        new_messages=new.messages,
        known_messages=known.messages,
        side_messages=0 if tally.is_side_chain else tally.of_side_chains.messages,
        images=tally.images,
        skipped=dict(tally.skipped),
        faults=dict(tally.faults),
        redactions=dict(intake.redactions),
        unread_bytes=reading.earlier.unread_bytes if reading.earlier else 0,
        observations=written.rows,
        message_tokens=written.message_tokens,
        observation_tokens=written.observation_tokens,
        findings=dict(written.findings),
        pending=pending,
        error=error,
    )
