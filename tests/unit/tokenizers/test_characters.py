"""The character counters give the numbers of the programs they are named after."""

from __future__ import annotations

import pytest

from omcli.memory.message import Image, Message, Role
from omcli.tokenizers import counter

FOX = "The quick brown fox jumps over the lazy dog"


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("chars-4-cjk-2", "", 0),
        ("chars-4-cjk-2", "Hello world", 2),
        ("chars-4-cjk-2", "안녕하세요", 2),
        ("chars-4-cjk-2", "Hello 안녕", 2),
        ("chars-4-cjk-2", FOX, 10),
        ("chars-3.5-3", "", 0),
        ("chars-3.5-3", FOX, 13),
        ("chars-3.2", FOX, 14),
        ("chars-3.2", "x" * 40, 13),
        ("chars-3.2", "x" * 100, 32),
        ("chars-4", FOX, 11),
        ("chars-2.5", FOX, 18),
    ],
)
def test_a_text_has_its_recorded_count(name: str, text: str, tokens: int) -> None:
    """T1, T4, T5, S0.10, S0.11, S1.5, S3.16."""
    assert counter(name).text(text) == tokens


def test_kana_count_as_other_characters_beside_chinese_ones_and_hangul() -> None:
    assert counter("chars-4-cjk-2").text("漢字漢字") == 2
    assert counter("chars-4-cjk-2").text("ひらがな") == 1


def test_a_prompt_costs_four_more_than_its_text() -> None:
    """T2."""
    first, second = (Message(role=Role.USER, text=text) for text in ("Hello world", "Hi there!!"))
    assert counter("chars-4-cjk-2").message(first) == 6
    assert counter("chars-4-cjk-2").conversation([first, second]) == 12


def test_the_parts_of_a_tool_call_are_rounded_one_by_one() -> None:
    """T3."""
    messages = [
        Message(role=Role.ASSISTANT, text="result"),
        Message(role=Role.CALL, text='{"query":"test"}', tool="search", call_id="tc01"),
        Message(role=Role.RESULT, text='{"results":[]}', tool="search", call_id="tc01"),
    ]
    assert [counter("chars-4-cjk-2").message(message) for message in messages] == [5, 6, 3]
    assert counter("chars-4-cjk-2").conversation(messages) == 14


def test_tool_results_and_structured_text_are_denser_than_prose() -> None:
    """T4, S0.11."""
    zora = counter("chars-3.5-3")
    assert zora.message(Message(role=Role.RESULT, text=FOX)) == 15
    assert zora.message(Message(role=Role.CALL, text=FOX)) == 15
    assert zora.message(Message(role=Role.RESULT, text="x" * 10_000)) == 3_334
    assert zora.message(Message(role=Role.USER, text="")) == 0


def test_an_image_costs_1600_and_its_bytes_nothing() -> None:
    """T5."""
    image = Image(media_type="image/png", size=1_900, sha256="0" * 64)
    assert counter("chars-3.2").message(Message(role=Role.USER, text="", images=(image,))) == 1_600
    assert counter("chars-3.2").message(Message(role=Role.USER, text=FOX, images=(image, image))) == 3_214


def test_an_empty_transcript_has_the_overhead_of_a_conversation() -> None:
    """T6."""
    assert counter("chars-2.5").conversation([]) == 24
    assert counter("chars-2.5").conversation([Message(role=Role.USER, text="Hello")]) == 24 + 4 + 2


def test_an_event_has_no_overhead() -> None:
    assert counter("chars-2.5").message(Message(role=Role.EVENT, text="Hello")) == 2
