"""The stories everybody's tests and the README start from: each is one whole transcript of its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from omcli.formats import detect
from omcli.formats.source import RecordStream
from omcli.memory.message import Message, MessageKind
from omcli.memory.transcript import Facts, Item
from omcli.operations.ingest.sessions import TranscriptCounts
from tests.unit.formats.readings import faults

STORIES = Path(__file__).parents[2] / "stories"
COUNTED = ("human_messages", "assistant_messages", "tool_calls", "tool_results", "errors", "compactions")
EXPECTED = {
    "claude_code_refactor.jsonl": ("claude-code", (5, 7, 21, 21, 4, 1)),
    "codex_release.jsonl": ("codex", (3, 4, 11, 11, 2, 0)),
    "pi_bugfix.jsonl": ("pi", (4, 6, 7, 7, 1, 1)),
    "chat_openai.jsonl": ("openai", (8, 9, 2, 2, 1, 0)),
    "anthropic_body.json": ("anthropic", (4, 5, 2, 2, 1, 0)),
    "chat.txt": ("text", (6, 5, 2, 2, 1, 0)),
    "gemini_calendar.jsonl": ("gemini", (2, 4, 6, 6, 2, 0)),
    "copilot_queue.jsonl": ("copilot", (2, 4, 8, 8, 1, 1)),
    "cursor_menu.ndjson": ("cursor", (2, 3, 3, 3, 0, 0)),
    "opencode_rooms.json": ("opencode", (2, 3, 6, 6, 2, 1)),
    "responses_bakery.json": ("codex", (1, 1, 2, 2, 1, 0)),
}
SESSIONS = {
    "claude_code_refactor.jsonl": ("5f0c3c1e-7b1d-4e0a-9a57-2f6f5d1b8c44", "/home/ada/src/parcel"),
    "codex_release.jsonl": ("019d1c4e-52b0-7a31-9c1f-3f0a6a2be7d1", "/home/ada/src/tern"),
    "pi_bugfix.jsonl": ("019d41a0-8c11-73d5-b1b0-6a0d3f9e2c75", "/home/bo/src/ledger"),
    "opencode_rooms.json": ("ses_0b7e55d1lanterns", "/home/tomas/src/lantern"),
}


def read(name: str) -> tuple[str, list[Item]]:
    """The format a story is detected as, and what it holds."""
    with (STORIES / name).open("rb") as stream:
        source = RecordStream(stream)
        reader = detect(source)
        return reader.name, list(reader.read(source))


def test_every_story_is_described_and_tested() -> None:
    stories = {path.name for path in STORIES.iterdir() if path.suffix != ".md"}
    assert stories == set(EXPECTED)
    described = (STORIES / "README.md").read_text(encoding="utf-8")
    assert [name for name in stories if f"`{name}`" not in described] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_a_story_is_recognised_and_read_without_a_fault(name: str) -> None:
    format_name, numbers = EXPECTED[name]
    recognised_as, items = read(name)
    tally = TranscriptCounts()
    for item in items:
        tally.add(item)
    assert recognised_as == format_name
    assert faults(items) == []
    assert tuple(getattr(tally.counts, count) for count in COUNTED) == numbers
    assert tally.conversations == 1


@pytest.mark.parametrize("name", SESSIONS)
def test_a_story_of_an_agent_names_its_session_and_directory(name: str) -> None:
    facts = [item for item in read(name)[1] if isinstance(item, Facts)]
    assert ([fact.session for fact in facts if fact.session], [fact.cwd for fact in facts if fact.cwd]) == (
        [SESSIONS[name][0]],
        [SESSIONS[name][1]],
    )


def test_the_first_story_has_all_that_is_hard_about_its_format() -> None:
    """The story has a person's words outside of prompts, side chains, outcomes and a compaction."""
    messages = [item for item in read("claude_code_refactor.jsonl")[1] if isinstance(item, Message)]
    asides = {message.kind for message in messages if message.kind}
    assert asides >= {
        MessageKind.QUEUED,
        MessageKind.REMARK,
        MessageKind.DELEGATED,
        MessageKind.COMMAND,
        MessageKind.INTERRUPT,
        MessageKind.COMPACTION,
    }
    assert any(message.agent for message in messages)
    assert [message.exit_code for message in messages if message.exit_code] == [1, 2]
    assert any("AKIAIOSFODNN7EXAMPLE" in message.text for message in messages)
    assert not any("system-reminder" in message.text or "ide_opened_file" in message.text for message in messages)


def test_no_story_is_longer_than_it_has_to_be() -> None:
    """The README's first command reads one; nobody should wait for it, or scroll past it in a diff."""
    sizes = {path.name: path.stat().st_size for path in STORIES.iterdir()}
    assert {name: size for name, size in sizes.items() if size > 70_000} == {}
