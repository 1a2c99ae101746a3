"""Counting tokens of a text, a transcript or single events."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from omcli.base.record import record
from omcli.memory.message import Message
from omcli.memory.ports import TokenCounter
from omcli.memory.transcript import Item


class Unit(StrEnum):
    """What is counted: each counter adds something for a message and for a conversation."""

    TEXT = "text"
    """Characters as they are."""
    TRANSCRIPT = "transcript"
    """Messages, and what the counter adds for the conversation."""
    EVENT = "event"
    """Messages alone."""


@record
class TokenCount:
    """Tokens, and how they were counted."""

    tokens: int
    counter: str
    unit: Unit
    format: str | None = None
    messages: int | None = None
    """Messages that were counted, where it was not plain text."""


def count_text(text: str, counter: TokenCounter) -> TokenCount:
    """Tokens of a text."""
    return TokenCount(tokens=counter.text(text), counter=counter.name, unit=Unit.TEXT)


def count_items(items: Iterable[Item], counter: TokenCounter, *, format_name: str | None, unit: Unit) -> TokenCount:
    """Tokens of a transcript's messages as they stand there, secrets and all."""
    messages = [item for item in items if isinstance(item, Message)]
    tokens = (
        sum(counter.message(message) for message in messages) if unit is Unit.EVENT else counter.conversation(messages)
    )
    return TokenCount(tokens=tokens, counter=counter.name, unit=unit, format=format_name, messages=len(messages))
