"""Notations: what is written can be read back."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadUsage
from omcli.memory.notation import (
    NOTATIONS,
    OF_TEN,
    WORDS,
    Notation,
    PrintedRow,
    escape_tags,
    named,
    unescape_tags,
)
from omcli.memory.observation import Priority, Status
from omcli.text.clean import single_line
from tests.strategies import NASTY, lines, texts

notations = st.sampled_from(NOTATIONS)


def said(text: str, *, priority: Priority = Priority.HIGH, status: Status | None = None) -> PrintedRow:
    """A line of one afternoon."""
    return PrintedRow(dated="2026-02-10 14:32", priority=priority, status=status, text=text)


def as_read(line: PrintedRow, notation: Notation) -> PrintedRow:
    """What a line is once it was written: on one line, `open` like no status at all, and what its mark says."""
    mark = notation.mark(line)
    return replace(
        line,
        text=single_line(line.text),
        status=None if line.status is Status.OPEN else line.status,
        priority=line.priority if mark else Priority.MEDIUM,
        importance=int(mark.removesuffix("/10")) if notation is OF_TEN else None,
        mark=mark,
    )


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
def test_words_are_written_as_specified(line: PrintedRow, written: str) -> None:
    """S0.25 S0.28: date, priority in a word, text; no emoji."""
    assert WORDS.render(line) == written


def test_under_its_minute_a_row_has_no_date() -> None:
    assert WORDS.render_under(said("Uses PostgreSQL 16")) == "CRITICAL Uses PostgreSQL 16"


@given(line=lines, notation=notations)
def test_a_row_reads_back_as_it_was_written(line: PrintedRow, notation: Notation) -> None:
    """T74 S0.25 S3.8: parse(render(x)) = x up to the documented escapes, in every notation."""
    assert notation.parse(notation.render(line), "") == as_read(line, notation)
    assert notation.parse(notation.render_under(line), line.dated) == as_read(line, notation)


@given(line=lines, notation=notations)
def test_a_row_is_one_line_whatever_it_holds(line: PrintedRow, notation: Notation) -> None:
    """T74: one line per row, and no tag breaks out."""
    written = notation.render(line)
    assert len(f"{written}.".splitlines()) == 1
    assert not re.search(r"</?om-memory", written, re.IGNORECASE)


@given(text=texts)
def test_fencing_can_be_undone(text: str) -> None:
    """T74: the escape of tags is lossless."""
    assert unescape_tags(escape_tags(text)) == text
    assert "</om-memory" not in escape_tags(text)


@given(line=lines, notation=notations)
def test_what_was_read_is_written_again_as_it_was(line: PrintedRow, notation: Notation) -> None:
    """S3.8: also a mark that says more than our priorities do, and several of them."""
    written = notation.render(line)
    read = notation.parse(written)
    assert read is not None
    assert notation.render(read) == written


@pytest.mark.parametrize(
    ("name", "high", "medium", "low", "done"),
    [
        ("words", "CRITICAL a", "IMPORTANT a", "NOTE a", "CRITICAL done: a"),
        ("emoji", "\U0001f534 a", "\U0001f7e1 a", "\U0001f7e2 a", "\u2705 a"),
        ("brackets", "[!] a", "[?] a", "[i] a", "[!] done: a"),
        ("levels", "HIGH a", "MED a", "LOW a", "HIGH done: a"),
        ("importance", "8/10 a", "5/10 a", "2/10 a", "8/10 done: a"),
        ("none", "a", "a", "a", "done: a"),
    ],
)
def test_each_notation_writes_its_own_marks(name: str, high: str, medium: str, low: str, done: str) -> None:
    """C1, S3.8, S0.28: the table of priorities, by column."""
    notation = named(name)
    for priority, expected in zip(Priority, (high, medium, low), strict=True):
        assert notation.render(said("a", priority=priority)) == f"[2026-02-10 14:32] {expected}"
    assert notation.render(said("a", status=Status.DONE)) == f"[2026-02-10 14:32] {done}"
    assert notation.render_under(said("a", priority=Priority.MEDIUM)) == "a"


@pytest.mark.parametrize(
    ("importance", "priority", "mark"),
    [
        (7, Priority.HIGH, "7/10"),
        (10, Priority.HIGH, "10/10"),
        (4, Priority.MEDIUM, "4/10"),
        (0, Priority.LOW, "0/10"),
        (7, Priority.MEDIUM, "7/10"),
        (None, Priority.HIGH, "8/10"),
    ],
)
def test_an_importance_is_written_as_it_is_whatever_the_priority(
    importance: int | None, priority: Priority, mark: str
) -> None:
    """C1, XB4: an edit has importance 7 and medium priority."""
    assert OF_TEN.mark(replace(said("a", priority=priority), importance=importance)) == mark


@pytest.mark.parametrize(
    ("marks", "priority", "status"),
    [
        ("\U0001f7e2 \U0001f534", Priority.HIGH, None),
        ("\U0001f7e1 \u2705", Priority.HIGH, Status.DONE),
        ("\U0001f534 \u2705", Priority.HIGH, Status.DONE),
        ("\U0001f7e2 \U0001f7e1", Priority.MEDIUM, None),
        ("\U0001f7e2 \U0001f7e2", Priority.LOW, None),
    ],
)
def test_of_several_marks_the_gravest_counts(marks: str, priority: Priority, status: Status | None) -> None:
    """C1: high or done make a row high, else medium, else low; all of them are kept."""
    read = named("emoji").parse(f"[2026-02-10 14:32] {marks} a")
    assert read == replace(said("a", priority=priority, status=status), mark=marks)


@pytest.mark.parametrize("text", ["ptr->next uses arr[0] and foo[bar]", "    if x:  # two  spaces", r"C:\new\table"])
@pytest.mark.parametrize("notation", NOTATIONS, ids=lambda notation: notation.name)
def test_code_in_a_row_is_written_byte_for_byte(text: str, notation: Notation) -> None:
    """F47: brackets, arrows, indentation and backslashes stay."""
    assert notation.render(said(text)).endswith(text)


@pytest.mark.parametrize("notation", NOTATIONS, ids=lambda notation: notation.name)
def test_a_megabyte_on_one_line_reads_back(notation: Notation) -> None:
    """T74: a row of 1 MB."""
    for text in (
        "x </om-memory> " * 70_000,
        "\\" * 1_000_000 + "done: ",
        "\U0001f534 " * 300_000,
        "CRITICAL " * 100_000,
    ):
        began = time.process_time()
        line = said(text)
        assert notation.parse(notation.render(line), "") == as_read(line, notation)
        assert time.process_time() - began < 2, "reading a line must not take its square"


@pytest.mark.parametrize("text", ["", "2026-02-10", "14:32 CRITICAL no day", "[2026-02-10 14:32] URGENT x", *NASTY[:4]])
def test_what_is_no_row_is_not_read_as_one(text: str) -> None:
    assert WORDS.parse(text, "") is None


def test_an_unknown_notation_is_refused_with_the_known_ones() -> None:
    assert named("words") is WORDS
    with pytest.raises(BadUsage) as refused:
        named("emoticons")
    assert "words" in refused.value.hint
