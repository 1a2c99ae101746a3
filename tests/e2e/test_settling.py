"""What a later run of `om observe` learns of what an earlier one wrote down, as a person sees it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk


def log_of(om: Om, *arguments: str) -> list[dict[str, Any]]:
    return om("log", "--jsonl", *arguments).lines


def test_a_command_that_failed_in_one_run_and_passes_in_the_next_is_resolved(om: Om) -> None:
    """S4.16, T35: on a file that grows; the log shows the resolved row alone, and by what the open one was replaced."""
    talk = Talk().user("Fix the tide table").call("Bash", {"command": "bun test"})
    talk.result("Exit code 1\nerror: expected 4.2 m", is_error=True)
    transcript = om.write("tide.jsonl", talk.text())
    om("observe", transcript)
    (failure,) = log_of(om, "--type", "command_error")
    assert failure["status"] == "open"

    talk.call("Edit", {"file_path": f"{PROJECT}/tides.ts", "old_string": "4", "new_string": "4.2"}).result("ok")
    talk.call("Bash", {"command": "bun test"}).result("12 pass\n0 fail")
    talk.assistant("Done: fixed the rounding in tides.ts, all 12 tests pass.")
    om.write("tide.jsonl", talk.text())
    printed = om("observe", transcript).stdout

    (resolved,) = log_of(om, "--type", "command_error")
    assert (resolved["status"], resolved["priority"], resolved["text"]) == ("resolved", "medium", failure["text"])
    assert set(failure["message_ids"]) < set(resolved["message_ids"])
    assert "command_error resolved: Ran: bun test → " in printed
    assert "request done: User: Fix the tide table" in printed

    hidden = next(row for row in log_of(om, "--all") if row["id"] == failure["id"])
    assert (hidden["superseded_by"], hidden["reason"]) == (resolved["id"], "resolved")
    shown = om("show", failure["id"]).stdout
    assert resolved["id"] in shown
    assert "reason        resolved" in shown
    assert om("show", resolved["id"]).stdout.count("\n---") == len(resolved["message_ids"]), "with all its messages"


def test_commands_that_delete_are_not_folded_into_those_that_only_read(om: Om) -> None:
    """S4.5: by what the parts of a pipe do, not by its first word."""
    talk = Talk().user("Tidy up")
    commands = ("ls -la", "find . -name '*.py' | xargs grep -n tide", "find . -name '*.pyc' | xargs rm",
                'echo "$(git stash)"', "git remote set-url origin git@example.org:tides")  # fmt: skip
    for command in commands:
        talk.call("Bash", {"command": command}).result("")
    om("observe", "-q", om.write("tide.jsonl", talk.text()))
    ran = {(row["text"].removesuffix(" → ok"), row["priority"]) for row in log_of(om, "--type", "command_run")}
    folded = (f"Ran: {commands[0]}; {commands[1]}", "low")
    assert ran == {folded, *((f"Ran: {each}", "medium") for each in commands[2:])}


def test_three_runs_of_a_failing_command_are_one_row(om: Om) -> None:
    """F33, T22: across processes."""
    talk = Talk().user("Fix the tide table")
    for number in range(3):
        talk.call("Bash", {"command": "bun test"}).result(f"error: expected {number}.5 m", is_error=True)
        om("observe", om.write("tide.jsonl", talk.text()))
    (row,) = log_of(om, "--type", "command_error")
    assert row["text"] == "Ran: bun test → failed: error: expected 2.5 m (× 3)"
    assert len(row["message_ids"]) == 6
    assert len(log_of(om, "--all", "--type", "command_error")) == 3


def test_a_background_command_is_told_by_its_end_in_a_later_run(om: Om) -> None:
    """T28."""
    talk = Talk().user("Serve it").call("Bash", {"command": "npm run dev", "run_in_background": True})
    talk.result("Command running in background with ID: ab12")
    om("observe", om.write("tide.jsonl", talk.text()))
    assert [row["text"] for row in log_of(om, "--type", "command_run")] == ["Ran: npm run dev (still running)"]
    talk.call("BashOutput", {"bash_id": "ab12"})
    talk.result("<status>failed</status>\n<exit_code>1</exit_code>\nError: port 8443 is taken", is_error=True)
    om("observe", om.write("tide.jsonl", talk.text()))
    assert log_of(om, "--type", "command_run") == []
    (failed,) = log_of(om, "--type", "command_error")
    assert failed["text"].startswith("Ran: npm run dev → exit 1: ")


def test_a_decision_that_is_changed_days_later_holds_no_longer(om: Om) -> None:
    """The pack of `om context` names what holds now, and what held before beside it."""
    talk = Talk().user("Let's use Postgres for the queue").assistant("The queue is on Postgres.")
    om("observe", om.write("tide.jsonl", talk.text()))
    talk.user("Let's use SQLite instead of Postgres").assistant("Moved the queue to SQLite.")
    om("observe", om.write("tide.jsonl", talk.text()))
    (decision,) = log_of(om, "--type", "decision")
    assert decision["text"] == (
        "User: Let's use SQLite instead of Postgres (earlier: Let's use Postgres for the queue)"
    )
    pack = om("context", "--session", talk.session).stdout
    assert decision["text"] in pack
    assert pack.count("Let's use Postgres") == 2, "in the decision, and as it was said among the last messages"


def test_a_command_that_passes_elsewhere_leaves_the_failure_open(om: Om) -> None:
    """S4.16: a monorepo has one `make test` for each of its parts."""
    talk = Talk().user("Run the tests").call("Bash", {"command": "cd /src/web && make test"})
    talk.result("Exit code 2\nmake: *** no rule", is_error=True)
    transcript = om.write("parts.jsonl", talk.text())
    om("observe", transcript)
    om.write("parts.jsonl", talk.call("Bash", {"command": "cd /src/api && make test"}).result("4 passed").text())
    om("observe", transcript)
    assert [row["status"] for row in log_of(om, "--type", "command_error")] == ["open"]
    om.write("parts.jsonl", talk.call("Bash", {"command": "cd /src/web && make test"}).result("9 passed").text())
    om("observe", transcript)
    assert [row["status"] for row in log_of(om, "--type", "command_error")] == ["resolved"]


def asked(om: Om) -> list[tuple[str | None, str]]:
    rows = log_of(om, "--type", "request", "--type", "question")
    return [(row.get("status"), row["text"]) for row in rows]


def test_what_the_talk_went_past_is_not_open_for_ever(om: Om) -> None:
    """O9: over three runs - asked back, answered, done; the agent's question that nobody took up is let go with it."""
    talk = Talk().user("Add the harbours of Zeeland").assistant("They have three names each. Which of them is shown?")
    om("observe", om.write("tide.jsonl", talk.text()))
    assert [status for status, _ in asked(om)] == ["open", "open"]
    talk.user("Sort the list by depth before anything else, and keep the file as it is")
    om("observe", om.write("tide.jsonl", talk.text()))
    talk.call("Edit", {"file_path": f"{PROJECT}/tides.ts", "old_string": "4", "new_string": "4.2"}).result("ok")
    talk.assistant("Done: added the harbours to tides.ts, by depth.")
    om("observe", om.write("tide.jsonl", talk.text()))
    by_text = {text: status for status, text in asked(om)}
    assert by_text["User: Add the harbours of Zeeland"] == "done"
    assert "open" not in by_text.values()
    assert "- Last done: User: " in om("context", "--working-memory").stdout


def test_a_failure_is_mended_by_another_spelling_of_its_command(om: Om) -> None:
    """S4.16: `npm test`, and later the same as a script, with the end of what it prints."""
    talk = Talk().user("Fix the tide table").call("Bash", {"command": "npm test"})
    talk.result("Exit code 1\nerror: expected 4.2 m", is_error=True)
    om("observe", om.write("tide.jsonl", talk.text()))
    talk.call("Bash", {"command": "CI=1 npm run test 2>&1 | tail -4"}).result("12 passed")
    om("observe", om.write("tide.jsonl", talk.text()))
    (row,) = log_of(om, "--type", "command_error")
    assert row["status"] == "resolved"


def test_what_one_request_is_bound_to_does_not_last_and_a_standing_rule_does(om: Om) -> None:
    """S0.32, R12: told by two instructions of one session to every later one."""
    talk = Talk().user("Don't touch the lock file of the harbours.").assistant("I leave it alone.")
    talk.user("Before each commit, run the linter of the tide tables.").assistant("I will do that.")
    om("observe", om.write("tide.jsonl", talk.text()))
    assert len(log_of(om, "--type", "instruction")) == 2
    om("reflect", "--session", talk.session)
    items = om("items").stdout
    assert "run the linter" in items
    assert "lock file" not in items


def test_todos_that_nobody_touched_since_are_not_the_current_task(om: Om) -> None:
    """T32."""
    todos = [{"content": "Draw the map", "status": "pending"}, {"content": "Paint it", "status": "completed"}]
    talk = Talk().user("Draw a map").call("TodoWrite", {"todos": todos}).result("ok")
    for name in ("Texel", "Ameland", "Terschelling"):
        talk.user(f"Add the tides of {name}").call("Write", {"file_path": f"{PROJECT}/{name}.csv", "content": "1"})
        talk.result("ok").assistant(f"Added {name}.csv with its tides.")
    om("observe", om.write("tide.jsonl", talk.text()))
    assert "Draw the map" not in om("context", "--working-memory").stdout


ASKED = {
    "one": ("Add the harbours of Zeeland to tides.ts",),
    "long": ("Please work through the tide tables of the whole province. " * 6 + "Then rename the harbour column.",),
    "several": ("Add the harbours of Zeeland", "Also write a changelog entry for it", "And bump the version to 2.0"),
    "question": ("Why does the high water of Texel differ by an hour?",),
    "change of mind": ("Add the harbours of Zeeland", "Never mind the order, but use the Dutch names"),
    "error": ("Mend this:\n```\n" + 'File "tide.py", line 3, in high\n' * 40 + "KeyError: 'moon'\n```",),
    "plan": ("Implement the following plan:\n# Tides by moon\n" + "- change the table of a harbour\n" * 30,),
    "list": ("Do these:\n1. Sort the harbours by depth\n2. Drop the column\n3. Test the lock\n4. Rename the module",),
    "go on": ("Add the harbours of Zeeland", "continue"),
    "statement": ("The table of Texel should be in metres, not in feet",),
}


@pytest.mark.parametrize("said", ASKED.values(), ids=ASKED)
def test_what_was_asked_last_and_is_open_is_in_a_small_pack(om: Om, said: tuple[str, ...]) -> None:
    """XC3: 25 edits and 25 failures for each request leave no room for all."""
    talk = Talk()
    for prompt in said:
        talk.user(prompt)
        for number in range(25):
            edit = {"old_string": f"depth = {number}", "new_string": f"depth = compute_{number}(moon_{number})"}
            talk.call("Edit", {"file_path": f"{PROJECT}/island_{number}.ts", **edit}).result("ok")
            error = f"Exit code 2\nerror: island_{number}.ts: moon_{number} is undefined"
            talk.call("Bash", {"command": f"make island-{number}"}).result(error, is_error=True)
    om("observe", om.write("tide.jsonl", talk.text()))
    is_open = [text for status, text in asked(om) if status == "open"]
    pack = om("context", "--session", talk.session, "--budget", "500").stdout
    assert is_open
    assert [text for text in is_open[-3:] if text not in pack] == []


@pytest.mark.parametrize("runs", [(), (3,), (5,), (3, 5)])
def test_a_request_that_is_done_stands_where_it_was_made(om: Om, runs: tuple[int, ...]) -> None:
    """XC8: before what came of it, however many runs saw it."""
    talk = Talk().user("Add the harbours of Zeeland to tides.ts")
    talk.call("Edit", {"file_path": f"{PROJECT}/tides.ts", "old_string": "4", "new_string": "4.2"}).result("ok")
    talk.call("Bash", {"command": "make tides"}).result("built tides").assistant(
        "Done: added the harbours to tides.ts."
    )
    talk.user("Draw the map of the islands").call("Write", {"file_path": f"{PROJECT}/map.svg", "content": "<svg/>"})
    talk.result("ok").assistant("Drew the map in map.svg.")
    for end in (*runs, len(talk.lines)):
        om("observe", om.write("tide.jsonl", "".join(f"{line}\n" for line in talk.lines[:end])))
    pack = om("context", "--session", talk.session).stdout.partition("Last messages")[0]
    told = ("Add the harbours", "Modified tides.ts", "Agent: Done: added", "Draw the map", "Created map.svg")
    assert [pack.index(text) for text in told] == sorted(pack.index(text) for text in told)


CURRENT = {
    "commit": ("commit", "git commit -qam x", "[main 1a2b3c4] x", "The branch is ready.", "Last done: User: commit"),
    "push": ("push it", "git push", "1..2 main -> main", "", "Last done: User: push"),
    "tests": ("run the tests", "bun test", "12 pass", "", "Last done: User: run"),
    "musing": ("perhaps we should drop the cache", "cat tides.ts", "4", "That saves a query.", "Last done: User: Sort"),
    "paste": ("2026-03-02 10:11:12 INFO: please restart", "cat tides.ts", "4", "Harmless.", "Last done: User: Sort"),
    "thanks": ("thanks!", "", "", "You are welcome.", "Last done: User: Sort"),
    "question": ("why is the depth of Texel wrong?", "cat tides.ts", "4", "", "User: why is the depth"),
    "request": ("rename the column of the depth", "cat tides.ts", "4", "", "User: rename the column"),
    "go on": ("commit and continue", "git commit -qam x", "[main 1a2b3c4] x", "", "User: commit and continue"),
    "statement": ("the depth is in metres, not in feet", "cat tides.ts", "4", "", "User: the depth is in metres"),
}  # fmt: skip


@pytest.mark.parametrize(("prompt", "command", "output", "said", "current"), CURRENT.values(), ids=CURRENT)
def test_the_current_task_is_what_is_open_or_what_was_done_last(
    om: Om, prompt: str, command: str, output: str, said: str, current: str
) -> None:
    """XC2."""
    todos = [{"content": "Sort the depths", "status": "completed"}, {"content": "Test it", "status": "completed"}]
    talk = Talk().user("Sort the harbours by depth in tides.ts").call("TodoWrite", {"todos": todos}).result("ok")
    talk.call("Edit", {"file_path": f"{PROJECT}/tides.ts", "old_string": "4", "new_string": "4.2"}).result("ok")
    talk.assistant("Done: sorted the harbours in tides.ts.").user(prompt)
    if command:
        talk.call("Bash", {"command": command}).result(output)
    if said:
        talk.assistant(said)
    om("observe", om.write("tide.jsonl", talk.text()))
    block = om("context", "--working-memory").stdout
    shown = block.partition("### Current Task\n")[2].partition("\n\n")[0].splitlines()
    assert shown[0].startswith(f"- {current}")
    assert "Todos: 2 completed" not in block


@pytest.mark.parametrize(
    "prompt",
    [
        "Can you review the tide tables and let me know which of them are stale?",
        "Which of the tide tables are stale, and since when?",
        "Find out which of the tide tables are stale",
        "Sort out the stale tide tables",
    ],
)
def test_what_seemed_answered_is_open_again_when_the_agent_goes_on(om: Om, prompt: str) -> None:
    """S4.16: as it was asked, without the message that seemed to answer it."""
    talk = Talk().user("Hello").assistant("Hello.").user(prompt)
    talk.call("Bash", {"command": "cat tides.csv"}).result("4.2")
    talk.assistant("The table of Cuxhaven is stale. It ends in 2019. Its name has changed since.")
    transcript = om.write("tide.jsonl", talk.text())
    om("observe", "-q", transcript)
    (asked,) = [row for row in log_of(om) if prompt[:20] in row["text"]]
    assert asked["status"] == "done"

    talk.call("Bash", {"command": "cat harbours.csv"}).result("Texel")
    om.write("tide.jsonl", talk.text())
    om("observe", "-q", transcript)
    (again,) = [row for row in log_of(om) if prompt[:20] in row["text"]]
    assert (again["status"], again["message_ids"]) == ("open", asked["message_ids"][:1])
