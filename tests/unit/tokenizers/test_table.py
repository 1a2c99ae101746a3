"""Counters are known by name."""

from __future__ import annotations

import pytest

from omcli.base.errors import BadUsage
from omcli.tokenizers import DEFAULT, NAMES, counter


def test_the_counters_are_named_for_what_they_do() -> None:
    """D1."""
    assert set(NAMES) == {
        *("o200k-approx", "o200k", "cl100k"),
        *("chars-2.5", "chars-3.2", "chars-3.5-3", "chars-4", "chars-4-cjk-2"),
    }


def test_the_default_needs_nothing_on_disk() -> None:
    assert DEFAULT == "o200k-approx"
    assert counter().name == DEFAULT


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadUsage, match="unknown token counter 'gpt-9'") as caught:
        counter("gpt-9")
    assert all(name in caught.value.hint for name in NAMES)
