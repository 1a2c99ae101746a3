"""Token counters, and token counts of rows and messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from omcli.memory.message import KeptMessage, Message
from omcli.memory.observation import Observation

UNLIMITED = 1_000_000_000
"""No limit: more tokens than any tier, session or batch ever has."""


class TokenCounter(Protocol):
    """A way to count tokens, identified by name. Numbers of two counters are never added."""

    @property
    def name(self) -> str:
        """Label of stored counts."""

    def text(self, text: str) -> int:
        """Return the tokens of a text."""

    def message(self, message: Message) -> int:
        """Return the tokens of a message, with the counter's overhead per message and image."""

    def conversation(self, messages: Iterable[Message]) -> int:
        """Return the tokens of a transcript, with the counter's fixed overhead."""

    def remembering(self) -> TokenCounter:
        """Return a counter with equal results that may cache lines, for texts that share them."""


def row_tokens(row: Observation, counter: TokenCounter) -> int:
    """Return the tokens of a row's text, counted again if they are stored for another counter."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def rows_tokens(rows: Iterable[Observation], counter: TokenCounter) -> int:
    """Return the tokens of the texts of rows."""
    return sum(row_tokens(row, counter) for row in rows)


def message_tokens(kept: KeptMessage, counter: TokenCounter) -> int:
    """Return the tokens of a message, counted again if they are stored for another counter."""
    return kept.tokens if kept.counter == counter.name else counter.message(kept.message)


def reaches(tokens: int, threshold: int, *, inclusive: bool) -> bool:
    """Return True if this many tokens exceed a threshold, or equal an inclusive one."""
    return tokens > threshold or (inclusive and tokens == threshold)
