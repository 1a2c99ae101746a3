"""A token counter: a function of text, and the overhead of messages, conversations and images."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omcli.base.record import record, replace
from omcli.memory.message import Message, Role

# Text to tokens: 0 for the empty text, never negative.
CountText = Callable[[str], int]


@record
class Counter:
    """A `memory.tokens.TokenCounter` built from its parts."""

    name: str
    count: CountText
    count_tool: CountText | None = None
    """For arguments and results of tools, if counted differently."""
    count_by_line: Callable[[], CountText] | None = None
    """Returns a faster `count` for texts that share lines."""
    per_message: int = 0
    """Tokens added to every prompt and answer; calls and results are part of them."""
    per_conversation: int = 0
    per_image: int = 1600
    """Fixed, since an image has no text to count."""

    def text(self, text: str) -> int:
        """Return tokens of a text."""
        return self.count(text)

    def message(self, message: Message) -> int:
        """Return tokens of one message. The parts of a call (id, name, arguments) are counted separately."""
        images = self.per_image * len(message.images)
        count_tool = self.count_tool or self.count
        if message.role is Role.CALL:
            return sum(map(count_tool, (message.call_id or "", message.tool or "", message.text))) + images
        if message.role is Role.RESULT:
            return count_tool(message.text) + images
        overhead = self.per_message if message.role in (Role.USER, Role.ASSISTANT) else 0
        return overhead + self.count(message.text) + images

    def remembering(self) -> Counter:
        """Return the same counter, optimised for texts that share lines."""
        return replace(self, count=self.count_by_line()) if self.count_by_line else self

    def conversation(self, messages: Iterable[Message]) -> int:
        """Return tokens of a transcript, including the overhead of a conversation."""
        return self.per_conversation + sum(map(self.message, messages))
