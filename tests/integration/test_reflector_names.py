"""Who would reflect has one name, with a key and without: what was tried in vain is known by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omcli.settings import resolve
from omcli.wiring import Wiring

KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}


def names(folder: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, object], keys: dict[str, str]) -> list[str]:
    """Of who is named when something is checked, and of who reflects where that can be had."""
    for name in [name for name in os.environ if name.startswith(("OM_", "ANTHROPIC_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    wiring = Wiring(resolve({"db": folder / "m.db", **flags}, os.environ))
    counter = wiring.counter(None)
    checked = wiring.named_reflector(counter).name
    return [checked, wiring.reflector(counter).name] if keys else [checked]


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"observer.model": "anthropic/m"}, "anthropic/m"),
        ({"observer.model": "openai/m", "reflector.model": "anthropic/other"}, "anthropic/other"),
        ({"observer.model": "anthropic/m", "observer.fallback_model": "openai/n"}, "anthropic/m"),
        ({"reflector.provider": "rules"}, "rules"),
    ],
)
def test_who_would_reflect_is_named_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, object], name: str
) -> None:
    assert names(tmp_path, monkeypatch, flags, KEYS) == [name, name]
    if "observer.fallback_model" not in flags:
        assert names(tmp_path, monkeypatch, flags, {}) == [name]


def test_a_model_that_stands_in_is_named_where_the_first_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: dict[str, object] = {"observer.model": "anthropic/m", "observer.fallback_model": "openai/n"}
    assert names(tmp_path, monkeypatch, flags, {"OPENAI_API_KEY": "k"}) == ["openai/n", "openai/n"]


def test_rules_are_named_where_nothing_says_whose_the_model_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(tmp_path, monkeypatch, {"observer.model": "m"}, {}) == ["rules"]
    assert names(tmp_path, monkeypatch, {"observer.model": "ollama/m"}, {}) == ["ollama/m"]
