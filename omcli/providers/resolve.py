"""Building the configured provider. Its name, model, address and key are checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omcli.base.errors import BadConfiguration, NotAllowed
from omcli.base.record import record
from omcli.llm.model import Embedder, OutputModes, Provider
from omcli.providers.endpoints import ENDPOINTS, LOCAL, Endpoint, EndpointKind, checked_url, endpoint, is_local_url
from omcli.providers.wire import Wire

if TYPE_CHECKING:
    from omcli.providers.remote import RemoteTarget

_EMBEDDERS = {"openai": "text-embedding-3-small", "gemini": "gemini-embedding-001", "llamacpp": "default"}
"""Default models for vectors by endpoint. For other endpoints, a model must be named."""
_NO_KEY = "none"
"""Key sent to servers that need none, because OpenAI's SDK requires one."""


@record
class ModelSpec:
    """A model as given in the settings."""

    endpoint: str
    """Name of an endpoint in `endpoints.ENDPOINTS`."""
    model: str | None = None
    """None means the endpoint's default. For `command`, this is the command line; for `scripted`, the file of replies.
    """
    model_from: str = ""
    """Origin of the model's name, for error messages."""
    base_url: str | None = None
    key: str | None = None
    """None means the key in the environment."""
    timeout: float = 60.0
    """Seconds that a prompt may take, including all attempts."""
    query_timeout: float = 5.0
    """Seconds that the vector of a query may take, if that is less than `timeout`."""
    images: bool | None = None
    """True if the model accepts images. None means the endpoint's default."""
    effort: str | None = None
    """Reasoning effort. None means the endpoint's default."""
    role: str = "observer"
    """`observer`, `reflector` or `embeddings`. Error messages use it to say how to do without a model."""


def provider(spec: ModelSpec, *, environment: Mapping[str, str], output_modes: OutputModes) -> Provider:
    """Return a provider that is ready to use. Nothing is sent.

    Raise BadConfiguration if the endpoint is unknown, the model is not named, the timeout or the base URL is not valid,
    or a program or file of replies cannot be used. Raise NotAllowed if a key is needed but missing, or is not valid.
    """
    place, model = endpoint(spec.endpoint), model_of(spec)
    _check_wait(spec.timeout, "provider")
    takes_images = shows_images(spec)
    if place.kind is EndpointKind.COMMAND:
        from omcli.providers.command import command

        return command(model, seconds=spec.timeout)
    if place.kind is EndpointKind.SCRIPTED:
        from omcli.providers.scripted import Scripted

        return Scripted(Path(model), seconds=spec.timeout, takes_images=takes_images)
    return _remote(spec, place, model, takes_images=takes_images, environment=environment, output_modes=output_modes)


def _check_wait(seconds: float, section: str) -> None:
    if seconds <= 0:
        raise BadConfiguration(
            f"{seconds:g} s is not a valid timeout (expected more than 0)", hint=f"set `{section}.timeout`"
        )


def model_of(spec: ModelSpec) -> str:
    """Return the model's name, or the endpoint's default model. Raise BadConfiguration if there is neither, or if the
    endpoint is unknown.
    """
    place = endpoint(spec.endpoint)
    model = spec.model or place.model
    if model is None:
        raise BadConfiguration(f"{place.name} needs a model", hint=f"name it: `--model {place.name}/NAME`")
    return model


def shows_images(spec: ModelSpec) -> bool:
    """Return True if images are shown to the model. Raise BadConfiguration if the endpoint is unknown."""
    return endpoint(spec.endpoint).takes_images if spec.images is None else spec.images


def _remote(
    spec: ModelSpec,
    place: Endpoint,
    model: str,
    *,
    takes_images: bool,
    environment: Mapping[str, str],
    output_modes: OutputModes,
) -> Provider:
    from omcli.providers.remote import RemoteModel

    target = _target(spec, place, environment)
    has_profile = place.kind is EndpointKind.ANTHROPIC and not target.secrets and _has_default_key(environment)
    is_own_url = bool(spec.base_url or environment.get(place.url_variable))
    return RemoteModel(
        target=target,
        model=model,
        wire=_wire(
            place,
            address=target.address if is_own_url or not has_profile else None,
            key=None if has_profile else _key(target),
            effort=spec.effort,
        ),
        output_modes=output_modes,
        seconds=spec.timeout,
        takes_images=takes_images,
    )


def embedder(spec: ModelSpec, *, environment: Mapping[str, str]) -> Embedder:
    """Return a model that makes vectors, at an endpoint with OpenAI's protocol. Nothing is sent. Raise BadConfiguration
    and NotAllowed as `provider` does.
    """
    from omcli.providers.embeddings import RemoteEmbedder

    known = [name for name, each in ENDPOINTS.items() if each.kind is EndpointKind.OPENAI]
    place = endpoint(spec.endpoint, known=(LOCAL, *known))
    if place.name not in known:
        raise BadConfiguration(f"{place.name} makes no vectors", hint=f"one of: {', '.join((LOCAL, *known))}")
    model = spec.model or _EMBEDDERS.get(place.name)
    if model is None:
        raise BadConfiguration(f"{place.name} needs a model for vectors", hint="name it: `embeddings.model`")
    for seconds, name in ((spec.timeout, "provider"), (spec.query_timeout, "embeddings")):
        _check_wait(seconds, name)
    target = _target(spec, place, environment)
    return RemoteEmbedder(
        target,
        model,
        key=_key(target),
        seconds=spec.timeout,
        query_seconds=min(spec.timeout, spec.query_timeout),
        names_account=place.name == "openai",
    )


def _target(spec: ModelSpec, place: Endpoint, environment: Mapping[str, str]) -> RemoteTarget:
    """Return the address and the key, if any. Raise BadConfiguration if the base URL is not valid, and NotAllowed if a
    key is needed but missing, or is not valid.
    """
    from omcli.providers.remote import RemoteTarget

    address = checked_url(spec.base_url or environment.get(place.url_variable) or place.base_url)
    variable = next((name for name in place.key_variables if environment.get(name)), None)
    key_from = "the settings" if spec.key else variable or ""
    key = _checked_key(spec.key or (environment[variable] if variable else ""), key_from)
    has_profile = place.kind is EndpointKind.ANTHROPIC and _has_default_key(environment)
    if not (key or has_profile or place.is_local or is_local_url(address)):
        otherwise = (
            "unset `embeddings.provider`"
            if spec.role == "embeddings"
            else f"use rules with `--{spec.role} rules` or OM_{spec.role.upper()}_PROVIDER=rules"
        )
        raise NotAllowed(
            f"{place.name} needs a key, and {' or '.join(place.key_variables)} is not set",
            hint=f"set {place.key_variables[0]}, or {otherwise}",
        )
    return RemoteTarget(
        endpoint=place.name,
        address=address,
        key_from=key_from or ("a profile of Anthropic's SDK" if has_profile else ""),
        model_from=spec.model_from,
        secrets=(key,) if key else (),
    )


def _key(target: RemoteTarget) -> str:
    return next(iter(target.secrets), _NO_KEY)


def _wire(place: Endpoint, *, address: str | None, key: str | None, effort: str | None) -> Wire:
    if place.kind is EndpointKind.ANTHROPIC:
        from omcli.providers.anthropic_messages import AnthropicMessages

        root = address and address.removesuffix("/v1")  # the SDK adds it
        return AnthropicMessages(base_url=root, key=key, effort=effort)
    from omcli.providers.openai_chat import OpenaiChat

    # Other servers silently ignore the newer name, and with it the limit.
    is_original = place.name == "openai" and address == place.base_url
    limits = ("max_completion_tokens", "max_tokens") if is_original else ("max_tokens", "max_completion_tokens")
    return OpenaiChat(
        base_url=address or place.base_url,
        key=key or _NO_KEY,
        limits=limits,
        names_account=place.name == "openai",
        effort=effort,
    )


def _checked_key(key: str, key_from: str) -> str | None:
    """Return the key without surrounding spaces, or None if it is empty. Raise NotAllowed if it cannot be sent."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise NotAllowed(
            f"the value of {key_from} is not a valid key", hint="a key is one word; was more copied with it?"
        )
    return key or None


def _has_default_key(environment: Mapping[str, str]) -> bool:
    """Return True if Anthropic's SDK can find credentials itself, in a profile or by workload identity federation."""
    if environment.get("ANTHROPIC_PROFILE") or environment.get("ANTHROPIC_FEDERATION_RULE_ID"):
        return True
    home = environment.get("HOME")
    folder = environment.get("ANTHROPIC_CONFIG_DIR") or (f"{home}/.config/anthropic" if home else "")
    return bool(folder) and ((Path(folder) / "active_config").is_file() or any(Path(folder).glob("configs/*.json")))
