"""`om observe` on transcripts that other programs really wrote: the counts that each must give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Om
from tests.shared import TRANSCRIPTS, expected, needs_shared
from tests.soak import first_only

pytestmark = needs_shared

# What the collection calls a format, and what om does.
NAMES = {
    "claude-code": "claude-code",
    "codex": "codex",
    "openai-responses": "codex",
    "pi": "pi",
    "openclaw": "pi",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
    "plain-text": "text",
    "gemini-cli": "gemini",
    "copilot-cli": "copilot",
    "opencode": "opencode",
    "cursor": "cursor",
}
OTHERS = ("cursor/test-store.db", "cursor/specstory/", "opencode/storage_")
"""A database without messages, exports of SpecStory, and sessions in files of their own, with messages in others."""
COUNTS = (
    "messages", "human_messages", "assistant_messages", "tool_calls", "tool_results", "errors", "compactions",
)  # fmt: skip
CHAINS = {
    "claude-code/growing/cc432c40-914a-4c1a-a972-0103199a736a": [23, 12, 12, 18, 16],
    "claude-code/growing/f736da47-b2ca-4f86-bb32-a1bbe582e464": [36, 54, 33, 0],
}
RESUMED = "claude-code/projects/-Users-dain-workspace-claude-code-log-sample"


def files(role: str, *formats: str) -> list[str]:
    """Paths of the collection with a role, of some formats or all that om reads."""
    wanted = formats or tuple(NAMES)
    return [
        path
        for path, about in expected().items()
        if about["role"] == role and about.get("format") in wanted and not path.startswith(OTHERS)
    ]


def test_conversations_are_read_as_the_collection_says(new_om: Callable[[], Om]) -> None:
    """Counts, session and directory of each; a store per format, since one per file would take minutes."""
    found = dict[str, list[object]]()
    for name in NAMES:
        paths = files("conversation", name)
        if not paths:
            continue
        run = new_om()("observe", "--later", "--json", *(TRANSCRIPTS / path for path in paths), code=None)
        for path, report in zip(paths, run.document["files"], strict=True):
            found[path] = [*wrong_counts(expected()[path], report), *wrong_session(expected()[path]["facts"], report)]
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("part", first_only([2, 1]))
def test_most_conversations_give_rows(new_om: Callable[[], Om], part: int) -> None:
    """Each row with the messages that it is of; in the suite the shorter half of the files of each format."""
    with_rows = list[bool]()
    for name in NAMES:
        by_size = sorted(files("conversation", name), key=lambda path: (TRANSCRIPTS / path).stat().st_size)
        paths = by_size[: -(-len(by_size) // part)]
        if not paths:
            continue
        run = new_om()("observe", "--json", *(TRANSCRIPTS / path for path in paths), code=None)
        for path, report in zip(paths, run.document["files"], strict=True):
            with_rows.append(report["observations"] > 0)
            assert all(row["message_ids"] for row in report.get("rows", ())), path
    assert sum(with_rows) > 0.8 * len(with_rows) > 20


def wrong_counts(about: dict[str, Any], report: dict[str, Any]) -> Iterator[object]:
    """Yield what a report says otherwise than the collection about a file's format and messages."""
    if "error" in report:
        yield report["error"]
    if report["format"] != NAMES[about["format"]]:
        yield report["format"]
    for name in COUNTS:
        if about["facts"].get(name) not in (None, report[name]):
            yield name, report[name], about["facts"][name]
    if report["new_messages"] + report["known_messages"] != report["messages"]:
        yield report["new_messages"], report["known_messages"], report["messages"]


def wrong_session(facts: dict[str, Any], report: dict[str, Any]) -> Iterator[object]:
    """Yield what a report says otherwise than the file about its session and directory."""
    if report.get("cwd") != facts["cwd"]:
        yield report.get("cwd"), facts["cwd"]
    if facts["session_id"] is not None:
        if report["session_id"] != facts["session_id"]:
            yield report["session_id"], facts["session_id"]
    elif len(report["sessions"]) < 2 and not report["session_id"].startswith(f"{report['format']}-"):
        yield report["session_id"]


@pytest.mark.parametrize("path", files("probe") + files("side-car"))
def test_a_probe_is_read_or_refused_without_a_traceback(om: Om, path: str) -> None:
    run = om("observe", "--json", TRANSCRIPTS / path, code=None)
    assert run.code in (0, 65), run.stderr


@pytest.mark.parametrize("path", [path for path in expected() if expected()[path].get("format") not in NAMES][::6])
def test_a_transcript_of_another_program_is_read_or_refused_without_a_traceback(om: Om, path: str) -> None:
    assert om("observe", "--json", TRANSCRIPTS / path, code=None).code in (0, 65)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_growing_transcript_adds_what_is_new_at_every_step(om: Om, chain: str) -> None:
    """S0.8, F68: each step is the file as it was a while later."""
    steps = sorted((TRANSCRIPTS / chain).glob("step-*.jsonl"))
    new = [om("observe", "--json", step).document["files"][0]["new_messages"] for step in steps]
    assert new == CHAINS[chain]
    rows = om("log", "--jsonl").lines
    again = om("observe", "--json", *steps).document["files"]
    assert [report["new_messages"] for report in again] == [0] * len(steps)
    assert om("log", "--jsonl").lines == rows, "and no row is written twice"


def test_growing_in_steps_and_reading_at_once_keep_the_same_messages(new_om: Callable[[], Om]) -> None:
    steps = sorted((TRANSCRIPTS / next(iter(CHAINS))).glob("step-*.jsonl"))
    stepwise, at_once = new_om(), new_om()
    for step in steps:
        stepwise("observe", "-q", step)
    at_once("observe", "-q", steps[-1])
    keys = ("messages", "first_at", "last_at", "pending")
    (one,), (other,) = (om("sessions", "--jsonl").lines for om in (stepwise, at_once))
    assert {key: one[key] for key in keys} == {key: other[key] for key in keys}


def test_a_record_that_resumed_sessions_share_is_in_no_session_twice(om: Om) -> None:
    """F68: the three files have one `uuid` in common, and it is no message."""
    paths = sorted((TRANSCRIPTS / RESUMED).glob("*.jsonl"))
    assert len(paths) == 3
    found = om("observe", "--json", *paths).document["files"]
    assert sum(report["new_messages"] for report in found) == sum(report["messages"] for report in found)
    assert sum(row["messages"] for row in om("sessions", "--jsonl").lines) == 58


def test_a_resumed_session_adds_only_its_own_messages(om: Om) -> None:
    """F68: the second file begins with a copy of records of the first."""
    first, second = (TRANSCRIPTS / "claude-code" / "fixtures" / name for name in ("dag_fork.jsonl", "dag_resume.jsonl"))
    copied = len(_records(first) & _records(second))
    _, resumed = om("observe", "--json", first, second).document["files"]
    assert copied == 5
    assert (resumed["known_messages"], resumed["new_messages"]) == (copied, resumed["messages"] - copied)


def _records(path: Path) -> set[tuple[str, str]]:
    """Ids with what is said under them: these fixtures use some ids for two texts."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    spoken = (record for record in records if record.get("type") in ("user", "assistant"))
    return {(record["uuid"], json.dumps(record["message"])) for record in spoken}


def test_the_files_are_the_ones_that_were_counted() -> None:
    """Else the numbers above mean nothing."""
    for path in files("conversation")[::10]:
        assert hashlib.sha256((TRANSCRIPTS / path).read_bytes()).hexdigest() == expected()[path]["sha256"]


@needs_shared
def test_a_prompt_history_adds_nothing_to_the_session_it_belongs_to(om: Om) -> None:
    """F68: the same 63 prompts in the history and in the session, in either order."""
    session = TRANSCRIPTS / "codex" / "rollout-2025-10-31T19-02-58-c61729d4-da6d-46a4-9a29-ec2c614e5e23.jsonl"
    _, history = om("observe", "--json", session, TRANSCRIPTS / "codex" / "history.jsonl").document["files"]
    assert (history["new_messages"], history["known_messages"], history["observations"]) == (0, 63, 0)
