"""`om trace`: the way of a text from messages through rows into a pack, and the stage that lost it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.reflecting import noticed, reflecting, reply, told
from tests.e2e.scripts import rows
from tests.e2e.transcripts import Talk

FERRY, QUAY = "5d0c6e0a-0000-4000-8000-0000000000aa", "6e1d7f1b-0000-4000-8000-0000000000bb"
CRANES = "The crane E77 is greased weekly", "The berth is dredged yearly"
ANY = {"OM_REFLECT_TARGET": "1", "OM_PRESET": "lango"}
"""Any reply will do that is shorter than what it replaces."""


def ferry() -> Talk:
    """A decision, a failed command, and a remark of which no row is made."""
    talk = Talk(session=FERRY, cwd="/home/ada/ferry").user("We decided to sail from pier Noordzand in winter.")
    talk.assistant("Understood.").call("Bash", {"command": "make tides"})
    talk.result("E1234: no tide table for Cuxhaven", is_error=True)
    return talk.assistant("Let me look at gauge_77 now.").user("Fine.")


@pytest.fixture
def sailing(om: Om) -> Om:
    om("observe", "-q", stdin=ferry().text())
    return om


def traced(om: Om, *arguments: str, **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = om("trace", *arguments, "--json", **how).document
    return found


def last_line(om: Om, *arguments: str) -> str:
    return om("trace", *arguments).stdout.splitlines()[-1]


class TestStages:
    def test_what_the_pack_has_is_not_lost(self, sailing: Om) -> None:
        found = traced(sailing, "E1234")
        assert [each["line"] for each in found["messages"]] == ["E1234: no tide table for Cuxhaven"]
        assert found["sessions"] == [{"id": FERRY, "messages": 1, "pending": 0}]
        [row] = found["observations"]
        assert (row["type"], row["state"]) == ("command_error", "in sight")
        assert (found["pack"]["printed"], found["pack"]["rows"]) == (True, [row["id"]])
        assert row["text"] in sailing("context", "--session", FERRY).stdout
        assert (found["lost_at"], last_line(sailing, "E1234")) == (None, "not lost")

    def test_a_text_is_followed_however_its_accents_are_encoded(self, om: Om) -> None:
        om(
            "observe",
            "-q",
            "--format",
            "openai",
            stdin='{"role": "user", "content": "We moor at the cafe\u0301 quay."}\n',
        )
        for text in ('"caf\u00e9 quay"', '"cafe\u0301 quay"', "caf\u00e9 quay"):
            assert last_line(om, text) == "not lost"

    def test_what_no_row_says_was_lost_at_observing_by_a_batch_that_is_named(self, sailing: Om) -> None:
        found = traced(sailing, "gauge_77", "--budget", "60")
        assert found["observations"] == []
        [batch] = found["left_out"]
        assert (batch["session"], batch["messages"], batch["rows"]) == (FERRY, 6, len(rows(sailing)))
        assert (found["pack"]["printed"], found["lost_at"]) == (False, "observing")
        printed = sailing("trace", "gauge_77", "--budget", "60").stdout
        assert f"left out by the batch of 6 messages from {batch['first']} to {batch['last']}, which has " in printed
        assert printed.endswith("\nlost at: observing\n")
        sailing("show", batch["first"])

    def test_the_rows_that_were_made_of_the_message_instead_are_shown(self, om: Om) -> None:
        talk = Talk(session=FERRY).user("Please build the tides.").call("Bash", {"command": "make tides"})
        om("observe", "-q", stdin=talk.result("up\n" + "down\n" * 40 + "zeppelin\n" + "up\n" * 40).text())
        [row] = traced(om, "zeppelin", "--budget", "40")["instead"]
        assert row["text"].startswith("Ran: make tides")
        assert f"  made of it instead: {row['id'][-8:]} [" in om("trace", "zeppelin").stdout

    def test_a_message_that_waits_is_counted_as_pending(self, om: Om) -> None:
        om("observe", "-q", "--later", stdin=ferry().text())
        found = traced(om, "gauge_77", "--budget", "40")
        assert found["sessions"] == [{"id": FERRY, "messages": 1, "pending": 1}]
        assert (found["left_out"], found["lost_at"]) == ([], "observing")
        assert "messages:   1 message in 1 session, 1 not observed yet\n" in om("trace", "gauge_77").stdout

    def test_the_last_messages_and_provisional_rows_of_a_pack_count(self, om: Om) -> None:
        om("observe", "-q", "--later", stdin=ferry().text())
        found = traced(om, "gauge_77")
        assert (len(found["pack"]["messages"]), found["lost_at"]) == (1, None)

    def test_a_row_that_was_folded_into_one_that_says_less_was_lost_at_reflecting(self, om: Om) -> None:
        noticed(om, *CRANES)
        model = reflecting(om, reply(told("Crane and berth are kept up", "o1", "o2")))
        om("reflect", "--session", "s", "--model", model.model, env=ANY)
        found = traced(om, "E77")
        [row] = found["observations"]
        assert (row["state"], row["hidden_by"]["verb"]) == ("superseded", "reflect")
        assert [(each["text"], each["says_it"]) for each in row["made_into"]] == [
            ("Crane and berth are kept up", False)
        ]
        assert found["lost_at"] == "reflecting"
        printed = om("trace", "E77").stdout
        assert "reflecting: no reflection or item says it\n" in printed
        assert "Crane and berth are kept up [does not say it]\n" in printed
        assert printed.endswith("\nlost at: reflecting\n")

    def test_a_reflection_that_says_it_keeps_it(self, om: Om) -> None:
        noticed(om, *CRANES)
        model = reflecting(om, reply(told("Crane E77 and berth are kept up", "o1", "o2")))
        om("reflect", "--session", "s", "--model", model.model, env=ANY)
        found = traced(om, "E77")
        assert [each["text"] for each in found["reflections"]] == ["Crane E77 and berth are kept up"]
        assert found["observations"][0]["made_into"][0]["says_it"]
        assert found["lost_at"] is None
        assert "[says it]\n" in om("trace", "E77").stdout

    def test_a_row_that_does_not_fit_was_lost_at_packing_and_its_tier_is_named(self, sailing: Om) -> None:
        found = traced(sailing, "E1234", "--budget", "40")
        [row] = found["observations"]
        assert found["pack"] | {"tokens": 0} == {
            "session": FERRY, "budget": 40, "tokens": 0, "printed": False, "rows": [], "messages": [],
            "missing": [{"id": row["id"], "tier": "session"}],
        }  # fmt: skip
        assert found["pack"]["tokens"] <= 40
        printed = sailing("trace", "E1234", "--budget", "40").stdout
        assert f"not among the 1 row of tier session: {row['id'][-8:]}\n" in printed
        assert printed.endswith("\nlost at: packing\n")

    def test_pruned_rows_were_lost_at_editing(self, sailing: Om) -> None:
        sailing("prune", "--older-than", "2099-01-01", "--protected", "--yes", "-q")
        found = traced(sailing, "Noordzand", "--budget", "40")
        assert found["observations"][0]["state"] == "dropped"
        assert found["lost_at"] == "editing"

    def test_a_row_that_a_later_one_replaced_was_lost_at_observing(self, sailing: Om) -> None:
        talk = ferry().user("We decided to sail from pier Suederhaven in winter instead of pier Noordzand.")
        sailing("observe", "-q", stdin=talk.assistant("Understood.").text())
        found = traced(sailing, '"from pier Noordzand in winter"', "--budget", "40")
        assert [each["state"] for each in found["observations"]] == ["superseded"]
        assert found["lost_at"] == "observing"

    def test_presets_with_a_block_or_without_a_budget_are_said_to_be_so(self, sailing: Om) -> None:
        assert "working-memory block" in sailing("trace", "E1234", env={"OM_PRESET": "coding"}).stderr
        assert sailing("trace", "E1234").stderr == ""
        assert " of " in sailing("trace", "E1234").stdout.partition("packing:")[2].partition("\n")[0].partition("(")[2]
        assert " of " not in sailing("trace", "E1234", env={"OM_PRESET": "pi"}).stdout.partition("(")[2]


class TestSessions:
    def test_the_pack_of_another_session_is_checked_for_what_it_shares(self, sailing: Om) -> None:
        """A decision is shared within its project, a failed command is not."""
        other = Talk(session=QUAY, cwd="/home/ada/ferry").user("Please draw the quay.").assistant("Drawn.")
        sailing("observe", "-q", stdin=other.text())
        shared = traced(sailing, "Noordzand", "--session", QUAY)
        assert (shared["pack"]["session"], shared["lost_at"]) == (QUAY, None)
        assert "in tier cross: " in sailing("trace", "Noordzand", "--session", QUAY).stdout
        private = traced(sailing, "E1234", "--session", QUAY)
        assert ([each["tier"] for each in private["pack"]["missing"]], private["lost_at"]) == ([None], "packing")
        assert "belongs in no tier of this pack: " in sailing("trace", "E1234", "--session", QUAY).stdout

    def test_rows_of_another_project_belong_to_no_tier_unless_all_projects_are_shared(self, sailing: Om) -> None:
        other = Talk(session=QUAY, cwd="/home/ada/quay").user("Please draw the quay.").assistant("Drawn.")
        sailing("observe", "-q", stdin=other.text())
        found = traced(sailing, "Noordzand", "--session", QUAY)
        assert ([each["tier"] for each in found["pack"]["missing"]], found["lost_at"]) == ([None], "packing")
        assert traced(sailing, "Noordzand", "--session", QUAY, env={"OM_SCOPE": "global"})["lost_at"] is None

    def test_a_row_of_the_project_around_the_current_directory_was_lost_at_its_tier(self, om: Om) -> None:
        folder = om.folder / "harbour" / "ferry"
        folder.mkdir(parents=True)
        (folder.parent / ".git").mkdir()
        for talk in (
            Talk(session=FERRY, cwd=str(folder.parent)).user("We decided to sail from pier Noordzand in winter."),
            Talk(session=QUAY, cwd=str(folder)).user("Please draw the quay."),
        ):
            om("observe", "-q", stdin=talk.assistant("Understood.").text())
        asked = ("Noordzand", "--session", QUAY, "--budget")
        assert traced(om, *asked, "500", cwd=folder)["pack"]["printed"]
        found = traced(om, *asked, "20", cwd=folder)
        assert ([each["tier"] for each in found["pack"]["missing"]], found["lost_at"]) == (["cross"], "packing")

    def test_without_a_session_the_last_one_with_a_row_is_checked(self, sailing: Om) -> None:
        other = Talk(session=QUAY, cwd="/home/ada/ferry").user("Where is pier Noordzand? Please draw it.")
        sailing("observe", "-q", stdin=other.assistant("Drawn.").text())
        found = traced(sailing, "Noordzand")
        assert ({each["id"] for each in found["sessions"]}, found["pack"]["session"]) == ({FERRY, QUAY}, QUAY)
        assert "messages:   2 messages in 2 sessions\n" in sailing("trace", "Noordzand").stdout

    def test_a_session_in_which_no_row_says_it_is_checked_only_if_none_has_one(self, sailing: Om) -> None:
        other = Talk(session=QUAY, cwd="/home/ada/ferry").user("Hi.").assistant("Let me look at the E1234 lamp now.")
        sailing("observe", "-q", stdin=other.text())
        found = traced(sailing, "E1234")
        assert ({each["id"] for each in found["sessions"]}, found["pack"]["session"]) == ({FERRY, QUAY}, FERRY)

    def test_a_note_has_no_message_and_can_be_traced_too(self, om: Om) -> None:
        om("note", "The staging password rotates on Mondays.")
        found = traced(om, "rotates on Mondays")
        assert (found["messages"], len(found["observations"]), found["lost_at"]) == ([], 1, None)
        assert om("trace", "Mondays").stdout.startswith("messages:   none\n")


class TestFinding:
    def test_words_match_in_any_form_and_quotations_as_written(self, sailing: Om) -> None:
        assert traced(sailing, "winter piers")["messages"]
        assert traced(sailing, '"pier noordzand"')["messages"]
        sailing("trace", '"noordzand pier"', code=1)
        sailing("trace", "gauge_7", code=1)

    def test_a_row_that_was_cut_still_says_what_its_message_says(self, sailing: Om) -> None:
        words = "decided sail pier Noordzand winter"
        assert len(traced(sailing, words)["observations"]) == 1

    def test_filters_are_those_of_the_log(self, sailing: Om) -> None:
        """S0.11: one set of filters."""
        assert traced(sailing, "E1234", "--project", "/home/ada/ferry", "--since", "2026-02-10")["messages"]
        sailing("trace", "E1234", "--project", "/home/nobody", code=1)
        sailing("trace", "E1234", "--until", "2026-02-09", code=1)
        assert len(sailing("trace", "pier", "-n", "1").stdout) <= len(sailing("trace", "pier").stdout)

    def test_nothing_found_is_exit_1_and_says_so(self, sailing: Om) -> None:
        ended = sailing("trace", "zeppelin", code=1)
        assert (ended.stdout, ended.stderr) == ("", "om: nothing found\n")
        assert traced(sailing, "zeppelin", code=1)["pack"] is None

    def test_without_a_store_nothing_is_found_and_no_file_is_created(self, om: Om) -> None:
        om("trace", "E1234", code=1)
        assert not om.has_store

    def test_nothing_is_written(self, sailing: Om) -> None:
        before = rows(sailing)
        sailing("trace", "E1234")
        assert rows(sailing) == before

    @pytest.mark.parametrize("arguments", [[], ["?!"], ["x", "--limit", "0"], ["x", "--session", "nobody"]])
    def test_invalid_usage_has_nothing_on_stdout(self, sailing: Om, arguments: list[str]) -> None:
        """T65."""
        ended = sailing("trace", *arguments, code=None)
        assert (ended.code in (2, 66), ended.stdout, bool(ended.stderr)) == (True, "", True)
