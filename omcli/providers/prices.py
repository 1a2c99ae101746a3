"""What a call costs, where a price is known."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from omcli.llm.model import Price
from omcli.providers.table import ENDPOINTS, Protocol

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
        return 0.0 if place and place.is_local and place.protocol is not Protocol.COMMAND else None
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
    table = tomllib.loads(_PRICES.read_text(encoding="utf-8"))
    return {
        model: Price(input=price["input"], output=price["output"], cached=price["cached"])
        for model, price in table.items()
    }
