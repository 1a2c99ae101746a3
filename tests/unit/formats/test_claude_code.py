"""Claude Code transcripts: who says what in them, and what is left out."""

from __future__ import annotations

import base64
import io
import itertools
import json
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats import detect
from omcli.formats.claude_code import FORMAT
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Facts, Identities, Item, Reason, Skip
from omcli.operations.ingest.sessions import TranscriptCounts
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.soak import first_only

Line = dict[str, Any]

_NUMBERS = itertools.count(1)
PNG = base64.b64encode(b"\x89PNG" + b"\0" * 2000).decode()


def line(kind: str, **fields: object) -> Line:
    """A record with the envelope that the client writes; `None` leaves a key out."""
    number = next(_NUMBERS)
    envelope: Line = {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": None,
        "sessionId": "s-1",
        "timestamp": f"2026-03-01T09:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "cwd": "/plot/garden",
        "gitBranch": "main",
        "version": "2.1.40",
        "isSidechain": False,
    }
    return {name: value for name, value in (envelope | fields).items() if value is not None}


def typed(content: object, **fields: object) -> Line:
    return line("user", message={"role": "user", "content": content}, **fields)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def image(data: str = PNG) -> Line:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def said(*blocks: object, message_id: str = "msg_1", **fields: object) -> Line:
    message = {"id": message_id, "role": "assistant", "model": "claude-large", "content": list(blocks)}
    return line("assistant", **({"message": message} | fields))


def call(call_id: str = "toolu_1", name: str = "Bash", arguments: object = None) -> Line:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "ls"}}


def result(content: object = "ok", call_id: str = "toolu_1", **fields: object) -> Line:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def queued(operation: str, content: object = None, **fields: object) -> Line:
    return line("queue-operation", operation=operation, content=content, uuid=None, **fields)


def raw(*lines: Line) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in lines)


def items(*lines: Line) -> list[Item]:
    return list(FORMAT.read(RecordStream(io.BytesIO(raw(*lines)))))


def messages(*lines: Line) -> list[Message]:
    return [item for item in items(*lines) if isinstance(item, Message)]


def only(*lines: Line) -> Message:
    [message] = messages(*lines)
    return message


def skipped(*lines: Line) -> list[Skip]:
    return [item for item in items(*lines) if isinstance(item, Skip)]


def facts(*lines: Line) -> list[Facts]:
    return [item for item in items(*lines) if isinstance(item, Facts)]


COUNTED = ("human_messages", "assistant_messages", "tool_calls", "tool_results", "errors", "compactions", "messages")


def tally_of(found: list[Item]) -> TranscriptCounts:
    tally = TranscriptCounts()
    for item in found:
        tally.add(item)
    return tally


def counts(found: list[Item]) -> dict[str, int]:
    """Counts of a reading, without zeros."""
    numbers = {name: getattr(tally_of(found).counts, name) for name in COUNTED}
    return {name: number for name, number in numbers.items() if number}


# Prompts


def test_what_a_person_types_is_a_prompt() -> None:
    """S2.10: it keeps the producer's id."""
    prompt = only(typed("Water the roses.", uuid="u-1", timestamp="2026-03-01T09:00:01.500Z"))
    assert (prompt.role, prompt.text, prompt.kind, prompt.agent) == (Role.USER, "Water the roses.", None, None)
    assert (prompt.id, prompt.at) == ("u-1", "2026-03-01T09:00:01.500Z")


def test_a_prompt_may_be_a_list_of_blocks_and_of_bare_texts() -> None:
    assert only(typed([text("Water"), "the roses."])).text == "Water\n\nthe roses."


def test_what_the_editor_and_hooks_put_into_a_prompt_is_taken_out_of_it() -> None:
    """S2.9"""
    note = "<ide_opened_file>The user opened the file /plot/garden/a.py in the IDE.</ide_opened_file>"
    reminder = "<system-reminder>\nKeep it short.\n</system-reminder>"
    assert only(typed([text(note), text("Prune it.")])).text == "Prune it."
    assert only(typed(f"{note}\nPrune it.\n\n{reminder}")).text == "Prune it."


def test_our_own_memory_is_not_read_back() -> None:
    """S2.9, F45: in prompts, in results, and nested."""
    pack = "<om-memory session='s-0'>\n- the roses are red\n</om-memory>"
    assert only(typed(f"{pack}\nPrune it.")).text == "Prune it."
    assert only(typed(f"<system-reminder>{pack}</system-reminder>\nPrune it.")).text == "Prune it."
    assert only(typed([result(f"a.py\n{pack}")])).text == "a.py"
    assert only(typed([result([text("a.py"), text(f"<system-reminder>{pack}</system-reminder>")])])).text == "a.py"
    assert messages(line("attachment", attachment={"type": "hook_additional_context", "content": [pack]})) == []


@pytest.mark.parametrize(
    "content",
    [
        "<system-reminder>Keep it short.</system-reminder>",
        [text("<ide_selection>rose = 1</ide_selection>")],
        "<local-command-stdout>Bye!</local-command-stdout>",
        "<local-command-stderr>No!</local-command-stderr>",
        "<local-command-caveat>Caveat: local commands.</local-command-caveat>",
        "Caveat: The messages below were generated by the user while running local commands.",
        "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>",
        "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
        "<agent-notification>\n<agent-id>a1</agent-id>\n</agent-notification>",
    ],
)
def test_what_a_program_says_in_a_persons_place_is_injected(content: object) -> None:
    assert skipped(typed(content)) == [Skip(Reason.INJECTED)]
    assert messages(typed(content)) == []


@pytest.mark.parametrize(
    "marks",
    [
        {"isMeta": True},
        {"isSynthetic": True},
        {"isVisibleInTranscriptOnly": True},
        {"promptSource": "system"},
        {"origin": {"kind": "task-notification"}},
        {"origin": {"kind": "peer", "from": "bob", "senderTaskId": "t1"}},
    ],
)
def test_a_record_that_says_it_is_a_programs_is_injected(marks: Line) -> None:
    assert skipped(typed("Base directory for this skill: /work", **marks)) == [Skip(Reason.INJECTED)]
    assert messages(typed("Base directory for this skill: /work", **marks)) == []


def test_a_person_is_a_person_however_the_prompt_came() -> None:
    assert only(typed("Hi.", origin={"kind": "human"}, promptSource="sdk", isMeta=False)).is_counted


def test_a_plan_that_was_accepted_is_a_prompt() -> None:
    assert only(typed("Implement the following plan:\n\n1. Dig.", planContent="1. Dig.")).is_counted


def test_text_beside_a_result_is_a_prompt() -> None:
    """Typed while the tool ran; it is in no other record."""
    found = messages(said(call()), typed([result("a.py"), text("and use b.py too")], uuid="u-9"))
    assert [(one.role, one.text) for one in found[1:]] == [(Role.RESULT, "a.py"), (Role.USER, "and use b.py too")]
    assert [one.id for one in found[1:]] == ["toolu_1:result", "u-9"]
    assert found[2].is_counted


def test_a_blank_prompt_is_noise() -> None:
    assert skipped(typed("  \n")) == [Skip(Reason.NOISE)]
    assert skipped(typed([])) == [Skip(Reason.NOISE)]


# Images


def test_an_image_is_noted_with_its_size_and_hash_but_not_kept() -> None:
    """F64, S2.5"""
    prompt = only(typed([image(), text("What is wrong here?")]))
    assert prompt.text == "[image png 2 KB]\n\nWhat is wrong here?"
    [noted] = prompt.images
    assert (noted.media_type, noted.size, len(noted.sha256)) == ("image/png", 2004, 64)


def test_a_prompt_may_be_an_image_alone() -> None:
    prompt = only(typed([image()], imagePasteIds=[1]))
    assert (prompt.text, prompt.is_counted, len(prompt.images)) == ("[image png 2 KB]", True, 1)


def test_a_line_of_a_megabyte_keeps_its_message_without_the_bytes() -> None:
    """F64"""
    data = base64.b64encode(random.Random(1).randbytes(800_000)).decode()
    prompt = only(typed([image(data), text("Look.")]))
    assert prompt.text == "[image png 781 KB]\n\nLook."
    assert prompt.images[0].size == 800_000


def test_images_and_documents_in_results_are_noted_in_their_places() -> None:
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD" * 400}}
    answer = only(typed([result([text("two files"), image(), pdf, {"type": "image"}])]))
    assert answer.text == "two files\n[image png 2 KB]\n[document pdf 1 KB]\n[image]"
    assert len(answer.images) == 1


# The agent


def test_the_lines_of_one_answer_are_one_message_and_its_calls() -> None:
    """F69, S2.8, S2.10: a line per block, all with the id of the message; thoughts and blanks are left out."""
    found = items(
        said({"type": "text", "text": "\n\n"}),
        said({"type": "thinking", "thinking": "Roses need water.", "signature": "x"}),
        said(text("I will look.")),
        said(call("toolu_1", "Read", {"file_path": "/a"})),
        said(call("toolu_2")),
    )
    assert [(one.role, one.id, one.text) for one in found if isinstance(one, Message)] == [
        (Role.ASSISTANT, "msg_1", "I will look."),
        (Role.CALL, "toolu_1", '{"file_path":"/a"}'),
        (Role.CALL, "toolu_2", '{"command":"ls"}'),
    ]
    assert [one.reason for one in found if isinstance(one, Skip)] == [Reason.NOISE, Reason.NOISE]


def test_pieces_of_a_stream_are_left_for_the_message_they_make() -> None:
    """F69: "Hel", "lo"."""
    pieces = [
        line("stream_event", event={"type": "content_block_delta", "delta": {"text": piece}}) for piece in ("Hel", "lo")
    ]
    assert [one.text for one in messages(*pieces, said(text("Hello")))] == ["Hello"]


def test_blocks_of_one_record_are_one_text() -> None:
    assert (
        only(said(text("First."), {"type": "thinking", "thinking": "Hm."}, text("Second."))).text == "First.\n\nSecond."
    )


def test_a_second_text_of_a_message_is_kept_and_not_counted_again() -> None:
    """F69: and it has the same id whether the file is read now or when it has grown."""
    first, second = said(text("Hel"), message_id="msg_7"), said(text("lo"), message_id="msg_7")
    assert [one.id for one in messages(first)] == ["msg_7"]
    found = messages(first, second)
    assert [(one.id, one.kind) for one in found] == [("msg_7", None), ("msg_7~2", MessageKind.CONTINUED)]
    assert counts(items(first, second)) == {"assistant_messages": 1, "messages": 1}


def test_a_text_written_twice_under_one_message_id_comes_once() -> None:
    found = items(said(text("Done."), message_id="msg_7"), said(text("Done."), message_id="msg_7"))
    assert found[-1] == Skip(Reason.REPEATED)


@pytest.mark.parametrize(
    "made_up",
    [
        {
            "message": {
                "id": "m",
                "model": "<synthetic>",
                "content": [{"type": "text", "text": "No response requested."}],
            }
        },
        {
            "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": "API Error"}]},
            "isApiErrorMessage": True,
        },
    ],
)
def test_what_the_client_makes_up_is_not_the_agents(made_up: Line) -> None:
    assert [item for item in items(line("assistant", **made_up)) if not isinstance(item, Facts)] == [Skip(Reason.NOISE)]


def test_a_call_carries_its_tool_and_arguments_as_written() -> None:
    made = only(said(call("toolu_3", "mcp__tools__dig", {"where": "Beet é", "deep": [1, None]})))
    assert (made.role, made.tool, made.call_id, made.id) == (Role.CALL, "mcp__tools__dig", "toolu_3", "toolu_3")
    assert made.text == '{"where":"Beet é","deep":[1,null]}'


def test_a_call_or_result_written_again_comes_once() -> None:
    lines = (said(call()), said(call(), message_id="msg_2"), typed([result()]), typed([result("ok again")]))
    found = items(*lines)
    assert [(one.role, one.text) for one in found if isinstance(one, Message)] == [
        (Role.CALL, '{"command":"ls"}'),
        (Role.RESULT, "ok"),
    ]
    assert [one.reason for one in found if isinstance(one, Skip)] == [Reason.REPEATED] * 2


# Results


def test_a_result_is_joined_to_its_call() -> None:
    """S2.10"""
    answer = messages(said(call("toolu_5", "Grep")), typed([result("3 matches", "toolu_5")]))[1]
    assert (answer.role, answer.tool, answer.call_id, answer.id) == (Role.RESULT, "Grep", "toolu_5", "toolu_5:result")


def test_a_result_whose_call_is_not_in_the_file_has_no_tool() -> None:
    assert only(typed([result("3 matches", "toolu_6")])).tool is None


def test_results_come_to_their_calls_in_any_order() -> None:
    answers = typed([result("b", "toolu_2"), result("a", "toolu_1")])
    found = messages(said(call("toolu_1", "Read")), said(call("toolu_2", "Grep")), answers)
    assert [(one.text, one.tool) for one in found[2:]] == [("b", "Grep"), ("a", "Read")]


@pytest.mark.parametrize(("flag", "failed"), [({}, False), ({"is_error": False}, False), ({"is_error": True}, True)])
def test_a_result_without_an_error_flag_succeeded(flag: Line, failed: bool) -> None:
    assert only(typed([result("text", **flag)])).failed is failed


def test_an_exit_code_is_found_in_the_text() -> None:
    answer = only(typed([result("Exit code 3\njq: error", is_error=True)]))
    assert (answer.exit_code, answer.failed, answer.text) == (3, True, "Exit code 3\njq: error")
    assert only(typed([result("The exit code 3 is documented.")])).exit_code is None


def test_the_wrapper_of_a_tools_error_is_taken_off() -> None:
    answer = only(typed([result("<tool_use_error>File does not exist.</tool_use_error>", is_error=True)]))
    assert answer.text == "File does not exist."


@pytest.mark.parametrize("content", [None, "", [], [{"type": "tool_reference", "tool_name": "LSP"}], {"odd": 1}])
def test_a_result_may_be_empty(content: object) -> None:
    assert only(typed([result(content)])).text == ""


# Where else a person speaks


NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention."
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). "
)


@pytest.mark.parametrize(
    "ending",
    [
        "To tell you how to proceed, the user said:\nuse the other shed",
        "The user provided the following reason for the rejection:  use the other shed",
        f"To tell you how to proceed, the user said:\nuse the other shed{NOTE}",
    ],
)
def test_words_said_while_refusing_a_call_are_a_remark(ending: str) -> None:
    _, answer, remark = messages(said(call()), typed([result(REFUSED + ending, is_error=True)]))
    assert (answer.role, answer.failed) == (Role.RESULT, True)
    assert (remark.role, remark.kind, remark.text) == (Role.USER, MessageKind.REMARK, "use the other shed")
    assert (remark.id, remark.is_counted) == ("toolu_1:remark", False)


def test_a_refusal_without_words_is_only_a_failure() -> None:
    stop = "STOP what you are doing and wait for the user to tell you how to proceed."
    assert only(typed([result(REFUSED + stop, is_error=True)])).failed
    quoted = "The user doesn't want to X; the user said:\nhello"
    assert only(typed([result(quoted)])).role is Role.RESULT, "a file that quotes a refusal is none"


def in_editor(content: str, *, tool: str = "Bash", version: str = "2.0.5", error: str = "Error: ") -> list[Message]:
    """A failed call in the VS Code extension."""
    note = "<ide_opened_file>The user opened the file a.py in the IDE.</ide_opened_file>"
    return messages(
        typed([text(note), text("Commit.")], version=version),
        said(call(name=tool), version=version),
        typed([result(content, is_error=True)], toolUseResult=error + content, version=version),
    )[2:]


def test_in_the_editor_the_bare_words_of_a_refusal_are_a_remark() -> None:
    answer, remark = in_editor("please add the hedge first")
    assert answer.failed
    assert (remark.kind, remark.text) == (MessageKind.REMARK, "please add the hedge first")


@pytest.mark.parametrize(
    "failure",
    [
        "Exit code 1\nboom",
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        "Request failed with status code 404",
        "Command timed out after 2m",
        "EACCES: permission denied, open 'a'",
        "PreToolUse:Bash hook error: no",
    ],
)
def test_in_the_editor_a_failure_is_not_put_into_a_persons_mouth(failure: str) -> None:
    [answer] = in_editor(failure)
    assert answer.failed


def test_outside_the_editor_bare_words_are_not_a_remark() -> None:
    assert len(in_editor("please add the hedge first", version="1.0.55")) == 1
    assert len(in_editor("please add the hedge first", tool="WebFetch")) == 1
    assert len(in_editor("please add the hedge first", error="")) == 1
    failed = typed([result("add it", is_error=True)], toolUseResult="Error: add it", version="2.0.5")
    assert len(messages(said(call(), version="2.0.5"), failed)) == 2


def test_answers_to_the_agents_questions_are_kept() -> None:
    given_answers = {"Which shed?": "the red one", "Which tools?": ["spade", "rake"], "Why?": ""}
    found = messages(
        said(call(name="AskUserQuestion", arguments={"questions": [1]})),
        typed([result("User has answered your questions.")], toolUseResult={"questions": [], "answers": given_answers}),
    )
    answer = found[2]
    assert (answer.role, answer.kind, answer.id) == (Role.USER, MessageKind.ANSWER, "toolu_1:answer")
    assert answer.text == "Which shed? -> the red one\nWhich tools? -> spade, rake"


def test_a_queued_prompt_that_is_handed_over_in_mid_turn_is_kept() -> None:
    enqueued = queued("enqueue", "and the tulips", timestamp="2026-03-01T09:00:07.000Z")
    told = only(enqueued, queued("remove"))
    assert (told.role, told.kind, told.text) == (Role.USER, MessageKind.QUEUED, "and the tulips")
    assert (told.id, told.at) == ("queued:2026-03-01T09:00:07.000Z", "2026-03-01T09:00:07.000Z")
    assert not told.is_counted


def test_a_queued_prompt_may_be_a_list_of_blocks() -> None:
    told = only(
        queued("enqueue", [text("<ide_selection>x</ide_selection>"), text("this one"), image()]), queued("remove")
    )
    assert (told.text, len(told.images)) == ("this one\n\n[image png 2 KB]", 1)


@pytest.mark.parametrize("after", [["dequeue"], ["popAll"], ["popAll", "remove"], ["dequeue", "remove"], []])
def test_a_queued_prompt_that_waits_or_goes_another_way_is_not_told_here(after: list[str]) -> None:
    assert messages(queued("enqueue", "and the tulips"), *map(queued, after)) == []


def test_queued_prompts_are_taken_in_turn() -> None:
    lines = [queued("enqueue", "one"), queued("enqueue", "two"), queued("dequeue"), queued("remove")]
    assert only(*lines).text == "two"


def test_a_removal_that_names_its_prompt_takes_that_one() -> None:
    lines = [queued("enqueue", "one"), queued("enqueue", "two"), queued("remove", "two"), queued("dequeue")]
    assert only(*lines).text == "two"
    assert only(queued("remove", "three")).text == "three"


@pytest.mark.parametrize("reason", ["cancelled", "agent_stopped"])
def test_a_prompt_that_was_taken_back_is_not_said(reason: str) -> None:
    assert messages(queued("enqueue", "one"), queued("remove", "one", reason=reason)) == []


@pytest.mark.parametrize(
    "content",
    [
        "<task-notification>\ndone",
        "<agent-notification>\ndone",
        "/compact",
        "/review the gate",
        '{"task_id": "b1", "status": "done"}',
        {"task_id": "b1"},
        "",
    ],
)
def test_what_programs_queue_is_no_prompt(content: object) -> None:
    assert messages(queued("enqueue", content), queued("remove")) == []


def test_a_queued_path_is_a_prompt_and_no_command() -> None:
    assert only(queued("enqueue", "/etc/hosts is wrong"), queued("remove")).text == "/etc/hosts is wrong"


def attached(prompt: object, **fields: object) -> Line:
    return line("attachment", attachment={"type": "queued_command", "prompt": prompt, **fields}, uuid="att-1")


def test_an_attached_prompt_is_kept() -> None:
    told = only(attached([text("and the tulips")], commandMode="prompt"))
    assert (told.kind, told.text, told.id) == (MessageKind.QUEUED, "and the tulips", "att-1")


@pytest.mark.parametrize(
    "fields", [{"commandMode": "task-notification"}, {"isMeta": True}, {"origin": {"kind": "task-notification"}}]
)
def test_an_attached_notice_is_no_prompt(fields: Line) -> None:
    assert messages(attached("done", **fields)) == []


@pytest.mark.parametrize("attached_first", [True, False])
def test_a_prompt_that_is_queued_and_attached_comes_once(attached_first: bool) -> None:
    removal = [queued("enqueue", "and the tulips"), queued("remove")]
    attachment = [attached("and the tulips", commandMode="prompt")]
    lines = attachment + removal if attached_first else removal + attachment
    assert only(*lines).text == "and the tulips"


def test_the_same_words_queued_twice_are_said_twice() -> None:
    told = [line for _ in range(2) for line in (queued("enqueue", "go on"), queued("remove"))]
    assert [one.text for one in messages(*told)] == ["go on", "go on"]
    assert len({one.id for one in messages(*told)}) == 2


# Events


PLAN = """<command-message>garden:plan</command-message>
<command-name>/garden:plan</command-name>
<command-args>plant 3 rows, no weeds</command-args>"""
EXIT = """<command-name>/exit</command-name>
            <command-message>exit</command-message>
            <command-args></command-args>"""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (PLAN, "/garden:plan plant 3 rows, no weeds"),
        (EXIT, "/exit"),
        ("<user-memory-input>always wear gloves</user-memory-input>", "# always wear gloves"),
    ],
)
def test_a_slash_command_is_an_event_with_its_arguments(written: str, read: str) -> None:
    event = only(typed(written, uuid="u-5"))
    assert (event.role, event.kind, event.text, event.id) == (Role.EVENT, MessageKind.COMMAND, read, "u-5")


def test_a_command_in_a_system_record_is_an_event() -> None:
    content = "<command-name>/model</command-name><command-args>small</command-args>"
    event = only(line("system", subtype="local_command", content=content))
    assert (event.kind, event.text) == (MessageKind.COMMAND, "/model small")
    output = "<local-command-stdout>Set.</local-command-stdout>"
    assert messages(line("system", subtype="local_command", content=output)) == []


def test_a_shell_command_of_the_person_is_an_event() -> None:
    event = only(typed("<bash-input>git status</bash-input>"))
    assert (event.role, event.kind, event.text) == (Role.EVENT, MessageKind.SHELL, "git status")


@pytest.mark.parametrize("mark", ["[Request interrupted by user]", "[Request interrupted by user for tool use]"])
def test_an_interruption_is_an_event(mark: str) -> None:
    event = only(typed([text(mark)]))
    assert (event.role, event.kind, event.is_counted) == (Role.EVENT, MessageKind.INTERRUPT, False)


def test_an_event_and_a_prompt_of_one_record_have_ids_of_their_own() -> None:
    found = messages(typed([text("[Request interrupted by user]"), text("Not that one.")], uuid="u-5"))
    assert [(one.id, one.role) for one in found] == [("u-5", Role.EVENT), ("u-5~2", Role.USER)]


def test_a_compaction_is_one_event_and_its_summary_another() -> None:
    boundary = line("system", subtype="compact_boundary", content="Conversation compacted", uuid="u-6")
    summary = typed(
        "This session is being continued from a previous conversation.", isCompactSummary=True,
        isVisibleInTranscriptOnly=True, uuid="u-7",
    )  # fmt: skip
    first, second = messages(boundary, summary)
    assert (first.role, first.kind, first.id) == (Role.EVENT, MessageKind.COMPACTION, "u-6")
    assert (second.role, second.kind, second.id) == (Role.EVENT, MessageKind.SUMMARY, "u-7")
    assert second.text.startswith("This session is being continued")
    assert counts(items(boundary, summary)) == {"compactions": 1}
    assert messages(line("system", subtype="microcompact_boundary", content="")) == []


# Subagents


def test_an_inline_side_chain_is_marked_and_not_counted() -> None:
    lines = [
        typed("Plant.", uuid="u-1"),
        typed("Find the spade.", isSidechain=True),
        said(text("Found it."), message_id="msg_2", isSidechain=True),
    ]
    _, delegated, answer = messages(*lines)
    assert (delegated.role, delegated.kind, delegated.agent) == (Role.USER, MessageKind.DELEGATED, "sidechain")
    assert answer.agent == "sidechain"
    assert counts(items(*lines)) == {"human_messages": 1, "messages": 1}


def test_a_subagents_file_belongs_to_the_session_named_inside() -> None:
    lines = [
        typed("Find the spade.", isSidechain=True, agentId="a1b2", cwd="/plot/tree", gitBranch="wt"),
        said(text("Found it."), isSidechain=True, agentId="a1b2", cwd="/plot/tree", gitBranch="wt"),
    ]
    assert [one.agent for one in messages(*lines)] == ["a1b2", "a1b2"]
    # Neither its branch nor its model are the session's.
    assert facts(*lines) == [Facts(session="s-1", cwd="/plot/tree")]
    assert counts(items(*lines)) == {"assistant_messages": 1, "messages": 1}


# Facts


def test_facts_are_told_once_and_again_when_they_change() -> None:
    lines = [
        typed("a"),
        said(text("b")),
        typed("c"),
        typed("d", gitBranch="roses"),
        said(text("e"), message_id="msg_2", gitBranch="roses"),
    ]
    assert facts(*lines) == [
        Facts(session="s-1", cwd="/plot/garden", branch="main"),
        Facts(model="claude-large"),
        Facts(branch="roses"),
    ]


def test_a_message_from_another_directory_says_so() -> None:
    lines = [typed("a"), typed("b", cwd="/plot/shed"), typed("c"), typed("d", cwd=None)]
    assert [one.cwd for one in messages(*lines)] == [None, "/plot/shed", None, None]
    assert facts(*lines) == [Facts(session="s-1", cwd="/plot/garden", branch="main")]


def test_a_file_of_several_sessions_names_each() -> None:
    lines = [
        typed("a"),
        typed("b", sessionId="s-2", cwd="/b"),
        typed("c", cwd="/c"),
        typed("d", sessionId="s-2", cwd="/b"),
    ]
    assert facts(*lines) == [
        Facts(session="s-1", cwd="/plot/garden", branch="main"),
        Facts(session="s-2", cwd="/b", branch="main"),
        Facts(session="s-1", cwd="/plot/garden", branch="main"),
        Facts(session="s-2", cwd="/b", branch="main"),
    ]
    assert [one.cwd for one in messages(*lines)] == [None, None, "/c", None]


def test_a_title_given_by_a_person_wins() -> None:
    ai = line("ai-title", aiTitle="Rose care", uuid=None, cwd=None, gitBranch=None)
    custom = line("custom-title", customTitle="The long bed", uuid=None, cwd=None, gitBranch=None)
    assert [one.title for one in facts(ai, custom, ai)] == ["Rose care", "The long bed"]


def test_a_summary_record_names_another_session() -> None:
    summary = {"type": "summary", "summary": "Old business", "leafUuid": "u-0"}
    assert facts(summary, typed("a")) == [Facts(session="s-1", cwd="/plot/garden", branch="main")]


def test_times_are_kept_as_written_and_never_sort() -> None:
    """F70: backward steps keep the file's order; what is no time is none."""
    lines = [
        typed("a", timestamp="2026-03-01T09:00:02.000Z"),
        typed("b", timestamp="2026-03-01T09:00:01.999Z"),
        typed("c", timestamp=None),
        typed("d", timestamp="yesterday"),
        typed("e", timestamp="2026-03-01T10:00:00+01:00"),
        typed("f", timestamp=1772355600000),
        typed("g", timestamp="2026-03-01T09:00:00"),
    ]
    assert [(one.text, one.at) for one in messages(*lines)] == [
        ("a", "2026-03-01T09:00:02.000Z"),
        ("b", "2026-03-01T09:00:01.999Z"),
        ("c", None),
        ("d", None),
        ("e", "2026-03-01T09:00:00.000Z"),
        ("f", "2026-03-01T09:00:00.000Z"),
        ("g", "2026-03-01T09:00:00.000"),
    ]


# What is left out


@pytest.mark.parametrize(
    "noise",
    [
        line("progress", data={"type": "agent_progress", "message": {"type": "user", "message": {"content": "copy"}}}),
        line("file-history-snapshot", snapshot={}),
        line("system", subtype="turn_duration"),
        line("system", content="Running PostToolUse hook"),
        line("attachment", attachment={"type": "hook_success", "content": "fine"}),
        line("last-prompt", lastPrompt="Water the roses."),
        {"type": "pr-link", "sessionId": "s-1", "prNumber": 4},
        queued("enqueue", "later"),
        said({"type": "thinking", "thinking": "Hm."}, message=None) | {"message": {"content": [{"type": "thinking"}]}},
    ],
)
def test_bookkeeping_is_noise(noise: Line) -> None:
    assert [item for item in items(noise) if not isinstance(item, Facts)] == [Skip(Reason.NOISE)]


def test_an_unknown_kind_of_record_or_block_is_counted_by_its_name() -> None:
    assert skipped(line("tool_use", name="bash")) == [Skip(Reason.UNKNOWN_TYPE, "tool_use")]
    assert skipped(line("x" * 99)) == [Skip(Reason.UNKNOWN_TYPE, "x" * 40)]
    assert skipped(said({"type": "hologram"})) == [Skip(Reason.UNKNOWN_TYPE, "hologram")]
    assert skipped(typed([{"type": "hologram"}])) == [Skip(Reason.UNKNOWN_TYPE, "hologram")]
    assert skipped({"silly": "this"}) == [Skip(Reason.UNKNOWN_TYPE)]


def test_a_message_that_is_a_text_is_taken_as_text() -> None:
    """F58"""
    assert only(line("user", message="Water the roses.")).text == "Water the roses."
    answer = only(line("assistant", message="Watered.", uuid="u-8"))
    assert (answer.role, answer.text, answer.id) == (Role.ASSISTANT, "Watered.", "u-8")


@pytest.mark.parametrize(
    "broken",
    [
        line("user", message={}),
        line("user") | {"message": None},
        line("assistant") | {"message": None},
        line("user", message={"contenst": []}),
        line("assistant", message={"content": 7}),
        said({"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": None}),
        said({"type": "tool_use", "id": "toolu_9", "input": {}}),
        said({"type": "tool_use", "name": "Bash", "input": {}}),
        typed([{"type": "tool_result", "content": "whose?"}]),
    ],
)
def test_a_record_without_what_it_must_have_is_skipped_and_counted(broken: Line) -> None:
    """F58"""
    assert skipped(broken) == [Skip(Reason.MALFORMED)]
    assert messages(broken) == []


def test_a_result_is_joined_also_where_the_call_was_malformed() -> None:
    """F58"""
    broken = {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": None}
    assert only(said(broken), typed([result("ok", "toolu_9")])).tool == "Bash"


def test_what_is_no_record_among_good_lines_costs_only_itself() -> None:
    """F57"""
    lines = [raw(typed(f"prompt {nth}")) for nth in range(100)]
    for at, wrong in zip((80, 60, 40, 0), (b"[1,2]\n", b'"str"\n', b"null\n", b"oops\n"), strict=True):
        lines.insert(at, wrong)
    found = list(FORMAT.read(RecordStream(io.BytesIO(b"".join(lines)))))
    assert counts(found) == {"human_messages": 100, "messages": 100}
    assert dict(tally_of(found).skipped) == {"not-an-object": 3, "not-json": 1}


def test_a_record_written_again_comes_once() -> None:
    """F68"""
    prompt = typed("Water the roses.", uuid="u-1")
    assert items(prompt, prompt)[-1] == Skip(Reason.REPEATED)
    assert len(messages(prompt, prompt)) == 1


def test_two_records_on_one_line_are_both_taken_and_the_repetition_is_not() -> None:
    """F63, F68: after a crash the first one is written again on the next line."""
    prompt, snapshot = typed("Water."), {"type": "file-history-snapshot", "snapshot": {}}
    content = (
        json.dumps(prompt) + json.dumps(snapshot) + "\n" + json.dumps(prompt) + "\n" + json.dumps(typed("Go.")) + "\n"
    )
    found = list(FORMAT.read(RecordStream(io.BytesIO(content.encode()))))
    assert [one.text for one in found if isinstance(one, Message)] == ["Water.", "Go."]
    assert [one.reason for one in found if isinstance(one, Skip)] == [Reason.NOISE, Reason.REPEATED]


def test_a_whole_record_is_taken_though_a_broken_one_had_its_id() -> None:
    assert only(line("user", message=None, uuid="u-1"), typed("Water.", uuid="u-1")).text == "Water."


def test_masked_ids_tell_nothing_apart() -> None:
    """Some exports replace what looks random by one word, in ids too."""
    lines = [
        typed("a", uuid="REDACTED"),
        typed("b", uuid="REDACTED"),
        said(text("c"), call("toolu_REDACTED"), message_id="msg_REDACTED", uuid="REDACTED"),
        said(text("d"), call("toolu_REDACTED"), message_id="msg_REDACTED", uuid="REDACTED"),
    ]
    assert counts(items(*lines)) == {"human_messages": 2, "assistant_messages": 2, "tool_calls": 2, "messages": 6}


def test_a_resumed_session_repeats_messages_that_are_then_the_same() -> None:
    """F68, S2.10: a copy has another session and directory around the same message."""
    original = [typed(f"prompt {nth}", uuid=f"c{nth}") for nth in range(200)]
    original += [said(text("answer"), message_id="msg_5", uuid="c200")]
    resumed = [entry | {"sessionId": "s-2", "version": "2.1.41", "cwd": "/elsewhere"} for entry in original]

    def identities(session: str, lines: list[Line]) -> list[str]:
        known = Identities(session, format_name=FORMAT.name, copies=FORMAT.copies)
        return [known.of(message) for message in messages(*lines)]

    before = identities("s-1", original)
    assert identities("s-2", resumed) == before
    assert len(set(before)) == 201


# Recognition


def sample_of(*lines: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in lines)


@pytest.mark.parametrize(
    "content",
    [
        raw(typed("a")),
        raw({"type": "summary", "summary": "x", "leafUuid": "u"}, typed("a")),
        raw(line("progress"), line("file-history-snapshot", snapshot={}), line("brand-new")),
        json.dumps([typed("a"), said(text("b"))], indent=2).encode(),
        b"\xef\xbb\xbf" + raw(typed("a")).replace(b"\n", b"\r\n"),
        raw(typed("a"))[:-20] + b"\n" + raw(typed("b"), typed("c")),
    ],
)
def test_a_transcript_is_recognised_by_its_content(content: bytes) -> None:
    """F67"""
    assert detect(RecordStream(io.BytesIO(content))) is FORMAT


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"User: hi\n",
        sample_of({"agentType": "general", "description": "dig"}),
        sample_of({"display": "hi", "timestamp": 1, "project": "/a"}),
        sample_of({"role": "user", "content": "hi"}),
        sample_of(
            {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "parts": [{"text": "a"}]}}
        ),
        sample_of({"type": "user", "content": "hi"}, {"type": "assistant", "content": "ho"}),
        sample_of({"type": "session_meta", "payload": {}}),
    ],
)
def test_other_formats_are_not_taken_for_it(content: bytes) -> None:
    assert not FORMAT.detect(RecordStream(io.BytesIO(content)).sample)


def test_headless_output_is_read_alike() -> None:
    """`--output-format stream-json`: no record ids, no times, and a list of it with `--verbose`."""
    lines: list[Line] = [
        {"type": "system", "subtype": "init", "session_id": "s-9", "cwd": "/plot/garden", "model": "claude-small"},
        {"type": "assistant", "message": {"id": "m1", "content": [text("Looking."), call("t1")]}, "session_id": "s-9"},
        {"type": "user", "message": {"role": "user", "content": [result("a.py", "t1")]}, "session_id": "s-9"},
        {
            "type": "user",
            "message": {"role": "user", "content": "Find it."},
            "session_id": "s-9",
            "parent_tool_use_id": "t2",
        },
        {"type": "result", "subtype": "success", "result": "Looking.", "session_id": "s-9"},
    ]
    for content in (raw(*lines), json.dumps(lines).encode()):
        source = RecordStream(io.BytesIO(content))
        assert FORMAT.detect(source.sample)
        found = list(FORMAT.read(source))
        assert found[0] == Facts(session="s-9", cwd="/plot/garden", model="claude-small")
        told = [one for one in found if isinstance(one, Message)]
        assert [(one.role, one.id, one.agent) for one in told] == [
            (Role.ASSISTANT, "m1", None),
            (Role.CALL, "t1", None),
            (Role.RESULT, "t1:result", None),
            (Role.USER, None, "t2"),
        ]
        assert counts(found)["messages"] == 3


# Growth, size and chance


def conversation() -> list[Line]:
    """A little of everything, in the order it happens."""
    return [
        {"type": "summary", "summary": "Old", "leafUuid": "u"},
        typed([text("<ide_opened_file>a.py</ide_opened_file>"), text("Water the roses.")]),
        said({"type": "thinking", "thinking": "Hm."}),
        said(text("I will."), message_id="msg_g"),
        said(call("toolu_g"), message_id="msg_g"),
        queued("enqueue", "and the tulips"),
        typed([result("Exit code 1\nno water", "toolu_g", is_error=True), text("use the well")]),
        queued("remove"),
        said(text("The well, then."), message_id="msg_g"),
        line("system", subtype="compact_boundary"),
        typed("This session is being continued", isCompactSummary=True),
        typed("<command-name>/clear</command-name>"),
        typed([text("[Request interrupted by user]")]),
    ]


def test_a_transcript_cut_anywhere_gives_the_beginning_of_what_the_whole_gives() -> None:
    """F59: nothing that a later reading of the grown file would not give again."""
    content = raw(*conversation())
    whole = [item for item in FORMAT.read(RecordStream(io.BytesIO(content))) if isinstance(item, Message)]
    assert len(whole) == 11
    for end in range(len(content)):
        cut = [item for item in FORMAT.read(RecordStream(io.BytesIO(content[:end]))) if isinstance(item, Message)]
        assert cut == whole[: len(cut)], content[:end][-80:]


@given(st.data())
def test_mutated_records_never_raise_and_never_cost_their_neighbours(data: st.DataObject) -> None:
    """F57, F58: any value may be of any type."""
    entry = data.draw(st.sampled_from(conversation()))
    odd = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner),
            max_leaves=4,
        )
    )
    places = list(_places(entry))
    mutated = _replaced(entry, data.draw(st.sampled_from(places)), odd)
    found = items(typed("before", uuid="u-b"), mutated, typed("after", uuid="u-a"))
    texts = [item.text for item in found if isinstance(item, Message)]
    assert texts[0] == "before"
    assert texts[-1] == "after"


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _places(inner, (*path, at))


def _replaced(value: Any, path: tuple[str | int, ...], odd: object) -> Any:
    if not path:
        return odd
    if isinstance(value, dict):
        return {key: _replaced(inner, path[1:], odd) if key == path[0] else inner for key, inner in value.items()}
    return [_replaced(inner, path[1:], odd) if at == path[0] else inner for at, inner in enumerate(value)]


@pytest.mark.parametrize(
    "tag", ["<command-name>", "<bash-input>", "<user-memory-input>", "<tool_use_error>", "<om-memory "]
)
def test_tags_without_ends_take_no_time(tag: str) -> None:
    """A search that goes back over a megabyte of blanks would take hours."""
    began = time.process_time()
    for hostile in (tag + " " * 1_000_000 + "x", tag * 80_000):
        items(typed(hostile), typed([result(hostile, is_error=True)], uuid="u-r"))
    assert time.process_time() - began < 3


def test_arguments_at_the_limit_of_nesting_do_not_raise() -> None:
    """F61"""
    for deep in (*range(900, 1000, 7), 5000, 100_000):
        nested = json.dumps(said(call("toolu_1", "Bash", {"x": 1}))).replace("1}", "[" * deep + "]" * deep + "}", 1)
        found = list(FORMAT.read(RecordStream(io.BytesIO(nested.encode() + b"\n" + raw(typed("after"))))))
        assert isinstance(found[-1], Message)


class Turns(io.RawIOBase):
    """A transcript of many results of 2 kB, made while it is read."""

    def __init__(self, turns: int) -> None:
        self._turns = iter(range(turns))
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._left) < len(buffer) and (nth := next(self._turns, None)) is not None:
            self._left += raw(typed([result("x" * 2000, f"toolu_{nth}")]))
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("few", first_only([500, 2_000]))
def test_of_a_record_that_went_by_only_a_few_numbers_are_remembered(few: int) -> None:
    """Memory is not to grow with the transcript, or by little: so many and four times as many results of 2 kB."""
    peaks = []
    for turns in (few, 4 * few):
        stream: BinaryIO = io.BufferedReader(Turns(turns))
        tracemalloc.start()
        try:
            read = sum(isinstance(item, Message) for item in FORMAT.read(RecordStream(stream)))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert read == turns
    each = (peaks[1] - peaks[0]) / (3 * few)
    assert each < 400, f"{each:.0f} bytes are remembered of each result"


# Real files


FILES = {path: entry for path, entry in expected().items() if path.startswith("claude-code/")}
CONVERSATIONS = [path for path, entry in FILES.items() if entry["role"] == "conversation"]
PROBES = [path for path, entry in FILES.items() if entry["role"] == "probe"]
SIDE_CARS = [path for path, entry in FILES.items() if entry["role"] == "side-car"]


def read_file(path: str) -> list[Item]:
    with (TRANSCRIPTS / path).open("rb") as stream:
        source = RecordStream(stream)
        assert FORMAT.detect(source.sample), f"{path} is not detected"
        return list(FORMAT.read(source))


@needs_shared
@pytest.mark.parametrize("path", CONVERSATIONS)
def test_a_real_transcript_gives_the_numbers_that_are_known_of_it(path: str) -> None:
    found = read_file(path)
    told = [item for item in found if isinstance(item, Message)]
    sessions = list(dict.fromkeys(item.session for item in found if isinstance(item, Facts) and item.session))
    counted = [one for one in told if one.is_counted]
    main = [one for one in counted if one.agent is None] or counted
    numbers = dict.fromkeys(COUNTED, 0) | counts(found)
    facts = {
        **numbers,
        "assistant_texts": numbers["assistant_messages"],
        "session_id": sessions[0] if len(sessions) == 1 else None,
        "cwd": next((item.cwd for item in found if isinstance(item, Facts) and item.cwd), None),
        "first_timestamp": min(one.at for one in main if one.at),
        "last_timestamp": max(one.at for one in main if one.at),
    }
    assert facts == {name: FILES[path]["facts"][name] for name in facts}
    assert not [item for item in found if isinstance(item, Skip) and item.reason.is_fault]


@needs_shared
@pytest.mark.parametrize("path", CONVERSATIONS)
def test_a_real_transcript_gives_what_else_is_known_of_it(path: str) -> None:
    """Commands, interruptions, refusals, queued and delegated prompts."""
    told = [item for item in read_file(path) if isinstance(item, Message)]
    asides = Counter(one.kind for one in told)
    also = FILES[path].get("also") or {}
    known = {
        "slash_commands": asides[MessageKind.COMMAND],
        "shell_commands": asides[MessageKind.SHELL],
        "interrupts": asides[MessageKind.INTERRUPT],
        "queued_only_prompts": asides[MessageKind.QUEUED],
        "images": sum(len(one.images) for one in told if one.role is Role.USER),
        "delegated_prompts": asides[MessageKind.DELEGATED],
    }
    if "sidechain_lines" in also:
        del known["delegated_prompts"]
    assert {name: number for name, number in known.items() if number} == {
        name: number for name, number in also.items() if name in known
    }
    # The editor's bare words are not among them, nor those given as a reason.
    assert asides[MessageKind.REMARK] >= also.get("rejection_remarks", 0)


@needs_shared
@pytest.mark.parametrize("path", PROBES)
def test_a_probe_is_read_without_a_failure(path: str) -> None:
    assert read_file(path)


@needs_shared
@pytest.mark.parametrize("path", SIDE_CARS)
def test_a_side_car_is_not_taken_for_a_transcript(path: str) -> None:
    with (TRANSCRIPTS / path).open("rb") as stream:
        assert not FORMAT.detect(RecordStream(stream).sample)


@needs_shared
@pytest.mark.parametrize("chain", ["cc432c40-914a-4c1a-a972-0103199a736a", "f736da47-b2ca-4f86-bb32-a1bbe582e464"])
def test_a_growing_transcript_gives_the_same_messages_and_then_more(chain: str) -> None:
    """F59, S2.10"""
    steps = sorted(path for path in CONVERSATIONS if chain in path)
    before: list[Message] = []
    for path in steps:
        told = [item for item in read_file(path) if isinstance(item, Message)]
        assert told[: len(before)] == before
        before = told
    assert len(steps) > 3


@needs_shared
def test_messages_that_two_files_share_are_the_same_and_others_under_their_ids_are_not() -> None:
    """F68: two files resume one session; `c` says something else in each."""
    told: list[dict[str, str | None]] = []
    for path in ("claude-code/fixtures/dag_fork.jsonl", "claude-code/fixtures/dag_resume.jsonl"):
        known = Identities(path, format_name=FORMAT.name, copies=FORMAT.copies)
        told.append({known.of(item): item.id for item in read_file(path) if isinstance(item, Message)})
    assert {told[0][same] for same in told[0].keys() & told[1].keys()} == set("abdeh")
    assert set("cfg") < {key for one in told for key in one.values()}


@needs_shared
def test_real_lines_that_are_damaged_cost_only_themselves() -> None:
    """F57, F60: bytes changed at random in every fifth line."""
    chance = random.Random(3)
    content = (TRANSCRIPTS / "claude-code/growing/f736da47-b2ca-4f86-bb32-a1bbe582e464/step-03.jsonl").read_bytes()
    lines = content.splitlines(keepends=True)
    for at in range(0, len(lines), 5):
        broken = bytearray(lines[at])
        for _ in range(3):
            broken[chance.randrange(len(broken) - 1)] = chance.choice(b'{}[]":,\\ax\xff\x00')
        lines[at] = bytes(broken)
    spared = [entry for at, entry in enumerate(lines) if at % 5]
    whole = {item for item in FORMAT.read(RecordStream(io.BytesIO(b"".join(spared)))) if isinstance(item, Message)}
    found = {item for item in FORMAT.read(RecordStream(io.BytesIO(b"".join(lines)))) if isinstance(item, Message)}
    missing = {(one.id, one.text) for one in whole} - {(one.id, one.text) for one in found}
    assert not missing
