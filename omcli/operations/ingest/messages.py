"""Storing the messages of a transcript: cleaned, without secrets, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from omcli.base.errors import SessionTaken
from omcli.base.record import replace
from omcli.memory.message import Message
from omcli.memory.ports import Incoming
from omcli.memory.transcript import Bookmark, Checkpoint, Identities, IngestedPart, Notes, as_json, printed_key
from omcli.operations.deps import Deps
from omcli.operations.ingest.counts import TranscriptCounts
from omcli.operations.ingest.sessions import TranscriptSessions
from omcli.text.clean import clean
from omcli.text.hashes import packed_counts, unpacked_counts
from omcli.text.redaction import redact

CHUNK = 500
"""Messages per transaction."""
_PICTURES = 16 << 20
"""Bytes of images after which a chunk is written in any case."""


class MessageWriter:
    """Writes the messages of one transcript to the store, and counts those stored so far."""

    def __init__(
        self, conversations: TranscriptSessions, deps: Deps, *, before: Mapping[str, Counter[int]] | None = None
    ) -> None:
        """`before` maps sessions that these messages continue to the earlier occurrences of each message
        (`Identities.counted`).
        """
        self.new, self.known = TranscriptCounts(), TranscriptCounts()
        """Messages that were not in the store, and those that were or that occur twice."""
        self.redactions: Counter[str] = Counter()
        """Removed secrets, by rule."""
        self.sessions: list[str] = []
        """Sessions of the stored messages, in order of appearance."""
        self.bookmarks: list[Bookmark] = []
        """Places in the file before which everything is stored; empty if nothing was read."""
        self.conversations = conversations
        self._deps = deps
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
            for session_id, counts in earlier.carried["identities"].items():
                before = unpacked_counts(counts)
                self._identities[session_id] = self.conversations.identities(session_id, before)

    def append(self, name: str) -> None:
        """Store all messages, one transaction per chunk. Raise StoreLocked, InputOutput; earlier chunks stay stored."""
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
                pictures += sum(image.size for image in incoming.message.images if image.content)
                chunk.append((incoming, message))
        if chunk:
            self._keep(session, chunk)
        for session_id in self.sessions:  # facts that follow the last message of a session
            if session_id in self.conversations.sessions:
                self._store(session_id, ())

    def _mark(self, pause: Checkpoint) -> None:
        """Add a bookmark if everything before it is stored."""
        if self.bookmarks and self.bookmarks[-1].offset == pause.offset:
            return
        found = {**self.conversations.found(), "redactions": self.redactions, "sessions": self.sessions}
        if not _may_be_kept(found):
            return
        carried = None
        if pause.reader_state is not None:
            identities = {session_id: packed_counts(seen.counted()) for session_id, seen in self._identities.items()}
            conversations = self.conversations.carried()
            carried = {"reader": pause.reader_state, "conversations": conversations, "identities": identities}
        if carried is not None and not _may_be_kept(carried):
            carried = None
        self.bookmarks.append(Bookmark.at(pause.offset, pause.digest, found=found, carried=carried))

    def _keep(self, session_id: str, chunk: list[tuple[Incoming, Message]]) -> str:
        """Store a chunk and return its session, a different one if another process has just begun a session with this
        id.
        """
        opening = self.conversations.openings.pop(session_id, 0)
        try:
            new = self._store(session_id, [incoming for incoming, _ in chunk], opening=opening)
        except SessionTaken:
            moved = self.conversations.move(session_id, [message for _, message in chunk[:opening]])
            del self._identities[session_id]  # if a later conversation gets this id, it starts afresh
            chunk = [(self._with_identity(moved, incoming, message), message) for incoming, message in chunk]
            return self._keep(moved, chunk)
        for (_, message), is_new in zip(chunk, new, strict=True):
            (self.new if is_new else self.known).add(message)
        if session_id not in self.sessions:
            self.sessions.append(session_id)
        return session_id

    def _store(self, session_id: str, incoming: Iterable[Incoming], *, opening: int = 0) -> tuple[bool, ...]:
        deps = self._deps
        session = self.conversations.sessions[session_id]
        if self.conversations.tally.is_side_only:
            # A subagent may work in a worktree of its own, so it must not set the session's directory.
            session = replace(session, cwd=None, branch=None)
        if session.title is not None:
            session = replace(session, title=redact(clean(session.title)).text)
        now = deps.clock.now()
        return deps.store.messages.append(
            session, tuple(incoming), counter=deps.counter.name, now=now, opening=opening
        ).new

    def _incoming(self, session_id: str, message: Message) -> Incoming:
        kept = self._redacted(message)
        incoming = Incoming(message=kept, identity="", key="", tokens=self._deps.counter.message(kept))
        return self._with_identity(session_id, incoming, message)

    def _with_identity(self, session_id: str, incoming: Incoming, message: Message) -> Incoming:
        identities = self._identities.get(session_id)
        if identities is None:
            identities = self._identities[session_id] = self.conversations.identities(session_id)
        # From the message as read: better rules for secrets must not change its identity.
        identity, formerly = identities.with_earlier(message)
        key = printed_key(incoming.message, identity)
        return replace(incoming, identity=identity, formerly=formerly, key=key)

    def _redacted(self, message: Message) -> Message:
        redacted = redact(clean(message.text))
        self.redactions.update(redacted.counts)
        kept = message if redacted.text == message.text else replace(message, text=redacted.text)
        if kept.images and not self._deps.observer.takes_images:
            kept = replace(kept, images=tuple(replace(image, content=None) for image in kept.images))
        return kept


def _may_be_kept(notes: Notes) -> bool:
    """True if notes contain no secret: they hold the text of waiting messages verbatim."""
    try:
        return not redact(as_json(notes, hashes=False)).counts
    except RecursionError:
        return False
