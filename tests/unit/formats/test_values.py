"""Taking values out of JSON that may be of any type, and injected blocks out of texts."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.injected import INJECTED_TAGS, without_injected
from omcli.formats.values import compact_json, objects, record, string, text

ODD = [None, True, 3, 1.5, "", "a", [], ["a"], {}, {"a": 1}, [{"a": 1}, 2]]


@pytest.mark.parametrize("value", ODD)
def test_a_value_of_the_wrong_type_gives_nothing(value: object) -> None:
    """F58"""
    assert record(value) == (value if isinstance(value, dict) else {})
    assert string(value) == ("a" if value == "a" else None)
    assert text(value) == ("a" if value == "a" else "")
    assert objects(value) == ([{"a": 1}] if value == [{"a": 1}, 2] else [])


def test_arguments_are_written_compactly_and_in_their_own_script() -> None:
    assert compact_json({"path": "é", "n": [1, None]}) == '{"path":"é","n":[1,null]}'
    assert compact_json('{"a": 1}') == '{"a": 1}'


def test_arguments_too_deep_to_be_written_again_are_noted() -> None:
    """F61: what can just be parsed can be too deep to be written."""
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert json.loads(compact_json(nested)) == "[nested too deep]"


@pytest.mark.parametrize("tag", INJECTED_TAGS)
def test_injected_blocks_are_taken_out(tag: str) -> None:
    """S2.9, F45"""
    assert without_injected(f"<{tag}>Remember this.</{tag}>\nFix the gate.") == "Fix the gate."
    assert without_injected(f"Fix the gate.\n\n<{tag} id='1'>\nRemember\nthis.\n</{tag}>\n") == "Fix the gate."
    assert without_injected(f"Fix <{tag}>x</{tag}>the gate.") == "Fix the gate."
    assert without_injected(f"<{tag}>x</{tag}>") == ""


@pytest.mark.parametrize(
    "said",
    [
        "<system-reminder>a <om-memory>b</om-memory> c</system-reminder>Go on.",
        "<om-memory>a <system-reminder>b</system-reminder> c</om-memory>Go on.",
        "<om-memory>a <om-memory>b</om-memory> c</om-memory>Go on.",
        "<om-memory>a</om-memory><om-memory>b</om-memory>Go on.",
    ],
)
def test_nested_and_repeated_blocks_are_taken_out(said: str) -> None:
    """S2.9, F45: also nested."""
    assert without_injected(said) == "Go on."


@pytest.mark.parametrize(
    "said",
    [
        "What does the <system-reminder> tag do?",
        "Close it with </om-memory>, please.",
        "Why is this in the output?\n<om-memory>\nFix it.",
        "3 items\n  <system-reminder>\n1 failed\nExit code: 1",
        "Use <system-reminders>, a tag of ours.</system-reminders>",
        "if a < b and b > c: pass",
        "    indented code\n\twith <b>tags</b>  \n",
    ],
)
def test_talk_about_tags_is_left_alone(said: str) -> None:
    """XE1: what follows a tag that is not closed stays."""
    assert without_injected(said) == said


def test_the_first_line_keeps_its_indentation() -> None:
    assert without_injected("     1→a\n     2→b\n\n<system-reminder>x</system-reminder>\n") == "     1→a\n     2→b"


@given(st.text())
def test_a_text_without_tags_is_never_changed(said: str) -> None:
    if not any(f"<{tag}" in said for tag in INJECTED_TAGS):
        assert without_injected(said) == said


TOKENS = [*(f"<{tag}>" for tag in INJECTED_TAGS[:2]), *(f"</{tag}>" for tag in INJECTED_TAGS[:2]), "a", "\n", " "]


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join), st.sampled_from(INJECTED_TAGS[:2]))
def test_what_stands_inside_a_block_never_comes_out(after: str, tag: str) -> None:
    """F45: whatever comes after the block, balanced or not."""
    assert "SECRET" not in without_injected(f"before <{tag}>SECRET</{tag}>{after}")


@pytest.mark.parametrize(
    "hostile",
    ["x <system-reminder> " * 50_000, "<system-reminder " * 50_000, "y\n<om-memory>" * 50_000, "</om-memory>" * 80_000],
)
def test_a_megabyte_of_unclosed_tags_takes_no_time(hostile: str) -> None:
    began = time.process_time()
    without_injected(hostile)
    assert time.process_time() - began < 2, "looking for the ends of tags must not be quadratic"
