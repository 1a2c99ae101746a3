"""The token counts that rows and messages come with, where the counter is theirs; else they are counted anew."""

from __future__ import annotations

from collections.abc import Iterable

from omcli.memory.message import KeptMessage
from omcli.memory.observation import Observation
from omcli.memory.ports import TokenCounter


def row_tokens(row: Observation, counter: TokenCounter) -> int:
    """Tokens of a row's text."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def rows_tokens(rows: Iterable[Observation], counter: TokenCounter) -> int:
    """Tokens of the texts of rows."""
    return sum(row_tokens(row, counter) for row in rows)


def message_tokens(kept: KeptMessage, counter: TokenCounter) -> int:
    """Tokens of a message."""
    return kept.tokens if kept.counter == counter.name else counter.message(kept.message)
