"""Daily notes: which pieces a note has, and what becomes of `MEMORY.md`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.exchange.daily_notes import pieces, section, session_of, with_section

NOTE = """---
mood: fine
---
# 2026-01-05

Rain all day.
It did not stop.

## Harbour

- Moved the tide service
  to the new host.
- Called Ines.
  - She comes on Friday.

```
restart tides

now
```
## Home
Bought paint
"""
DAYS = st.dates().map(str)
FACTS = st.lists(st.text(max_size=40), max_size=4)
MARKS = ("<!-- om: 2026-01-05 -->\n", "<!-- om: end of 2026-01-05 -->\n")
TEXT = st.lists(st.sampled_from(["# Mine\n", "- a\r\n", "\n", "end", "é ", *MARKS])).map("".join)


def test_a_note_falls_into_paragraphs_and_items_each_below_its_heading() -> None:
    """S0.36: front matter and title are no pieces, and what is fenced is one."""
    assert list(pieces(NOTE)) == [
        "Rain all day.\nIt did not stop.",
        "## Harbour\n\n- Moved the tide service\n  to the new host.",
        "## Harbour\n\n- Called Ines.\n  - She comes on Friday.",
        "## Harbour\n\n```\nrestart tides\n\nnow\n```",
        "## Home\n\nBought paint",
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# 2026-01-05\n", "---\nmood: fine\n---\n"])
def test_a_note_without_words_has_no_pieces(text: str) -> None:
    assert list(pieces(text)) == []


def test_line_ends_do_not_matter() -> None:
    assert list(pieces(NOTE.replace("\n", "\r\n"))) == list(pieces(NOTE)) == list(pieces(f"\ufeff{NOTE}"))


@pytest.mark.parametrize("more", ["\n- A new item.\n", "\nA new line.\n\n", "# Evening\nSlept.\n", "\n```\nls\n```\n"])
def test_a_note_that_grows_keeps_the_pieces_it_had(more: str) -> None:
    """What is added at the end is one more piece; nothing before it changes."""
    before = list(pieces(NOTE))
    assert list(pieces(f"{NOTE}{more}"))[: len(before)] == before
    assert len(list(pieces(f"{NOTE}{more}"))) == len(before) + 1


@given(st.text(alphabet="#-*`~ \nab1.\r\x85", max_size=300))
def test_every_word_of_a_note_is_in_a_piece_or_in_a_heading(text: str) -> None:
    """Nothing is lost but marks of the notation: each line with a letter is somewhere."""
    found = "\n".join(pieces(text))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    said = [line.rstrip() for line in lines if re.search("[ab1]", line)]
    assert all(line.strip() in found or re.match(r" {0,3}#", line) for line in said)


def test_two_folders_have_sessions_of_their_own() -> None:
    assert session_of("/a/notes", "2026-01-05") != session_of("/b/notes", "2026-01-05")
    assert session_of("/a/notes", "2026-01-05").startswith("notes-")


def test_a_day_is_put_among_the_others_and_all_else_stays() -> None:
    """S0.36: what the user wrote before, between and behind stays to the byte."""
    mine = b"# What I know\r\nCaf\xe9, in Latin-1.\n"
    content = mine
    for day in ("2026-01-07", "2026-01-05", "2026-01-06"):
        content = with_section(content, day, section(day, [f"It was {day}."]))
    content += b"My last words"
    parts = [section(f"2026-01-0{day}", [f"It was 2026-01-0{day}."]).encode() for day in (5, 6, 7)]
    assert content == mine + b"\n" + parts[0] + b"\n" + parts[1] + b"\n" + parts[2] + b"My last words"


def test_a_fact_cannot_end_its_section() -> None:
    """A row is of a transcript: it is one line, and no mark."""
    hostile = "a\n<!-- om: end of 2026-01-05 -->\n<!-- om: 2026-01-06 -->\x1b[31m"
    said = section("2026-01-05", [hostile])
    assert said.count("<!--") == 2
    assert len(said.splitlines()) == 5
    assert with_section(said.encode(), "2026-01-05", "") == b""


@given(mine=TEXT, day=DAYS, facts=FACTS, later=DAYS, others=FACTS)
def test_whatever_stands_there_what_is_put_in_twice_stands_there_once(
    mine: str, day: str, facts: list[str], later: str, others: list[str]
) -> None:
    """The same again changes nothing; the user's text is what is left without the sections."""
    before = mine.encode()
    once = with_section(before, day, section(day, facts))
    assert with_section(once, day, section(day, facts)) == once
    twice = with_section(once, later, section(later, others))
    assert section(later, others).encode() in twice
    if later != day:
        assert section(day, facts).encode() in twice
    if "<!-- om: " not in mine:
        left = re.sub(rb"\n?<!-- om: (\S+) -->\n(?s:.*?)<!-- om: end of \1 -->\n", b"", twice)
        assert left.rstrip(b"\n") == before.rstrip(b"\n")
        assert twice.startswith(before)
