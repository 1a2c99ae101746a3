"""`om replay`: the pack of a moment, whatever has happened since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.scripts import always
from tests.e2e.transcripts import Talk

SESSION = "5d0c6e0a-0000-4000-8000-0000000000aa"
OTHER = "5d0c6e0a-0000-4000-8000-0000000000bb"
THEN = "2026-02-10T09:03:30Z"
LATER = "2026-02-11T08:00:00Z"
TOLD = ("--session", SESSION)


def morning() -> Talk:
    return (
        Talk(session=SESSION, cwd="/home/ada/ferry")
        .user("We decided to print the ferry timetable in src/board.py. Please fix the header of the board.")
        .call("Bash", {"command": "pytest tests/test_board.py"})
        .result("E1234: header is upside down\nFAILED tests/test_board.py::test_header", is_error=True)
        .assistant("The header fails; I look into it.")
    )


def rest_of_the_day(talk: Talk) -> Talk:
    """The same talk, in which the request is done, the error resolved and the decision replaced after `THEN`."""
    for number in range(20):
        talk.user(f"The tide gauge {number} stands in harbour {number + 100}, next to the old pier of that harbour.")
    talk.call("Bash", {"command": "pytest tests/test_board.py"}).result("1 passed")
    talk.assistant("Done: the header of the board is fixed.")
    return talk.user("Print the ferry timetable in src/poster.py instead of src/board.py.")


def elsewhere() -> Talk:
    talk = Talk(session=OTHER, cwd="/home/ada/ferry", begin=datetime(2026, 2, 10, 8, 30, tzinfo=UTC))
    return talk.user("Always answer in Danish. We decided to use metric units.")


def observe(om: Om, talk: Talk, now: str) -> None:
    om("observe", "-q", "--now", now, stdin=talk.text())


def reflect(om: Om, now: str) -> None:
    """Fold the rows of the session into one, with a model."""
    assert om("reflect", *TOLD, "--model", always(om, "echo").model, "--now", now, "--json").document["reflections"]


@pytest.fixture
def told(om: Om) -> Om:
    """A store in which a session has begun, another one has ended, and a note was written."""
    observe(om, elsewhere(), THEN)
    observe(om, morning(), THEN)
    om("note", "The harbour master signs releases.", "--now", THEN, cwd=om.home)
    return om


class TestReplay:
    @pytest.mark.parametrize(
        "options",
        [(), ("--to", "markdown"), ("--json",), ("--working-memory",), ("--tier", "session"), ("--budget", "300"),
         ("--scope", "global"), ("--notation", "emoji")],
        ids=" ".join,
    )  # fmt: skip
    def test_it_prints_what_context_printed_then(self, told: Om, options: tuple[str, ...]) -> None:
        """Whatever came since: messages that settle and replace rows, notes, folding, pruning and forgetting."""
        printed = told("context", *TOLD, *options, "--now", THEN).stdout
        observe(told, rest_of_the_day(morning()), LATER)
        observe(told, elsewhere().user("We no longer use metric units.", timestamp=LATER), LATER)
        told("note", "The harbour master is on leave.", "--now", LATER, cwd=told.home)
        reflect(told, LATER)
        told("forget", "--match", "Danish", "--now", LATER)
        told("prune", "--older-than", "1d", "--now", "2027-02-11T09:00:00Z", code=None)
        assert told("context", *TOLD, *options, "--now", THEN).stdout != printed
        assert told("replay", *TOLD, *options, "--at", THEN).stdout == printed

    def test_the_store_is_not_changed(self, told: Om) -> None:
        observe(told, rest_of_the_day(morning()), LATER)
        told("forget", "--match", "Danish", "--now", LATER)
        before = stored(told.place)
        told("replay", *TOLD, "--at", THEN)
        assert stored(told.place) == before

    def test_messages_observed_together_with_later_ones_are_pending(self, new_om: Callable[[], Om]) -> None:
        """Otherwise a request would already be done, or would be missing because only its later state was written."""
        om, live = new_om(), new_om()
        observe(om, rest_of_the_day(morning()), LATER)
        live("observe", "-q", "--later", "--now", THEN, stdin=morning().text())
        for options in ((), ("--working-memory",), ("--tail-budget", "40")):
            replayed = om("replay", *TOLD, "--at", THEN, *options).stdout
            assert replayed == live("context", *TOLD, "--now", THEN, *options).stdout
            assert "header" in replayed

    def test_a_moment_after_everything_gives_the_pack_of_now(self, told: Om) -> None:
        observe(told, rest_of_the_day(morning()), LATER)
        assert told("replay", *TOLD, "--at", LATER).stdout == told("context", *TOLD, "--now", LATER).stdout

    def test_before_its_first_message_a_session_has_only_rows_of_others(self, told: Om) -> None:
        assert "Danish" in told("replay", *TOLD, "--at", "2026-02-10T08:40:00Z").stdout
        assert told("replay", *TOLD, "--at", "2026-02-10T08:00:00Z").stdout == ""

    def test_the_freeze_point_is_ignored(self, told: Om) -> None:
        env = {"OM_CONTEXT_FREEZE": "1"}
        printed = told("context", *TOLD, "--now", THEN, "--refresh", env=env).stdout
        observe(told, rest_of_the_day(morning()), LATER)
        assert told("replay", *TOLD, "--at", THEN, env=env).stdout == printed

    def test_it_says_what_came_later(self, told: Om) -> None:
        observe(told, rest_of_the_day(morning()), LATER)
        reflect(told, LATER)
        ended = told("replay", *TOLD, "--at", THEN)
        assert "om: as of 2026-02-10 09:03: 24 messages and 1 operation came later\n" in ended.stderr


class TestRefusing:
    def test_an_operation_that_held_then_and_was_undone_later(self, told: Om) -> None:
        told("forget", "--match", "Danish", "--now", THEN)
        told("undo", "--now", LATER)
        ended = told("replay", *TOLD, "--at", THEN, code=65)
        assert ended.stdout == ""
        assert "operation 1 was in force then, and was undone by 2 later" in ended.stderr
        told("replay", *TOLD, "--at", "2026-02-10T09:01:00Z")
        told("replay", *TOLD, "--at", LATER)

    def test_folding_that_can_no_longer_be_undone(self, told: Om) -> None:
        observe(told, rest_of_the_day(morning()), LATER)
        reflect(told, LATER)
        told("forget", "--match", "board", "--hard", "--yes", "--now", LATER)
        ended = told("replay", *TOLD, "--at", THEN, code=65)
        assert "were permanently deleted" in ended.stderr

    def test_what_was_deleted_for_good_is_missing_and_named(self, told: Om) -> None:
        told("forget", "--match", "Danish", "--hard", "--yes", "--now", LATER)
        ended = told("replay", *TOLD, "--at", THEN)
        assert "Danish" not in ended.stdout
        assert "without what operations 1 permanently deleted" in ended.stderr

    def test_rows_folded_before_the_date_of_their_messages(self, told: Om) -> None:
        """A clock was wrong, or `--now` was given."""
        observe(told, rest_of_the_day(morning()), LATER)
        reflect(told, THEN)
        assert "have a later date" in told("replay", *TOLD, "--at", THEN, code=65).stderr

    def test_a_session_without_dates(self, om: Om) -> None:
        om("observe", "-q", "--session", "ferry", "--now", LATER, stdin="User: Use metric units.\nAssistant: I will.\n")
        ended = om("replay", "--session", "ferry", "--at", THEN, code=65)
        assert "messages of session `ferry` have no dates" in ended.stderr
        printed = om("context", "--session", "ferry", "--now", LATER).stdout
        assert om("replay", "--session", "ferry", "--at", LATER).stdout == printed

    @pytest.mark.parametrize("at", ["yesterday", "", "2026-13-01"])
    def test_a_time_that_is_none(self, told: Om, at: str) -> None:
        told("replay", *TOLD, "--at", at, code=2)

    def test_an_unknown_session(self, told: Om) -> None:
        told("replay", "--session", "zeppelin", "--at", THEN, code=66)
        told("replay", *TOLD, code=2)
