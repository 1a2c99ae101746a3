"""Models that observe and reflect, from the settings. Rules do so if no model is chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from omcli.base.errors import BadConfiguration, NoInput, NotAllowed
from omcli.base.record import replace
from omcli.memory.ports import Lane
from omcli.settings.settings import expanded

if TYPE_CHECKING:
    from omcli.llm.model import Embedder, OutputMode, Provider, Reply
    from omcli.memory.message import TokenCounter
    from omcli.memory.reflection import Reflector
    from omcli.operations.clock import Clock
    from omcli.operations.deps import ObserverDeps, ReflectorDeps
    from omcli.operations.estimate import CallList
    from omcli.providers.command import ModelFunction
    from omcli.providers.resolve import ModelSpec
    from omcli.reflectors.model import Compression
    from omcli.settings.settings import ModelSettings, Settings
    from omcli.sqlite import SqliteStore

RULES = "rules"
"""Provider name that selects rules."""
USUAL_KEYS = {"ANTHROPIC_API_KEY": "anthropic", "ANTHROPIC_AUTH_TOKEN": "anthropic", "OPENAI_API_KEY": "openai"}
"""Endpoint of each usual key, in order of precedence. It is used for a model named without an endpoint; a key alone
chooses no model. Repeated here so that observing by rules need not load the endpoints.
"""
_DONE = {Lane.OBSERVE: "observed", Lane.REFLECT: "reflected"}
_ROLE = {Lane.OBSERVE: "observer", Lane.REFLECT: "reflector", Lane.ASK: "reflector"}


def endpoint_with_key(environment: Mapping[str, str]) -> str | None:
    """Return the endpoint of the first usual key in the environment, in the order of `USUAL_KEYS`, or None if there is
    no key.
    """
    for variable, name in USUAL_KEYS.items():
        if environment.get(variable):
            return name
    return None


def spec_of(role: ModelSettings, settings: Settings, environment: Mapping[str, str]) -> ModelSpec | None:
    """Return the model for a role, or None for rules.

    Raise BadConfiguration if the model has no provider, or if a base URL is given without a model or provider.
    """
    if role.provider == RULES:
        return None
    if not (role.model or role.provider):
        if role.base_url:
            raise BadConfiguration(
                f"no model given for {role.base_url}", hint="name one: `--model PROVIDER/NAME`, or `--observer openai`"
            )
        return None
    from omcli.providers.endpoints import split_model

    of_name, model = split_model(role.model, role.provider) if role.model else (None, None)
    endpoint = of_name or role.provider or endpoint_with_key(environment)
    if endpoint is None:
        raise BadConfiguration(
            f"no provider given for model `{model}`", hint=f"say so: `--model ollama/{model}`, or set a key"
        )
    if of_name is None and role.provider is not None and model is not None:
        model = role.model  # such as `google/gemini-2.5-flash` from the named provider
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
    """Return True if the role `name` (`observer` or `reflector`) is given to a model, available or not."""
    try:
        return spec_of(getattr(settings, name), settings, environment) is not None
    except BadConfiguration:
        return True


def embedder(
    settings: Settings, *, clock: Clock, warn: Callable[[str], None], ledger: Callable[[], SqliteStore]
) -> Embedder:
    """Return the model that makes vectors. `ledger` opens the store that records its calls; calls of the provider
    `local` are not recorded.

    Raise BadConfiguration if it cannot be used or numpy is missing, and NotAllowed if its key is missing.
    """
    from importlib.util import find_spec

    said = settings.embeddings
    if not said.is_set:
        raise BadConfiguration("no model for vectors is chosen", hint="set `embeddings.provider`: om-config(5)")
    if find_spec("numpy") is None:
        raise BadConfiguration("numpy is not installed", hint="pip install 'omcli[embeddings]'")
    from omcli.providers.endpoints import LOCAL

    of_name, _, model = (said.model or "").partition("/")
    if said.provider == LOCAL or (said.provider is None and of_name == LOCAL):
        from omcli.providers.embeddings import LocalEmbedder

        return LocalEmbedder((model or None) if of_name == LOCAL else said.model)
    from omcli.operations.embed import CountedEmbedder
    from omcli.operations.model_calls import CallLog
    from omcli.providers.resolve import embedder as remote
    from omcli.settings.settings import ModelSettings
    from omcli.wiring.policies import limits

    role = ModelSettings(provider=said.provider, model=said.model, base_url=said.base_url)
    spec = spec_of(role, settings, os.environ)
    assert spec is not None, "a model is chosen"
    origin = settings.origin("embeddings.model")
    spec = replace(
        spec, role="embeddings", model_from="" if origin == "default" else origin, query_timeout=said.timeout
    )
    return CountedEmbedder(
        remote(spec, environment=os.environ),
        CallLog(
            lane=Lane.EMBED,
            ledger=lambda: ledger().ledger,
            limits=limits(settings),
            cost=partial(cost, endpoint=spec.endpoint, settings=settings),
            clock=clock,
            warn=warn,
        ),
        clock=clock,
        longest_wait=settings.provider.longest_wait,
    )


class Models:
    """The models named in the settings, metered and built on demand."""

    def __init__(
        self,
        settings: Settings,
        *,
        counter: TokenCounter,
        clock: Clock,
        warn: Callable[[str], None],
        store: Callable[[], SqliteStore],
        ledger: Callable[[], SqliteStore],
        estimate: CallList | None = None,
        functions: Mapping[str, ModelFunction] = MappingProxyType({}),
    ) -> None:
        """`store` opens the store that contains the images, and `ledger` the store that records all calls. With
        `estimate`, calls are only added to that list. `functions` are called instead of the models of roles.
        """
        self._settings = settings
        self._counter = counter
        self._clock = clock
        self._warn = warn
        self._store = store
        self._ledger = ledger
        self._estimate = estimate
        self._functions = functions

    def observer(self, usual: ObserverDeps, *, most: int | None = None) -> ObserverDeps | None:
        """Return the model that observes, or None for rules. `usual` supplies the limits that are not in the settings.

        If given, `most` also limits the tokens in a batch. Raise NotAllowed or BadConfiguration if the model is
        unavailable and rules do not stand in for it, and NoInput if its file of instructions cannot be read.
        """
        settings = self._settings
        role = settings.observer
        provider = self._provider_or_rules(role, Lane.OBSERVE)
        if provider is None:
            return None
        from omcli.observers.model import ModelObserver
        from omcli.observers.model.transcript import ObserverLimits
        from omcli.observers.rules import RuleObserver
        from omcli.wiring.policies import observer_deps

        observe, tools, usually = settings.observe, settings.tools, ObserverLimits()
        model = ModelObserver(
            provider=provider,
            rules=RuleObserver(),
            counter=self._counter,
            new_token=_token,
            now=self._clock.now,
            limits=ObserverLimits(
                transcript=observe.max_transcript or usually.transcript,
                newest_only=observe.newest_only,
                previous=observe.previous_tokens,
                output=observe.max_output or usually.output,
                reply=role.max_output,
                args_chars=tools.args_chars,
                result_chars=tools.result_chars,
            ),
            images=self._image,
            guidance=_prompt_text(role, observe.sentences),
            temperature=temperature(settings, "observer"),
            verify=observe.verify,
        )
        return replace(
            observer_deps(observe, usual, most=most),
            model=model,
            has_shared_rows=settings.scope != "session",
            rules_stand_in=role.fallback == RULES,
            takes_images=provider.takes_images,
            waits=self._waits(role, provider, Lane.OBSERVE),
        )

    def reflector(self, usual: ReflectorDeps) -> ReflectorDeps | None:
        """Return the model that reflects, with the policy of `usual`, or None for rules. Raise the same errors as
        `observer`.
        """
        role = self._settings.reflector
        provider = self._provider_or_rules(role, Lane.REFLECT)
        if provider is None:
            return None
        from omcli.reflectors.model import ModelReflector
        from omcli.reflectors.rules import RuleReflector

        compression = _compression(role, self._settings)
        model: Reflector = ModelReflector(provider, self._counter, compression=compression)
        if self._estimate is not None:
            from omcli.operations.estimate import MeteredReflector

            model = MeteredReflector(provider, compression, RuleReflector(self._counter))
        return replace(
            usual,
            open=lambda: model,
            name=_name(provider),
            is_model=True,
            stand_in=RuleReflector(self._counter) if role.fallback == RULES else None,
            waits=self._waits(role, provider, Lane.REFLECT),
        )

    def model_to_ask(self, role: str = "reflector") -> Provider | None:
        """Return the model of a role, or None for rules. The one that reflects also answers questions. Raise NotAllowed
        or BadConfiguration if it is unavailable.
        """
        lane = Lane.OBSERVE if role == "observer" else Lane.ASK
        return self._provider(getattr(self._settings, role), lane)

    def _waits(self, role: ModelSettings, provider: Provider, lane: Lane) -> Callable[[str], bool]:
        """Return a function that returns True if a session waits for this model. No session waits if a fallback model
        or rules stand in for it.
        """
        from omcli.wiring.policies import patience

        of_model = patience(self._settings, self._clock)
        stands_in = role.fallback == RULES or role.fallback_model is not None

        def waits(session: str) -> bool:
            waiting = () if stands_in else of_model.waiting(self._ledger().ledger)
            return any(each.is_for(provider, lane, session) for each in waiting)

        return waits

    def reflector_name(self) -> str:
        """Return the name of the reflector, even if its key is missing. No model is called."""
        role = self._settings.reflector
        try:
            provider = self._provider_or_rules(role, Lane.REFLECT)
        except (NotAllowed, BadConfiguration, NoInput):
            return name_of(role, self._settings)
        return _name(provider) if provider else RULES

    def _provider_or_rules(self, role: ModelSettings, lane: Lane) -> Provider | None:
        """Return the model for a role, or None for rules.

        If the model is unavailable and rules may stand in for it, warn and return None.
        """
        try:
            return self._provider(role, lane)
        except (NotAllowed, BadConfiguration) as error:
            if role.fallback != RULES:
                raise
            self._warn(f"{error.message}; {_DONE[lane]} by rules")
            return None

    def _provider(self, role: ModelSettings, lane: Lane) -> Provider | None:
        """Return the metered model for a role with its fallback, or None for rules. If only the first model's key is
        missing, warn and return the fallback alone. If the role has a function, return that instead.
        """
        if function := self._functions.get(_ROLE[lane]):
            from omcli.providers.command import OwnModel

            return self._counted(OwnModel(function), lane)
        spec = spec_of(role, self._settings, os.environ)
        if spec is None:
            return None
        from omcli.operations.model_calls import WithFallback

        spec = replace(spec, model_from=self._origin("model", lane))
        if role.fallback_model is None:
            return self._model(spec, lane)
        other = spec_of(replace(role, model=role.fallback_model), self._settings, os.environ)
        assert other is not None, "a model is named"
        second = self._model(replace(other, model_from=self._origin("fallback_model", lane)), lane)
        try:
            first = self._model(spec, lane)
        except NotAllowed as error:  # the key is missing
            self._warn(f"{error.message}; asking {second.model}")
            return second
        return WithFallback(first, second, warn=self._warn)

    def _origin(self, key: str, lane: Lane) -> str:
        """Return the variable, file or preset that sets a role's key, or an empty string for a flag or the default."""
        origin = self._settings.origin(f"{_ROLE[lane]}.{key}")
        return "" if origin in ("flag", "default") else origin

    def _model(self, spec: ModelSpec, lane: Lane) -> Provider:
        return self._counted(self._remote(spec, lane) if self._estimate is None else self._meter(spec), lane)

    def _counted(self, provider: Provider, lane: Lane) -> Provider:
        from omcli.operations.model_calls import CountedProvider
        from omcli.wiring.policies import limits, patience

        estimate = self._estimate
        return CountedProvider(
            provider,
            lane=lane,
            ledger=(lambda: self._ledger().ledger) if estimate is None else (lambda: estimate),
            limits=limits(self._settings) if estimate is None else (),
            patience=patience(self._settings, self._clock),
            cost=partial(cost, endpoint=provider.name, settings=self._settings),
            clock=self._clock,
            warn=self._warn,
        )

    def _remote(self, spec: ModelSpec, lane: Lane) -> Provider:
        from omcli.providers.resolve import provider

        modes = _StoredOutputModes(self._ledger)
        return provider(replace(spec, role=_ROLE[lane]), environment=os.environ, output_modes=modes)

    def _meter(self, spec: ModelSpec) -> Provider:
        """Return a provider that counts prompts and sends none. It needs no key."""
        from omcli.operations.estimate import PromptMeter
        from omcli.providers.resolve import model_of, shows_images

        return PromptMeter(
            name=spec.endpoint, model=model_of(spec), takes_images=shows_images(spec), counter=self._counter
        )

    def _image(self, sha256: str) -> bytes | None:
        return self._store().messages.image(sha256)


def _name(provider: Provider) -> str:
    return f"{provider.name}/{provider.model}"


def name_of(role: ModelSettings, settings: Settings) -> str:
    """Return the name of the model for a role, available or not, or `rules` if no model is chosen or its provider is
    unknown.
    """
    from omcli.providers.endpoints import endpoint

    try:
        spec = spec_of(role, settings, os.environ)
        return f"{spec.endpoint}/{spec.model or endpoint(spec.endpoint).model}" if spec else RULES
    except BadConfiguration:
        return RULES


def _compression(role: ModelSettings, settings: Settings) -> Compression:
    from omcli.reflectors.model import Compression

    said = settings.reflect
    levels = said.levels[: said.attempts]
    return Compression(
        levels=levels,
        temperature=temperature(settings, "reflector"),
        step=said.temperature_step,
        max_output=role.max_output,
        quotes_size=len(set(levels)) < len(levels),  # a model that is asked again must know what was wrong
        trims=len(set(levels)) < len(levels),
        headed=said.rows == 1,
        guidance=_prompt_text(role, said.sentences) or "",
    )


def cost(reply: Reply, *, endpoint: str, settings: Settings) -> float | None:
    """Return the price of a reply in US dollars (0 for a local model without one), or None if the price or a token
    count is unknown. The user's own prices take precedence.
    """

    from omcli.providers import endpoints

    return endpoints.cost(
        reply.model,
        endpoint=endpoint,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        cached_tokens=reply.cached_tokens,
        own=settings.prices,
    )


class _StoredOutputModes:
    """The output modes in the store, which is opened only to read or write one."""

    def __init__(self, store: Callable[[], SqliteStore]) -> None:
        self._store = store

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        return self._store().ledger.output_mode(endpoint, model)

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        self._store().ledger.put_output_mode(endpoint, model, output_mode)


def temperature(settings: Settings, role: str) -> float | None:
    """Return the temperature to send, or None to send none. It is None unless it was set, because many models refuse
    it.
    """
    if settings.origin(f"{role}.temperature") == "default":
        return None
    found: ModelSettings = getattr(settings, role)
    return found.temperature


def _token() -> str:
    import secrets

    return secrets.token_hex(8)


def _prompt_text(role: ModelSettings, sentences: str | None) -> str | None:
    """Return additions to the prompt, from the settings and the user's file, or None if there are none. Raise NoInput
    if the file cannot be read.
    """
    length = f"Write {' to '.join(sentences.split('-'))} sentences altogether." if sentences else ""
    own = ""
    if role.instructions_file is not None:
        try:
            own = expanded(role.instructions_file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NoInput(f"{role.instructions_file} cannot be read: {error.strerror}") from error
    return "\n".join(filter(None, (length, own))) or None
