"""One request to an endpoint, its reply and its failures: the interface between `remote` and the wire protocols."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from omcli.base.errors import OmError
from omcli.base.record import record
from omcli.llm.model import OutputMode, Picture, Prompt, Stop
from omcli.memory.message import attachment

if TYPE_CHECKING:
    import httpx2


STREAMED_FROM = 8_192
"""Tokens of output from which a reply is streamed: what comes slowly is cut off by what lies between otherwise."""
_MOST_TOKENS = 10**12
"""No request has so many: what says so is believed as little as what says none."""


@record
class Request:
    """What is sent."""

    model: str
    prompt: Prompt
    rung: OutputMode
    given_up: frozenset[str] = frozenset()
    """Optional fields that the endpoint refused before."""

    @property
    def is_streamed(self) -> bool:
        """Whether the reply comes piece by piece."""
        return (self.prompt.max_output or 0) > STREAMED_FROM


@record
class TokenUsage:
    """Tokens as the endpoint counted them; None where it doesn't tell."""

    input: int | None = None
    """Cached ones included."""
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
class RawReply:
    """What came back from one request."""

    text: str
    stop: Stop
    model: str
    usage: TokenUsage


class RequestFailed(Exception):
    """A request that gave no answer, and what is known of whether another one may."""

    def __init__(
        self,
        kind: type[OmError],
        text: str,
        *,
        hint: str = "",
        status: int | None = None,
        said: str = "",
        tries: int = 1,
        delay: float = 1.0,
        retry_after: float | None = None,
        within: float = float("inf"),
    ) -> None:
        super().__init__(text)
        self.kind = kind
        """What it comes to where nothing else helps."""
        self.text = text
        """What went wrong, in words: the endpoint's own where it has any."""
        self.hint = hint
        self.status = status
        self.said = said
        """All that the endpoint said, in small letters."""
        self.tries = tries
        """How often an ask may fail in all for such a failure to be tried again: 1, never."""
        self.delay = delay
        """Seconds to wait after the first failure, doubled with each."""
        self.retry_after = retry_after
        """Seconds the endpoint asks to wait."""
        self.within = within
        """Seconds since the ask began, after which it isn't tried again."""


class Wire(Protocol):
    """A protocol that models are spoken to in over HTTP."""

    @property
    def rungs(self) -> tuple[OutputMode, ...]:
        """The ways it knows to ask for structure, the strictest first; the last is PROMPT."""

    def prepare(self) -> None:
        """Imports the SDK: that takes a second, which is none of the endpoint's time."""

    def optional(self, request: Request) -> tuple[str, ...]:
        """Fields of this request that it can do without, as an endpoint that refuses them names them."""

    def send(self, request: Request, *, http: httpx2.Client, seconds: float) -> RawReply:
        """The answer to one request. Raises RequestFailed."""


def number(value: object) -> int | None:
    """A count of tokens as an endpoint gives it: None for what is no number, or none that can be true."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST_TOKENS else None


def plain(event: object) -> object:
    """A piece of a stream as what JSON holds: SDKs make objects of what they recognise, and leave what they don't."""
    dump = getattr(event, "model_dump", None)
    return dump(warnings=False) if dump else event


def system_text(prompt: Prompt, rung: OutputMode) -> str:
    """The rules; where nothing else tells the model of the schema, with the schema."""
    if rung is OutputMode.JSON_SCHEMA:
        return prompt.system
    schema = json.dumps(prompt.schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt.system}\n\n"
        f"Reply with one JSON document that fits this JSON schema, without a word or a code fence around it:\n{schema}"
    )


def joined(content: tuple[str | Picture, ...], *, pictures: bool) -> tuple[str | Picture, ...]:
    """The content with neighbouring texts joined by a line break; without `pictures`, each of them in words."""
    parts: list[str | Picture] = []
    for part in content:
        shown = part if pictures or isinstance(part, str) else attachment("image", part.media_type, len(part.data))
        if isinstance(shown, str) and parts and isinstance(parts[-1], str):
            parts[-1] = f"{parts[-1]}\n{shown}"
        else:
            parts.append(shown)
    return tuple(parts)


def whole_text(prompt: Prompt) -> str:
    """The whole prompt as one text: rules and schema, an empty line, content."""
    content = "".join(part for part in joined(prompt.content, pictures=False) if isinstance(part, str))
    return f"{system_text(prompt, OutputMode.PROMPT)}\n\n{content}\n"
