"""Detection asks only the formats whose keys occur in the input; the answer is that of asking all of them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats import NAMES, named, possible_formats
from omcli.formats.known import known_name
from omcli.formats.source import InputShape, Record, RecordStream, Sample
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.strategies import examples

STORIES = Path(__file__).parents[2] / "stories"
FORMATS = [named(name) for name in NAMES]


def sample_of(path: Path) -> Sample:
    with path.open("rb") as stream:
        return RecordStream(stream).sample


def assert_keys_decide_nothing(sample: Sample) -> None:
    """A format that recognises a sample is among those whose keys occur in it."""
    possible = {entry.name for entry in possible_formats(sample)}
    assert {entry.name for entry in FORMATS if entry.detect(sample)} <= possible


def records_of_stories() -> list[Record]:
    return [entry for path in sorted(STORIES.iterdir()) if path.suffix != ".md" for entry in sample_of(path).records]


SAID: Record = {"role": "user", "content": "x"}
# The least by which each format is recognised, in each of its ways.
CALL: Record = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}
LEAST: list[tuple[str, list[Any]]] = [
    ("codex", [{"type": "turn.started"}]),
    ("codex", [{"record_type": "state"}]),
    ("codex", [{"id": "s", "timestamp": "t", "instructions": None}]),
    ("codex", [{"session_id": "s", "ts": 1, "text": "x"}]),
    ("codex", [{"input": "x", "output": [{"type": "reasoning", "summary": []}, CALL]}]),
    ("codex", [{"input": [{"role": "user", "content": [{"type": "input_text"}]}]}]),
    ("pi", [{"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}]),
    ("pi", [{"type": "message", "message": {"stopReason": "stop"}}]),
    ("pi", [{"role": "assistant", "stopReason": "stop"}]),
    ("pi", [{"role": "toolResult", "toolCallId": "t"}]),
    ("pi", [{"role": "bashExecution", "command": "ls"}]),
    *(("pi", [{"role": role, "summary": "x"}]) for role in ("branchSummary", "compactionSummary")),
    ("pi", [{"messagesToSummarize": []}]),
    ("pi", [{"preparation": {"messagesToSummarize": []}}]),
    ("pi", [{"state": {"agent": {"messages": [SAID]}}}]),
    *(
        ("claude-code", [{"type": "user", key: "x"}])
        for key in ("sessionId", "parentUuid", "leafUuid", "snapshot", "session_id")
    ),
    ("anthropic", [{"messages": [SAID], "system": "x"}]),
    ("anthropic", [{"type": "message", "role": "assistant", "content": "x", "stop_reason": None}]),
    ("anthropic", [{"role": "assistant", "content": [{"type": "thinking"}]}]),
    ("anthropic", [*[SAID] * 4, {"role": "user", "content": [{"source": {}}]}]),
    ("openai", [SAID]),
    *(("openai", [{key: [SAID]}]) for key in ("messages", "traj", "conversation", "conversations")),
    ("openai", [{"request": {"messages": [SAID]}}]),
    *(("gemini", [{key: "x"}]) for key in ("projectHash", "$set", "$rewindTo")),
    *(("gemini", [{"type": "gemini", key: []}]) for key in ("tokens", "thoughts", "toolCalls")),
    ("opencode", [{"info": {"id": "s", "directory": "/"}, "messages": []}]),
    ("copilot", [{"type": "user.message", "parentId": None, "data": {}}]),
    ("copilot", [{"sessionId": "s", "timeline": []}]),
    ("cursor", [{"role": "user", "message": {"content": []}}]),
]


def made_of(records: list[Record], *, shape: InputShape = InputShape.LINES) -> Sample:
    return Sample(shape=shape, records=tuple(records), is_list=False, text="")


@pytest.mark.parametrize(("name", "records"), LEAST)
def test_each_way_to_recognise_a_format_is_among_its_keys(name: str, records: list[Record]) -> None:
    assert named(name).detect(made_of(records))
    assert_keys_decide_nothing(made_of(records))


RECORDS = records_of_stories() + [entry for _, records in LEAST for entry in records]
VALUES = [value for entry in RECORDS for value in entry.values()]
WORDS = sorted(
    {text for value in VALUES if isinstance(text := value, str) and len(text) < 40}
    | {
        *("message", "reasoning", "tool_call", "function_call", "function_call_output", "local_shell_call", "error"),
        *("thread.started", "item.completed", "session_meta", "response_item", "event_msg", "session", "assistant"),
        *("user", "tool", "toolResult", "thinking", "tool_use", "tool_result", "server_tool_use", "system", "claude"),
    }
)
KEYS = sorted(
    {key for entry in RECORDS for key in entry}
    | {
        *("type", "role", "content", "payload", "record_type", "instructions", "id", "timestamp", "ts", "text", "name"),
        *("session_id", "summary", "call_id", "function", "message", "cwd", "stopReason", "snapshot", "leafUuid"),
        *("messages", "traj", "conversation", "conversations", "request", "system", "anthropic_version", "tools"),
        *("max_tokens", "model", "stop_reason", "source", "tool_calls", "function_call", "input_schema"),
    }
)
LEAVES = st.sampled_from(WORDS) | st.none() | st.booleans() | st.integers(0, 3)
NESTED = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
)
MADE = st.dictionaries(st.sampled_from(KEYS), NESTED, max_size=6)
# A record of a story with some keys taken away and some others added.
CHANGED = st.builds(
    lambda entry, without, others: {key: value for key, value in entry.items() if key not in without} | others,
    st.sampled_from(RECORDS),
    st.sets(st.sampled_from(KEYS), max_size=4),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES) | LEAVES, max_size=2),
)


@examples(200)
@given(
    st.sampled_from((InputShape.LINES, InputShape.DOCUMENT)),
    st.lists(MADE | CHANGED | st.sampled_from(RECORDS), min_size=1, max_size=3),
)
def test_a_format_that_matches_has_one_of_its_keys_in_the_input(shape: InputShape, records: list[Record]) -> None:
    assert_keys_decide_nothing(made_of(records, shape=shape))


@pytest.mark.parametrize("without", sorted({key for entry in RECORDS for key in entry}))
def test_a_story_without_one_of_its_keys_is_still_asked_about_as_before(without: str) -> None:
    for path in sorted(STORIES.iterdir()):
        sample = sample_of(path)
        left = tuple({key: value for key, value in entry.items() if key != without} for entry in sample.records)
        assert_keys_decide_nothing(Sample(shape=sample.shape, records=left, is_list=sample.is_list, text=sample.text))


@pytest.mark.parametrize("path", sorted(STORIES.iterdir()), ids=lambda path: path.name)
def test_a_story_is_recognised_as_if_all_formats_were_asked(path: Path) -> None:
    assert_keys_decide_nothing(sample_of(path))


@needs_shared
def test_every_shared_transcript_is_recognised_as_if_all_formats_were_asked() -> None:
    for path in sorted(TRANSCRIPTS.rglob("*")):
        if path.is_file() and path.stat().st_size < 8_000_000:
            assert_keys_decide_nothing(sample_of(path))


@needs_shared
def test_what_cannot_be_read_yet_is_named() -> None:
    """XD8: every conversation of the collection is read or refused by its program's name."""
    named_by = {
        "qwen-code": "Qwen Code", "kimi": "Kimi Code",
        "grok-cli": "Grok", "factory-droid": "Factory Droid", "antigravity": "Antigravity", "hermes": "Hermes",
        "opencode": "OpenCode (a part of a session)", "aider": "aider", "specstory-md": "SpecStory",
        "openhands": "OpenHands",
        "langchain": "LangChain", "ai-sdk-uimessage": "AI SDK", "mastra": "Mastra", "sharegpt": "ShareGPT",
        "chatgpt-export": "ChatGPT", "claude-ai-export": "Claude.ai", "slack": "Slack",
    }  # fmt: skip
    for path, found in expected().items():
        if found["role"] == "conversation" and found["format"] in named_by:
            sample = sample_of(TRANSCRIPTS / path)
            assert not [entry.name for entry in FORMATS if entry.detect(sample)], path
            assert known_name(sample) == f"a transcript of {named_by[found['format']]}", path


@pytest.mark.parametrize(
    ("program", "content"),
    [
        ("Gemini CLI (a saved chat)", b'[{"role": "model", "parts": [{"text": "Hi"}]}]'),
        ("Cursor (an export)", b"# Tides\n_Exported on 7/8/2025 at 19:03:40 PDT from Cursor (1.2.1)_\n\n---\n"),
        ("SWE-agent", b'{"trajectory": [{"action": "ls", "observation": ""}], "info": {}}'),
        ("OpenClaw (a trajectory)", b'{"traceSchema":"openclaw-trajectory","type":"session.started"}\n'),
        ("Kiro", b'{"conversation_id": "c", "history": [{"user": {}, "assistant": {}}]}'),
        ("VS Code Copilot Chat", b'{"version": 3, "requests": [], "responderUsername": "GitHub Copilot"}'),
        (None, b"SQLite format 3\0" + bytes(100)),
        (None, b'{"harbour": "Cuxhaven", "mapping": []}\n'),
        (None, b"# Tides\n\n> quoted\n\n#### A heading\n"),
    ],
)
def test_a_program_is_known_by_what_it_writes(program: str | None, content: bytes) -> None:
    """XD8."""
    wanted = program and f"a transcript of {program}"
    assert known_name(RecordStream(io.BytesIO(content)).sample) == wanted


@pytest.mark.parametrize(
    ("content", "modules"),
    [
        (b'{"role": "user", "content": "Hello"}\n', {"openai_chat"}),
        (b'{"role": "assistant", "content": null, "tool_calls": [{"type": "function"}]}\n', {"openai_chat"}),
        (b"User: Hello there\nAssistant: Hello\n", {"plain_text"}),
    ],
)
def test_only_the_formats_an_input_may_have_are_imported(content: bytes, modules: set[str]) -> None:
    script = (
        "import io, sys, omcli.formats as formats; from omcli.formats.source import RecordStream\n"
        f"formats.detect(RecordStream(io.BytesIO({content!r})))\n"
        "print(*(name.rpartition('.')[2] for name in sys.modules if hasattr(sys.modules[name], 'FORMAT')))"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(printed.split()) == modules
