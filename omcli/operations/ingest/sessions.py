"""Sessions of the messages in a transcript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from omcli.base.record import fields_of, replace
from omcli.memory.message import Message, Role
from omcli.memory.ports import Store
from omcli.memory.session import Session
from omcli.memory.transcript import (
    Abandoned,
    Checkpoint,
    Facts,
    Identities,
    IngestedPart,
    NewConversation,
    Notes,
    Transcript,
    derived_session,
)
from omcli.operations.ingest.counts import TranscriptCounts

_OPENING_WITHIN = 20
"""Messages among which the first prompt and its answer are looked for if a transcript names no session."""


class TranscriptSessions:
    """One reading of a transcript: its messages, each with the id of its session.

    The session is the one that was given, else the one the transcript names, else one derived from the first prompt: if
    several sessions were derived from the same prompt, the first one in the store that continues like the transcript,
    up to the answer. `found()` returns the facts learnt so far.
    """

    def __init__(self, transcript: Transcript, *, open_store: Callable[[], Store], session: str | None = None) -> None:
        """`session` is the given one. The store is opened only when it is needed."""
        self.tally = TranscriptCounts()
        self.sessions: dict[str, Session] = {}
        self.named: str | None = None
        """The first session the transcript itself names."""
        self.cwd: str | None = None
        """The first working directory it names."""
        self.abandoned: frozenset[str] = frozenset()
        """Ids of messages on branches that the conversation left, as far as this reading tells."""
        self._items = transcript.items
        self.format = transcript.format or ""
        self.earlier = transcript.earlier
        """The part that is not read again. It is counted as well, since counts describe the whole transcript."""
        self._copies = transcript.copies
        self._open_store = open_store
        self._given = session
        self._current: Session | None = None
        self._known = self._said(Facts())
        """Facts learnt before the session was known."""
        self._waiting: list[Message] = []
        self.openings: dict[str, int] = {}
        """Number of opening messages of each derived session from which nothing is stored yet."""
        self._taken: Counter[str] = Counter()
        """For each prompt, the number of sessions derived from it that belong to this transcript."""
        if self.earlier is not None:
            self._take_up(self.earlier)

    def _take_up(self, earlier: IngestedPart) -> None:
        found = earlier.found
        self.tally, self.named, self.cwd = TranscriptCounts.resume(found["tally"]), found["named"], found["cwd"]
        if earlier.carried is not None:
            carried = earlier.carried["conversations"]
            self.sessions = {session_id: Session(**facts) for session_id, facts in carried["sessions"].items()}
            self._current = self.sessions.get(carried["current"])
            self._known = Session(**carried["known"])
            self._taken = Counter(carried["taken"])

    def found(self) -> Notes:
        """Return the facts found so far."""
        return {"format": self.format, "tally": self.tally.notes(), "named": self.named, "cwd": self.cwd}

    def carried(self) -> Notes:
        """Return the state from which a later reading can continue; valid only if no message waits for its session."""
        return {
            "sessions": {session_id: fields_of(session) for session_id, session in self.sessions.items()},
            "current": self._current and self._current.id,
            "known": fields_of(self._known),
            "taken": self._taken,
        }

    def __iter__(self) -> Iterator[tuple[str, Message] | Checkpoint]:
        """Yield (session id, message) in file order, and checkpoints before which no message waits."""
        for item in self._items:
            self.tally.add(item)
            if isinstance(item, Message):
                self._waiting.append(item)
                if self._is_settled(item):
                    yield from self._release()
            elif isinstance(item, Facts):
                self._learn(item)
                if self._current is not None:  # messages before the first session name belong to that session as well
                    yield from self._release()
            elif isinstance(item, NewConversation):
                yield from self._release()
                self._current, self._known = None, self._said(Facts())
            elif isinstance(item, Abandoned):
                self.abandoned |= item.ids
            elif isinstance(item, Checkpoint):
                if item.reader_state is None:  # nothing follows
                    yield from self._release()
                if not self._waiting:
                    yield item
        yield from self._release()

    def identities(self, session_id: str, before: Counter[int] | None = None) -> Identities:
        """Return identities for the messages of a session, starting with its first one in this reading."""
        return Identities(session_id, format_name=self.format, copies=self._copies, before=before)

    def _is_settled(self, message: Message) -> bool:
        """True if the session is known, or can be derived."""
        known = self._current is not None or self._given is not None
        is_answer = message.role is Role.ASSISTANT and message.agent is None
        answered = is_answer and any(map(_is_prompt, self._waiting))
        return known or answered or len(self._waiting) >= _OPENING_WITHIN

    def _release(self) -> Iterator[tuple[str, Message]]:
        if not self._waiting:
            return
        current = self._current or self._begin(self._given or self._derived_id(self._waiting), self._known)
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            yield current.id, message

    def _learn(self, facts: Facts) -> None:
        self.named = self.named or facts.session
        self.cwd = self.cwd or facts.cwd
        session_id = self._given or facts.session
        said = self._said(facts)
        if self._current is None:
            self._known = self._known.merged(said)
            if session_id:
                self._begin(session_id, self._known)
        elif session_id and session_id != self._current.id:
            # A session that continues another one has its directory until the transcript names a different one.
            before = self._current
            moved = replace(said, cwd=said.cwd or before.cwd, branch=said.branch or before.branch)
            self._begin(session_id, replace(moved, model=moved.model or before.model))
        else:
            self._begin(self._current.id, said)

    def _said(self, facts: Facts) -> Session:
        """Return the facts as a session without an id."""
        return Session(
            id="",
            agent=self.format,
            cwd=facts.cwd,
            branch=facts.branch,
            title=facts.title,
            model=facts.model,
            parent=facts.parent,
        )

    def _begin(self, session_id: str, learnt: Session) -> Session:
        learnt = replace(learnt, id=session_id)
        before = self.sessions.get(session_id)
        self._current = self.sessions[session_id] = before.merged(learnt) if before else learnt
        return self._current

    def move(self, session_id: str, opening: Sequence[Message]) -> str:
        """Return a new id for a session if another process has just begun one with this id but without `opening`."""
        learnt = self.sessions.pop(session_id)
        self._taken.clear()
        moved = self._derived_id(opening)
        self.sessions[moved] = replace(learnt, id=moved)
        if self._current is learnt:
            self._current = self.sessions[moved]
        return moved

    def _derived_id(self, opening: Sequence[Message]) -> str:
        prompt = next((message for message in opening if _is_prompt(message)), opening[0])
        derived = derived_session(self.format, prompt)
        for nth in count(self._taken[derived] + 1):
            session_id = derived if nth == 1 else f"{derived}~{nth}"
            if session_id not in self.sessions and self._goes_on(session_id, opening):
                break
        if nth == self._taken[derived] + 1:
            self._taken[derived] = nth
        self.openings[session_id] = len(opening)
        return session_id

    def _goes_on(self, session_id: str, opening: Sequence[Message]) -> bool:
        """True if the conversation agrees with the stored part of this session."""
        store, known = self._open_store(), list(map(self.identities(session_id).with_earlier, opening))
        identities = [identity for identity, _ in known]
        formerly = [former or identity for identity, former in known]
        return store.messages.begins_with(session_id, identities) or store.messages.begins_with(session_id, formerly)


def _is_prompt(message: Message) -> bool:
    return message.role is Role.USER and message.is_counted and message.agent is None
