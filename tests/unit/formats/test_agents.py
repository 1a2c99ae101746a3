"""Gemini CLI, Copilot CLI, Cursor and OpenCode: what makes their records hard to read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from omcli.formats import Format, named
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Abandoned, Facts, Item, Reason, Skip
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.unit.formats.readings import facts_of_file, json_lines, mutations

STORIES = Path(__file__).parents[2] / "stories"
GEMINI, COPILOT, CURSOR, OPENCODE = map(named, ("gemini", "copilot", "cursor", "opencode"))
OF_FOLDER = {"gemini-cli": GEMINI, "copilot-cli": COPILOT, "cursor": CURSOR, "opencode": OPENCODE}
ELSEWHERE = ("cursor/test-store.db", "cursor/specstory/", "opencode/storage_")
"""No messages, another program, and sessions whose messages are in files of their own."""


def read(form: Format, *records: object) -> list[Item]:
    return list(form.read(RecordStream(io.BytesIO(json_lines(*records)))))


def said(form: Format, *records: object) -> list[Message]:
    return [item for item in read(form, *records) if isinstance(item, Message)]


def story(name: str) -> list[dict[str, Any]]:
    content = (STORIES / name).read_text(encoding="utf-8")
    return [json.loads(content)] if name.endswith(".json") else [json.loads(line) for line in content.splitlines()]


def user(content: object, **fields: object) -> dict[str, object]:
    return {"id": "u", "type": "user", "content": content, **fields}


def shell(output: str, **fields: object) -> dict[str, object]:
    response = {"functionResponse": {"response": {"output": output}}}
    call = {"id": "c", "name": "run_shell_command", "args": {}, "status": "success", "result": [response], **fields}
    return {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}


# Gemini CLI


@pytest.mark.parametrize(
    ("output", "shown", "code", "failed"),
    [
        ("Command: ls\nDirectory: /\nOutput: a\nb\nError: (none)\nExit Code: 2\nSignal: 0", "a\nb", 2, True),
        ("Output: all good\nProcess Group PGID: 12", "all good", None, False),
        ("Output: the log says\nExit Code: 3\nand goes on", "the log says\nExit Code: 3\nand goes on", None, False),
        ("no frame", "no frame", None, False),
    ],
)
def test_a_command_fails_if_its_footer_says_so(output: str, shown: str, code: int | None, failed: bool) -> None:
    _, result = said(GEMINI, shell(output))
    assert (result.text, result.exit_code, result.failed) == (shown, code, failed)


def test_a_prompt_is_what_was_typed() -> None:
    texts = [
        user([{"text": "Compare @a.txt"}, {"text": "\n--- Content from referenced files ---"}, {"text": "secret"}]),
        user("You are to write a file", displayContent=[{"text": "/init now"}]),
        user("expanded", displayContent=[{"text": "short"}]),
        user("System: Please continue."),
        user([{"functionResponse": {"name": "ls"}}]),
    ]
    assert [(message.role, message.kind, message.text) for message in said(GEMINI, *texts)] == [
        (Role.USER, None, "Compare @a.txt"),
        (Role.EVENT, MessageKind.COMMAND, "/init now"),
        (Role.USER, None, "short"),
    ]


def test_what_a_person_took_back_is_abandoned() -> None:
    first, second = user("Go on", id="a"), user("No, stop", id="b")
    items = read(GEMINI, first, second, {"$rewindTo": "b"}, user("Yes", id="c"))
    assert [item.ids for item in items if isinstance(item, Abandoned)] == [{"b"}]


def test_prompts_of_a_subagent_are_delegated() -> None:
    head = {"sessionId": "s", "projectHash": "p", "kind": "subagent"}
    assert [message.kind for message in said(GEMINI, head, user("Count the lamps"))] == [MessageKind.DELEGATED]


def test_a_call_that_runs_is_told_at_once_and_its_result_when_it_has_one() -> None:
    running = shell("x", status="executing")
    running["toolCalls"][0].pop("result")  # type: ignore[index]
    assert [message.role for message in said(GEMINI, running)] == [Role.CALL]
    assert [message.role for message in said(GEMINI, running, shell("x"))] == [Role.CALL, Role.RESULT]


# Copilot CLI


def event(kind: str, **data: object) -> dict[str, object]:
    return {"type": kind, "data": data, "id": kind, "parentId": None, "timestamp": "2026-06-09T14:00:00.000Z"}


@pytest.mark.parametrize("mark", ["<exited with exit code 3>", "<shellId: 7 completed with exit code 3>"])
def test_the_exit_code_is_taken_from_the_end_of_the_output(mark: str) -> None:
    start = event("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "make"})
    end = event("tool.execution_complete", toolCallId="c", success=True, result={"content": f"broken\n{mark}"})
    _, result = said(COPILOT, start, end)
    assert (result.text, result.exit_code, result.failed, result.tool) == ("broken", 3, False, "bash")


def test_a_session_that_is_resumed_elsewhere_keeps_its_directory() -> None:
    start = event("session.start", sessionId="s", context={"cwd": "/a", "branch": "main"})
    resumed = event("session.resume", context={"cwd": "/b", "branch": "next"})
    items = read(COPILOT, start, event("user.message", content="Hi"), resumed, event("user.message", content="Again"))
    facts = [(item.cwd, item.branch) for item in items if isinstance(item, Facts)]
    assert facts == [("/a", "main"), ("/a", "next")]
    assert [item.cwd for item in items if isinstance(item, Message)] == [None, "/b"]


def test_what_a_program_says_as_the_user_is_left_out() -> None:
    spoken = [event("user.message", content="Read the skill", source="skill-pdf"), event("user.message", content=" ")]
    assert [item.reason for item in read(COPILOT, *spoken) if isinstance(item, Skip)] == [Reason.INJECTED] * 2


def test_the_first_versions_wrote_a_timeline() -> None:
    call = {"callId": "c", "name": "bash", "arguments": {"command": "ls"}}
    steps = [
        {"id": "1", "type": "user", "text": "List the files"},
        {"id": "2", "type": "copilot", "text": "I list them."},
        {"id": "3", "type": "tool_call_requested", **call},
        {"id": "3", "type": "tool_call_completed", **call, "result": {"type": "failure", "log": "denied"}},
        {"id": "4", "type": "info", "text": "Connected"},
    ]
    spoken = said(COPILOT, {"sessionId": "s", "chatMessages": [], "timeline": steps})
    assert [message.role for message in spoken] == [Role.USER, Role.ASSISTANT, Role.CALL, Role.RESULT]
    assert spoken[-1].failed


# Cursor


def line(role: str, *blocks: dict[str, object]) -> dict[str, object]:
    return {"role": role, "message": {"content": list(blocks)}}


def test_results_answer_calls_by_id_by_tool_or_in_order() -> None:
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "name": name, "input": {}} for name in ("Read", "Shell", "Grep")
    ]
    results: list[dict[str, Any]] = [
        {"type": "tool-result", "name": "Shell", "content": "second"},
        {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "first"}]},
        {"type": "tool_result", "tool_use_id": "call-3", "content": "third"},
    ]
    spoken = said(CURSOR, line("assistant", *calls), line("user", *results))
    assert [(message.tool, message.text) for message in spoken[3:]] == [
        ("Shell", "second"),
        ("Read", "first"),
        ("Grep", "third"),
    ]


def test_a_result_answers_the_call_with_its_id_before_one_with_its_tool() -> None:
    calls: list[dict[str, Any]] = [{"type": "tool_use", "id": each, "name": "Read", "input": {}} for each in "ab"]
    results: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": each, "name": "Read", "content": each} for each in "ba"
    ]
    spoken = said(CURSOR, line("assistant", *calls), line("user", *results))
    assert [(message.call_id, message.text) for message in spoken[2:]] == [("b", "b"), ("a", "a")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<timestamp>now</timestamp>\n<user_query>\nMove it\n</user_query>", "Move it"),
        ("<user_info>\nOS: linux\n</user_info>", None),
        ("<button>Save</button>", "<button>Save</button>"),
        ("Just words", "Just words"),
    ],
)
def test_words_stand_in_the_tags_of_the_client(text: str, words: str | None) -> None:
    spoken = said(CURSOR, line("user", {"type": "text", "text": text}))
    assert [message.text for message in spoken] == ([words] if words else [])


# OpenCode


def session(*messages: dict[str, Any], **info: object) -> dict[str, object]:
    return {"info": {"id": "s", "directory": "/a", "title": "New session - 1", **info}, "messages": list(messages)}


def answer(*parts: dict[str, object], **info: object) -> dict[str, Any]:
    return {"info": {"id": "m", "sessionID": "s", "role": "assistant", "time": {}, **info}, "parts": list(parts)}


def test_texts_of_one_answer_count_as_one() -> None:
    texts: list[dict[str, object]] = [{"id": f"p{n}", "type": "text", "text": f"Part {n}"} for n in (1, 2)]
    spoken = said(OPENCODE, session(answer(*texts, finish="stop")))
    assert [(message.id, message.kind) for message in spoken] == [("m", None), ("p2", MessageKind.CONTINUED)]


def test_an_answer_that_stopped_is_complete_once_another_follows() -> None:
    """A program that was killed leaves a call without a result."""
    state = {"status": "running", "input": {"command": "x"}}
    running: dict[str, object] = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
    assert said(OPENCODE, session(answer(running))) == []
    later = answer({"type": "text", "text": "Again"}, id="n")
    assert [message.role for message in said(OPENCODE, session(answer(running), later))] == [Role.CALL, Role.ASSISTANT]


def test_a_title_that_nobody_gave_is_none() -> None:
    (facts,) = [item for item in read(OPENCODE, session(parentID="REDACTED")) if isinstance(item, Facts)]
    assert (facts.title, facts.parent, facts.cwd) == (None, None, "/a")


# All


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("gemini_calendar.jsonl", GEMINI),
        ("copilot_queue.jsonl", COPILOT),
        ("cursor_menu.ndjson", CURSOR),
        ("opencode_rooms.json", OPENCODE),
    ],
)
def test_odd_values_in_any_place_never_stop_the_reading(name: str, form: Format) -> None:
    """F58, F60."""
    seen = set[tuple[str, ...]]()
    for entry in story(name):
        messages = entry.get("messages") or [entry]
        for message in messages:
            parts = record_shape(message)
            if parts not in seen:
                seen.add(parts)
                for mutated in mutations(message):
                    read(form, {**entry, "messages": [mutated]} if "messages" in entry else mutated)


def record_shape(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted({str(entry.get("type")), *map(str, entry), *(p["type"] for p in entry.get("parts", ()))}))


CONVERSATIONS = {
    path: OF_FOLDER[path.partition("/")[0]]
    for path, found in expected().items()
    if path.partition("/")[0] in OF_FOLDER and found["role"] == "conversation" and not path.startswith(ELSEWHERE)
}


@needs_shared
@pytest.mark.parametrize("path", CONVERSATIONS)
def test_a_real_file_has_the_numbers_of_its_index(path: str) -> None:
    found, facts = facts_of_file(CONVERSATIONS[path], TRANSCRIPTS / path), expected()[path]["facts"]
    told = {name: value for name, value in facts.items() if value is not None and name in found}
    assert {name: found[name] for name in told} == told


@needs_shared
def test_files_of_other_programs_are_not_taken_for_theirs() -> None:
    """F67: by content, whatever the name."""
    for path in expected():
        with (TRANSCRIPTS / path).open("rb") as stream:
            sample = RecordStream(stream).sample
        own = OF_FOLDER.get(path.partition("/")[0])
        assert [form.name for form in OF_FOLDER.values() if form.detect(sample) and form is not own] == [], path
