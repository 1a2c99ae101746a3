"""An API key in the environment of a run for which no model was chosen, and the cost of the model it could pay for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING

from omcli.base.record import mutable_record, replace
from omcli.memory.batch import next_slice
from omcli.memory.message import Role
from omcli.wiring.models import USUAL_KEYS

if TYPE_CHECKING:
    from omcli.memory.batch import Batch, Observed, Observer
    from omcli.operations.deps import ObserverDeps
    from omcli.settings.settings import Settings

_PROMPT_TOKENS = 1_500
"""Tokens of instructions and schema in each prompt of an observer."""


@mutable_record
class UnusedKey:
    """A key that no model uses. It counts what a model would have been shown of the messages that rules observe."""

    variable: str
    provider: str
    tokens: int = 0
    """Tokens of the messages observed in this run, without the parts of long calls and results that a model is not
    shown.
    """
    calls: int = 0

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

    def watch(self, rules: ObserverDeps, settings: Settings) -> ObserverDeps:
        """Return the same rules. Each batch that they observe is counted in `tokens` and `calls`, as a model would be
        shown it.
        """
        most = {Role.CALL: settings.tools.args_chars, Role.RESULT: settings.tools.result_chars}

        def add(batch: Batch) -> None:
            after = batch.after
            while after < batch.through:
                part = next_slice(batch, after=after, max_tokens=max(1, settings.observe.batch_tokens))
                self.calls, after = self.calls + 1, part.through
                for kept in part.messages:
                    chars = len(kept.message.text)
                    self.tokens += ceil(kept.tokens * min(chars, most.get(kept.message.role, chars)) / max(1, chars))

        return replace(rules, open=lambda: _Counting(rules.open(), add))

    def cost(self, settings: Settings) -> float | None:
        """Return roughly what the model would have cost for these messages, or None if its price is unknown."""
        from omcli.operations.estimate import REPLY_SHARE
        from omcli.providers.endpoints import cost

        return cost(
            self.model,
            endpoint=self.provider,
            input_tokens=self.tokens + self.calls * _PROMPT_TOKENS,
            output_tokens=ceil(self.tokens * REPLY_SHARE),
            own=settings.prices,
        )


class _Counting:
    """An observer that reports each batch."""

    def __init__(self, observer: Observer, add: Callable[[Batch], None]) -> None:
        self._observer = observer
        self._add = add

    def observe(self, batch: Batch) -> Observed:
        self._add(batch)
        return self._observer.observe(batch)
