"""`om review`: contradictions and old rows, in a pipe and on a terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.terminals import answering
from tests.e2e.transcripts import Talk

MARCH = Talk(
    session="5d0c6e0a-0000-4000-8000-0000000000aa", cwd="/home/ada/tide", begin=datetime(2026, 3, 2, 9, tzinfo=UTC)
).user("The gauge server listens on port 8123. Always run `make lint` before you commit.")
APRIL = Talk(
    session="5d0c6e0a-0000-4000-8000-0000000000bb", cwd="/home/ada/tide", begin=datetime(2026, 4, 6, 9, tzinfo=UTC)
).user("The gauge server listens on port 9321.")
NOW = ("--now", "2026-04-20")


@pytest.fixture
def told(om: Om) -> Om:
    """Two sessions of one project, the later of which contradicts the earlier."""
    om("observe", "-q", stdin=MARCH.text())
    om("observe", "-q", stdin=APRIL.text())
    return om


def listed(om: Om, *arguments: str) -> list[tuple[str, str]]:
    entries = om("review", *NOW, *arguments, "--json").document["entries"]
    return [(entry["reason"], entry["row"]["text"]) for entry in entries]


def visible(om: Om) -> list[dict[str, Any]]:
    return om("log", "--jsonl").lines


def texts(om: Om) -> list[str]:
    return [row["text"] for row in visible(om)]


PORT, NEW_PORT = "User: The gauge server listens on port 8123.", "User: The gauge server listens on port 9321."
LINT = "User: Always run `make lint` before you commit."
QUESTION = "[q]uit?"


class TestListing:
    def test_contradictions_of_two_sessions_come_first_then_what_is_old(self, told: Om) -> None:
        assert listed(told) == [("contradicted", PORT), ("old", LINT)]
        shown = told("review", *NOW)
        assert "contradicted by" in shown.stdout.splitlines()[0]
        assert shown.stderr == "om: 1 contradicted, 1 old\n"

    def test_counts_and_both_rows_are_in_json(self, told: Om) -> None:
        document = told("review", *NOW, "--limit", "1", "--json").document
        assert document["counts"] == {"contradicted": 1, "unverified": 0, "old": 1}
        (entry,) = document["entries"]
        assert entry["by"]["text"] == NEW_PORT
        assert told("review", *NOW, "--limit", "1", "--jsonl").lines == document["entries"]

    def test_nothing_is_changed_or_created_by_looking(self, told: Om) -> None:
        before = told("log", "--all", "--json").stdout
        told("review", *NOW)
        assert told("log", "--all", "--json").stdout == before
        assert told("review", "--db", str(told.folder / "none.db")).stderr == "om: nothing to review\n"
        assert not (told.folder / "none.db").exists()

    def test_filters_are_those_of_the_log(self, told: Om) -> None:
        """S0.11: one set of filters. A contradiction is found by either row."""
        assert listed(told, "--type", "instruction") == [("old", LINT)]
        assert listed(told, "--session", "5d0c6e0a-0000-4000-8000-0000000000bb") == [("contradicted", PORT)]
        assert listed(told, "--since", "2026-04-01") == [("contradicted", PORT)]
        assert listed(told, "--project", "/home/ada/parcel") == []
        assert listed(told, "--tag", "nobody") == []
        assert listed(told, "--older-than", "2026-01-01") == [("contradicted", PORT)]
        told("review", "--older-than", "soon", code=2)
        told("review", "--json", "--jsonl", code=2)

    def test_a_row_that_was_recalled_is_not_old(self, told: Om) -> None:
        told("recall", "make lint", *NOW)
        assert listed(told) == [("contradicted", PORT)]

    def test_notes_and_items_are_reviewed(self, om: Om) -> None:
        om("note", "we ship on Friday", "--type", "decision", "--now", "2026-04-04")
        om("note", "we ship on Monday", "--type", "decision", "--now", "2026-04-05")
        om("note", "Noor owns the harbour names", "--item", "--now", "2026-01-05")
        assert listed(om) == [("contradicted", "we ship on Friday"), ("old", "Noor owns the harbour names")]


class TestAsking:
    """On a terminal, one key decides."""

    def asked(self, om: Om, *keys: str, env: dict[str, str] | None = None) -> str:
        code, shown = answering(om, "review", *NOW, answers=[(QUESTION, key) for key in keys], env=env)
        assert code == 0, shown
        assert "Traceback" not in shown
        return shown

    def test_of_two_rows_the_later_is_kept_until_that_is_undone(self, told: Om) -> None:
        before = sorted(texts(told))
        shown = self.asked(told, "k", "s")
        assert "1/2 contradicted" in shown
        assert "1 kept, 1 skipped" in shown
        assert listed(told) == [("old", LINT)]
        assert PORT not in texts(told)
        told("undo")
        assert sorted(texts(told)) == before

    def test_a_row_that_is_kept_counts_as_used(self, told: Om) -> None:
        self.asked(told, "s", "k")
        assert listed(told) == [("contradicted", PORT)]

    def test_a_pinned_row_stays_what_it_was_but_for_the_tag(self, told: Om) -> None:
        before = next(row for row in visible(told) if row["text"] == LINT)
        self.asked(told, "s", "p")
        after = next(row for row in visible(told) if row["text"] == LINT)
        assert after["tags"] == ["pinned"]
        same = ("type", "importance", "session", "event_at", "message_ids")
        assert [after[name] for name in same] == [before[name] for name in same]
        assert listed(told) == [("contradicted", PORT)]
        told("undo")
        assert next(row for row in visible(told) if row["text"] == LINT) == before

    def test_pinning_the_later_of_two_hides_both_in_one_operation(self, told: Om) -> None:
        self.asked(told, "p", "q")
        assert [row["text"] for row in visible(told) if "port" in row["text"]] == [NEW_PORT]
        told("undo")
        assert [row["text"] for row in visible(told) if "port" in row["text"]] == [PORT, NEW_PORT]

    def test_both_are_kept_until_there_is_another_value(self, told: Om) -> None:
        before = sorted(texts(told))
        shown = self.asked(told, "b", "bq")
        assert "1 confirmed" in shown
        assert (listed(told), sorted(texts(told))) == ([("old", LINT)], before)
        told("undo")
        assert listed(told)[0] == ("contradicted", PORT)

    def test_a_forgotten_row_is_kept_out(self, told: Om) -> None:
        shown = self.asked(told, "f", "q")
        assert "forgotten; `om undo" in shown
        assert PORT not in texts(told)
        told("undo")
        assert PORT in texts(told)

    def test_an_edited_row_is_replaced_by_a_note(self, told: Om) -> None:
        answers = [(QUESTION, "e"), ("leave it):", "The gauge server listens on 9321 and 8123.\n"), (QUESTION, "q")]
        code, shown = answering(told, "review", *NOW, answers=answers)
        assert (code, "1 edited" in shown) == (0, True)
        assert [(row["kind"], row["text"]) for row in visible(told) if "gauge" in row["text"]] == [
            ("note", "The gauge server listens on 9321 and 8123.")
        ]
        told("undo")
        assert {PORT, NEW_PORT} <= set(texts(told))

    def test_an_editor_edits_the_text(self, told: Om) -> None:
        env = {"EDITOR": "sed -i s/9321/9400/"}
        self.asked(told, "e", "q", env=env)
        assert [row["text"] for row in visible(told) if "gauge" in row["text"]] == [NEW_PORT.replace("9321", "9400")]

    @pytest.mark.parametrize(
        ("editor", "said"),
        [
            ("true", "1 skipped"),
            ("false", "exit code 1"),
            ("no-such", "cannot run"),
            ("rm", "cannot read what the editor `rm` wrote: No such file or directory"),
        ],
    )
    def test_an_editor_that_changes_nothing_leaves_the_row(self, told: Om, editor: str, said: str) -> None:
        before = texts(told)
        assert said in self.asked(told, "e", "q", env={"VISUAL": editor})
        assert texts(told) == before

    @pytest.mark.parametrize("keys", ["q", "\x04", "x\x1b[Fq"])
    def test_it_ends_at_the_end_of_input_and_other_keys_do_nothing(self, told: Om, keys: str) -> None:
        before = texts(told)
        assert "nothing changed" in self.asked(told, keys)
        assert texts(told) == before

    def test_ctrl_c_ends_it_and_keeps_what_was_done(self, told: Om) -> None:
        code, shown = answering(told, "review", *NOW, answers=[(QUESTION, "k"), (QUESTION, "\x03")])
        assert (code, "Traceback" in shown) == (130, False)
        assert PORT not in texts(told)

    def test_an_answer_may_settle_a_later_question(self, om: Om) -> None:
        for day, port in enumerate((8123, 9321, 9400), start=1):
            om("note", f"the port is {port}", "--now", f"2026-04-0{day}")
        assert len(listed(om)) == 2
        shown = self.asked(om, "p")
        assert "1 pinned" in shown
        assert listed(om) == [("contradicted", "the port is 9321")]

    def test_with_json_nothing_is_asked(self, told: Om) -> None:
        code, shown = answering(told, "review", *NOW, "--json", answers=[])
        assert (code, QUESTION in shown) == (0, False)

    def test_nothing_is_asked_if_writing_is_disabled(self, told: Om) -> None:
        code, shown = answering(told, "review", *NOW, answers=[], env={"OM_DISABLED": "1"})
        assert (code, QUESTION in shown) == (0, False)


def test_recall_names_the_later_row_that_contradicts_a_result(told: Om) -> None:
    later = next(row for row in visible(told) if row["text"] == NEW_PORT)["id"]
    results = told("recall", "gauge server port", "--json").document["results"]
    assert {result["text"]: result.get("contradicted_by") for result in results} == {PORT: later, NEW_PORT: None}
    lines = told("recall", "gauge server port").stdout.splitlines()
    assert [line.endswith(f"(contradicted by {later[-8:]})") for line in lines] == [PORT in line for line in lines]


def test_of_statements_without_a_time_the_last_one_holds(om: Om) -> None:
    """`om recall` names it too."""
    said = [f"We decided to use Postgres {number}." for number in (11, 12, 13, 14, 15, 16)]
    lines = "".join(json.dumps({"role": "user", "content": text}) + "\n" for text in said)
    om("observe", "-q", "--session", "versions", stdin=lines)
    rows = visible(om)
    assert [row["text"] for row in rows] == [f"User: {text}" for text in said]
    results = om("recall", "which Postgres did we decide to use", "--json").document["results"]
    later = {each["id"]: each.get("contradicted_by") for each in results if each["kind"] == "observation"}
    assert set(later.values()) == {None, rows[-1]["id"]}
    entries = om("review", "--json").document["entries"]
    assert {entry["by"]["id"] for entry in entries if entry["reason"] == "contradicted"} == {rows[-1]["id"]}
