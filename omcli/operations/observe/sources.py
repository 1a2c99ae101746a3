"""Sources of batches: the waiting messages of a session, and those behind its buffered batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omcli.memory.batch import Batch
from omcli.operations.deps import Deps
from omcli.operations.observe.buffered import with_buffered_rows

CONTEXT_ROWS = 150
"""Rows shown along with a batch: the newest, and the newest mutable ones."""


class SessionBatches:
    """The waiting messages of a session, batch by batch, oldest first.

    Messages that gave nothing yet are offered again only together with later ones.
    """

    def __init__(self, session_id: str, deps: Deps, extend: Callable[[], None], *, most: int | None = None) -> None:
        """`extend` extends the lease before each batch; `most` is the number of batches, at most."""
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
        """True if nothing waits behind a batch. The messages behind a late one are covered already."""
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session).messages <= len(batch.messages)


class UnbufferedBatches:
    """The messages behind the last buffered batch of a session, batch by batch, while some are due."""

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
        """True if nothing waits behind a batch."""
        if batch.is_late:
            return False
        return self._deps.store.batches.pending(batch.session, ahead=True).messages <= len(batch.messages)
