"""Tombstones: what a text says is recognised, however it is written, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.coverage import message_tombstones, tombstone_of
from omcli.text.similarity import said_words

_AROUND = (
    "**",
    "_",
    "`",
    "~~",
    '"',
    "‘",
    "(",
    "> ",
    "- ",
    "3. ",
    "[x] ",
    "# ",
    "\u200b",
    "\ufeff",
    "<b>",
    "User: ",
    "Output of mcp__web-fetch says: ",
    "Pasted text says: ",
    "🔴 ",
    "…",
    ":",
)
_ATOMS = (
    "Never push",
    "C++",
    "c#",
    "50%",
    "1.5",
    "15",
    "用户决定使用中文界面",
    "किताब",
    "Straße",
    "naïve",
    "a_b",
    "x" * 50,
)


@given(
    words=st.lists(st.sampled_from(_ATOMS), min_size=1),
    around=st.lists(st.sampled_from(_AROUND), max_size=4),
    is_upper=st.booleans(),
)
def test_what_is_written_around_words_says_nothing(*, words: list[str], around: list[str], is_upper: bool) -> None:
    """XD6: marks may stand in any order, also on both sides and several times."""
    text = f"Ada {' '.join(words)} Ada"
    behind = "".join(reversed([mark.strip() for mark in around if not any(map(str.isalnum, mark)) and mark != "# "]))
    written = f"{''.join(around)}{text.upper() if is_upper else text}{behind}"
    assert said_words(written) == said_words(text)
    assert said_words(said_words(text)) == said_words(text)


@given(st.text())
def test_every_text_says_something_that_stays_the_same(text: str) -> None:
    """XD6: also symbols and halves of characters; said twice, it says the same."""
    assert said_words(f" {text}\n") == said_words(text)
    assert bool(said_words(text)) or not text.strip() or not text.isprintable()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use C++", "use C#"),
        ("use C", "use C#"),
        ("version 1.5", "version 15"),
        ("50% of it", "50 of it"),
        ("👍", "👎"),
        ("User tables go", "Tables go"),
        ("Decided: tabs", "Rejected: tabs"),
        ("List<Tide> it", "List<Gauge> it"),
        ("की", "का"),
    ],
)
def test_other_words_are_not_forgotten(one: str, other: str) -> None:
    """XD6: nothing is kept out that merely resembles what was forgotten."""
    assert tombstone_of(one) != tombstone_of(other)
    assert message_tombstones(one)[0] not in message_tombstones(other)
