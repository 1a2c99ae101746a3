"""Reading transcripts of Codex CLI."""

from __future__ import annotations

import base64
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.codex import FORMAT
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Facts, Identities, Reason, Skip
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.unit.formats.readings import (
    facts_of_file,
    faults,
    items_of,
    json_lines,
    messages_of,
    mutations,
    reasons,
    session_of,
    skipped_of,
)

Line = dict[str, Any]


def at(second: int) -> str:
    return f"2026-03-01T09:00:{second:02d}.000Z"


def meta(second: int = 0, **payload: object) -> Line:
    given_ = {"id": "s-1", "cwd": "/src/app", "cli_version": "0.140.0", "source": "cli", **payload}
    return {"timestamp": at(second), "type": "session_meta", "payload": given_}


def item(kind: str, second: int = 1, **payload: object) -> Line:
    return {"timestamp": at(second), "type": "response_item", "payload": {"type": kind, **payload}}


def event(kind: str, second: int = 1, **payload: object) -> Line:
    return {"timestamp": at(second), "type": "event_msg", "payload": {"type": kind, **payload}}


def user(text: str, second: int = 1) -> Line:
    return item("message", second, role="user", content=[{"type": "input_text", "text": text}])


def prompt(text: str, second: int = 1, **more: object) -> Line:
    return event("user_message", second, message=text, **more)


def agent(text: str, second: int = 2) -> Line:
    return item("message", second, role="assistant", content=[{"type": "output_text", "text": text}])


def output(said: object, *, tool: str = "exec_command") -> Message:
    """The result of a call that answers `said`."""
    call = item("function_call", name=tool, arguments="{}", call_id="c1")
    return messages_of(FORMAT, meta(), call, item("function_call_output", call_id="c1", output=said))[-1]


# ---- prompts and answers


def test_a_prompt_and_an_answer_written_twice_are_read_once() -> None:
    records = (
        meta(),
        user("Rename the parser", 1),
        prompt("Rename the parser", 2),
        event("agent_message", 3, message="Done."),
        agent("Done.", 3),
    )
    assert messages_of(FORMAT, *records) == [
        Message(role=Role.USER, text="Rename the parser", at=at(2)),
        Message(role=Role.ASSISTANT, text="Done.", at=at(3)),
    ]
    assert reasons(skipped_of(FORMAT, *records)) == [Reason.REPEATED] * 2


def test_the_item_of_a_prompt_may_follow_its_event() -> None:
    records = (meta(), prompt("List the files"), user("List the files"), agent("Two."))
    assert [m.text for m in messages_of(FORMAT, *records)] == ["List the files", "Two."]


def test_the_same_prompt_said_twice_is_two_prompts() -> None:
    records = (meta(), user("continue"), prompt("continue"), user("continue"), prompt("continue"), agent("ok"))
    assert [m.text for m in messages_of(FORMAT, *records)] == ["continue", "continue", "ok"]


def test_texts_written_in_the_users_place_are_no_prompts() -> None:
    """F45: instruction files, environment, skills, and words without an event in a file that has events."""
    records = (
        meta(),
        item("message", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>"}]),
        user("# AGENTS.md instructions for /src/app\n\nBe brief."),
        user("<environment_context>\n<cwd>/src/app</cwd>\n</environment_context>"),
        user("Fix the build"),
        prompt("Fix the build"),
        agent("Fixed."),
        user("something a later version puts here"),
        agent("Still fine.", 3),
    )
    assert [m.text for m in messages_of(FORMAT, *records)] == ["Fix the build", "Fixed.", "Still fine."]


def test_in_a_file_without_events_the_items_are_the_prompts() -> None:
    records = (
        meta(),
        user("<environment_context>x</environment_context>"),
        user("Fix the build"),
        agent("Fixed."),
        user("<turn_aborted>\nstopped\n</turn_aborted>", 3),
        user("Thanks", 4),
        agent("Welcome.", 5),
        user("One more", 6),
    )
    assert [(m.role, m.text, m.at) for m in messages_of(FORMAT, *records)] == [
        (Role.USER, "Fix the build", at(1)),
        (Role.ASSISTANT, "Fixed.", at(2)),
        (Role.USER, "Thanks", at(4)),
        (Role.ASSISTANT, "Welcome.", at(5)),
        (Role.USER, "One more", at(6)),
    ]


def test_a_prompt_beside_injected_parts_of_one_item_is_kept() -> None:
    parts = [{"type": "input_text", "text": "<user_instructions>x</user_instructions>"}, {"text": "Go on", "type": "x"}]
    assert [m.text for m in messages_of(FORMAT, meta(), item("message", role="user", content=parts), agent("ok"))] == [
        "Go on",
        "ok",
    ]


def test_an_item_whose_event_is_not_yet_written_is_left_for_the_next_run() -> None:
    """F59: the two halves of the first prompt are written one after the other; between them it is not known."""
    begun = (meta(), user("Fix the build", 1))
    assert messages_of(FORMAT, *begun) == []
    assert reasons(skipped_of(FORMAT, *begun)) == [Reason.TRUNCATED]
    assert [m.at for m in messages_of(FORMAT, *begun, prompt("Fix the build", 2))] == [at(2)]


def test_items_without_end_are_not_collected_in_memory() -> None:
    many = [user(f"prompt {number}") for number in range(100)]
    stream = RecordStream(io.BytesIO(json_lines(meta(), *many)))
    first = next(read for read in FORMAT.read(stream) if isinstance(read, Message))
    assert first.text == "prompt 0"
    assert len(messages_of(FORMAT, meta(), *many, agent("ok"))) == 101


def test_a_newer_stream_of_prompt_events_counts_once() -> None:
    completed = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "Fix the build"}]}
    newer = event("item_completed", item=completed)
    assert [m.text for m in messages_of(FORMAT, meta(), user("Fix the build"), newer, agent("ok"))] == [
        "Fix the build",
        "ok",
    ]
    both = (meta(), user("Fix the build"), prompt("Fix the build"), newer, agent("ok"))
    assert [m.text for m in messages_of(FORMAT, *both)] == ["Fix the build", "ok"]


def test_of_an_editors_prompt_only_the_request_is_kept() -> None:
    said = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: src/a.py\n\n## My request for Codex:\nRename it\n"
    assert messages_of(FORMAT, meta(), prompt(said))[0].text == "Rename it"


@pytest.mark.parametrize(
    ("files", "heading", "text"),
    [
        ("## notes.md: /src/notes.md", "My request for Codex", "Read it\n[file /src/notes.md]"),
        ("## a: b.txt: /tmp/a: b.txt", "My request", "Read it\n[file /tmp/a: b.txt]"),
        ("## plan.pdf: C:\\ada\\plan.pdf\n\n## b.csv: ~/b.csv", "My request for Codex",
            "Read it\n[file C:\\ada\\plan.pdf]\n[file ~/b.csv]"),
        ("## shot.png: /tmp/shot.png\n\n## Screen 2.JPG: /tmp/Screen 2.JPG", "My request for Codex", "Read it"),
        ("## notes.md: /src/notes.md", "Ours", None),
    ],
)  # fmt: skip
def test_files_that_a_person_attached_stay_in_the_prompt_below_the_request(
    files: str, heading: str, text: str | None
) -> None:
    said = f"\n# Files mentioned by the user:\n\n{files}\n\n## {heading}:\nRead it\n"
    assert messages_of(FORMAT, meta(), prompt(said))[0].text == (text or said.strip())


def test_our_own_context_and_reminders_are_stripped() -> None:
    """F45: memory that om printed is not observed again, in prompts nor in results."""
    said = '<om-memory session="s">\n- a fact\n</om-memory>\nGo on'
    assert messages_of(FORMAT, meta(), prompt(said))[0].text == "Go on"
    assert messages_of(FORMAT, meta(), prompt("<om-memory>\n- a fact\n</om-memory>")) == []
    assert "a fact" not in output("before\n<om-memory>\n- a fact\n</om-memory>\n").text


def test_images_are_noted_with_their_size_and_digest() -> None:
    """F64: the bytes are let go, whatever their size."""
    picture = base64.b64encode(b"\x89PNG" + bytes(700_000)).decode()
    url = f"data:image/png;base64,{picture}"
    said = messages_of(FORMAT, meta(), prompt("Look", images=[url], local_images=["/tmp/b.png"]))[0]
    assert said.text == "Look\n[image png 684 KB]\n[image /tmp/b.png]"
    assert [(image.media_type, image.size) for image in said.images] == [("image/png", 700_004)]
    shown = output(
        [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": url}], tool="view_image"
    )
    assert shown.text == "see\n[image png 684 KB]"
    assert shown.images == said.images
    assert messages_of(FORMAT, meta(), prompt("", images=[url]))[0].text == "[image png 684 KB]"


def test_thinking_is_left_out() -> None:
    """S2.8: reasoning, in both of its forms."""
    records = (
        meta(),
        prompt("Go"),
        event("agent_reasoning", text="a secret thought"),
        item("reasoning", summary=[{"type": "summary_text", "text": "a secret thought"}], encrypted_content="x"),
        agent("Done."),
    )
    read = items_of(FORMAT, json_lines(*records))
    assert "secret" not in repr(read)
    assert not faults(read)


def test_an_answer_has_the_producers_id_where_there_is_one() -> None:
    """S2.10."""
    answer = item("message", id="msg_1", role="assistant", content=[{"type": "output_text", "text": "Done."}])
    assert messages_of(FORMAT, meta(), prompt("Go"), answer)[-1].id == "msg_1"


def test_an_answer_without_visible_text_is_no_message() -> None:
    assert messages_of(FORMAT, meta(), agent("  \n")) == []


# ---- calls and results


def test_calls_of_every_kind_keep_their_arguments_as_written() -> None:
    records = (
        meta(),
        item("function_call", name="exec_command", arguments='{"cmd": "ls  -la"}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch\n*** End Patch", call_id="c2", id="x"),
        item("local_shell_call", action={"type": "exec", "command": ["ls"]}, call_id="c3"),
        item("tool_search_call", arguments={"query": "pr"}, call_id="c4"),
        item("web_search_call", id="ws1", action={"type": "search", "query": "é"}),
        item("function_call", name="update_plan", arguments=None, call_id="c5"),
    )
    assert [(m.role, m.id, m.tool, m.text, m.call_id) for m in messages_of(FORMAT, *records)] == [
        (Role.CALL, "c1", "exec_command", '{"cmd": "ls  -la"}', "c1"),
        (Role.CALL, "c2", "apply_patch", "*** Begin Patch\n*** End Patch", "c2"),
        (Role.CALL, "c3", "local_shell", '{"type":"exec","command":["ls"]}', "c3"),
        (Role.CALL, "c4", "tool_search", '{"query":"pr"}', "c4"),
        (Role.CALL, "ws1", "web_search", '{"type":"search","query":"é"}', "ws1"),
        (Role.CALL, "c5", "update_plan", "", "c5"),
    ]


@pytest.mark.parametrize(
    ("namespace", "name", "tool"),
    [
        ("mcp__codex_apps__github", "_create_pull_request", "mcp__codex_apps__github__create_pull_request"),
        ("mcp__files__", "read", "mcp__files__read"),
        ("multi_agent", "spawn_agent", "spawn_agent"),
        (None, "exec_command", "exec_command"),
    ],
)
def test_tools_of_mcp_servers_are_named_with_their_server(namespace: str | None, name: str, tool: str) -> None:
    call = item("function_call", name=name, namespace=namespace, arguments="{}", call_id="c1")
    assert messages_of(FORMAT, meta(), call)[0].tool == tool


def test_a_result_is_joined_to_its_call() -> None:
    records = (
        meta(),
        item("function_call", name="exec_command", arguments="{}", call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="", call_id="c2"),
        item("custom_tool_call_output", call_id="c2", output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),
        item("function_call_output", call_id="c1", output="Plan updated"),
    )
    first, second = messages_of(FORMAT, *records)[2:]
    assert (first.id, first.call_id, first.tool) == ("c2:result", "c2", "apply_patch")
    assert (second.id, second.call_id, second.tool) == ("c1:result", "c1", "exec_command")


OUTPUT = "Chunk ID: 0a1b2c\nWall time: 0.61 seconds\n{}\nOriginal token count: 12\nOutput:\n{}"


@pytest.mark.parametrize(
    ("said", "text", "failed", "exit_code"),
    [
        (OUTPUT.format("Process exited with code 0", "a.txt\n"), "a.txt\n", False, 0),
        (OUTPUT.format("Process exited with code 101", "boom\n"), "boom\n", True, 101),
        (OUTPUT.format("Process exited with code -1", ""), "", True, -1),
        (
            OUTPUT.format("Process running with session ID 77", "compiling"),
            "Process running with session ID 77\ncompiling",
            None,
            None,
        ),
        ("Exit code: 1\nWall time: 0 seconds\nTotal output lines: 9\nOutput:\nno\n", "no\n", True, 1),
        ('{"output":"ok\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "ok\n", False, 0),
        ('{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}', "no", True, 2),
        ('{"output":"of a connector"}', '{"output":"of a connector"}', None, None),
        ("failed in sandbox X with error: denied, exit code: 2, stderr: no", None, True, 2),
        ("apply_patch verification failed: Failed to find expected lines in a.py:\nx", None, True, None),
        ("error: invalid hunk at line 3", None, True, None),
        ("patch rejected: outside of the project", None, True, None),
        ("write_stdin failed: stdin is closed", None, True, None),
        ("exec_command failed: no such file", None, True, None),
        ('Wall time: 1.5 seconds\nOutput:\n{"error":"not found"}', '{"error":"not found"}', True, None),
        ('{"error":"not found"}', None, True, None),
        ('Wall time: 1.5 seconds\nOutput:\n{"number":7}', '{"number":7}', None, None),
        ("Script completed\nWall time 0.2 seconds\nOutput:\n", "", None, None),
        ("Script failed\nWall time 0.2 seconds\nOutput:\nSyntaxError", "SyntaxError", True, None),
        ("Plan updated", None, None, None),
        ("aborted by user after 29.7s", None, None, None),
        ("It says\nProcess exited with code 1\nOutput:\nelsewhere", None, None, None),
        ("error on line 3, all the same", None, None, None),
        ({"content": "no", "success": False}, "no", True, None),
        ({"type": "input_text", "text": "a.txt"}, "a.txt", None, None),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", None, None),
        (None, "", None, None),
    ],
)
def test_an_output_is_taken_apart(said: object, text: str | None, failed: bool | None, exit_code: int | None) -> None:
    result = output(said)
    assert result.text == (said if text is None else text)
    assert (result.failed, result.exit_code) == (failed, exit_code)


def test_a_tool_search_answers_with_names() -> None:
    tools = [
        {"type": "namespace", "name": "mcp__gh", "tools": [{"name": "_open", "parameters": {"type": "object"}}]},
        {"type": "function", "name": "alone"},
    ]
    records = (
        meta(),
        item("tool_search_call", call_id="c1", arguments={"query": "x"}),
        item("tool_search_output", call_id="c1", tools=tools),
    )
    assert messages_of(FORMAT, *records)[-1].text == "mcp__gh__open\nalone"


def test_the_repetitions_and_the_bookkeeping_of_events_are_no_faults() -> None:
    kinds = ("exec_command_end", "mcp_tool_call_end", "patch_apply_end", "token_count", "task_started", "error")
    read = items_of(FORMAT, json_lines(meta(), *(event(kind, call_id="c1") for kind in kinds)))
    assert not faults(read)
    assert len(read) == 1 + len(kinds)


# ---- events


def test_a_compaction_is_counted_once_though_told_twice() -> None:
    compacted = {
        "timestamp": at(3),
        "type": "compacted",
        "payload": {"message": "So far: x", "replacement_history": [user("again")]},
    }
    records = (meta(), prompt("Go"), compacted, event("token_count"), event("context_compacted", 4), agent("ok"))
    assert [(m.role, m.kind, m.text) for m in messages_of(FORMAT, *records)] == [
        (Role.USER, None, "Go"),
        (Role.EVENT, MessageKind.COMPACTION, "So far: x"),
        (Role.ASSISTANT, None, "ok"),
    ]
    alone = messages_of(FORMAT, meta(), prompt("Go"), event("context_compacted", 4))
    assert [m.kind for m in alone] == [None, MessageKind.COMPACTION]


@pytest.mark.parametrize("between", [(), (event("agent_message"), event("token_count"))])
def test_the_summary_of_a_compaction_is_not_what_the_agent_said(between: tuple[Line, ...]) -> None:
    """Codex 0.171 writes it as an answer first, and then at the end of the compaction."""
    compacted = {"timestamp": at(4), "type": "compacted", "payload": {"message": "Handed over:\nThe quay is done."}}
    records = (meta(), prompt("Go"), agent("The quay is done."), *between, compacted, agent("Next: the mole."))
    said = [(m.role, m.text) for m in messages_of(FORMAT, *records)]
    assert said == [
        (Role.USER, "Go"), (Role.EVENT, "Handed over:\nThe quay is done."), (Role.ASSISTANT, "Next: the mole."),
    ]  # fmt: skip
    other = {**compacted, "payload": {"message": "Handed over:\nThe crane is done."}}
    answers = [m.text for m in messages_of(FORMAT, *records[:3], *between, other) if m.role is Role.ASSISTANT]
    assert answers == ["The quay is done."], "an answer before another summary is one"


def test_an_interruption_is_an_event_but_a_replaced_turn_is_none() -> None:
    stopped = (meta(), event("turn_aborted", 5, reason="interrupted"), event("turn_aborted", 6, reason="replaced"))
    assert [(m.role, m.kind, m.at) for m in messages_of(FORMAT, *stopped)] == [
        (Role.EVENT, MessageKind.INTERRUPT, at(5))
    ]


def test_a_command_that_the_person_ran_is_kept_with_its_output() -> None:
    said = (
        "<user_shell_command>\n<command>\nmake test\n</command>\n<result>\nExit code: 2\nDuration: 0.0300 seconds\n"
        "Output:\nno rule\n</result>\n</user_shell_command>"
    )
    ran = messages_of(FORMAT, meta(), prompt("Go"), user(said), agent("ok"))[1]
    assert (ran.role, ran.kind, ran.text) == (Role.EVENT, MessageKind.SHELL, "make test\nno rule")
    assert (ran.failed, ran.exit_code) == (True, 2)


# ---- the session


def test_a_session_is_known_by_its_first_header() -> None:
    """F68: a resumed file has several headers, a forked one those of the session it copies."""
    records = (
        meta(git={"branch": "main"}, forked_from_id="s-0"),
        meta(id="s-0", cwd="/elsewhere", git={"branch": "old"}),
        {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": "/src/app", "model": "gpt-5.5"}},
        prompt("Go"),
        meta(git={"branch": "topic"}),
        {"timestamp": at(2), "type": "turn_context", "payload": {"cwd": "/src/app", "model": "gpt-5.6"}},
        event("thread_name_updated", thread_name="Renaming"),
    )
    known = session_of(FORMAT, *records)
    assert (known.id, known.cwd, known.branch) == ("s-1", "/src/app", "topic")
    assert (known.title, known.model, known.parent) == ("Renaming", "gpt-5.6", "s-0")
    facts = [read for read in items_of(FORMAT, json_lines(*records)) if isinstance(read, Facts)]
    assert [fact.session for fact in facts if fact.session] == ["s-1"]
    assert [fact.branch for fact in facts if fact.branch] == ["main", "topic"], "not that of the copied session"


def test_messages_say_where_they_were_when_it_is_not_the_sessions_directory() -> None:
    away = {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": "/src/other"}}
    back = {"timestamp": at(3), "type": "turn_context", "payload": {"cwd": "/src/app"}}
    records = (meta(), prompt("Go"), away, agent("there"), back, agent("here", 4))
    assert [(m.text, m.cwd) for m in messages_of(FORMAT, *records)] == [
        ("Go", None),
        ("there", "/src/other"),
        ("here", None),
    ]


def test_what_a_subagent_is_told_is_no_persons_prompt() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s-0", "depth": 1}}}
    records = (meta(id="s-2", source=source), prompt("Review the diff"), agent("Looks fine."))
    assert session_of(FORMAT, *records).parent == "s-0"
    told, answered = messages_of(FORMAT, *records)
    assert (told.role, told.kind, told.is_counted) == (Role.USER, MessageKind.DELEGATED, False)
    assert answered.is_counted


def test_a_message_between_agents_names_its_author() -> None:
    parts = [{"type": "input_text", "text": "The tests pass."}, {"type": "encrypted_content", "encrypted_content": "x"}]
    said = item("agent_message", author="/lead/tester", recipient="/lead", content=parts)
    told = messages_of(FORMAT, meta(), prompt("Go"), said)[-1]
    assert (told.name, told.kind, told.text) == ("/lead/tester", MessageKind.DELEGATED, "The tests pass.")
    sealed = item("agent_message", author="a", content=[{"type": "encrypted_content", "encrypted_content": "x"}])
    assert messages_of(FORMAT, meta(), sealed) == []


# ---- other files of Codex


def test_the_oldest_files_have_no_wrapping() -> None:
    records = (
        {"id": "s-9", "timestamp": at(0), "instructions": "Be brief.", "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a","metadata":{"exit_code":0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks"}]},
    )
    assert [(m.role, m.text) for m in messages_of(FORMAT, *records)] == [
        (Role.USER, "Go"),
        (Role.CALL, "{}"),
        (Role.RESULT, "a"),
        (Role.ASSISTANT, "Done."),
        (Role.USER, "Thanks"),
    ]
    known = session_of(FORMAT, *records)
    assert (known.id, known.branch) == ("s-9", "main")
    assert not faults(items_of(FORMAT, json_lines(*records)))


def test_the_prompt_history_is_read_session_by_session() -> None:
    """F70: seconds since 1970 become instants."""
    records = (
        {"session_id": "s-1", "ts": 1761959019, "text": "Go"},
        {"session_id": "s-1", "ts": 1761959275, "text": "Go on"},
        {"session_id": "s-2", "ts": 1761959416, "text": "Elsewhere"},
    )
    read = items_of(FORMAT, json_lines(*records))
    said = [x.session if isinstance(x, Facts) else x.text for x in read if isinstance(x, Facts | Message)]
    assert said == ["s-1", "Go", "Go on", "s-2", "Elsewhere"]
    assert messages_of(FORMAT, *records)[0].at == "2025-11-01T01:03:39.000Z"


def command(stage: str, **more: object) -> Line:
    return {"type": f"item.{stage}", "item": {"id": "item_1", "type": "command_execution", "command": "ls", **more}}


STREAM = (
    {"type": "thread.started", "thread_id": "t-1"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "a secret thought"}},
    command("started", aggregated_output="", status="in_progress"),
    command("updated", aggregated_output="a.", status="in_progress"),
    command("completed", aggregated_output="a.txt\n", exit_code=0, status="completed"),
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "One file."}},
    {"type": "turn.completed", "usage": {"input_tokens": 9}},
)


def test_a_stream_of_codex_exec_is_read_without_its_intermediate_states() -> None:
    """F69: an item that is told three times is one call and one result."""
    assert [(m.role, m.text, m.id) for m in messages_of(FORMAT, *STREAM)] == [
        (Role.CALL, '{"command":"ls"}', "t-1:item_1"),
        (Role.RESULT, "a.txt\n", "t-1:item_1:result"),
        (Role.ASSISTANT, "One file.", "t-1:item_2"),
    ]
    result = messages_of(FORMAT, *STREAM)[1]
    assert (result.failed, result.exit_code, result.tool) == (False, 0, "command_execution")
    assert session_of(FORMAT, *STREAM).id == "t-1"


def test_an_item_of_a_stream_that_never_started_is_call_and_result() -> None:
    failed = {"id": "item_3", "type": "mcp_tool_call", "server": "gh", "tool": "open", "arguments": {"n": 1}}
    records = (
        STREAM[0],
        {"type": "item.completed", "item": {**failed, "error": {"message": "no"}, "status": "failed"}},
        {
            "type": "item.completed",
            "item": {"id": "item_4", "type": "file_change", "changes": [{"path": "a.py"}], "status": "completed"},
        },
        {"type": "item.completed", "item": {"id": "item_5", "type": "web_search", "query": "x"}},
        {"type": "item.completed", "item": {"id": "item_6", "type": "something_new"}},
    )
    assert [(m.role, m.tool, m.text, m.failed) for m in messages_of(FORMAT, *records)] == [
        (Role.CALL, "mcp__gh__open", '{"n":1}', None),
        (Role.RESULT, "mcp__gh__open", "no", True),
        (Role.CALL, "file_change", '{"changes":[{"path":"a.py"}]}', None),
        (Role.RESULT, "file_change", "completed", False),
        (Role.CALL, "web_search", '{"query":"x"}', None),
    ]
    assert skipped_of(FORMAT, *records) == [Skip(Reason.UNKNOWN_TYPE, "something_new")]


# ---- what is broken, unknown or hostile


def test_unknown_types_are_named_and_malformed_records_are_counted() -> None:
    """F57, F58."""
    records = (
        meta(),
        {"timestamp": at(1), "type": "future_record", "payload": {}},
        event("future_event"),
        item("future_item"),
        {"timestamp": at(1), "type": "event_msg", "payload": None},
        {"timestamp": at(1), "type": "response_item", "payload": "text"},
        item("function_call", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1"),
        event("user_message", message=None),
        {"timestamp": at(1), "type": "session_meta", "payload": {}},
        {"hello": 1},
        prompt("Go"),
    )
    assert [m.text for m in messages_of(FORMAT, *records)] == ["Go"]
    assert skipped_of(FORMAT, *records) == [
        Skip(Reason.UNKNOWN_TYPE, "future_record"),
        Skip(Reason.UNKNOWN_TYPE, "future_event"),
        Skip(Reason.UNKNOWN_TYPE, "future_item"),
        Skip(Reason.MALFORMED, "event_msg"),
        Skip(Reason.MALFORMED, "response_item"),
        Skip(Reason.MALFORMED, "function_call"),
        Skip(Reason.MALFORMED, "function_call_output"),
        Skip(Reason.MALFORMED, "user_message"),
        Skip(Reason.MALFORMED, "session_meta"),
        Skip(Reason.MALFORMED, ""),
    ]


def test_a_content_that_is_a_text_is_taken_as_text() -> None:
    """F58."""
    answer = item("message", role="assistant", content="Done.")
    assert [m.text for m in messages_of(FORMAT, meta(), prompt("Go"), answer)] == ["Go", "Done."]


def test_two_records_on_one_line_are_both_read() -> None:
    """F63: a crash while appending."""
    crashed = json_lines(meta(), prompt("Go")) + json.dumps(agent("one")).encode() + json_lines(agent("two"))
    assert [x.text for x in items_of(FORMAT, crashed) if isinstance(x, Message)] == ["Go", "one", "two"]


def test_a_truncated_last_line_is_left_for_the_next_run() -> None:
    """F59."""
    whole = json_lines(meta(), prompt("Go"), agent("Done."))
    assert [x.text for x in items_of(FORMAT, whole[:-20]) if isinstance(x, Message)] == ["Go"]
    assert not faults(items_of(FORMAT, whole[:-20]))


def test_file_order_is_kept_whatever_the_clocks_say() -> None:
    """F70: times that step back or are no times change nothing but themselves."""
    undated = {**agent("undated"), "timestamp": "yesterday"}
    records = (meta(), prompt("Go", 30), agent("first", 20), undated, agent("last", 10))
    assert [(m.text, m.at) for m in messages_of(FORMAT, *records)] == [
        ("Go", at(30)),
        ("first", at(20)),
        ("undated", None),
        ("last", at(10)),
    ]


def test_a_copied_history_has_the_same_identities() -> None:
    """F68: a session that begins with a copy of another adds only what is new."""
    history = (
        prompt("Go", 1),
        item("function_call", 2, name="shell", arguments="{}", call_id="c1"),
        item("function_call_output", 3, call_id="c1", output="ok"),
        agent("Done.", 4),
    )
    first = identities("s-1", meta(), *history)
    copied = identities("s-2", meta(id="s-2"), *history, prompt("More", 9))
    assert len(set(first)) == len(first) == 4
    assert copied[:4] == first
    assert copied[4] not in first


def identities(session: str, *records: object) -> list[str]:
    known = Identities(session, format_name=FORMAT.name, copies=FORMAT.copies)
    return [known.of(message) for message in messages_of(FORMAT, *records)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LINES = (
    meta(),
    user("Go"),
    prompt("Go", images=[], local_images=[]),
    agent("ok"),
    item("function_call", name="shell", arguments="{}", call_id="c1", namespace="mcp__x"),
    item("function_call_output", call_id="c1", output={"content": "x", "success": True}),
    item("tool_search_output", call_id="c1", tools=[{"name": "a", "tools": [{"name": "b"}]}]),
    item("agent_message", author="a", content=[]),
    event("item_completed", item={"type": "UserMessage", "content": []}),
    event("turn_aborted", reason="interrupted"),
    {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": "/a", "model": "m"}},
    {"timestamp": at(1), "type": "compacted", "payload": {"message": ""}},
    {"type": "tool_call", "function": {"name": "git"}, "arguments": "status", "timestamp": at(1)},
    {"session_id": "s", "ts": 1, "text": "t"},
    *STREAM,
)


KEPT = agent("kept")


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_a_mutated_record_never_stops_the_reading_and_costs_only_itself(line: Line) -> None:
    """F58, F60: any odd value in any place of any kind of record; its neighbours are read."""
    odd = [mutated for mutated in mutations(line) if isinstance(mutated, dict)]
    read = messages_of(FORMAT, meta(), *(x for mutated in odd for x in (mutated, KEPT)))
    assert sum(message.text == "kept" for message in read) == len(odd) > 10


@given(st.lists(JSON, max_size=3), st.sampled_from(LINES))
def test_any_value_may_stand_for_the_content_of_a_record(values: list[object], line: Line) -> None:
    """F58, F60."""
    key = "payload"
    odd = [{**line, key: {**line[key], name: value}} for value in values for name in line.get(key, {})]
    assert [m.text for m in messages_of(FORMAT, meta(), *odd, KEPT) if m.text == "kept"] == ["kept"]


# ---- real files


CONVERSATIONS = {
    path: entry["facts"]
    for path, entry in expected().items()
    if entry["format"] in ("codex", "openai-responses") and entry["role"] == "conversation"
}
LINES_OF = [path for path in CONVERSATIONS if path.endswith(".jsonl")]


@needs_shared
@pytest.mark.parametrize("path", CONVERSATIONS)
def test_a_real_file_has_the_numbers_of_its_index(path: str) -> None:
    """XD8: also a list of items of the Responses API."""
    found = facts_of_file(FORMAT, TRANSCRIPTS / path)
    told = {name: value for name, value in CONVERSATIONS[path].items() if value is not None and name in found}
    assert {name: found[name] for name in told} == told


@needs_shared
def test_real_files_hold_nothing_that_the_reader_does_not_know() -> None:
    for path in CONVERSATIONS:
        assert faults(items_of(FORMAT, (TRANSCRIPTS / path).read_bytes())) == [], path


@needs_shared
@pytest.mark.parametrize("path", [p for p, e in expected().items() if e["format"] == "codex" and e["role"] == "probe"])
def test_probes_are_read(path: str) -> None:
    assert [x for x in items_of(FORMAT, (TRANSCRIPTS / path).read_bytes()) if isinstance(x, Message)]


@needs_shared
@pytest.mark.parametrize("path", LINES_OF)
def test_a_file_that_grew_begins_with_the_same_messages(path: str) -> None:
    """F59, F68: whatever line was the last one, what was read before is read again, unchanged and in order."""
    lines = (TRANSCRIPTS / path).read_bytes().splitlines(keepends=True)
    whole = [x for x in items_of(FORMAT, b"".join(lines)) if isinstance(x, Message)]
    early = range(1, min(16, len(lines)))
    for end in [*early, *random.Random(7).sample(range(1, len(lines) + 1), min(8, len(lines)))]:
        part = [x for x in items_of(FORMAT, b"".join(lines[:end])) if isinstance(x, Message)]
        assert part == whole[: len(part)], f"{path} up to line {end}"


@needs_shared
def test_files_of_other_programs_are_not_taken_for_codex() -> None:
    """F67: by content, whatever the name."""
    for path, entry in expected().items():
        with (TRANSCRIPTS / path).open("rb") as stream:
            recognised = FORMAT.detect(RecordStream(stream).sample)
        assert recognised == (entry["format"] in ("codex", "openai-responses")), path


def test_one_record_of_codex_in_another_transcript_makes_it_no_rollout() -> None:
    """formats.md, sniffing: records vote."""
    other = [{"role": "user", "content": f"message {number}"} for number in range(5)]
    stray = {"timestamp": at(1), "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}
    source = RecordStream(io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in (stray, *other))))
    assert not FORMAT.detect(source.sample)


@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [("Europe/Berlin", 60, 120), ("America/St_Johns", -210, -150), ("UTC", None, None),
     ("../../etc/passwd", None, None), ("[masked]", None, None), ("Europe", None, None), (7, None, None)],
)  # fmt: skip
def test_the_zone_of_a_turn_is_kept_with_what_is_said_in_it(
    zone: object, winter: int | None, summer: int | None
) -> None:
    """S0.29: Codex names the zone, and its times are in UTC."""
    context = {"timestamp": at(0), "type": "turn_context", "payload": {"cwd": "/a", "timezone": zone}}
    later = prompt("And now?") | {"timestamp": "2026-07-01T09:00:00.000Z"}
    said = messages_of(FORMAT, meta(), prompt("Before"), context, prompt("Now?"), later)
    assert [message.utc_offset for message in said] == [None, winter, summer]
