"""Sessions of Gemini CLI, Copilot CLI, Cursor and OpenCode, and items of the Responses API."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once
from tests.e2e.opencode import database, put

STORIES = Path(__file__).parents[1] / "stories"
LINES = {"gemini_calendar.jsonl": "gemini", "copilot_queue.jsonl": "copilot", "cursor_menu.ndjson": "cursor"}
DOCUMENTS = {"opencode_rooms.json": "opencode", "responses_bakery.json": "codex"}
TOLD = {
    "gemini_calendar.jsonl": {
        "decision": "We decided to keep dates in UTC",
        "file_modified": "Modified src/moon.py (2 edits)",
        "command_error": "Ran: pytest tests/test_moon.py → exit 1",
        "tool_error": "write_file docs/calendar.md failed",
        "instruction": "never write documentation without asking",
    },
    "copilot_queue.jsonl": {
        "decision": "How long may a shutdown wait for the queue? -> 30 seconds",
        "file_modified": "Modified worker.go",
        "file_created": "Created drain.go",
        "command_error": "Ran: go test ./... → exit 1",
        "task_delegated": "Find every caller of Drain.",
    },
    "cursor_menu.ndjson": {
        "decision": "Let's go with a single column",
        "file_modified": "Modified src/menu.css",
        "command_error": "Ran: npx stylelint src/menu.css → exit 2",
        "instruction": "Never use !important",
    },
    "opencode_rooms.json": {
        "request": "We return an empty list with 200",
        "file_modified": "Modified rooms.py",
        "file_created": "Created lamps.py",
        "command_error": "Ran: pytest tests/test_rooms.py → exit 1",
        "tool_error": "read lamp.py failed",
        "event": "User ran in the shell: git status",
        "decision": "Which level of strictness? -> strict",
    },
    "responses_bakery.json": {"preference": "I prefer answers in kilograms"},
}


def observe(om: Om, path: Path, *options: str) -> dict[str, Any]:
    (report,) = om("observe", "--json", path, *options).document["files"]
    assert isinstance(report, dict)
    return report


def rows(om: Om) -> list[dict[str, Any]]:
    return om("log", "--all", "--jsonl").lines


def opencode_story() -> dict[str, Any]:
    story: dict[str, Any] = json.loads((STORIES / "opencode_rooms.json").read_text(encoding="utf-8"))
    return story


# What is read


@pytest.mark.parametrize("name", [*LINES, *DOCUMENTS])
def test_what_was_said_and_done_becomes_rows_and_a_second_reading_adds_none(om: Om, name: str) -> None:
    report = observe(om, STORIES / name)
    assert report["format"] == (LINES | DOCUMENTS)[name]
    told = rows(om)
    for kind, words in TOLD[name].items():
        assert [row for row in told if row["type"] == kind and words in row["text"]], (kind, words)
    again = observe(om, STORIES / name)
    assert (again["new_messages"], again["observations"], rows(om)) == (0, 0, told)
    assert_covered_once(om.place)


@pytest.mark.parametrize("name", LINES)
def test_a_transcript_that_grows_line_by_line_gives_the_same_messages(new_om: Callable[[], Om], name: str) -> None:
    """F68: also if it is cut in the middle of a line when it is read."""
    stepwise, at_once = new_om(), new_om()
    content = (STORIES / name).read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    path, read = stepwise.write("grown.jsonl", ""), 0
    for end in [step for place in ends[2::5] for step in (place - 20, place)] + [len(content)]:
        path.write_bytes(content[:end])
        report = observe(stepwise, path, "--later")
        read += report["new_messages"]
    whole = observe(at_once, at_once.write("grown.jsonl", content.decode()), "--later")
    assert read == whole["messages"] == report["messages"]
    keys = ("messages", "first_at", "last_at", "pending", "title", "cwd", "model")
    (one,), (other,) = (om("sessions", "--jsonl").lines for om in (stepwise, at_once))
    assert {key: one.get(key) for key in keys} == {key: other.get(key) for key in keys}


@pytest.mark.parametrize("name", LINES)
def test_a_record_of_an_unknown_type_is_counted_and_the_rest_is_read(om: Om, name: str) -> None:
    unknown: dict[str, object] = {"type": "weather", "role": "barometer", "id": "w1", "data": {}, "parentId": None}
    lines = (STORIES / name).read_text(encoding="utf-8").splitlines()
    lines.insert(2, json.dumps(unknown))
    whole = observe(om, STORIES / name, "--later", "--session", "whole")
    report = observe(om, om.write("more.jsonl", "\n".join(lines) + "\n"), "--later", "--session", "more")
    assert report["messages"] == whole["messages"]
    assert sum(count for reason, count in report["skipped"].items() if reason.startswith("unknown-type:")) == 1


def test_a_session_that_gemini_writes_as_one_document_adds_only_what_is_new(om: Om) -> None:
    """The file is written again as a whole, and later as lines."""
    lines = [json.loads(line) for line in (STORIES / "gemini_calendar.jsonl").read_text(encoding="utf-8").splitlines()]
    last = {line["id"]: line for line in lines if "id" in line}
    for count in (4, 4, len(last)):
        document = {**lines[0], "messages": list(last.values())[:count]}
        report = observe(om, om.write("session.json", json.dumps(document, indent=2)), "--later")
    assert (report["new_messages"] > 0, report["known_messages"] > 0) == (True, True)
    as_lines = observe(om, STORIES / "gemini_calendar.jsonl", "--later")
    assert (as_lines["new_messages"], as_lines["messages"]) == (0, report["messages"])
    assert om("sessions", "--jsonl").lines[0]["title"] == "Moon phases in kelp"


def test_an_answer_of_gemini_that_goes_on_is_stored_as_a_continuation(om: Om) -> None:
    head = {"sessionId": "s", "projectHash": "p", "startTime": "2026-05-04T09:00:00.000Z"}
    asked = {"id": "u", "type": "user", "timestamp": "2026-05-04T09:00:00.000Z", "content": "Which tides?"}
    answer = {"id": "g", "type": "gemini", "timestamp": "2026-05-04T09:00:01.000Z", "tokens": {}, "content": "Spring"}
    longer = {**answer, "content": "Spring tides, on Tuesday."}
    path = om.write("tides.jsonl", "".join(json.dumps(line) + "\n" for line in (head, asked, answer)))
    observe(om, path, "--later")
    with path.open("a") as file:
        file.write(json.dumps(longer) + "\n")
    report = observe(om, path, "--later")
    assert (report["assistant_messages"], report["asides"]) == (1, 1)
    assert [found["text"] for found in om("context", "--json", "--session", "s").document["messages"]][1:] == [
        "Spring",
        "tides, on Tuesday.",
    ]


def test_an_answer_of_opencode_is_read_once_it_is_complete(om: Om) -> None:
    """A text that is being written, and a call without a result, wait for the next reading."""
    story = opencode_story()
    complete = story["messages"][1]
    running = json.loads(json.dumps(complete))
    running["info"]["time"].pop("completed")
    running["info"].pop("finish")
    text, call = (next(part for part in running["parts"] if part["type"] == kind) for kind in ("text", "tool"))
    text["time"].pop("end")
    text["text"] = text["text"][:10]
    call["state"] = {"status": "running", "input": call["state"]["input"], "time": {"start": 1}}
    first = observe(
        om, om.write("rooms.json", json.dumps({**story, "messages": [story["messages"][0], running]})), "--later"
    )
    assert (first["human_messages"], first["assistant_messages"], first["tool_calls"]) == (1, 0, 1)
    assert first["skipped"]["truncated"] == 2
    second = observe(om, om.write("rooms.json", json.dumps(story)), "--later")
    assert (second["known_messages"], second["new_messages"]) == (3, second["messages"] - 3)


def test_prompts_of_a_session_that_another_one_started_are_those_of_an_agent(om: Om) -> None:
    story = opencode_story()
    story["info"]["parentID"] = "ses_parent"
    report = observe(om, om.write("child.json", json.dumps(story)))
    assert (report["human_messages"], report["asides"] > 3) == (0, True)
    assert not [row for row in rows(om) if row["text"].startswith("User: ")]


# OpenCode's database


@pytest.mark.parametrize("log", [False, True])
def test_all_sessions_of_a_database_are_read_and_then_only_those_that_changed(om: Om, *, log: bool) -> None:
    path, story = om.folder / "opencode.db", opencode_story()
    other = json.loads(json.dumps(story).replace("ses_0b7e55d1lanterns", "ses_other").replace("msg_", "msg_o").replace(
        "prt_", "prt_o").replace("toolu_", "toolu_o").replace("lantern", "torch"))  # fmt: skip
    with database(path, log=log) as connection:
        put(connection, {**story, "messages": story["messages"][:3]})
        put(connection, other)
    first = observe(om, path)
    assert (first["format"], first["sessions"]) == ("opencode", [story["info"]["id"], "ses_other"])
    again = observe(om, path)
    assert (again["messages"], again["new_messages"]) == (0, 0)
    story["info"]["time"]["updated"] += 1
    with database(path) as connection:
        put(connection, story)
        grown = observe(om, path)  # while OpenCode is running
    assert (grown["sessions"], grown["new_messages"]) == ([story["info"]["id"]], grown["messages"] - 13)
    exported = observe(om, STORIES / "opencode_rooms.json")
    assert (exported["new_messages"], exported["messages"]) == (0, grown["messages"])
    assert_covered_once(om.place)
    assert {file.name for file in om.folder.glob("opencode.db*")} == {"opencode.db"}


def test_a_change_that_is_only_in_the_log_is_seen(om: Om) -> None:
    """`om watch` and `om consolidate` look at the log beside a database, because the database itself is as before."""
    home, story = om.home / ".local/share/opencode/opencode.db", opencode_story()
    with database(home, log=True) as connection:
        put(connection, {**story, "messages": story["messages"][:3]})
    os.utime(home, (time.time() - 100,) * 2)
    om("consolidate")
    before = home.read_bytes()
    with database(home) as connection:
        put(connection, story)
        assert home.read_bytes() == before
        done = om("consolidate", "--json").document
        assert [report["new_messages"] for report in done["files"]] == [4]
        assert om("watch", "--once", "--json", home.parent).document["followed"] == 1


def test_a_database_of_another_program_is_refused(om: Om) -> None:
    path = om.folder / "notes.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE note (text)")
    run = om("observe", path, code=65)
    assert "this is an SQLite database\nhint: om reads that of OpenCode, from its file" in run.stderr
    om("observe", stdin=path.read_bytes(), code=65)


def test_a_damaged_or_locked_database_is_an_error_of_that_file(om: Om) -> None:
    path = om.folder / "opencode.db"
    with database(path) as connection:
        put(connection, opencode_story())
    damaged = om.folder / "damaged.db"
    damaged.write_bytes(path.read_bytes()[:4096] + b"\1" * 20_000)
    assert "the database cannot be read: " in om("observe", damaged, code=66).stderr
    with database(path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        run = om("observe", path, STORIES / "gemini_calendar.jsonl")
        assert "the database cannot be read: database is locked" in run.stderr
    assert {row["session"] for row in rows(om)} == {"7d2f6a90-41c8-4b1e-9c35-0e6b7f1a2d55"}


# Where sessions are


def fill(home: Path) -> None:
    for story, place in {
        "gemini_calendar.jsonl": ".gemini/tmp/5b1c0f9d/chats/session-2026-05-04T09-00-7d2f6a90.jsonl",
        "copilot_queue.jsonl": ".copilot/session-state/2c8e1d77-9b0a-4f5e-8d21-6a3f0b9c4e10/events.jsonl",
        "cursor_menu.ndjson": ".cursor/projects/home-kim-canteen/agent-transcripts/3f1e/3f1e.jsonl",
    }.items():
        (home / place).parent.mkdir(parents=True)
        shutil.copy(STORIES / story, home / place)
    with database(home / ".local/share/opencode/opencode.db") as connection:
        put(connection, opencode_story())


def agents(om: Om) -> set[str]:
    return {session["agent"] for session in om("sessions", "--jsonl").lines}


def test_sessions_are_found_where_the_agents_keep_them(om: Om) -> None:
    fill(om.home)
    for file in om.home.rglob("*"):
        os.utime(file, (time.time() - 100,) * 2)
    om("consolidate")
    assert agents(om) == {"gemini", "copilot", "cursor", "opencode"}
    again = om("consolidate", "--json").document
    assert (again["files"], again["unchanged_files"]) == ([], 4)


def test_variables_of_the_agents_name_other_places(om: Om) -> None:
    fill(om.home)
    elsewhere = om.folder / "elsewhere"
    elsewhere.mkdir()
    for name in (".gemini", ".copilot", ".local"):
        shutil.move(om.home / name, elsewhere / name)
    env = {
        "GEMINI_CLI_HOME": str(elsewhere),
        "COPILOT_HOME": str(elsewhere / ".copilot"),
        "XDG_DATA_HOME": str(elsewhere / ".local/share"),
    }
    om("consolidate", "--db", om.place, env=env)
    assert agents(om) == {"gemini", "copilot", "cursor", "opencode"}
