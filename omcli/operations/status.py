"""The store in numbers."""

from __future__ import annotations

from omcli.base.record import record
from omcli.memory.message import Message
from omcli.memory.ports import LaneError, Store, TokenCounter


@record
class Status:
    """The store in numbers; all token totals are by the one counter that is named."""

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
    """Pending blocks."""
    ahead: int
    """Of the pending messages, those that were observed ahead."""
    recounted: bool
    """Whether stored counts were by another counter, and everything was counted anew."""
    errors: tuple[LaneError, ...]


def status(store: Store, counter: TokenCounter) -> Status:
    """The numbers. Where rows were counted by another counter everything is counted again: units never mix."""
    stored = store.status()
    recounted = bool({*stored.message_tokens, *stored.observation_tokens} - {counter.name})
    if recounted:
        message_tokens, observation_tokens = _recount(store, counter)
    else:
        message_tokens = stored.message_tokens.get(counter.name, 0)
        observation_tokens = stored.observation_tokens.get(counter.name, 0)
    return Status(
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


def _recount(store: Store, counter: TokenCounter) -> tuple[int, int]:
    messages = observations = 0
    for stored in store.stored_texts():
        if isinstance(stored, Message):
            messages += counter.message(stored)
        else:
            observations += counter.text(stored.text)
    return messages, observations
