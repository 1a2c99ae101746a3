"""Rows of tool events: the extractors of the coding-agent design over the tools agents really have."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from omcli.memory.observation import Priority, Status, Type
from omcli.observers.rules import RuleObserver, shell
from omcli.observers.rules.tool_events import PATCH, ToolKind, tool_kind
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
    assert (row.type, row.importance, row.status) == (Type.FILE_MODIFIED, 7, None)
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


@pytest.mark.parametrize("command", ["make", "make " + "very/" * 30 + "deep/target"])
def test_a_long_error_is_cut_in_the_row_and_whole_in_the_metadata(command: str) -> None:
    """T28: a tool-level error of 500 characters; the whole row has 200 at most."""
    error = ("error: " + "unexpected token " * 40)[:500]
    row = Talk().tool("run_command", {"command": command}, error, failed=True).one()
    assert len(row.text) <= 200
    assert "→ failed: error: unexpected token" in row.text
    assert row.metadata["error"] == error
    assert row.status is Status.OPEN


def test_the_error_of_a_command_is_read_from_its_json_output() -> None:
    """T28: exit 1 with stderr, as an object."""
    output = json.dumps({"stdout": "building\n", "stderr": "ld: symbol not found: _main\n", "exitCode": 1})
    row = Talk().tool("run_command", {"command": "make all"}, output, failed=None).one()
    assert (row.text, row.importance) == ("Ran: make all → exit 1: ld: symbol not found: _main", 8)
    assert (row.metadata["exit_code"], row.metadata["command"]) == (1, "make all")
    assert "symbol not found: _main" in str(row.metadata["error"])


def test_an_error_says_what_went_wrong_before_where() -> None:
    """S4.5: the exact error text, not the frames above it."""
    output = (
        "tests/test_a.py:7: in test_x\n    go()\nE   NameError: name 'go' is not defined\n\nCommand exited with code 1"
    )
    row = Talk().tool("bash", {"command": "pytest -q"}, output, failed=True, exit_code=1).one()
    assert row.text == "Ran: pytest -q → exit 1: E NameError: name 'go' is not defined | tests/test_a.py:7: in test_x"


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


def test_read_only_commands_are_one_low_row() -> None:
    """S4.5, O12: listings and searches are not memory; that they were made is one line."""
    talk = Talk()
    for command in ("ls -la", "git status", "grep -rn needle src | head -5", "cat README.md"):
        talk.tool("Bash", {"command": command}, "…")
    row = talk.one()
    assert row.text == "Ran: ls -la; git status; grep -rn needle src; cat README.md"
    assert Priority.of_importance(row.importance) is Priority.LOW


def test_a_grep_without_a_match_is_not_an_error() -> None:
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
def test_commands_that_change_something_are_not_read_only(command: str) -> None:
    row = Talk().tool("Bash", {"command": command}, "").one()
    assert row.importance == 4


def test_a_commit_is_an_outcome_with_its_id() -> None:
    """O10: finished state-changing work is high and done."""
    output = "[main 1a2b3c4] fix: close the socket\n 2 files changed, 10 insertions(+)"
    row = Talk().tool("Bash", {"command": "git commit -am 'fix: close the socket'"}, output).one()
    assert row.text == "Committed 1a2b3c4 on main: fix: close the socket"
    assert (row.type, row.importance, row.status) == (Type.OUTCOME, 7, Status.DONE)


@pytest.mark.parametrize(
    ("tool", "pattern", "output", "found", "first"),
    [
        ("Glob", "**/*.py", "a.py\nb.py\nc.py", "3 files", ["a.py", "b.py", "c.py"]),
        ("glob", "**/*.rs", "", "0 files", []),
        ("glob", "**/*.go", "No files found", "0 files", []),
        ("Grep", "TODO", "a.py:1: TODO\na.py:9: TODO\nb.py:2: TODO", "3 matches", ["a.py:1: TODO", "a.py:9: TODO",
                                                                              "b.py:2: TODO"]),
        ("Grep", "TODO", "a.py:1: TODO", "1 match", ["a.py:1: TODO"]),
        ("Grep", "TODO", "Found 12 files\na.py", "12 files", ["a.py"]),
    ],
)  # fmt: skip
def test_a_search_is_kept_with_its_count(tool: str, pattern: str, output: str, found: str, first: list[str]) -> None:
    """T29, S4.6: query, count, and the first matches in the metadata."""
    row = Talk().tool(tool, {"pattern": pattern}, output).one()
    assert (row.text, row.type, row.importance) == (f'Searched "{pattern}" → {found}', Type.SEARCH_PERFORMED, 3)
    number, unit = found.split()
    assert row.metadata["searches"] == [
        {"pattern": pattern, "matches": int(number), "unit": unit, "first_matches": first}
    ]


def test_the_searches_of_a_turn_are_one_row_and_the_same_one_again_counts_once() -> None:
    """T32: 3, then 5 matches of the same pattern."""
    talk = Talk().tool("Grep", {"pattern": "TODO"}, "Found 3 matches").tool("Glob", {"pattern": "*.py"}, "a.py")
    row = talk.tool("Grep", {"pattern": "TODO"}, "Found 5 matches").one()
    assert row.text == 'Searched "TODO" → 5 matches; "*.py" → 1 file'


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
    [
        ("frobnicate", "fine", False),
        ("Edit", "User denied the edit", True),
        ("Bash", "BLOCKED by policy", True),
        ("Bash", "User denied the command", None),
        ("Edit", "[Request interrupted by user for tool use]", True),
    ],
)
def test_unknown_tools_and_refused_calls_give_no_row(tool: str, output: str, failed: bool | None) -> None:
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


@pytest.mark.parametrize(
    "error",
    [
        "Error: old_string not found in a.py",
        "String to replace not found in file.",
        "old_string is not unique: 3 occurrences",
        "Could not write a.py: read-only file system",
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        "Permission denied",
        '{"error": "no such file: a.py"}',
    ],
)
def test_an_edit_that_says_it_failed_has_failed_where_the_transcript_has_no_mark_for_it(error: str) -> None:
    """T31: lists of messages know no `is_error`."""
    row = Talk().tool("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, error, failed=None).one()
    assert (row.type, row.status, row.metadata["target"]) == (Type.TOOL_ERROR, Status.OPEN, "a.py")


@pytest.mark.parametrize(
    "said",
    [
        "ok",
        "Edited a.py: no error handling was changed",
        "  Updated a.py: the page for what is not found",
        '{"ok": true, "error": null}',
    ],
)
def test_an_edit_that_only_speaks_of_errors_has_worked(said: str) -> None:
    row = Talk().tool("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, said, failed=None).one()
    assert row.type is Type.FILE_MODIFIED


def test_output_of_reads_may_mention_errors() -> None:
    row = Talk().tool("Grep", {"pattern": "raise"}, "Error: not found\nError: no file", failed=None).one()
    assert row.text == 'Searched "raise" → 2 matches'


def test_an_edit_names_its_file_its_change_and_their_number() -> None:
    """T27, T32: what the working-memory block is made of."""
    talk = Talk().tool("Write", {"file_path": "/src/app/new.py", "content": "x = 1"}, "File created")
    for new in ("2", "3"):
        talk.tool("Edit", {"file_path": "/src/app/new.py", "old_string": "x = 1", "new_string": f"x = {new}"}, "ok")
    row = talk.one()
    assert row.metadata == {"path": "/src/app/new.py", "change": "created", "edits": 2}


def test_todos_that_are_written_one_by_one_are_one_list() -> None:
    """S4.7: `TaskCreate` and `TaskUpdate` name one entry each; the numbers come with the answers."""
    talk = Talk()
    for number, subject in enumerate(("Write the parser", "Test it"), start=1):
        talk.tool("TaskCreate", {"subject": subject}, f"Task #{number} created successfully: {subject}")
    talk.tool("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "Updated task #1 status")
    row = talk.one()
    assert row.text == "Todos: 1 in progress, 1 pending; now: Write the parser; next: Test it"
    assert row.metadata["todos"] == [
        {"id": "1", "state": "in_progress", "text": "Write the parser"},
        {"id": "2", "state": "pending", "text": "Test it"},
    ]
    assert row.metadata["partial"] is True


def test_a_todo_of_an_earlier_turn_is_known_by_its_number() -> None:
    talk = Talk().tool("TaskUpdate", {"taskId": "4", "status": "completed"}, "Updated task #4 status")
    talk.tool("TaskUpdate", {"taskId": "5", "status": "in_progress"}, "Updated task #5 status")
    row = talk.one()
    assert row.text == "Todos: #4 completed; #5 in progress"
    assert row.status is Status.OPEN


def test_a_background_subagent_is_reported_when_it_ends() -> None:
    """S4.8: the outcome of a delegation is its report, not the note that it began."""
    launched = "Async agent launched successfully.\nagentId: a7e8 (This is an internal ID)\nIt works in the background."
    talk = Talk().tool("Task", {"description": "Review the API", "prompt": "…"}, launched)
    row = talk.one()
    assert (row.text, row.status) == ("Delegated: Review the API (still running)", Status.OPEN)
    report = (
        '<status>completed</status>\n<output>\n[Tool: Bash] {"command": "ls"}\n'
        "The timeout is set in `net/client.py` and never read.\n</output>"
    )
    row = talk.tool("TaskOutput", {"task_id": "a7e8", "block": True}, report).one()
    assert row.text == "Delegated: Review the API → The timeout is set in `net/client.py` and never read."
    assert (row.status, row.sources) == (Status.DONE, (1, 4))


@pytest.mark.parametrize("run", ["\n", "E \n", "a:1", "1:", "<output>", "x not ", "Async agent launched ", "task #"])
@pytest.mark.parametrize("tool", ["Bash", "Edit", "Grep", "Task", "TaskUpdate"])
def test_hostile_outputs_take_linear_time(tool: str, run: str) -> None:
    output = run * (60_000 // len(run))
    arguments = {"command": "make", "file_path": "a", "pattern": "p", "description": "d", "taskId": "1"}
    start = time.process_time()
    for failed in (None, True):
        Talk().tool(tool, arguments, output, failed=failed).observed()
    assert time.process_time() - start < 2


@pytest.mark.parametrize("run", ['"\\', "'\"", "a\\ ", "| ", "cd a && ", "\n", "<<"])
def test_hostile_commands_take_linear_time(run: str) -> None:
    command = run * (60_000 // len(run))
    start = time.process_time()
    for failed in (False, True):
        Talk().tool("Bash", {"command": command}, "1 passed", failed=failed).observed()
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "command",
    ['grep -n "a\\"; b" x.py', "grep -n 'it | is' x.py", 'echo \\"it', 'grep "a > b" x.py', 'cat "a\\\nb" | wc'],
)
def test_quoted_text_is_not_part_of_a_command(command: str) -> None:
    assert shell.is_read_only(command)


def test_a_failed_delegation_is_an_error() -> None:
    row = Talk().tool("Task", {"description": "Review the API"}, "Agent type 'x' not found", failed=True).one()
    assert (row.type, row.importance) == (Type.TOOL_ERROR, 8)
    assert row.text == "Task Review the API failed: Agent type 'x' not found"


def test_the_same_failure_again_is_one_row_with_a_count() -> None:
    """S4.5: repeated failures are grouped."""
    talk = Talk()
    for _ in range(3):
        talk.tool("Bash", {"command": "bun test"}, "error: 2 failed", failed=True, exit_code=1)
    row = talk.one()
    assert row.text == "Ran: bun test → exit 1: error: 2 failed (× 3)"
    assert row.metadata["times"] == 3


def test_the_same_read_only_command_twice_is_one_row_with_its_outcome() -> None:
    """T32"""
    talk = (
        Talk()
        .tool("Bash", {"command": "ls src"}, "a", exit_code=0)
        .tool("Bash", {"command": "ls src"}, "a", exit_code=0)
    )
    row = talk.one()
    assert (row.text, row.priority) == ("Ran: ls src → exit 0 (× 2)", Priority.LOW)


def test_a_call_without_a_result_gives_no_row() -> None:
    assert Talk().tool("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, None).observed() == ()


def test_a_result_is_joined_to_a_call_of_an_earlier_batch() -> None:
    """F71: a batch boundary between a call and its result."""
    whole = Talk().tool("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}, "ok")
    call, result = whole.kept
    later = Talk(kept=[result]).batch()
    rows = RuleObserver().observe(replace(later, earlier_calls=(call,), after=1, through=2)).drafts
    assert [row.text for row in rows] == ["Modified a.py: `x = 1` → `x = 2`"]
    assert rows[0].sources == (1, 2)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("Edit MultiEdit apply_patch NotebookEdit str_replace_based_edit_tool edit_file StrReplace", ToolKind.EDIT),
        ("Write write_file create_file", ToolKind.WRITE),
        ("Read read_file view WebFetch mcp__files__read_file", ToolKind.READ),
        ("Bash exec_command shell shell_command local_shell_call run_command run_in_terminal", ToolKind.RUN),
        ("Grep Glob LS WebSearch web_search_call list google_web_search SemanticSearch", ToolKind.SEARCH),
        ("AskUserQuestion ask_user question", ToolKind.ASK),
        ("TodoWrite update_plan TaskCreate TaskUpdate", ToolKind.TODO),
        ("Task Agent spawn_agent", ToolKind.DELEGATE),
        ("mcp__github__create_issue", ToolKind.REMOTE),
        ("nobody_knows", None),
    ],
)
def test_tool_names_map_to_a_few_kinds(names: str, kind: ToolKind | None) -> None:
    """S4.2: the extractors know the tools of every format."""
    assert {tool_kind(name) for name in names.split()} == {kind}


def test_a_connectors_changes_are_kept_and_its_reads_are_low() -> None:
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


def test_the_same_failure_after_a_success_is_open_again() -> None:
    """S4.16: one row for the same words, with the status of the last."""
    talk = Talk().user("test it").tool("Bash", {"command": "bun test"}, "error: x", failed=True, exit_code=1)
    talk.user("again").tool("Bash", {"command": "bun test"}, "12 pass", exit_code=0)
    talk.user("again").tool("Bash", {"command": "bun test"}, "error: x", failed=True, exit_code=1)
    [row] = [row for row in talk.observed() if row.type is Type.COMMAND_ERROR]
    assert (row.status, row.priority, len(row.sources)) == (Status.OPEN, None, 6)


def test_a_part_of_a_command_that_worked_resolves_its_failure() -> None:
    talk = Talk().tool("Bash", {"command": "make lint"}, "error: unused import", failed=True, exit_code=2)
    talk.tool("Bash", {"command": "make lint && make test"}, "41 passed", exit_code=0)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


def test_the_status_of_a_pipe_is_not_the_commands() -> None:
    """S4.5: `npm run check | grep` ends with grep's status; what the output reports is told, and nothing is ok."""
    output = "src/a.ts(3,1): error TS2307: Cannot find module './b.js'"
    row = Talk().tool("Bash", {"command": "npm run check 2>&1 | grep -E 'error|warning'"}, output, failed=False).one()
    assert "ok" not in row.text
    assert "error TS2307" in row.text
    assert row.status is Status.OPEN


def test_a_background_command_is_reported_when_it_ends() -> None:
    """formats.md §2: `exec_command` leaves it running, `write_stdin` says how it ended."""
    talk = Talk().tool("exec_command", {"cmd": "bun run test"}, "Process running with session ID 7", failed=None)
    assert talk.texts() == ["Ran: bun run test (still running)"]
    talk.tool("write_stdin", {"session_id": 7, "chars": ""}, "FAIL a.test.ts", failed=True, exit_code=1)
    row = talk.one()
    assert (row.text, row.type) == ("Ran: bun run test → exit 1: FAIL a.test.ts", Type.COMMAND_ERROR)
    assert row.sources == (1, 4)


def test_a_background_command_of_claude_code_is_reported_when_it_ends() -> None:
    """formats.md §1: BashOutput names the exit code in a tag."""
    talk = Talk().tool("Bash", {"command": "npm test"}, "Command running in background with ID: ab12")
    talk.tool("BashOutput", {"bash_id": "ab12"}, "<status>running</status>")
    assert talk.texts() == ["Ran: npm test (still running)"]
    talk.tool("BashOutput", {"bash_id": "ab12"}, "<status>failed</status>\n<exit_code>1</exit_code>\n3 failed")
    assert talk.one().text == "Ran: npm test → exit 1: 3 failed"


def test_an_editor_that_only_shows_a_file_changes_nothing() -> None:
    """`str_replace_editor` has a command for each thing it does."""
    talk = Talk().tool("str_replace_editor", {"command": "view", "path": "a.py"}, "x = 1")
    talk.tool("str_replace_editor", {"command": "create", "path": "b.py", "file_text": "y = 2"}, "ok")
    talk.tool("str_replace_editor", {"command": "str_replace", "path": "c.py", "old_str": "1", "new_str": "2"}, "ok")
    assert {row.type for row in talk.observed()} == {Type.FILE_READ, Type.FILE_CREATED, Type.FILE_MODIFIED}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit", {"filePath": "a.py", "oldString": "x = 1", "newString": "x = 2"}),
        ("StrReplace", {"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("replace", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("apply_patch", {"patchText": f"{PATCH}\n*** Update File: a.py\n-x = 1\n+x = 2\n*** End Patch"}),
    ],
)
def test_an_edit_is_told_alike_whatever_its_arguments_are_called(tool: str, arguments: dict[str, object]) -> None:
    assert Talk().tool(tool, arguments, "ok").one().text == "Modified a.py: `x = 1` → `x = 2`"


def test_a_long_command_keeps_the_file_at_its_end() -> None:
    """O7: names are kept whole."""
    command = "sed -n '1,240p' " + "very/" * 40 + "deep/notes.md"
    row = Talk().tool("Bash", {"command": command}, "x").one()
    assert row.text.startswith("Ran: sed -n '1,240p' … notes.md")


def test_a_command_is_shown_with_what_tells_it_from_others() -> None:
    """XG7: a long pattern or list is cut between its parts, instead of being left out."""
    pattern = "load_station|parse_table|read_heights|write_heights|moon_phase|sun_rise|sun_set"
    talk = Talk().user("Where are the tables read?").tool("Bash", {"command": f'rg -n "{pattern}" src docs'}, "")
    talk.tool("Bash", {"command": "gh run view 27737304 --json status,conclusion,jobs,headSha,event,displayTitle"}, "")
    [row] = [row for row in talk.agent("Nowhere yet.").observed() if row.type is Type.COMMAND_RUN]
    assert row.text == (
        'Ran: rg -n "load_station|parse_table|read_heights|write_heights … docs; '
        "gh run view 27737304 --json status,conclusion,jobs,headSha,event …"
    )


def test_a_heading_of_a_list_says_nothing_about_an_edit() -> None:
    """XC10: "Modified CHANGELOG.md: in Added"."""
    old, new = "## Added\n\n- a\n" + "x" * 100, "## Added\n\n- a\n" + "x" * 100 + "y" * 120
    change = {"file_path": "/src/CHANGELOG.md", "old_string": old, "new_string": new}
    [row] = [row for row in Talk().user("Note it.").tool("Edit", change, "ok").observed() if "CHANGELOG" in row.text]
    assert row.text == "Modified /src/CHANGELOG.md"


def test_what_only_prepares_something_is_no_row_of_its_own() -> None:
    """XG5: `git add -A` says nothing that the commit after it does not say."""
    talk = Talk().user("Commit it.")
    for command in ("git add -A", "mkdir -p build", "sleep 5", "git add a && make"):
        talk.tool("Bash", {"command": command}, exit_code=0)
    rows = [(row.text, row.importance) for row in talk.observed() if row.type is Type.COMMAND_RUN]
    assert rows == [
        ("Ran: git add -A; mkdir -p build; sleep 5", 2),
        ("Ran: git add a && make → exit 0", 4),
    ]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("### Error\nTimeoutError: no harbour was found", "TimeoutError: no harbour was found"),
        ("Error:\n\n  no such button", "no such button"),
        ("Error: no such button\nTry again", "Error: no such button"),
        ("### Error", "### Error"),
    ],
)
def test_a_label_above_an_error_is_no_reason(output: str, reason: str) -> None:
    """XC4: the next line says what failed."""
    rows = Talk().user("Try it").tool("mcp__map__click", {"ref": "e2"}, output, failed=True).observed()
    assert [row.text for row in rows if row.type is Type.TOOL_ERROR] == [f"mcp__map__click failed: {reason}"]


@pytest.mark.parametrize(
    ("command", "importance"),
    [
        ("python - <<'E'\nimport tides\nE", 5),
        ("python3.12 -I -c 'import tides'", 5),
        ("node <<E\nrequire('./tides')\nE", 5),
        ("node --input-type=module -e 'import x'", 5),
        ("bun --print 'tides'", 5),
        (".venv/bin/python -c 'import tides'", 5),
        ("python -m pytest -p no:cacheprovider", 8),
        ("python tides.py -c ports.toml", 8),
        ("node tides.js", 8),
        ("make tides", 8),
    ],
)
def test_a_script_in_the_command_line_is_an_experiment(command: str, importance: int) -> None:
    """XC4: nobody runs it again, so its failure would stay open."""
    rows = Talk().user("Try it").tool("Bash", {"command": command}, "Error: no harbour", failed=True).observed()
    assert [row.importance for row in rows if row.type is Type.COMMAND_ERROR] == [importance]
