"""An API key in the environment of a run for which no model was chosen, and the cost of the model it could pay for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING

from omcli.base.record import mutable_record, replace
from omcli.wiring.models import USUAL_KEYS

if TYPE_CHECKING:
    from omcli.memory.batch import Batch, Observed, Observer
    from omcli.operations.deps import ObserverDeps
    from omcli.settings.settings import Settings

_PROMPT_TOKENS = 1_500
"""Tokens of instructions and schema in each prompt of an observer."""


@mutable_record
class UnusedKey:
    """A key that no model uses. It counts the messages that rules observe in the meantime."""

    variable: str
    provider: str
    tokens: int = 0
    """Tokens of the messages observed in this run."""

    @classmethod
    def find(cls, settings: Settings, environment: Mapping[str, str]) -> UnusedKey | None:
        """Return the first key that is set. Return None if there is none, or if a model or rules were chosen to
        observe.
        """
        if settings.observer.provider or settings.observer.model:
            return None
        found = ((variable, name) for variable, name in USUAL_KEYS.items() if environment.get(variable))
        return next((cls(variable=variable, provider=name) for variable, name in found), None)

    @property
    def model(self) -> str:
        """The default model of the key's provider, or the provider's name if it has none."""
        from omcli.providers.endpoints import endpoint

        return endpoint(self.provider).model or self.provider

    def watch(self, rules: ObserverDeps) -> ObserverDeps:
        """Return the same rules, with the tokens that they observe counted here."""
        return replace(rules, open=lambda: _Counting(rules.open(), self._add))

    def _add(self, tokens: int) -> None:
        self.tokens += tokens

    def cost(self, settings: Settings) -> float | None:
        """Return roughly what the model would have cost for these messages, or None if its price is unknown.

        Tool results are counted in full, although a model is shown only a part of long ones.
        """
        from omcli.operations.estimate import REPLY_SHARE
        from omcli.providers.endpoints import cost

        calls = ceil(self.tokens / max(1, settings.observe.batch_tokens))
        return cost(
            self.model,
            endpoint=self.provider,
            input_tokens=self.tokens + calls * _PROMPT_TOKENS,
            output_tokens=ceil(self.tokens * REPLY_SHARE),
            own=settings.prices,
        )


class _Counting:
    """An observer that reports the tokens of each batch."""

    def __init__(self, observer: Observer, add: Callable[[int], None]) -> None:
        self._observer = observer
        self._add = add

    def observe(self, batch: Batch) -> Observed:
        self._add(sum(kept.tokens for kept in batch.messages))
        return self._observer.observe(batch)
