"""`om note`: writing something down by hand."""

from __future__ import annotations

import re

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, tide_story


def test_a_note_is_printed_as_the_log_prints_it(om: Om) -> None:
    run = om("note", "we ship on Friday", "--type", "decision", "--now", "2026-02-10T09:00:00Z")
    assert re.fullmatch(r"[0-9a-f]{8} \[2026-02-10 09:00\] medium decision: we ship on Friday\n", run.stdout)
    assert om("log").stdout == run.stdout


def test_a_note_from_stdin_is_a_note_by_the_user_of_medium_priority(om: Om) -> None:
    """T66, D14: also without an argument."""
    for arguments in (["-"], []):
        row = om("note", *arguments, "--json", stdin="the harbour is\nin the east\n").document["observation"]
        assert (row["kind"], row["source"], row["priority"], row["importance"]) == ("note", "user", "medium", 5)
        assert row["text"] == "the harbour is in the east"


def test_an_empty_note_is_a_usage_error(om: Om) -> None:
    """T66."""
    for arguments in ([], ["-"], [""], [" \n"]):
        run = om("note", *arguments, code=2)
        assert (run.stdout, run.stderr.splitlines()[0]) == ("", "om: error: the note is empty")
    assert om("log").stdout == ""


def test_the_json_of_a_note_has_iso_times_and_no_nulls(om: Om) -> None:
    """T66."""
    document = om("note", "x", "--json", "--tag", "a", "--tag", "b", "--tag", "a", "--priority", "high").document
    row = document["observation"]
    assert None not in row.values()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["observed_at"])
    assert row["tags"] == ["a", "b"]
    assert row["priority"] == "high"
    assert om("log", "--jsonl").lines == [row], "F88: with --json the same is done"


def test_a_note_belongs_to_the_project_in_the_current_directory_or_to_a_session(om: Om) -> None:
    om("observe", stdin=tide_story().text())
    om("note", "of this directory")
    om("note", "of that session", "--session", tide_story().session)
    om("note", "of a session to come", "--session", "to-come")
    assert "of this directory" in om("log", "--project", ".").stdout
    assert "of this directory" not in om("log", "--project", PROJECT).stdout
    assert "of that session" in om("log", "--project", PROJECT, "--session", tide_story().session).stdout
    assert "of a session to come" in om("log", "--session", "to-come").stdout
    assert {row["id"]: row["agent"] for row in om("sessions", "--jsonl").lines} == {
        tide_story().session: "claude-code",
        "to-come": "om",
    }, "XD2"


def test_a_note_reaches_other_sessions_of_the_project(om: Om) -> None:
    om("note", "we ship on Friday", "--tag", "pinned")
    assert "we ship on Friday" in om("context").stdout


def test_secrets_in_a_note_stay_outside(om: Om) -> None:
    """F46."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    run = om("note", f"the token is {secret}", "--json")
    assert secret not in run.stdout + om("log", "--jsonl").stdout
    assert sum(run.document["redactions"].values()) == 1


def test_secrets_in_a_tag_stay_outside(om: Om) -> None:
    """F46."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    run = om("note", "we ship on Friday", "--tag", secret, "--tag", "pinned", "--tag", "<private>x</private>", "--json")
    assert secret not in run.stdout + om("log", "--jsonl").stdout
    assert run.document["observation"]["tags"] == ["[redacted:github-token]", "pinned"]
    assert sum(run.document["redactions"].values()) == 2


def test_a_note_resolves_a_failure_and_undoing_it_brings_that_back(om: Om) -> None:
    """S4.16: it takes the place of the row, in its session; the working-memory block says so, and what was noted."""
    om("observe", "-q", stdin=tide_story().text())
    block = ("context", "--working-memory", "--session", tide_story().session)
    before = om(*block).stdout
    (failure,) = om("log", "--jsonl", "--type", "command_error").lines
    run = om("note", "Cuxhaven was in the old table", "--resolves", failure["id"][-8:])
    assert run.stderr == "1 row resolved; `om undo 1` reverses that\n"
    assert om("log", "--jsonl", "--type", "command_error").lines == []
    (note,) = om("log", "--jsonl", "--kind", "note").lines
    assert note["session"] == failure["session"]
    after = om(*block).stdout
    (error,) = [line for line in after.splitlines() if "KeyError" in line]
    assert error.endswith(" (resolved)")
    assert "Cuxhaven was in the old table" in after
    shown = om("show", failure["id"], "--history").stdout
    assert f"superseded_by {note['id']}\nreason        resolved\n" in shown
    assert "hidden by     note 1, " in shown
    assert "note" in om("history").stdout
    om("undo")
    assert om(*block).stdout == before
    assert om("log", "--jsonl", "--type", "command_error").lines == [failure]
    assert om("log", "--jsonl", "--kind", "note").lines == []
    assert "1 row made, 1 row hidden  undone by 2" in om("history").stdout


def test_a_note_resolves_what_is_in_sight_and_nothing_else(om: Om) -> None:
    """S4.16: else nothing is written."""
    om("observe", "-q", stdin=tide_story().text())
    (failure,) = om("log", "--jsonl", "--type", "command_error").lines
    done = om("note", "done", "--resolves", failure["id"], "--json").document
    assert done["resolved"] == [failure["id"]]
    before = om("log", "--all", "--jsonl").stdout
    again = om("note", "again", "--resolves", failure["id"], code=65)
    assert again.stderr.startswith(f"om: error: `{failure['id'][-8:]}` is hidden already\nhint: ")
    om("note", "again", "--resolves", "ffffffff", code=65)
    assert om("log", "--all", "--jsonl").stdout == before


def test_what_comes_to_nothing_makes_no_store(om: Om) -> None:
    om("note", " ", code=2)
    om("observe", "--background", om.folder / "nowhere.jsonl", code=66)
    assert not om.has_store
