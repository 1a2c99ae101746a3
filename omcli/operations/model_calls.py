"""Calls of models, watched over: limits hold before each, and the ledger has all of them."""

from __future__ import annotations

from collections.abc import Callable

from omcli.base.errors import OmError, OverLimit, ProviderFailed
from omcli.llm.model import Call, Ledger, Prompt, Provider, Reply, Stop
from omcli.memory.ports import Lane
from omcli.operations.clock import Clock
from omcli.operations.limits import Limit


class Metered:
    """A provider whose calls are counted: each is in the ledger, and none is made past a limit."""

    def __init__(
        self,
        provider: Provider,
        *,
        lane: Lane,
        ledger: Callable[[], Ledger],
        limits: tuple[Limit, ...],
        cost: Callable[[Reply], float | None],
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        """`ledger` gives where calls are noted, once there is a call; `warn` is told of soft limits, each once."""
        self._provider = provider
        self._lane = lane
        self._ledger = ledger
        self._limits = limits
        self._cost = cost
        self._clock = clock
        self._warn = warn
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """The endpoint."""
        return self._provider.name

    @property
    def model(self) -> str:
        """The model."""
        return self._provider.model

    @property
    def takes_images(self) -> bool:
        """Whether a prompt may hold pictures."""
        return self._provider.takes_images

    def ask(self, prompt: Prompt) -> Reply:
        """The reply to a prompt. Raises OverLimit before anything is asked, and what the provider raises."""
        self._check()
        begun = self._clock.monotonic()
        try:
            reply = self._provider.ask(prompt)
        except OmError as error:
            self._note(prompt, begun, outcome=error.slug)
            raise
        except BaseException:  # a Ctrl-C in the middle: it may have been billed
            self._note(prompt, begun, outcome="interrupted")
            raise
        self._note(prompt, begun, outcome=_outcome(prompt, reply), reply=reply)
        return reply

    def _check(self) -> None:
        for limit in self._limits:
            reached = limit.reached(self._ledger().spent(since=limit.since(self._clock.now())))
            if reached and limit.is_hard:
                raise OverLimit(f"{reached}; nothing was asked", hint="`om usage` shows what models have cost")
            if reached and limit.name not in self._warned:
                self._warned.add(limit.name)
                self._warn(reached)

    def _note(self, prompt: Prompt, begun: float, *, outcome: str, reply: Reply | None = None) -> None:
        self._ledger().note_call(
            Call(
                at=self._clock.now(),
                lane=self._lane,
                session=prompt.session,
                provider=self.name,
                model=reply.model if reply else self.model,
                input_tokens=reply.input_tokens if reply else None,
                output_tokens=reply.output_tokens if reply else None,
                cached_tokens=reply.cached_tokens if reply else None,
                cost=self._cost(reply) if reply else None,
                duration=round((self._clock.monotonic() - begun) * 1000),
                outcome=outcome,
            )
        )


def _outcome(prompt: Prompt, reply: Reply) -> str:
    """How a call ended: well only where the reply can be read."""
    if reply.stop is not Stop.END:
        return reply.stop
    try:
        if prompt.reads is not None:
            prompt.reads(reply)
    except ProviderFailed as error:
        return error.slug
    return "ok"


class WithFallback:
    """A provider that is asked where another one fails: once, with the same prompt."""

    def __init__(self, first: Provider, second: Provider, *, warn: Callable[[str], None]) -> None:
        self._first = first
        self._second = second
        self._warn = warn

    @property
    def name(self) -> str:
        """The first one's endpoint."""
        return self._first.name

    @property
    def model(self) -> str:
        """The first one's model."""
        return self._first.model

    @property
    def takes_images(self) -> bool:
        """Whether both take pictures: they are asked the same."""
        return self._first.takes_images and self._second.takes_images

    def ask(self, prompt: Prompt) -> Reply:
        """The first one's reply, or the second's. Raises what the second one raises; OverLimit at once."""
        try:
            return self._first.ask(prompt)
        except OverLimit:
            raise
        except OmError as error:
            self._warn(f"{self._first.model}: {error.message}; asking {self._second.model}")
        return self._second.ask(prompt)
