"""A model behind HTTP: asks until there is a reply, going down the ladder of structured output, up to one deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from omcli.base.errors import BadConfiguration, NotAllowed, OmError, UnknownModel, Unreachable, Unusable
from omcli.base.record import record, replace
from omcli.llm.json_reply import json_in
from omcli.llm.model import OutputMode, OutputModes, Prompt, Reply, Stop
from omcli.providers import failures
from omcli.providers.retry import DeadlinePassed, NotConnected, RetryBudget, run_with_deadline
from omcli.providers.wire import RawReply, Request, RequestFailed, TokenUsage, Wire

_AFTERWARDS = 5.0
"""Seconds after the deadline at which a connection that was left behind gives up by itself."""
_TRIES_FOR_JSON = 2
_REFUSALS = (400, 422)
"""Statuses with which endpoints refuse a field they don't know."""
_FORMAT_REFUSALS = (*_REFUSALS, 500, 501)
"""One local server fails at a format it doesn't know."""
_FORMAT_WORDS = (
    "response_format", "response format", "json_schema", "json schema", "json_object", "output_config",
    "output_format", "output format", "structured output", "grammar", "guided_json", "schema",
)  # fmt: skip


@record
class RemoteTarget:
    """Where a model is, and what of it must not be said."""

    endpoint: str
    """Its name in the table."""
    address: str
    """Its base URL, for remembering what works there."""
    key_from: str
    """Where the key comes from, in words; empty where none is needed."""
    model_from: str = ""
    """Who names the model, in words; empty where that need not be told."""
    secrets: tuple[str, ...] = ()


class RemoteModel:
    """The Provider of a wire. One ask has one deadline; at most three of its requests may fail for a passing reason.

    What an endpoint refuses once, a field or a format, it is not sent again. The rung that worked is remembered.
    """

    def __init__(
        self,
        *,
        access: RemoteTarget,
        model: str,
        wire: Wire,
        rungs: OutputModes,
        seconds: float,
        takes_images: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = access.endpoint
        self.model = model
        self.takes_images = takes_images
        self._access, self._wire, self._rungs, self._seconds = access, wire, rungs, seconds
        self._clock, self._sleep = clock, sleep
        self._given_up = frozenset[str]() if takes_images else frozenset({"image"})

    def ask(self, prompt: Prompt) -> Reply:
        """The reply to a prompt. Raises ProviderFailed, NotAllowed, BadConfiguration."""
        self._wire.prepare()
        patience = RetryBudget(seconds=self._seconds, clock=self._clock, sleep=self._sleep)
        request = Request(model=self.model, prompt=prompt, rung=self._first_rung(), given_up=self._given_up)
        usage, misses = TokenUsage(), 0
        while True:
            try:
                answer = self._send(request, patience)
            except RequestFailed as failed:
                if (other := self._otherwise(request, failed)) is not None:
                    request, misses = other, misses if other.rung is request.rung else 0
                elif not patience.wait_after(failed):
                    raise self._error(failed) from failed
                continue
            usage += answer.usage
            is_json = isinstance(json_in(answer.text), dict | list)
            misses += 0 if is_json else 1
            below = self._below(request.rung)
            if is_json or answer.stop is not Stop.END or below is None:
                return self._reply(request, answer, usage)
            if misses >= _TRIES_FOR_JSON:
                request, misses = replace(request, rung=below), 0

    def _send(self, request: Request, patience: RetryBudget) -> RawReply:
        """One request, in what is left of the time."""
        seconds = patience.remaining
        if not seconds:
            raise failures.of_silence(self._seconds)
        from omcli.providers.client import http_client, watch

        with http_client(self._access.address, seconds=seconds) as http:

            def work(alive: Callable[[], None]) -> RawReply:
                watch(http, alive)
                return self._wire.send(request, http=http, seconds=seconds + _AFTERWARDS)

            try:
                return run_with_deadline(work, seconds=seconds, first_sign=failures.CONNECTING)
            except NotConnected:
                raise failures.of_nobody() from None
            except DeadlinePassed:
                raise failures.of_silence(self._seconds) from None

    def _first_rung(self) -> OutputMode:
        known = self._rungs.rung(self._access.address, self.model)
        return known if known in self._wire.rungs else self._wire.rungs[0]

    def _below(self, rung: OutputMode) -> OutputMode | None:
        rungs = self._wire.rungs
        return rungs[rungs.index(rung) + 1] if rung is not rungs[-1] else None

    def _otherwise(self, request: Request, failed: RequestFailed) -> Request | None:
        """The request without what was refused; None where that isn't what it failed for."""
        below = self._below(request.rung)
        if below and failed.status in _FORMAT_REFUSALS and any(word in failed.said for word in _FORMAT_WORDS):
            return replace(request, rung=below)
        if failed.status not in _REFUSALS:
            return None
        refused = next((name for name in self._wire.optional(request) if name in failed.said), None)
        if refused is None:
            return None
        self._given_up |= {refused}
        return replace(request, given_up=self._given_up)

    def _reply(self, request: Request, answer: RawReply, usage: TokenUsage) -> Reply:
        if answer.stop is Stop.END:
            if not answer.text.strip():
                raise self._error(RequestFailed(Unusable, "the reply is empty"))
            if request.rung is not self._rungs.rung(self._access.address, self.model):
                self._rungs.put_output_mode(self._access.address, self.model, request.rung)
        return Reply(
            text=answer.text,
            stop=answer.stop,
            model=answer.model,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
        )

    def _error(self, failed: RequestFailed) -> OmError:
        """The failure in one line, without a secret."""
        said = failed.text
        for secret in self._access.secrets:
            said = said.replace(secret, "[key]")
        hint = failed.hint
        if failed.kind is NotAllowed and self._access.key_from:
            hint = f"the key comes from {self._access.key_from}"
        if failed.kind is UnknownModel and self._access.model_from:
            hint = f"the model comes from {self._access.model_from}; {hint}"
        return failed.kind(failures.in_a_line(f"{self._subject(failed)}: {said}"), hint=hint)

    def _subject(self, failed: RequestFailed) -> str:
        if failed.kind is UnknownModel:
            return f"{self.name} has no model {self.model!r}"
        if failed.kind in (Unreachable, BadConfiguration):
            return f"{self.name} at {self._access.address}"
        return self.name
