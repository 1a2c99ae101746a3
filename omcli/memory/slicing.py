"""Parts of a batch, each a batch of its own: what a model is shown at once, what is written where it got no further."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.record import replace
from omcli.memory.batching import Waiting, batch_length
from omcli.memory.message import KeptMessage, Role
from omcli.memory.ports import Batch


def next_slice(batch: Batch, *, after: int, max_tokens: int, max_messages: int | None = None) -> Batch:
    """What follows a message of a batch, as much as `batch_length` allows; at least one message has to follow it."""
    left = [kept for kept in batch.messages if kept.seq > after]
    waiting = (Waiting(kept.tokens, kept.message.role, kept.message.call_id) for kept in left)
    length = batch_length(waiting, max_tokens=max_tokens, max_messages=max_messages)
    return between(batch, after, left[length - 1].seq)


def between(batch: Batch, after: int, through: int) -> Batch:
    """The messages of a batch behind one `seq` up to another, as a batch: what goes before is there to read along."""
    before = [kept for kept in batch.messages if kept.seq <= after]
    messages = tuple(kept for kept in batch.messages if after < kept.seq <= through)
    said = (kept for kept in reversed(before) if kept.message.agent is None and kept.message.role is Role.ASSISTANT)
    return replace(
        batch,
        after=after,
        through=through,
        messages=messages,
        earlier_calls=_answered((*batch.earlier_calls, *before), messages),
        last_said=next(said, batch.last_said),
    )


def _answered(before: Sequence[KeptMessage], messages: Sequence[KeptMessage]) -> tuple[KeptMessage, ...]:
    """The calls of before whose results are among the messages: of several with one call id, the latest."""
    called: set[str] = set()
    missing: set[str] = set()
    for kept in messages:
        call_id = kept.message.call_id
        if call_id is None:
            continue
        if kept.message.role is Role.RESULT and call_id not in called:
            missing.add(call_id)
        called.add(call_id)
    calls = {kept.message.call_id: kept for kept in before if kept.message.role is Role.CALL}
    return tuple(sorted((calls[call_id] for call_id in missing & calls.keys()), key=lambda kept: kept.seq))
