"""`memory.json`, the configuration of pi's memory extension, which the preset `pi` reads as well.

Its keys are `enabled`, true if it is missing, and for each of `observer` and `reflector`: `provider`, `model`,
`temperature`, `maxOutputTokens`, and `messageTokenThreshold` or `observationTokenThreshold`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omcli.base.errors import BadConfiguration
from omcli.settings.values import content_of

ENABLED = "enabled"
_SCHEMA = "$schema"
_KEYS = {
    ENABLED: ENABLED,
    "observer.messageTokenThreshold": "observe.tokens",
    "reflector.observationTokenThreshold": "reflect.tokens",
    **{
        f"{role}.{theirs}": f"{role}.{ours}"
        for role in ("observer", "reflector")
        for theirs, ours in (
            ("provider", "provider"),
            ("model", "model"),
            ("temperature", "temperature"),
            ("maxOutputTokens", "max_output"),
        )
    },
}
"""The settings of om by the keys of the file."""
_PROVIDERS = {"google": "gemini"}
"""Providers that om names differently, by their names in the file."""


def read(path: Path) -> Iterator[tuple[str, str | None, object]]:
    """Yield each key of a file, om's key for it (None if it has none), and the value. If `enabled` is missing, it is
    yielded as true.

    Raise BadConfiguration if the file cannot be read, is too large or is not a JSON object.
    """
    content = _content(path)
    if ENABLED not in content:
        yield ENABLED, ENABLED, True
    for name, value in content.items():
        inner = value.items() if isinstance(value, dict) else ()
        for key, said in [(f"{name}.{each}", inside) for each, inside in inner] or [(name, value)]:
            is_provider = key.endswith(".provider") and isinstance(said, str)
            if key != _SCHEMA:
                yield key, _KEYS.get(key), _PROVIDERS.get(said, said) if is_provider else said


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(content_of(path))
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadConfiguration(f"{path}: not a JSON object")
    return content
