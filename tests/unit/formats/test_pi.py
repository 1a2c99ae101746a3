"""Reading sessions of pi."""

from __future__ import annotations

import base64
import io
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.pi import FORMAT
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Abandoned, Facts, Identities, Reason, Skip
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

HEADER: Line = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-03-01T09:00:00Z", "cwd": "/src/app"}


def at(second: int) -> str:
    return f"2026-03-01T09:00:{second:02d}.000Z"


def entry(kind: str, second: int = 1, **more: object) -> Line:
    return {"type": kind, "id": f"e{second}", "parentId": None, "timestamp": at(second), **more}


def said(role: str, second: int = 1, **more: object) -> Line:
    return entry("message", second, message={"role": role, **more})


def user(text: str, second: int = 1) -> Line:
    return said("user", second, content=[{"type": "text", "text": text}])


def agent(*blocks: Line, second: int = 2, stop: str = "stop", **more: object) -> Line:
    return said("assistant", second, content=list(blocks), stopReason=stop, **more)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(name: str = "bash", call_id: str = "c1", **arguments: object) -> Line:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(content: object, *, failed: bool | None = False, call_id: str = "c1", second: int = 3) -> Line:
    return said("toolResult", second, toolCallId=call_id, toolName="bash", content=content, isError=failed)


# ---- turns


def test_a_turn_gives_its_text_and_its_calls() -> None:
    """S2.10: the entry's id for what was said, the call's own for each call and its result."""
    turn = agent(text("I look."), call(command="ls"), call("read", "c2", path="a.py"), second=2)
    records = (HEADER, user("Go"), turn, result([text("a.py\n")]))
    assert messages_of(FORMAT, *records) == [
        Message(role=Role.USER, text="Go", id="e1", at=at(1)),
        Message(role=Role.ASSISTANT, text="I look.", id="e2", at=at(2)),
        Message(role=Role.CALL, text='{"command":"ls"}', id="c1", at=at(2), tool="bash", call_id="c1"),
        Message(role=Role.CALL, text='{"path":"a.py"}', id="c2", at=at(2), tool="read", call_id="c2"),
        Message(role=Role.RESULT, text="a.py\n", id="c1:result", at=at(3), tool="bash", call_id="c1", failed=False),
    ]


def test_several_blocks_of_text_are_one_message() -> None:
    """F69."""
    assert [m.text for m in messages_of(FORMAT, HEADER, agent(text("One."), text("Two.")))] == ["One.\n\nTwo."]


def test_thinking_is_left_out() -> None:
    """S2.8."""
    read = items_of(FORMAT, json_lines(HEADER, agent({"type": "thinking", "thinking": "a secret"}, text("Done."))))
    assert [m.text for m in read if isinstance(m, Message)] == ["Done."]
    assert "secret" not in repr(read)


def test_a_content_that_is_a_text_is_taken_as_text() -> None:
    """F58."""
    records = (HEADER, said("user", content="Go"), said("assistant", 2, content="Done."), result("a\n"))
    assert [m.text for m in messages_of(FORMAT, *records)] == ["Go", "Done.", "a\n"]


def test_an_aborted_turn_counts_with_what_it_said_and_is_an_interruption() -> None:
    stopped = agent(text("I sta"), call(command="l"), second=2, stop="aborted", errorMessage="Request was aborted.")
    records = (HEADER, user("Go"), stopped, agent(second=3, stop="aborted"), user("Go on", 4))
    assert [(m.role, m.kind, m.text, m.id) for m in messages_of(FORMAT, *records)] == [
        (Role.USER, None, "Go", "e1"),
        (Role.ASSISTANT, None, "I sta", "e2"),
        (Role.CALL, None, '{"command":"l"}', "c1"),
        (Role.EVENT, MessageKind.INTERRUPT, "Request was aborted.", "e2:interrupt"),
        (Role.EVENT, MessageKind.INTERRUPT, "aborted", "e3:interrupt"),
        (Role.USER, None, "Go on", "e4"),
    ]


def test_a_turn_that_failed_before_it_said_anything_is_no_message() -> None:
    failed = agent(stop="error", errorMessage="400 overloaded")
    assert messages_of(FORMAT, HEADER, failed) == []
    assert reasons(skipped_of(FORMAT, HEADER, failed)) == [Reason.NOISE]


@pytest.mark.parametrize(
    ("words", "failed", "exit_code"),
    [
        ("a.py\n", False, None),
        ("no rule\n\n\nCommand exited with code 2", True, 2),
        ("no rule\n\n\nCommand exited with code 2", False, None),
        ("it said\n\nCommand exited with code 2\nand went on", True, None),
        ("file not found", True, None),
        ("nobody knows", None, None),
    ],
)
def test_a_result_failed_where_it_is_flagged(words: str, failed: bool | None, exit_code: int | None) -> None:
    read = messages_of(FORMAT, HEADER, agent(call()), result([text(words)], failed=failed))[-1]
    assert (read.text, read.failed, read.exit_code) == (words, failed, exit_code)


def test_images_are_noted_with_their_size_and_digest() -> None:
    """F64."""
    picture = {"type": "image", "data": base64.b64encode(bytes(700_000)).decode(), "mimeType": "image/png"}
    records = (HEADER, said("user", content=[text("Look"), picture]), result([picture]))
    prompt, shown = messages_of(FORMAT, *records)
    assert (prompt.text, shown.text) == ("Look\n\n[image png 684 KB]", "[image png 684 KB]")
    assert [(image.media_type, image.size) for image in prompt.images] == [("image/png", 700_000)]
    assert shown.images == prompt.images


def test_our_own_context_is_stripped() -> None:
    """F45: memory that om printed is not observed again."""
    pack = "<om-memory>\n- a fact\n</om-memory>\n"
    records = (HEADER, user(f"{pack}Go"), user(pack, 2), result(f"{pack}after"))
    assert [m.text for m in messages_of(FORMAT, *records)] == ["Go", "after"]
    assert reasons(skipped_of(FORMAT, *records)) == [Reason.INJECTED]


# ---- events and bookkeeping


def test_a_command_that_the_person_ran_is_kept_with_its_output() -> None:
    ran = said("bashExecution", command="make test", output="no rule\n", exitCode=2, cancelled=False)
    silent = said("bashExecution", 2, command="true", output="", exitCode=0)
    read = messages_of(FORMAT, HEADER, ran, silent)
    assert [(m.role, m.kind, m.text) for m in read] == [
        (Role.EVENT, MessageKind.SHELL, "make test\nno rule\n"),
        (Role.EVENT, MessageKind.SHELL, "true"),
    ]
    assert [(m.id, m.failed, m.exit_code) for m in read] == [("e1", True, 2), ("e2", False, 0)]


def test_compactions_and_branch_summaries_are_events_with_their_text() -> None:
    records = (
        HEADER,
        entry("compaction", 1, summary="So far: x", firstKeptEntryId="e0", tokensBefore=9),
        entry("branch_summary", 2, summary="Tried y", fromId="e0"),
        said("compactionSummary", 3, summary="So far: z"),
        said("branchSummary", 4, summary="Tried w"),
    )
    assert [(m.kind, m.text, m.at) for m in messages_of(FORMAT, *records)] == [
        (MessageKind.COMPACTION, "So far: x", at(1)),
        (MessageKind.RECAP, "Tried y", at(2)),
        (MessageKind.COMPACTION, "So far: z", at(3)),
        (MessageKind.RECAP, "Tried w", at(4)),
    ]


def test_what_extensions_put_in_is_no_message() -> None:
    records = (
        HEADER,
        entry("custom_message", customType="x", content="remember this", display=True),
        said("custom", content="remember this"),
        said("hookMessage", content="remember this"),
        said("system", content="remember this"),
        entry("custom", customType="x", data={}),
        entry("label", targetId="e1", label="here"),
        entry("thinking_level_change", thinkingLevel="high"),
    )
    assert messages_of(FORMAT, *records) == []
    assert reasons(skipped_of(FORMAT, *records)) == [Reason.INJECTED] * 4 + [Reason.NOISE] * 3


def test_the_end_of_a_file_is_recognised_without_its_header() -> None:
    assert [m.text for m in messages_of(FORMAT, user("Go"), agent(text("Done.")))] == ["Go", "Done."]
    assert not FORMAT.detect(RecordStream(io.BytesIO(json_lines(user("Go")))).sample), (
        "other programs write this as well"
    )


def test_every_branch_counts() -> None:
    branches = (user("One way", 1), {**user("Another", 2), "parentId": "e0"}, {**user("Back", 3), "parentId": "e1"})
    assert [m.text for m in messages_of(FORMAT, HEADER, *branches)] == ["One way", "Another", "Back"]


def test_what_the_last_entry_does_not_follow_is_abandoned() -> None:
    """S3.15: by the ids of messages, those of calls and results included; a lost line breaks no branch."""

    def follows(parent: str | None, line: Line) -> Line:
        return {**line, "parentId": parent}

    begun = follows(None, user("One", 1))
    tried = follows("e1", agent(text("Two"), {"type": "toolCall", "id": "c1", "name": "ls"}, second=2))
    seen = follows("e2", said("toolResult", 3, toolCallId="c1", content=[text("file")]))
    back = follows("e1", user("Three", 4))
    assert abandoned(begun, tried, seen) == set()
    assert abandoned(begun, tried, seen, back) == {"e2", "c1", "c1:result"}
    assert abandoned(begun, tried, seen, back, follows("e3", user("Four", 5))) == {"e4"}
    assert abandoned(begun, tried, seen, follows(None, user("Anew", 6))) == {"e1", "e2", "c1", "c1:result"}
    assert abandoned(begun, seen, follows("e3", user("Four", 5))) == set()
    first = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")} for line in (begun, seen, back)
    ]
    assert abandoned(*first) == set()


def abandoned(*lines: Line) -> set[str]:
    """Ids of what the conversation did not go on from."""
    items = items_of(FORMAT, json_lines(HEADER, *lines))
    return {its_id for item in items if isinstance(item, Abandoned) for its_id in item.ids}


def test_the_first_version_has_no_entry_ids() -> None:
    """F70: without ids the instant tells messages apart; the entry's time goes before the message's own."""
    header = {key: value for key, value in HEADER.items() if key != "version"}
    dated = {"type": "message", "timestamp": at(1), "message": {"role": "user", "content": "Go", "timestamp": 1}}
    undated = {"type": "message", "message": {"role": "user", "content": "On", "timestamp": 1772355605000}}
    read = messages_of(FORMAT, header, dated, undated)
    assert [(m.id, m.at) for m in read] == [(None, at(1)), (None, at(5))]


def test_the_session_is_known_by_its_header_and_by_what_changes_later() -> None:
    file = "/home/a/.pi/agent/sessions/--src-app--/2026-02-28T10-00-00-000Z_0a1b2c3d-0000.jsonl"
    records = (
        {**HEADER, "branchedFrom": file, "modelId": "m-1"},
        user("Go"),
        {**HEADER, "id": "s-2"},
        entry("model_change", provider="p", modelId="m-2"),
        entry("session_info", name="Renaming"),
    )
    known = session_of(FORMAT, *records)
    assert (known.id, known.cwd, known.parent) == ("s-1", "/src/app", "0a1b2c3d-0000")
    assert (known.model, known.title) == ("m-2", "Renaming")
    assert session_of(FORMAT, {**HEADER, "parentSession": "s-0"}, user("Go")).parent == "s-0"
    routes = [x.session for x in items_of(FORMAT, json_lines(*records)) if isinstance(x, Facts) and x.session]
    assert routes == ["s-1"]


# ---- what is broken, unknown or hostile


def test_unknown_types_are_named_and_malformed_records_are_counted() -> None:
    """F57, F58."""
    records = (
        HEADER,
        entry("future_entry"),
        said("future_role"),
        entry("message", message="text"),
        entry("message", message={}),
        said("user", content=None),
        said("toolResult", toolCallId="c1"),
        said("bashExecution", output="x"),
        agent({"type": "toolCall", "id": "c1"}),
        {"hello": 1},
        user("Go"),
    )
    assert [m.text for m in messages_of(FORMAT, *records)] == ["Go"]
    assert skipped_of(FORMAT, *records) == [
        Skip(Reason.UNKNOWN_TYPE, "future_entry"),
        Skip(Reason.UNKNOWN_TYPE, "future_role"),
        Skip(Reason.MALFORMED, "message"),
        Skip(Reason.MALFORMED, "message"),
        Skip(Reason.MALFORMED, "user"),
        Skip(Reason.MALFORMED, "toolResult"),
        Skip(Reason.MALFORMED, "bashExecution"),
        Skip(Reason.MALFORMED, "toolCall"),
        Skip(Reason.MALFORMED, ""),
    ]


def test_a_call_without_arguments_is_a_call() -> None:
    """F58: tool input null."""
    bare = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": None}
    assert [(m.tool, m.text) for m in messages_of(FORMAT, HEADER, agent(bare))] == [("bash", "")]


def test_two_records_on_one_line_are_both_read() -> None:
    """F63: a crash while appending."""
    crashed = json_lines(HEADER) + json.dumps(user("one")).encode() + json_lines(user("two", 2))
    assert [x.text for x in items_of(FORMAT, crashed) if isinstance(x, Message)] == ["one", "two"]


def test_a_copied_history_has_the_same_identities() -> None:
    """F68: a branched file begins with a copy, with ids or (first version) without."""
    history = (user("Go", 1), agent(text("I look."), call(), second=2), result([text("ok")]))
    without_ids = tuple({key: value for key, value in line.items() if key != "id"} for line in history)
    for copied in (history, without_ids):
        first = identities("s-1", HEADER, *copied)
        later = identities("s-2", {**HEADER, "id": "s-2"}, *copied, user("More", 9))
        assert len(set(first)) == len(first) == 4
        assert later[:4] == first
        assert later[4] not in first


def identities(session: str, *records: object) -> list[str]:
    known = Identities(session, format_name=FORMAT.name, copies=FORMAT.copies)
    return [known.of(message) for message in messages_of(FORMAT, *records)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LINES = (
    HEADER,
    user("Go"),
    agent(text("I look."), call(command="ls"), errorMessage="x", stop="aborted"),
    result([text("ok")]),
    said("bashExecution", command="ls", output="a", exitCode=0),
    said("user", content=[{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
    entry("compaction", summary="So far"),
    entry("model_change", modelId="m"),
    entry("session_info", name="n"),
)


KEPT = user("kept")


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_a_mutated_record_never_stops_the_reading_and_costs_only_itself(line: Line) -> None:
    """F58, F60: any odd value in any place of any kind of record; its neighbours are read."""
    odd = [mutated for mutated in mutations(line) if isinstance(mutated, dict)]
    read = messages_of(FORMAT, HEADER, *(x for mutated in odd for x in (mutated, KEPT)))
    assert sum(message.text == "kept" for message in read) == len(odd) > 10


@given(st.lists(JSON, max_size=3), st.sampled_from(LINES))
def test_any_value_may_stand_for_the_content_of_a_record(values: list[object], line: Line) -> None:
    """F58, F60."""
    key = "message"
    odd = [{**line, key: {**line[key], name: value}} for value in values for name in line.get(key, {})]
    assert [m.text for m in messages_of(FORMAT, HEADER, *odd, KEPT) if m.text == "kept"] == ["kept"]


# ---- OpenClaw


TWO_ENVELOPES = """\
Conversation info (untrusted metadata):
```json
{
  "a": 1
}
```

Sender (untrusted metadata):
```json
{}
```

[Thu 2026-05-21 14:28 UTC] Fix it"""


@pytest.mark.parametrize(
    ("written", "prompt"),
    [
        (TWO_ENVELOPES, "Fix it"),
        ('Sender (untrusted metadata):\n```json\n{"label": "Ada", "id": "7"}\n```\n\nFix the gauge', "Fix the gauge"),
        ("[Telegram Ada Lovelace id:7 2026-05-21 14:28 UTC] Fix it\n[message_id: 42]", "Fix it"),
        ("[Slack #tides +5m] [Mon 2026-05-18 09:00 GMT+2] Fix it", "Fix it"),
        ("[OpenClaw heartbeat poll]", None),
        ("Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.", None),
        ("[cron:4711 nightly] Check the tides", None),
        ("[Slackware] is old", "[Slackware] is old"),
        ("[2026-05-21] Fix it", "[2026-05-21] Fix it"),
        ("Sender (untrusted metadata):\nnone", "Sender (untrusted metadata):\nnone"),
        ("Say [message_id: 42] aloud", "Say [message_id: 42] aloud"),
    ],
)
def test_what_openclaw_adds_to_a_prompt_is_no_part_of_it(written: str, prompt: str | None) -> None:
    """XD8, S2.9: senders, channels, day stamps, its own prompts."""
    read = [message.text for message in messages_of(FORMAT, HEADER, user(written))]
    assert read == ([] if prompt is None else [prompt])
    assert reasons(skipped_of(FORMAT, HEADER, user(written))) == ([Reason.INJECTED] if prompt is None else [])


def test_an_answer_to_a_heartbeat_is_noise() -> None:
    """XD8."""
    assert messages_of(FORMAT, HEADER, agent(text("HEARTBEAT_OK"))) == []
    assert messages_of(FORMAT, HEADER, agent(text("HEARTBEAT_OK, but the gauge is not."))) != []


# ---- real files


CONVERSATIONS = {
    path: found["facts"]
    for path, found in expected().items()
    if found["format"] in {"pi", "openclaw", "pi-ai-state"}
    and found["role"] == "conversation"
    and "trajectory" not in path
}
LINES_OF = [path for path in CONVERSATIONS if path.endswith(".jsonl")]


@needs_shared
@pytest.mark.parametrize("path", CONVERSATIONS)
def test_a_real_file_has_the_numbers_of_its_index(path: str) -> None:
    """OpenClaw's session files have the same records, and duet's states the same messages (XD4)."""
    found = facts_of_file(FORMAT, TRANSCRIPTS / path)
    told = {name: value for name, value in CONVERSATIONS[path].items() if value is not None and name in found}
    assert {name: found[name] for name in told} == told


@needs_shared
@pytest.mark.parametrize("path", [path for path in CONVERSATIONS if path.startswith("pi/")])
def test_real_files_hold_nothing_that_the_reader_does_not_know(path: str) -> None:
    assert faults(items_of(FORMAT, (TRANSCRIPTS / path).read_bytes())) == []


@needs_shared
@pytest.mark.parametrize("path", LINES_OF)
def test_a_file_that_grew_begins_with_the_same_messages(path: str) -> None:
    """F59, F68: whatever line was the last one, what was read before is read again, unchanged and in order."""
    lines = (TRANSCRIPTS / path).read_bytes().splitlines(keepends=True)
    whole = [x for x in items_of(FORMAT, b"".join(lines)) if isinstance(x, Message)]
    for end in random.Random(7).sample(range(1, len(lines) + 1), min(12, len(lines))):
        part = [x for x in items_of(FORMAT, b"".join(lines[:end])) if isinstance(x, Message)]
        assert part == whole[: len(part)], f"{path} up to line {end}"


@needs_shared
def test_files_of_other_programs_are_not_taken_for_pi() -> None:
    """F67: by content, whatever the name."""
    for path, found in expected().items():
        with (TRANSCRIPTS / path).open("rb") as stream:
            recognised = FORMAT.detect(RecordStream(stream).sample)
        assert recognised == (found["format"] in {"pi", "openclaw", "pi-ai-state"}), path
