"""A model and a token counter that are not there: one answers what was written down for it, one counts words."""

from __future__ import annotations

from collections.abc import Iterable

from omcli.base.errors import OmError, PromptTooLong
from omcli.llm.model import EndReason, Prompt, Reply
from omcli.memory.message import Message


class ScriptedModel:
    """A model that answers what was written down for it, one reply a call, and remembers what it was asked.

    A reply is a text, a `Reply`, or an error to raise; the last one is given again and again.
    """

    name = "scripted"
    model = "scripted-1"

    def __init__(self, *replies: str | Reply | OmError, takes_images: bool = False) -> None:
        self.takes_images = takes_images
        self.asked: list[Prompt] = []
        """The prompts it was given."""
        self._replies = replies

    def ask(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if not isinstance(reply, PromptTooLong):
            prompt.calls.take()
        if isinstance(reply, OmError):
            raise reply
        return reply if isinstance(reply, Reply) else Reply(text=reply, stop=EndReason.END, model=self.model)

    @property
    def last_seen(self) -> str:
        """What it was shown last, but for pictures."""
        return "".join(part for part in self.asked[-1].content if isinstance(part, str))


class WordCounter:
    """A token is what stands between spaces."""

    name = "words"
    free_share = 0.0

    def text(self, text: str) -> int:
        return len(text.split())

    def message(self, message: Message) -> int:
        return self.text(message.text)

    def conversation(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))

    def remembering(self) -> WordCounter:
        return self
