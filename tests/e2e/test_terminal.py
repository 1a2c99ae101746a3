"""What a person sees on a terminal: wrapped lines, colour only where it is wanted, and all that a pipe gets."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from tests.conftest import Om
from tests.e2e.terminals import on_real_terminal, on_terminal
from tests.e2e.transcripts import tide_story

COMMANDS = [
    "log", "log --notation emoji", "items", "sessions", "status", "usage", "history", "config --origin", "why tides.py",
    "trace Cuxhaven",
]  # fmt: skip


@pytest.fixture
def told(om: Om) -> Om:
    """A store with a session, an item and an operation."""
    om("observe", "-q", stdin=tide_story().text())
    om("note", "--item", "Always give the tides of Cuxhaven in metres", "--tag", "pinned")
    om("prune", "--keep-last", "4")
    return om


def plain(text: str) -> str:
    """A text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("line", "columns", "printed"),
    [("log", 80, on_real_terminal), ("log", 60, on_real_terminal), *((line, 60, on_terminal) for line in COMMANDS)],
)
def test_lines_fit_and_say_what_a_pipe_gets(told: Om, line: str, columns: int, printed: Callable[..., str]) -> None:
    shown = plain(printed(told, *line.split(), columns=columns))
    assert all(cell_len(each) <= columns for each in shown.splitlines())
    is_table = line in ("sessions", "history")
    for word in () if is_table else re.findall(r"[a-z]{4,}", told(*line.split()).stdout):
        assert word in re.sub(r"\s", "", shown)


def test_a_row_is_shown_with_its_messages_below_headings(told: Om) -> None:
    row = told("log", "--jsonl").lines[0]
    shown = plain(on_terminal(told, "show", row["id"], columns=120))
    assert re.search(r"^2026-02-10 .* ─+$", shown, re.MULTILINE)
    assert row["text"].split()[0] in shown


def test_the_id_of_a_message_is_never_cut(told: Om) -> None:
    """It is what `om show MESSAGE` wants."""
    row = told("log", "--jsonl").lines[0]
    shown = plain(on_terminal(told, "show", row["id"], columns=40))
    assert all(message in shown.replace("\n", "") for message in row["message_ids"])


ENVIRONMENTS: list[tuple[dict[str, str], bool]] = [
    ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
]  # fmt: skip
"""Variables, and whether a terminal gets colour then."""


@pytest.mark.parametrize("command", ["log", "sessions", "status"])
@pytest.mark.parametrize(("env", "is_coloured"), ENVIRONMENTS)
def test_colour_is_a_matter_of_the_environment(told: Om, env: dict[str, str], is_coloured: bool, command: str) -> None:
    assert ("\x1b[" in on_terminal(told, command, env=env)) is is_coloured


@pytest.mark.parametrize(("env", "is_coloured"), ENVIRONMENTS[:2])
def test_a_process_sees_the_terminal_as_well(told: Om, env: dict[str, str], is_coloured: bool) -> None:
    assert ("\x1b[" in on_real_terminal(told, "log", env=env)) is is_coloured


@pytest.mark.parametrize("command", ["sessions", "status"])
def test_all_tables_are_coloured_alike(told: Om, command: str) -> None:
    assert "\x1b[" in on_terminal(told, command)
    assert "\x1b[" not in on_terminal(told, command, env={"NO_COLOR": "1"})


@pytest.mark.parametrize("env", [env for env, _ in ENVIRONMENTS])
def test_a_terminal_gets_no_colour_if_told_so(told: Om, env: dict[str, str]) -> None:
    assert "\x1b" not in on_terminal(told, "log", "--color", "never", env=env)


def test_the_variable_columns_goes_before_the_width_of_the_terminal(told: Om) -> None:
    shown = plain(on_real_terminal(told, "log", columns=200, env={"COLUMNS": "50"}))
    assert 40 < max(map(cell_len, shown.splitlines())) <= 50
