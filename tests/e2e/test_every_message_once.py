"""Transcripts that are cut, copied, reordered and repeated: each message is kept once, and observed once."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from omcli.sqlite.connection import steps
from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, connected, number_of, opened
from tests.e2e.transcripts import Talk, long_talk, tide_story

WEEK = 7 * 24 * 3600


def lines(chosen: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in chosen)


def observed(om: Om, *arguments: str | Path, stdin: str = "") -> dict[str, Any]:
    """The report of one input."""
    (report,) = om("observe", "--json", *arguments, stdin=stdin).document["files"]
    assert isinstance(report, dict)
    return report


def kept(om: Om) -> list[str]:
    """What was said, in the order of arrival."""
    with opened(om.place) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM messages ORDER BY seq")]


def stretches(om: Om) -> list[tuple[int, int]]:
    """What the batches cover, in order: the `seq` that each follows, and its last one."""
    with opened(om.place) as connection:
        return list(connection.execute("SELECT after, through FROM batches ORDER BY number"))


def rows(om: Om) -> list[str]:
    return [row["text"] for row in om("log", "--jsonl").lines]


CHAT = [
    {"role": role, "content": text}
    for role, text in (
        ("user", "We decided to call it Tern."),
        ("assistant", "Tern it is."),
        ("user", "ok"),
        ("assistant", "Anything else?"),
        ("user", "ok"),
        ("user", "We decided to ship on Monday."),
    )
]
"""Without ids and times: what is said twice is told apart by how often it was said before."""


class TestTheFile:
    @pytest.mark.parametrize("gone", [[7], [6, 7], [3, 4, 7], [*range(2, 8)]], ids=str)
    def test_the_last_line_that_was_observed_may_be_gone(self, om: Om, gone: list[int]) -> None:
        """F2, S2.10: where it goes on is known by what is stored, not by a place in the file."""
        talk = tide_story()
        transcript = om.write("tide.jsonl", talk.text())
        om("observe", "-q", transcript)
        before = rows(om)
        left = [line for number, line in enumerate(talk.lines) if number not in gone]
        new = talk.user("We decided to use PNG.").assistant("Noted.").lines[-2:]
        transcript.write_text(lines([*left, *new]))
        report = observed(om, transcript)
        assert (report["new_messages"], report["known_messages"]) == (2, len(left))
        assert [row["text"] for row in report["rows"]] == ["User: We decided to use PNG."]
        assert rows(om) == [*before, "User: We decided to use PNG."]
        assert_covered_once(om.place)

    def test_the_last_line_may_be_gone_also_where_messages_have_neither_ids_nor_times(self, om: Om) -> None:
        """F2, F68."""
        om("observe", "-q", stdin=json.dumps(CHAT))
        changed = [*CHAT[:4], {"role": "user", "content": "We decided to drop PNG."}]
        report = observed(om, stdin=json.dumps(changed))
        assert (report["new_messages"], report["known_messages"]) == (1, 4)
        assert len(om("sessions", "--jsonl").lines) == 1
        assert_covered_once(om.place)

    def test_a_file_that_was_rewritten_adds_only_what_is_new(self, om: Om) -> None:
        """F2: other messages in front, and some in between."""
        talk = tide_story()
        transcript = om.write("tide.jsonl", talk.text())
        om("observe", "-q", transcript)
        other = Talk(session="other", begin=datetime(2026, 2, 9, tzinfo=UTC))
        other.user("We decided on Python 3.12.").user("We decided to keep the logs.")
        first, second = (line.replace('"sessionId": "other"', f'"sessionId": "{talk.session}"') for line in other.lines)
        transcript.write_text(lines([first, *talk.lines[:4], second, *talk.lines[4:]]))
        assert observed(om, transcript)["new_messages"] == 2
        assert observed(om, transcript)["new_messages"] == 0
        assert_covered_once(om.place)

    def test_a_file_read_while_it_grows_gives_what_the_whole_file_does(self, new_om: Callable[[], Om]) -> None:
        """F59, F22: cut at any byte, also within a line and within a character."""
        whole, growing = new_om(), new_om()
        content = long_talk("ä", 40, lines=2).user("Größe: we decided on 3 €.").text().encode()
        whole("observe", "-q", whole.write("whole.jsonl", content))
        cuts = sorted(random.Random(59).sample(range(len(content)), 12))
        for cut in (*cuts, len(content)):
            path = growing.write("growing.jsonl", content[:cut])
            growing("observe", "-q", path, code=None if cut < 400 else 0)
        assert kept(growing) == kept(whole)
        assert_covered_once(growing.place)

    def test_a_short_session_is_stored_and_observed(self, om: Om) -> None:
        """F9: three messages are enough; so is one."""
        talk = Talk().user("We decided to use PNG.").assistant("Noted.").user("Thanks.")
        assert observed(om, stdin=talk.text())["observations"] == 1
        assert observed(om, stdin=Talk(session="one").user("We decided to use SVG.").text())["observations"] == 1
        assert om("status", "--json").document["pending"] == 0

    def test_an_old_file_is_observed(self, om: Om) -> None:
        """F10: last modified ten days ago, or in 1970."""
        for name, modified in (("a", time.time() - 10 * 24 * 3600), ("b", 0)):
            path = om.write(f"{name}.jsonl", Talk(session=name).user(f"We decided on {name}.").text())
            os.utime(path, (modified, modified))
            assert observed(om, path)["observations"] == 1


class TestImports:
    def test_older_messages_that_come_later_are_observed(self, om: Om) -> None:
        """F12, F70: by the order in which they arrive, whatever their times say."""
        talk = long_talk("one", 200)
        newer, older = lines(talk.lines[100:]), lines(talk.lines[:100])
        first = observed(om, stdin=newer)
        second = observed(om, stdin=older)
        assert (first["new_messages"], second["new_messages"]) == (100, 100)
        assert len(first["rows"]) == len(second["rows"]) >= 50
        assert_covered_once(om.place)

    def test_pieces_in_any_order_and_more_than_once_add_up_to_the_whole(self, new_om: Callable[[], Om]) -> None:
        """F12, F68, T73: a new process for each, sixteen of them, some overlapping, some repeated."""
        chance, whole, pieces = random.Random(68), new_om(), new_om()
        talk = long_talk("one", 240)
        whole("observe", "-q", stdin=talk.text())
        # Some begin with a result whose call is in another piece.
        ends = [(at, at + 30) for at in range(0, 240, 30)] + [(at, at + 50) for at in chance.sample(range(190), 8)]
        chance.shuffle(ends)
        new = [observed(pieces, stdin=lines(talk.lines[begin:end]))["new_messages"] for begin, end in ends]
        assert sum(new) == 240
        assert sorted(kept(pieces)) == sorted(kept(whole))
        assert_covered_once(pieces.place)
        decisions = sorted(row for row in rows(pieces) if "decided" in row)
        assert decisions == sorted(row for row in rows(whole) if "decided" in row)

    def test_a_session_fed_in_pieces_is_there_in_all_tiers(self, om: Om) -> None:
        """T73: 120 messages, a new process per command; the tail fits what it was given."""
        talk = long_talk("one", 120)
        om("observe", "-q", stdin=Talk(session="other").user("Always run make lint before you push.").text())
        for begin in range(0, 120, 15):
            om("observe", "-q", stdin=lines(talk.lines[begin : begin + 15]))
        assert_covered_once(om.place)
        pack = om("context", "--session", "one", "--tail-budget", "300", "--to", "json").document
        assert ["make lint" in row["text"] for row in pack["cross"]] == [True]
        assert len(pack["observations"]) > 30
        assert 0 < pack["tokens"]["tail"] <= 300

    @pytest.mark.parametrize("together", [True, False])
    def test_files_that_share_their_history_give_each_message_once(self, om: Om, together: bool) -> None:
        """F68: a session resumed under a new id copies the 200 messages before it; a snapshot repeats the file."""
        history = long_talk("first", 200)
        resumed = [line.replace('"sessionId": "first"', '"sessionId": "second"') for line in history.lines]
        more = Talk(session="second", begin=datetime(2026, 3, 1, tzinfo=UTC)).user("We decided to use PNG.")
        paths = [
            om.write("first.jsonl", history.text()),
            om.write("second.jsonl", lines([*resumed, *more.lines])),
            om.write("snapshot.jsonl", history.text()),
        ]
        if together:
            reports = om("observe", "--json", *paths).document["files"]
        else:
            reports = [observed(om, path) for path in paths]
        assert [report["new_messages"] for report in reports] == [200, 1, 0]
        assert sum("rule 7 of" in row for row in rows(om)) == 1
        assert {row["id"]: row["messages"] for row in om("sessions", "--jsonl").lines} == {"first": 200, "second": 1}
        assert_covered_once(om.place)

    def test_a_resumed_session_that_comes_before_the_one_it_copies_keeps_the_history(self, om: Om) -> None:
        """F68, F12: nothing is lost whichever comes first."""
        history = long_talk("first", 40)
        resumed = [line.replace('"sessionId": "first"', '"sessionId": "second"') for line in history.lines]
        assert observed(om, stdin=lines(resumed))["new_messages"] == 40
        history.user("We decided to use PNG.")
        assert observed(om, stdin=history.text())["new_messages"] == 1
        assert_covered_once(om.place)

    def test_the_clock_may_go_back_between_two_runs(self, om: Om) -> None:
        """F12, T75: times are what the clock says; what is observed and in which order does not depend on it."""
        talk = tide_story()
        om("observe", "-q", "--now", "2026-03-02T10:00:00Z", stdin=talk.text())
        before = om("log").stdout
        talk.user("We decided to use PNG.")
        (report,) = om("observe", "--json", "--now", "2020-01-01T00:00:00Z", stdin=talk.text()).document["files"]
        assert (report["new_messages"], report["observations"]) == (1, 1)
        assert om("log").stdout.startswith(before)
        assert om("status", "--json").document["pending"] == 0
        assert om("sessions", "--jsonl").lines[0]["seen_at"] == "2026-03-02T10:00:00.000Z"
        assert_covered_once(om.place)


class TestTheCursor:
    def test_a_batch_begins_behind_what_is_covered_and_nothing_new_is_no_batch(self, om: Om) -> None:
        """T8, T15: all four messages, then the two that follow; none, and the cursor stays, where nothing is new."""
        talk = Talk().user("We decided to use PNG.").assistant("Noted.").user("Thanks.").assistant("Sure.")
        om("observe", "-q", stdin=talk.text())
        om("observe", "-q", stdin=talk.text())
        assert stretches(om) == [(0, 4)]
        om("observe", "-q", stdin=talk.user("We decided to ship on Monday.").assistant("Noted.").text())
        om("observe", "-q", stdin="")
        assert stretches(om) == [(0, 4), (4, 6)]

    def test_earlier_messages_that_come_later_do_not_take_the_cursor_back(self, om: Om) -> None:
        """T16, F12: it stands at the highest place that was covered."""
        talk = long_talk("one", 40)
        om("observe", "-q", stdin=lines(talk.lines[20:]))
        om("observe", "-q", stdin=lines(talk.lines[:20]))
        assert stretches(om) == [(0, 20), (20, 40)]
        om("observe", "-q", stdin=talk.text())
        assert stretches(om) == [(0, 20), (20, 40)]

    def test_rows_that_are_gone_do_not_bring_their_messages_back(self, om: Om) -> None:
        """F16: how far a session is observed is not derived from rows."""
        om("observe", "-q", stdin=tide_story().text())
        assert rows(om)
        with connected(om.place) as connection:
            connection.execute("DELETE FROM observation_sources")
            connection.execute("DELETE FROM observations")
        assert observed(om, stdin=tide_story().text())["observations"] == 0
        assert rows(om) == []
        assert_covered_once(om.place)


class TestRecords:
    def test_two_records_on_one_line_are_both_taken(self, om: Om) -> None:
        """F63: the program crashed while it appended."""
        first, second = Talk().user("We decided to use PNG.").user("We decided to ship on Monday.").lines
        assert observed(om, stdin=f"{first}{second}\n")["new_messages"] == 2
        assert kept(om) == ["We decided to use PNG.", "We decided to ship on Monday."]

    def test_pieces_of_a_stream_are_one_message(self, om: Om) -> None:
        """F69: "Hel", "lo"."""
        talk = Talk().user("Say hello.")
        for piece in ("Hel", "lo"):
            event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}}
            talk.raw(json.dumps({"type": "stream_event", "session_id": talk.session, "event": event}))
        report = observed(om, stdin=talk.assistant("Hello").text())
        assert (report["new_messages"], report["skipped"]) == (2, {"noise": 2})
        assert kept(om) == ["Say hello.", "Hello"]


@pytest.mark.file_store("its migrations")
def test_runs_that_find_an_old_store_at_once_all_work_on_the_new_one(om: Om) -> None:
    """F29: one brings it up to date, the others wait."""
    om.db.parent.mkdir()
    with connected(om.place) as connection:
        connection.executescript(f"{steps()[0].read_text('utf-8')}\nPRAGMA user_version = 1;")
    runs = [
        om.start("observe", "-q", "--wait", "60", om.write(f"{name}.jsonl", talk.text()))
        for name in "abcd"
        for talk in [Talk(session=name).user(f"We decided on {name}.")]
    ]
    ended = [run.communicate(timeout=120)[1] for run in runs]
    assert ([run.returncode for run in runs], ended) == ([0] * 4, [b""] * 4)
    assert sorted(rows(om)) == [f"User: We decided on {name}." for name in "abcd"]
    assert_covered_once(om.place)


class TestSizes:
    def test_a_message_larger_than_a_batch_is_covered_and_the_next_is_reached(self, om: Om) -> None:
        """F13, T18: a first prompt of 50 000 tokens, kept whole."""
        prompt = "We decided to use PNG. " + "and then it rained " * 10_000
        talk = Talk().user(prompt).user("We decided to ship on Monday.")
        assert observed(om, stdin=talk.text())["new_messages"] == 2
        assert kept(om)[0] == prompt
        assert any("Monday" in row for row in rows(om))
        assert number_of(om.place, "batches") == 2
        assert_covered_once(om.place)

    def test_a_result_of_1_7_million_characters_stalls_nothing(self, om: Om) -> None:
        """F18, F64, F72, T18: kept whole, noted in a line, and the message behind it is reached."""
        output = "".join(f"{number}: compiled module {number} without a warning\n" for number in range(36_000))[
            :1_700_000
        ]
        talk = Talk().user("Please build it.").call("Bash", {"command": "make"}).result(output)
        report = observed(om, stdin=talk.user("We decided to ship on Monday.").text())
        assert report["new_messages"] == 4
        assert output.strip() in kept(om)[2]
        assert any("make" in row for row in rows(om))
        assert any("Monday" in row for row in rows(om))
        assert max(map(len, rows(om))) < 2_000
        assert_covered_once(om.place)

    def test_a_call_and_its_result_are_observed_together_wherever_a_batch_ends(self, om: Om) -> None:
        """F71, F65: 600 commands over many batches; each gives one row, with what became of it."""
        talk = Talk()
        for number in range(600):
            talk.call("Bash", {"command": f"make part-{number}"})
            talk.result(f"Exit code 1\nerror {number}\n" + "line\n" * (number % 90), is_error=True)
        observed(om, stdin=talk.text())
        assert number_of(om.place, "batches") > 1
        told = [row for row in om("log", "--jsonl").lines if "make part-" in row["text"]]
        assert len(told) == len({row["text"] for row in told}) == 600
        assert all(len(row["message_ids"]) == 2 for row in told)
        assert_covered_once(om.place)

    def test_thousands_of_messages_are_taken_in_and_covered_in_batches(self, om: Om) -> None:
        """F65: no batch is larger than an observer is shown at once."""
        talk = long_talk("long", 3_000, lines=12)
        assert observed(om, om.write("long.jsonl", talk.text()), "--counter", "chars-4")["new_messages"] == 3_000
        assert_covered_once(om.place)
        with opened(om.place) as connection:
            sizes = connection.execute(
                "SELECT sum(m.tokens) FROM batches AS b JOIN messages AS m ON m.seq > b.after AND m.seq <= b.through"
                " GROUP BY b.number"
            ).fetchall()
        assert len(sizes) > 2
        assert max(size for (size,) in sizes) <= 35_000
