"""No secret is in the store or in any output, whichever way it came in (XE4, XE5, invariant 9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.scripts import always
from tests.e2e.transcripts import Talk, tide_story
from tests.replying import answer, said
from tests.unit.text.secret_kinds import KINDS, Kind

STORIES = Path(__file__).parents[1] / "stories"
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
KEPT = {"id", "uuid", "sessionId", "agentId", "leafUuid", "parentUuid", "cwd", "call_id", "tool_call_id", "tool_use_id",
        "toolCallId", "parentId", "timestamp", "messageId", "callID", "sessionID", "messageID", "parentID", "directory",
        "root"}  # fmt: skip
"""Ids and directories, which are kept as they are; ids of queued prompts are their instants."""
STRUCTURE = {"type", "role", "version", "subtype", "userType", "stop_reason", "status", "operation", "trigger"}
"""What a record cannot be read without, or what is not stored."""


def secret_parts(kind: Kind) -> set[str]:
    """The secret, and as it is written in JSON; of a private key its lines."""
    if "BEGIN" in kind.secret:
        return set(re.findall("[A-Za-z0-9+/]{40,}", kind.secret))
    return {kind.secret, json.dumps(kind.secret)[1:-1]}


def all_of(om: Om, *without: Path) -> str:
    """What is in the files of the store, of workers and of settings, and what commands print of it."""
    handles = [line["id"] for line in om("log", "--all", "--jsonl").lines][:20]
    commands = (
        ["log", "--all"], ["log", "--all", "--jsonl"], ["context"], ["context", "--json"], ["sessions", "--json"],
        ["status", "--json"], ["items", "--json"], ["history", "--json"], ["export"], ["usage", "--json"],
        *(["show", handle] for handle in handles),
    )  # fmt: skip
    files = [path for path in om.folder.rglob("*") if path.is_file() and path not in without]
    return "\n".join(
        [*(path.read_bytes().decode("utf-8", "replace") for path in files)]
        + [om(*command, code=None).stdout for command in commands]
    )


def in_user_text(talk: Talk, kind: Kind) -> None:
    talk.user(f"We decided to remember this, always:\n{kind.text}")


def in_tool_arguments(talk: Talk, kind: Kind) -> None:
    talk.call("Bash", {"command": f"cat <<X\n{kind.text}\nX"}).result("done")


def in_tool_results(talk: Talk, kind: Kind) -> None:
    talk.call("Bash", {"command": "./run"}).result(f"Exit code 1\n{kind.text}\nError: failed", is_error=True)


def in_files(talk: Talk, kind: Kind) -> None:
    lines = "\n".join(f"{number:6d}→{line}" for number, line in enumerate(kind.text.split("\n"), start=1))
    talk.call("Read", {"file_path": "/srv/settings.txt"}).result(lines)


@pytest.mark.parametrize("place", [in_user_text, in_tool_arguments, in_tool_results, in_files])
def test_no_kind_of_secret_is_anywhere_after_observing(om: Om, place: Any) -> None:
    """XE4, XE5: in user text, tool arguments, tool results and file contents."""
    talk = Talk()
    for kind in KINDS:
        place(talk, kind)
    transcript = om.write("t.jsonl", talk.text())
    om("observe", transcript)
    found = all_of(om, transcript)
    assert "[redacted:" in found
    leaked = [kind.name for kind in KINDS if any(part in found for part in secret_parts(kind))]
    assert leaked == []


def ways_in(record: object) -> list[tuple[str, ...]]:
    """The ways to texts that a secret may be in."""
    return sorted({way for way in leaves(record) if not (KEPT | STRUCTURE) & set(way)})


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The ways to all texts in a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, (*path, "[]"))
    elif isinstance(value, str):
        yield path


def with_secret(value: Any, at: tuple[str, ...], path: tuple[str, ...] = ()) -> Any:
    """The value with a secret at the end of the texts at one way."""
    if isinstance(value, dict):
        return {key: with_secret(inner, at, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_secret(inner, at, (*path, "[]")) for inner in value]
    return f"{value} {TOKEN}" if isinstance(value, str) and path == at else value


@pytest.mark.parametrize("story", sorted(path.name for path in STORIES.glob("*.json*")))
def test_no_field_of_a_transcript_brings_a_secret_in(new_om: Any, story: str) -> None:
    """XE5: text, arguments, results, titles, tools, speakers, branches, models and all other fields of a format.

    In each turn one field of each record has a secret, until all fields of the record with the most have had a turn.
    """
    content = (STORIES / story).read_text(encoding="utf-8")
    records = [json.loads(content)] if story.endswith(".json") else list(map(json.loads, content.splitlines()))
    ways = [ways_in(record) for record in records]
    for turn in range(max(map(len, ways))):
        om = new_om()
        here = [each[turn % len(each)] if each else () for each in ways]
        body = "\n".join(json.dumps(with_secret(record, way)) for record, way in zip(records, here, strict=True))
        om("observe", "-", stdin=body, code=None)
        assert TOKEN.encode() not in stored(om.place), here


def test_no_field_of_a_reply_brings_a_secret_in(new_om: Any) -> None:
    """XE5: of a model, and of an agent that applies one."""
    fields = {"current_task": "Adding a flag", "next_step": "Wait", "title": "Flag"}
    reply = json.loads(answer(said("Station ids stay lower case", "m1", kind="decision"), **fields))
    for way in leaves(reply):
        om = new_om()
        model = always(om, json.dumps(with_secret(reply, way)))
        om("observe", "-", "--model", model.model, stdin=tide_story().text(), code=None)
        assert TOKEN not in all_of(om, model.path), way
        om = new_om()
        om("observe", "-", "--later", stdin=tide_story().text())
        token = om("pending", "--json").document["token"]
        om("apply", "-", stdin=json.dumps({**with_secret(reply, way), "token": token}), code=None)
        assert TOKEN not in all_of(om), way


@pytest.mark.parametrize("reply", ["{not json %s", "%s", '{"observations": [{"text": "%s'])
def test_a_broken_reply_is_not_kept(om: Om, reply: str) -> None:
    """XE5: nor is it in the error that is."""
    model = always(om, reply % TOKEN)
    run = om("observe", "-", "--model", model.model, stdin=tide_story().text(), code=None)
    applied = om("apply", "-", stdin=reply % TOKEN, code=65)
    assert TOKEN not in all_of(om, model.path) + run.stdout + run.stderr + applied.stderr


def test_an_earlier_summary_brings_no_secret_in(om: Om) -> None:
    """XE5."""
    summary = om.write("summary.md", f"# Notes\n- The deploy token is {TOKEN}\n- Ports are decided: {TOKEN} and 5433\n")
    run = om("compact", "-", "--summary", summary, "--session", "k", stdin=tide_story().text(), code=None)
    assert "2 rows of an earlier summary" in run.stderr
    assert TOKEN not in all_of(om, summary) + run.stdout


def test_a_note_and_its_tags_bring_no_secret_in(om: Om) -> None:
    """XE5."""
    om("note", f"ports and {TOKEN}", "--tag", TOKEN)
    om("note", "--item", "-", stdin=f"the token: {TOKEN}")
    assert TOKEN not in all_of(om)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(json.dumps({"env": f"A=1\n{TOKEN}\n"})),
        f"\x1b[32m{TOKEN}\x1b[0m and \x1b[1mtoken\x1b[0m=\x1b[33m{TOKEN}\x1b[0m",
        f"https://x:{TOKEN}@example.org/a.git?next=%2Fa%26token%3D{TOKEN}",
        f"┌{TOKEN}┐\n│{TOKEN}│",
        f"‘{TOKEN}’, “{TOKEN}”",
        f"{TOKEN}\r\n\t{TOKEN}\x07",
    ],
)
def test_a_key_is_found_in_escapes_colours_addresses_and_frames(om: Om, text: str) -> None:
    """XE5."""
    om("observe", "-", stdin=Talk().user(f"We decided: {text} is used.").text())
    found = all_of(om)
    assert TOKEN not in found
    assert "We decided:" in found
    assert "is used." in found
