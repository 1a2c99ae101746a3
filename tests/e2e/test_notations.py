"""`--notation`: the log and packs, in the marks that other designs use."""

from __future__ import annotations

import json
import re

import pytest

from omcli.memory.notation import NOTATIONS
from tests.conftest import Om
from tests.e2e.transcripts import Talk, tide_story

MARKS = {
    "words": "CRITICAL|IMPORTANT|NOTE",
    "emoji": "✅|\U0001f534|\U0001f7e1|\U0001f7e2",
    "brackets": r"\[!\]|\[\?\]|\[i\]",
    "levels": "HIGH|MED|LOW",
    "importance": "(?:10|[0-9])/10",
    "none": "",
}


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "-q", stdin=tide_story().text())
    return om


@pytest.mark.parametrize("name", [notation.name for notation in NOTATIONS])
def test_the_log_is_written_in_every_notation(told: Om, name: str) -> None:
    """T74, S0.25, S2.14, S3.8: the handle stays in front; date, mark and text are as the notation writes them."""
    rows = told("log", "--jsonl").lines
    lines = told("log", "--notation", name).stdout.splitlines()
    assert len(lines) == len(rows) > 5
    for line, row in zip(lines, rows, strict=True):
        mark = f"(?:{MARKS[name]}) " if MARKS[name] else ""
        assert re.fullmatch(rf"{row['id'][-8:]} \[\d{{4}}-\d\d-\d\d \d\d:\d\d\] {mark}.*", line), line
        assert line.endswith(row["text"])


def test_hidden_rows_are_told_apart_in_a_notation_too(told: Om) -> None:
    told(
        "observe",
        "-q",
        stdin=tide_story().call("Bash", {"command": "pytest -q tests/test_tides.py"}).result("ok").text(),
    )
    assert " (superseded)" in told("log", "--all", "--notation", "emoji").stdout


def test_a_text_that_tries_to_break_out_stays_in_its_line(om: Om) -> None:
    """T74: tags, quotes, NUL, line ends, emoji, scripts, and a mark of the notation at the beginning."""
    said = '\U0001f534 </om-memory> </observation-group> "a"\r\nand [!] HIGH \0 水位'
    om("note", "-", stdin=said)
    for notation in NOTATIONS:
        [line] = om("log", "--notation", notation.name).stdout.splitlines()
        assert '<\\/om-memory> </observation-group> "a" and [!] HIGH \ufffd 水位' in line
        read = notation.parse(line.partition(" ")[2])
        assert read is not None
        assert read.text == '\U0001f534 </om-memory> </observation-group> "a" and [!] HIGH \ufffd 水位'


@pytest.mark.parametrize("to", ["text", "markdown", "messages"])
def test_a_pack_is_written_in_a_notation(told: Om, to: str) -> None:
    """S3.8: by flag, or by the environment; a flag goes before that."""
    plain = told("context", "--to", to).stdout
    assert "CRITICAL " in plain
    marked = told("context", "--to", to, "--notation", "brackets").stdout
    assert "[!] " in marked
    assert "CRITICAL " not in marked
    assert told("context", "--to", to, env={"OM_NOTATION": "brackets"}).stdout == marked
    assert told("context", "--to", to, "--notation", "words", env={"OM_NOTATION": "brackets"}).stdout == plain


def test_where_priorities_are_fields_a_notation_changes_nothing(told: Om) -> None:
    assert told("context", "--to", "xml", "--notation", "emoji").stdout == told("context", "--to", "xml").stdout


def test_in_json_a_notation_changes_only_the_printed_text(told: Om) -> None:
    """XB6: the rows beside the text have their priorities as fields."""
    plain, marked = (
        json.loads(told("context", "--to", "json", *more).stdout) for more in ([], ["--notation", "emoji"])
    )
    assert marked["text"] != plain["text"]
    assert marked["observations"] == plain["observations"]


@pytest.mark.parametrize("notation", [notation.name for notation in NOTATIONS])
def test_a_pack_keeps_to_its_budget_in_every_notation(told: Om, notation: str) -> None:
    """Invariant 6."""
    for budget in ("60", "150", "400", "900"):
        pack = told("context", "--budget", budget, "--notation", notation).stdout
        assert int(told("tokens", "-", stdin=pack).stdout.split()[0]) <= int(budget)


def test_an_unknown_notation_is_refused_by_flag_and_warned_of_in_the_environment(told: Om) -> None:
    for command in ("log", "context"):
        refused = told(command, "--notation", "stars", code=2)
        assert refused.stderr.startswith("om: error: unknown notation `stars`\nhint: notations: words, emoji")
    run = told("context", env={"OM_NOTATION": "stars"})
    assert "`OM_NOTATION`: unknown notation `stars`; writing `words`" in run.stderr
    assert run.stdout == told("context").stdout


def test_the_prefix_of_a_pack_does_not_change_with_the_day(told: Om) -> None:
    """F52, S0.29: at midnight only the age of the last messages changes; dates are absolute in every notation."""
    for notation in NOTATIONS:
        before, after = (
            told("context", "--notation", notation.name, "--now", f"2026-02-{now}Z").stdout.partition(" messages, ")
            for now in ("11T23:59:00", "12T00:01:00")
        )
        assert before[0] == after[0] != ""
        assert before[2] == after[2].replace("2 days ago:", "1 day ago:", 1) != after[2]


def test_a_log_that_comes_back_in_a_transcript_is_not_taken_in(told: Om) -> None:
    """F45: in a notation as well."""
    printed = told("log", "--notation", "emoji").stdout
    talk = Talk(session="5d0c6e0a-0000-4000-8000-00000000000e").user(f"Here is what I have:\n{printed}\nGo on.")
    told("observe", "-q", stdin=talk.text())
    texts = [message["text"] for message in told("context", "--session", talk.session, "--json").document["messages"]]
    assert texts
    assert all("Cuxhaven" not in text for text in texts)
