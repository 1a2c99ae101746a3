"""The Anthropic Messages API, through Anthropic's SDK."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omcli.base.errors import NotAllowed, Unusable
from omcli.base.record import record
from omcli.llm.model import EndReason, OutputMode, Picture
from omcli.providers import failures
from omcli.providers.wire import (
    PlainReply,
    Request,
    RequestFailed,
    TokenUsage,
    as_plain,
    joined,
    system_text,
    token_count,
)

if TYPE_CHECKING:
    import anthropic
    import httpx2

_OUTPUT = 8_192
"""Default limit on output tokens. The API requires a limit, and every model supports this one."""
_STOPS = {
    "end_turn": EndReason.END,
    "stop_sequence": EndReason.END,
    "max_tokens": EndReason.LENGTH,
    "model_context_window_exceeded": EndReason.LENGTH,
    "refusal": EndReason.REFUSAL,
}


@record
class AnthropicMessages:
    """`POST /v1/messages` at a base URL."""

    base_url: str | None
    """None means the address in the profile that holds the credentials."""
    key: str | None = None
    """API key or authentication token, sent in the header for API keys. None means that the SDK finds the credentials
    itself.
    """
    effort: str | None = None
    """Reasoning effort. None means the endpoint's default."""

    @property
    def output_modes(self) -> tuple[OutputMode, ...]:
        """JSON_SCHEMA and PROMPT. The API has no mode for JSON without a schema."""
        return (OutputMode.JSON_SCHEMA, OutputMode.PROMPT)

    def prepare(self) -> None:
        """Import the SDK."""
        import anthropic  # noqa: F401

    def optional(self, request: Request) -> tuple[str, ...]:
        """Return the optional fields that this request sends: `image`, `effort`, `max_tokens` above the default."""
        has_pictures = any(isinstance(part, Picture) for part in request.prompt.content)
        fields = (
            ("image", has_pictures),
            ("effort", self.effort is not None),
            ("max_tokens", (request.prompt.max_output or 0) > _OUTPUT),
        )
        return tuple(name for name, is_sent in fields if is_sent and name not in request.omitted)

    def send(self, request: Request, *, http: httpx2.Client, seconds: float) -> PlainReply:
        """Send one request and return its reply. Raise RequestFailed if there is no usable reply."""
        import anthropic
        import httpx2

        try:
            client = self._client(http, seconds)
            if request.is_stream:
                with client.messages.create(**self._parameters(request), stream=True) as events:
                    body: object = _from_stream(map(as_plain, events))
            else:
                raw = client.messages.with_raw_response.create(**self._parameters(request))
                body = failures.parse_json(raw.http_response.text)
        except (
            anthropic.AnthropicError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            OSError,
            ValueError,
            RecursionError,
        ) as error:
            raise failure_of(error) from error
        return _reply(body, request.model)

    def _parameters(self, request: Request) -> dict[str, Any]:
        prompt = request.prompt
        most = prompt.max_output or _OUTPUT
        parameters: dict[str, Any] = {
            "model": request.model,
            "max_tokens": min(most, _OUTPUT) if "max_tokens" in request.omitted else most,
            "system": system_text(prompt, request.output_mode),
            "messages": [{"role": "user", "content": _content(request)}],
        }
        output: dict[str, object] = {}
        if request.output_mode is OutputMode.JSON_SCHEMA:
            output["format"] = {"type": "json_schema", "schema": dict(prompt.schema)}
        if self.effort is not None and "effort" not in request.omitted:
            output["effort"] = self.effort
        return {**parameters, "output_config": output} if output else parameters

    def _client(self, http: httpx2.Client, seconds: float) -> anthropic.Anthropic:
        import anthropic

        client = anthropic.Anthropic(
            api_key=self.key,
            base_url=self.base_url,
            timeout=seconds,
            max_retries=0,
            http_client=http,
        )
        if not (client.api_key or client.auth_token or client.credentials):  # the SDK would raise TypeError
            raise RequestFailed(NotAllowed, "the profile gives no credentials")
        return client


def failure_of(error: Exception) -> RequestFailed:
    """Return the failure for an error raised by the SDK or by a layer below it."""
    import anthropic

    match error:
        case anthropic.APIStatusError() if error.status_code < 300:  # an error in the middle of a stream
            return failures.cut_off(failures.message_in(error.body) or "no message")
        case anthropic.APIStatusError():
            return failures.of_status(error.status_code, error.body, error.response.headers)
        case anthropic.APIConnectionError():
            return failures.of_error(error)
        case anthropic.APIError():
            return failures.not_a_model(f"its response cannot be read ({type(error).__name__})")
        case anthropic.AnthropicError():
            return RequestFailed(NotAllowed, f"the credentials cannot be used: {error}")
    return failures.of_error(error)


def _content(request: Request) -> list[dict[str, object]]:
    parts = joined(request.prompt.content, pictures="image" not in request.omitted)
    return [_picture(part) if isinstance(part, Picture) else {"type": "text", "text": part} for part in parts]


def _picture(picture: Picture) -> dict[str, object]:
    encoded = base64.b64encode(picture.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": picture.media_type, "data": encoded}}


def _from_stream(events: Iterable[object]) -> dict[Any, Any]:
    """Assemble streamed events into the body of an unstreamed reply.

    Raise RequestFailed if the stream ends early or contains no reply.
    """
    body: dict[Any, Any] = {}
    texts: list[str] = []
    usage: dict[str, object] = {}
    for event in events:
        match event:
            case {"type": "message_start", "message": {**message}}:
                body = message
                usage.update(_mapping(message.get("usage")))
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                texts.append(text)
            case {"type": "message_delta", "delta": {**delta}, **rest}:
                body["stop_reason"] = delta.get("stop_reason")
                counts = _mapping(rest.get("usage"))
                usage.update({name: value for name, value in counts.items() if value is not None})
    if not body:
        raise failures.not_a_model("it sent no event of a reply")
    if body.get("stop_reason") is None:
        raise failures.cut_off("it ended early")
    return {**body, "content": [{"type": "text", "text": "".join(texts)}], "usage": usage}


def _reply(body: object, model: str) -> PlainReply:
    if not isinstance(body, Mapping):
        raise failures.not_a_model(f"it sent {type(body).__name__} instead of a message")
    content, stop = body.get("content"), _STOPS.get(str(body.get("stop_reason")))
    if not isinstance(content, list):
        raise failures.of_error_object(body) or failures.not_a_model("a reply without content")
    texts = [block["text"] for block in content if isinstance(block, Mapping) and isinstance(block.get("text"), str)]
    if stop is None and not texts:
        raise RequestFailed(Unusable, f"the reply has no text, and ended with {body.get('stop_reason')!r}")
    return PlainReply(
        text="".join(texts),
        stop=stop or EndReason.END,
        model=str(body.get("model") or model),
        usage=_usage(_mapping(body.get("usage"))),
    )


def _usage(usage: Mapping[str, object]) -> TokenUsage:
    """Return the token counts. The input tokens include cached ones, which this API counts separately."""
    cached = token_count(usage.get("cache_read_input_tokens"))
    fresh, written = token_count(usage.get("input_tokens")), token_count(usage.get("cache_creation_input_tokens"))
    total = None if fresh is None else fresh + (written or 0) + (cached or 0)
    return TokenUsage(input=total, output=token_count(usage.get("output_tokens")), cached=cached)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
