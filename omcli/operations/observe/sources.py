"""Sources of batches: the pending messages of a session, and those after its buffered batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from omcli.base.record import replace
from omcli.memory.batch import Batch
from omcli.memory.buffer import BufferedBatch, count_due
from omcli.memory.message import UNLIMITED, message_tokens
from omcli.memory.observation import Observation, Replacement
from omcli.operations.deps import Deps
from omcli.operations.observe.rows import to_rows

CONTEXT_ROWS = 150
"""Rows shown along with a batch: the newest, and the newest mutable ones."""


class SessionBatches:
    """The pending messages of a session, batch by batch, oldest first.

    Messages that were offered without a result are offered again only together with later ones.
    """

    def __init__(self, session_id: str, deps: Deps, extend: Callable[[], None], *, most: int | None = None) -> None:
        """`extend` extends the lease before each batch; `most` limits the number of batches."""
        self._session_id = session_id
        self._deps = deps
        self._extend = extend
        self._most = most

    def __iter__(self) -> Iterator[Batch]:
        limits, done = self._deps.observer, 0
        while self._most is None or done < self._most:
            batch = self._deps.store.batches.unobserved(
                self._session_id,
                max_tokens=limits.batch_tokens,
                max_messages=limits.batch_messages,
                context_rows=CONTEXT_ROWS,
            )
            if batch is None or (batch.deferred_through >= batch.through and self.is_last(batch)):
                return
            self._extend()
            yield batch
            done += 1

    def is_last(self, batch: Batch) -> bool:
        """True if no message waits after a batch. The messages after a late batch are covered already."""
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session).messages <= len(batch.messages)


class BatchesToBuffer:
    """The messages after the last buffered batch of a session, batch by batch, while some are due."""

    def __init__(
        self, session_id: str, deps: Deps, extend: Callable[[], None], *, step: Callable[[], int | None]
    ) -> None:
        """`step` returns the tokens of the next batch, at most; None if none is due."""
        self._session_id = session_id
        self._deps = deps
        self._extend = extend
        self._step = step

    def __iter__(self) -> Iterator[Batch]:
        limits = self._deps.observer
        while tokens := self._step():
            batch = self._deps.store.batches.unobserved(
                self._session_id,
                max_tokens=min(tokens, limits.batch_tokens),
                max_messages=limits.batch_messages,
                context_rows=CONTEXT_ROWS,
                ahead=True,
            )
            if batch is None or (batch.deferred_through >= batch.through and self.is_last(batch)):
                return
            self._extend()
            yield with_buffered_rows(batch, self._deps)

    def is_last(self, batch: Batch) -> bool:
        """True if no message waits after a batch."""
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session, ahead=True).messages <= len(batch.messages)


class WaitingMessages(NamedTuple):
    """The pending messages of a session."""

    messages: int
    tokens: int
    """Their tokens, by the operation's counter, whichever counter they were stored with."""
    fresh: int
    """Tokens of the messages that have not been offered to an observer yet."""
    blocks: int
    """Buffered batches of the session."""


def waiting_messages(session_id: str, deps: Deps, *, ahead: bool = False) -> WaitingMessages:
    """Return the messages that no observation covers; with `ahead`, only those not in a buffered batch either."""
    counter, pending = deps.counter, deps.store.batches.pending(session_id, ahead=ahead)
    if set(pending.tokens) <= {counter.name}:
        tokens, fresh = sum(pending.tokens.values()), sum(pending.fresh_tokens.values())
    else:
        tokens = fresh = 0
        for batch in _waiting(session_id, deps, ahead=ahead):
            tokens += sum(message_tokens(kept, counter) for kept in batch.messages)
            fresh += sum(message_tokens(kept, counter) for kept in batch.messages if kept.seq > batch.deferred_through)
    return WaitingMessages(messages=pending.messages, tokens=tokens, fresh=fresh, blocks=pending.blocks)


def _waiting(session_id: str, deps: Deps, *, ahead: bool) -> Iterator[Batch]:
    """Yield the messages after the cursor as one batch, after the first restored ones before it."""
    store = deps.store
    batch = store.batches.unobserved(session_id, max_tokens=UNLIMITED, ahead=ahead)
    if batch is None:
        return
    yield batch
    last = store.messages.newest(session_id, 1)
    if batch.is_late and (rest := store.batches.unobserved_up_to(session_id, last[0].seq)) and not rest.is_late:
        yield rest


def due_buffered(session_id: str, deps: Deps, *, floor: int | None) -> tuple[BufferedBatch, ...]:
    """Return the buffered batches to write, oldest first, so that `floor` tokens stay unobserved; None: all."""
    buffered = deps.store.batches.buffered(session_id)
    if floor is None or not buffered:
        return buffered
    sizes = [sum(message_tokens(kept, deps.counter) for kept in each.batch.messages) for each in buffered]
    return buffered[: count_due(sizes, waiting=waiting_messages(session_id, deps).tokens, floor=floor)]


def buffered_rows(
    buffered: BufferedBatch, *, project: str | None, deps: Deps
) -> tuple[tuple[Observation, ...], tuple[Replacement, ...]]:
    """Return the rows of a buffered batch as they would be written now, and the rows they replace.

    A row is left out if one of its messages has been forgotten since, or if the cursor has passed all of its messages,
    since other rows cover them.
    """
    begins, batch, observed = buffered.begins, buffered.batch, buffered.observed
    cited = {seq for draft in observed.drafts for seq in draft.sources}
    keys = {kept.seq: kept.key for kept in deps.store.messages.by_seq(cited)}
    drafts, ids = [], []
    for draft, row_id in zip(observed.drafts, buffered.ids, strict=True):
        sources = tuple(seq for seq in draft.sources if seq in keys)
        is_covered = begins < batch.after and max(draft.sources) <= batch.after
        is_forgotten = any(seq > batch.after and seq not in keys for seq in draft.sources)
        if sources and not is_covered and not is_forgotten:
            drafts.append(replace(draft, sources=sources))
            ids.append(row_id)
    return to_rows(batch, drafts, project=project, deps=deps, ids=ids, keys=keys)


def with_buffered_rows(batch: Batch, deps: Deps) -> Batch:
    """Return a batch with the rows of the buffered batches before it among its context rows, as if written."""
    made = [buffered_rows(each, project=None, deps=deps) for each in deps.store.batches.buffered(batch.session)]
    replaced = {replacement.row for _, replacements in made for replacement in replacements}
    rows = (*batch.context_rows, *(row for new, _ in made for row in new))
    return replace(batch, context_rows=tuple(row for row in rows if row.id not in replaced))
