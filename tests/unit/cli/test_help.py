"""Help is written without Typer, from what commands declare."""

from __future__ import annotations

from inspect import cleandoc

import pytest
from typer.testing import CliRunner

from omcli.cli.app import cli
from omcli.cli.commands import COMMANDS, GROUPS, command
from omcli.cli.help import command_help, main_help, sections

SUMMARIES = {name: about for names in GROUPS.values() for name, about in names.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_sentence_of_the_command(name: str) -> None:
    """It is a copy, so that `om --help` need not import all commands."""
    paragraph = " ".join((command(name).__doc__ or "").strip().partition("\n\n")[0].split())
    assert paragraph == SUMMARIES[name] or paragraph.startswith(f"{SUMMARIES[name]} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_is_explained(name: str) -> None:
    entries = [entry for found in sections(command(name).parameters).values() for entry in found]
    assert all(term and meaning.strip() for term, meaning in entries)


@pytest.mark.parametrize("name", COMMANDS)
def test_typer_prints_the_same_help(name: str) -> None:
    """It prints the help of lines such as `om log -q --help`."""
    assert CliRunner().invoke(cli(), [name, "-h"], prog_name="om").stdout == command_help(name)


@pytest.mark.parametrize("columns", [1, 52, 80, 100, 300])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between 50 columns and 98, apart from examples, lists and options, which stay in one piece."""
    monkeypatch.setenv("COLUMNS", str(columns))
    raw = {line.strip() for name in COMMANDS for line in cleandoc(command(name).__doc__ or "").splitlines()}
    texts = [main_help(), *map(command_help, COMMANDS)]
    lines = [line for text in texts for line in text.partition("\n\nExamples:")[0].splitlines()]
    widest = max(len(line) for line in lines if line.strip() not in raw and not line.startswith("  --"))
    assert max(min(columns - 2, 98), 50) - 10 < widest <= max(min(columns - 2, 98), 50)
