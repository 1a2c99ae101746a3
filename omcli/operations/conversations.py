"""Which session each message of a transcript belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from omcli.memory.identity import derived_session
from omcli.memory.message import Message, Role
from omcli.memory.session import Session
from omcli.memory.transcript import Facts, NewConversation, Transcript
from omcli.operations.tally import Tally

_OPENING_WITHIN = 20
"""Messages among which the first prompt is looked for, where a transcript names no session."""


class Conversations:
    """One reading of a transcript: its messages, each with the id of its session.

    The session is the one that was given, else the one the transcript names, else one derived from the first prompt.
    `sessions` holds what has been learnt of each so far, `tally` the counts; both are complete when the iteration is.
    """

    def __init__(self, transcript: Transcript, *, session: str | None = None) -> None:
        self.tally = Tally()
        self.sessions: dict[str, Session] = {}
        self.named: str | None = None
        """The first session the transcript itself names."""
        self.cwd: str | None = None
        """The first working directory it names."""
        self._items = transcript.items
        self.format = transcript.format or ""
        self._given = session
        self._current: Session | None = None
        self._known = self._said(Facts())
        """What was learnt before the session was known."""
        self._waiting: list[Message] = []
        self._derived: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[str, Message]]:
        """Yields (session id, message) in file order."""
        for item in self._items:
            self.tally.add(item)
            if isinstance(item, Message):
                self._waiting.append(item)
                if self._is_settled(item):
                    yield from self._release()
            elif isinstance(item, Facts):
                self._learn(item)
                if self._current is not None:  # what came before the session was named belongs to it as well
                    yield from self._release()
            elif isinstance(item, NewConversation):
                yield from self._release()
                self._current, self._known = None, self._said(Facts())
        yield from self._release()

    def _is_settled(self, message: Message) -> bool:
        """Whether the session is known by now, or can be derived."""
        known = self._current is not None or self._given is not None
        return known or _is_prompt(message) or len(self._waiting) >= _OPENING_WITHIN

    def _release(self) -> Iterator[tuple[str, Message]]:
        if not self._waiting:
            return
        current = self._current or self._begin(self._given or self._derive(), self._known)
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
            # A session that goes on where another ended is in the same place until it says otherwise.
            before = self._current
            moved = replace(said, cwd=said.cwd or before.cwd, branch=said.branch or before.branch)
            self._begin(session_id, replace(moved, model=moved.model or before.model))
        else:
            self._begin(self._current.id, said)

    def _said(self, facts: Facts) -> Session:
        """What a record says, as a session whose id is not settled yet."""
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

    def _derive(self) -> str:
        opening = next((message for message in self._waiting if _is_prompt(message)), self._waiting[0])
        derived = derived_session(self.format, opening)
        self._derived[derived] += 1
        nth = self._derived[derived]
        return derived if nth == 1 else f"{derived}~{nth}"


def _is_prompt(message: Message) -> bool:
    return message.role is Role.USER and message.is_counted and message.agent is None
