"""The OpenAI chat completions API, which most servers support, through OpenAI's SDK and at any base URL."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omcli.base.errors import Unusable
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
    import httpx2
    import openai

_STOPS = {"stop": EndReason.END, "length": EndReason.LENGTH, "content_filter": EndReason.REFUSAL}

_EFFORT = "reasoning_effort"


@record
class OpenaiChat:
    """`POST /chat/completions` at a base URL."""

    base_url: str
    key: str
    """Never empty, because the SDK requires a key even if the server does not."""
    limits: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Possible names of the field that limits output tokens. The first one is tried first."""
    names_account: bool = False
    """True if the SDK may send the organisation and project that are set in the environment."""
    effort: str | None = None
    """Reasoning effort. None means the endpoint's default."""

    @property
    def output_modes(self) -> tuple[OutputMode, ...]:
        """All modes, the strictest first."""
        return tuple(OutputMode)

    def prepare(self) -> None:
        """Import the SDK."""
        import openai  # noqa: F401

    def optional(self, request: Request) -> tuple[str, ...]:
        """Return the optional fields that this request sends, such as `temperature`, `image` or the output limit."""
        prompt = request.prompt
        sent = {
            "temperature": prompt.temperature is not None,
            _EFFORT: self.effort is not None,
            "stream_options": request.is_stream,
            "image": any(isinstance(part, Picture) for part in prompt.content),
        }
        limit = self._limit(request)
        names = (*(name for name, is_sent in sent.items() if is_sent), *((limit,) if limit else ()))
        return tuple(name for name in names if name not in request.omitted)

    def send(self, request: Request, *, http: httpx2.Client, seconds: float) -> PlainReply:
        """Send one request and return its reply. Raise RequestFailed if there is no usable reply."""
        import httpx2
        import openai

        try:
            client = new_client(self.base_url, self.key, http, seconds, names_account=self.names_account)
            if request.is_stream:
                with client.chat.completions.create(**self._parameters(request), stream=True) as events:
                    body: object = _from_stream(map(as_plain, events))
            else:
                raw = client.chat.completions.with_raw_response.create(**self._parameters(request))
                body = failures.parse_json(raw.http_response.text)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, *failures.UNREADABLE) as error:
            raise failure_of(error) from error
        return _reply(body, request.model)

    def _limit(self, request: Request) -> str | None:
        if request.prompt.max_output is None:
            return None
        return next((name for name in self.limits if name not in request.omitted), None)

    def _parameters(self, request: Request) -> dict[str, Any]:
        prompt = request.prompt
        parameters: dict[str, Any] = {
            "model": request.model,
            "messages": [
                {"role": "system", "content": system_text(prompt, request.output_mode)},
                {"role": "user", "content": _content(request)},
            ],
        }
        if limit := self._limit(request):
            parameters[limit] = prompt.max_output
        if prompt.temperature is not None and "temperature" not in request.omitted:
            parameters["temperature"] = prompt.temperature
        if self.effort is not None and _EFFORT not in request.omitted:
            parameters[_EFFORT] = self.effort
        if request.is_stream and "stream_options" not in request.omitted:
            parameters["stream_options"] = {"include_usage": True}
        if request.output_mode is not OutputMode.PROMPT:
            parameters["response_format"] = _output_format(request)
        return parameters


def new_client(base_url: str, key: str, http: httpx2.Client, seconds: float, *, names_account: bool) -> openai.OpenAI:
    """Return a client of the SDK that sends each request once. `names_account` is as in `OpenaiChat`."""
    import openai

    client = openai.OpenAI(api_key=key, base_url=base_url, timeout=seconds, max_retries=0, http_client=http)
    if not names_account:
        client.organization = client.project = None
    return client


def failure_of(error: Exception) -> RequestFailed:
    """Return the failure for an error raised by the SDK or by a layer below it."""
    import openai

    match error:
        case openai.APIStatusError():
            return failures.of_status(error.status_code, error.body, error.response.headers)
        case openai.APIConnectionError():
            return failures.of_error(error)
        case openai.APIResponseValidationError():
            return failures.not_a_model(f"its response cannot be read ({type(error).__name__})")
        case openai.APIError():  # an error in the middle of a stream
            return failures.cut_off(error.message)
        case openai.OpenAIError():
            return RequestFailed(Unusable, f"the reply cannot be used: {type(error).__name__}")
    return failures.of_error(error)


def _output_format(request: Request) -> dict[str, object]:
    schema = dict(request.prompt.schema)
    if request.output_mode is OutputMode.JSON_OBJECT:
        return {"type": "json_object", "schema": schema}  # llama.cpp's form; others ignore the schema
    return {"type": "json_schema", "json_schema": {"name": request.prompt.name, "strict": True, "schema": schema}}


def _content(request: Request) -> str | list[dict[str, object]]:
    """Return the content as a single string if it has no pictures, because some servers do not accept a list."""
    parts = joined(request.prompt.content, pictures="image" not in request.omitted)
    if all(isinstance(part, str) for part in parts):
        return "".join(part for part in parts if isinstance(part, str))
    return [_picture(part) if isinstance(part, Picture) else {"type": "text", "text": part} for part in parts]


def _picture(picture: Picture) -> dict[str, object]:
    encoded = base64.b64encode(picture.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{encoded}"}}


def _from_stream(events: Iterable[object]) -> dict[str, object]:
    """Assemble streamed events into the body of an unstreamed reply.

    Raise RequestFailed if the stream ends early or contains no reply.
    """
    body: dict[str, object] = {}
    texts: list[str] = []
    refusals: list[str] = []
    finish: object = None
    for event in events:
        if not isinstance(event, Mapping):
            continue
        body.update({name: event[name] for name in ("model", "usage") if event.get(name)})
        match event.get("choices"):
            case [{"delta": {**delta}, **choice}, *_]:
                finish = choice.get("finish_reason") or finish
                texts += [text] if isinstance(text := delta.get("content"), str) else []
                refusals += [text] if isinstance(text := delta.get("refusal"), str) else []
            case None:
                raise failures.of_error_object(event) or failures.not_a_model("an event without choices")
    if finish is None:
        raise failures.cut_off("it ended early") if body else failures.not_a_model("it sent no event of a reply")
    message = {"content": "".join(texts), "refusal": "".join(refusals) or None}
    return {**body, "choices": [{"message": message, "finish_reason": finish}]}


def _reply(body: object, model: str) -> PlainReply:
    match body:
        case {"choices": [{"message": {**message}, **choice}, *_], **rest}:
            finish = choice.get("finish_reason")
        case {**rest}:
            raise failures.of_error_object(rest) or failures.not_a_model("a reply without choices")
        case _:
            raise failures.not_a_model(f"it sent {type(body).__name__} instead of a completion")
    content, refusal = message.get("content"), message.get("refusal")
    stop = EndReason.REFUSAL if refusal and not content else _STOPS.get(str(finish))
    if finish == "error":
        raise failures.cut_off(failures.message_in(choice) or "it ended with an error")
    if not isinstance(content, str) and stop in (None, EndReason.END):
        raise failures.of_error_object(rest) or RequestFailed(
            Unusable, f"the reply has no content, and ended with {finish!r}"
        )
    return PlainReply(
        text=content if isinstance(content, str) else str(refusal or ""),
        stop=stop or EndReason.END,
        model=str(rest.get("model") or model),
        usage=_usage(rest.get("usage")),
    )


def _usage(usage: object) -> TokenUsage:
    if not isinstance(usage, Mapping):
        return TokenUsage()
    details = usage.get("prompt_tokens_details")
    return TokenUsage(
        input=token_count(usage.get("prompt_tokens")),
        output=token_count(usage.get("completion_tokens")),
        cached=token_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
    )
