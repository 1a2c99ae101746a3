"""Ingesting an agent's messages while it works: single messages, or the whole conversation at every turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile

from omcli.base.errors import BadInput
from omcli.base.record import field, record
from omcli.memory.message import Message
from omcli.memory.transcript import Facts, Identities, Transcript
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import MessageWriter
from omcli.operations.ingest.sessions import MessageCounts, TranscriptCounts, TranscriptSessions
from omcli.text.clean import clean
from omcli.text.redaction import redact

_ENOUGH = 200
"""Maximum number of consecutive messages to compare."""
_NO_COINCIDENCE = 3
"""Minimum number of consecutive equal messages that count as a match if an earlier message was changed."""


@record
class Ingested:
    new: int = 0
    known: int = 0
    """Number of messages that were already stored, or that were forgotten."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of records without a message, by reason. For example, `injected` counts system messages and om's own
    output.
    """
    faults: Mapping[str, int] = field(default_factory=dict)
    """Number of skipped records that may have been messages, by reason."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Number of removed secrets, by rule."""
    pending: int = 0
    """Number of the session's messages that no batch covers yet."""


def ingest(
    transcript: Transcript, deps: Deps, *, session: str, project: str | None = None, is_next: bool = False
) -> Ingested:
    """Store a session's messages, each once, without observing them.

    The transcript is all or part of the session's conversation; messages after the known ones are new. With `is_next`,
    it contains the session's next messages: they are new even if the same text was stored before, unless it was stored
    with the same id or, without ids, the same time. `project` is used if the session has none.

    Raise BadInput if there are only faulty records, and StoreLocked or InputOutput if storing fails.
    """
    tally, said = TranscriptCounts(), list[Message]()
    for item in transcript.items:
        tally.add(item)
        if isinstance(item, Message):
            said.append(item)
    if tally.found_nothing:
        raise BadInput(f"nothing in it is a message of format `{transcript.format}`")
    taking = _SessionWriter(transcript, session, project, deps)
    if is_next:
        for message in said:
            taking.keep_next(message)
    elif said:
        taking.keep_conversation(said)
    return Ingested(
        new=taking.new,
        known=taking.known,
        skipped=dict(tally.skipped),
        faults=dict(tally.faults),
        redactions=dict(taking.redactions),
        pending=deps.store.batches.pending(session).messages,
    )


class _SessionWriter:
    def __init__(self, transcript: Transcript, session: str, project: str | None, deps: Deps) -> None:
        self.new = self.known = 0
        self.redactions: Counter[str] = Counter()
        self._format, self._copies = transcript.format or "", transcript.copies
        self._session, self._project = session, project
        self._deps = deps

    def keep_next(self, message: Message) -> None:
        """Store the next message. If another process stores the same text at the same time, both messages are kept."""
        before = None
        while not self._keep([message], counted := self._counted([message])):
            if counted == before or _is_told_apart(message):
                self.known += 1  # or it was forgotten and must not be stored again
                return
            before = counted

    def keep_conversation(self, messages: Sequence[Message]) -> None:
        known, before = self._placed(messages)
        self.known += len(messages) - self._keep(messages[known:], before)

    def _placed(self, messages: Sequence[Message]) -> tuple[int, Counter[int]]:
        """Return the number of leading messages that are already stored, and the earlier occurrences of the others.

        Start again if another process stores a message during this, because that message would be counted but not
        recognised.
        """
        store = self._deps.store
        while True:
            last = store.messages.newest(self._session, 1)
            placed = self._from_beginning(messages) or self._from_end(messages)
            if store.messages.newest(self._session, 1) == last:
                return placed

    def _keep(self, messages: Sequence[Message], before: Counter[int]) -> int:
        """Store messages, and return the number of new ones. `before` counts their earlier occurrences."""
        if not messages:
            return 0
        facts = [Facts(cwd=self._project)] if self._project else []
        transcript = Transcript(format=self._format, copies=self._copies, items=[*facts, *messages])
        conversations = TranscriptSessions(transcript, open_store=self._deps.open_store, session=self._session)
        intake = MessageWriter(conversations, self._deps, before={self._session: before})
        intake.append(self._session)
        self.redactions += intake.redactions
        new = sum(map(_number, (intake.new.main_counts, intake.new.side_counts)))
        self.new += new
        return new

    def _from_beginning(self, messages: Sequence[Message]) -> tuple[int, Counter[int]] | None:
        """Like `_placed`, for a conversation from its beginning. Return None if the session begins differently."""
        store, identities = self._deps.store, self._identities()
        asked = [identities.with_earlier(message) for message in messages]
        present = store.messages.known([identity for identity, _ in asked])
        going_by = [now if known else formerly or now for (now, formerly), known in zip(asked, present, strict=True)]
        if not store.messages.begins_with(self._session, going_by):
            return None
        known = sum(1 for _ in takewhile(bool, store.messages.known(going_by)))
        return known, identities.counted() - Counter(map(identities.short, messages[known:]))

    def _from_end(self, messages: Sequence[Message]) -> tuple[int, Counter[int]]:
        """Like `_placed`, for part of a conversation, or for all of it if an earlier message was changed."""
        newest = [kept.message for kept in self._deps.store.messages.newest(self._session, min(len(messages), _ENOUGH))]
        known = _overlap(messages, newest)
        if not known and self._is_first(messages[0]):
            return 0, Counter()  # each is recognised by the number of its earlier occurrences
        return known, self._counted(messages[known:])

    def _is_first(self, message: Message) -> bool:
        store, identities = self._deps.store, filter(None, self._identities().with_earlier(message))
        return any(store.messages.begins_with(self._session, [identity]) for identity in identities)

    def _counted(self, messages: Sequence[Message]) -> Counter[int]:
        """Return the number of stored occurrences of each message that has neither id nor time."""
        identities, counts = self._identities(), Counter[int]()
        waiting = {identities.short(message): message for message in messages if not _is_told_apart(message)}
        first, size = 0, 1
        while waiting:
            for short, message in list(waiting.items()):
                asked = [identities.with_earlier(message, before=number) for number in range(first, first + size)]
                found = sum(1 for _ in takewhile(bool, self._are_known(asked)))
                counts[short] += found
                if found < size:
                    del waiting[short]
            first, size = first + size, 2 * size
        return counts

    def _are_known(self, asked: Sequence[tuple[str, str | None]]) -> list[bool]:
        present = self._deps.store.messages.known([identity for identity, _ in asked])
        formerly = self._deps.store.messages.known([former or identity for identity, former in asked])
        return [one or other for one, other in zip(present, formerly, strict=True)]

    def _identities(self) -> Identities:
        return Identities(self._session, format_name=self._format, copies=self._copies)


def _number(counts: MessageCounts) -> int:
    return counts.messages + counts.compactions + counts.asides


def _is_told_apart(message: Message) -> bool:
    return message.id is not None or message.at is not None


def _overlap(messages: Sequence[Message], newest: Sequence[Message]) -> int:
    """Return the number of leading messages up to the point where the newest stored messages end; 0 if they do not
    occur.
    """
    longest = known = 0
    for end in range(len(messages), 0, -1):
        run = _same_length(messages, end, newest)
        if run == min(end, _ENOUGH):
            return end
        if run > max(longest, _NO_COINCIDENCE - 1):
            longest, known = run, end
    return known


def _same_length(messages: Sequence[Message], end: int, newest: Sequence[Message]) -> int:
    """Return the number of messages before `end` that equal the newest stored ones."""
    pairs = zip(reversed(messages[max(0, end - _ENOUGH) : end]), reversed(newest), strict=False)
    return sum(1 for _ in takewhile(lambda pair: _is_same(*pair), pairs))


def _is_same(said: Message, kept: Message) -> bool:
    """Return True if a given message equals a stored one. Calls and results that have a call id are compared by it,
    because agents may shorten their text.
    """
    if said.role is not kept.role or said.agent != kept.agent:
        return False
    if said.call_id is not None and said.kind is None:
        return said.call_id == kept.call_id
    return said.text == kept.text or redact(clean(said.text)).text == kept.text
