"""`om diff`: what the memory learnt, changed and forgot in a period."""

from __future__ import annotations

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import Talk

BEFORE, SINCE, AFTER, LAST = (f"2026-11-{day}T12:00Z" for day in (10, 15, 20, 25))


@pytest.fixture
def changed(om: Om) -> Om:
    """A memory with a preference that is replaced, one row that goes, one that comes, and one that stays."""
    talk = Talk(session="s", cwd=str(om.folder))
    om("observe", "-q", "--now", BEFORE, stdin=talk.user("Always use tabs for indentation.").text())
    om("note", "stays", "--now", BEFORE)
    om("note", "goes", "--now", BEFORE)
    om("observe", "-q", "--now", AFTER, stdin=talk.user("Use spaces instead of tabs for indentation.").text())
    goes = next(row["id"] for row in om("log", "--jsonl").lines if row["text"] == "goes")
    om("note", "comes", "--now", AFTER)
    om("note", "comes and goes", "--now", AFTER)
    comes = next(row["id"] for row in om("log", "--jsonl").lines if row["text"] == "comes and goes")
    om("forget", goes, "--now", AFTER)
    om("forget", comes, "--now", AFTER)
    return om


def test_what_came_what_was_replaced_and_what_went(changed: Om) -> None:
    run = changed("diff", "--since", SINCE, "--now", LAST)
    written, before, comes, *gone = run.stdout.splitlines()
    assert written.startswith("+ ")
    assert "Use spaces instead of tabs" in written
    assert before.startswith("- ")
    assert before.endswith("User: Always use tabs for indentation. (superseded)")
    assert comes.startswith("+ ")
    assert comes.endswith("fact: comes")
    assert gone == [f"- [2026-11-20 12:00] forget {number}: 1 row hidden" for number in (1, 2)]
    assert run.stderr.endswith("1 replaced, 0 dropped\n")
    changed("undo", "1", "--now", LAST)
    assert "forget 1" not in changed("diff", "--since", SINCE, "--now", LAST).stdout


def test_a_period_ends_before_what_came_later(changed: Om) -> None:
    run = changed("diff", "--since", "2026-11-01", "--until", SINCE, "--json")
    assert [row["text"] for row in run.document["added"]] == ["User: Always use tabs for indentation.", "stays"]
    assert run.document["dropped"] == []
    assert all(row["replaces"] == [] for row in run.document["added"])


def test_a_period_may_have_an_end_only(changed: Om) -> None:
    assert "stays" in changed("diff", "--until", SINCE, "--now", LAST).stdout


def test_a_row_forgotten_by_its_id_is_told_of_in_any_scope(changed: Om) -> None:
    assert "forget 1" in changed("diff", "--project", ".", "--since", SINCE, "--now", LAST).stdout


def test_json_has_the_rows_in_full(changed: Om) -> None:
    found = changed("diff", "--since", SINCE, "--json").document
    assert [each["verb"] for each in found["operations"]] == ["forget", "forget"]
    (before,) = next(row["replaces"] for row in found["added"] if "spaces" in row["text"])
    assert before["message_ids"]


def test_the_last_day_is_shown_unless_a_period_is_given(changed: Om) -> None:
    assert changed("diff", "--now", LAST).stdout == ""
    assert changed("diff", "--now", "2026-11-20T13:00Z").stdout.count("\n") > 2


def test_pruned_rows_are_told_by_their_operation(om: Om) -> None:
    """Once; --json has them. A row whose replacement was pruned is named, because it went, too."""
    om("note", "old", "--now", BEFORE)
    om("note", "older", "--now", BEFORE)
    old = next(row["id"] for row in om("log", "--jsonl").lines if row["text"] == "old")
    om("note", "new", "--resolves", old, "--now", AFTER)
    om("prune", "--cross", "--older-than", SINCE, "--yes", "--now", AFTER)
    lines = om("diff", "--since", SINCE, "--now", LAST).stdout.splitlines()
    assert [line.partition("]")[2] for line in lines] == [
        " medium fact: new",
        " medium fact: old (superseded)",
        " prune 2: 1 row hidden",
    ]
    om("prune", "--cross", "--older-than", LAST, "--yes", "--now", LAST)
    run = om("diff", "--since", SINCE, "--now", LAST)
    assert [line.partition("]")[2] for line in run.stdout.splitlines()] == [
        " medium fact: old (superseded)",
        " prune 2: 1 row hidden",
        " prune 3: 1 row hidden",
    ]
    dropped = om("diff", "--since", SINCE, "--now", LAST, "--json").document["dropped"]
    assert [row["text"] for row in dropped] == ["old", "older"]


def test_a_row_is_named_although_what_replaced_it_went(om: Om) -> None:
    """As a row between both is not, because it was written and went within the period; and not before it went."""
    om("note", "first", "--now", BEFORE)
    for text, day in (("second", "16"), ("third", "20")):
        last = om("log", "--jsonl").lines[-1]["id"]
        om("note", text, "--resolves", last, "--now", f"2026-11-{day}T12:00Z")
    third = om("log", "--jsonl").lines[-1]["id"]
    words = ("diff", "--since", SINCE, "--now", LAST)
    lines = [line.partition("]")[2] for line in om(*words).stdout.splitlines()]
    assert lines == [" medium fact: third", " medium fact: first (superseded)"]
    assert "second" in om(*words, "--until", "2026-11-18").stdout
    om("note", "other", "--now", AFTER)
    om("prune", "--cross", "--keep-last", "1", "--yes", "--now", AFTER)
    assert third not in {row["id"] for row in om("log", "--jsonl").lines}
    run = om(*words, "--json").document
    assert [row["text"] for row in run["added"]] == ["other"]
    assert [row["text"] for row in run["dropped"]] == ["first"]


def test_many_replaced_rows_are_counted(om: Om) -> None:
    """They could be a page."""
    for number in range(5):
        om("note", f"step {number}", "--now", BEFORE)
    resolved = [word for row in om("log", "--jsonl").lines for word in ("--resolves", row["id"])]
    om("note", "all steps are done", *resolved, "--now", AFTER)
    run = om("diff", "--since", SINCE, "--now", LAST)
    assert [line[:2] for line in run.stdout.splitlines()] == ["+ ", "- "]
    assert run.stdout.endswith("- 5 rows replaced by it\n")
    (added,) = om("diff", "--since", SINCE, "--now", LAST, "--json").document["added"]
    assert len(added["replaces"]) == 5
