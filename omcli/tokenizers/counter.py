"""A token counter: a way to count text, and what messages, conversations and images cost beyond their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omcli.base.record import record, replace
from omcli.memory.message import Message, Role

# Text to tokens: 0 for the empty text, never negative.
CountText = Callable[[str], int]


@record
class Counter:
    """A `memory.ports.TokenCounter` made of its parts."""

    name: str
    count: CountText
    count_tool: CountText | None = None
    """For what tools are given and answer, where that is counted another way."""
    count_by_line: Callable[[], CountText] | None = None
    """Makes a `count` for texts that share lines, where there is a quicker way to count those."""
    per_message: int = 0
    """Tokens added to every prompt and answer; calls and results travel inside them."""
    per_conversation: int = 0
    per_image: int = 1600
    """An image's bytes are not kept, so it has no text to count."""

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self.count(text)

    def message(self, message: Message) -> int:
        """Tokens of one message. The parts of a call (id, name, arguments) are counted, and rounded, one by one."""
        images = self.per_image * len(message.images)
        count_tool = self.count_tool or self.count
        if message.role is Role.CALL:
            return sum(map(count_tool, (message.call_id or "", message.tool or "", message.text))) + images
        if message.role is Role.RESULT:
            return count_tool(message.text) + images
        overhead = self.per_message if message.role in (Role.USER, Role.ASSISTANT) else 0
        return overhead + self.count(message.text) + images

    def remembering(self) -> Counter:
        """The same counter for texts that share lines."""
        return replace(self, count=self.count_by_line()) if self.count_by_line else self

    def conversation(self, messages: Iterable[Message]) -> int:
        """Tokens of a transcript; an empty one costs what a conversation does."""
        return self.per_conversation + sum(map(self.message, messages))
