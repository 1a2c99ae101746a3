"""Checks of models: those that a run would use, their keys, prices and limits, and the token counter."""

from __future__ import annotations

import os
from collections.abc import Iterator

from omcli.base import ignore
from omcli.base.errors import BadConfiguration, BadUsage, NotAllowed
from omcli.doctor import Check, Doctor, Section, failure, pass_, skip, warn
from omcli.llm.model import Prompt, Spent
from omcli.providers.endpoints import ENDPOINTS, Endpoint, cost
from omcli.settings.settings import ModelSettings
from omcli.wiring.models import RULES, Models, spec_of

_MILLION = 1_000_000
_NEARLY = 0.8
"""Used part of a limit at which the doctor begins to warn."""
_SYSTEM = "Answer with JSON."
_REPLY = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def section() -> Section:
    return {
        "observer": lambda doctor: _model(doctor, "observer"),
        "reflector": lambda doctor: _model(doctor, "reflector"),
        "embeddings": _embedder,
        "limits": _limits,
        "counter": _counter,
    }


def _model(doctor: Doctor, role: str) -> Iterator[Check]:
    said: ModelSettings = getattr(doctor.settings, role)
    spec = spec_of(said, doctor.settings, os.environ)
    if spec is None:
        yield pass_(role, f"rules ({_origin(doctor, role)})")
        return
    name = f"{spec.endpoint}/{spec.model or ''}".rstrip("/")
    try:
        provider = _models(doctor).model_to_ask(role)
    except (NotAllowed, BadConfiguration) as error:
        says = warn if said.fallback == RULES else failure
        stand_in = "; rules stand in for it" if said.fallback == RULES else ""
        yield says(role, f"{name} ({_origin(doctor, role)}) cannot be asked: {error.message}{stand_in}", error.hint)
        return
    assert provider is not None, "a model is named"
    name = f"{provider.name}/{provider.model}"
    key = _key(ENDPOINTS.get(spec.endpoint))
    yield pass_(role, f"{name} ({_origin(doctor, role)}), {key}, {_price(doctor, provider.model, spec.endpoint)}")
    if doctor.pings:
        begun = doctor.wiring.clock.monotonic()
        provider.ask(Prompt(system=_SYSTEM, content=("Is all well?",), schema=_REPLY, name="answer"))
        yield pass_(role, f"{name} replied in {doctor.wiring.clock.monotonic() - begun:.1f} s")


def _models(doctor: Doctor) -> Models:
    wiring = doctor.wiring
    return Models(
        doctor.settings,
        counter=wiring.counter(None),
        clock=wiring.clock,
        warn=ignore,
        store=lambda: wiring.store,
        ledger=lambda: wiring.store,
    )


def _origin(doctor: Doctor, role: str) -> str:
    """Return the setting that chooses the model of a role, with its origin."""
    keys = [f"{role}.{name}" for name in ("model", "provider")]
    chosen = next((key for key in keys if doctor.settings.origin(key) != "default"), None)
    if chosen is not None:
        return f"`{chosen}` from {doctor.settings.origin(chosen)}"
    return "no model is chosen"


def _key(place: Endpoint | None) -> str:
    if place is None or not place.key_variables:
        return "no key needed"
    named = next((name for name in place.key_variables if os.environ.get(name)), None)
    return f"key in {named}" if named else "no key needed" if place.is_local else "no key in the environment"


def _price(doctor: Doctor, model: str, endpoint: str) -> str:
    """Return the prices of a million input tokens and of a million output tokens, in words."""
    prices = [
        cost(model, endpoint=endpoint, input_tokens=read, output_tokens=_MILLION - read, own=doctor.settings.prices)
        for read in (_MILLION, 0)
    ]
    if prices[0] is None or prices[1] is None:
        return "price unknown (`prices` sets it)"
    return f"${prices[0]:.2f} in and ${prices[1]:.2f} out per million tokens" if any(prices) else "free"


def _embedder(doctor: Doctor) -> Iterator[Check]:
    said = doctor.settings.embeddings
    if not said.is_set:
        yield skip("embeddings", "no model for vectors is chosen", "`embeddings.provider` chooses one")
        return
    embedder = doctor.wiring.embedder()
    place = ENDPOINTS.get(embedder.name)
    text = f"{embedder.name}/{embedder.model} ({_origin(doctor, 'embeddings')}), {_key(place)}"
    yield pass_("embeddings", text)
    if doctor.pings:
        embedder.embed(["ok?"])
        yield pass_("embeddings", f"{embedder.name}/{embedder.model} replied")


def _limits(doctor: Doctor) -> Iterator[Check]:
    limits = doctor.wiring.limits
    if not limits:
        yield skip("limits", "no limit on what models may cost", "`limits.day_cost` sets one")
        return
    for limit in limits:
        since = limit.since(doctor.now)
        spent = doctor.store.ledger.spent(since=since) if doctor.has_store else Spent(tokens=0, cost=0.0)
        used, share = limit.used(spent), limit.share(spent)
        of = f"${used:.2f} of ${limit.most:.2f}" if limit.is_cost else f"{used:.0f} of {limit.most:.0f} tokens"
        text = f"`{limit.name}`: {of} {limit.period} ({share:.0%})"
        if share < _NEARLY:
            yield pass_("limits", text)
        else:
            yield warn("limits", text, "at 100 % models are not asked any more" if limit.is_hard else "")


def _counter(doctor: Doctor) -> Iterator[Check]:
    name = doctor.settings.counter
    try:
        counter = doctor.wiring.counter(name)
    except BadUsage as error:
        yield failure("counter", error.message, error.hint)
    except BadConfiguration as error:
        yield warn("counter", f"{error.message}; counting with the default counter", error.hint)
    else:
        yield pass_("counter", f"tokens are counted by {counter.name}")
