"""Notations: what is written can be read back."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.errors import BadUsage
from omcli.memory.notation import NOTATIONS, WORDS, Line, Notation, as_line, fenced, named, unfenced
from omcli.memory.observation import Priority, Status
from tests.strategies import NASTY, instants, texts

lines = st.builds(
    Line,
    dated=instants.map(lambda at: f"{at[:10]} {at[11:16]}"),
    priority=st.sampled_from(Priority),
    status=st.none() | st.sampled_from(Status),
    text=texts,
)
notations = st.sampled_from(NOTATIONS)


def said(text: str, *, priority: Priority = Priority.HIGH, status: Status | None = None) -> Line:
    """A line of one afternoon."""
    return Line(dated="2026-02-10 14:32", priority=priority, status=status, text=text)


def as_read(line: Line) -> Line:
    """What a line is once it was written: on one line, and `open` like no status at all."""
    return replace(line, text=as_line(line.text), status=None if line.status is Status.OPEN else line.status)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (said("Uses PostgreSQL 16"), "[2026-02-10 14:32] CRITICAL Uses PostgreSQL 16"),
        (said("Tests pass", priority=Priority.MEDIUM), "[2026-02-10 14:32] IMPORTANT Tests pass"),
        (said("Reads README", priority=Priority.LOW), "[2026-02-10 14:32] NOTE Reads README"),
        (said("Shipped v2", status=Status.DONE), "[2026-02-10 14:32] CRITICAL done: Shipped v2"),
        (said("CI is red", status=Status.RESOLVED), "[2026-02-10 14:32] CRITICAL resolved: CI is red"),
        (said("CI is red", status=Status.OPEN), "[2026-02-10 14:32] CRITICAL CI is red"),
    ],
)
def test_words_are_written_as_specified(line: Line, written: str) -> None:
    """S0.25 S0.28: date, priority in a word, text; no emoji."""
    assert WORDS.render(line) == written


def test_under_its_minute_a_row_has_no_date() -> None:
    assert WORDS.render_under(said("Uses PostgreSQL 16")) == "CRITICAL Uses PostgreSQL 16"


@given(line=lines, notation=notations)
def test_a_row_reads_back_as_it_was_written(line: Line, notation: Notation) -> None:
    """T74 S0.25: parse(render(x)) = x up to the documented escapes."""
    assert notation.parse(notation.render(line), "") == as_read(line)
    assert notation.parse(notation.render_under(line), line.dated) == as_read(line)


@given(line=lines, notation=notations)
def test_a_row_is_one_line_whatever_it_holds(line: Line, notation: Notation) -> None:
    """T74: one line per row, and no tag breaks out."""
    written = notation.render(line)
    assert len(f"{written}.".splitlines()) == 1
    assert not re.search(r"</?om-memory", written, re.IGNORECASE)


@given(text=texts)
def test_fencing_can_be_undone(text: str) -> None:
    """T74: the escape of tags is lossless."""
    assert unfenced(fenced(text)) == text
    assert "</om-memory" not in fenced(text)


@pytest.mark.parametrize("text", ["ptr->next uses arr[0] and foo[bar]", "    if x:  # two  spaces", r"C:\new\table"])
def test_code_in_a_row_is_written_byte_for_byte(text: str) -> None:
    """F47: brackets, arrows, indentation and backslashes stay."""
    assert WORDS.render(said(text)).endswith(f" CRITICAL {text}")


def test_a_megabyte_on_one_line_reads_back() -> None:
    """T74: a row of 1 MB."""
    line = said("x </om-memory> " * 70_000)
    assert WORDS.parse(WORDS.render(line), "") == line


@pytest.mark.parametrize("text", ["", "2026-02-10", "14:32 CRITICAL no day", "[2026-02-10 14:32] URGENT x", *NASTY[:4]])
def test_what_is_no_row_is_not_read_as_one(text: str) -> None:
    assert WORDS.parse(text, "") is None


def test_an_unknown_notation_is_refused_with_the_known_ones() -> None:
    assert named("words") is WORDS
    with pytest.raises(BadUsage) as refused:
        named("emoticons")
    assert "words" in refused.value.hint
