"""Anthropic Messages as `om` reads them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.anthropic_messages import FORMAT
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Facts, Reason, Skip
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

Block = dict[str, Any]


def block(words: str) -> Block:
    """A text block."""
    return {"type": "text", "text": words}


def call(name: str = "Bash", given: object = None, use: str = "toolu_1") -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": use, "name": name, "input": {"command": "make"} if given is None else given}


def result(content: object = "ok", use: str = "toolu_1", **flags: object) -> Block:
    """A tool's answer."""
    return {"type": "tool_result", "tool_use_id": use, "content": content, **flags}


def user(*blocks: Block | str) -> Block:
    """A turn of the user's."""
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Block, **fields: object) -> Block:
    """A turn of the assistant's."""
    return {"role": "assistant", "content": list(blocks), **fields}


TURNS = [user(block("Build it.")), assistant(block("Building."), call()), user(result()), assistant(block("Built."))]
SPOKEN = [
    (Role.USER, "Build it."),
    (Role.ASSISTANT, "Building."),
    (Role.CALL, '{"command":"make"}'),
    (Role.RESULT, "ok"),
    (Role.ASSISTANT, "Built."),
]


@pytest.mark.parametrize(
    "content",
    [
        document(TURNS),
        json.dumps(TURNS).encode(),
        json_lines(*TURNS),
        document({"model": "claude-sonnet-4", "max_tokens": 1024, "messages": TURNS}),
        json_lines({"model": "claude-sonnet-4", "max_tokens": 1024, "messages": TURNS}),
    ],
)
def test_turns_are_found_in_every_wrapping(content: bytes) -> None:
    assert is_sniffed(FORMAT, content)
    assert spoken(FORMAT, content) == SPOKEN


def test_a_body_tells_the_model_and_its_system_prompt_is_no_message() -> None:
    body = {
        "model": "claude-sonnet-4",
        "system": [block("Be brief.")],
        "messages": [{"role": "user", "content": "Hi."}],
    }
    items = items_of(FORMAT, document(body))
    assert items[:2] == [Facts(model="claude-sonnet-4"), Skip(Reason.INJECTED)]
    assert spoken(FORMAT, document(body)) == [(Role.USER, "Hi.")]
    assert is_sniffed(FORMAT, document(body)), "a system prompt beside the messages is this interface's way"


def test_bodies_on_lines_are_conversations_of_their_own() -> None:
    items = items_of(FORMAT, json_lines({"messages": TURNS}, {"messages": TURNS[:1]}))
    assert [len(messages) for messages in per_conversation(items)] == [5, 1]


def test_an_answer_as_the_interface_gives_it_keeps_its_id_and_model() -> None:
    answer = assistant(block("Hello."), id="msg_01", type="message", model="claude-sonnet-4", stop_reason="end_turn")
    content = json_lines(user(block("Hi.")), answer)
    assert is_sniffed(FORMAT, content)
    assert [message.id for message in messages_of(FORMAT, content)] == [None, "msg_01"]
    assert facts_of(FORMAT, content) == [Facts(model="claude-sonnet-4")]


def test_a_call_and_its_result_are_joined() -> None:
    _, _, made, answered, _ = messages_of(FORMAT, document(TURNS))
    assert (made.tool, made.call_id, made.id) == ("Bash", "toolu_1", None)
    assert (answered.tool, answered.call_id, answered.failed) == ("Bash", "toolu_1", None)


@pytest.mark.parametrize(("flags", "failed"), [({}, None), ({"is_error": True}, True), ({"is_error": False}, False)])
def test_only_the_flag_tells_that_a_call_failed(flags: dict[str, Any], failed: bool | None) -> None:
    (answered,) = messages_of(FORMAT, json_lines(user(result("Error: no such file", **flags))))
    assert answered.failed is failed


def test_the_exit_code_of_a_failed_command_is_read() -> None:
    content = json_lines(user(result("Exit code 2\nmake: no target", is_error=True), result("Exit code 2\n", use="b")))
    assert [message.exit_code for message in messages_of(FORMAT, content)] == [2, None]


def test_thoughts_are_left_out() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    content = json_lines(assistant(block("\n\n"), thinking, block("Yes.")), assistant(thinking))
    assert items_of(FORMAT, content) == [Message(role=Role.ASSISTANT, text="Yes."), Skip(Reason.NOISE)]


def test_an_answer_in_pieces_is_one_message() -> None:
    cited = block("nine trains") | {"citations": [{"url": "https://example.com"}]}
    content = json_lines(
        assistant(block("There are "), cited, block(" a day.")), assistant(block("One."), block("Two."))
    )
    assert [text for _, text in spoken(FORMAT, content)] == ["There are nine trains a day.", "One.\nTwo."]


def test_text_beside_a_result_is_a_prompt() -> None:
    content = json_lines(user(result(), block("Stop after this one.")))
    assert spoken(FORMAT, content) == [(Role.RESULT, "ok"), (Role.USER, "Stop after this one.")]


def test_a_list_may_hold_a_bare_text() -> None:
    assert spoken(FORMAT, json_lines(user("Hi."))) == [(Role.USER, "Hi.")]


@pytest.mark.parametrize(
    "injected",
    [
        "<system-reminder>Your list is empty.</system-reminder>",
        "<om-memory version='1'>\nUser likes tabs.\n</om-memory>",
        "The user opened the file /home/ada/notes.md in the IDE.",
        "The user opened the file /a.md in the IDE. This may or may not be related to the current task.",
        "The user selected the lines 1 to 3 from /a.md:\nx\n\nThis may or may not be related to the current task.",
        "<local-command-stdout>done</local-command-stdout>",
        "<task-notification>finished</task-notification>",
        "Your task is to create a detailed summary of the conversation so far, wrapped in <analysis> tags.",
    ],
)
def test_what_a_client_adds_is_no_prompt(injected: str) -> None:
    content = json_lines(user(block("Hi."), block(injected)))
    assert items_of(FORMAT, content) == [Skip(Reason.INJECTED), Message(role=Role.USER, text="Hi.")]


@pytest.mark.parametrize(
    "words",
    [
        "The user opened the file and saw nothing.",
        "The user opened the file x in the IDE.\nWhy does it hang?",
        "Your task is to create a detailed summary of the conversation so far.",
        "Why does <command-name> appear in my prompts?",
    ],
)
def test_words_that_only_look_like_a_clients_are_prompts(words: str) -> None:
    assert spoken(FORMAT, json_lines(user(block(words)))) == [(Role.USER, words)]


@pytest.mark.parametrize(
    ("written", "kind", "text"),
    [
        (
            "<command-name>/review</command-name>\n<command-args>the parser</command-args>",
            MessageKind.COMMAND,
            "/review the parser",
        ),
        (
            "<command-message>clear</command-message>\n<command-name>/clear</command-name>",
            MessageKind.COMMAND,
            "/clear",
        ),
        ("<bash-input>ls -la</bash-input>", MessageKind.SHELL, "ls -la"),
        ("[Request interrupted by user]", MessageKind.INTERRUPT, "[Request interrupted by user]"),
        ("This session is being continued from a previous conversation. We built a parser.", MessageKind.SUMMARY, None),
    ],
)
def test_what_a_person_did_otherwise_is_an_event(written: str, kind: MessageKind, text: str | None) -> None:
    (event,) = messages_of(FORMAT, json_lines(user(block(written))))
    assert (event.role, event.kind, event.text) == (Role.EVENT, kind, text or written)


NOTE = "\n\nNote: The user's next message may contain a correction or preference."


@pytest.mark.parametrize(
    "refused",
    [
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse pnpm",
        "The user doesn't want to proceed. The user provided the following reason for the rejection:  use pnpm",
        f"The user doesn't want to proceed. To tell you how to proceed, the user said:\nuse pnpm{NOTE}",
    ],
)
def test_what_a_person_said_while_refusing_is_kept(refused: str) -> None:
    _, rejected, remark = messages_of(FORMAT, json_lines(assistant(call("Bash")), user(result(refused, is_error=True))))
    assert rejected.failed is True
    assert (remark.role, remark.kind, remark.text) == (Role.USER, MessageKind.REMARK, "use pnpm")
    assert not remark.is_counted


def test_a_file_that_quotes_a_refusal_is_none() -> None:
    quoted = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse pnpm"
    assert spoken(FORMAT, json_lines(user(result(quoted)))) == [(Role.RESULT, quoted)]


def test_parallel_calls_find_their_own_results() -> None:
    made = assistant(call("Read", use="a"), call("Bash", use="b"))
    messages = messages_of(FORMAT, json_lines(made, user(result("x", use="b"), result("y", use="a"))))
    assert [message.tool for message in messages] == ["Read", "Bash", "Bash", "Read"]


def test_turns_of_two_sessions_are_told_apart() -> None:
    first, second = ({"session_id": "a", "cwd": "/a"} | TURNS[0], {"session_id": "b"} | TURNS[0])
    assert facts_of(FORMAT, json_lines(first, second)) == [Facts(session="a", cwd="/a"), Facts(session="b")]


def test_an_object_that_is_no_turn_between_many_does_not_hide_them() -> None:
    assert is_sniffed(FORMAT, json_lines(*TURNS * 3, {"level": "info"}))
    assert not is_sniffed(FORMAT, json_lines(*TURNS, *[{"level": "info"}] * 4))


def test_reminders_are_stripped_from_results() -> None:
    content = json_lines(user(result("Done.\n\n<system-reminder>Use the list.</system-reminder>")))
    assert spoken(FORMAT, content) == [(Role.RESULT, "Done.")]


def test_images_are_noted_and_not_kept() -> None:
    """F64: in prompts and in results, with size and digest; a prompt of an image alone is a prompt."""
    picture = bytes(3 * 1024)
    encoded = base64.b64encode(picture).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}}
    prompt, answered = messages_of(FORMAT, json_lines(user(image), user(result([block("A page:"), image]))))
    assert (prompt.role, prompt.text) == (Role.USER, "[image png 3 KB]")
    assert answered.text == "A page:\n[image png 3 KB]"
    digest = hashlib.sha256(picture).hexdigest()
    assert [(kept.size, kept.sha256) for kept in (*prompt.images, *answered.images)] == [(3072, digest)] * 2


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (
            {"type": "document", "title": "lease", "source": {"media_type": "application/pdf", "data": "AAAA" * 512}},
            "[document lease pdf 2 KB]",
        ),
        (
            {"type": "document", "title": "notes", "source": {"type": "text", "data": "Rent is due on the 3rd."}},
            "[document notes]\nRent is due on the 3rd.",
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            "[image https://example.com/a.png]",
        ),
        (
            {"type": "search_result", "title": "Rents", "source": "https://example.com"},
            "[search result Rents https://example.com]",
        ),
    ],
)
def test_other_attachments_are_named(part: Block, shown: str) -> None:
    assert spoken(FORMAT, json_lines(user(part))) == [(Role.USER, shown)]


def test_tools_of_the_server_are_calls_with_results() -> None:
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "trains"}}
    page = {"type": "web_search_result", "title": "Trains", "url": "https://example.com", "encrypted_content": "x"}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]}
    failed = found | {"content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    messages = messages_of(FORMAT, json_lines(assistant(searched, found, failed)))
    assert [message.tool for message in messages] == ["web_search", "web_search", None]
    assert messages[1].text == "[web search result Trains https://example.com]"
    assert (messages[2].failed, messages[2].text) == (True, "max_uses_exceeded")


def test_times_are_kept_where_a_turn_has_one() -> None:
    (message,) = messages_of(FORMAT, json_lines(user(block("Hi.")) | {"timestamp": "2026-02-03T14:05:00Z"}))
    assert message.at == "2026-02-03T14:05:00.000Z"


@pytest.mark.parametrize(
    ("entry", "left_out"),
    [
        ({"role": "user"}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": {"text": "x"}}, Skip(Reason.MALFORMED, is_message=True)),
        ({"role": "user", "content": [None]}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": [{"type": "hologram"}]}, Skip(Reason.UNKNOWN_TYPE, "hologram")),
        ({"role": "oracle", "content": "x"}, Skip(Reason.UNKNOWN_TYPE, "oracle", is_message=True)),
        ({"role": ["user"], "content": "x"}, Skip(Reason.MALFORMED)),
        ({"role": "assistant", "content": [{"type": "tool_use", "name": None}]}, Skip(Reason.MALFORMED)),
        ({"role": "user", "content": []}, Skip(Reason.NOISE)),
        ({"messages": ["x"]}, Skip(Reason.NOT_AN_OBJECT)),
        ({"content": "x"}, Skip(Reason.MALFORMED)),
    ],
)
def test_values_of_unexpected_types_are_counted(entry: Block, left_out: Skip) -> None:
    """F58: a message that is null or something else, never a traceback."""
    assert items_of(FORMAT, json_lines(entry)) == [left_out]


def test_a_call_without_input_is_still_a_call() -> None:
    """F58: a tool's input that is null."""
    part = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": None}
    assert spoken(FORMAT, json_lines(assistant(part))) == [(Role.CALL, "")]


def test_what_is_no_turn_between_turns_is_counted_and_costs_nothing_else() -> None:
    """F57: a list, a text, null and a line that is no JSON between good lines."""
    good = json_lines(*(TURNS * 25)).splitlines(keepends=True)
    content = b"".join([*good[:50], b"[1,2]\n", b'"str"\n', b"null\n", b"not json\n", *good[50:]])
    assert is_sniffed(FORMAT, content)
    assert spoken(FORMAT, content) == SPOKEN * 25
    assert len(skipped_of(FORMAT, content)) == 4


def test_a_byte_that_is_no_utf_8_costs_one_character() -> None:
    """F60: one 0xFF in a line."""
    assert spoken(FORMAT, json_lines(user(block("caf#"))).replace(b"#", b"\xff")) == [(Role.USER, "caf\ufffd")]


def test_a_byte_order_mark_does_not_hide_the_first_turn() -> None:
    """F62: a mark at the start, and CRLF line ends."""
    content = b"\xef\xbb\xbf" + json_lines(*TURNS).replace(b"\n", b"\r\n")
    assert is_sniffed(FORMAT, content)
    assert spoken(FORMAT, content) == SPOKEN


def test_a_truncated_last_line_is_left_for_the_next_run() -> None:
    """F59"""
    assert items_of(FORMAT, json_lines(*TURNS)[:-10])[-1] == Skip(Reason.TRUNCATED)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        document([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]),
        document([*TURNS, {"role": "tool", "tool_call_id": "1", "content": "x"}] * 2),
        json_lines({"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": [result()]}}),
        json_lines(*({"role": turn["role"], "message": {"content": turn["content"]}} for turn in TURNS)),
        document([user(block("<task>Fix it</task>\n<environment_details>x</environment_details>")), *TURNS[1:]]),
        json_lines({"request": {"headers": {"authorization": "x"}, "body": {"messages": TURNS}}, "response": None}),
        document({"chat_messages": TURNS}),
        document({"model": "claude-sonnet-4", "messages": [{"role": "user", "content": "Hi."}]}),
        json_lines(*({"type": turn["role"]} | turn for turn in TURNS)),
        b"Dear all,\n\nplease find the minutes attached.\n",
    ],
)
def test_other_inputs_are_not_taken_for_this_interface(content: bytes) -> None:
    """F67: rather unknown than misread; chat messages of either interface are left to the general reader."""
    assert not is_sniffed(FORMAT, content)


def test_a_log_of_requests_gives_away_no_header() -> None:
    """Every request of such a log repeats the history and holds credentials: it is refused, also when forced."""
    row = {"request": {"headers": {"authorization": "Bearer t0ken"}, "body": {"messages": TURNS}}, "response": {}}
    assert items_of(FORMAT, json_lines(row)) == [Skip(Reason.MALFORMED)]


@needs_shared
@pytest.mark.parametrize("path", shared_files("anthropic-messages", role="conversation"))
def test_shared_transcripts_have_the_expected_counts(path: str) -> None:
    assert found(FORMAT, path).items() <= settled(path).items()


@needs_shared
@pytest.mark.parametrize("path", shared_files("anthropic-messages", role="probe"))
def test_shared_probes_are_refused_without_a_traceback(path: str) -> None:
    assert not is_sniffed_shared(FORMAT, path)
    assert messages_of(FORMAT, (TRANSCRIPTS / path).read_bytes()) == []


@needs_shared
def test_no_shared_transcript_of_another_program_is_claimed() -> None:
    """F67"""
    others = [path for path, entry in expected().items() if entry["format"] != "anthropic-messages"]
    assert [path for path in others if (TRANSCRIPTS / path).is_file() and is_sniffed_shared(FORMAT, path)] == []


words = st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip()) and "<" not in text)
ids = st.text(min_size=1, max_size=8)
exchanges = st.one_of(
    st.builds(lambda text: ([user(block(text))], [(Role.USER, text)]), words),
    st.builds(lambda text: ([assistant(block(text))], [(Role.ASSISTANT, text)]), words),
    st.builds(
        lambda use, key, text: (
            [assistant(call(given={key: text}, use=use)), user(result(text, use=use))],
            [(Role.CALL, json.dumps({key: text}, ensure_ascii=False, separators=(",", ":"))), (Role.RESULT, text)],
        ),
        ids,
        ids,
        words,
    ),
)


@given(st.lists(exchanges, max_size=10))
def test_what_was_said_comes_back(exchanged: list[tuple[list[Block], list[tuple[Role, str]]]]) -> None:
    turns = [turn for given_turns, _ in exchanged for turn in given_turns]
    said = [message for _, messages in exchanged for message in messages]
    assert spoken(FORMAT, json_lines(*turns)) == said
    assert spoken(FORMAT, document({"model": "claude", "messages": turns})) == said
    assert all(message.tool == "Bash" for message in messages_of(FORMAT, json_lines(*turns)) if message.call_id)


@given(st.lists(exchanges, max_size=10), st.integers(min_value=0, max_value=20))
def test_a_grown_transcript_begins_as_before(
    exchanged: list[tuple[list[Block], list[tuple[Role, str]]]], cut: int
) -> None:
    turns = [turn for given_turns, _ in exchanged for turn in given_turns]
    for write in (lambda some: json_lines(*some), document, lambda some: document({"messages": some})):
        before = items_of(FORMAT, write(turns[:cut]))
        assert items_of(FORMAT, write(turns))[: len(before)] == before


keys = [
    "role",
    "content",
    "type",
    "text",
    "source",
    "data",
    "name",
    "id",
    "input",
    "is_error",
    "tool_use_id",
    "messages",
]
kinds = ["user", "assistant", "text", "image", "document", "tool_use", "tool_result", "thinking", "x_error", "x_result"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(kinds),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(values, max_size=5))
def test_no_value_anywhere_breaks_the_reader(records: list[object]) -> None:
    """F57, F58: what has no meaning is skipped; nothing raises, and good lines stay."""
    content = json_lines(*records, user(block("Hi.")))
    is_sniffed(FORMAT, content)
    assert messages_of(FORMAT, content)[-1].text == "Hi."
    items_of(FORMAT, document(records))


@given(st.binary(max_size=400))
def test_random_bytes_are_refused_and_break_nothing(content: bytes) -> None:
    """F60"""
    assert not is_sniffed(FORMAT, content)
    items_of(FORMAT, content)


@pytest.mark.parametrize(("written", "expected"), [("2026-02-03T00:05:00+01:00", 60), ("2026-02-02T23:05:00Z", None)])
def test_the_zone_of_a_time_is_kept(written: str, expected: int | None) -> None:
    """S0.29, F70: which day it was for whoever said it."""
    turns = [{"role": role, "content": "It is late.", "created_at": written} for role in ("user", "assistant")]
    said = messages_of(FORMAT, json_lines(*turns))
    assert [(turn.at, turn.utc_offset) for turn in said] == [("2026-02-02T23:05:00.000Z", expected)] * 2
