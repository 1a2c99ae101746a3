"""Every error of both SDKs, and of what is beneath them, comes to one of this program's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from omcli.base.errors import NotAllowed, NotAModel, OmError, PromptTooLong, ProviderFailed, UnknownModel, Unreachable
from omcli.providers import anthropic_messages, openai_chat
from omcli.providers.failures import message_in, of_status
from omcli.providers.wire import RequestFailed

# The libraries take seconds to import: every worker collects these tests, and one or two run them.
_NEVER_RAISED_HERE = {
    # What a WebSocket, a webhook, a cookie or a stream that is read twice gives.
    "WebSocketConnectionClosedError", "WebSocketQueueFullError", "InvalidWebhookSignatureError", "CookieConflict",
    "StreamError", "StreamConsumed", "StreamClosed", "ResponseNotRead", "RequestNotRead",
}  # fmt: skip


def errors_of(package: ModuleType, root: type[Exception]) -> Iterator[type[Exception]]:
    """Every error below a root that a package defines anywhere."""
    [folder] = package.__path__
    for name in ("_exceptions", "_error_classes", "_workload"):
        for path in Path(folder).rglob(f"{name}.py"):
            import_module(".".join((package.__name__, *path.relative_to(folder).with_suffix("").parts)))
    found = [root]
    for error in found:
        found += [below for below in error.__subclasses__() if below not in found]
    yield from (error for error in found if error.__module__.startswith(package.__name__))


def made(kind: type[Exception]) -> Exception:
    """An error of a class, however little is known of what it takes."""
    import httpx2

    request = httpx2.Request("POST", "http://127.0.0.1/v1")
    error = kind.__new__(kind)
    Exception.__init__(error, "what went wrong")
    wanted: dict[str, Any] = {
        "message": "what went wrong",
        "body": None,
        "request": request,
        "_request": request,
        "request_id": None,
    }
    status = getattr(kind, "status_code", 503)
    wanted["response"] = httpx2.Response(status, request=request)
    wanted["status_code"] = status
    for name, value in wanted.items():
        if not inspect.isdatadescriptor(inspect.getattr_static(kind, name, None)):
            setattr(error, name, value)
    return error


@cache
def kinds_of(endpoint: str) -> list[type[Exception]]:
    """Every error of an SDK."""
    import anthropic
    import openai

    if endpoint == "anthropic":
        return list(errors_of(anthropic, anthropic.AnthropicError))
    return list(errors_of(openai, openai.OpenAIError))


@cache
def cases(endpoint: str) -> list[type[Exception]]:
    """Every error that an ask may fail with, of an SDK and of what is beneath it."""
    import httpx2

    beneath = [
        kind
        for _, kind in inspect.getmembers(httpx2, inspect.isclass)
        if issubclass(kind, Exception) and not issubclass(kind, Warning)
    ]
    found = (*kinds_of(endpoint), *beneath, OSError, ValueError)
    return [kind for kind in found if kind.__name__ not in _NEVER_RAISED_HERE]


@pytest.mark.parametrize(
    ("endpoint", "translated"), [("anthropic", anthropic_messages.failure_of), ("openai", openai_chat.failure_of)]
)
def test_every_error_of_the_libraries_is_mapped(
    endpoint: str, translated: Callable[[Exception], RequestFailed]
) -> None:
    """F73, F75: no foreign error comes through, whatever the libraries add."""
    for kind in cases(endpoint):
        failed = translated(made(kind))
        assert issubclass(failed.kind, OmError), kind
        assert failed.kind is not OmError, kind
        assert failed.kind is not ProviderFailed or 400 <= (failed.status or 0) < 500, f"{kind}: a request is wrong"
        assert failed.text, kind


def test_the_list_of_errors_is_complete() -> None:
    """The test above can fail: it looks at something."""
    import anthropic
    import httpx2
    import openai

    assert len(cases("anthropic")) + len(cases("openai")) > 60
    assert {anthropic.OverloadedError, httpx2.RemoteProtocolError} <= set(cases("anthropic"))
    assert {openai.OAuthError, httpx2.RemoteProtocolError} <= set(cases("openai"))


def test_the_excluded_classes_exist() -> None:
    """A class that is gone from the libraries is to go from the list."""
    import httpx2
    import openai

    known = {name for package in (httpx2, openai) for name in dir(package)} | set(
        dir(import_module("openai._exceptions"))
    )
    known |= {kind.__name__ for endpoint in ("anthropic", "openai") for kind in kinds_of(endpoint)}
    assert known >= _NEVER_RAISED_HERE


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, "", NotAllowed), (402, "", NotAllowed), (403, "", NotAllowed),
        (404, "model `x` not found", UnknownModel),
        (408, "", Unreachable), (409, "", Unreachable), (429, "", Unreachable), (500, "", Unreachable),
        (529, "", Unreachable), (599, "", Unreachable),
        (413, "", PromptTooLong),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", PromptTooLong),
        (400, "Requested tokens (2500) exceed context window of 2048", PromptTooLong),
        (400, "the request exceeds the available context size", PromptTooLong),
        (400, "The input token count (1200000) exceeds the maximum", PromptTooLong),
        (400, "Your credit balance is too low", NotAllowed),
        (301, "", NotAModel),
        (400, "", ProviderFailed), (418, "", ProviderFailed),
    ],
)  # fmt: skip
def test_a_status_has_a_meaning(status: int, said: str, kind: type[OmError]) -> None:
    """F76, F77, F78, F82."""
    assert of_status(status, {"error": {"message": said}}).kind is kind


def test_the_code_of_an_error_counts_as_well() -> None:
    """F82."""
    body = {"error": {"message": "Too much.", "code": "context_length_exceeded"}}
    assert of_status(400, body).kind is PromptTooLong


def test_a_timeout_while_reading_is_not_a_missing_connection() -> None:
    """F74: both SDKs wrap it in an error that says nothing."""
    import anthropic
    import httpx2

    request = httpx2.Request("POST", "http://127.0.0.1/v1")
    for kind, said in ((httpx2.ReadTimeout, "no reply"), (httpx2.ConnectTimeout, "no connection")):
        error = anthropic.APITimeoutError(request=request)
        error.__cause__ = kind("timed out")
        assert said in anthropic_messages.failure_of(error).text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"message": "c"}, "c"),
        ({"detail": [{"msg": "d", "loc": []}]}, "d"),
        ([{"error": {"message": "e"}}], "e"),
        ("f\n", "f"),
        ("<!doctype html><html>", "a web page"),
        (None, ""),
        ({"error": None}, ""),
        (7, ""),
    ],
)
def test_the_message_is_found_wherever_an_endpoint_puts_it(body: object, said: str) -> None:
    """F80."""
    assert message_in(body) == said
