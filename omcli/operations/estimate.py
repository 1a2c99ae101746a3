"""Estimates of model calls: prompts are built and counted, but not sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil

from omcli.base.record import record
from omcli.llm.model import EndReason, FailedCalls, ModelCall, Prompt, Provider, Reply, Spent
from omcli.memory.message import TokenCounter
from omcli.memory.reflection import Material, Reflected, Reflector
from omcli.reflectors.model import Compression, prompt_of

_PICTURE_TOKENS = 1_600
REPLY_SHARE = 0.25
"""Assumed size of a reply, as a share of the messages or rows that the prompt shows. Observations are three to six
times shorter than their messages.
"""


@record
class PromptMeter:
    """A provider that counts the tokens of prompts. Nothing is sent, and every reply is empty, so that only rows from
    rules are kept.
    """

    name: str
    model: str
    takes_images: bool
    counter: TokenCounter

    def ask(self, prompt: Prompt) -> Reply:
        """Return an empty reply, with the tokens of the prompt and of a reply of the usual size, at most
        `prompt.max_output`.
        """
        count = self.counter.text
        shown = sum(count(part) if isinstance(part, str) else _PICTURE_TOKENS for part in prompt.content)
        written = ceil(shown * REPLY_SHARE)
        return Reply(
            text='{"observations": []}',
            stop=EndReason.END,
            model=self.model,
            input_tokens=count(prompt.system) + count(json.dumps(prompt.schema)) + shown,
            output_tokens=written if prompt.max_output is None else min(written, prompt.max_output),
        )


class MeteredReflector:
    """A reflector that builds the first prompt for a model and lets the provider count it. Rules do the folding."""

    def __init__(self, provider: Provider, compression: Compression, rules: Reflector) -> None:
        self._provider = provider
        self._compression = compression
        self._rules = rules

    def reflect(self, material: Material) -> Reflected:
        self._provider.ask(prompt_of(material, self._compression, attempt=0, size=None))
        return self._rules.reflect(material)


class CallList:
    """A ledger in memory, for calls that were only estimated."""

    def __init__(self) -> None:
        self._calls: list[ModelCall] = []

    def note_call(self, call: ModelCall) -> None:
        self._calls.append(call)

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        return (call for call in self._calls if (since or "") <= call.at and (until is None or call.at < until))

    def failing(self, *, since: str) -> tuple[FailedCalls, ...]:  # noqa: ARG002 - of the protocol
        """Return an empty tuple, because no call is made."""
        return ()

    def spent(self, *, since: str) -> Spent:
        calls = list(self.calls(since=since))
        tokens = sum((call.input_tokens or 0) + (call.output_tokens or 0) for call in calls)
        return Spent(tokens=tokens, cost=sum(call.cost or 0.0 for call in calls))
