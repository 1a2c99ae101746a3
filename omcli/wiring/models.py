"""Which model observes and which reflects, by settings and environment; rules where neither names one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from omcli.base.errors import BadConfiguration, NoInput, NotAllowed
from omcli.base.record import record, replace
from omcli.memory.batch import SlicedObserver
from omcli.memory.ports import Lane
from omcli.memory.reflection import Reflector
from omcli.memory.tokens import TokenCounter

if TYPE_CHECKING:
    from omcli.llm.model import ModelCall, OutputMode, Provider, Reply, Spent
    from omcli.operations.clock import Clock
    from omcli.providers.resolve import ModelSpec
    from omcli.reflectors.prompt import CompressionLevels
    from omcli.settings.settings import ModelSettings, Settings
    from omcli.sqlite.store import SqliteStore

RULES = "rules"
"""The provider that is no model."""
_DONE = {Lane.OBSERVE: "observed", Lane.REFLECT: "reflected"}
_ROLE = {Lane.OBSERVE: "observer", Lane.REFLECT: "reflector"}


@record
class Surroundings:
    """What models work with beside their settings."""

    settings: Settings
    store: Callable[[], SqliteStore]
    """Where the ledger of calls is kept."""
    clock: Clock
    counter: TokenCounter
    warn: Callable[[str], None]
    picture: Callable[[str], bytes | None]
    """The bytes of an image that waits to be seen, by its digest."""


def spec_of(role: ModelSettings, settings: Settings, environment: Mapping[str, str]) -> ModelSpec | None:
    """The model of a role; None for rules. Raises BadConfiguration for a model that nobody says the endpoint of."""
    from omcli.providers.endpoints import endpoint_with_key, split_model

    if role.provider == RULES:
        return None
    of_name, model = split_model(role.model) if role.model else (None, None)
    endpoint = of_name or role.provider or endpoint_with_key(environment)
    if endpoint is None and model is None:
        return None
    if endpoint is None:
        raise BadConfiguration(
            f"nothing says whose model `{model}` is", hint=f"say so: `--model ollama/{model}`, or set a key"
        )
    if of_name is None and role.provider is not None and model is not None:
        model = role.model  # `google/gemini-2.5-flash` of the provider that is named
    from omcli.providers.resolve import ModelSpec

    return ModelSpec(
        endpoint=endpoint,
        model=role.command or model if endpoint == "command" else model,
        base_url=role.base_url if of_name in (None, role.provider) or role.provider is None else None,
        timeout=settings.provider.timeout,
        images=None if role.images else False,
        effort=role.effort,
    )


def is_named(name: str, settings: Settings, environment: Mapping[str, str]) -> bool:
    """Whether `observer` or `reflector` is a model, whether it can be asked or not."""
    try:
        return spec_of(role_of(name, settings, environment), settings, environment) is not None
    except BadConfiguration:
        return True


def role_of(name: str, settings: Settings, environment: Mapping[str, str]) -> ModelSettings:
    """The settings of `observer` or `reflector`.

    The model of a preset is a proposal: without a key for it nobody has asked for it, and it is as if none was named.
    """
    from omcli.providers.endpoints import ENDPOINTS

    role: ModelSettings = getattr(settings, name)
    proposed = ENDPOINTS.get(role.provider or "")
    if proposed is None or any(environment.get(variable) for variable in proposed.key_variables):
        return role
    by_preset = {
        key: None
        for key in ("provider", "model", "max_output")
        if settings.origin(f"{name}.{key}").startswith("preset ")
    }
    return replace(role, **by_preset) if "provider" in by_preset else role


@record
class ChosenObserver:
    """A model that observes."""

    observer: SlicedObserver
    rules_stand_in: bool
    """Whether rules observe what it fails at."""
    takes_images: bool


def observer(around: Surroundings) -> ChosenObserver | None:
    """The model that observes; None where rules do.

    Raises NotAllowed, BadConfiguration, NoInput, all of them before anybody is asked anything.
    """
    role = role_of("observer", around.settings, os.environ)
    provider = _provider_or_rules(role, Lane.OBSERVE, around)
    if provider is None:
        return None
    from omcli.observers.model import ModelObserver
    from omcli.observers.model.transcript import ObserverLimits
    from omcli.observers.rules import RuleObserver

    observe, tools = around.settings.observe, around.settings.tools
    usual = ObserverLimits()
    limits = ObserverLimits(
        transcript=observe.max_transcript or usual.transcript,
        newest_only=observe.newest_only,
        previous=observe.previous_tokens,
        output=observe.max_output or usual.output,
        reply=role.max_output,
        args_chars=tools.args_chars,
        result_chars=tools.result_chars,
    )
    model = ModelObserver(
        provider=provider,
        rules=RuleObserver(),
        counter=around.counter,
        new_token=_token,
        now=around.clock.now,
        limits=limits,
        images=around.picture,
        guidance=_guidance(role, observe.sentences),
        temperature=temperature(around.settings, "observer"),
        verify=observe.verify,
    )
    return ChosenObserver(observer=model, rules_stand_in=role.fallback == RULES, takes_images=provider.takes_images)


def reflector(around: Surroundings) -> tuple[Reflector, str, Reflector | None] | None:
    """The reflector, its name, and who stands in for it; None where rules reflect. Raises as `observer` does."""
    role = role_of("reflector", around.settings, os.environ)
    provider = _provider_or_rules(role, Lane.REFLECT, around)
    if provider is None:
        return None
    from omcli.reflectors.model import ModelReflector
    from omcli.reflectors.rules import RuleReflector

    model = ModelReflector(provider, around.counter, compression=_compression(role, around.settings))
    rules = RuleReflector(around.counter) if role.fallback == RULES else None
    return model, _name(provider), rules


def reflector_name(around: Surroundings) -> str:
    """The name of who would reflect, also where there is no key for it: nobody is asked anything."""
    role = role_of("reflector", around.settings, os.environ)
    try:
        provider = _provider_or_rules(role, Lane.REFLECT, around)
    except (NotAllowed, BadConfiguration, NoInput):
        return _name_of(role, around.settings)
    return _name(provider) if provider else RULES


def _name(provider: Provider) -> str:
    """What the ledger of what was tried knows a model by."""
    return f"{provider.name}/{provider.model}"


def _name_of(role: ModelSettings, settings: Settings) -> str:
    """The same for a model that can't be had; without an endpoint there is none."""
    from omcli.providers.endpoints import endpoint

    try:
        spec = spec_of(role, settings, os.environ)
        return f"{spec.endpoint}/{spec.model or endpoint(spec.endpoint).model}" if spec else RULES
    except BadConfiguration:
        return RULES


def _compression(role: ModelSettings, settings: Settings) -> CompressionLevels:
    from omcli.reflectors.prompt import CompressionLevels

    said = settings.reflect
    levels = said.levels[: said.attempts]
    return CompressionLevels(
        levels=levels,
        temperature=temperature(settings, "reflector"),
        step=said.temperature_step,
        max_output=role.max_output,
        quotes_size=len(set(levels)) < len(levels),  # asked for the same again, it has to know what was wrong
        trims=len(set(levels)) < len(levels),
        headed=said.rows == 1,
        guidance=_guidance(role, said.sentences) or "",
    )


def _provider_or_rules(role: ModelSettings, lane: Lane, around: Surroundings) -> Provider | None:
    """The model of a role; rules where it can't be had and somebody lets them stand in. What a preset says of that is
    meant for its own proposal: a model that is named and lacks its key has to be told."""
    try:
        return _provider(role, lane, around)
    except (NotAllowed, BadConfiguration) as error:
        if role.fallback != RULES or _who_says("fallback", lane, around).startswith("preset "):
            raise
        around.warn(f"{error.message}; {_DONE[lane]} by rules")
        return None


def _provider(role: ModelSettings, lane: Lane, around: Surroundings) -> Provider | None:
    """The model of a role, watched over, with the one that is asked where it fails; None for rules."""
    spec = spec_of(role, around.settings, os.environ)
    if spec is None:
        return None
    from omcli.operations.model_calls import WithFallback

    spec = replace(spec, model_from=_who_says("model", lane, around))
    if role.fallback_model is None:
        return _metered(spec, lane, around)
    other = spec_of(replace(role, model=role.fallback_model), around.settings, os.environ)
    assert other is not None, "a model is named"
    second = _metered(replace(other, model_from=_who_says("fallback_model", lane, around)), lane, around)
    try:
        first = _metered(spec, lane, around)
    except NotAllowed as error:  # there is no key for it
        around.warn(f"{error.message}; asking {second.model}")
        return second
    return WithFallback(first, second, warn=around.warn)


def _who_says(key: str, lane: Lane, around: Surroundings) -> str:
    """The variable, file or preset that says what a role's key is; nothing where the command line does, or nobody."""
    origin = around.settings.origin(f"{_ROLE[lane]}.{key}")
    return "" if origin in ("flag", "default") else origin


def _metered(spec: ModelSpec, lane: Lane, around: Surroundings) -> Provider:
    from omcli.operations.model_calls import Metered
    from omcli.providers.resolve import provider
    from omcli.wiring.policies import limits

    kept = _Kept(around.store)
    asked = provider(replace(spec, role=_ROLE[lane]), environment=os.environ, output_modes=kept)
    return Metered(
        asked,
        lane=lane,
        ledger=lambda: kept,
        limits=limits(around.settings),
        cost=partial(cost, endpoint=spec.endpoint, settings=around.settings),
        clock=around.clock,
        warn=around.warn,
    )


def cost(reply: Reply, *, endpoint: str, settings: Settings) -> float | None:
    """What a reply of an endpoint has cost, in US dollars, by your prices before those that are known; None where
    neither has the model."""

    from omcli.providers import endpoints

    return endpoints.cost(
        reply.model,
        endpoint=endpoint,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
        own=settings.prices,
    )


class _Kept:
    """The ledger, and what endpoints take, in the store; it is opened when there is something to read or to write."""

    def __init__(self, store: Callable[[], SqliteStore]) -> None:
        self._store = store

    def note_call(self, call: ModelCall) -> None:
        self._store().ledger.note_call(call)

    def calls(self, *, since: str | None = None, until: str | None = None) -> Iterator[ModelCall]:
        return self._store().ledger.calls(since=since, until=until)

    def spent(self, *, since: str) -> Spent:
        return self._store().ledger.spent(since=since)

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        return self._store().ledger.output_mode(endpoint, model)

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        self._store().ledger.put_output_mode(endpoint, model, output_mode)


def temperature(settings: Settings, role: str) -> float | None:
    """What is sent of it: nothing where nobody but `om` has asked for it, for many models refuse it."""
    if settings.origin(f"{role}.temperature") == "default":
        return None
    found: ModelSettings = getattr(settings, role)
    return found.temperature


def _token() -> str:
    import secrets

    return secrets.token_hex(8)


def _guidance(role: ModelSettings, sentences: str | None) -> str | None:
    """What settings and the user's own file add to the rules. Raises NoInput where that cannot be read."""
    length = f"Write {' to '.join(sentences.split('-'))} sentences altogether." if sentences else ""
    own = ""
    if role.instructions_file is not None:
        try:
            own = role.instructions_file.expanduser().read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NoInput(f"{role.instructions_file} cannot be read: {error.strerror}") from error
    return "\n".join(filter(None, (length, own))) or None
