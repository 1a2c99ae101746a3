"""Finds the JSON in what a model wrote, with fences or prose around it or without."""

from __future__ import annotations

import json

_DECODER = json.JSONDecoder()
_MOST_TRIES = 64
"""Braces that are tried before it is given up: each may cost as much as the text is long."""


def json_in(text: str) -> dict[str, object] | list[object] | None:
    """The text as JSON, or the longest JSON object that stands in it; None where there is neither.

    A list counts only where it is all there is: prose is full of brackets.
    """
    try:
        whole = json.loads(_without_fence(text))
    except (ValueError, RecursionError):
        return _longest_object(text)
    return whole if isinstance(whole, dict | list) else None


def _without_fence(text: str) -> str:
    text = text.strip()
    if not text.startswith("```") or not text.endswith("```"):
        return text
    first, _, rest = text.partition("\n")
    return rest[:-3] if first[3:].strip().isalpha() or first == "```" else text.strip("`")


def _longest_object(text: str) -> dict[str, object] | None:
    found: dict[str, object] | None = None
    length = at = 0
    for _ in range(_MOST_TRIES):
        at = text.find("{", at)
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if end - at > length:
            found, length = value, end - at
        at = end
    return found
