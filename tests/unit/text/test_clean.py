"""Text is made safe to store and to show, and ordinary text is left as it is."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omcli.text.clean import clean, is_word_split, one_line, printable, short, word_end

_STRANGE = st.text(
    alphabet="ab \n\r\t\0\x07\x1b[]0;31mK\\\x7f\x85\x9b\u2028\u202e\u2066\u200d\ud800\udfff🎉漢", max_size=30
)
_ANY = st.text() | _STRANGE


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud83c", "\ufffd"),
        ("a\udf89\ud83cb", "a\ufffd\ufffdb"),
        ("tab\t, break\r\n, escape \x1b[0m and \u202e stay", None),
        ("🎉 漢字", None),
        ("", None),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(text: str, cleaned: str | None) -> None:
    assert clean(text) == (text if cleaned is None else cleaned)


@given(_ANY)
def test_clean_text_survives_the_store(text: str) -> None:
    cleaned = clean(text)
    with closing(sqlite3.connect(":memory:")) as store, store:
        (stored,) = store.execute("SELECT ?", (cleaned,)).fetchone()
    store.close()
    assert stored == cleaned
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo\r\n\r\n three\tfour ", "one two three four"),
        ("a\0\0b\x07c", "a b c"),
        ("\x1b[1;31merror\x1b[0m: no \x1b]8;;https://example.org\x1b\\link\x1b]8;;\x07", "error: no link"),
        ("pay \u202e001\u202c$ \u2066now\u2069", "pay 001$ now"),
        ("a\u2028b\u2029c\x85d\u00a0e", "a b c d e"),
        ("\ud800x", "x"),
        ("\n\x1b[2K\r", ""),
        ("plain line", "plain line"),
        ("👩\u200d💻 stays one", "👩\u200d💻 stays one"),
    ],
)
def test_a_text_is_put_on_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(("text", "spaced"), [("", True), ("naïve — да", True), ("a 漢 b", False), ("네", False)])
def test_scripts_without_spaces_are_told(text: str, spaced: bool) -> None:
    assert is_word_split(text) is spaced


@given(_ANY)
def test_one_line_is_one_line(text: str) -> None:
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    assert line == line.strip()
    assert "  " not in line
    assert "\x1b" not in line
    assert one_line(line) == line
    line.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\n\ttwo\n", "one\n\ttwo\n"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\x1b[1;31merror\x1b[0m\x1b[K", "error"),
        ("\x9b31mred\x1bM up \x1b(B", "red up "),
        ("title \x1b]0;rm -rf\x07 set", "title  set"),
        ("title \x1b]0;never closed\nnext", "title 0;never closed\nnext"),
        ("bell\x07 null\0 delete\x7f", "bell\ufffd null\ufffd delete\ufffd"),
        ("a\u202eb\u2069c\ud800", "abc\ufffd"),
        ("👩\u200d💻 漢字 – “quoted”", "👩\u200d💻 漢字 – “quoted”"),
        ("ends in \x1b", "ends in \ufffd"),
    ],
)
def test_a_text_is_made_safe_to_show(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(_ANY)
def test_what_is_shown_controls_no_terminal(text: str) -> None:
    shown = printable(text)
    assert all(character in "\n\t" or ord(character) >= 32 for character in shown)
    assert not set(shown) & set("\x7f\x9b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert printable(shown) == shown
    shown.encode()


@pytest.mark.parametrize(
    "piece", ["a", "\x1b[", "\x1b]", "\x1b]0;a", "\x9d", "\x90a", "\x9f\x1b", "\x1b ", "\0", "\r", "\ud800", "漢\n"]
)
def test_much_of_anything_is_made_safe_in_a_moment(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    start = time.process_time()
    clean(text)
    one_line(text)
    printable(text)
    assert time.process_time() - start < 1


# ---- cutting

_SCRIPTS = ("abc de ", "ab失败的原因", "กขคง", "дом ", "中文 ab", "ab", "𠀀𠀁", "🎉 é")


@given(st.lists(st.text("".join(_SCRIPTS), max_size=40), max_size=12), st.integers(8, 120))
@example(["User: ", "失败的原因" * 60], 100)
@example(["x" * 150], 100)
@example(["User: ", "x" * 150], 100)
@example(["ab cd " * 50], 100)
def test_half_of_the_limit_is_used_at_least_and_never_more_than_all(parts: list[str], limit: int) -> None:
    text = one_line("".join(parts))
    cut = short(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert limit // 2 < len(cut) <= limit
        assert text.startswith(cut.removesuffix("…").rstrip())


@given(st.lists(st.text("abc", min_size=1, max_size=7), min_size=30, max_size=60), st.integers(20, 60))
def test_between_words_text_is_cut_at_the_last_space_that_fits(words: list[str], limit: int) -> None:
    text = " ".join(words)
    if len(text) > limit:
        assert short(text, limit) == f"{text[: text.rfind(' ', 0, limit - 1)]} …"


@pytest.mark.parametrize(
    ("text", "most", "end"),
    [("one two three", 8, 7), ("one two three", 7, 7), ("one two three", 6, 3), ("three", 3, 0), ("失败的原因", 3, 3),
     ("ab 失败的x", 6, 6), ("ab 失败的xy", 7, 6), ("ab", 0, 0), ("ab", -1, 0)],
)  # fmt: skip
def test_a_word_ends_before_a_space_or_after_a_wide_character(text: str, most: int, end: int) -> None:
    assert word_end(text, most) == end
    assert word_end(text, most, least=end + 1) == 0
