"""Ingesting files: storing the messages of each transcript, and bookmarks that record how far it was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain

from omcli.base import ignore
from omcli.base.errors import OF_MODELS, PASSING, BadInput, OmError, SessionTaken, StoreDamaged
from omcli.base.record import field, record, replace
from omcli.memory.message import Image, Incoming, Message, MessageKind, TokenCounter
from omcli.memory.session import Session
from omcli.memory.transcript import (
    Bookmark,
    Checkpoint,
    Facts,
    Handover,
    Identities,
    IngestedPart,
    Notes,
    Transcript,
    as_json,
    printed_key,
)
from omcli.operations.deps import Deps, StoreOrSpool
from omcli.operations.ingest.sessions import MessageCounts, TranscriptCounts, TranscriptSessions
from omcli.text.clean import clean
from omcli.text.redaction import redact

CHUNK = 500
"""Maximum number of messages per transaction."""
_SPOOLED = (*PASSING, StoreDamaged)
"""Errors of the store for which messages are spooled. After StoreDamaged, the store's backup takes them."""
_PICTURES = 16 << 20
"""A chunk with more bytes of images than this is written early."""


@record
class SafeMessage:
    """A message as it is stored, its tokens, and the number of secrets removed from it by rule."""

    message: Message
    tokens: int
    redactions: Mapping[str, int]


@record
class InputFile:
    """A file to read as a transcript, with the requested format and session."""

    path: str
    format_name: str | None = None
    session: str | None = None


@record
class FileInput:
    """A transcript to ingest: its name in reports, and a function that opens it or raises an OmError."""

    name: str
    open: Callable[[], AbstractContextManager[Transcript]]
    file: InputFile | None = None
    """The file that is opened, or None if it is not a file or only this process may read it."""
    known: Callable[[Message], SafeMessage | None] = ignore
    """Return the `safe_message` of one of the transcript if it is known already."""


@record
class FileReport:
    """The outcome of one input. After an `error`, the counts cover the part before it. Stored messages stay stored."""

    path: str
    format: str | None = None
    """None for an empty input or one that could not be opened."""
    session_id: str | None = None
    """The first session of the messages: the given one, otherwise the first one named in the input, otherwise a derived
    one. Without messages, the named one, or the given one if the input is empty.
    """
    sessions: tuple[str, ...] = ()
    """All sessions that messages of the input belong to, in order of appearance."""
    cwd: str | None = None
    abandoned: frozenset[str] = frozenset()
    """Ids of messages on abandoned branches; empty unless the whole input was read."""
    handover: Handover | None = None
    """The host's request, if the input is one and was read now."""
    memory: tuple[str, ...] = ()
    """Earlier memory that the transcript begins with, if it was read now."""
    counts: MessageCounts = field(default_factory=MessageCounts)
    new_messages: int = 0
    known_messages: int = 0
    """Number of messages that were already stored, occur twice or were forgotten. New, known and spooled messages
    together are all counted messages of the main thread or, if there is none, of the side chains, except those in
    projects where memory is off.
    """
    spooled: int = 0
    """Number of messages that wait in the spool, because the store could not take them (`spooled_for`)."""
    spooled_for: OmError | None = None
    side_messages: int = 0
    """Number of messages in side chains; 0 if there is no main thread."""
    images: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of records or parts of records that contain no message, by reason. `forgotten` counts messages that were
    stored as hidden, because their text was forgotten, and `off` those that were not stored, because memory is off in
    their project.
    """
    faults: Mapping[str, int] = field(default_factory=dict)
    """Number of skipped records that may have been messages, by reason."""
    unread: int = 0
    """Number of skipped records that plainly are messages of a user or an agent."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Number of removed secrets, by rule."""
    unread_bytes: int = 0
    """Size of the unchanged beginning of a file, which was not read again. Counts of messages, skipped records and
    secrets describe the whole file.
    """
    observations: int = 0
    """Number of rows written."""
    pending: int = 0
    """Number of counted messages of `sessions` that no batch covers yet; 0 after an error, unless a model failed."""
    message_tokens: int = 0
    """Tokens of the newly observed messages."""
    observation_tokens: int = 0
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to a model's replies, by kind."""
    error: OmError | None = None


def ingest_files(
    inputs: Sequence[FileInput], deps: Deps, *, session: str | None = None, is_joined: bool = False
) -> Iterator[FileReport]:
    """Store the messages of each input, and yield its report. An error in one input does not stop the others.

    `session` overrides the sessions named in the inputs. If `is_joined`, a session that continues another session of
    its input counts as that other session.
    """
    for entry in deps.each(inputs, "file"):
        intake, error = None, None
        try:
            with entry.open() as transcript:
                if transcript.format is None:
                    yield FileReport(path=entry.name, session_id=session)
                    continue
                spooling = StoreOrSpool(deps.open_store, deps.open_spool, errors=_SPOOLED)
                target = spooling if deps.open_spool and transcript.origin is None else None
                conversations = TranscriptSessions(
                    transcript, open_store=(target or deps).open_store, session=session, is_joined=is_joined
                )
                intake = MessageWriter(conversations, deps, target=target, known=entry.known)
                try:
                    intake.append(entry.name)
                finally:
                    spooling.keep()
            if conversations.tally.found_nothing:
                raise BadInput(f"nothing in it is a message of format `{transcript.format}`")
            _keep_bookmarks(transcript, intake, deps)
        except OmError as failure:
            error = failure
        yield FileReport(path=entry.name, error=error) if intake is None else _report(entry.name, intake, error, deps)


def count_pending(sessions: Iterable[str], deps: Deps) -> int:
    """Return the number of counted messages in these sessions that no batch covers yet."""
    pending = 0
    for session_id in sessions:
        pending += deps.store.batches.pending(session_id).counted
    return pending


def _keep_bookmarks(transcript: Transcript, intake: MessageWriter, deps: Deps) -> None:
    """Store a file's new bookmarks, the last one with the file's stamp. If there are none, only update the stamp."""
    if transcript.origin is None or intake.left_out["off"]:
        return  # what is not stored is read again, because memory may be turned on
    bookmarks, store = intake.bookmarks, deps.store.bookmarks
    known = store.find(transcript.origin) if transcript.stamp and not bookmarks else ()
    if bookmarks or (known and known[-1].stamp != transcript.stamp):
        *others, last = bookmarks or known
        store.put(transcript.origin, (*others, last.with_stamp(transcript.stamp)))


def _report(name: str, intake: MessageWriter, error: OmError | None, deps: Deps) -> FileReport:
    reading, tally = intake.conversations, intake.conversations.tally
    counts = (intake.new, intake.known, intake.spooled)
    new, known, spooled = (each.side_counts if tally.is_side_only else each.main_counts for each in counts)
    spooled_for = None if intake.target is None else intake.target.error
    is_stored = spooled_for is None and (error is None or isinstance(error, OF_MODELS))
    return FileReport(
        path=name,
        format=reading.format,
        session_id=intake.sessions[0] if intake.sessions else reading.named,
        sessions=tuple(intake.sessions),
        cwd=reading.cwd,
        abandoned=reading.abandoned if reading.earlier is None else frozenset(),
        handover=reading.handover,
        memory=reading.memory,
        counts=tally.counts,
        new_messages=new.messages,
        known_messages=known.messages,
        spooled=spooled.messages if spooled_for is not None else 0,
        spooled_for=spooled_for,
        side_messages=0 if tally.is_side_only else tally.side_counts.messages,
        images=tally.images,
        skipped=dict(tally.skipped + intake.left_out),
        faults=dict(tally.faults),
        unread=tally.unread,
        redactions=dict(intake.redactions),
        unread_bytes=reading.earlier.unread_bytes if reading.earlier else 0,
        pending=count_pending(intake.sessions, deps) if is_stored else 0,
        error=error,
    )


# ---- messages: cleaned, without secrets, each stored once


class MessageWriter:
    """Writes the messages of one transcript to the store, without secrets, and counts them."""

    def __init__(
        self,
        conversations: TranscriptSessions,
        deps: Deps,
        *,
        target: StoreOrSpool | None = None,
        before: Mapping[str, Counter[int]] | None = None,
        known: Callable[[Message], SafeMessage | None] = ignore,
    ) -> None:
        """Without a `target`, only the store takes messages. `before` maps each session that these messages continue to
        the number of earlier occurrences of each message (`Identities.counted`). For `known` see `FileInput`.
        """
        self.new, self.known, self.spooled = TranscriptCounts(), TranscriptCounts(), TranscriptCounts()
        """Messages that are new, messages that were already stored, occur twice or were forgotten, and messages in the
        spool.
        """
        self.left_out: Counter[str] = Counter()
        """Number of messages whose text was forgotten (`forgotten`), and of those that are not stored because memory is
        off in their project (`off`).
        """
        self.redactions: Counter[str] = Counter()
        """Number of removed secrets, by rule."""
        self.sessions: list[str] = []
        """Sessions of the stored messages, in order of appearance."""
        self.bookmarks: list[Bookmark] = []
        """Bookmarks of this reading. Everything up to each of them is stored."""
        self.conversations = conversations
        self.target = target
        self._deps, self._open_store, self._known_safe = deps, (target or deps).open_store, known
        self._identities: dict[str, Identities] = {
            session_id: conversations.identities(session_id, counts) for session_id, counts in (before or {}).items()
        }
        if conversations.earlier is not None:
            self._take_up(conversations.earlier)

    def _take_up(self, earlier: IngestedPart) -> None:
        self.known = TranscriptCounts.resume(earlier.found["tally"])
        self.redactions = Counter(earlier.found["redactions"])
        self.sessions = earlier.found["sessions"]
        if earlier.carried is not None:
            from omcli.text.hashes import unpacked_counts  # noqa: PLC0415 - only to resume

            for session_id, counts in earlier.carried["identities"].items():
                before = unpacked_counts(counts)
                self._identities[session_id] = self.conversations.identities(session_id, before)

    def append(self, name: str) -> None:
        """Store all messages, one transaction per chunk.

        Raise StoreLocked if another process writes for too long, InputOutput if the disk fails, and the errors of
        reading the transcript. Earlier chunks stay stored.
        """
        session, chunk, pictures = "", list[tuple[Incoming, Message]](), 0
        for step in self.conversations:
            goes_on = not isinstance(step, Checkpoint) and step[0] == session
            if chunk and (not goes_on or len(chunk) == CHUNK or pictures > _PICTURES):
                session = self._keep(session, chunk)
                self._deps.progress(name, self.conversations.tally)
                chunk, pictures = [], 0
            if isinstance(step, Checkpoint):
                self._mark(step)
            else:
                session_id, message = step
                if not goes_on:
                    session = session_id
                incoming = self._incoming(session, message)
                if message.kind is MessageKind.SUMMARY and not self._is_known(session, message, chunk):
                    incoming = replace(incoming, message=replace(incoming.message, kind=MessageKind.RECAP))
                pictures += sum(image.size for image in incoming.message.images if image.content)
                chunk.append((incoming, message))
        if chunk:
            self._keep(session, chunk)
        for session_id in self.sessions:  # facts that follow the last message of a session
            if session_id in self.conversations.sessions:
                self._keep(session_id, [])

    def _is_known(self, session_id: str, summary: Message, chunk: list[tuple[Incoming, Message]]) -> bool:
        """Return True if messages before a summary are known, in its session or in the one that this session continues.

        Always return True for a subagent's summary, which is not examined.
        """
        if summary.agent is not None or any(message.is_counted for _, message in chunk):
            return True
        messages, parent = self._open_store().messages, self.conversations.sessions[session_id].parent
        known = chain(messages.outline(session_id), messages.outline(parent) if parent else ())
        return any(outline.is_counted and outline.is_main for outline in known)

    def _mark(self, pause: Checkpoint) -> None:
        """Add a bookmark, unless its data would contain a secret.

        If only the state for resuming contains one, the bookmark is added without this state.
        """
        if self.bookmarks and self.bookmarks[-1].offset == pause.offset:
            return
        found = {**self.conversations.found(), "redactions": self.redactions, "sessions": self.sessions}
        if not _may_be_kept(found):
            return
        carried = None
        if pause.reader_state is not None:
            from omcli.text.hashes import packed_counts  # noqa: PLC0415 - only for a file that may be resumed

            identities = {session_id: packed_counts(seen.counted()) for session_id, seen in self._identities.items()}
            conversations = self.conversations.carried()
            carried = {"reader": pause.reader_state, "conversations": conversations, "identities": identities}
        if carried is not None and not _may_be_kept(carried):
            carried = None
        self.bookmarks.append(Bookmark.at(pause.offset, pause.digest, found=found, carried=carried))

    def _keep(self, session_id: str, chunk: list[tuple[Incoming, Message]]) -> str:
        """Store or spool a chunk and the facts about its session, and return the session's id. If memory is off in the
        session's directory, only count the messages.

        The id changes if another process has just begun a different session with the same id.
        """
        conversations, deps = self.conversations, self._deps
        opening, session = conversations.openings.pop(session_id, 0), conversations.sessions[session_id]
        if session.cwd and deps.is_off_in(session.cwd):
            self.left_out["off"] += len(chunk)
            return session_id
        if conversations.tally.is_side_only:
            # A subagent may work in its own worktree, so it must not set the session's directory.
            session = replace(session, cwd=None, branch=None)
        session = replace(session, title=_safe(session.title), branch=_safe(session.branch), model=_safe(session.model))
        incoming, now = tuple([incoming for incoming, _ in chunk]), deps.clock.now()
        log = self.target or self._open_store().messages
        try:
            appended = log.append(session, incoming, counter=deps.counter.name, now=now, opening=opening)
        except SessionTaken:
            moved = conversations.move(session_id, [message for _, message in chunk[:opening]])
            del self._identities[session_id]  # a later conversation with this id starts with no identities
            again = [
                (self._with_identity(moved, incoming.message, message, tokens=incoming.tokens), message)
                for incoming, message in chunk
            ]
            return self._keep(moved, again)
        if appended is None:
            for _, message in chunk:
                self.spooled.add(message)
        else:
            self.left_out["forgotten"] += appended.forgotten
            for (_, message), is_new in zip(chunk, appended.new, strict=True):
                (self.new if is_new else self.known).add(message)
        if session_id not in self.sessions:
            self.sessions.append(session_id)
        return session_id

    def _incoming(self, session_id: str, message: Message) -> Incoming:
        safe = self._known_safe(message) or safe_message(
            message, self._deps.counter, takes_images=self._deps.observer.takes_images
        )
        self.redactions.update(safe.redactions)
        return self._with_identity(session_id, safe.message, message, tokens=safe.tokens)

    def _with_identity(self, session_id: str, kept: Message, message: Message, *, tokens: int) -> Incoming:
        identities = self._identities.get(session_id)
        if identities is None:
            identities = self._identities[session_id] = self.conversations.identities(session_id)
        # Taken from the unredacted message, so that better rules for secrets do not change its identity.
        identity, formerly = identities.with_earlier(message)
        key = printed_key(kept, identity)
        return Incoming(message=kept, identity=identity, key=key, tokens=tokens, formerly=formerly)


def safe_message(message: Message, counter: TokenCounter, *, takes_images: bool) -> SafeMessage:
    """Return the message to store: cleaned, without secrets, and without images if the observer takes none."""
    redacted = redact(clean(message.text))
    tool, name = _safe(message.tool), _safe(message.name)
    kept = message
    if (redacted.text, tool, name) != (message.text, message.tool, message.name):
        kept = replace(message, text=redacted.text, tool=tool, name=name)
    if kept.images:
        images = list[Image]()
        for image in kept.images:
            media_type, content = _safe(image.media_type) or "", image.content if takes_images else None
            images.append(replace(image, media_type=media_type, content=content))
        kept = replace(kept, images=tuple(images))
    return SafeMessage(message=kept, tokens=counter.message(kept), redactions=redacted.counts)


def append_again(session: Session, messages: Iterable[Message], deps: Deps) -> int:
    """Store a conversation from the spool under a newly derived id, because another one has taken its old id. Return
    the number of new messages.
    """
    facts = Facts(
        cwd=session.cwd, branch=session.branch, title=session.title, model=session.model, parent=session.parent
    )
    transcript = Transcript(format=session.agent, items=(facts, *messages))
    intake = MessageWriter(TranscriptSessions(transcript, open_store=deps.open_store), deps)
    intake.append(session.id)
    return intake.new.main_counts.messages + intake.new.side_counts.messages


@lru_cache(maxsize=256)
def _safe(name: str | None) -> str | None:
    """Return a tool's, speaker's, branch's or model's name, or a title, without secrets."""
    return name and redact(clean(name)).text


def _may_be_kept(notes: Notes) -> bool:
    """Return True if the notes, which may include messages verbatim, contain no secret. Return False if they are nested
    too deeply to be searched.
    """
    try:
        return not redact(as_json(notes, hashes=False)).counts
    except RecursionError:
        return False
