"""Token counters, and the token counts that rows and messages are stored with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Observation


class TokenCounter(Protocol):
    """A way to count tokens, by name. Two counters' numbers are never added."""

    @property
    def name(self) -> str:
        """What stored counts are labelled with."""

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def message(self, message: Message) -> int:
        """Tokens of one message, with the overhead the counter adds per message and image."""

    def conversation(self, messages: Iterable[Message]) -> int:
        """Tokens of a transcript, with the overhead the counter adds once."""

    def remembering(self) -> TokenCounter:
        """A counter that counts the same, made for texts that share lines: it may remember those."""


def row_tokens(row: Observation, counter: TokenCounter) -> int:
    """Tokens of a row's text."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def rows_tokens(rows: Iterable[Observation], counter: TokenCounter) -> int:
    """Tokens of the texts of rows."""
    return sum(row_tokens(row, counter) for row in rows)


def message_tokens(kept: KeptMessage, counter: TokenCounter) -> int:
    """Tokens of a message."""
    return kept.tokens if kept.counter == counter.name else counter.message(kept.message)
