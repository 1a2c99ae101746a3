"""No gap between what was observed and the last messages: every message is in a tier of `om context`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omcli.tokenizers import counter
from tests.architecture.hot_path import loaded
from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, stored
from tests.e2e.scripts import always
from tests.e2e.transcripts import Talk

SESSION = "5d0c6e0a-0000-4000-8000-00000000000c"


def talk(turns: int, *, words: int = 120) -> Talk:
    """A session in which every turn has a fact of its own, and more words than its row."""
    said = Talk(session=SESSION)
    for turn in range(turns):
        said.user(f"Use port {8000 + turn} for service {turn}. {'Please look at the logs too. ' * (words // 6)}")
        said.assistant(f"Service {turn} listens on {8000 + turn}. {'The log shows nothing unusual. ' * (words // 5)}")
    return said


def document(om: Om, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = om("context", "--session", SESSION, "--json", *options).document
    return found


def test_the_tail_grows_into_free_budget_back_to_the_first_unobserved_message(om: Om) -> None:
    """XB1, S0.1, S0.4, C13: what waits is not due, and the tail's own 8,000 tokens don't reach it."""
    om("observe", "--later", stdin=talk(40).text())
    om(
        "tick",
        "--check",
        "--session",
        SESSION,
        env={"OM_OBSERVER_MODEL": "scripted/nowhere", "OM_OBSERVE_TOKENS": "100000"},
        code=1,
    )
    found = document(om)
    assert (found["pending"], found["gap"], len(found["messages"])) == (80, 0, 80)
    assert found["observations"] == []
    assert 8_000 < found["tokens"]["tail"] <= found["budget"] == 20_000
    pack = om("context", "--session", SESSION).stdout
    assert "user: Use port 8000 for service 0." in pack
    assert counter("o200k-approx").text(pack) <= 20_000


def test_a_tail_that_grew_keeps_rows_of_other_tiers(om: Om) -> None:
    """XB1: it takes what is free, and no row's place."""
    om("observe", stdin=talk(30).text())
    before = document(om)
    om("observe", "--later", stdin=talk(60).text())
    found = document(om)
    assert found["gap"] == 0
    assert found["tokens"]["session"] >= before["tokens"]["session"] * 0.98
    assert not any("provisional" in row.get("tags", ()) for row in found["observations"])
    assert found["tokens"]["tail"] > 8_000
    assert len(found["messages"]) == 60, "no message that was observed takes part in it"


@pytest.mark.parametrize("options", [("--budget", "3000"), ("--budget", "700"), ("--tail-budget", "500")])
def test_rules_stand_in_for_what_the_tail_does_not_reach(om: Om, options: tuple[str, ...]) -> None:
    """XB1: marked provisional, within the budget, the same bytes each time; nothing is stored."""
    om("observe", "--later", stdin=talk(40).text())
    bytes_before = stored(om.place)
    found = document(om, *options)
    assert (found["pending"], found["gap"]) == (80, 0)
    assert found["observations"]
    assert all(row["tags"][-1] == "provisional" for row in found["observations"])
    pack = om("context", "--session", SESSION, *options, "--now", "2026-03-11T01:00Z")
    assert "(provisional)" in pack.stdout
    assert counter("o200k-approx").text(pack.stdout) <= found["budget"]
    assert om("context", "--session", SESSION, *options, "--now", "2026-03-11T05:00Z").stdout == pack.stdout
    assert om("log", "--session", SESSION).stdout == ""
    assert stored(om.place) == bytes_before
    om("observe", stdin=talk(40).text())
    assert "provisional" not in om("context", "--session", SESSION, *options).stdout
    assert document(om, *options)["gap"] == 0


def test_a_stored_row_that_what_waits_would_replace_is_not_shown_beside_its_successor(om: Om) -> None:
    """XB1: an error that was mended in messages nobody observed yet; the stored row stays as it is."""
    broken = talk(3).user("Run the tests").call("Bash", {"command": "bun test"}).result("1 fail", is_error=True)
    om("observe", stdin=broken.text())
    mended = broken.call("Bash", {"command": "bun test"}).result("12 pass").assistant("All tests pass now.")
    for turn in range(20):
        mended.user(f"And now number {turn}. {'More words. ' * 100}").assistant(f"Done {turn}. {'Fine. ' * 100}")
    om("observe", "--later", stdin=mended.text())
    pack = om("context", "--session", SESSION, "--budget", "3000").stdout
    assert pack.count("1 fail") == 1
    assert "resolved: " in pack
    assert "resolved" not in om("log", "--session", SESSION).stdout


def test_a_tier_that_was_not_asked_for_is_not_filled(om: Om) -> None:
    """XB1: a host that keeps the messages itself; the number of those it has to keep is told."""
    om("observe", "--later", stdin=talk(40).text())
    assert om("context", "--session", SESSION, "--tier", "session", "--tier", "cross").stdout == ""
    assert document(om, "--tier", "session")["gap"] == 80
    assert document(om, "--tier", "tail")["observations"] == []


def test_rules_are_loaded_for_a_gap_only(om: Om) -> None:
    """XB1, S0.19: neither where all is observed nor where the tail holds the rest."""
    om("observe", stdin=talk(10).text())
    rules = {"omcli.observers.rules", "omcli.operations.observe.rows"}
    assert not rules & loaded(om, "context")
    om("observe", "--later", stdin=talk(40).text())
    assert not rules & loaded(om, "context")
    assert rules <= loaded(om, "context", "--budget", "2000")


def test_a_list_of_messages_without_rows_has_no_empty_memory(om: Om) -> None:
    """XB13: where no tier of rows has anything to say, nothing is said for it."""
    om("observe", "--later", stdin=talk(2).text())
    for to in ("messages", "anthropic"):
        printed = om("context", "--session", SESSION, "--to", to).stdout
        assert "om-memory" not in printed
        assert [message["role"] for message in json.loads(printed)] == ["user", "assistant"] * 2
    for to in ("text", "markdown", "xml"):
        assert om("context", "--session", SESSION, "--tier", "session", "--to", to).stdout == ""


def test_the_working_memory_block_knows_tool_calls_before_a_model_does(om: Om) -> None:
    """XB15, S4.2, S4.9, S4.10, S4.13: not due, failing, and observed; the same lines, and each row once."""
    work = Talk(session=SESSION).user("Please fix the login test in auth.ts.")
    work.call("Edit", {"file_path": "/repo/auth.ts", "old_string": "a()", "new_string": "b()"}).result("ok")
    work.call("Bash", {"command": "bun test"}).result("1 fail", is_error=True)
    model = always(om, "echo")
    om("observe", "--later", stdin=work.text())
    om("tick", "--model", model.model, code=1)  # not due
    block = om("context", "--working-memory", "--session", SESSION)
    assert "### Modified Files" in block.stdout
    assert "auth.ts" in block.stdout
    assert "bun test" in block.stdout.partition("### Recent Errors")[2]
    assert "provisional" not in block.stdout
    assert om("log", "--session", SESSION).stdout == ""
    om("observe", "--model", "scripted/nowhere", "--best-effort", stdin=work.text(), code=None)
    assert om("context", "--working-memory", "--session", SESSION).stdout == block.stdout
    om("observe", "--model", model.model, stdin=work.text())
    after = om("context", "--working-memory", "--session", SESSION).stdout
    assert after.count("auth.ts") == block.stdout.count("auth.ts")
    assert after.count("bun test") == block.stdout.count("bun test")
    sources = [row["source"] for row in om("log", "--session", SESSION, "--jsonl").lines if "file" in row["type"]]
    assert sources == ["rules"]
    assert_covered_once(om.place)


def test_an_error_mended_in_messages_that_wait_is_resolved_in_the_block(om: Om) -> None:
    """XB15, S4.16: the stored row stays as it is."""
    broken = Talk(session=SESSION).user("Run the tests").call("Bash", {"command": "bun test"})
    broken.result("1 fail", is_error=True)
    om("observe", stdin=broken.text())
    om("observe", "--later", stdin=broken.call("Bash", {"command": "bun test"}).result("12 pass").text())
    block = om("context", "--working-memory", "--session", SESSION).stdout
    assert block.partition("### Recent Errors")[2].partition("###")[0].count("(resolved)") == 1
    assert "resolved" not in om("log", "--session", SESSION).stdout


DECIDED = "We decided to use Postgres for the beacon."
NEXT = "5d0c6e0a-0000-4000-8000-00000000000d"
MODEL = {"OM_OBSERVER_MODEL": "scripted/nowhere"}


@pytest.mark.parametrize("cwd", ["/srv/beacon", None])
def test_rules_stand_in_for_what_waits_in_other_sessions(om: Om, cwd: str | None) -> None:
    """XB2, S0.3: a session too short for a model is known to the next one; the same bytes, and nothing is stored."""
    said = [{"role": "user", "content": text} for text in (DECIDED, "Thanks.", "Please list src.")]
    if cwd:
        short = Talk(session=SESSION, cwd=cwd).user(DECIDED).assistant("Fine.").user("Please list src.").text()
        om("observe", "--later", stdin=short)
        om("observe", "--later", stdin=Talk(session=NEXT, cwd=cwd).user("Please go on.").text())
    else:
        short = "\n".join(map(json.dumps, said))
        om("observe", "--later", "--format", "openai", "--session", SESSION, stdin=short)
        om("observe", "--later", "--format", "openai", "--session", NEXT, stdin=json.dumps(said[1]))
    bytes_before = stored(om.place)
    asked = ("context", "--session", NEXT)
    pack = om(*asked, env=MODEL).stdout
    assert f"CRITICAL User: {DECIDED} (provisional)\n" in pack.partition("From other sessions:\n")[2]
    assert "list src" not in pack
    assert om(*asked, env=MODEL).stdout == pack
    assert DECIDED not in om(*asked, "--scope", "session", env=MODEL).stdout
    assert DECIDED not in om(*asked, env={**MODEL, "OM_CONTEXT_FREEZE": "1"}).stdout
    [row] = om(*asked, "--json", env=MODEL).document["cross"]
    assert row["tags"] == ["provisional"]
    assert om("log").stdout == ""
    assert stored(om.place) == bytes_before
    om("observe", "--session", SESSION, stdin=short)
    after = om(*asked, env=MODEL).stdout
    assert after.count(DECIDED) == 1
    assert "provisional" not in after


def test_what_waits_in_other_sessions_is_said_once(om: Om) -> None:
    """XB2, XB3: by the session itself, or by the rows of another; other projects are not asked."""
    for number in range(3):
        talk = Talk(session=f"{SESSION[:-1]}{number}", cwd="/srv/beacon").user(DECIDED)
        om("observe", "--later", stdin=talk.user(f"Never push to release-{number}.").text())
    om("observe", "--later", stdin=Talk(session=NEXT, cwd="/srv/other").user("Please go on.").text())
    assert "provisional" not in om("context", "--session", NEXT, env=MODEL).stdout
    shown = om("context", "--session", NEXT, "--scope", "global", "--json", env=MODEL).document["cross"]
    assert sorted(row["text"] for row in shown) == sorted(
        f"User: {text} (provisional)"
        for text in (DECIDED, *(f"Never push to release-{number}." for number in range(3)))
    )
    assert len({row["id"] for row in shown}) == 4
    om("observe", stdin=Talk(session=NEXT, cwd="/srv/other").user("Please go on.").user(DECIDED).text())
    pack = om("context", "--session", NEXT, "--scope", "global", "--tier", "cross", "--tier", "session").stdout
    assert pack.count(DECIDED) == 1


def test_rules_are_loaded_for_other_sessions_only_if_messages_wait_there(om: Om) -> None:
    """XB2, S0.19: a pack stays light where all is observed."""
    om("observe", stdin=talk(3).text())
    om("observe", stdin=Talk(session=NEXT).user("Please go on.").text())
    rules = {"omcli.observers.rules", "omcli.operations.observe.rows"}
    assert not rules & loaded(om, "context", "--session", NEXT)
    om("observe", "--later", stdin=talk(4).text())
    assert rules <= loaded(om, "context", "--session", NEXT)
