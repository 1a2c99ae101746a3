"""`om tokens`, `om status` and `om sessions`: numbers, and whose they are."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len as width

from omcli.tokenizers import NAMES as COUNTERS
from omcli.tokenizers import counter as named
from tests.conftest import Om
from tests.e2e.scripts import script
from tests.e2e.terminals import on_real_terminal, on_terminal
from tests.e2e.transcripts import PROJECT, Talk, tide_story

NEXT_DAY = datetime(2026, 2, 11, 9, tzinfo=UTC)
FOX = "The quick brown fox jumps over the lazy dog"


@pytest.mark.parametrize(
    ("counter", "text", "tokens"),
    [
        ("chars-4-cjk-2", "", 0),
        ("chars-4-cjk-2", "Hello world", 2),
        ("chars-4-cjk-2", "안녕하세요", 2),
        ("chars-4-cjk-2", "Hello 안녕", 2),
        ("chars-4-cjk-2", FOX, 10),
        ("chars-3.5-3", "", 0),
        ("chars-3.5-3", FOX, 13),
        ("chars-3.2", FOX, 14),
        ("chars-4", FOX, 11),
        ("chars-3.2", "x" * 40, 13),
        ("chars-3.2", "x" * 100, 32),
    ],
)
def test_text_is_counted_by_the_named_counter(om: Om, counter: str, text: str, tokens: int) -> None:
    """T1, T4, T5, S0.10."""
    run = om("tokens", "--counter", counter, stdin=text)
    assert run.stdout == f"{tokens}\n"
    assert run.stderr == f"om: -: text, counted with {counter}\n"


@pytest.mark.parametrize(
    ("counter", "messages", "unit", "tokens"),
    [
        ("chars-4-cjk-2", ["Hello world"], "transcript", 6),
        ("chars-4-cjk-2", ["Hello world", "Hi there!!"], "transcript", 12),
        ("chars-2.5", [], "transcript", 24),
        ("chars-2.5", ["Hello world"], "event", 4 + 5),
        ("chars-2.5", ["Hello world"], "transcript", 24 + 4 + 5),
    ],
)
def test_messages_are_counted_with_what_a_counter_adds(
    om: Om, counter: str, messages: list[str], unit: str, tokens: int
) -> None:
    """T2, T6, S0.10."""
    chat = json.dumps([{"role": "user", "content": text} for text in messages]) if messages else ""
    assert om("tokens", "--counter", counter, "--as", unit, stdin=chat).stdout == f"{tokens}\n"


def test_a_transcript_is_recognised_unless_it_is_called_text(om: Om) -> None:
    transcript = om.write("tide.jsonl", tide_story().text())
    document = om("tokens", transcript, "--json").document
    assert document["unit"] == "transcript"
    assert document["format"] == "claude-code"
    assert document["messages"] == 8
    assert document["counter"] == "o200k-approx"
    assert om("tokens", transcript, "--as", "text", "--json").document["tokens"] > document["tokens"]
    assert om("tokens", transcript, "--format", "klaude", code=2).stdout == ""
    assert om("tokens", "nowhere", code=66).stderr.startswith("om: error: nowhere: no such file\nhint: ")


def test_an_unknown_counter_is_refused_as_a_flag_and_ignored_in_the_environment(om: Om) -> None:
    """F92, D11."""
    assert "chars-4-cjk-2" in om("tokens", "--counter", "chars-5", stdin="x", code=2).stderr
    run = om("tokens", stdin="Hello world", env={"OM_COUNTER": "chars-5"})
    assert run.stderr.startswith("om: warning: `OM_COUNTER`: ")
    assert int(run.stdout) > 0
    assert om("tokens", "--strict", stdin="x", env={"OM_COUNTER": "chars-5"}, code=78).stdout == ""


def test_an_exact_counter_without_its_ranks_falls_back_at_once_and_says_so(om: Om) -> None:
    """F86: nothing is ever downloaded."""
    nowhere = {"TIKTOKEN_CACHE_DIR": str(om.home), "DATA_GYM_CACHE_DIR": "", "TMPDIR": str(om.home)}
    run = om("tokens", "--counter", "o200k", "--json", stdin="Hello world", env=nowhere)
    assert run.document["counter"] == "o200k-approx"
    assert run.stderr.startswith("om: warning: ")


def test_bad_numbers_and_switches_in_the_environment_warn_and_strict_refuses_them(om: Om) -> None:
    """F92, D5, D11: unknown variables with our prefix belong to somebody else."""
    bad = {"OM_WAIT": "abc", "OM_DISABLED": "perhaps", "OM_CONTEXT_BUDGET": "-5", "OM_LLM_MODEL": "x"}
    run = om("context", env=bad)
    assert [line.split("=")[0] for line in run.stderr.splitlines()] == [
        f"om: warning: `{name}" for name in ("OM_WAIT", "OM_DISABLED", "OM_CONTEXT_BUDGET")
    ]
    assert om("context", "--strict", env=bad, code=78).stdout == ""


def test_status_counts_everything_with_one_counter_and_names_it(om: Om) -> None:
    """T7, D2: rows stored under two counters are never added up."""
    om("observe", "--counter", "chars-4", stdin=tide_story().text())
    om("note", "we ship on Friday", "--counter", "chars-2.5")
    for counter in ("chars-4", "chars-2.5", "o200k-approx"):
        document = om("status", "--counter", counter, "--json").document
        assert document["counter"] == counter
        rows = om("log", "--jsonl").lines
        assert document["observation_tokens"] == sum(named(counter).text(row["text"]) for row in rows)
        assert document["messages"] == 8
        assert document["pending"] == 0
        assert document["store"] == str(om.place)
        assert document["schema_version"] >= 1
        assert document["size"] > 0
    assert f"({document['message_tokens']} tokens by o200k-approx)" in om("status").stdout


def test_status_says_what_failed_across_sessions(om: Om) -> None:
    om("observe", "-q", stdin=tide_story().text())
    model = script(om, "no JSON", "nor this", "nor that", "never")
    om("reflect", "--global", "--min-age", "0m", "--model", model.model, code=69)
    (line,) = [line for line in om("status").stdout.splitlines() if line.startswith("last error")]
    assert " reflect of all sessions: " in line


def test_status_of_no_store_is_empty_and_makes_none(om: Om) -> None:
    run = om("status")
    assert "not created yet" in run.stdout
    assert om("status", "--json").document["sessions"] == 0
    assert not om.has_store


def test_sessions_are_listed_the_last_one_first(om: Om) -> None:
    moon = Talk(session="moon", cwd="/home/ada/moon", begin=NEXT_DAY).user("We decided to use UTC.")
    om("observe", "--now", "2026-02-10T10:00Z", stdin=tide_story().text())
    om("observe", "--now", "2026-02-11T10:00Z", stdin=moon.text())

    rows = om("sessions", "--jsonl").lines
    assert [row["id"] for row in rows] == ["moon", tide_story().session]
    assert om("sessions", "--json").document == {"schema": 1, "sessions": rows}
    assert rows[1]["agent"] == "claude-code"
    assert rows[1]["project"] == PROJECT
    assert rows[1]["branch"] == "main"
    assert (rows[1]["messages"], rows[1]["pending"]) == (8, 0)
    assert (rows[1]["first_at"], rows[1]["last_at"]) == ("2026-02-10T09:00:00.000Z", "2026-02-10T09:07:00.000Z")
    assert rows[1]["seen_at"] == "2026-02-10T10:00:00.000Z"
    assert None not in rows[0].values()

    header, first, second = om("sessions").stdout.splitlines()
    assert header.split() == ["SESSION", "LAST", "MESSAGES", "ROWS", "PROJECT", "TITLE"]
    assert first.startswith("moon ")
    assert second.index("tide") == first.index("moon", 4) == header.index("PROJECT")
    assert [row["id"] for row in om("sessions", "--jsonl", "--project", PROJECT).lines] == [tide_story().session]
    assert len(om("sessions", "--jsonl", "--last", "1").lines) == 1


def test_a_wide_terminal_is_made_use_of_also_without_buffers(om: Om) -> None:
    """PYTHONUNBUFFERED is set in many containers."""
    om("observe", stdin=tide_story().text())
    for env in ({}, {"PYTHONUNBUFFERED": "1"}):
        shown = on_real_terminal(om, "sessions", columns=200, env={"TERM": "dumb", **env}).splitlines()
        assert [line.split() for line in shown] == [line.split() for line in om("sessions").stdout.splitlines()]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_every_column_of_the_sessions_stays_in_sight_on_a_narrow_terminal(om: Om, columns: int) -> None:
    """XD1: at 80 columns a line each, of which only the title is cut; below, paragraphs."""
    title = "Tide tables for all the harbours between Cuxhaven and Husum"
    named = json.dumps({"type": "ai-title", "sessionId": tide_story().session, "aiTitle": title})
    om("observe", stdin=tide_story().raw(named).text())
    om("observe", "--later", stdin=Talk(session="moon", cwd="/home/ada/moon-and-planets").user("Hello?").text())
    lines = on_terminal(om, "sessions", columns=columns, env={"TERM": "dumb"}).splitlines()

    assert max(map(len, lines)) <= columns
    story = tide_story().session[:8]
    if columns == 60:
        (start,) = [at for at, line in enumerate(lines) if line == story]
        assert "".join(" ".join(lines[start + 1 :]).split()).startswith(
            f"last2026-02-1009:07·messages8·rows6·pending0·projecttide-tables·title{title.replace(' ', '')}"
        )
    else:
        header, *rows = (line.split(maxsplit=7) for line in lines)
        assert header == ["SESSION", "LAST", "MESSAGES", "ROWS", "PENDING", "PROJECT", "TITLE"]
        (moon,) = [row for row in rows if row[0] == "moon"]
        assert moon[3:] == ["1", "0", "1", "moon-and-plan…", "Hello?"]
        (tide,) = [row for row in rows if row[0] == story]
        assert tide[1:7] == ["2026-02-10", "09:07", "8", "6", "0", "tide-tables"]
        assert title.startswith(tide[7].rstrip("…"))
        assert tide[7].endswith("…")
        assert max(map(len, lines)) == columns
    assert title in om("sessions").stdout


def test_help_names_the_counters(om: Om) -> None:
    """As the README says it does."""
    assert set(COUNTERS) <= set(re.split(r"[\s,;]+", om("tokens", "--help").stdout))


def test_no_sessions_are_no_error(om: Om) -> None:
    run = om("sessions")
    assert (run.stdout, run.stderr) == ("", "om: no sessions yet; `om observe FILE` adds one\n")
    assert om("sessions", "--json").document == {"schema": 1, "sessions": []}


def test_sessions_that_were_not_asked_for_are_not_said_to_be_missing(om: Om) -> None:
    om("observe", stdin=tide_story().text())
    assert "no sessions of project /nowhere; " in om("sessions", "--project", "/nowhere").stderr
    om("note", "x", "--session", "s")
    om("prune", "--keep-last", "0")
    for command in ("sessions", "history"):
        run = om(command, "--last", "0")
        assert (run.stdout, run.stderr) == ("", "")


def test_columns_stand_below_their_heads_whatever_the_script(om: Om) -> None:
    om("observe", stdin=Talk(session="潮汐表-2026").user("Hello?").text())
    om("observe", stdin=Talk(session="tides").user("Hello again?").text())
    header, *lines = om("sessions").stdout.splitlines()
    dates = [width(line[: line.index("2026-02-10")]) for line in lines]
    assert dates == [header.index("LAST")] * 2
