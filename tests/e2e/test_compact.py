"""`om compact`: a transcript goes in, what an agent needs to go on from it comes out, within the target."""

from __future__ import annotations

import json

import pytest

from omcli.tokenizers.table import counter
from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk, long_talk, tide_story


def test_what_was_asked_changed_and_said_stands_in_the_pack(om: Om) -> None:
    """S0.6, S4.1: the request word for word, the file, the failed command, what the agent reported."""
    run = om("compact", stdin=tide_story().text())
    for said in (
        "Please add a --station flag to tides.py so that I can pick Cuxhaven.",
        "Always use metric units.",
        "tides.py: `parse()` → `parse(station)`",
        "KeyError: 'Cuxhaven'",
        "the ids are looked up in lower case now, and all 12 tests pass.",
    ):
        assert said in run.stdout
    assert run.stderr.startswith("-: 8 messages in ")


@pytest.mark.parametrize("to", ["text", "markdown", "xml", "json", "messages"])
def test_the_target_is_never_exceeded(om: Om, to: str) -> None:
    """F50: in the printed form, by the counter it is stated in, down to nothing."""
    talk = om.write("long.jsonl", long_talk("one", 200).text())
    for target, name in ((0, "chars-4"), (40, "o200k-approx"), (300, "chars-4"), (2000, "o200k-approx")):
        printed = om("compact", talk, "--target-tokens", str(target), "--to", to, "--counter", name).stdout
        assert counter(name).text(printed) <= target
    assert "rule 0 of one" in om("compact", talk, "--to", to).stdout


def test_the_agent_is_quoted_and_every_quote_leads_to_its_message(om: Om) -> None:
    """S4.14: nothing is worded anew, and what was shortened is still there."""
    said = "The parser reads the station table twice. The second pass drops ids with capitals, so Cuxhaven is missing."
    talk = Talk().user("Why is Cuxhaven missing?").assistant(said)
    talk.user("And what of the others?").assistant(
        " ".join(f"Station {number} is in the table." for number in range(150))
    )
    rows = om("compact", "--json", "--target-tokens", "6000", stdin=talk.text()).document["observations"]
    (quote,) = [row for row in rows if row["text"] == f"Agent: {said}"]
    assert said in om("show", quote["id"]).stdout
    assert not [row for row in om("log", "--jsonl").lines if row["id"] == quote["id"]], "a quote is no row"


def test_compacting_again_takes_in_what_is_new_and_doubles_nothing(om: Om) -> None:
    """S0.8: as `om observe` does."""
    talk = tide_story()
    path = om.write("tide.jsonl", talk.text())
    first = om("compact", path).stdout
    assert om("compact", path).stdout == first
    path.write_text(talk.user("Now rename the flag to --harbour.").text(), encoding="utf-8")
    assert "rename the flag to --harbour" in om("compact", path).stdout
    assert om("status", "--json").document["messages"] == 9


def test_only_the_transcript_s_own_session_is_in_the_pack(om: Om) -> None:
    """F53: what other sessions left behind is for `om context`."""
    om("observe", "-q", stdin=Talk(session="other").user("Always run make lint before you push.").text())
    assert "make lint" not in om("compact", stdin=tide_story().text()).stdout


def test_of_several_sessions_the_first_is_shortened_and_the_others_are_told_of(om: Om) -> None:
    """Nothing is left out in silence."""
    moon = Talk(session="moon").user("We decided to draw the moon in grey.")
    run = om("compact", stdin=tide_story().text() + moon.text())
    told, report = run.stderr.splitlines()
    assert "moon" not in run.stdout
    assert "1 other session of it left out" in told
    assert told.startswith("om: only `")
    assert report.startswith("-: 9 messages in ")


def test_the_last_tool_events_are_told_by_their_rows(om: Om) -> None:
    """T57: the tail holds what was said; it never begins with a result whose call is gone."""
    talk = tide_story().call("Read", {"file_path": f"{PROJECT}/stations.json"}).result('{"cuxhaven": 12}\n' * 400)
    document = om("compact", "--json", stdin=talk.text()).document
    assert {message["role"] for message in document["messages"]} <= {"user", "assistant"}


def test_nothing_to_compact_prints_nothing(om: Om) -> None:
    """F56, T59."""
    run = om("compact", stdin="")
    assert (run.stdout, run.stderr) == ("", "-: no messages\n")


def test_what_cannot_be_read_is_said_with_its_exit_code(om: Om) -> None:
    """F56, F60."""
    assert om("compact", om.folder / "absent.jsonl", code=66).stdout == ""
    garbage = om.write("garbage.jsonl", "\x00\x01\x02" * 100)
    refused = om("compact", garbage, code=65)
    assert refused.stdout == ""
    assert refused.stderr.count("om: error:") == 1
    assert om("compact", "--json", "--to", "xml", code=2, stdin=tide_story().text()).stdout == ""


def test_where_nothing_may_be_written_nothing_is_compacted(om: Om) -> None:
    run = om("compact", stdin=tide_story().text(), env={"OM_DISABLED": "1"})
    assert run.stdout == ""
    assert "OM_DISABLED" in run.stderr
    assert not om.db.exists()


def test_messages_without_times_are_compacted_as_well(om: Om) -> None:
    """F70."""
    turns = [
        {"role": "user", "content": "Where is the cache?"},
        {"role": "assistant", "content": "In var/cache/tiles."},
    ]
    run = om("compact", "--format", "openai", stdin="".join(json.dumps(turn) + "\n" for turn in turns))
    assert "In var/cache/tiles." in run.stdout
