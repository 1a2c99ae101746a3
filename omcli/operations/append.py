"""Keeping the messages of a transcript: cleaned, without secrets, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from omcli.memory.identity import Identities, printed_key
from omcli.memory.message import Message
from omcli.memory.ports import Incoming
from omcli.memory.redaction import redact
from omcli.memory.text import clean
from omcli.operations.conversations import Conversations
from omcli.operations.tally import Tally
from omcli.operations.workshop import Workshop

CHUNK = 500
"""Messages per transaction."""


class Intake:
    """Messages of one reading on their way into the store; what it counts is what has been kept so far."""

    def __init__(self, conversations: Conversations, workshop: Workshop) -> None:
        self.new, self.known = Tally(), Tally()
        """Messages that were not in the store, and those that were, or that came twice."""
        self.redactions: Counter[str] = Counter()
        """Secrets taken out, by rule."""
        self.sessions: list[str] = []
        """Sessions of the kept messages, in order of appearance."""
        self.conversations = conversations
        self._workshop = workshop
        self._identities: dict[str, Identities] = {}

    def append(self, name: str) -> None:
        """Keeps everything, one transaction per chunk. Raises StoreLocked, InputOutput; earlier chunks stay kept."""
        session, chunk = "", list[tuple[Incoming, Message]]()
        for session_id, message in self.conversations:
            if chunk and (session_id != session or len(chunk) == CHUNK):
                self._keep(session, chunk)
                self._workshop.progress(name, self.conversations.tally)
                chunk = []
            session = session_id
            chunk.append((self._incoming(session_id, message), message))
        if chunk:
            self._keep(session, chunk)
        for session_id in self.sessions:  # what the transcript said of them after their last message
            self._store(session_id, ())

    def _keep(self, session_id: str, chunk: list[tuple[Incoming, Message]]) -> None:
        new = self._store(session_id, [incoming for incoming, _ in chunk])
        for (_, message), is_new in zip(chunk, new, strict=True):
            (self.new if is_new else self.known).add(message)
        if session_id not in self.sessions:
            self.sessions.append(session_id)

    def _store(self, session_id: str, incoming: Iterable[Incoming]) -> tuple[bool, ...]:
        work = self._workshop
        session = self.conversations.sessions[session_id]
        if self.conversations.tally.is_side_chain:
            # A subagent may work elsewhere, in a worktree of its own; where the session lives is not for it to say.
            session = replace(session, cwd=None, branch=None)
        if session.title is not None:
            session = replace(session, title=redact(clean(session.title)).text)
        return work.store.append(session, tuple(incoming), counter=work.counter.name, now=work.clock.now()).new

    def _incoming(self, session_id: str, message: Message) -> Incoming:
        identities = self._identities.get(session_id)
        if identities is None:
            identities = self._identities[session_id] = self.conversations.identities(session_id)
        # From the message as it was read: better rules for secrets must not make it another message.
        identity = identities.of(message)
        kept = self._redacted(message)
        tokens = self._workshop.counter.message(kept)
        return Incoming(message=kept, identity=identity, key=printed_key(kept, identity), tokens=tokens)

    def _redacted(self, message: Message) -> Message:
        redacted = redact(clean(message.text))
        self.redactions.update(redacted.counts)
        return replace(message, text=redacted.text)
