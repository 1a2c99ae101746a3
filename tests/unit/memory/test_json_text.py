"""JSON in what a model wrote."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.json_text import json_in

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(), _VALUES, max_size=4)
_PROSE = st.text(alphabet=st.characters(exclude_characters='{}[]`"', exclude_categories=["Cs"]), max_size=40)


@given(_OBJECTS, _PROSE, _PROSE, st.sampled_from(["", "```", "```json"]))
def test_an_object_is_found_whatever_stands_around_it(
    value: dict[str, object], before: str, after: str, fence: str
) -> None:
    """V1: strict, then without fences, then the first balanced object."""
    body = json.dumps(value, indent=1)
    fenced = f"{fence}\n{body}\n```" if fence else body
    assert json_in(fenced) == value
    assert json_in(f"{before} {fenced} {after}") == value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("nothing of the kind", None),
        ("see [1] and [2]", None),
        ("[]", []),
        ("```json\n[]\n```", []),
        ("42", None),
        ('"text"', None),
        ("a {brace} and {another", None),
        ('{"a": 1', None),
        ('<think>{"a": 1} or so</think>{"observations": []}', {"observations": []}),
        ('```{"a": 1}```', {"a": 1}),
        ('{"a": 1} {"b": {"c": 2}}', {"b": {"c": 2}}),
    ],
)
def test_what_is_json_and_what_is_not(text: str, found: object) -> None:
    assert json_in(text) == found


@pytest.mark.parametrize("text", ["{" * 100_000, '{"a":' * 100_000, "[" * 100_000, '{"' * 100_000, "```" * 100_000])
def test_hostile_text_takes_no_time(text: str) -> None:
    """F38: it costs what its length costs."""
    began = time.process_time()
    assert json_in(text) is None
    assert time.process_time() - began < 2
