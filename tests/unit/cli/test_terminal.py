"""Data on a terminal: everything is shown, and no line is longer than the terminal is wide."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from omcli.cli.terminal import StatusLine, Terminal

TEXTS = st.text(st.sampled_from("abc e\u0301 潮汐表 ｆ 🌊 é []:/"), max_size=90).map(
    lambda text: " ".join(text.split())
)
HEADER = ("SESSION", "AGENT", "MESSAGES", "LAST", "PROJECT", "TITLE")


@pytest.fixture(params=[60, 80, 120])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How wide the terminal is."""
    return at_width(request.param, monkeypatch)


def at_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    return columns


def squeezed(text: str) -> str:
    """A text without spaces and escape sequences."""
    return re.sub(r"\s|\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("has_colour", [True, False])
@given(data=st.data())
def test_whatever_is_drawn_fits_and_is_whole(has_colour: bool, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        columns = at_width(data.draw(st.sampled_from([60, 80, 120])), monkeypatch)
        terminal = Terminal(has_colour=has_colour)
        text, remark = data.draw(TEXTS), data.draw(TEXTS)
        drawn = [
            terminal.row("3f9a1c2e", ("[2026-01-06 13:46]", "high", "decision:"), text, remark=remark),
            terminal.entry("3f9a1c2e", text),
            terminal.fields([("project", text), ("state", remark)], width=13),
            terminal.paragraph(text),
            terminal.settings({"observe.tokens": text}, {}),
        ]
    for shown in drawn:
        assert squeezed(text) in squeezed(shown)
        assert all(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= columns for line in shown.splitlines())
        assert ("\x1b" in shown) <= has_colour
    assert squeezed(remark) in squeezed(drawn[0])


def test_a_table_fits_and_leaves_nothing_out(columns: int) -> None:
    session, project = "5f0c3c1e-7b1d-4e0a-9a57-2f6f5d1b8c44", "/home/ada/code/tides"
    title = "Tide tables for all the harbours between Cuxhaven and Husum"
    row = (session, "claude-code", "214", "2026-01-06 13:46", project, title)
    shown = Terminal(has_colour=False).table(HEADER, [row, row], wrapped=("PROJECT", "TITLE"))
    assert all(cell_len(line) <= columns for line in shown.splitlines())
    for cell in row[:4]:
        assert shown.count(cell) == 2, "an id, a number or a date in part would mislead"
    for word in title.split():
        assert word in shown


def test_a_table_that_has_room_is_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    at_width(100, monkeypatch)
    rows = [("2026-01-06", "12", "潮汐"), ("2026-01-07", "7", "tides")]
    header, first, second = Terminal(has_colour=False).table(("DAY", "CALLS", "WHAT"), rows, wrapped=()).splitlines()
    assert header == "DAY         CALLS  WHAT"
    assert first == "2026-01-06     12  潮汐"
    assert second == "2026-01-07      7  tides"


def test_ids_that_begin_with_digits_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    at_width(100, monkeypatch)
    rows = [("cross", "7", "01a2169d"), ("cross", "12", "")]
    header, first, _ = Terminal(has_colour=False).table(("TIER", "TOKENS", "ID"), rows, wrapped=()).splitlines()
    assert header == "TIER   TOKENS  ID"
    assert first == "cross       7  01a2169d"


def test_a_long_row_continues_below_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    at_width(60, monkeypatch)
    shown = Terminal(has_colour=False).row("3f9a1c2e", ("[2026-01-06 13:46]", "low", "fact:"), "tide " * 20, remark="")
    first, *others = shown.splitlines()
    assert first.startswith("3f9a1c2e [2026-01-06 13:46] low    fact: tide")
    assert others
    assert all(line.startswith(" " * 9 + "tide") for line in others)


def test_progress_is_one_line_that_goes_again_and_the_cursor_is_never_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed while it shows progress leaves the terminal as it was."""
    at_width(40, monkeypatch)
    status = StatusLine(stream := StringIO(), has_colour=False)
    status.clear()
    assert stream.getvalue() == "", "there is nothing to erase"
    status.show("t.jsonl: 540 messages")
    status.show(f"{'long/' * 20}t.jsonl: 1080 messages")
    status.clear()
    first, last = (part for part in stream.getvalue().split("\r\x1b[2K") if part)
    assert (first, last[0]) == ("t.jsonl: 540 messages", "…")
    assert last.endswith("t.jsonl: 1080 messages")
    assert cell_len(last) < 40
    assert stream.getvalue().endswith("\r\x1b[2K")
    assert "\x1b[?25" not in stream.getvalue()
