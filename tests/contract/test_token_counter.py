"""Promises of every token counter."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import Image, Message, Role, TokenCounter
from omcli.tokenizers import EXACT, NAMES, counter, has_file

_loaded = cache(counter)  # an exact counter takes its time to load
_TEXTS = st.text(max_size=200)
_MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role),
    text=_TEXTS,
    tool=st.none() | st.just("search"),
    call_id=st.none() | st.just("call_1"),
    images=st.sampled_from([(), (Image(media_type="image/png", size=1, sha256="0" * 64),)]),
)


@pytest.fixture(params=NAMES, scope="module")
def counts(request: pytest.FixtureRequest) -> TokenCounter:
    name = str(request.param)
    if name in EXACT and not has_file(name):
        pytest.skip(f"the rank file of {name} is not on this machine")
    return _loaded(name)


def test_a_counter_bears_the_name_it_was_asked_for_by(counts: TokenCounter) -> None:
    assert counts.name in NAMES
    assert counter(counts.name).name == counts.name


def test_the_empty_text_costs_nothing(counts: TokenCounter) -> None:
    """T1, T4."""
    assert counts.text("") == 0


def test_an_empty_transcript_costs_what_a_conversation_does(counts: TokenCounter) -> None:
    """T6."""
    assert counts.conversation([]) == (24 if counts.name == "chars-2.5" else 0)


@given(before=_TEXTS, line=_TEXTS)
def test_another_line_never_makes_a_text_cheaper(counts: TokenCounter, before: str, line: str) -> None:
    # A tokenizer may merge the end of a text with the break after it.
    slack = 1 if counts.name in EXACT else 0
    assert counts.text(before) <= counts.text(f"{before}\n{line}") + slack


@given(message=_MESSAGES)
def test_a_message_costs_at_least_its_text(counts: TokenCounter, message: Message) -> None:
    assert 0 <= counts.text(message.text) <= counts.message(message)


@given(messages=st.lists(_MESSAGES, max_size=5))
def test_a_conversation_is_its_messages_and_a_fixed_overhead(counts: TokenCounter, messages: list[Message]) -> None:
    """F72."""
    overhead = counts.conversation([])
    assert counts.conversation(iter(messages)) == overhead + sum(map(counts.message, messages))


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfff\ud800b", "\0", "\0" * 100, "\u202e", "<|endoftext|>", "a" * 100_000]
)
def test_no_text_is_too_strange_to_count(counts: TokenCounter, text: str) -> None:
    assert 0 <= counts.text(text) <= 4 * len(text)
    assert counts.text(text) == counts.text(text)
