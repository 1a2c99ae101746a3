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
"""Output tokens from which a reply is streamed, since proxies cut off connections that stay silent for long."""
_MOST_TOKENS = 10**12
"""More tokens than any request has; a larger count is ignored."""


@record
class Request:
    """A request to an endpoint."""

    model: str
    prompt: Prompt
    output_mode: OutputMode
    omitted: frozenset[str] = frozenset()
    """Optional fields left out because the endpoint refused them before."""

    @property
    def is_stream(self) -> bool:
        """True if the reply is streamed."""
        return (self.prompt.max_output or 0) > STREAMED_FROM


@record
class TokenUsage:
    """Tokens as counted by the endpoint; None if not given."""

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
    """A request without a reply, and the terms on which it may be retried."""

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
        """Error to raise if no retry helps."""
        self.text = text
        """Reason, in the endpoint's own words if it gave any."""
        self.hint = hint
        self.status = status
        self.body = body
        """Full text of the endpoint's error, in lower case."""
        self.tries = tries
        """Number of attempts after which this failure is not retried; 1 for no retry."""
        self.delay = delay
        """Seconds to wait after the first failure; doubles with each further one."""
        self.retry_after = retry_after
        """Seconds to wait as requested by the endpoint."""
        self.within = within
        """Seconds after the first attempt beyond which there is no retry."""


class Wire(Protocol):
    """A protocol for models over HTTP."""

    @property
    def output_modes(self) -> tuple[OutputMode, ...]:
        """Supported modes of structured output, the strictest first; the last is PROMPT."""

    def prepare(self) -> None:
        """Import the SDK, which takes about a second that must not count against the deadline."""

    def optional(self, request: Request) -> tuple[str, ...]:
        """Return fields that this request can omit, named as in an endpoint's error."""

    def send(self, request: Request, *, http: httpx2.Client, seconds: float) -> PlainReply:
        """Send one request and return its reply. Raise RequestFailed on failure."""


def token_count(value: object) -> int | None:
    """Return a count of tokens from a response; None if it is not a plausible number."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST_TOKENS else None


def as_plain(event: object) -> object:
    """Return a streamed event as JSON values; SDKs turn only known events into objects."""
    dump = getattr(event, "model_dump", None)
    return dump(warnings=False) if dump else event


def system_text(prompt: Prompt, output_mode: OutputMode) -> str:
    """Return the system prompt, with the schema unless the request itself carries it."""
    if output_mode is OutputMode.JSON_SCHEMA:
        return prompt.system
    schema = json.dumps(prompt.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt.system}\n\n"
        f"Reply with one JSON document that fits this JSON schema, without a word or a code fence around it:\n{schema}"
    )


def joined(content: tuple[str | Picture, ...], *, pictures: bool) -> tuple[str | Picture, ...]:
    """Return the content with adjacent strings joined by line breaks. Without `pictures`, placeholders replace them."""
    parts: list[str | Picture] = []
    for part in content:
        shown = part if pictures or isinstance(part, str) else attachment("image", part.media_type, len(part.data))
        if isinstance(shown, str) and parts and isinstance(parts[-1], str):
            parts[-1] = f"{parts[-1]}\n{shown}"
        else:
            parts.append(shown)
    return tuple(parts)


def whole_text(prompt: Prompt) -> str:
    """Return the whole prompt as one string: system prompt with schema, an empty line, content."""
    content = "".join(part for part in joined(prompt.content, pictures=False) if isinstance(part, str))
    return f"{system_text(prompt, OutputMode.PROMPT)}\n\n{content}\n"
