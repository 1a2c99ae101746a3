"""One option name for one thing: the same filters and the same budget wherever they make sense."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk, long_talk, tide_story


@pytest.fixture
def told(om: Om) -> Om:
    """Two sessions, two items and two operations, on different days."""
    moon = Talk(session="moon", cwd="/home/ada/moon", begin=datetime(2026, 2, 12, 9, tzinfo=UTC))
    moon.user("We decided to use UTC.")
    om("observe", "-q", "--now", "2026-02-10T10:00Z", stdin=tide_story().text())
    om("observe", "-q", "--now", "2026-02-12T10:00Z", stdin=moon.text())
    om("note", "--item", "Tides are in metres", "--tag", "Units", "--now", "2026-02-10T11:00Z")
    om("note", "--item", "The moon is grey", "--session", "moon", "--now", "2026-02-12T11:00Z")
    om("prune", "--keep-last", "4", "--session", tide_story().session, "--now", "2026-02-10T12:00Z")
    om("prune", "--keep-last", "0", "--session", "moon", "--now", "2026-02-12T12:00Z")
    return om


def ids(om: Om, *arguments: str, key: str) -> list[object]:
    return [line[key] for line in om(*arguments, "--jsonl").lines]


def test_a_period_narrows_every_list(told: Om) -> None:
    early, late = ["--until", "2026-02-11"], ["--since", "2026-02-11"]
    assert ids(told, "sessions", *early, key="id") == [tide_story().session]
    assert ids(told, "sessions", *late, key="id") == ["moon"]
    assert ids(told, "history", *early, key="number") == [1]
    assert ids(told, "history", *late, key="number") == [2]
    assert ids(told, "items", *early, key="text") == ["Tides are in metres"]
    assert ids(told, "items", *late, key="text") == ["The moon is grey"]
    for command in ("sessions", "history", "items", "log", "usage"):
        assert "not before" in told(command, "--since", "2026-02-11", "--until", "2026-02-10", code=2).stderr


def test_an_export_takes_the_filters_of_the_log(told: Om) -> None:
    def exported(*options: str) -> str:
        return told("export", "--to", "zora", "--all", *options).stdout

    assert "We decided to use UTC." in exported()
    assert "We decided to use UTC." not in exported("--until", "2026-02-11")
    assert "Tides are in metres" not in exported("--since", "2026-02-12T10:30Z")
    assert "The moon is grey" in exported("--since", "2026-02-12T10:30Z")
    assert exported("-n", "0") == ""
    assert len(exported("-n", "1").splitlines()) == 1


def test_a_session_and_a_project_narrow_history_and_items(told: Om) -> None:
    assert ids(told, "history", "--session", "moon", key="number") == [2]
    assert told("history", "--session", "nobody", code=66).stdout == ""
    assert ids(told, "items", "--session", "moon", key="text") == ["The moon is grey"]
    assert ids(told, "sessions", "--project", PROJECT, key="id") == [tide_story().session]


def test_the_last_of_a_list_are_counted_after_the_filters(told: Om) -> None:
    assert ids(told, "items", "-n", "1", key="text") == ["The moon is grey"]
    assert ids(told, "items", "-n", "1", "--until", "2026-02-11", key="text") == ["Tides are in metres"]
    assert ids(told, "sessions", "-n", "1", "--until", "2026-02-11", key="id") == [tide_story().session]
    assert ids(told, "history", "-n", "1", "--until", "2026-02-11", key="number") == [1]
    assert ids(told, "items", "-n", "0", key="text") == []


def test_a_tag_narrows_the_log_as_it_does_the_items(told: Om) -> None:
    assert ids(told, "log", "--tag", "units", key="text") == ["Tides are in metres"]
    assert ids(told, "items", "--tag", "units", key="text") == ["Tides are in metres"]
    assert ids(told, "log", "--tag", "units", "--tag", "none", key="text") == []
    told("note", "--item", "Ships are in tons", "--tag", "units")
    assert ids(told, "log", "--tag", "units", "-n", "1", key="text") == ["Ships are in tons"]


@pytest.mark.parametrize(
    ("command", "options", "former"),
    [
        (
            "compact --dry-run",
            "--budget 600 --tail-budget 100 --batch-tokens 900",
            "--target-tokens 600 --keep-recent 100 --chunk 900",
        ),
        ("pending", "--budget 40", "--limit 40"),
        ("prune", "--budget 30 --dry-run", "--max-tokens 30 --dry-run"),
        ("context", "--working-memory", "--block"),
    ],
)  # fmt: skip
def test_former_names_of_options_still_work(told: Om, command: str, options: str, former: str) -> None:
    told(
        "observe", "-q", "--later", stdin=Talk(session="late").user("We decided to go. " * 20).user("And back.").text()
    )
    told("observe", "-q", stdin=long_talk("long", 80).text())
    session = {"pending": "late", "compact --dry-run": "long"}.get(command, tide_story().session)
    runs = [
        told(*command.split(), "--session", session, "--json", *words.split(), code=None) for words in (options, former)
    ]
    assert runs[0].stdout == runs[1].stdout != ""
    assert runs[0].code == runs[1].code == 0


def test_layouts_of_messages_are_the_same_in_context_and_compact(told: Om) -> None:
    session = ("--session", tide_story().session)
    for to in ("text", "markdown", "xml", "json", "messages", "anthropic"):
        assert told("context", *session, "--to", to).stdout
        assert told("compact", *session, "--to", to, "--dry-run", code=None).code in (0, 1), "known, if of no use"
    assert "'pi' is not one of" in told("context", *session, "--to", "pi", code=2).stderr, (
        "pi has a compaction hook alone"
    )
