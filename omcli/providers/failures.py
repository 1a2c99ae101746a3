"""Conversion of HTTP statuses, connection errors and unexpected responses into failures with om's own messages."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from typing import Any

from omcli.base.errors import (
    BadConfiguration,
    NotAllowed,
    NotAModel,
    OmError,
    PromptTooLong,
    ProviderFailed,
    UnknownModel,
    Unreachable,
    Unusable,
)
from omcli.providers.wire import RequestFailed
from omcli.text.redaction import redact

UNREADABLE = (OSError, ValueError, RecursionError)
"""Errors that the libraries do not wrap: socket errors, invalid UTF-8 or JSON, and JSON that is nested too deeply."""
_TRIES = 3
_REACH = "check the network and the base URL; nothing is lost"
_LATER = "try again later; nothing is lost"
CONNECTING = 4.0
"""Timeout for establishing a connection, in seconds. It also ends the time in which a failed connection is retried,
counted from the first attempt.
"""
_TOO_LONG = (
    "context length", "context window", "context size", "context_length", "context_window", "maximum context",
    "prompt is too long", "input is too long", "too many tokens", "too many input tokens", "input token count",
    "exceed_context", "reduce the length", "request_too_large", "prompt too long",
)  # fmt: skip
_OUT_OF_MONEY = ("insufficient_quota", "credit balance", "exceeded your current quota")
_LONGEST = 200
_SEARCHED = 10_000
"""Maximum number of characters of an error to search for known phrases."""
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body)", re.IGNORECASE)


def as_one_line(message: str) -> str:
    """Return a message as one line of at most 200 characters, with secrets removed."""
    line = " ".join(redact(message).text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def message_in(body: object) -> str:
    """Return the message in the body of an error, or an empty string if there is none.

    Endpoints put the message into different fields. An HTML body is described as "a web page".
    """
    match body:
        case str():
            return "a web page" if _HTML.match(body) else body.strip()
        case [first, *_]:
            return message_in(first)
        case Mapping():
            found = (message_in(body.get(name)) for name in ("error", "message", "detail", "msg"))
            return next((message for message in found if message), "")
    return ""


def of_status(status: int, body: object, headers: Mapping[str, str] | None = None) -> RequestFailed:
    """Return the failure for a response with an error status."""
    message, whole = message_in(body), str(body)[:_SEARCHED].lower()
    kind, hint = _kind(status, whole)
    is_temporary = kind is Unreachable and (headers or {}).get("x-should-retry") != "false"
    return RequestFailed(
        kind,
        f"{message} (HTTP {status})" if message else f"HTTP {status}",
        hint=hint,
        status=status,
        body=whole,
        tries=_TRIES if is_temporary else 1,
        retry_after=_retry_after(headers or {}),
    )


def parse_json(text: str) -> object:
    """Parse the body of a successful response. Raise RequestFailed if it is not JSON."""
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        raise not_a_model("it sent a web page" if _HTML.match(text) else "it sent something other than JSON") from None
    return body


def _kind(status: int, body: str) -> tuple[type[OmError], str]:
    if status in (401, 402, 403) or any(phrase in body for phrase in _OUT_OF_MONEY):
        return NotAllowed, ""
    if status == 413 or (status in (400, 422, 500) and any(phrase in body for phrase in _TOO_LONG)):
        return PromptTooLong, "observe less at once: a smaller `observe.batch_tokens`"
    if status == 404:
        if "model" in body:
            return UnknownModel, "name another with `--model`"
        return BadConfiguration, "check the base URL, most end in `/v1`: nothing was found at this address"
    if status in (408, 409, 425, 429) or status >= 500:
        return Unreachable, _LATER
    if status < 400:
        return NotAModel, "check the base URL: it redirects elsewhere"
    return ProviderFailed, "the endpoint does not accept this request; try another model"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:  # absent, or a date, which is useless if clocks disagree
            continue
        if seconds >= 0:
            return seconds
    return None


def of_error(error: Exception) -> RequestFailed:
    """Return the failure for an error raised by httpx2 or a layer below it; an SDK may have wrapped the error."""
    import httpx2

    from omcli.providers.client import ReplyTooLong

    chain = _all_errors(error)
    inner = chain[-1]
    if isinstance(inner, ReplyTooLong):
        return RequestFailed(Unusable, str(inner))
    if isinstance(inner, ssl.SSLCertVerificationError):
        return RequestFailed(
            Unreachable,
            f"the certificate cannot be verified: {inner.verify_message}",
            hint="install the system's CA certificates (`ca-certificates`), or name a file of them with SSL_CERT_FILE",
        )
    if isinstance(inner, ssl.SSLError):
        return RequestFailed(Unreachable, f"no TLS: {inner.reason or inner}", hint="check `https` in the base URL")
    if any(isinstance(one, httpx2.InvalidURL | httpx2.UnsupportedProtocol) for one in chain):
        return RequestFailed(BadConfiguration, f"the base URL cannot be used: {inner}")
    if any(isinstance(one, httpx2.ReadError | httpx2.RemoteProtocolError) for one in chain):
        return RequestFailed(Unreachable, f"the connection broke: {_message(inner)}", hint=_LATER, tries=_TRIES)
    if any(isinstance(one, httpx2.DecodingError | httpx2.TooManyRedirects | ValueError) for one in chain):
        return not_a_model(f"its response cannot be read ({type(inner).__name__})")
    if any(isinstance(one, httpx2.ReadTimeout | httpx2.WriteTimeout | httpx2.PoolTimeout) for one in chain):
        return RequestFailed(Unreachable, "no reply in time", hint=_LATER)
    return RequestFailed(
        Unreachable,
        f"no connection: {_message(inner)}",
        hint=_REACH,
        tries=_TRIES,
        delay=0.5,
        within=CONNECTING,
    )


def cut_off(reason: str) -> RequestFailed:
    """Return the failure for a reply that broke off. The request is retried once."""
    return RequestFailed(Unreachable, f"the reply broke off: {reason}", hint=_LATER, tries=2)


def no_reply(seconds: float, setting: str) -> RequestFailed:
    """Return the failure for a missed deadline. `setting` is the key that sets `seconds`."""
    return RequestFailed(Unreachable, f"no reply within {seconds:g} s", hint=f"a slow model needs a longer `{setting}`")


def not_connected() -> RequestFailed:
    """Return the failure for a connection that timed out."""
    return RequestFailed(Unreachable, f"no connection within {CONNECTING:g} s", hint=_REACH, tries=1)


def not_a_model(found: str) -> RequestFailed:
    """Return the failure for a response that does not follow the endpoint's protocol."""
    return RequestFailed(
        NotAModel,
        f"this is not a model endpoint: {found}",
        hint="check the base URL, and whether the network asks for a login",
    )


def of_error_object(body: Mapping[Any, Any]) -> RequestFailed | None:
    """Return the failure for an error inside a successful response, as sent by gateways, or None if there is none."""
    error = body.get("error")
    if not error:
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, int) and 400 <= code < 600:
        return of_status(code, body)
    return RequestFailed(NotAModel, f"it replied with an error: {message_in(body) or 'no message'}")


def _all_errors(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, the innermost last. Often only the inner ones have a useful message."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
