"""The cost of a call."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli import providers
from omcli.llm.model import Price
from omcli.providers.endpoints import ENDPOINTS, cost

_TOKENS = st.integers(min_value=0, max_value=10**7)


def of(model: str, endpoint: str = "anthropic", **fields: object) -> float | None:
    given_fields: dict[str, object] = {"input_tokens": 1_000_000, "output_tokens": 100_000, **fields}
    return cost(model, endpoint=endpoint, **given_fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "model", ["claude-haiku-4-5", "claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5", "claude-haiku-4-5-latest"]
)
def test_a_model_has_its_price_under_every_name(model: str) -> None:
    assert of(model) == pytest.approx(1.5)


def test_cached_tokens_cost_less() -> None:
    assert of("claude-haiku-4-5", cached_tokens=500_000) == pytest.approx(0.5 + 0.05 + 0.5)


def test_an_unknown_model_has_no_price() -> None:
    assert of("claude-next") is None
    assert of("gpt-5-mini-extra", "openai") is None
    assert of("some-program", "command") is None


def test_a_local_model_costs_nothing() -> None:
    assert of("qwen2.5:7b", "ollama") == 0
    assert of("qwen2.5:7b", "ollama", input_tokens=None) == 0


def test_uncounted_tokens_have_no_price() -> None:
    assert of("claude-haiku-4-5", input_tokens=None) is None
    assert of("claude-haiku-4-5", output_tokens=None) is None


def test_own_prices_come_first() -> None:
    own = {"claude-haiku-4-5": Price(input=2, output=0, cached=2), "replies.json": Price(input=1, output=1, cached=1)}
    assert of("claude-haiku-4-5", own=own) == pytest.approx(2)
    assert of("claude-haiku-4-5", own=own, cached_tokens=1_000_000) == pytest.approx(2)
    assert of("replies.json", "scripted", own=own) == pytest.approx(1.1)


@given(_TOKENS, _TOKENS, _TOKENS)
def test_the_cost_of_a_call_is_never_negative(fresh: int, output: int, cached: int) -> None:
    """Also where an endpoint says that more was cached than read."""
    told = of("m", own={"m": Price(input=1, output=2, cached=0.1)}, input_tokens=fresh, output_tokens=output,
              cached_tokens=cached)  # fmt: skip
    assert told is not None
    assert told >= 0


def test_every_price_has_a_date_and_every_default_model_a_price() -> None:
    [folder] = providers.__path__
    table = tomllib.loads((Path(folder) / "prices.toml").read_text(encoding="utf-8"))
    assert all(re.fullmatch("20[0-9]{2}-[0-9]{2}", price["noted"]) for price in table.values())
    assert all(price["cached"] <= price["input"] for price in table.values())
    assert all(price["input"] <= price["output"] for name, price in table.items() if "embedding" not in name)
    defaults = [(place.model, place.name) for place in ENDPOINTS.values() if place.model]
    assert all(of(model, name) is not None for model, name in defaults)
