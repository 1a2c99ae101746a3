"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from omcli.base import lazily


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    """Its methods, its flags and what it says of itself are those of `re.compile`."""
    late, compiled = lazily(r"(?P<word>b\w+)", re.IGNORECASE), re.compile(r"(?P<word>b\w+)", re.IGNORECASE)
    text = "a Berth, b, buoy"
    assert late.findall(text) == compiled.findall(text) == ["Berth", "buoy"]
    assert late.sub("-", text) == compiled.sub("-", text)
    assert [found["word"] for found in late.finditer(text)] == ["Berth", "buoy"]
    assert late.match("x") is None
    assert (late.pattern, late.flags) == (compiled.pattern, compiled.flags)


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    """Until then nothing is known of it, not even that it is none."""
    broken = lazily("(")
    with pytest.raises(re.error):
        broken.search("")
