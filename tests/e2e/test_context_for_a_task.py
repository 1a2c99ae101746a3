"""`om context --for TEXT`: the pack brings what a task needs, within the same budget, and tells nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.tokenizers import counter
from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.transcripts import Talk
from tests.strategies import examples

ONE, OTHER = "5d0c6e0a-0000-4000-8000-00000000000a", "5d0c6e0a-0000-4000-8000-00000000000b"
PIERS = ("amber", "beige", "coral", "denim", "ebony", "frost", "hazel", "ivory", "khaki", "lilac", "mauve", "olive")
OUTBOX = "The notifier reads lost events from the outbox table."
LIGHT = "Dredging starts at the old lighthouse."


def piers(talk: Talk, *, about: str = "the pier") -> Talk:
    """A decision on each colour, with an answer that makes it no news."""
    for colour in PIERS:
        talk.user(f"We decided to paint {about} at the {colour} quay in {colour}, twice, before the summer comes.")
        talk.assistant(f"Noted for the {colour} quay.")
    return talk


@pytest.fixture
def told(om: Om) -> Om:
    """A session and another one, each with an answer at its beginning that nothing later names."""
    asked = "Look at the notifier and the harbour."
    other = piers(Talk(session=OTHER, cwd=str(om.folder)).user(asked).assistant(LIGHT), about="the shed")
    for number, talk in enumerate((other, piers(Talk(session=ONE, cwd=str(om.folder)).user(asked).assistant(OUTBOX)))):
        om("observe", "-q", "--now", f"2026-02-1{number}T12:00Z", stdin=talk.text())
    return om


def packed(om: Om, *arguments: str) -> str:
    return om("context", "--session", ONE, *arguments).stdout


class TestWhatComes:
    def test_a_row_that_matches_comes_before_others_of_its_session(self, told: Om) -> None:
        tier = ("--tier", "session", "--budget", "60")
        assert "outbox" not in packed(told, *tier)
        assert OUTBOX in packed(told, *tier, "--for", "why does the notifier lose events")

    def test_a_row_of_another_session_comes_before_newer_ones(self, told: Om) -> None:
        """T61: ranked and greedy."""
        tier = ("--tier", "cross", "--budget", "45")
        assert "lighthouse" not in packed(told, *tier)
        assert "lighthouse" in packed(told, *tier, "--for", "lighthouse dredging")

    def test_a_row_that_matches_but_does_not_fit_leaves_its_room_to_others(self, om: Om) -> None:
        """T61: skipped, a later smaller row still fits."""
        om("note", f"lighthouse dredging {'needs a very long report ' * 30}")
        om("note", "The lighthouse is white.")
        om("note", "Piers are painted twice.")
        pack = om("context", "--budget", "60", "--for", "lighthouse dredging").stdout
        assert "long report" not in pack
        assert "white" in pack

    @pytest.mark.parametrize("tier", ["cross", "session"])
    def test_rows_beyond_those_that_a_pack_reads_are_found(self, om: Om, tier: str) -> None:
        session = ("--session", OTHER) if tier == "cross" else ("--session", ONE)
        om("observe", "-q", stdin=Talk(session=OTHER, cwd=str(om.folder)).user("Hello there.").text())
        talk = Talk(session=ONE, cwd=str(om.folder)).user("Look at the notifier.").assistant(OUTBOX)
        for number in range(620):
            talk.user(f"From now on always use port {8000 + number} for the harbour of {number} boats.")
        om("observe", "-q", stdin=talk.text())
        usual = ("context", *session, "--tier", tier, "--budget", "300")
        assert "outbox" not in om(*usual).stdout
        assert "outbox" in om(*usual, "--for", "notifier events").stdout

    def test_pinned_rows_and_open_requests_keep_their_place(self, told: Om) -> None:
        talk = Talk(session=ONE, cwd=str(told.folder)).user("Please measure the tide at the gate.")
        told("observe", "-q", stdin=talk.text())
        told("note", "Never touch the crane.", "--tag", "pinned", "--session", ONE)
        pack = packed(told, "--tier", "session", "--budget", "70", "--for", "lost events")
        assert "crane" in pack
        assert "measure the tide" in pack
        assert OUTBOX in pack

    def test_rows_come_first_after_pinned_ones_if_the_newest_are_preferred(self, told: Om) -> None:
        """S1.9: base, recalled, reflections, observations, recent messages."""
        env = {"OM_CONTEXT_SELECT": "recent"}
        tier = ("context", "--session", ONE, "--tier", "session", "--budget", "60")
        assert "outbox" not in told(*tier, env=env).stdout
        assert "outbox" in told(*tier, "--for", "notifier events", env=env).stdout

    def test_the_scope_holds(self, told: Om) -> None:
        query = ("--for", "lighthouse dredging")
        assert "lighthouse" in packed(told, *query)
        assert "lighthouse" not in packed(told, *query, "--scope", "session")
        told("observe", "-q", stdin=Talk(session=OTHER[:-1] + "c", cwd="/else").user("Hello.").text())
        assert "lighthouse" not in told("context", "--session", OTHER[:-1] + "c", *query).stdout
        assert "lighthouse" in told("context", "--session", OTHER[:-1] + "c", *query, "--scope", "global").stdout

    def test_hidden_rows_do_not_come(self, told: Om) -> None:
        told("forget", "--match", "outbox")
        assert "outbox" not in packed(told, "--for", "outbox table")


class TestNothingTwice:
    def test_what_the_last_messages_say_is_no_row_as_well(self, om: Om) -> None:
        rule = "From now on the outbox is emptied at noon."
        om("observe", "-q", stdin=Talk(session=ONE).user("We decided to use PNG.").user(rule).text())
        pack = packed(om, "--for", "when is the outbox emptied")
        assert pack.count(rule) == 1
        assert packed(om).count(rule) == 2

    def test_a_rule_of_another_session_that_was_repeated_here_is_told_once(self, om: Om) -> None:
        rule = "Always run make lint before you push."
        for session in (OTHER, ONE):
            om("observe", "-q", stdin=Talk(session=session, cwd=str(om.folder)).user(rule).text())
        assert packed(om, "--for", "lint").count(rule) == 1

    @pytest.mark.parametrize("session", [ONE, OTHER])
    def test_what_the_user_said_and_noted_is_told_once_and_stays_pinned(self, told: Om, session: str) -> None:
        rule = "Always run make lint before you push."
        told("note", rule, "--tag", "pinned", "--session", session)
        talk = piers(Talk(session=ONE, cwd=str(told.folder)).user(rule).assistant("Noted."), about="the gate")
        told("observe", "-q", stdin=talk.text())
        shown = ("--tail-budget", "0", "--for", "lint before the push")
        assert packed(told, *shown).count(rule) == 1
        explained = told("context", "--session", ONE, *shown, "--explain", "--json").document
        assert [row["reason"] for row in explained["rows"] if rule in row["text"]] == ["pinned"]

    def test_what_was_said_before_the_last_messages_is_still_a_row(self, told: Om) -> None:
        pack = packed(told, "--tail-budget", "30", "--for", "outbox events")
        assert pack.count(OUTBOX) == 1


class TestOtherwiseAsBefore:
    @pytest.mark.parametrize("text", ["", "?!", "zeppelin", "the and of"])
    def test_a_text_that_nothing_matches_changes_no_byte(self, told: Om, text: str) -> None:
        for arguments in ([], ["--budget", "300"], ["--json"], ["--to", "xml"], ["--tier", "cross"]):
            assert packed(told, *arguments, "--for", text) == packed(told, *arguments)
        ended = told("context", "--session", ONE, "--for", text)
        assert ended.stderr == ("om: no row matches `--for`\n" if text else "")

    def test_nothing_stored_prints_nothing(self, om: Om) -> None:
        assert om("context", "--for", "lost events").stdout == ""
        assert not om.has_store

    def test_the_store_is_only_read(self, told: Om) -> None:
        before = stored(told.place)
        assert "outbox" in packed(told, "--for", "outbox events")
        assert stored(told.place) == before

    def test_a_pack_for_a_task_is_not_frozen(self, told: Om) -> None:
        """T62: as with --refresh; without a match it is the frozen one."""
        env = {"OM_CONTEXT_FREEZE": "1"}
        usual = ("context", "--session", ONE, "--json")
        assert "frozen_at" in told(*usual, env=env).document
        assert "frozen_at" in told(*usual, "--for", "zeppelin", env=env).document
        assert "frozen_at" not in told(*usual, "--for", "outbox events", env=env).document

    def test_a_pack_is_printed_even_if_the_block_is_the_default(self, told: Om) -> None:
        env = {"OM_CONTEXT_BLOCK": "1"}
        assert told("context", "--session", ONE, "--for", "outbox", env=env).stdout.startswith("<om-memory")
        ended = told("context", "--working-memory", "--for", "outbox", code=2)
        assert "`--working-memory` excludes tiers, `--for` and `--explain`" in ended.stderr

    @given(
        text=st.lists(
            st.sampled_from([*PIERS, "paint", "quay", "why", '"before the summer"', "\u6771", "%"]), max_size=6
        ).map(lambda words: " ".join(["outbox", *words])),
        budget=st.integers(0, 900),
    )
    @examples(20)
    def test_the_budget_holds_for_any_text(self, full: Om, text: str, budget: int) -> None:
        """F50, S2.35."""
        pack = packed(full, "--budget", str(budget), "--for", text)
        assert counter().text(pack) <= budget
        rows = [line.split("User: ", 1)[1] for line in pack.splitlines() if "User: " in line]
        assert len(rows) == len(set(rows))
        assert not [row for row in rows if f"user: {row}" in pack]


@pytest.fixture(scope="module", name="full")
def store_of_piers(new_om: Callable[[], Om]) -> Om:
    om = new_om()
    for session in (OTHER, ONE):
        talk = piers(
            Talk(session=session, cwd=str(om.folder)).user("Look at it.").assistant(OUTBOX),
            about=f"the pier of {session[-1]}",
        )
        om("observe", "-q", stdin=talk.text())
    return om
