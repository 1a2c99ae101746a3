"""Model endpoints by name: protocol, address, key variables, default model and prices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from omcli.base.errors import BadConfiguration
from omcli.base.record import record

if TYPE_CHECKING:
    from omcli.llm.model import Price


LOCAL = "local"
"""Provider name that selects a model for vectors in an installed package."""


class EndpointKind(StrEnum):
    """Wire protocol of an endpoint. COMMAND and SCRIPTED mean a program or a file in place of a model."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    COMMAND = "command"
    SCRIPTED = "scripted"


@record
class Endpoint:
    """A service that runs models, or a program or file that replaces one."""

    name: str
    kind: EndpointKind
    base_url: str = ""
    url_variable: str = ""
    """Environment variable that overrides the base URL."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may contain a key. The first one that is set is used."""
    model: str | None = None
    """Default model, cheap and good enough. None means that the user must name one."""
    is_local: bool = False
    """True if the endpoint runs on the user's own machines and needs no key."""
    takes_images: bool = False
    names_vendors: bool = False
    """True if its models are named VENDOR/NAME. A vendor may have the name of another endpoint."""


_ENDPOINTS = (
    Endpoint(
        name="anthropic",
        kind=EndpointKind.ANTHROPIC,
        base_url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        model="claude-haiku-4-5",
        takes_images=True,
    ),
    Endpoint(
        name="openai",
        kind=EndpointKind.OPENAI,
        base_url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        model="gpt-5-mini",
        takes_images=True,
    ),
    Endpoint(
        name="openrouter",
        kind=EndpointKind.OPENAI,
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        model="google/gemini-2.5-flash",
        takes_images=True,
        names_vendors=True,
    ),
    Endpoint(
        name="gemini",
        kind=EndpointKind.OPENAI,
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-2.5-flash",
        takes_images=True,
    ),
    Endpoint(
        name="ollama",
        kind=EndpointKind.OPENAI,
        base_url="http://localhost:11434/v1",
        key_variables=("OLLAMA_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="lmstudio",
        kind=EndpointKind.OPENAI,
        base_url="http://localhost:1234/v1",
        key_variables=("LMSTUDIO_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="vllm",
        kind=EndpointKind.OPENAI,
        base_url="http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="llamacpp",
        kind=EndpointKind.OPENAI,
        base_url="http://localhost:8080/v1",
        key_variables=("LLAMACPP_API_KEY",),
        model="default",  # it serves a single model under any name
        is_local=True,
    ),
    Endpoint(name="command", kind=EndpointKind.COMMAND, is_local=True),
    Endpoint(name="scripted", kind=EndpointKind.SCRIPTED, is_local=True, takes_images=True),
)
ENDPOINTS: Mapping[str, Endpoint] = {endpoint.name: endpoint for endpoint in _ENDPOINTS}


def endpoint(name: str, *, known: Iterable[str] = ENDPOINTS) -> Endpoint:
    """Return the endpoint with this name. Raise BadConfiguration, with the `known` names, if the name is unknown."""
    try:
        return ENDPOINTS[name]
    except KeyError:
        raise BadConfiguration(f"{name[:60]!r} is not a known provider", hint=f"one of: {', '.join(known)}") from None


def split_model(model: str, provider: str | None = None) -> tuple[str | None, str]:
    """Split a name such as `ollama/qwen2.5:7b` into endpoint and model. The endpoint is None if the name contains none.

    The part before the first `/` is an endpoint only if it is the name of one: `openrouter/google/gemini-2.5-flash`
    means `google/gemini-2.5-flash` at OpenRouter, but `google/gemini-2.5-flash` is a model at the configured endpoint.
    If that endpoint (`provider`) names its models VENDOR/NAME, only its own name counts: for `openrouter`, the whole of
    `openai/gpt-4o` is the name of a model.
    """
    prefix, slash, rest = model.partition("/")
    named = ENDPOINTS.get(provider or "")
    is_vendor = named is not None and named.names_vendors and prefix != provider
    return (prefix, rest) if slash and prefix in ENDPOINTS and not is_vendor else (None, model)


def checked_url(url: str) -> str:
    """Return the URL without trailing slashes. Raise BadConfiguration if it is not usable as a base URL."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole or any(char.isspace() or not char.isprintable() for char in url):
        raise BadConfiguration(
            f"{url[:80]!r} is not a valid base URL",
            hint="expected something like `https://host/v1` or `http://localhost:11434/v1`",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadConfiguration(
            "a base URL has no user, query or fragment", hint="put the key into its environment variable"
        )
    return url.rstrip("/")


def is_local_url(url: str) -> bool:
    """Return True if a URL points to this machine."""
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
    """Return the cost of a call in US dollars, or None if the price or a token count is unknown.

    `model` may have a vendor prefix and a date suffix. `input_tokens` includes the cached ones. Prices in `own`, by
    model name, take precedence. A local model without a price costs nothing, but the cost of a command is unknown.
    """
    price = _price(model, own or {})
    if price is None:
        place = ENDPOINTS.get(endpoint)
        return 0.0 if place and place.is_local and place.kind is not EndpointKind.COMMAND else None
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

    from omcli.llm.model import Price

    table = tomllib.loads(_PRICES.read_text(encoding="utf-8"))
    return {
        model: Price(input=price["input"], output=price["output"], cached=price["cached"])
        for model, price in table.items()
    }
