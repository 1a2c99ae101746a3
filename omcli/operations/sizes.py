"""Sizes in tokens: of text, of a transcript, and of the store."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from omcli.base.record import record
from omcli.memory.message import Message, TokenCounter
from omcli.memory.observation import LogQuery
from omcli.memory.ports import LaneError, Store

if TYPE_CHECKING:
    from omcli.memory.transcript import Item


@record
class StoreCounts:
    """The store in numbers. All token totals use the counter that `counter` names."""

    sessions: int
    messages: int
    observations: int
    """Number of visible rows."""
    hidden: int
    """Number of superseded or dropped rows."""
    pending: int
    """Number of counted messages that no batch covers yet."""
    message_tokens: int
    observation_tokens: int
    counter: str
    blocks: int
    """Number of buffered batches."""
    ahead: int
    """Number of counted messages in buffered batches."""
    recounted: bool
    """True if some tokens were counted again because another counter had counted them."""
    errors: tuple[LaneError, ...]


def status(store: Store, counter: TokenCounter) -> StoreCounts:
    """Return the store's counts. Messages and rows whose tokens are stored by another counter are counted again, so
    that units never mix.
    """
    stored = store.sessions.status()
    message_tokens = stored.message_tokens.get(counter.name, 0)
    observation_tokens = stored.observation_tokens.get(counter.name, 0)
    if stored.message_tokens.keys() - {counter.name}:
        others = store.messages.all(other_counter=counter.name)
        message_tokens += sum(counter.message(kept.message) for kept in others)
    if stored.observation_tokens.keys() - {counter.name}:
        rows = store.rows.log(LogQuery(other_counter=counter.name, bare=True))
        observation_tokens += sum(counter.text(logged.observation.text) for logged in rows)
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
        recounted=bool({*stored.message_tokens, *stored.observation_tokens} - {counter.name}),
        errors=stored.errors,
    )


class CountUnit(StrEnum):
    """Unit to count. A counter may add an overhead for each message and each conversation."""

    TEXT = "text"
    TRANSCRIPT = "transcript"
    """Messages, plus the counter's overhead for a conversation."""
    EVENT = "event"
    """Only messages."""


@record
class TokenCount:
    tokens: int
    counter: str
    unit: CountUnit
    format: str | None = None
    messages: int | None = None
    """None for plain text."""


def count_text(text: str, counter: TokenCounter) -> TokenCount:
    return TokenCount(tokens=counter.text(text), counter=counter.name, unit=CountUnit.TEXT)


def count_items(
    items: Iterable[Item], counter: TokenCounter, *, format_name: str | None, unit: CountUnit
) -> TokenCount:
    """Return the tokens of a transcript's messages as they are, including secrets. The overhead of a conversation is
    included unless `unit` is EVENT.
    """
    messages = [item for item in items if isinstance(item, Message)]
    tokens = (
        sum(counter.message(message) for message in messages)
        if unit is CountUnit.EVENT
        else counter.conversation(messages)
    )
    return TokenCount(tokens=tokens, counter=counter.name, unit=unit, format=format_name, messages=len(messages))
