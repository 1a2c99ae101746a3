"""`om prune`: rows and messages leave sight by rules, and come back, or are gone for good."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from omcli.memory.observation import Kind, Observation, Priority, Type
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope
from tests.conftest import Om
from tests.e2e.contents import connected, number_of, stored
from tests.e2e.reflecting import in_sight, kept, texts
from tests.e2e.transcripts import Talk, tide_story
from tests.material import row

NOW = ("--now", "2026-06-01T12:00:00Z")


def noted(om: Om, *days: str, session: str = "s") -> None:
    """A note in a session for each day."""
    for day in days:
        om("note", f"noted on {day}", "--session", session, "--now", f"{day}T10:00:00Z")


class TestRules:
    """Which rows go."""

    def test_all_but_the_newest_rows_of_a_session_go_and_come_back(self, om: Om) -> None:
        """T55, S0.14, C20: 5 rows, 2 stay, and it is said how many and which went; rows across sessions stay."""
        noted(om, "2026-01-05", "2026-01-04", "2026-01-03", "2026-01-02", "2026-01-01")
        om("note", "across sessions")
        run = om("prune", "--keep-last", "2", *NOW)
        assert [line.split(": ")[1] for line in run.stdout.splitlines()] == [
            f"noted on 2026-01-0{day} (not among the last 2 rows)" for day in (3, 2, 1)
        ]
        assert run.stderr == "3 rows with 27 tokens in 1 session pruned; `om undo 1` reverses that\n"
        assert texts(om) == ["noted on 2026-01-05", "noted on 2026-01-04", "across sessions"]
        om("undo")
        assert len(texts(om)) == 6

    def test_rows_of_the_sessions_that_were_active_last_stay(self, om: Om) -> None:
        """T55, S0.43: 5 sessions, 3 stay; not by name, nor by when they were taken in."""
        for name, day in (("a", 3), ("b", 5), ("c", 1), ("d", 4), ("e", 2)):
            talk = Talk(session=name, begin=datetime(2026, 2, day, tzinfo=UTC))
            om("observe", om.write(f"{name}.jsonl", talk.user(f"We decided to use port {day}.").text()))
        om("prune", "--keep-sessions", "3")
        assert sorted({row["session"] for row in in_sight(om)}) == ["a", "b", "d"]
        assert om("prune", "--keep-sessions", "3").stderr == "om: nothing to prune\n"

    def test_older_rows_go_by_a_day_or_an_age(self, om: Om) -> None:
        noted(om, "2026-01-01", "2026-05-01", "2026-05-31")
        for said, number in (("2026-01-01", 0), ("2026-01-02", 1), ("90d", 1), ("2 weeks", 2), ("1mo", 2), ("1d", 3)):
            assert om("prune", "--older-than", said, "--dry-run", "--json", *NOW).document["pruned"] == number, said
        assert len(texts(om)) == 3

    def test_what_matters_least_goes_until_the_rest_fits(self, om: Om) -> None:
        """T51, T52: what reflections tell first, then low rows; what is high never."""
        low = row(1, text="low", priority=Priority.LOW, tokens=10, counter="o200k-approx")
        high = row(2, text="high", priority=Priority.HIGH, tokens=10, counter="o200k-approx")
        told = row(3, text="told", tokens=10, counter="o200k-approx")
        about = [
            row(4 + n, text=f"item {n}", session=None, kind=Kind.ITEM, type=Type.KNOWLEDGE, supports=(told.id,))
            for n in range(2)
        ]
        kept(om, low, high, told)
        with_supports(om, *about)
        counts = {
            most: om("prune", "--max-tokens", str(most), "--dry-run", "--json").document for most in (30, 29, 20, 19, 0)
        }
        assert {most: [each["text"] for each in found["rows"]] for most, found in counts.items()} == {
            30: [], 29: ["told"], 20: ["told"], 19: ["told", "low"], 0: ["told", "low"],
        }  # fmt: skip

    def test_several_rules_are_one_operation_and_a_row_goes_if_any_says_so(self, om: Om) -> None:
        noted(om, "2026-01-01", "2026-01-02", "2026-01-03", session="a")
        noted(om, "2026-05-01", "2026-05-02", "2026-05-03", session="b")
        om("prune", "--older-than", "90d", "--keep-last", "2", *NOW)
        assert texts(om) == ["noted on 2026-05-02", "noted on 2026-05-03"]
        assert len(om("history", "--jsonl").lines) == 1

    def test_pinned_rows_and_standing_instructions_stay_unless_they_are_meant(self, om: Om) -> None:
        om("note", "pinned", "--session", "s", "--tag", "pinned")
        om("note", "lint first", "--session", "s", "--type", "instruction")
        om("note", "plain", "--session", "s")
        assert [each["text"] for each in om("prune", "--keep-last", "0", "--json").document["rows"]] == ["plain"]
        om("prune", "--keep-last", "0", "--protected")
        assert texts(om) == []

    def test_rows_across_sessions_go_only_where_they_are_named_and_then_no_others(self, om: Om) -> None:
        """T55."""
        om("note", "of the project")
        om("note", "lasting", "--item")
        om("note", "of a session", "--session", "s")
        om("prune", "--keep-last", "0", "--cross")
        assert texts(om) == ["of a session"]
        om("undo")
        om("prune", "--keep-last", "0", "--session", "s")
        assert texts(om) == ["of the project", "lasting"]

    @pytest.mark.parametrize(
        "wrong",
        [
            "", "--dry-run", "--raw", "--raw --keep-last 1", "--raw --older-than 1d --keep-last 1",
            "--older-than yesterday", "--keep-sessions 1 --session s", "--keep-sessions 1 --cross",
            "--keep-last 1 --cross --session s", "--keep-last -1", "--hard --session s --yes",
            "--raw --older-than 1d --cross",
        ],
    )  # fmt: skip
    def test_what_makes_no_sense_is_a_usage_error(self, om: Om, wrong: str) -> None:
        assert om("prune", *wrong.split(), code=2).stdout == ""
        assert not om.has_store, "nothing was done"

    def test_a_pruned_row_is_shown_as_dropped_with_the_reason_and_its_sources(self, om: Om) -> None:
        """T54."""
        om("observe", stdin=tide_story().text())
        before = {each["id"]: each for each in in_sight(om)}
        om("prune", "--keep-last", "0", *NOW)
        gone = [each for each in om("log", "--all", "--jsonl").lines if "dropped_at" in each]
        assert gone
        for each in gone:
            shown = om("show", each["id"], "--json").document
            told = shown["observation"]
            assert (told["state"], told["reason"]) == ("dropped", "not among the last 0 rows")
            assert told["message_ids"] == before[each["id"]]["message_ids"]
            assert [said["id"] for said in shown["messages"]] == told["message_ids"]

    def test_json_gives_what_goes_as_the_log_does(self, om: Om) -> None:
        """C20: with the messages it came from."""
        om("observe", stdin=tide_story().text())
        before = {each["id"]: each for each in in_sight(om)}
        gone = om("prune", "--keep-last", "0", "--dry-run", "--json", *NOW).document["rows"]
        assert gone
        assert gone == [before[each["id"]] | {"reason": "not among the last 0 rows"} for each in gone]

    def test_of_rows_that_matter_alike_the_older_goes_first(self, om: Om) -> None:
        """T53: and of the same day that of the earlier year."""
        for day in ("2026-02-01", "2026-01-01", "2025-02-01"):
            om("note", f"noted on {day}", "--session", "s", "--now", f"{day}T10:00:00Z")
        most = sum(row["tokens"] for row in in_sight(om)) - 1
        [gone] = om("prune", "--max-tokens", str(most), "--json").document["rows"]
        assert gone["text"] == "noted on 2025-02-01"

    def test_json_prunes_as_much_and_a_dry_run_nothing(self, om: Om) -> None:
        """F88."""
        noted(om, "2026-01-01", "2026-01-02")
        planned = om("prune", "--keep-last", "1", "--dry-run", "--json").document
        assert (planned["dry_run"], "operation" in planned) == (True, False)
        assert len(texts(om)) == 2
        done = om("prune", "--keep-last", "1", "--json").document
        assert (done["pruned"], done["operation"], done["rows"]) == (1, 1, planned["rows"])
        assert texts(om) == ["noted on 2026-01-02"]


def with_supports(om: Om, *rows: Observation) -> None:
    """Rows with those they were made of, as a reflection writes them."""
    with om.open() as store:
        folding = ReflectionWrite(scope=Scope(session="s"), fingerprint="x", ending=ReflectionOutcome.DONE, rows=rows)
        store.reflections.fold(folding, now="2026-03-02T10:00:00.000Z")


def test_the_working_memory_block_stays_as_it_is_to_the_byte(om: Om) -> None:
    """T36, S4.11, S4.14: reflecting, pruning rows and pruning messages leave it alone."""
    om("observe", stdin=tide_story().text())
    block = ("context", "--working-memory", "--session", tide_story().session)
    before = om(*block).stdout
    assert before
    om("reflect", "--session", tide_story().session)
    om("prune", "--keep-last", "0", "--protected")
    om("prune", "--raw", "--older-than", "1d")
    assert in_sight(om, "--session", tide_story().session) == []
    assert om(*block).stdout == before


class TestMessages:
    """`--raw`."""

    def test_observed_messages_go_what_waits_stays_and_nothing_is_taken_in_again(self, om: Om) -> None:
        """S4.14, F16: rows stay and go on to cite them; the cursor stays, nothing is observed again."""
        talk = tide_story()
        path = om.write("t.jsonl", talk.text())
        om("observe", path)
        rows = in_sight(om)
        path.write_text(talk.user("And Emden as well, please.").text(), "utf-8")
        om("observe", "--later", path)
        run = om("prune", "--raw", "--older-than", "30d", *NOW)
        assert run.stdout == f"{talk.session}: 7 messages\n", "what the agent said last stays, and what waits"
        assert in_sight(om) == rows
        [session] = om("sessions", "--jsonl").lines
        assert (session["messages"], session["pending"]) == (2, 1)
        again = om("observe", path, "--json").document
        assert again["files"][0]["new_messages"] == 0
        assert om("sessions", "--jsonl").lines[0]["messages"] == 2
        assert "not shown: pruned or forgotten" in om("show", rows[0]["id"]).stderr
        om("undo")
        assert om("sessions", "--jsonl").lines[0]["messages"] == 9
        assert om("show", rows[0]["id"]).stderr == ""

    def test_as_many_messages_go_as_sessions_and_status_have_fewer(self, om: Om) -> None:
        """F16: also where a transcript has events, which nothing counts as messages."""
        talk = tide_story()
        event = {
            "type": "system", "subtype": "local_command", "content": "<command-name>/clear</command-name>",
            "sessionId": talk.session, "uuid": "q-1", "timestamp": "2026-02-10T09:00:00Z",
        }  # fmt: skip
        om("observe", om.write("t.jsonl", talk.raw(json.dumps(event)).assistant("Fine.").text()))

        def numbers() -> tuple[int, int]:
            return om("sessions", "--jsonl").lines[0]["messages"], om("status", "--json").document["messages"]

        before = numbers()
        planned = om("prune", "--raw", "--older-than", "1d", "--dry-run", "--json", *NOW).document
        done = om("prune", "--raw", "--older-than", "1d", "--json", *NOW).document
        assert (done["messages"], done["messages_by_session"]) == (planned["messages"], planned["messages_by_session"])
        assert numbers() == tuple(number - done["messages"] for number in before)
        assert number_of(om.place, "aside_messages") == done["messages"] + 1, "the event has gone as well"
        assert om("history", "--jsonl").lines[0]["messages"] == done["messages"]
        assert om("prune", "--hard", "--yes", "--json").document["messages"] == done["messages"]

    def test_what_follows_is_observed_as_if_the_messages_were_there(self, new_om: Callable[[], Om]) -> None:
        """F16: what stands is settled, also if the messages it came from are gone for good."""
        told = []
        for is_pruned in (True, False):
            om = new_om()
            talk = (
                Talk()
                .user("Please add a flag to tides.py. The build is blocked: no port is free.")
                .assistant("I look.")
            )
            path = om.write("t.jsonl", talk.text())
            om("observe", path)
            if is_pruned:
                om("prune", "--raw", "--older-than", "1d", "--hard", "--yes")
            talk.call("Edit", {"file_path": "tides.py", "old_string": "a", "new_string": "b"}).result("ok")
            path.write_text(talk.assistant("Done: the flag is in tides.py, all 12 tests pass.").user("Thanks!").text())
            om("observe", path)
            told.append(
                [
                    (each["text"], each.get("status"), each["message_ids"])
                    for each in om("log", "--all", "--jsonl").lines
                ]
            )
        assert told[0] == told[1]
        assert len(told[0]) > 3


class TestHard:
    """Deleting for good."""

    SECRET = "the harbour code is MARIGOLD-4711"

    def pruned(self, om: Om) -> None:
        om("note", self.SECRET, "--session", "s", "--now", "2026-01-01T10:00:00Z")
        om("note", "x " * 3000, "--session", "s", "--now", "2026-01-02T10:00:00Z")
        om("note", "new", "--session", "s", "--now", "2026-05-20T10:00:00Z")
        om("prune", "--older-than", "30d", *NOW)

    def test_it_is_not_done_without_a_word(self, om: Om) -> None:
        """D6, integrations: what deletes for good needs `--yes`, or somebody who can be asked."""
        self.pruned(om)
        refused = om("prune", "--hard", code=2)
        assert refused.stderr.splitlines() == [
            "om: error: `--hard` permanently deletes 2 rows and 0 messages of 1 operation",
            "hint: add `--yes`, or `--dry-run` to list them",
        ]
        om("prune", "--hard", "--dry-run")
        om("undo")
        assert len(texts(om)) == 3

    def test_what_was_pruned_is_in_none_of_the_files_any_more_and_it_is_said_what_that_freed(self, om: Om) -> None:
        """C20, D6: neither in the store, nor in the log beside it, nor in free pages."""
        self.pruned(om)
        assert b"MARIGOLD" in files(om)
        run = om("prune", "--hard", "--yes", "--json", *NOW)
        assert b"MARIGOLD" not in files(om)
        told = run.document
        assert (told["deleted"], told["messages"], told["operations"], told["backups"]) == (2, 0, [1], [])
        if om.url is None:  # a server reuses the space by itself
            assert told["bytes_before"] - told["bytes_after"] == told["bytes_freed"] > 0
            assert told["bytes_after"] == om.db.stat().st_size
        assert om("undo", code=65).stderr.startswith("om: error: nothing to undo")
        assert "permanently deleted" in om("undo", "1", code=65).stderr
        again = om("prune", "--hard", "--yes").stderr
        assert again == "om: nothing to delete: nothing was pruned or forgotten since the last time\n", (
            "and nothing more of nothing"
        )

    def test_a_dry_run_counts_as_what_is_then_deleted_also_what_was_put_out_of_sight_twice(self, om: Om) -> None:
        """D6."""
        om("observe", om.write("t.jsonl", tide_story().text()))
        for _ in range(2):
            om("forget", "--match", "tide", code=None)
        told = om("prune", "--hard", "--dry-run", "--json").document
        done = om("prune", "--hard", "--yes", "--json").document
        assert (told["deleted"], told["messages"]) == (done["deleted"], done["messages"])
        assert done["messages"] > 0

    def test_nobody_is_asked_about_nothing(self, om: Om) -> None:
        """Neither is `--yes` missed, where there is nothing to delete."""
        noted(om, "2026-05-30")
        for selected in (["--keep-last", "5"], []):
            run = om("prune", *selected, "--hard", *NOW)
            assert run.stderr.startswith("om: nothing ")
        assert len(om("log").stdout.splitlines()) == 1

    def test_a_run_that_deletes_what_it_selects_takes_what_is_out_of_sight_with_it(self, om: Om) -> None:
        noted(om, "2026-01-01", "2026-05-30")
        om("observe", stdin=tide_story().text())
        om("reflect", "--session", tide_story().session)
        run = om("prune", "--older-than", "30d", "--protected", "--hard", "--yes", *NOW)
        assert run.stderr.splitlines()[0].endswith("deleted")
        left = om("log", "--all", "--jsonl").lines
        assert {each["text"] for each in left if each["kind"] != "item"} == {"noted on 2026-05-30"}

    @pytest.mark.file_store("its copies")
    def test_backups_beside_the_store_that_may_hold_it_are_named(self, om: Om) -> None:
        self.pruned(om)
        copy = om.db.with_name(f"{om.db.name}.v7.bak")
        copy.write_bytes(b"")
        assert om("prune", "--hard", "--yes").stderr.endswith(
            f"om: 1 backup beside the store may still contain it: {copy.name}\n"
        )

    @pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 1), ("n", 1, 3), ("", 1, 3)])
    def test_on_a_terminal_somebody_is_asked(self, om: Om, answer: str, code: int, left: int) -> None:
        self.pruned(om)
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            om.command("prune", "--hard"), stdin=theirs, stdout=theirs, stderr=theirs, env=om.environment()
        )
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        assert process.wait(timeout=60) == code
        os.close(ours)
        assert len(om("log", "--all", "--jsonl").lines) == left

    def test_cursors_and_identities_outlive_it(self, om: Om) -> None:
        """F16: progress is in tables of its own; nothing is observed again."""
        path = om.write("t.jsonl", tide_story().text())
        om("observe", path)
        om("prune", "--raw", "--older-than", "1d", "--hard", "--yes")
        om("prune", "--keep-last", "0", "--protected", "--hard", "--yes")
        with connected(om.place) as store:
            store.execute("DELETE FROM bookmarks")  # the file is read from its beginning
        again = om("observe", path, "--json").document
        assert (again["files"][0]["new_messages"], again["files"][0]["observations"]) == (0, 0)
        assert in_sight(om) == []


def files(om: Om) -> bytes:
    """All that is in the store, and beside it."""
    return stored(om.place)


def test_retention_of_a_project_is_not_followed(om: Om) -> None:
    """A project that was cloned does not say what is kept of all others."""
    (om.folder / ".om.toml").write_text("[retention]\nkeep_last = 0\n", "utf-8")
    run = om("config", "show", "--json")
    assert "retention.keep_last" in run.stderr
    assert json.loads(run.stdout)["settings"]["retention.keep_last"] is None
