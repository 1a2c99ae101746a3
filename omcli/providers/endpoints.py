"""Model endpoints by name: protocol, address, key variables, default model and prices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from omcli.base.errors import BadConfiguration
from omcli.base.record import record
from omcli.llm.model import Price


class EndpointKind(StrEnum):
    """What is spoken with an endpoint."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    COMMAND = "command"
    SCRIPTED = "scripted"


@record
class Endpoint:
    """Somebody who runs models, or a way to reach them."""

    name: str
    protocol: EndpointKind
    base_url: str = ""
    url_variable: str = ""
    """Environment variable with another base URL."""
    key_variables: tuple[str, ...] = ()
    """Environment variables with a key, the first that is set counts."""
    model: str | None = None
    """Where none is named: a cheap one that does the work. None: one has to be named."""
    is_local: bool = False
    """Runs on machines of one's own: needs no key."""
    takes_images: bool = False


_ENDPOINTS = (
    Endpoint(
        name="anthropic",
        protocol=EndpointKind.ANTHROPIC,
        base_url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        model="claude-haiku-4-5",
        takes_images=True,
    ),
    Endpoint(
        name="openai",
        protocol=EndpointKind.OPENAI,
        base_url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        model="gpt-5-mini",
        takes_images=True,
    ),
    Endpoint(
        name="openrouter",
        protocol=EndpointKind.OPENAI,
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        model="google/gemini-2.5-flash",
        takes_images=True,
    ),
    Endpoint(
        name="gemini",
        protocol=EndpointKind.OPENAI,
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-2.5-flash",
        takes_images=True,
    ),
    Endpoint(
        name="ollama",
        protocol=EndpointKind.OPENAI,
        base_url="http://localhost:11434/v1",
        key_variables=("OLLAMA_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="lmstudio",
        protocol=EndpointKind.OPENAI,
        base_url="http://localhost:1234/v1",
        key_variables=("LMSTUDIO_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="vllm",
        protocol=EndpointKind.OPENAI,
        base_url="http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="llamacpp",
        protocol=EndpointKind.OPENAI,
        base_url="http://localhost:8080/v1",
        key_variables=("LLAMACPP_API_KEY",),
        model="default",  # it has one, whatever it is called
        is_local=True,
    ),
    Endpoint(name="command", protocol=EndpointKind.COMMAND, is_local=True),
    Endpoint(name="scripted", protocol=EndpointKind.SCRIPTED, is_local=True, takes_images=True),
)
ENDPOINTS: Mapping[str, Endpoint] = {endpoint.name: endpoint for endpoint in _ENDPOINTS}
_OF_KEYS = ("anthropic", "openai")
"""Whose keys alone make their models the observer."""


def endpoint(name: str) -> Endpoint:
    """The endpoint of this name. Raises BadConfiguration."""
    try:
        return ENDPOINTS[name]
    except KeyError:
        raise BadConfiguration(
            f"there is no model endpoint {name[:60]!r}", hint=f"one of: {', '.join(ENDPOINTS)}"
        ) from None


def split(model: str) -> tuple[str | None, str]:
    """The endpoint that a model's name begins with, and the rest: `ollama/qwen2.5:7b`.

    What stands before the first `/` counts where it is an endpoint: `openrouter/google/gemini-2.5-flash` is
    `google/gemini-2.5-flash` of OpenRouter, and `google/gemini-2.5-flash` a model of whatever endpoint is set.
    """
    prefix, slash, rest = model.partition("/")
    return (prefix, rest) if slash and prefix in ENDPOINTS else (None, model)


def endpoint_with_key(environment: Mapping[str, str]) -> str | None:
    """The endpoint that the keys of the environment are for: Anthropic before OpenAI; None where there is neither."""
    for name in _OF_KEYS:
        if any(environment.get(variable) for variable in ENDPOINTS[name].key_variables):
            return name
    return None


def checked_url(url: str) -> str:
    """The URL without its last slash. Raises BadConfiguration for one that no request can go to."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole or any(char.isspace() or not char.isprintable() for char in url):
        raise BadConfiguration(
            f"the base URL {url[:80]!r} is none", hint="it looks like `https://host/v1` or `http://localhost:11434/v1`"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadConfiguration(
            "a base URL is scheme, host and path, without user, query or fragment", hint="a key goes into its variable"
        )
    return url.rstrip("/")


def is_local_url(url: str) -> bool:
    """Whether a URL is of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


_PRICES = Path(__file__).with_name("prices.toml")
_PER = 1_000_000
_DATED = re.compile(r"(?:-20[0-9]{6}|-20[0-9]{2}-[0-9]{2}-[0-9]{2}|-latest)$")


def cost(
    model: str,
    *,
    endpoint: str,
    input_tokens: int | None,
    output_tokens: int | None,
    cached_tokens: int | None = None,
    own: Mapping[str, Price] | None = None,
) -> float | None:
    """US dollars for a call; None where the price or the number of tokens isn't known.

    `model` as it was asked for or as the endpoint names it, with vendor before it and date behind it or without;
    `input_tokens` with the cached ones. Prices of one's `own`, by model, come first; a local model costs nothing.
    """
    price = _price(model, own or {})
    if price is None:
        place = ENDPOINTS.get(endpoint)
        return 0.0 if place and place.is_local and place.protocol is not EndpointKind.COMMAND else None
    if input_tokens is None or output_tokens is None:
        return None
    cached = min(cached_tokens or 0, input_tokens)
    fresh = input_tokens - cached
    of_cached = price.input if price.cached is None else price.cached
    return (fresh * price.input + cached * of_cached + output_tokens * price.output) / _PER


def _price(model: str, own: Mapping[str, Price]) -> Price | None:
    bare = model.rpartition("/")[2]
    names = (model, bare, _DATED.sub("", bare))
    return next((prices[name] for prices in (own, _known()) for name in names if name in prices), None)


@cache
def _known() -> Mapping[str, Price]:
    import tomllib

    table = tomllib.loads(_PRICES.read_text(encoding="utf-8"))
    return {
        model: Price(input=price["input"], output=price["output"], cached=price["cached"])
        for model, price in table.items()
    }
