"""`om reflect` without a key: what becomes one row, what stays, what it leaves of a pack."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.reflecting import in_sight, labels, reflecting, reply, texts, told
from tests.e2e.scripts import rows
from tests.e2e.transcripts import PROJECT, Talk

NOW = ("--now", "2026-02-20T09:00:00Z")
SESSION = Talk().session


def story() -> Talk:
    """Return a session with repeats, runs, mended and open errors, edits and decisions, and with more remarks than are
    worth keeping.
    """
    talk = Talk().user("Always use metric units. Please add a --station flag to tides.py so that I can pick Cuxhaven.")
    for number in range(60):
        talk.assistant(
            f"Table {number} lists the hours of high water at pier {number}, which its keeper reads off the gauge there"
            f" and reports by telegram, so row {number} of the sheet has to be filled in by hand later."
        )
        talk.call("Bash", {"command": "make tables"}).result("built the tables")
        talk.call(
            "Edit", {"file_path": f"{PROJECT}/tides.py", "old_string": f"old{number}()", "new_string": f"new{number}()"}
        )
        talk.result("The file has been updated.")
        talk.call("Bash", {"command": "pytest -q tests"})
        talk.result(f"Exit code 1\nE   KeyError: 'station {number}'", is_error=True)
        talk.user("The tide tables of Cuxhaven are published each January by the office.")
    talk.call("Bash", {"command": "pytest -q tests"}).result("12 passed")
    talk.call("Bash", {"command": "make docs"}).result(
        "Exit code 2\nmake: no rule to make target 'docs'", is_error=True
    )
    talk.user("I prefer short commit messages in the imperative mood.")
    talk.user("We decided to keep station ids lower case, in stations.json.")
    return talk.assistant("Done: the flag is there, and all 12 tests pass.")


@pytest.fixture(scope="module")
def told_story(new_om: Callable[[], Om]) -> Om:
    """A store in which the story was observed, then reflected on; and what was there before."""
    om = new_om()
    om("observe", om.write("t.jsonl", story().text()), *NOW)
    om.write("before.jsonl", om("log", "--jsonl").stdout)
    om.write("block.txt", om("context", "--working-memory").stdout)
    om.write("report.json", om("reflect", "--session", SESSION, "--json", *NOW).stdout)
    return om


def before(om: Om) -> list[dict[str, Any]]:
    """The rows that were in sight before it was reflected on."""
    return [json.loads(line) for line in (om.folder / "before.jsonl").read_text().splitlines()]


def after(om: Om, **about: object) -> list[str]:
    """The texts in sight of rows like this."""
    return [row["text"] for row in in_sight(om) if all(row.get(name) == value for name, value in about.items())]


def test_repeats_become_one_row(told_story: Om) -> None:
    """R2, S0.33: what was said six times is there once, a list that is overtaken by a newer one not at all."""
    published = [row for row in rows(told_story) if "published each January" in row["text"]]
    assert len([row for row in published if "superseded_by" not in row and "dropped_at" not in row]) == 1


def test_runs_of_a_command_are_counted(told_story: Om) -> None:
    """S0.33: in one row."""
    runs = [text for text in texts(told_story) if "make tables" in text]
    assert len(runs) <= 1
    assert [text for text in texts(told_story) if "pytest -q tests" in text] == [
        text for text in texts(told_story) if "×" in text and "pytest -q tests" in text
    ]


def test_errors_that_were_mended_are_one_row(told_story: Om) -> None:
    """S0.33: how often, and what the last one was; none of them is open."""
    failed = [row for row in before(told_story) if row["type"] == "command_error" and "pytest" in row["text"]]
    assert failed
    left = [row for row in in_sight(told_story) if "pytest -q tests" in row["text"]]
    assert len(left) == 1
    assert left[0].get("status") != "open"


def test_what_is_open_and_what_holds_stays(told_story: Om) -> None:
    """T41, R6: word for word, with the same ids."""
    stay = [
        row["id"] for row in before(told_story)
        if row.get("status") == "open" or row["type"] in ("decision", "preference", "instruction")
    ]  # fmt: skip
    assert len(stay) >= 5
    assert set(stay) <= {row["id"] for row in in_sight(told_story)}


def test_what_was_folded_says_by_what(told_story: Om) -> None:
    """C8: nothing is deleted; a row that went names the one in its place, or why."""
    report = json.loads((told_story.folder / "report.json").read_text())
    everything = {row["id"]: row for row in rows(told_story)}
    assert {row["id"] for row in before(told_story)} <= everything.keys()
    gone = [
        everything[row["id"]]
        for row in before(told_story)
        if row["id"] not in {each["id"] for each in in_sight(told_story)}
    ]
    assert len(gone) == report["observations_condensed"] > 5
    for row in gone:
        assert row["reason"]
        assert row.get("superseded_by") in everything or row["dropped_at"]
    for reflection in report["reflections"]:
        assert [row["id"] for row in gone if row.get("superseded_by") == reflection["id"]]
        shown = told_story("show", reflection["id"]).stdout
        assert all(support[-8:] in shown for support in reflection["supports"])
    handle = gone[0]["id"][-8:]
    assert handle in told_story("log", "--all").stdout
    assert handle not in told_story("log").stdout


def test_it_comes_out_shorter_and_says_so(told_story: Om) -> None:
    """S0.30."""
    report = json.loads((told_story.folder / "report.json").read_text())
    assert report["outcome"] == "done"
    assert report["tokens_after"] < report["tokens_before"]
    assert report["read"] == len(before(told_story)) == report["observations_condensed"] + report["kept"]
    assert report["reflections_created"] == len(after(told_story, kind="reflection"))
    assert report["items_created"] == len(told_story("items", "--jsonl").lines)


def test_items_are_found_by_their_tags(told_story: Om) -> None:
    """S0.32, T40: what somebody prefers, what was decided, what is to be done always."""
    found = {tag: told_story("items", "--tag", tag).stdout for tag in ("preference", "decision", "instruction")}
    assert "short commit messages" in found["preference"]
    assert "station ids lower case" in found["decision"]
    assert "metric units" in found["instruction"]
    assert told_story("items", "--tag", "nonsense").stdout == ""
    pack = told_story("context", "--session", "another-session-1", *NOW, env={"OM_SCOPE": "global"}).stdout
    assert "short commit messages" in pack
    assert "metric units" in pack


def test_the_working_memory_block_is_the_same_to_the_byte(told_story: Om) -> None:
    """T36: after folding by rules, and by a model."""
    block = (told_story.folder / "block.txt").read_text()
    assert "tides.py" in block
    assert told_story("context", "--working-memory").stdout == block


def test_the_working_memory_block_outlives_a_model(om: Om) -> None:
    """T36."""
    om("observe", om.write("t.jsonl", story().text()), *NOW)
    block = om("context", "--working-memory").stdout
    count = len(in_sight(om))
    model = reflecting(om, reply(told("tides.py has a station flag, make docs fails, pytest passes", *labels(count))))
    report = om("reflect", "--model", model.model, "--json", *NOW, env={"OM_REFLECT_TARGET": "1"}).document
    assert report["observations_condensed"] > 5
    assert om("context", "--working-memory").stdout == block


@pytest.mark.parametrize("budget", [120, 300, 4000])
def test_a_pack_fits_its_budget_and_has_what_holds(told_story: Om, budget: int) -> None:
    """S0.33: after folding."""
    pack = told_story("context", "--session", SESSION, "--budget", str(budget), *NOW).stdout
    assert told_story("tokens", "--json", stdin=pack).document["tokens"] <= budget
    if budget >= 300:
        assert "metric units" in pack
        assert "station ids lower case" in pack
        assert "short commit messages" in pack


@pytest.mark.parametrize("preset", ["default", "lango"])
def test_the_same_rows_come_to_the_same(new_om: Callable[[], Om], preset: str) -> None:
    """Deterministic: two stores, the same time, ids at random; and the order in which sessions came plays no part."""

    def told_again(*, other_first: bool) -> list[tuple[object, ...]]:
        om = new_om()
        files = [om.write("t.jsonl", story().text())]
        other = om.write("o.jsonl", Talk(session="other").user("We decided to paint the quay each spring.").text())
        files.insert(0 if other_first else 1, other)
        om("observe", *files, *NOW)
        om("reflect", "--session", SESSION, *NOW, env={"OM_PRESET": preset})
        fields = ("text", "type", "kind", "priority", "status", "event_at", "observed_at", "message_ids", "tags")
        return [tuple(map(row.get, fields)) for row in in_sight(om, "--session", SESSION)] + [
            (item["text"], item["type"]) for item in om("items", "--jsonl", *NOW).lines
        ]

    once = told_again(other_first=False)
    assert told_again(other_first=False) == once
    assert told_again(other_first=True) == once


def test_reflecting_again_changes_nothing(told_story: Om) -> None:
    """F35: the rows that were left are not folded a second time, unless that is asked for."""
    log = told_story("log", "--all", "--jsonl").stdout
    run = told_story("reflect", "--session", SESSION, *NOW)
    assert "nothing has changed since" in run.stderr
    assert told_story("log", "--all", "--jsonl").stdout == log
    assert told_story("tick", *NOW, env={"OM_REFLECT_TOKENS": "10"}, code=1).stderr == "om: nothing is due\n"
    less = told_story("reflect", "--session", SESSION, "--dry-run", "--json", *NOW, env={"OM_REFLECT_TARGET": "0.1"})
    assert less.document["outcome"] in ("done", "empty"), "what is asked for otherwise is tried"


def test_rows_that_came_since_are_folded_with_those_that_were_left(om: Om) -> None:
    """S2.2: each time it is due."""
    talk = story()
    transcript = om.write("t.jsonl", talk.text())
    om("observe", transcript, *NOW)
    om("reflect", *NOW)
    left = len(in_sight(om, "--kind", "observation"))
    transcript.write_text(talk.call("Bash", {"command": "make docs"}).result("built the docs").text())
    om("observe", transcript, *NOW)
    report = om("reflect", "--json", *NOW).document
    assert report["read"] >= left
    assert not [row for row in in_sight(om) if "make docs" in row["text"] and row.get("status") == "open"]
