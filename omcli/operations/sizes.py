"""Sizes in tokens: of text, of a transcript and of the store."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from omcli.base.record import record
from omcli.memory.message import Message, TokenCounter
from omcli.memory.ports import LaneError, LogQuery, Store

if TYPE_CHECKING:
    from omcli.memory.transcript import Item


@record
class StoreCounts:
    """The store in numbers; all token totals use the same counter, which is named."""

    sessions: int
    messages: int
    observations: int
    """Visible rows."""
    hidden: int
    """Superseded or dropped rows."""
    pending: int
    """Stored messages that no observation batch covers yet."""
    message_tokens: int
    observation_tokens: int
    counter: str
    blocks: int
    """Number of buffered batches."""
    ahead: int
    """Pending messages in buffered batches."""
    recounted: bool
    """True if everything was recounted because the stored counts are by another counter."""
    errors: tuple[LaneError, ...]


def status(store: Store, counter: TokenCounter) -> StoreCounts:
    """Return the sizes. If rows were counted by another counter, everything is recounted, so that units never mix."""
    stored = store.sessions.status()
    recounted = bool({*stored.message_tokens, *stored.observation_tokens} - {counter.name})
    if recounted:
        message_tokens, observation_tokens = _count_all(store, counter)
    else:
        message_tokens = stored.message_tokens.get(counter.name, 0)
        observation_tokens = stored.observation_tokens.get(counter.name, 0)
    return StoreCounts(
        sessions=stored.sessions,
        messages=stored.messages,
        observations=stored.observations,
        hidden=stored.hidden,
        pending=stored.pending,
        message_tokens=message_tokens,
        observation_tokens=observation_tokens,
        counter=counter.name,
        blocks=stored.blocks,
        ahead=stored.ahead,
        recounted=recounted,
        errors=stored.errors,
    )


def _count_all(store: Store, counter: TokenCounter) -> tuple[int, int]:
    messages = observations = 0
    for kept in store.messages.all():
        messages += counter.message(kept.message)
    for logged in store.rows.log(LogQuery()):
        observations += counter.text(logged.observation.text)
    return messages, observations


class CountUnit(StrEnum):
    """The unit to count: each counter adds an overhead for a message and for a conversation."""

    TEXT = "text"
    """Plain text."""
    TRANSCRIPT = "transcript"
    """Messages, and the counter's overhead for the conversation."""
    EVENT = "event"
    """Messages alone."""


@record
class TokenCount:
    """Tokens, and how they were counted."""

    tokens: int
    counter: str
    unit: CountUnit
    format: str | None = None
    messages: int | None = None
    """Messages counted; None for plain text."""


def count_text(text: str, counter: TokenCounter) -> TokenCount:
    """Tokens of a text."""
    return TokenCount(tokens=counter.text(text), counter=counter.name, unit=CountUnit.TEXT)


def count_items(
    items: Iterable[Item], counter: TokenCounter, *, format_name: str | None, unit: CountUnit
) -> TokenCount:
    """Return the tokens of a transcript's messages as they are, secrets included."""
    messages = [item for item in items if isinstance(item, Message)]
    tokens = (
        sum(counter.message(message) for message in messages)
        if unit is CountUnit.EVENT
        else counter.conversation(messages)
    )
    return TokenCount(tokens=tokens, counter=counter.name, unit=unit, format=format_name, messages=len(messages))
