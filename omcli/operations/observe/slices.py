"""A session's batches read by a model, slice by slice, and smaller ones where it turns out to need that."""

from __future__ import annotations

from collections.abc import Callable

from omcli.base.errors import OF_MODELS, CutOff, Looped, OmError, PromptTooLong
from omcli.base.record import mutable_record
from omcli.memory.batch import Batch, BatchReader, next_slice
from omcli.operations.deps import Workshop

_MOST_HALVINGS = 4
"""How often a slice is made smaller since the model cannot read so much at once."""


@mutable_record
class Slices:
    """How much of a session a model is shown at once, as far as that is known."""

    workshop: Workshop
    extend: Callable[[], None]
    """Extends the lease, before each call."""
    max_tokens: int
    max_messages: int | None = None

    def read(self, reading: BatchReader, batch: Batch, after: int) -> int:
        """Has the slice of a batch behind a message read, or as much of it as the model can take; where that ends.

        Raises what the model raises where nobody stands in for it, and LaneTaken.
        """
        part = self._next(batch, after)
        halvings, warmer = 0, False
        while True:
            self.extend()
            self._tell(batch, part)
            try:
                reading.read(part, warmer=warmer)
            except (CutOff, PromptTooLong) as error:
                warmer = warmer or isinstance(error, Looped)
                halvings += isinstance(error, PromptTooLong)
                smaller = self._half(batch, part) if halvings <= _MOST_HALVINGS else None
                if smaller is not None:
                    part = smaller
                    continue
                self._leave(reading, part, error)
            except OF_MODELS as error:
                self._leave(reading, part, error)
            return part.through

    def _next(self, batch: Batch, after: int) -> Batch:
        return next_slice(batch, after=after, max_tokens=self.max_tokens, max_messages=self.max_messages)

    def _half(self, batch: Batch, part: Batch) -> Batch | None:
        """The first half of a slice, and from now on none is larger; None where it can't be parted."""
        self.max_tokens = max(1, sum(kept.tokens for kept in part.messages) // 2)
        self.max_messages = len(part.messages) // 2
        smaller = self._next(batch, part.after) if self.max_messages else None
        return smaller if smaller and len(smaller.messages) < len(part.messages) else None

    def _leave(self, reading: BatchReader, part: Batch, error: OmError) -> None:
        """Leaves a slice to the rules, where they may stand in; else the failure is raised."""
        if not self.workshop.rules_stand_in:
            raise error
        self.workshop.warn(f"{error.message}; observed by rules")
        reading.skip(part)

    def _tell(self, batch: Batch, part: Batch) -> None:
        """Says what is waited for."""
        read = sum(kept.seq <= part.after for kept in batch.messages)
        waiting = self.workshop.store.batches.pending(batch.session).messages - read
        self.workshop.busy(f"{batch.session}: observing {len(part.messages)} of {waiting} messages that wait")
