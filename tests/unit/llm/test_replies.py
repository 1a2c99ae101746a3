"""Replies of models: whatever is around the JSON, and wherever it breaks off."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.llm.replies import LONGEST_ROW, is_cut_off, json_in, list_of, read_list, row_text, text_of, texts_of

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.text(max_size=4), _JSON, min_size=1, max_size=4)


@given(
    _OBJECTS, st.sampled_from(["{}", "\n{} \n", "```json\n{}\n```", "```\n{}", "Here you are:\n\n{}\n\nAnything else?"])
)
def test_an_object_is_found_in_a_fence_and_among_words(value: dict[str, object], around: str) -> None:
    assert json_in(around.replace("{}", json.dumps(value, indent=1))) == value


@pytest.mark.parametrize("empty", ["[]", "{}", "```json\n[]\n```", "```json\n[]\n```\nNothing to note.", " {} \n"])
def test_an_empty_answer_is_an_answer(empty: str) -> None:
    assert json_in(empty) in ([], {})


@pytest.mark.parametrize(
    "words", ["", "nothing", "- [ ] still to do", "use {} here", "[1] says so", '{"a": NaN}', "5 rows", "```\n```"]
)
def test_words_are_no_answer(words: str) -> None:
    assert json_in(words) is None


def test_line_breaks_inside_strings_are_forgiven() -> None:
    assert json_in('{"text": "one\ntwo"}') == {"text": "one\ntwo"}


@given(_OBJECTS, st.data())
def test_json_that_was_cut_anywhere_ends_early(value: dict[str, object], data: st.DataObject) -> None:
    """What was cut off is no answer, whatever it ends with (V6)."""
    written = json.dumps([value])
    assert not is_cut_off(written)
    assert is_cut_off(written[: data.draw(st.integers(1, len(written) - 1))] if len(written) > 2 else "[") is True


def test_json_that_is_wrong_does_not_end_early() -> None:
    assert not is_cut_off('{"a": 1, b: 2}')
    assert not is_cut_off("no JSON at all")


@given(st.lists(_JSON, max_size=5), st.sampled_from([None, 1]))
def test_a_list_is_read_element_by_element(values: list[object], indent: int | None) -> None:
    """Pretty-printed, and with lists and brackets inside of strings (T40)."""
    read = read_list(f"FACTS: {json.dumps(values, indent=indent)} and so on")
    assert read is not None
    assert (read.values, read.is_whole) == (tuple(values), True)


def test_of_a_list_that_breaks_off_what_came_before_is_kept() -> None:
    text = 'FACTS: [{"summary": "one"}, {"summary": "tw'
    read = read_list(text)
    assert read is not None
    assert (read.values, read.is_whole, text[read.end :]) == (({"summary": "one"},), False, ', {"summary": "tw')
    assert read_list("no list") is None


def test_what_is_not_of_the_type_asked_for_is_nothing() -> None:
    reply = {"text": 5, "rows": "r1", "more": ["a", 2, "a", "b"]}
    assert (text_of(reply, "text"), list_of(reply, "rows"), texts_of(reply, "rows")) == ("", [], ["r1"])
    assert (texts_of(reply, "more"), text_of([], "text"), texts_of(None, "x")) == (["a", "b"], "", [])


def test_a_row_is_one_line_of_bounded_length() -> None:
    """V4, V5."""
    assert row_text("one\r\ntwo\x00\x1b[31m three") == "one two\ufffd three"
    assert row_text("x" * (LONGEST_ROW + 5)) == "x" * LONGEST_ROW + "… [truncated 5 chars]"


@pytest.mark.parametrize("hostile", ['{"a":', "[", "{ ", '[{"', "```", "[[1],", '{"a":"b",', "\n ", "```json\n "])
def test_hostile_replies_are_read_in_no_time(hostile: str) -> None:
    text = hostile * (400_000 // len(hostile))
    began = time.process_time()
    json_in(text), is_cut_off(text), read_list(text), row_text(text)
    assert time.process_time() - began < 3
