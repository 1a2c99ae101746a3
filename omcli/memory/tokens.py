"""Token counters, and token counts of rows and messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Observation

UNLIMITED = 1_000_000_000
"""Used as no limit: more tokens than any tier, session or batch has."""


class TokenCounter(Protocol):
    """A way to count tokens. Numbers of different counters are never added."""

    @property
    def name(self) -> str:
        """Name stored with every count."""

    def text(self, text: str) -> int:
        """Return the number of tokens in text."""

    def message(self, message: Message) -> int:
        """Return the tokens of a message, with the counter's overhead per message and image."""

    def conversation(self, messages: Iterable[Message]) -> int:
        """Return the tokens of a transcript, with the counter's fixed overhead."""

    def remembering(self) -> TokenCounter:
        """Return a counter with equal results that may cache lines, for counting similar texts."""


def row_tokens(row: Observation, counter: TokenCounter) -> int:
    """Return the tokens of a row's text. Count again if the stored number is of another counter."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def rows_tokens(rows: Iterable[Observation], counter: TokenCounter) -> int:
    """Return the tokens of all rows' text."""
    return sum(row_tokens(row, counter) for row in rows)


def message_tokens(kept: KeptMessage, counter: TokenCounter) -> int:
    """Return the tokens of a message. Count again if the stored number is of another counter."""
    return kept.tokens if kept.counter == counter.name else counter.message(kept.message)


def reaches(tokens: int, threshold: int, *, inclusive: bool) -> bool:
    """Return True if `tokens` exceed the threshold or, if it is inclusive, equal it."""
    return tokens > threshold or (inclusive and tokens == threshold)
