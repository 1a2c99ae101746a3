"""The observer of a session: rules, or a model that is shown a batch in slices as large as it can read."""

from __future__ import annotations

from collections.abc import Callable

from omcli.base.errors import OF_MODELS, CutOff, Looped, OmError, PromptTooLong
from omcli.base.record import replace
from omcli.memory.batch import Batch, BatchReader, Observed, Observer, SlicedObserver, Stopped, next_slice
from omcli.operations.deps import Deps

_MOST_HALVINGS = 4
"""Halvings of a slice that turned out to be too long for the model."""


def session_observer(deps: Deps, extend: Callable[[], None]) -> Observer:
    """Return the observer for one session. `extend` extends its lease, before each call of a model."""
    model = deps.observer.model
    return deps.observer.open() if model is None else SlicedReader(model, deps, extend)


class SlicedReader:
    """An observer that shows a model one slice of a batch after the other."""

    def __init__(self, model: SlicedObserver, deps: Deps, extend: Callable[[], None]) -> None:
        self._model = model
        self._deps = deps
        self._extend = extend
        self._max_tokens = deps.observer.slice_tokens or deps.observer.batch_tokens
        self._max_messages: int | None = None

    def observe(self, batch: Batch) -> Observed:
        """Return the observations of a batch; of its beginning if the model fails on the way, or is interrupted.

        Raises LaneTaken.
        """
        reading, through = self._model.begin(batch), batch.after
        try:
            while through < batch.through:
                through = self._read(reading, batch, through)
        except (*OF_MODELS, KeyboardInterrupt) as error:
            observed = reading.observed() if through > batch.after else Observed(drafts=())
            return replace(observed, stopped=Stopped(through=through, error=error))
        return reading.observed()

    def _read(self, reading: BatchReader, batch: Batch, after: int) -> int:
        """Read the slice of a batch behind `after`, or as much as the model can take; return its end.

        Raises the errors of the model unless rules stand in for it, and LaneTaken.
        """
        part = self._next(batch, after)
        halvings, warmer = 0, False
        while True:
            self._extend()
            self._show_progress(batch, part)
            try:
                reading.read(part, warmer=warmer)
            except (CutOff, PromptTooLong) as error:
                warmer = warmer or isinstance(error, Looped)
                halvings += isinstance(error, PromptTooLong)
                smaller = self._first_part(batch, part) if halvings <= _MOST_HALVINGS else None
                if smaller is not None:
                    part = smaller
                    continue
                self._skip(reading, part, error)
            except OF_MODELS as error:
                self._skip(reading, part, error)
            return part.through

    def _next(self, batch: Batch, after: int) -> Batch:
        return next_slice(batch, after=after, max_tokens=self._max_tokens, max_messages=self._max_messages)

    def _first_part(self, batch: Batch, part: Batch) -> Batch | None:
        """Return the first half of a slice, and make no larger ones from now on; None if it can't be divided."""
        self._max_tokens = max(1, sum(kept.tokens for kept in part.messages) // 2)
        self._max_messages = len(part.messages) // 2
        smaller = self._next(batch, part.after) if self._max_messages else None
        return smaller if smaller and len(smaller.messages) < len(part.messages) else None

    def _skip(self, reading: BatchReader, part: Batch, error: OmError) -> None:
        """Leave a slice to the rules if they may stand in; else raise the failure."""
        if not self._deps.observer.rules_stand_in:
            raise error
        self._deps.warn(f"{error.message}; observed by rules")
        reading.skip(part)

    def _show_progress(self, batch: Batch, part: Batch) -> None:
        read = sum(kept.seq <= part.after for kept in batch.messages)
        waiting = self._deps.store.batches.pending(batch.session).messages - read
        self._deps.busy(f"{batch.session}: observing {len(part.messages)} of {waiting} messages that wait")
