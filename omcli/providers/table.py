"""The endpoints by name: which wire, where, whose key, and which model where none is named."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from omcli.base.errors import BadConfiguration
from omcli.base.record import record


class Protocol(StrEnum):
    """What is spoken with an endpoint."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    COMMAND = "command"
    SCRIPTED = "scripted"


@record
class Endpoint:
    """Somebody who runs models, or a way to reach them."""

    name: str
    protocol: Protocol
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
        protocol=Protocol.ANTHROPIC,
        base_url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        model="claude-haiku-4-5",
        takes_images=True,
    ),
    Endpoint(
        name="openai",
        protocol=Protocol.OPENAI,
        base_url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        model="gpt-5-mini",
        takes_images=True,
    ),
    Endpoint(
        name="openrouter",
        protocol=Protocol.OPENAI,
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        model="google/gemini-2.5-flash",
        takes_images=True,
    ),
    Endpoint(
        name="gemini",
        protocol=Protocol.OPENAI,
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini-2.5-flash",
        takes_images=True,
    ),
    Endpoint(
        name="ollama",
        protocol=Protocol.OPENAI,
        base_url="http://localhost:11434/v1",
        key_variables=("OLLAMA_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="lmstudio",
        protocol=Protocol.OPENAI,
        base_url="http://localhost:1234/v1",
        key_variables=("LMSTUDIO_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="vllm",
        protocol=Protocol.OPENAI,
        base_url="http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        is_local=True,
    ),
    Endpoint(
        name="llamacpp",
        protocol=Protocol.OPENAI,
        base_url="http://localhost:8080/v1",
        key_variables=("LLAMACPP_API_KEY",),
        model="default",  # it has one, whatever it is called
        is_local=True,
    ),
    Endpoint(name="command", protocol=Protocol.COMMAND, is_local=True),
    Endpoint(name="scripted", protocol=Protocol.SCRIPTED, is_local=True, takes_images=True),
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


def from_environment(environment: Mapping[str, str]) -> str | None:
    """The endpoint that the keys of the environment are for: Anthropic before OpenAI; None where there is neither."""
    for name in _OF_KEYS:
        if any(environment.get(variable) for variable in ENDPOINTS[name].key_variables):
            return name
    return None
