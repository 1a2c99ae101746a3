"""Reading a transcript: assigning each message to a session, and counting messages and skipped records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from typing import Self

from omcli.base.record import field, fields_of, mutable_record, record, replace
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.ports import Store
from omcli.memory.session import Session
from omcli.memory.transcript import (
    Abandoned,
    Checkpoint,
    Facts,
    Handover,
    Identities,
    IngestedPart,
    Item,
    NewConversation,
    Notes,
    Skip,
    Transcript,
    derived_session,
)
from omcli.text.clean import printed_name

_OPENING_WITHIN = 20
"""Maximum number of messages to search for the first prompt and its answer if a transcript names no session."""


# ---- counts


@record
class MessageCounts:
    """Number of messages in one transcript, by kind."""

    human_messages: int = 0
    assistant_messages: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    errors: int = 0
    """Failed tool results."""
    compactions: int = 0
    asides: int = 0
    """Messages that are kept but not counted, such as remarks, slash commands and interruptions."""

    @property
    def messages(self) -> int:
        """Prompts (including pieces of daily notes), answers, tool calls and results together."""
        return self.human_messages + self.assistant_messages + self.tool_calls + self.tool_results


@mutable_record
class TranscriptCounts:
    """Running counts for the main thread and the side chains."""

    main: Counter[str] = field(default_factory=Counter)
    side: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of skipped records by reason. Some reasons include a type, as in `unknown-type:foo`."""
    faults: Counter[str] = field(default_factory=Counter)
    """Number of skipped records that may have been messages, by reason."""
    unread: int = 0
    """Number of skipped records that plainly are messages of a user or an agent."""
    conversations: int = 1
    images: int = 0

    @classmethod
    def resume(cls, notes: Notes) -> Self:
        """Return counts that continue from earlier `notes()`."""
        counters: dict[str, Counter[str]] = {
            name: Counter(notes[name]) for name in ("main", "side", "skipped", "faults")
        }
        unread = notes.get("unread", 0)  # bookmarks of earlier versions lack it
        return cls(**counters, unread=unread, conversations=notes["conversations"], images=notes["images"])

    def notes(self) -> Notes:
        """Return the counts as JSON, for `resume`."""
        return fields_of(self)

    def add(self, item: Item) -> None:
        if isinstance(item, Message):
            thread = self.main if item.agent is None else self.side
            thread[_kind(item)] += 1
            if item.failed and item.role is Role.RESULT:
                thread["errors"] += 1
            self.images += len(item.images)
        elif isinstance(item, Skip):
            reason = f"{item.reason}:{item.detail}" if item.detail else str(item.reason)
            self.skipped[reason] += 1
            self.unread += item.is_message
            if item.reason.is_fault:
                self.faults[reason] += 1
        elif isinstance(item, NewConversation):
            self.conversations += 1

    @property
    def is_side_only(self) -> bool:
        """True if the main thread has no messages, as in a subagent's transcript."""
        return not any(self.main.values())

    @property
    def counts(self) -> MessageCounts:
        """Counts of the main thread, or of the side chains if there is no main thread."""
        return _counts(self.side if self.is_side_only else self.main)

    @property
    def main_counts(self) -> MessageCounts:
        return _counts(self.main)

    @property
    def side_counts(self) -> MessageCounts:
        return _counts(self.side)

    @property
    def found_nothing(self) -> bool:
        """True if no message was found, and records were skipped, all of them as faulty."""
        return bool(self.faults) and self.faults == self.skipped and not self.main and not self.side


_COUNTED_AS = {
    Role.USER: "human_messages",
    Role.ASSISTANT: "assistant_messages",
    Role.CALL: "tool_calls",
    Role.RESULT: "tool_results",
}


def _kind(message: Message) -> str:
    if message.is_counted:
        return _COUNTED_AS[message.role]
    return "compactions" if message.kind is MessageKind.COMPACTION else "asides"


_COUNTED = tuple(fields_of(MessageCounts()))


def _counts(seen: Counter[str]) -> MessageCounts:
    return MessageCounts(**{name: seen[name] for name in _COUNTED})


# ---- sessions


class TranscriptSessions:
    """One reading of a transcript: its messages, each with the id of its session.

    The session is the given one, otherwise the one named in the transcript, otherwise one derived from the first
    prompt. If several stored sessions were derived from the same prompt, the first one that begins with the same
    messages, up to the answer, is used.
    """

    def __init__(
        self,
        transcript: Transcript,
        *,
        open_store: Callable[[], Store],
        session: str | None = None,
        is_joined: bool = False,
    ) -> None:
        """`session` is the given session. The store is opened only when it is needed. If `is_joined`, a session that
        continues another session of the transcript counts as that other session.
        """
        self.tally = TranscriptCounts()
        self.sessions: dict[str, Session] = {}
        self.named: str | None = None
        """First session named in the transcript itself."""
        self.cwd: str | None = None
        """First working directory named in the transcript."""
        self.abandoned: frozenset[str] = frozenset()
        """Ids of messages on abandoned branches, as far as this reading shows."""
        self.handover: Handover | None = None
        """The host's request, if this transcript is one."""
        self.memory: tuple[str, ...] = ()
        """Earlier memory that the transcript begins with, as far as this reading shows."""
        self._items = transcript.items
        self.format = transcript.format or ""
        self.earlier = transcript.earlier
        """The part that is not read again. It is counted too, because counts describe the whole transcript."""
        self._copies = transcript.copies
        self._open_store = open_store
        self._given = session
        self._is_joined = is_joined
        self._continued: dict[str, str] = {}
        """By session: the earlier session that it continues and counts as."""
        self._current: Session | None = None
        self._known = self._said(Facts())
        """Facts found before the session was known."""
        self._waiting: list[Message] = []
        self.openings: dict[str, int] = {}
        """Number of opening messages of each derived session that this reading has not written to yet."""
        self._taken: Counter[str] = Counter()
        """Number of this transcript's sessions derived from each prompt."""
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
        return {"format": self.format, "tally": self.tally.notes(), "named": self.named, "cwd": self.cwd}

    def carried(self) -> Notes:
        """Return the state from which a later reading can continue. It is valid only if every message read so far has a
        session.
        """
        return {
            "sessions": {session_id: fields_of(session) for session_id, session in self.sessions.items()},
            "current": self._current and self._current.id,
            "known": fields_of(self._known),
            "taken": self._taken,
        }

    def __iter__(self) -> Iterator[tuple[str, Message] | Checkpoint]:
        """Yield (session id, message) in file order, and checkpoints before which every message has been yielded."""
        for item in chain(self._items, (None,)):
            if item is not None:
                self.tally.add(item)
            if isinstance(item, Message):
                self._waiting.append(item)
            elif isinstance(item, Facts):
                self._learn(item)
            elif isinstance(item, Abandoned):
                self.abandoned |= item.ids
            elif isinstance(item, Handover):
                self.handover = item
            if self._waiting and self._is_settled(item):
                current = self._current or self._begin(
                    self._given or self._derived_id(self._waiting, self._open_store()), self._known
                )
                waiting, self._waiting = self._waiting, []
                for message in waiting:
                    yield current.id, message
            if isinstance(item, NewConversation):
                self._current, self._known = None, self._said(Facts())
            elif isinstance(item, Checkpoint) and not self._waiting:
                yield item

    def identities(self, session_id: str, before: Counter[int] | None = None) -> Identities:
        """Return a new source of identities for a session's messages, starting with the first message of this reading
        or, with `before`, after the occurrences counted there.
        """
        return Identities(session_id, format_name=self.format, copies=self._copies, before=before)

    def _is_settled(self, item: Item | None) -> bool:
        """Return True if the session of the messages in `_waiting` is known or can be derived. `item` is None at the
        end.
        """
        if isinstance(item, Message):
            known = self._current is not None or self._given is not None
            is_answer = item.role is Role.ASSISTANT and item.agent is None
            answered = is_answer and any(map(_is_prompt, self._waiting))
            return known or answered or len(self._waiting) >= _OPENING_WITHIN
        if isinstance(item, Facts):  # messages before the first session name belong to that session too
            return self._current is not None
        if isinstance(item, Checkpoint):
            return item.reader_state is None  # nothing follows
        return item is None or isinstance(item, NewConversation)

    def _learn(self, facts: Facts) -> None:
        if facts.session and facts.session != (name := printed_name(facts.session)):
            facts = replace(facts, session=name)
        self.named = self.named or facts.session
        self.cwd = self.cwd or facts.cwd
        self.memory += (facts.memory,) if facts.memory else ()
        session_id = self._given or self._joined(facts)
        said = self._said(facts)
        if self._current is None:
            self._known = self._known.merged(said)
            if session_id:
                self._begin(session_id, self._known)
        elif session_id and session_id != self._current.id:
            # A session that continues another one keeps its directory until the transcript names a different one.
            before = self._current
            moved = replace(said, cwd=said.cwd or before.cwd, branch=said.branch or before.branch)
            self._begin(session_id, replace(moved, model=moved.model or before.model))
        else:
            self._begin(self._current.id, said)

    def _joined(self, facts: Facts) -> str | None:
        """Return the session that these facts name, or the earlier one that it continues and counts as (see
        `_continued`).
        """
        if self._is_joined and facts.session and facts.parent:
            parent = self._continued.get(facts.parent, facts.parent)
            if parent in self.sessions and facts.session not in self.sessions:
                self._continued[facts.session] = parent
        return self._continued.get(facts.session, facts.session) if facts.session else None

    def _said(self, facts: Facts) -> Session:
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
        """Give a session a new id and return it, because another process has just begun a different session with the
        old id.
        """
        learnt = self.sessions.pop(session_id)
        self._taken.clear()
        moved = self._derived_id(opening, self._open_store())
        self.sessions[moved] = replace(learnt, id=moved)
        if self._current is learnt:
            self._current = self.sessions[moved]
        return moved

    def _derived_id(self, opening: Sequence[Message], store: Store) -> str:
        """Return an unused id, or the id of a stored session that begins with `opening`. Keep the length of `opening`
        in `openings`, by this id.
        """
        prompt = next(filter(_is_prompt, opening), opening[0])
        derived = derived_session(self.format, prompt)
        for nth in count(self._taken[derived] + 1):
            session_id = derived if nth == 1 else f"{derived}~{nth}"
            if session_id in self.sessions:
                continue
            known = list(map(self.identities(session_id).with_earlier, opening))
            identities = [identity for identity, _ in known]
            formerly = [former or identity for identity, former in known]
            messages = store.messages
            if messages.begins_with(session_id, identities) or messages.begins_with(session_id, formerly):
                break
        if nth == self._taken[derived] + 1:
            self._taken[derived] = nth
        self.openings[session_id] = len(opening)
        return session_id


def _is_prompt(message: Message) -> bool:
    return message.role is Role.USER and message.is_counted and message.agent is None
