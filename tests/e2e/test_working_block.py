"""`om context --working-memory`: from what tools did to the block an agent is given, one process per command."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from omcli.tokenizers import counter
from tests.conftest import Om
from tests.e2e.contents import connected, stored
from tests.e2e.transcripts import PROJECT, Talk, tide_story

OTHER = "5d0c6e0a-0000-4000-8000-00000000000b"
NEW = "5d0c6e0a-0000-4000-8000-0000000000ff"
"""A session without messages."""
STORIES = Path(__file__).parents[1] / "stories"


def tools(*events: tuple[str, dict[str, Any], str] | tuple[str, dict[str, Any], str, bool], **fields: Any) -> Talk:
    """A session in which tools were used: name, arguments, output, and whether it failed."""
    talk = Talk(**fields).user("Go on, please.")
    for name, arguments, output, *failed in events:
        talk.call(name, arguments).result(output, is_error=bool(failed and failed[0]))
    return talk


def openai(*events: tuple[str, dict[str, Any], str]) -> str:
    """The same as a list of chat messages, which has no mark for failures."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Go on, please."}]
    for number, (name, arguments, output) in enumerate(events):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"call_{number}", "content": output})
    return json.dumps({"messages": said})


def rows(om: Om, transcript: str) -> list[dict[str, Any]]:
    """The rows of tool events."""
    om("observe", "-q", stdin=transcript)
    return [row for row in om("log", "--jsonl").lines if row["type"] not in ("request", "outcome")]


def block(om: Om, transcript: str) -> str:
    om("observe", "-q", stdin=transcript)
    return om("context", "-q", "--block").stdout


def under(printed: str, heading: str) -> list[str]:
    """The lines of a section."""
    _, _, rest = printed.partition(f"### {heading}\n")
    return rest.partition("\n\n")[0].splitlines()


EDIT = {"file_path": f"{PROJECT}/a.py", "old_string": "x = 1", "new_string": "x = 2"}


def test_edits_writes_and_reads_are_rows_with_what_changed(om: Om) -> None:
    """T27, S4.2, S4.3, S4.4, S4.9, S4.12"""
    found = rows(
        om,
        openai(
            ("edit_file", {"path": "p", "old_string": "x = 1", "new_string": "x = 2"}, "ok"),
            ("write_file", {"path": "q", "content": "hello"}, "ok"),
            ("read_file", {"path": "r"}, "hello"),
        ),
    )
    assert [(row["type"], row["importance"], row["text"]) for row in found] == [
        ("file_modified", 7, "Modified p: `x = 1` → `x = 2`"),
        ("file_created", 7, "Created q: + `hello`"),
        ("file_read", 3, "Read r"),
    ]
    assert found[0]["metadata"] == {"path": "p", "change": "modified", "edits": 1}
    assert found[0]["source"] == "rules"


def test_commands_are_rows_with_their_exit_codes_and_errors(om: Om) -> None:
    """T28, S4.5"""
    error = ("error: " + "unexpected token " * 40)[:500]
    found = rows(
        om,
        openai(
            ("run_command", {"command": "make a"}, json.dumps({"stdout": "", "stderr": "", "exitCode": 0})),
            ("run_command", {"command": "make b"}, json.dumps({"stdout": "", "stderr": "no rule", "exitCode": 1})),
            ("run_command", {"command": "make c"}, f"Error: {error}"[:500]),
            ("run_command", {"command": "make d"}, "made"),
        ),
    )
    told = {row["text"][:11]: row for row in found}
    assert (told["Ran: make a"]["text"], told["Ran: make a"]["importance"]) == ("Ran: make a → exit 0", 4)
    assert (told["Ran: make b"]["text"], told["Ran: make b"]["importance"]) == ("Ran: make b → exit 1: no rule", 8)
    assert told["Ran: make b"]["metadata"]["exit_code"] == 1
    assert told["Ran: make c"]["importance"] == 8
    assert len(told["Ran: make c"]["text"]) <= 200
    assert told["Ran: make c"]["metadata"]["error"] == f"Error: {error}"[:500]
    assert told["Ran: make d"]["text"] == "Ran: make d"
    assert "exit_code" not in told["Ran: make d"]["metadata"]


def test_searches_todos_and_delegations_are_rows(om: Om) -> None:
    """T29, S4.6, S4.7, S4.8"""
    todos = [{"content": "a", "status": "completed"}, *({"content": c, "status": "pending"} for c in "bc")]
    found = rows(
        om,
        tools(
            ("Glob", {"pattern": "*.py"}, "a.py\nb.py\nc.py"),
            ("Glob", {"pattern": "*.rs"}, "No files found"),
            ("Grep", {"pattern": "TODO"}, "a.py:1: TODO x\na.py:2: TODO y\nb.py:1: TODO z"),
            ("TodoWrite", {"todos": todos}, "ok"),
            ("Task", {"description": "Review the API", "prompt": "Read it all."}, ""),
            ("Task", {"prompt": "word " * 60}, ""),
        ).text(),
    )
    told = {row["type"]: row for row in found}
    searched = told["search_performed"]
    assert searched["text"] == 'Searched "*.py" → 3 files; "*.rs" → 0 files; "TODO" → 3 matches'
    assert searched["metadata"]["searches"][2] == {
        "pattern": "TODO", "matches": 3, "unit": "matches",
        "first_matches": ["a.py:1: TODO x", "a.py:2: TODO y", "b.py:1: TODO z"],
    }  # fmt: skip
    assert told["todo_updated"]["text"] == "Todos: 1 completed, 2 pending; next: b · c"
    delegated = [row["text"] for row in found if row["type"] == "task_delegated"]
    assert delegated == ["Delegated: Review the API", "Delegated: " + "word " * 18 + "word …"]
    assert all(len(text) <= len("Delegated: ") + 100 for text in delegated)


@pytest.mark.parametrize(
    ("states", "text"),
    [
        (("pending", "in_progress"), "Todos: none left"),
        (("completed", "completed"), "Todos: 2 completed"),
        ((), "Todos: none left"),
    ],
)
def test_an_empty_todo_list_clears_the_list_before_it(om: Om, states: tuple[str, ...], text: str) -> None:
    """T32: in a later turn and another run; a completed list stays as it is."""
    todos = [{"content": name, "status": state} for name, state in zip("ba", states, strict=False)]
    talk = Talk().user("Do all of it.")
    if todos:
        talk.call("TodoWrite", {"todos": todos}).result("ok")
    om("observe", "-q", om.write("t.jsonl", talk.assistant("I began with it.").text()))
    talk.user("Forget the plan.").call("TodoWrite", {"todos": []}).result("ok").assistant("The list is empty.")
    om("observe", "-q", om.write("t.jsonl", talk.text()))
    told = [row for row in om("log", "--jsonl").lines if row["type"] == "todo_updated"]
    assert [(row["text"], row["status"]) for row in told] == [(text, "done")]
    block = om("context", "-q", "--working-memory").stdout
    assert "Todos" not in block
    assert "in progress" not in block


def test_unknown_tools_and_refused_calls_leave_no_row(om: Om) -> None:
    """T30"""
    talk = tools(
        ("Frobnicate", {"file_path": "a.py"}, "fine"),
        ("Edit", EDIT, "User denied the edit", True),
        ("Bash", {"command": "rm x"}, "BLOCKED by policy", True),
    )
    assert rows(om, talk.text()) == []
    assert om("context", "-q", "--block").stdout == ""


def test_an_edit_that_failed_is_an_error_and_no_modification(om: Om) -> None:
    """T31: marked as failed, or only saying so."""
    said = "Error: String to replace not found in file."
    [row] = rows(om, tools(("Edit", EDIT, said, True)).text())
    assert (row["type"], row["status"]) == ("tool_error", "open")
    printed = om("context", "-q", "--block").stdout
    assert under(printed, "Recent Errors") == [f"- Edit a.py failed: {said}"]
    assert "Modified" not in printed


def test_a_failed_edit_without_a_mark_is_an_error_too(om: Om) -> None:
    """T31"""
    printed = block(om, openai(("edit_file", {"path": "a.py", "old_string": "x"}, "old_string not found in a.py")))
    assert "Modified" not in printed
    assert under(printed, "Recent Errors") == ["- edit_file a.py failed: old_string not found in a.py"]


def test_what_is_about_one_thing_is_one_line(om: Om) -> None:
    """T32: over several observes of the growing session."""
    talk = tools(
        ("Edit", EDIT, "ok"), ("Edit", EDIT, "ok"),
        ("Write", {"file_path": f"{PROJECT}/b.py", "content": "y = 1"}, "File created"),
        ("Bash", {"command": "make docs"}, "ok"), ("Grep", {"pattern": "TODO"}, "Found 3 matches"),
        ("TodoWrite", {"todos": [{"content": "Parse", "status": "in_progress"}]}, "ok"),
    )  # fmt: skip
    om("observe", "-q", stdin=talk.text())
    talk.user("And again.").call("Edit", EDIT).result("ok")
    talk.call("Edit", {**EDIT, "file_path": f"{PROJECT}/b.py"}).result("ok")
    talk.call("Bash", {"command": "make docs"}).result("ok")
    talk.call("Grep", {"pattern": "TODO"}).result("Found 5 matches")
    talk.call(
        "TodoWrite",
        {"todos": [{"content": "Parse", "status": "completed"}, {"content": "Test", "status": "in_progress"}]},
    ).result("ok")
    printed = block(om, talk.text())
    assert under(printed, "Modified Files") == [
        "- b.py (created, modified): `x = 1` → `x = 2`",
        "- a.py (modified × 3): `x = 1` → `x = 2`",
    ]
    assert under(printed, "Commands") == ["- make docs → ok"]
    assert under(printed, "Searches") == ['- "TODO" → 5 matches']
    assert under(printed, "Current Task")[0] == "- Test (1 completed, 1 in progress)"
    assert "Parse" not in printed


def test_the_same_edit_again_is_counted(om: Om) -> None:
    """T32: also where its row says the same words, in one observe or in several."""
    edit = ("edit_file", {"path": "p"}, "ok")
    om("observe", "-q", "--session", "s", stdin=openai(edit, edit))
    talk = Talk(session=OTHER)
    for _ in range(3):
        talk.user("Once more.").call("Edit", EDIT).result("ok")
    assert under(om("context", "-q", "--block", "--session", "s").stdout, "Modified Files") == ["- p (modified × 2)"]
    for times in (3, 4):
        om("observe", "-q", stdin=talk.text())
        printed = om("context", "-q", "--block", "--session", OTHER).stdout
        assert under(printed, "Modified Files") == [f"- a.py (modified × {times}): `x = 1` → `x = 2`"]
        talk.user("Again.").call("Edit", EDIT).result("ok")


def test_no_rows_and_only_reads_are_no_block(om: Om) -> None:
    """T33, S4.4"""
    assert om("context", "--block").stdout == ""
    assert not om.has_store, "asking makes no store"
    read = tools(("Read", {"file_path": f"{PROJECT}/a.py"}, "x = 1")).assistant("Done: I have read the file.")
    assert block(om, read.text()) == ""
    assert om("context", "-q", "--block", "--json").document["sections"] == []


def test_nothing_crosses_sessions(om: Om) -> None:
    """T33, S4.15: another session of the same project has a block of its own, or none."""
    om("observe", "-q", stdin=tools(("Edit", EDIT, "ok")).text())
    om("observe", "-q", stdin=Talk(session=OTHER).user("Hello there, what is new?").text())
    om("note", "-q", "we ship on Friday", "--type", "decision")
    assert om("context", "-q", "--block", "--session", OTHER).stdout == ""
    assert "a.py" in om("context", "-q", "--block", "--session", Talk().session).stdout
    unknown = om("context", "--block", "--session", NEW)
    assert (unknown.stdout, unknown.stderr) == ("", f"om: unknown session `{NEW}`\n")


def test_the_session_is_chosen_as_for_a_pack(om: Om) -> None:
    om("observe", "-q", stdin=tools(("Edit", EDIT, "ok"), session=OTHER).text())
    om("observe", "-q", stdin=tide_story().text())
    last = om("context", "--block", "--json")
    assert last.document["session"] == tide_story().session
    assert f"`{tide_story().session}`" in last.stderr, "a guess is said"
    current = om("context", "--block", "--json", env={"CLAUDE_CODE_SESSION_ID": OTHER})
    assert (current.document["session"], current.stderr) == (OTHER, "")


@pytest.fixture
def crowded(om: Om) -> Om:
    """200 searches, 60 commands and 3 files, and a failure."""
    talk = tools(
        *(("Edit", {**EDIT, "file_path": f"{PROJECT}/{name}.py"}, "ok") for name in "abc"),
        ("Bash", {"command": "make all"}, "Exit code 2\nerror: no rule", True),
        *(("Bash", {"command": f"make target-{number}"}, f"{number} passed in 1.0s") for number in range(60)),
        *(("Grep", {"pattern": f"pattern_{number}"}, "Found 2 matches") for number in range(200)),
    )
    om("observe", "-q", stdin=talk.user("Now port the tables of the moon.").text())
    return om


def test_the_lowest_section_gives_way_and_the_cap_holds(crowded: Om) -> None:
    """T34, S4.10, S4.13: 800 tokens at most, by the counter of the run; a smaller budget lowers it."""
    printed = crowded("context", "-q", "--working-memory").stdout
    assert counter().text(printed) <= 800
    at = [
        printed.index(f"### {heading}") for heading in ("Current Task", "Modified Files", "Recent Errors", "Commands")
    ]
    assert at == sorted(at)
    assert len(under(printed, "Modified Files")) == 3
    assert under(printed, "Recent Errors") == ["- make all → exit 2: error: no rule"]
    assert under(printed, "Commands")[-1].startswith("… (+")
    assert printed.endswith("… (+200 more)\n")
    for name, budget in (("chars-4", 5000), ("chars-2.5", 800), ("o200k-approx", 120), ("chars-4", 40), ("chars-4", 1)):
        small = crowded("context", "-q", "--block", "--counter", name, "--budget", str(budget)).stdout
        assert counter(name).text(small) <= min(800, budget)
    assert crowded("context", "-q", "--block", env={"OM_CONTEXT_BUDGET": "1"}).stdout == ""


def test_an_error_is_resolved_when_the_same_command_works_later(om: Om) -> None:
    """T35, S4.16: `bun test` fails, and exits 0 in a later observe of the grown session."""
    talk = tools(("Bash", {"command": "bun test"}, "Exit code 1\nerror: 2 failed", True))
    assert under(block(om, talk.text()), "Recent Errors") == ["- bun test → exit 1: error: 2 failed"]
    talk.call("Edit", EDIT).result("ok").call("Bash", {"command": "bun test"}).result("12 pass")
    assert under(block(om, talk.text()), "Recent Errors") == ["- bun test → exit 1: error: 2 failed (resolved)"]


def test_the_block_outlives_folding_and_pruning(om: Om) -> None:
    """T36, S4.11, S4.14: what compaction supersedes and pruning drops leaves the block as it was, to the byte."""
    om("observe", "-q", STORIES / "claude_code_refactor.jsonl")
    before = om("context", "-q", "--block").stdout
    assert under(before, "Modified Files")
    with connected(om.place) as store:
        folded = bytes(16)
        columns = "session, project, priority, importance, observed_at, tokens, counter, source, generation"
        store.execute(
            f"INSERT INTO observations (id, kind, type, text, visible, {columns})"
            f" SELECT ?, 'reflection', 'outcome', 'what happened', 1, {columns} FROM observations LIMIT 1",
            (folded,),
        )
        store.execute(
            "UPDATE observations SET superseded_by = ?, reason = 'reflected', visible = 0"
            " WHERE kind = 'observation' AND position % 2 = 0",
            (folded,),
        )
        store.execute(
            "UPDATE observations SET dropped_at = '2026-03-20T00:00:00.000Z', visible = 0"
            " WHERE kind = 'observation' AND position % 2 = 1"
        )
    assert om("log", "--jsonl").lines[0]["text"] == "what happened"
    assert om("context", "-q", "--block").stdout == before
    assert om("context", "-q", "--block", "--now", "2027-01-01").stdout == before


@pytest.mark.file_store("its permissions")
def test_the_block_is_read_from_a_store_that_cannot_be_written(om: Om) -> None:
    """F51: its bytes stay as they are, and `--db` names it."""
    om("observe", "-q", stdin=tide_story().text())
    om.db.chmod(stat.S_IRUSR)
    before = stored(om.place)
    assert om("context", "-q", "--block", "--db", om.place).stdout.startswith("## Working Memory\n")
    assert stored(om.place) == before


def test_the_json_form_holds_the_same_lines_and_their_rows(om: Om) -> None:
    printed = block(om, tide_story().text())
    document = om("context", "-q", "--block", "--json").document
    assert document["schema"] == 1
    assert (document["budget"], document["tokens"]) == (800, counter().text(printed))
    told = [f"- {line['text']}" for section in document["sections"] for line in section["lines"]]
    assert told == [line for line in printed.splitlines() if line.startswith("- ")]
    known = {row["id"] for row in om("log", "--jsonl").lines}
    assert {row for section in document["sections"] for line in section["lines"] for row in line["rows"]} <= known
    assert om("context", "-q", "--block", "--to", "json").document == document


def test_a_block_that_comes_back_in_a_transcript_is_not_observed(om: Om) -> None:
    """F45: a hook put it into the prompt."""
    printed = block(om, tide_story().text())
    om("observe", "-q", stdin=Talk(session=OTHER).user(f"{printed}\nPlease rename the flag to --port.").text())
    [row] = om("log", "--jsonl", "--session", OTHER).lines
    assert row["text"] == "User: Please rename the flag to --port."


@pytest.mark.parametrize("also", [["--tier", "session"], ["--tail-budget", "0"], ["--to", "xml"], ["--to", "messages"]])
def test_a_block_has_no_tiers_and_two_forms(om: Om, also: list[str]) -> None:
    ended = om("context", "--block", *also, code=2)
    assert ended.stdout == ""
    assert "--working-memory" in ended.stderr
