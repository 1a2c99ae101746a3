"""OpenAI chat messages as `om` reads them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.openai_chat import FORMAT
from omcli.memory.message import Message, Role
from omcli.memory.transcript import Facts, NewConversation, Reason, Skip
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.unit.formats.raw_reading import (
    document,
    facts_of,
    found,
    is_sniffed,
    is_sniffed_shared,
    items_of,
    messages_of,
    per_conversation,
    settled,
    shared_files,
    skipped_of,
    spoken,
)
from tests.unit.formats.readings import json_lines

ASKED = {"role": "user", "content": "Which train leaves after nine?"}
ANSWERED = {"role": "assistant", "content": "The 9:12 to Graz."}


def called(name: str = "timetable", arguments: object = '{"after": "09:00"}', call: str = "call_1") -> dict[str, Any]:
    """An assistant message that calls one tool."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call, "type": "function", "function": function}],
    }


def result(content: object = "9:12 Graz", call: str = "call_1") -> dict[str, Any]:
    """A tool's answer."""
    return {"role": "tool", "tool_call_id": call, "content": content}


@pytest.mark.parametrize(
    "content",
    [
        json_lines(ASKED, ANSWERED),
        document([ASKED, ANSWERED]),
        json.dumps([ASKED, ANSWERED]).encode(),
        document({"model": "gpt-5", "messages": [ASKED, ANSWERED]}),
        document({"traj": [ASKED, ANSWERED], "task_id": 3}),
        document({"conversation": [ASKED, ANSWERED]}),
        document({"conversations": [ASKED, ANSWERED]}),
        json_lines({"request": {"model": "gpt-5", "messages": [ASKED, ANSWERED]}}),
    ],
)
def test_messages_are_found_in_every_wrapping(content: bytes) -> None:
    assert is_sniffed(FORMAT, content)
    assert spoken(FORMAT, content) == [(Role.USER, ASKED["content"]), (Role.ASSISTANT, ANSWERED["content"])]


def test_the_answer_to_a_logged_request_belongs_to_its_conversation() -> None:
    content = json_lines({"request": {"messages": [ASKED]}, "response": {"choices": [{"message": ANSWERED}]}})
    assert spoken(FORMAT, content)[1] == (Role.ASSISTANT, ANSWERED["content"])


def test_rows_of_a_data_set_are_conversations_of_their_own() -> None:
    items = items_of(FORMAT, json_lines({"messages": [ASKED, ANSWERED]}, {"messages": [ASKED]}, {"messages": []}))
    assert [len(messages) for messages in per_conversation(items)] == [2, 1, 0]
    assert isinstance(items[0], Message), "no mark stands before the first conversation"


def test_ids_names_and_times_are_kept() -> None:
    said = {"id": "D1:3", "role": "user", "name": "Nora", "content": "Hi!", "timestamp": "2026-02-03T14:05:00+01:00"}
    (message,) = messages_of(FORMAT, json_lines(said))
    assert (message.id, message.name, message.at) == ("D1:3", "Nora", "2026-02-03T13:05:00.000Z")


def test_a_name_that_only_repeats_the_role_is_nobodys() -> None:
    assert [message.name for message in messages_of(FORMAT, json_lines(ASKED | {"name": "user"}))] == [None]


@pytest.mark.parametrize("key", ["timestamp", "created_at", "createdAt", "ts", "time", "date"])
def test_times_are_known_by_many_names(key: str) -> None:
    (message,) = messages_of(FORMAT, json_lines(ASKED | {key: 1770127500}))
    assert message.at == "2026-02-03T14:05:00.000Z"


def test_a_call_and_its_result_are_joined() -> None:
    call, answer = messages_of(FORMAT, json_lines(called(), result()))
    assert (call.role, call.tool, call.text, call.call_id) == (Role.CALL, "timetable", '{"after": "09:00"}', "call_1")
    assert (answer.role, answer.tool, answer.text, answer.call_id) == (Role.RESULT, "timetable", "9:12 Graz", "call_1")
    assert (call.id, answer.failed, answer.exit_code) == (None, None, None), "no flag says that it went well"


def test_a_repeated_call_id_counts_every_time() -> None:
    content = json_lines(called("first"), result("a"), called("second"), result("b"))
    assert [message.tool for message in messages_of(FORMAT, content)] == ["first", "first", "second", "second"]


def test_parallel_calls_with_one_id_are_answered_in_their_order() -> None:
    both = called("first")
    both["tool_calls"] += called("second")["tool_calls"]
    answers = messages_of(FORMAT, json_lines(both, result("a"), result("b")))[2:]
    assert [answer.tool for answer in answers] == ["first", "second"]


def test_parallel_calls_find_their_own_results() -> None:
    both = called("timetable", call="a")
    both["tool_calls"] += called("weather", call="b")["tool_calls"]
    answers = messages_of(FORMAT, json_lines(both, result("rain", "b"), result("9:12", "a")))[2:]
    assert [(answer.tool, answer.text) for answer in answers] == [("weather", "rain"), ("timetable", "9:12")]


def test_text_beside_calls_is_an_answer_before_them() -> None:
    content = json_lines(called() | {"content": "Let me look."})
    assert [role for role, _ in spoken(FORMAT, content)] == [Role.ASSISTANT, Role.CALL]


def test_a_result_that_begins_with_error_failed() -> None:
    (_, answer) = messages_of(FORMAT, json_lines(called(), result("Error: no such station")))
    assert answer.failed is True


def test_the_first_function_interface_joins_by_name_and_order() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "timetable", "arguments": "{}"}}
    answer = {"role": "function", "name": "timetable", "content": "9:12"}
    messages = messages_of(FORMAT, json_lines(call, answer, call, answer))
    assert [message.call_id for message in messages] == ["call-1", "call-1", "call-2", "call-2"]
    other = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    (answered,) = messages_of(FORMAT, json_lines(other, call, answer))[2:]
    assert answered.call_id == "call-2", "the name tells which of two calls was answered"


def test_arguments_that_are_an_object_are_written_as_json() -> None:
    assert spoken(FORMAT, json_lines(called(arguments={"to": "Žilina"}))) == [(Role.CALL, '{"to":"Žilina"}')]


def test_a_custom_tool_is_called_with_free_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    (message,) = messages_of(FORMAT, json_lines({"role": "assistant", "content": None, "tool_calls": [call]}))
    assert (message.tool, message.text) == ("sql", "SELECT 1")


def test_the_dialect_with_values_is_understood() -> None:
    call = {"type": "tool_call", "value": '{"name": "timetable", "arguments": {"after": "09:00"}}'}
    thought = {"type": "reasoning", "value": "They want a train."}
    answer = {"role": "tool", "content": [{"type": "text", "value": "9:12"}]}
    content = json_lines({"role": "assistant", "content": [thought, call, {"type": "text", "value": "Wait."}]}, answer)
    said = [(Role.ASSISTANT, "Wait."), (Role.CALL, '{"after":"09:00"}'), (Role.RESULT, "9:12")]
    assert spoken(FORMAT, content) == said


def test_a_refusal_is_an_answer() -> None:
    content = json_lines({"role": "assistant", "content": None, "refusal": "I can't help with that."})
    assert spoken(FORMAT, content) == [(Role.ASSISTANT, "I can't help with that.")]


def test_images_are_noted_and_not_kept() -> None:
    """F64: a data URL becomes a placeholder, with the size and digest of what it held."""
    picture = bytes(range(256)) * 8
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    (message,) = messages_of(FORMAT, json_lines({"role": "user", "content": parts}))
    assert message.text == "What is this?\n[image png 2 KB]"
    (image,) = message.images
    assert (image.media_type, image.size, image.sha256) == ("image/png", 2048, hashlib.sha256(picture).hexdigest())


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, "[image https://example.com/a.png]"),
        ({"type": "input_image", "image_url": "https://example.com/a.png"}, "[image https://example.com/a.png]"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA" * 512, "format": "wav"}}, "[audio wav 2 KB]"),
        ({"type": "file", "file": {"filename": "lease.pdf"}}, "[file lease.pdf]"),
    ],
)
def test_other_attachments_are_named(part: dict[str, Any], shown: str) -> None:
    assert spoken(FORMAT, json_lines({"role": "user", "content": [part]})) == [(Role.USER, shown)]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_prompt_is_no_message(role: str) -> None:
    assert items_of(FORMAT, json_lines({"role": role, "content": "Be brief."})) == [Skip(Reason.INJECTED)]


def test_injected_context_is_stripped_from_prompts_and_results() -> None:
    reminder = "<system-reminder>Be nice.</system-reminder>"
    content = json_lines({"role": "user", "content": f"Hello.\n{reminder}"}, called(), result(f"9:12\n{reminder}"))
    assert [text for _, text in spoken(FORMAT, content)] == ["Hello.", '{"after": "09:00"}', "9:12"]


def test_a_prompt_that_is_only_our_own_pack_is_no_message() -> None:
    pack = "<om-memory version='1'>\nUser prefers trains.\n</om-memory>"
    assert items_of(FORMAT, json_lines({"role": "user", "content": pack})) == [Skip(Reason.INJECTED)]


def test_a_message_with_nothing_in_it_is_noise() -> None:
    content = json_lines({"role": "assistant", "content": None}, {"role": "user", "content": ""})
    assert items_of(FORMAT, content) == [Skip(Reason.NOISE)] * 2


def test_what_is_known_of_the_session_is_told_once() -> None:
    told = {"session_id": "s-1", "model": "gpt-5", "cwd": "/home/nora", "title": "Trains"}
    content = json_lines(told | ASKED, told | ANSWERED)
    assert facts_of(FORMAT, content) == [Facts(session="s-1", model="gpt-5", cwd="/home/nora", title="Trains")]


def test_messages_of_two_sessions_are_told_apart() -> None:
    content = json_lines({"conversation_id": "a", "model": "gpt-5"} | ASKED, {"conversation_id": "b"} | ASKED)
    assert facts_of(FORMAT, content) == [Facts(session="a", model="gpt-5"), Facts(session="b")]


def test_the_id_of_a_conversation_is_its_session() -> None:
    content = json_lines({"id": "conv-7", "messages": [ASKED]}, {"id": "12", "messages": [ASKED]})
    assert facts_of(FORMAT, content) == [Facts(session="conv-7")], "a row's number is no session"


def test_a_line_that_introduces_the_session_is_no_fault() -> None:
    items = items_of(FORMAT, json_lines({"session_id": "s", "model": "gpt-5"}, ASKED))
    assert items[:2] == [Facts(session="s", model="gpt-5"), Skip(Reason.NOISE)]


def test_what_is_no_message_between_messages_is_counted_and_costs_nothing_else() -> None:
    """F57: a list, a text, null and a line that is no JSON between good lines."""
    said = [{"role": "user", "content": f"question {number}"} for number in range(100)]
    good = json_lines(*said).splitlines(keepends=True)
    content = b"".join([*good[:50], b"[1,2]\n", b'"str"\n', b"null\n", b"not json\n", *good[50:]])
    assert is_sniffed(FORMAT, content)
    assert [text for _, text in spoken(FORMAT, content)] == [entry["content"] for entry in said]
    skipped = skipped_of(FORMAT, content)
    assert len(skipped) == 4
    assert all(entry.reason.is_fault for entry in skipped)


@pytest.mark.parametrize(
    ("entry", "left_out"),
    [
        ({"role": "user"}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": 5}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": [None]}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": [{"type": "hologram"}]}, Skip(Reason.UNKNOWN_TYPE, "hologram")),
        ({"role": "oracle", "content": "x"}, Skip(Reason.UNKNOWN_TYPE, "oracle", is_message=True)),
        ({"role": ["user"], "content": "x"}, Skip(Reason.MALFORMED)),
        ({"content": "x"}, Skip(Reason.MALFORMED)),
        ({"role": "assistant", "content": None, "tool_calls": "x"}, Skip(Reason.MALFORMED)),
        ({"role": "assistant", "content": None, "tool_calls": [None]}, Skip(Reason.MALFORMED)),
        ({"role": "assistant", "content": None, "tool_calls": [{"function": None}]}, Skip(Reason.MALFORMED)),
        ({"messages": ["x"]}, Skip(Reason.NOT_AN_OBJECT)),
    ],
)
def test_values_of_unexpected_types_are_counted(entry: dict[str, Any], left_out: Skip) -> None:
    """F58: a message that is a text, null or something else, never a traceback."""
    assert items_of(FORMAT, json_lines(entry)) == [left_out]


def test_a_call_without_arguments_is_still_a_call() -> None:
    """F58: a tool's input that is null."""
    assert spoken(FORMAT, json_lines(called(arguments=None))) == [(Role.CALL, "")]


def test_an_object_that_is_no_message_between_many_does_not_hide_them() -> None:
    assert is_sniffed(FORMAT, json_lines(*[ASKED, ANSWERED] * 5, {"level": "info"}))


def test_a_byte_that_is_no_utf_8_costs_one_character() -> None:
    """F60: one 0xFF in a line."""
    content = json_lines({"role": "user", "content": "caf#"}).replace(b"#", b"\xff")
    assert spoken(FORMAT, content) == [(Role.USER, "caf\ufffd")]


def test_a_byte_order_mark_does_not_hide_the_first_message() -> None:
    """F62: a mark at the start, and CRLF line ends."""
    content = b"\xef\xbb\xbf" + json_lines(ASKED, ANSWERED).replace(b"\n", b"\r\n")
    assert is_sniffed(FORMAT, content)
    assert len(messages_of(FORMAT, content)) == 2


def test_a_truncated_last_line_is_left_for_the_next_run() -> None:
    """F59"""
    content = json_lines(ASKED, ANSWERED)
    assert items_of(FORMAT, content[:-10])[1:] == [Skip(Reason.TRUNCATED)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Dear all,\n\nplease find the minutes attached.\n",
        document({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]}),
        document([{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": {"content": "hello"}}]),
        document([{"id": "1", "role": "user", "content": "hi", "parts": [{"type": "text", "text": "hi"}]}]),
        document([{"id": "1", "role": "user", "content": {"format": 2, "parts": []}}]),
        document([{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "hello"}]}]),
        document({"messages": [{"info": {"role": "user"}, "parts": []}]}),
        document([{"type": "message", "user": "U1", "text": "hi", "ts": "1770127500.000100"}]),
        json_lines({"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}}),
        json_lines({"role": "user", "created": 1, "content": [{"type": "toolResponse", "id": "1"}]}),
        json_lines({"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "hi"}}),
        json_lines({"type": "message", "role": "user", "text": "hi"}),
        json_lines({"level": "info", "message": "listening"}, {"level": "info", "message": "stopped"}),
        document({"name": "parcel", "version": "1.0.0"}),
        document({"session_id": "1", "session_start": "2026-02-03T14:05:00Z", "messages": [ASKED, ANSWERED]}),
        document([ASKED, ANSWERED, {"role": "user", "content": "<returncode>0</returncode>\n<output>x</output>"}]),
        json_lines(ASKED, {"level": "info"}, ANSWERED, {"level": "info"}),
    ],
)
def test_other_inputs_are_not_taken_for_chat_messages(content: bytes) -> None:
    """F67: rather unknown than misread."""
    assert not is_sniffed(FORMAT, content)


@needs_shared
@pytest.mark.parametrize("path", shared_files("openai-chat", role="conversation"))
def test_shared_transcripts_have_the_expected_counts(path: str) -> None:
    assert found(FORMAT, path).items() <= settled(path).items()


@needs_shared
def test_no_shared_transcript_of_another_program_is_claimed() -> None:
    """F67: Anthropic's come first in the table, and some of them are chat messages as well."""
    kin = ("openai-chat", "anthropic-messages")
    others = [path for path, entry in expected().items() if entry["format"] not in kin]
    assert [path for path in others if (TRANSCRIPTS / path).is_file() and is_sniffed_shared(FORMAT, path)] == []


words = st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip()) and "<" not in text)
turns = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": words}, optional={"id": words, "name": words}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": words}),
    st.builds(called, words, words, words),
    st.builds(result, words, words),
)


@given(st.lists(turns, max_size=12))
def test_what_was_said_comes_back(records: list[dict[str, Any]]) -> None:
    messages = messages_of(FORMAT, json_lines(*records))
    assert len(messages) == len(records)
    for message, entry in zip(messages, records, strict=True):
        call = entry.get("tool_calls", [{}])[0]
        assert message.text == (entry["content"] or call["function"]["arguments"])
        assert message.id == entry.get("id")
        assert message.call_id == (call.get("id") or entry.get("tool_call_id"))
    assert messages == messages_of(FORMAT, document(records)), "JSON and JSON Lines are read alike"


@given(st.lists(turns, max_size=12), st.integers(min_value=0, max_value=12))
def test_a_grown_transcript_begins_as_before(records: list[dict[str, Any]], cut: int) -> None:
    grown = items_of(FORMAT, json_lines(*records))
    before = items_of(FORMAT, json_lines(*records[:cut]))
    assert grown[: len(before)] == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
keys = [
    "role",
    "content",
    "tool_calls",
    "function_call",
    "id",
    "type",
    "text",
    "messages",
    "function",
    "image_url",
    "file",
]
records_of_any_kind = st.recursive(
    json_values
    | st.sampled_from(["user", "assistant", "tool", "text", "image_url", "tool_call", "file", "input_audio"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(records_of_any_kind, max_size=5))
def test_no_value_anywhere_breaks_the_reader(values: list[object]) -> None:
    """F57, F58: what has no meaning is skipped; nothing raises, and good lines stay."""
    content = json_lines(*values, ASKED)
    is_sniffed(FORMAT, content)
    assert messages_of(FORMAT, content)[-1].text == ASKED["content"]
    items_of(FORMAT, document(values))


@given(st.binary(max_size=400))
def test_random_bytes_are_refused_and_break_nothing(content: bytes) -> None:
    """F60"""
    assert not is_sniffed(FORMAT, content)
    items_of(FORMAT, content)


def test_a_new_conversation_is_marked_between_rows_also_behind_loose_messages() -> None:
    items = items_of(FORMAT, json_lines(ASKED, {"messages": [ANSWERED]}))
    assert [type(item) for item in items] == [Message, NewConversation, Message]


@pytest.mark.parametrize(("written", "expected"), [("2026-02-03T00:05:00+01:00", 60), ("2026-02-02T23:05:00Z", None)])
def test_the_zone_of_a_time_is_kept(written: str, expected: int | None) -> None:
    """S0.29, F70: which day it was for whoever said it."""
    turns = [{"role": role, "content": "It is late.", "created_at": written} for role in ("user", "assistant")]
    said = messages_of(FORMAT, json_lines(*turns))
    assert [(turn.at, turn.utc_offset) for turn in said] == [("2026-02-02T23:05:00.000Z", expected)] * 2
