"""Counts of one transcript: its messages, and its skipped records by reason."""

from __future__ import annotations

from collections import Counter
from typing import Self

from omcli.base.record import field, fields_of, mutable_record, record
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Item, NewConversation, Notes, Skip


@record
class MessageCounts:
    """Messages of one transcript, by kind."""

    human_messages: int = 0
    assistant_messages: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    errors: int = 0
    """Results that failed."""
    compactions: int = 0
    asides: int = 0
    """Messages that are kept but not counted: remarks, slash commands, interruptions."""

    @property
    def messages(self) -> int:
        """Prompts, answers, calls and results together."""
        return self.human_messages + self.assistant_messages + self.tool_calls + self.tool_results


@mutable_record
class TranscriptCounts:
    """A running count, of the main thread and of side chains."""

    main: Counter[str] = field(default_factory=Counter)
    side: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    """Skipped records by reason; unknown types with their names (`unknown-type:foo`)."""
    faults: Counter[str] = field(default_factory=Counter)
    """Skipped records that may have been messages."""
    conversations: int = 1
    images: int = 0

    @classmethod
    def resume(cls, notes: Notes) -> Self:
        """A count that continues from an earlier `notes()`."""
        counters: dict[str, Counter[str]] = {
            name: Counter(notes[name]) for name in ("main", "side", "skipped", "faults")
        }
        return cls(**counters, conversations=notes["conversations"], images=notes["images"])

    def notes(self) -> Notes:
        """The counts as JSON, for `resumed`."""
        return fields_of(self)

    def add(self, item: Item) -> None:
        """Count one item."""
        if isinstance(item, Message):
            thread = self.main if item.agent is None else self.side
            thread[_kind(item)] += 1
            if item.failed and item.role is Role.RESULT:
                thread["errors"] += 1
            self.images += len(item.images)
        elif isinstance(item, Skip):
            reason = f"{item.reason}:{item.detail}" if item.detail else str(item.reason)
            self.skipped[reason] += 1
            if item.reason.is_fault:
                self.faults[reason] += 1
        elif isinstance(item, NewConversation):
            self.conversations += 1

    @property
    def is_side_only(self) -> bool:
        """True for a subagent's transcript: it has only side chains."""
        return not any(self.main.values())

    @property
    def counts(self) -> MessageCounts:
        """The counts so far: of the main thread, or of the side chains if there is no main thread."""
        return self.side_counts if self.is_side_only else self.main_counts

    @property
    def main_counts(self) -> MessageCounts:
        """The numbers of the main thread."""
        return _counts(self.main)

    @property
    def side_counts(self) -> MessageCounts:
        """The numbers of all side chains together."""
        return _counts(self.side)

    @property
    def found_nothing(self) -> bool:
        """True if there were records and all of them were faulty."""
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


def _counts(seen: Counter[str]) -> MessageCounts:
    return MessageCounts(**{name: seen[name] for name in fields_of(MessageCounts())})
