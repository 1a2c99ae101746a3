"""What was observed ahead, as rows: which blocks are written down, and what of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from omcli.base.record import replace
from omcli.memory.batch import Batch
from omcli.memory.buffer import BufferedBatch, activated
from omcli.memory.observation import Draft, Observation
from omcli.memory.tokens import message_tokens
from omcli.operations.deps import Workshop
from omcli.operations.observe.rows import rows_of, without_forgotten
from omcli.pack.budget import UNLIMITED


class Waits(NamedTuple):
    """How much of a session waits to be observed."""

    messages: int
    tokens: int
    """By the workshop's counter, whatever they were counted with."""
    fresh: int
    """Of those, what was not offered to an observer yet."""
    blocks: int
    """How many blocks of the session are pending."""


def waiting(session_id: str, workshop: Workshop, *, ahead: bool = False) -> Waits:
    """What no observation covers; `ahead`: and no pending block has."""
    counter, pending = workshop.counter, workshop.store.batches.pending(session_id, ahead=ahead)
    if set(pending.tokens) <= {counter.name}:
        tokens, fresh = sum(pending.tokens.values()), sum(pending.fresh_tokens.values())
    else:
        tokens = fresh = 0
        for batch in _batches(session_id, workshop, ahead=ahead):
            tokens += sum(message_tokens(kept, counter) for kept in batch.messages)
            fresh += sum(message_tokens(kept, counter) for kept in batch.messages if kept.seq > batch.deferred_through)
    return Waits(messages=pending.messages, tokens=tokens, fresh=fresh, blocks=pending.blocks)


def _batches(session_id: str, workshop: Workshop, *, ahead: bool) -> Iterator[Batch]:
    """What no observation covers: what follows the cursor, and of what came back behind it the first."""
    store = workshop.store
    batch = store.batches.unobserved(session_id, max_tokens=UNLIMITED, ahead=ahead)
    if batch is None:
        return
    yield batch
    last = store.messages.newest(session_id, 1)
    if batch.is_late and (follows := store.batches.unobserved_up_to(session_id, last[0].seq)) and not follows.is_late:
        yield follows


def due_blocks(session_id: str, workshop: Workshop, *, floor: int | None) -> tuple[BufferedBatch, ...]:
    """The pending blocks of a session that are to be written down, oldest first; all of them without a floor."""
    blocks = workshop.store.batches.buffered(session_id)
    if floor is None or not blocks:
        return blocks
    sizes = [sum(message_tokens(kept, workshop.counter) for kept in block.batch.messages) for block in blocks]
    return blocks[: activated(sizes, waiting=waiting(session_id, workshop).tokens, floor=floor)]


def rows_of_block(
    block: BufferedBatch, *, project: str | None, workshop: Workshop
) -> tuple[tuple[Draft, ...], tuple[Observation, ...]]:
    """What a block comes to now, as drafts and as rows.

    A row is left out of whose messages one was forgotten while it waited, and, where the cursor has come into the
    block, one whose messages it has all passed: what covers them has told it.
    """
    cited = {seq for draft in block.observed.drafts for seq in draft.sources}
    keys = {kept.seq: kept.key for kept in workshop.store.messages.by_seq(cited)}
    drafts: list[Draft] = []
    ids: list[str] = []
    for draft, row_id in zip(block.observed.drafts, block.ids, strict=True):
        sources = tuple(seq for seq in draft.sources if seq in keys)
        is_told = block.begins < block.batch.after and max(draft.sources) <= block.batch.after
        is_forgotten = any(seq > block.batch.after and seq not in keys for seq in draft.sources)
        if sources and not is_told and not is_forgotten:
            drafts.append(replace(draft, sources=sources))
            ids.append(row_id)
    return tuple(drafts), rows_of(block.batch, drafts, project=project, workshop=workshop, ids=ids, keys=keys)


def with_pending_rows(batch: Batch, workshop: Workshop) -> Batch:
    """A batch behind pending blocks, with their rows among those that stand: as if they were written down."""
    blocks = workshop.store.batches.buffered(batch.session)
    tombstones = workshop.store.tombstones
    made = [without_forgotten(*rows_of_block(block, project=None, workshop=workshop), tombstones) for block in blocks]
    replaced = {row for drafts, _ in made for draft in drafts for row in draft.replaces}
    standing = (*batch.context_rows, *(row for _, rows in made for row in rows))
    return replace(batch, context_rows=tuple(row for row in standing if row.id not in replaced))
