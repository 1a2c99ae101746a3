"""What went wrong with a request, in this program's words: by status, by what the connection did, by what came back."""

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
)
from omcli.providers.wire import RequestFailed
from omcli.text.redaction import redact

UNREADABLE = (OSError, ValueError, RecursionError)
"""What comes through the libraries as it is: of a socket, of text that is no UTF-8 or JSON, of JSON too deep."""
_TRIES = 3
_REACH = "check the network and the base URL; nothing is lost"
_LATER = "try again later; nothing is lost"
CONNECTING = 4.0
"""Seconds until an endpoint has to take the connection, and after which one that doesn't isn't tried again."""
_TOO_LONG = (
    "context length", "context window", "context size", "context_length", "context_window", "maximum context",
    "prompt is too long", "input is too long", "too many tokens", "too many input tokens", "input token count",
    "exceed_context", "reduce the length", "request_too_large", "prompt too long",
)  # fmt: skip
_OUT_OF_MONEY = ("insufficient_quota", "credit balance", "exceeded your current quota")
_LONGEST = 200
_SEARCHED = 10_000
"""Characters of an error in which words are looked for."""
_HTML = re.compile(r"\s*<(?:!doctype|html|head|body)", re.IGNORECASE)


def in_a_line(said: str) -> str:
    """What went wrong on one line, without a secret, and not too long for a terminal."""
    line = " ".join(redact(said).text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def said_in(body: object) -> str:
    """The message in the body of an error, wherever this endpoint puts it; empty where there is none."""
    match body:
        case str():
            return "a web page" if _HTML.match(body) else body.strip()
        case [first, *_]:
            return said_in(first)
        case Mapping():
            found = (said_in(body.get(name)) for name in ("error", "message", "detail", "msg"))
            return next((said for said in found if said), "")
    return ""


def of_status(status: int, body: object, headers: Mapping[str, str] | None = None) -> RequestFailed:
    """An answer that is an error."""
    said, all_said = said_in(body), str(body)[:_SEARCHED].lower()
    kind, hint = _kind(status, all_said)
    passes = kind is Unreachable and (headers or {}).get("x-should-retry") != "false"
    return RequestFailed(
        kind,
        f"{said} (HTTP {status})" if said else f"HTTP {status}",
        hint=hint,
        status=status,
        said=all_said,
        tries=_TRIES if passes else 1,
        retry_after=_retry_after(headers or {}),
    )


def json_of(text: str) -> object:
    """The body of a success. Raises RequestFailed where it is no JSON."""
    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        raise not_a_model("it sent a web page" if _HTML.match(text) else "what it sent is no JSON") from None
    return body


def _kind(status: int, said: str) -> tuple[type[OmError], str]:
    if status in (401, 402, 403) or any(phrase in said for phrase in _OUT_OF_MONEY):
        return NotAllowed, ""
    if status == 413 or (status in (400, 422, 500) and any(phrase in said for phrase in _TOO_LONG)):
        return PromptTooLong, "observe less at once: a smaller `observe.batch_tokens`"
    if status == 404:
        if "model" in said:
            return UnknownModel, "name another with `--model`"
        return BadConfiguration, "check the base URL, most end in `/v1`: there is nothing at this address"
    if status in (408, 409, 425, 429) or status >= 500:
        return Unreachable, _LATER
    if status < 400:
        return NotAModel, "check the base URL: it leads elsewhere"
    return ProviderFailed, "the endpoint does not take this request; try another model"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:  # absent, or a date, which clocks disagree about
            continue
        if seconds >= 0:
            return seconds
    return None


def of_http(error: Exception) -> RequestFailed:
    """A failure of httpx2, or of what is beneath it, with an SDK's own error around it or not."""
    import httpx2

    chain = _chain(error)
    inner = chain[-1]
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
        return RequestFailed(Unreachable, f"the connection broke: {_told(inner)}", hint=_LATER, tries=_TRIES)
    if any(isinstance(one, httpx2.DecodingError | httpx2.TooManyRedirects | ValueError) for one in chain):
        return not_a_model(f"what it sent cannot be read ({type(inner).__name__})")
    if any(isinstance(one, httpx2.ReadTimeout | httpx2.WriteTimeout | httpx2.PoolTimeout) for one in chain):
        return RequestFailed(Unreachable, "no answer in time", hint=_LATER)
    return RequestFailed(
        Unreachable,
        f"no connection: {_told(inner)}",
        hint=_REACH,
        tries=_TRIES,
        delay=0.5,
        within=CONNECTING,
    )


def of_break(told: str) -> RequestFailed:
    """The reply began and did not end: asked once more."""
    return RequestFailed(Unreachable, f"the reply broke off: {told}", hint=_LATER, tries=2)


def of_silence(seconds: float) -> RequestFailed:
    """The deadline came before the answer."""
    return RequestFailed(
        Unreachable, f"no answer within {seconds:g} s", hint="a slow model needs a longer `provider.timeout`"
    )


def of_nobody() -> RequestFailed:
    """Nobody took the connection in the time that is allowed for that."""
    return RequestFailed(Unreachable, f"no connection within {CONNECTING:g} s", hint=_REACH, tries=1)


def not_a_model(found: str) -> RequestFailed:
    """Something answered that is no endpoint of this protocol."""
    return RequestFailed(
        NotAModel,
        f"this is not a model endpoint: {found}",
        hint="check the base URL, and whether the network asks for a login",
    )


def of_error_object(body: Mapping[Any, Any]) -> RequestFailed | None:
    """A success that holds an error, as gateways send it; None where it holds none."""
    error = body.get("error")
    if not error:
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, int) and 400 <= code < 600:
        return of_status(code, body)
    return RequestFailed(NotAModel, f"it answered with an error: {said_in(body) or 'without a message'}")


def _chain(error: BaseException) -> list[BaseException]:
    """An error and what led to it: what the libraries say of their own is `Connection error.`"""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
