"""What the rules write down of tools: the extractors of the coding-agent design over the tools agents really have."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omcli.memory.observation import Priority, Status, Type
from omcli.observers.rules import RuleObserver
from omcli.observers.rules.tools import ToolKind, tool_kind
from tests.batches import Talk


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "a/b.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("Edit", {"file_path": "a/b.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("edit", {"path": "a/b.py", "oldText": "x = 1", "newText": "x = 2"}),
        ("MultiEdit", {"file_path": "a/b.py", "edits": [{"old_string": "x = 1", "new_string": "x = 2"}]}),
        ("apply_patch", "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x = 1\n+x = 2\n*** End Patch"),
    ],
)
def test_an_edit_is_a_modified_file_and_what_changed(tool: str, arguments: dict[str, object] | str) -> None:
    """T27, S4.2, S4.3: `file_modified`, importance 7, the path and what changed, from the call and its result."""
    row = Talk().tool(tool, arguments, "ok").one()
    assert row.text == "Modified a/b.py: `x = 1` → `x = 2`"
    assert (row.type, row.importance, row.status) == (Type.FILE_MODIFIED, 7, Status.DONE)
    assert row.sources == (1, 2)
    assert Priority.of_importance(row.importance) is Priority.HIGH


@pytest.mark.parametrize("tool", ["write_file", "Write", "write", "create_file"])
def test_a_write_is_a_created_file(tool: str) -> None:
    """T27, S4.3."""
    row = Talk().tool(tool, {"path": "notes.txt", "content": "hello"}, "File created").one()
    assert row.text.startswith("Created notes.txt")
    assert (row.type, row.importance) == (Type.FILE_CREATED, 7)


def test_a_write_over_a_file_is_a_modification() -> None:
    """S4.3: Claude Code's Write says whether the file was there."""
    row = Talk().tool("Write", {"file_path": "a.md", "content": "x"}, "The file a.md has been updated.").one()
    assert row.type is Type.FILE_MODIFIED


@pytest.mark.parametrize("tool", ["read_file", "Read", "read", "view"])
def test_a_read_is_kept_low(tool: str) -> None:
    """T27, S4.4."""
    row = Talk().tool(tool, {"path": "p"}, "1  hello").one()
    assert (row.text, row.type, row.importance) == ("Read p", Type.FILE_READ, 3)


def test_paths_below_the_working_directory_are_named_without_it() -> None:
    row = Talk(cwd="/src/app").tool("Read", {"file_path": "/src/app/lib/x.py"}, "…").one()
    assert row.text == "Read lib/x.py"


def test_edits_of_one_file_in_a_turn_are_one_row_with_all_sources() -> None:
    """T32: the same file edited three times is one line."""
    talk = Talk()
    for number in range(3):
        talk.tool(
            "Edit",
            {"file_path": "a.py", "old_string": f"def f{number}(): 1", "new_string": f"def g{number}(): 2"},
            "ok",
        )
    row = talk.one()
    assert row.text == "Modified a.py (3 edits): adds g0, g1, g2; removes f0, f1, f2"
    assert row.sources == (1, 2, 3, 4, 5, 6)


def test_a_patch_over_several_files_is_a_row_each() -> None:
    """S4.3: apply_patch adds, updates, moves and deletes."""
    patch = "\n".join([
        "*** Begin Patch",
        "*** Add File: new.py", "+def fresh():", "+    return 1",
        "*** Update File: old.py", "*** Move to: moved.py", "@@", "-a = 1", "+a = 2",
        "*** Delete File: gone.py",
        "*** End Patch",
    ])  # fmt: skip
    assert Talk().tool("apply_patch", patch, "Success", exit_code=0).texts() == [
        "Created new.py: adds fresh",
        "Modified old.py → moved.py: `a = 1` → `a = 2`",
        "Deleted gone.py",
    ]


@pytest.mark.parametrize(
    ("arguments", "output", "exit_code", "failed", "text", "importance"),
    [
        ({"command": "make all"}, json.dumps({"stdout": "", "exitCode": 0}), None, None, "Ran: make all → exit 0", 4),
        ({"cmd": "make all"}, "done", 0, False, "Ran: make all → exit 0", 4),
        ({"command": ["bash", "-lc", "make all"]}, "done", 0, False, "Ran: make all → exit 0", 4),
        ({"command": "make all"}, "it is done", None, None, "Ran: make all", 4),
        ({"command": "make all"}, "it is done", None, False, "Ran: make all → ok", 4),
        ({"command": "make all"}, "cc: fatal error: no input files", 1, True,
         "Ran: make all → exit 1: cc: fatal error: no input files", 8),
    ],
)  # fmt: skip
def test_a_command_is_kept_with_its_exit_code(
    arguments: dict[str, object], output: str, exit_code: int | None, failed: bool | None, text: str, importance: int
) -> None:
    """T28, S4.5: 4 when it worked, 8 with code and error text when it failed; no code where none is told."""
    row = Talk().tool("Bash", arguments, output, failed=failed, exit_code=exit_code).one()
    assert (row.text, row.importance) == (text, importance)
    assert row.type is (Type.COMMAND_ERROR if importance == 8 else Type.COMMAND_RUN)


def test_a_long_error_is_cut_in_the_row_and_whole_in_the_metadata() -> None:
    """T28: a tool-level error of 500 characters."""
    error = "error: " + " ".join(["unexpected token"] * 31)
    row = Talk().tool("run_command", {"command": "make"}, error[:500], failed=True).one()
    assert len(row.text) <= 200 + len("Ran: make → failed: ")
    assert row.metadata["error"] == error[:500]
    assert row.status is Status.OPEN


def test_a_test_run_says_how_many_passed() -> None:
    """S4.5: a long output is reduced to the line that sums it up."""
    output = "....\n" * 300 + "==== 41 passed, 2 skipped in 3.21s ===="
    assert Talk().tool("Bash", {"command": "pytest -q"}, output).texts() == [
        "Ran: pytest -q → ok: 41 passed, 2 skipped in 3.21s"
    ]


def test_an_error_is_resolved_when_the_same_command_works_later() -> None:
    """S4.16: open becomes resolved."""
    talk = Talk().tool(
        "Bash", {"command": "pytest -q 2>&1 | tail -5"}, "FAILED test_a.py::test_x", failed=True, exit_code=1
    )
    talk.tool("Edit", {"file_path": "a.py", "old_string": "1", "new_string": "2"}, "ok")
    talk.tool("Bash", {"command": "pytest -q"}, "3 passed", failed=False)
    errors = [row for row in talk.observed() if row.type is Type.COMMAND_ERROR]
    assert [(row.text, row.status) for row in errors] == [
        ("Ran: pytest -q → exit 1: FAILED test_a.py::test_x", Status.RESOLVED)
    ]


def test_commands_that_only_look_are_one_low_row() -> None:
    """S4.5, O12: listings and searches are not memory; that they were made is one line."""
    talk = Talk()
    for command in ("ls -la", "git status", "grep -rn needle src | head -5", "cat README.md"):
        talk.tool("Bash", {"command": command}, "…")
    row = talk.one()
    assert row.text == "Ran: ls -la; git status; grep -rn needle src; cat README.md"
    assert Priority.of_importance(row.importance) is Priority.LOW


def test_a_grep_without_a_hit_is_no_error() -> None:
    row = Talk().tool("Bash", {"command": "grep -rn needle src"}, "", failed=True, exit_code=1).observed()
    assert [draft.type for draft in row] == []


@pytest.mark.parametrize(
    "command",
    [
        "echo x > file.txt",
        "sed -i s/a/b/ f",
        "rm -rf build",
        "git checkout main",
        "find . -delete",
        "cat > f <<'EOF'\nx\nEOF",
    ],
)
def test_commands_that_change_something_are_not_taken_for_looking(command: str) -> None:
    row = Talk().tool("Bash", {"command": command}, "").one()
    assert row.importance == 4


def test_a_commit_is_an_outcome_with_its_id() -> None:
    """O10: finished state-changing work is high and done."""
    output = "[main 1a2b3c4] fix: close the socket\n 2 files changed, 10 insertions(+)"
    row = Talk().tool("Bash", {"command": "git commit -am 'fix: close the socket'"}, output).one()
    assert row.text == "Committed 1a2b3c4 on main: fix: close the socket"
    assert (row.type, row.importance, row.status) == (Type.OUTCOME, 7, Status.DONE)


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "text"),
    [
        ("Glob", {"pattern": "**/*.py"}, "a.py\nb.py\nc.py", 'Searched "**/*.py" → 3 files'),
        ("glob", {"pattern": "**/*.rs"}, "", 'Searched "**/*.rs" → 0 files'),
        ("Grep", {"pattern": "TODO"}, "a.py:1: TODO\na.py:9: TODO\nb.py:2: TODO", 'Searched "TODO" → 3 matches'),
        ("Grep", {"pattern": "TODO"}, "Found 12 files\na.py", 'Searched "TODO" → 12 files'),
    ],
)
def test_a_search_is_kept_with_its_count(tool: str, arguments: dict[str, object], output: str, text: str) -> None:
    """T29, S4.6: query, count, and the first matches in the metadata."""
    row = Talk().tool(tool, arguments, output).one()
    assert (row.text, row.type, row.importance) == (text, Type.SEARCH_PERFORMED, 3)
    assert row.metadata["first_matches"] == output.splitlines()[:3]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"},
                                 {"content": "c", "status": "pending"}]}),
        ("update_plan", {"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"},
                                  {"step": "c", "status": "pending"}]}),
    ],
)  # fmt: skip
def test_todos_are_kept_as_their_state(tool: str, arguments: dict[str, object]) -> None:
    """T29, S4.7: 1 completed, 2 pending."""
    row = Talk().tool(tool, arguments, "ok").one()
    assert row.text == "Todos: 1 completed, 2 pending; next: b · c"
    assert (row.type, row.importance, row.status) == (Type.TODO_UPDATED, 5, Status.OPEN)


def test_only_the_last_state_of_the_todos_is_kept() -> None:
    """T32: two todo updates, latest only; the entry in progress is the current task."""
    talk = Talk()
    for state in ("pending", "in_progress"):
        talk.tool("TodoWrite", {"todos": [{"content": "write the parser", "status": state}]}, "ok")
    row = talk.one()
    assert row.text == "Todos: 1 in progress; now: write the parser"
    assert row.metadata["current_task"] == "write the parser"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"description": "Review the API", "prompt": "You are a reviewer…"}, "Delegated: Review the API"),
        ({"prompt": "word " * 60}, "Delegated: " + "word " * 18 + "word …"),
    ],
)
def test_a_subagent_is_a_delegation(arguments: dict[str, object], text: str) -> None:
    """T29, S4.8: its description, else the beginning of its prompt."""
    row = Talk().tool("Task", arguments, "").one()
    assert (row.text, row.type, row.importance) == (text, Type.TASK_DELEGATED, 5)


def test_a_delegation_says_what_came_of_it() -> None:
    """S4.8: the delegation's summary."""
    answer = "I'll look into it.\n\nThe timeout is set in `net/client.py` and never read by `Pool`."
    row = Talk().tool("Agent", {"description": "Find the timeout"}, answer).one()
    assert row.text == "Delegated: Find the timeout → The timeout is set in `net/client.py` and never read by `Pool`."


@pytest.mark.parametrize(
    ("tool", "output", "failed"),
    [("frobnicate", "fine", False), ("Edit", "User denied the edit", True), ("Bash", "BLOCKED by policy", True)],
)
def test_unknown_tools_and_refused_calls_give_no_row(tool: str, output: str, failed: bool) -> None:
    """T30: a refusal that says why is a row by the words that were said, not by the tool."""
    assert Talk().tool(tool, {"file_path": "a.py", "command": "rm x"}, output, failed=failed).observed() == ()


def test_a_failed_edit_is_an_error_and_modifies_nothing() -> None:
    """T31: no `Modified` row for an edit that failed."""
    row = (
        Talk()
        .tool("edit_file", {"path": "a.py", "old_string": "x"}, "String to replace not found in file.", failed=True)
        .one()
    )
    assert row.type is Type.TOOL_ERROR
    assert row.text == "edit_file a.py failed: String to replace not found in file."
    assert (row.importance, row.status) == (8, Status.OPEN)


def test_a_call_without_a_result_gives_no_row() -> None:
    assert Talk().tool("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, None).observed() == ()


def test_a_result_is_joined_to_a_call_of_an_earlier_batch() -> None:
    """F71: a batch boundary between a call and its result."""
    whole = Talk().tool("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}, "ok")
    call, result = whole.kept
    later = Talk(kept=[result]).batch()
    rows = RuleObserver().observe(replace(later, earlier_calls=(call,), after=1, through=2))
    assert [row.text for row in rows] == ["Modified a.py: `x = 1` → `x = 2`"]
    assert rows[0].sources == (1, 2)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("Edit MultiEdit apply_patch NotebookEdit str_replace_based_edit_tool edit_file", ToolKind.EDIT),
        ("Write write_file create_file", ToolKind.WRITE),
        ("Read read_file view WebFetch mcp__files__read_file", ToolKind.READ),
        ("Bash exec_command shell local_shell_call run_command", ToolKind.RUN),
        ("Grep Glob LS WebSearch web_search_call", ToolKind.SEARCH),
        ("TodoWrite update_plan TaskCreate TaskUpdate", ToolKind.TODO),
        ("Task Agent spawn_agent", ToolKind.DELEGATE),
        ("mcp__github__create_issue", ToolKind.REMOTE),
        ("nobody_knows", None),
    ],
)
def test_tool_names_map_to_a_few_kinds(names: str, kind: ToolKind | None) -> None:
    """S4.2: the extractors know the tools of every format."""
    assert {tool_kind(name) for name in names.split()} == {kind}


def test_a_connectors_change_is_kept_and_its_looking_is_low() -> None:
    talk = Talk().tool("mcp__tracker__create_issue", {"title": "Crash on start", "project": "APP"}, "ok")
    talk.tool("mcp__tracker__get_issue", {"id": "APP-7"}, "…")
    rows = {row.importance: row.text for row in talk.observed()}
    assert rows == {
        4: "Used mcp__tracker__create_issue: title=Crash on start, project=APP",
        3: "Used mcp__tracker__get_issue",
    }


def test_an_error_is_resolved_in_a_later_turn_too() -> None:
    """S4.16: whatever was said in between."""
    talk = Talk().user("test it").tool("Bash", {"command": "bun test"}, "FAIL a.test.ts", failed=True, exit_code=1)
    talk.user("once more").tool("Bash", {"command": "bun test"}, "12 pass", exit_code=0)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


def test_a_failure_after_a_success_stays_open() -> None:
    talk = Talk().tool("Bash", {"command": "bun test"}, "12 pass", exit_code=0)
    talk.tool("Bash", {"command": "bun test"}, "FAIL a.test.ts", failed=True, exit_code=1)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.OPEN]


def test_a_part_of_a_command_that_worked_mends_its_failure() -> None:
    talk = Talk().tool("Bash", {"command": "make lint"}, "error: unused import", failed=True, exit_code=2)
    talk.tool("Bash", {"command": "make lint && make test"}, "41 passed", exit_code=0)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


def test_the_status_of_a_pipe_is_not_the_commands() -> None:
    """S4.5: `npm run check | grep` ends with grep's status; what the output reports is told, and nothing is ok."""
    output = "src/a.ts(3,1): error TS2307: Cannot find module './b.js'"
    row = Talk().tool("Bash", {"command": "npm run check 2>&1 | grep -E 'error|warning'"}, output, failed=False).one()
    assert "ok" not in row.text
    assert "error TS2307" in row.text
    assert row.status is None


def test_a_command_that_goes_on_is_told_by_its_end() -> None:
    """formats.md §2: `exec_command` leaves it running, `write_stdin` says how it ended."""
    talk = Talk().tool("exec_command", {"cmd": "bun run test"}, "Process running with session ID 7", failed=None)
    assert talk.texts() == ["Ran: bun run test (still running)"]
    talk.tool("write_stdin", {"session_id": 7, "chars": ""}, "FAIL a.test.ts", failed=True, exit_code=1)
    row = talk.one()
    assert (row.text, row.type) == ("Ran: bun run test → exit 1: FAIL a.test.ts", Type.COMMAND_ERROR)
    assert row.sources == (1, 4)


def test_a_background_command_of_claude_code_is_told_by_its_end() -> None:
    """formats.md §1: BashOutput names the exit code in a tag."""
    talk = Talk().tool("Bash", {"command": "npm test"}, "Command running in background with ID: ab12")
    talk.tool("BashOutput", {"bash_id": "ab12"}, "<status>running</status>")
    assert talk.texts() == ["Ran: npm test (still running)"]
    talk.tool("BashOutput", {"bash_id": "ab12"}, "<status>failed</status>\n<exit_code>1</exit_code>\n3 failed")
    assert talk.one().text == "Ran: npm test → exit 1: 3 failed"


def test_a_long_command_keeps_the_file_at_its_end() -> None:
    """O7: names are kept whole."""
    command = "sed -n '1,240p' " + "very/" * 40 + "deep/notes.md"
    row = Talk().tool("Bash", {"command": command}, "x").one()
    assert row.text.startswith("Ran: sed -n '1,240p' … notes.md")
