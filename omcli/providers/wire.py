"""One request to an endpoint, its reply and its failure: the interface between `remote` and the wire protocols."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from omcli.base.errors import OmError
from omcli.base.record import record
from omcli.llm.model import EndReason, OutputMode, Picture, Prompt
from omcli.memory.message import attachment

if TYPE_CHECKING:
    import httpx2


STREAMED_FROM = 8_192
"""Replies are streamed if their output limit exceeds this many tokens, because proxies close connections that stay
silent.
"""
_LARGEST_REPLY = 16 << 20
"""Maximum size of a response in bytes, whatever the output limit is."""
_LEAST_BYTES = 256 << 10
_BYTES_PER_TOKEN, _BYTES_PER_EVENT = 64, 512
"""Maximum size of a token in bytes, in a plain response and in a streamed one, where each token may be an event."""
_MOST_TOKENS = 10**12
"""Maximum plausible token count of a request. Larger counts are ignored."""


@record
class Request:
    model: str
    prompt: Prompt
    output_mode: OutputMode
    omitted: frozenset[str] = frozenset()
    """Optional fields that are left out because the endpoint refused them earlier, or because the model takes no
    images.
    """

    @property
    def is_stream(self) -> bool:
        """True if the reply is to be streamed."""
        return (self.prompt.max_output or 0) > STREAMED_FROM

    @property
    def limit(self) -> int:
        """Maximum size of the decoded response."""
        return largest_reply(self.prompt.max_output, streamed=self.is_stream)


def largest_reply(max_output: int | None, *, streamed: bool = False) -> int:
    """Return the maximum size in bytes of a response: larger for a larger output limit, and if it is `streamed`, but
    never more than `_LARGEST_REPLY`, which also applies without an output limit (None).
    """
    if max_output is None:
        return _LARGEST_REPLY
    return min(_LARGEST_REPLY, _LEAST_BYTES + max_output * (_BYTES_PER_EVENT if streamed else _BYTES_PER_TOKEN))


@record
class TokenUsage:
    """Token counts reported by the endpoint. None means not reported."""

    input: int | None = None
    """Input tokens, including cached ones."""
    output: int | None = None
    cached: int | None = None

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input=_sum(self.input, other.input),
            output=_sum(self.output, other.output),
            cached=_sum(self.cached, other.cached),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


@record
class PlainReply:
    """The reply to one request."""

    text: str
    stop: EndReason
    model: str
    usage: TokenUsage


class RequestFailed(Exception):
    """Raised if a request gets no usable reply. Its attributes determine if and when the request is retried."""

    def __init__(
        self,
        kind: type[OmError],
        text: str,
        *,
        hint: str = "",
        status: int | None = None,
        body: str = "",
        tries: int = 1,
        delay: float = 1.0,
        retry_after: float | None = None,
        within: float = float("inf"),
    ) -> None:
        super().__init__(text)
        self.kind = kind
        """Error to raise if the request is not retried successfully."""
        self.text = text
        """Reason for the failure, in the endpoint's own words if available."""
        self.hint = hint
        self.status = status
        self.body = body
        """Start of the endpoint's error response in lower case, for finding known phrases."""
        self.tries = tries
        """Maximum number of attempts, including the first. 1 means no retry."""
        self.delay = delay
        """Seconds to wait after the first failure. The delay doubles after each additional failure."""
        self.retry_after = retry_after
        """Seconds to wait if the endpoint requested a delay. Takes precedence over `delay`."""
        self.within = within
        """Maximum time, in seconds, between the start of the first attempt and a retry."""


class Wire(Protocol):
    """A wire protocol for models over HTTP."""

    @property
    def output_modes(self) -> tuple[OutputMode, ...]:
        """Supported modes of structured output, the strictest first. The last one is always PROMPT."""

    def prepare(self) -> None:
        """Import the SDK. This takes about a second, which must not count against the deadline."""

    def optional(self, request: Request) -> tuple[str, ...]:
        """Return the fields of this request that can be omitted, as they are named in the endpoint's errors."""

    def send(self, request: Request, *, http: httpx2.Client, seconds: float) -> PlainReply:
        """Send one request and return its reply. Raise RequestFailed if there is no usable reply."""


def token_count(value: object) -> int | None:
    """Return a token count from a response, or None if the value is not a plausible number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST_TOKENS else None


def as_plain(event: object) -> object:
    """Return a streamed event as plain JSON values. SDKs create objects only for the events they know."""
    dump = getattr(event, "model_dump", None)
    return dump(warnings=False) if dump else event


def system_text(prompt: Prompt, output_mode: OutputMode) -> str:
    """Return the system prompt, followed by the JSON schema unless the output mode is JSON_SCHEMA, which puts it into
    the request.
    """
    if output_mode is OutputMode.JSON_SCHEMA:
        return prompt.system
    schema = json.dumps(prompt.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt.system}\n\n"
        f"Reply with one JSON document that fits this JSON schema, without a word or a code fence around it:\n{schema}"
    )


def joined(content: tuple[str | Picture, ...], *, pictures: bool) -> tuple[str | Picture, ...]:
    """Return the content with adjacent strings joined by line breaks.

    Without `pictures`, each picture is replaced with a placeholder.
    """
    parts: list[str | Picture] = []
    for part in content:
        shown = part if pictures or isinstance(part, str) else attachment("image", part.media_type, len(part.data))
        if isinstance(shown, str) and parts and isinstance(parts[-1], str):
            parts[-1] = f"{parts[-1]}\n{shown}"
        else:
            parts.append(shown)
    return tuple(parts)


def whole_text(prompt: Prompt) -> str:
    """Return the whole prompt as one string: the system prompt with the schema, an empty line, and the content."""
    content = "".join(part for part in joined(prompt.content, pictures=False) if isinstance(part, str))
    return f"{system_text(prompt, OutputMode.PROMPT)}\n\n{content}\n"
