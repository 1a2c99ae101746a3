"""`om context --explain`: why each row is in the pack, or why not, by the choice itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk, tide_story

ONE, OTHER = tide_story().session, "5d0c6e0a-0000-4000-8000-00000000000b"


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "-q", stdin=Talk(session=OTHER, cwd=PROJECT).user("Always run make lint before you push.").text())
    om("observe", "-q", stdin=tide_story().text())
    return om


def explained(om: Om, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = om("context", "--session", ONE, "--explain", "--json", *arguments).document
    return found


def reasons(om: Om, *arguments: str) -> dict[str, str]:
    """The reason of each row, by its text."""
    found = explained(om, *arguments)
    return {row["text"]: row["reason"] for row in (*found["rows"], *found["left_out"])}


@pytest.mark.parametrize("budget", [0, 60, 150, 400, 20_000])
@pytest.mark.parametrize("task", ["", "lower case stations"])
def test_the_rows_explained_are_those_of_the_pack(told: Om, budget: int, task: str) -> None:
    """Each row once: in the pack or left out."""
    arguments = ("--budget", str(budget), "--for", task)
    pack = told("context", "--session", ONE, "--json", *arguments).document
    found = explained(told, *arguments)
    assert sorted(row["id"] for row in found["rows"]) == sorted(
        row["id"] for row in (*pack["cross"], *pack["observations"])
    )
    both = [row["id"] for row in (*found["rows"], *found["left_out"])]
    assert len(both) == len(set(both))
    assert found["tokens"] == pack["tokens"]
    for tier in ("cross", "session"):
        assert sum(row["tokens"] for row in found["rows"] if row["tier"] == tier) >= (pack["tokens"][tier] > 0)


def test_a_table_has_a_line_per_row_and_then_what_was_left_out(told: Om) -> None:
    ended = told("context", "--session", ONE, "--budget", "150", "--explain")
    chosen, _, left_out = ended.stdout.partition("\n\n")
    assert chosen.splitlines()[0].split() == ["TIER", "TOKENS", "ID", "WHY", "TEXT"]
    assert left_out.splitlines()[0].split("  ")[0] == "LEFT OUT"
    assert "of 150 at most" in chosen.splitlines()[-1]
    ids = {row["id"][-8:] for row in told("log", "--json").document["observations"]}
    shown = [line.split()[2] for line in (*chosen.splitlines()[1:], *left_out.splitlines()[1:])]
    assert ids & set(shown)
    whole = told("context", "--session", ONE, "--explain").stdout
    assert re.search(r"\ntail +\d+ +\d+ last messages +from 2026-02-10 \d\d:\d\d on\n", whole)
    assert "<om-memory" not in ended.stdout


def test_rows_in_the_pack_have_the_reason_of_their_rank(told: Om) -> None:
    told("note", "Never touch the crane.", "--tag", "pinned", "--session", ONE)
    told("observe", "-q", stdin=tide_story().user("Please measure the tide at the gate.").text())
    found = reasons(told, "--for", "lower case ids")
    assert found["Never touch the crane."] == "pinned"
    assert found["User: Always run make lint before you push."] == "important and recent"
    assert found["User: Please measure the tide at the gate."] == "asked last and open"
    assert "most informative per token" in found.values()
    recent = reasons(told, "--config", str(told.write("om.toml", '[context]\nselect = "recent"\n')))
    assert "newest" in recent.values()
    assert "most informative per token" not in recent.values()


def test_a_row_that_matches_says_with_which_words(told: Om) -> None:
    found = explained(told, "--for", "stations in lower case", "--tail-budget", "0")
    [row] = [row for row in found["rows"] if "decided" in row["text"]]
    assert (row["reason"], row["words"]) == ("matches", ["stations", "lower", "case"])
    asking = ("context", "--session", ONE, "--explain", "--tail-budget", "0", "--for")
    assert "matches: stations  " in told(*asking, "stations").stdout
    assert "matches: decided, stations, lower +1  " in told(*asking, "decided: stations in lower case").stdout


def test_rows_left_out_have_the_reason_that_kept_them_out(told: Om) -> None:
    told("note", "The harbour " + "is very deep and wide " * 40, "--session", ONE)
    [deep] = [row for row in explained(told, "--budget", "200")["left_out"] if "harbour" in row["text"]]
    assert deep["reason"] == "does not fit"
    assert deep["tokens"] > deep["room"] > 0
    assert (
        f"does not fit ({deep['room']} left)"
        in told("context", "--session", ONE, "--budget", "200", "--explain").stdout
    )


def test_what_the_last_messages_say_is_left_out_for_that(told: Om) -> None:
    found = explained(told, "--for", "lower case")
    assert [row for row in found["left_out"] if row["reason"] == "the last messages or another row say it"]
    assert not [row for row in explained(told)["left_out"] if "say it" in row["reason"]]


def test_rows_of_other_sessions_may_repeat_or_not_concern_this_one(told: Om) -> None:
    talk = Talk(session=OTHER[:-1] + "c", cwd=PROJECT).user("Always run make lint before you push.")
    told("observe", "-q", stdin=talk.text())
    assert "another row has the same text" in [row["reason"] for row in explained(told)["left_out"]]


def test_rows_beyond_a_limit_of_their_number_name_the_setting(told: Om) -> None:
    """T60."""
    told("observe", "-q", "--now", "2099-01-01T00:00Z", stdin=tide_story().user("We also decided to use PNG.").text())
    config = told.write("om.toml", "[context]\nobservations = 1\n")
    assert any("`context.observations`" in reason for reason in reasons(told, "--config", str(config)).values())


def test_quoted_output_is_limited(om: Om) -> None:
    talk = Talk(session=ONE).user("Look at the settings of the harbour.")
    for number in range(30):
        talk.call("Read", {"file_path": f"/p/harbour_{number}.py"})
        talk.result(
            f"1\tDEPTH_{number} = {number}\n2\tdef measure_{number}(gauge_{number}: Gauge) -> Depth_{number}:\n"
        )
    om("observe", "-q", stdin=talk.text())
    found = reasons(om, "--budget", "400", "--tier", "session")
    assert "quoted output gets a third at most" in found.values()


def test_all_that_is_not_told_elsewhere_comes_if_there_is_room(om: Om) -> None:
    """Quoted output as well."""
    talk = Talk(session=ONE).user("Look at the settings of the harbour.")
    for number in range(30):
        talk.call("Read", {"file_path": f"/p/harbour_{number}.py"})
        talk.result(
            f"1\tDEPTH_{number} = {number}\n2\tdef measure_{number}(gauge_{number}: Gauge) -> Depth_{number}:\n"
        )
    om("observe", "-q", stdin=talk.user("We decided to dredge it.").text())
    found = explained(om, "--for", "the gauge of the harbour", "--tail-budget", "60")
    assert {row["reason"] for row in found["left_out"]} == {"the last messages or another row say it"}
    assert len(found["rows"]) > 20


def test_a_tier_that_is_not_printed_is_not_explained(told: Om) -> None:
    found = explained(told, "--tier", "cross")
    assert {row["tier"] for row in (*found["rows"], *found["left_out"])} == {"cross"}


def test_explaining_needs_a_pack(told: Om) -> None:
    assert "excludes" in told("context", "--explain", "--working-memory", code=2).stderr
    assert "LEFT OUT" not in told("context", "--explain", "--session", ONE).stdout.splitlines()[0]
    env = {"OM_CONTEXT_BLOCK": "1"}
    assert told("context", "--explain", "--session", ONE, env=env).stdout.startswith("TIER")


def test_nothing_stored_leaves_an_empty_table(om: Om) -> None:
    ended = om("context", "--explain")
    assert ended.stdout.splitlines()[0].split() == ["TIER", "TOKENS", "ID", "WHY", "TEXT"]
    assert explained(om)["rows"] == []
    assert not om.has_store
