"""A model over HTTP. Failed requests are retried, with looser output modes if needed, while time and calls are left."""

from __future__ import annotations

import signal
import time
from _thread import start_new_thread
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from omcli.base.errors import (
    BadConfiguration,
    NotAllowed,
    OmError,
    PromptTooLong,
    UnknownModel,
    Unreachable,
    Unusable,
)
from omcli.base.record import record, replace
from omcli.llm.model import EndReason, OutputMode, OutputModes, Prompt, Reply
from omcli.llm.replies import json_in
from omcli.providers import failures
from omcli.providers.wire import PlainReply, Request, RequestFailed, TokenUsage, Wire

if TYPE_CHECKING:
    import httpx2

_AFTERWARDS = 5.0
"""Seconds added to the remaining time for the SDK's own timeout, which closes connections abandoned at the deadline."""
_TRIES_FOR_JSON = 2
_REFUSALS = (400, 422)
"""HTTP statuses that may mean that the endpoint refused an optional field."""
_FORMAT_REFUSALS = (*_REFUSALS, 500, 501)
"""HTTP statuses that may mean that the endpoint refused the output format. One local server uses 500."""
_FORMAT_WORDS = (
    "response_format", "response format", "json_schema", "json schema", "json_object", "output_config",
    "output_format", "output format", "structured output", "grammar", "guided_json", "schema",
)  # fmt: skip


@record
class RemoteTarget:
    """Address of a model, and the secrets to keep out of messages."""

    endpoint: str
    """Name of the endpoint in `endpoints.ENDPOINTS`."""
    address: str
    """Base URL of the endpoint. Working output modes are remembered per address and model."""
    key_from: str
    """Origin of the key, for error messages. Empty if there is no key."""
    model_from: str = ""
    """Origin of the model's name, for error messages. Empty if they should not mention it."""
    secrets: tuple[str, ...] = ()

    def error(self, failed: RequestFailed, model: str) -> OmError:
        """Return the error to raise, with a message of one line that contains no secrets."""
        text = failed.text
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        hint = failed.hint
        if failed.kind is NotAllowed and self.key_from:
            hint = f"the key comes from {self.key_from}"
        if failed.kind is UnknownModel and self.model_from:
            hint = f"the model comes from {self.model_from}; {hint}"
        opening = self.endpoint
        if failed.kind is UnknownModel:
            opening = f"{self.endpoint} has no model {model!r}"
        elif failed.kind in (Unreachable, BadConfiguration):
            opening = f"{self.endpoint} at {self.address}"
        return failed.kind(failures.as_one_line(f"{opening}: {text}"), hint=hint)


class RemoteModel:
    """A provider over HTTP. Each prompt has one deadline. Temporary failures are retried a few times while calls are
    left.

    Fields that the endpoint refused are not sent again, and the output mode that worked is remembered.
    """

    def __init__(
        self,
        *,
        target: RemoteTarget,
        model: str,
        wire: Wire,
        output_modes: OutputModes,
        seconds: float,
        takes_images: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = target.endpoint
        self.model = model
        self.takes_images = takes_images
        self._target, self._wire, self._modes, self._seconds = target, wire, output_modes, seconds
        self._clock, self._sleep = clock, sleep
        self._omitted = frozenset[str]() if takes_images else frozenset({"image"})

    def ask(self, prompt: Prompt) -> Reply:
        """Return the reply to a prompt.

        Raise ProviderFailed if there is no usable reply before the deadline, NotAllowed if the key is rejected or the
        account has no credit, and BadConfiguration if the base URL or the model's name is wrong.
        """
        self._wire.prepare()
        retries = RetryState(seconds=self._seconds, clock=self._clock, sleep=self._sleep)
        request = Request(model=self.model, prompt=prompt, output_mode=self._first_mode(), omitted=self._omitted)
        usage, misses = TokenUsage(), 0
        while True:
            try:
                reply = self._send(request, retries)
            except RequestFailed as failed:
                if (other := self._without_refused(request, failed)) is not None:
                    request, misses = other, misses if other.output_mode is request.output_mode else 0
                    continue
                if failed.kind is not PromptTooLong:
                    prompt.calls.take()
                if prompt.calls.is_over or not retries.sleep_after(failed):
                    raise self._error(failed) from failed
                continue
            prompt.calls.take()
            usage += reply.usage
            is_json = isinstance(json_in(reply.text), dict | list)
            misses += 0 if is_json else 1
            looser = self._next_mode(request.output_mode)
            if is_json or reply.stop is not EndReason.END or looser is None or prompt.calls.is_over:
                return self._reply(request, reply, usage)
            if misses >= _TRIES_FOR_JSON:
                # Every endpoint understands the loosest mode.
                looser = self._wire.output_modes[-1] if prompt.calls.is_last else looser
                request, misses = replace(request, output_mode=looser), 0

    def _send(self, request: Request, retries: RetryState) -> PlainReply:
        """Send one request and return its reply. Raise RequestFailed if no usable one comes in the remaining time."""

        def work(http: httpx2.Client, seconds: float) -> PlainReply:
            return self._wire.send(request, http=http, seconds=seconds)

        return send(work, self._target, retries, most_bytes=request.limit)

    def _first_mode(self) -> OutputMode:
        known = self._modes.output_mode(self._target.address, self.model)
        return known if known in self._wire.output_modes else self._wire.output_modes[0]

    def _next_mode(self, mode: OutputMode) -> OutputMode | None:
        modes = self._wire.output_modes
        return modes[modes.index(mode) + 1] if mode is not modes[-1] else None

    def _without_refused(self, request: Request, failed: RequestFailed) -> Request | None:
        """Return the request without the field that was refused, which is omitted from now on, or with a looser output
        mode if the output format was refused.

        Return None if the request failed for another reason.
        """
        looser = self._next_mode(request.output_mode)
        if looser and failed.status in _FORMAT_REFUSALS and any(word in failed.body for word in _FORMAT_WORDS):
            return replace(request, output_mode=looser)
        if failed.status not in _REFUSALS:
            return None
        refused = next((name for name in self._wire.optional(request) if name in failed.body), None)
        if refused is None:
            return None
        self._omitted |= {refused}
        return replace(request, omitted=self._omitted)

    def _reply(self, request: Request, reply: PlainReply, usage: TokenUsage) -> Reply:
        if reply.stop is EndReason.END:
            if not reply.text.strip():
                raise self._error(RequestFailed(Unusable, "the reply is empty"))
            if request.output_mode is not self._modes.output_mode(self._target.address, self.model):
                self._modes.put_output_mode(self._target.address, self.model, request.output_mode)
        return Reply(
            text=reply.text,
            stop=reply.stop,
            model=reply.model,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
        )

    def _error(self, failed: RequestFailed) -> OmError:
        return self._target.error(failed, self.model)


T = TypeVar("T")
_LONGEST_DELAY = 8.0


class RetryState:
    """Remaining time and attempts for one prompt."""

    def __init__(
        self,
        *,
        seconds: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        setting: str = "provider.timeout",
    ) -> None:
        """`setting` is the key that sets `seconds`, for error messages."""
        self.seconds = seconds
        self.setting = setting
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self._failures = 0

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.seconds - self._since_start)

    @property
    def _since_start(self) -> float:
        return self._clock() - self._began

    def sleep_after(self, failed: RequestFailed) -> bool:
        """Count a failure, wait before the next attempt, and return True.

        Return False without waiting if no attempt or not enough time is left.
        """
        self._failures += 1
        delay = min(failed.delay * 2 ** (self._failures - 1), _LONGEST_DELAY)
        if failed.retry_after is not None:
            delay = failed.retry_after
        if self._failures >= failed.tries or delay >= self.remaining or self._since_start + delay > failed.within:
            return False
        self._sleep(delay)
        return True


def send(work: Callable[[httpx2.Client, float], T], target: RemoteTarget, retries: RetryState, *, most_bytes: int) -> T:
    """Call `work` with a client and the timeout of its SDK, and return its result. Raise RequestFailed if there is none
    within the remaining time.
    """
    seconds = retries.remaining
    if not seconds:
        raise failures.no_reply(retries.seconds, retries.setting)
    from omcli.providers.client import new_client, watch

    with new_client(target.address, seconds=seconds) as http:

        def start(connected: Callable[[], None]) -> T:
            watch(http, connected, most=most_bytes)
            return work(http, seconds + _AFTERWARDS)

        try:
            return run_within(start, seconds=seconds, connect_within=failures.CONNECTING)
        except NotConnected:
            raise failures.not_connected() from None
        except Overdue:
            raise failures.no_reply(retries.seconds, retries.setting) from None


class NotConnected(Exception):
    """Raised if a connection is not established in time."""


class Overdue(Exception):
    """Raised if the work is not finished by the deadline."""


@record
class _Result:
    result: object = None
    error: BaseException | None = None


_CONNECTED = _Result()


def run_within(work: Callable[[Callable[[], None]], T], *, seconds: float, connect_within: float) -> T:
    """Run `work` in a thread and return its result, or raise its error.

    `work` must call its argument once it is connected. Raise NotConnected if that takes longer than `connect_within`
    seconds, and Overdue if `seconds` have passed. The thread is then abandoned, because DNS lookups and very slow
    responses cannot be interrupted. Ctrl-C still works.
    """
    news: SimpleQueue[_Result] = SimpleQueue()

    def run() -> None:
        # SIGPIPE ends om, so that `om | head` ends quietly. A broken connection must not end it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            news.put(_Result(result=work(lambda: news.put(_CONNECTED))))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            news.put(_Result(error=error))
            raise SystemExit from None  # ends the thread silently

    deadline = time.monotonic() + seconds
    start_new_thread(run, ())  # unlike threading.Thread, does not keep the process alive
    try:
        result = news.get(timeout=max(0.0, min(connect_within, seconds)))
    except Empty:
        raise (NotConnected if connect_within < seconds else Overdue) from None
    try:
        while result is _CONNECTED:
            result = news.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        raise Overdue from None
    if result.error is not None:
        raise result.error
    return result.result  # type: ignore[return-value]
