"""The status of rows as more is said and done, in the same batch, a later one or a later run."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.observation import Observation, Priority, Status, Type
from omcli.text.phrases import searchable, unknown_anchors
from tests.batches import Talk, in_sight, remembered

FAILURES = (Type.COMMAND_ERROR, Type.TOOL_ERROR)
ASKED = (Type.REQUEST, Type.QUESTION)

Told = list[tuple[Status | None, str]]


def told(rows: list[Observation]) -> Told:
    return [(row.status, row.text) for row in rows]


def both_ways(talk: Talk, *ends: int, types: tuple[Type, ...]) -> Told:
    """Return the rows visible after one run, and check that several runs give the same."""
    at_once = told(in_sight(remembered(talk), *types))
    assert told(in_sight(remembered(talk, *ends), *types)) == at_once
    return at_once


class TestFailures:
    def fails(self, talk: Talk, why: str = "FAIL a.test.ts") -> Talk:
        return talk.tool("Bash", {"command": "bun test"}, why, failed=True, exit_code=1)

    def passes(self, talk: Talk) -> Talk:
        return talk.tool("Bash", {"command": "bun test 2>&1 | tail -5"}, "12 pass", failed=False, exit_code=0)

    @pytest.mark.parametrize("end", [2, 3, 4])
    def test_a_failure_is_resolved_when_the_same_command_passes_in_a_later_run(self, end: int) -> None:
        """S4.16, T35."""
        talk = self.passes(self.fails(Talk()).agent("Let me fix this."))
        rows = both_ways(talk, end, types=FAILURES)
        assert rows == [(Status.RESOLVED, "Ran: bun test → exit 1: FAIL a.test.ts")]

    def test_the_row_that_resolves_a_failure_has_both_as_sources_and_says_what_it_replaces(self) -> None:
        """S4.16: superseded by a row of its own; nothing is edited."""
        store = remembered(self.passes(self.fails(Talk())), 2)
        failure, resolved = in_sight(store, *FAILURES, hidden=True)
        assert (failure.status, failure.superseded_by, failure.reason) == (Status.OPEN, resolved.id, "resolved")
        assert (resolved.status, resolved.priority, resolved.sources) == (
            Status.RESOLVED,
            Priority.MEDIUM,
            (1, 2, 3, 4),
        )
        assert resolved.message_ids == ("m1", "m2", "m3", "m4")
        assert resolved.event_at == "2026-03-02T10:03:00.000Z"

    @pytest.mark.parametrize(
        ("failed", "passed", "status"),
        [
            ({"command": "cd /src/web && make"}, {"command": "cd /src/api && make"}, Status.OPEN),
            ({"command": "make", "workdir": "/src/web"}, {"command": "make", "workdir": "/src/api"}, Status.OPEN),
            ({"command": "cd web && make"}, {"command": "cd 'api' && make"}, Status.OPEN),
            ({"command": "cd web && make", "workdir": "/src"}, {"command": "cd /src/web && make"}, Status.RESOLVED),
            ({"command": "cd /src/web && make"}, {"command": "cd ../web; make"}, Status.RESOLVED),
            ({"command": "cd /src/web && make"}, {"command": "make"}, Status.RESOLVED),
            ({"command": "make"}, {"command": "make", "workdir": "/src/web"}, Status.RESOLVED),
        ],
    )
    def test_a_command_that_passes_in_another_directory_resolves_nothing(
        self, failed: dict[str, str], passed: dict[str, str], status: Status
    ) -> None:
        """S4.16, T35: and where no directory is named, it may be any."""
        talk = Talk().tool("Bash", failed, "Error: no rule", failed=True, exit_code=2)
        talk = talk.tool("Bash", passed, "built", failed=False, exit_code=0)
        assert both_ways(talk, 2, types=FAILURES) == [(status, "Ran: make → exit 2: Error: no rule")]

    def test_failures_of_one_command_in_two_directories_are_two(self) -> None:
        """S4.16: alike as they look, each has its own end."""
        talk = Talk()
        for place in ("/src/web", "/src/api"):
            talk = talk.tool("Bash", {"command": "make", "workdir": place}, "Error: no rule", failed=True, exit_code=2)
        talk = talk.tool("Bash", {"command": "make", "workdir": "/src/api"}, "built", failed=False, exit_code=0)
        row = "Ran: make → exit 2: Error: no rule"
        assert both_ways(talk, 2, 4, types=FAILURES) == [(Status.OPEN, row), (Status.RESOLVED, row)]

    def test_a_failed_edit_is_resolved_when_the_file_is_edited(self) -> None:
        """S4.16, T31."""
        talk = Talk().tool("Edit", {"file_path": "a.py", "old_string": "x"}, "String not found", failed=True)
        talk.tool("Edit", {"file_path": "a.py", "old_string": "y = 1", "new_string": "y = 2"}, "ok")
        assert both_ways(talk, 2, types=FAILURES) == [(Status.RESOLVED, "Edit a.py failed: String not found")]

    @pytest.mark.parametrize("ends", [(2,), (4,), (2, 4)])
    def test_a_failure_that_happens_again_is_one_row_with_a_count(self, ends: tuple[int, ...]) -> None:
        """F33, T22: all sources, and what went wrong the last time."""
        talk = self.fails(self.fails(self.fails(Talk()), "FAIL b.test.ts"), "FAIL c.test.ts")
        assert both_ways(talk, *ends, types=FAILURES) == [(Status.OPEN, "Ran: bun test → exit 1: FAIL c.test.ts (× 3)")]
        assert in_sight(remembered(talk, *ends), *FAILURES)[0].sources == (1, 2, 3, 4, 5, 6)

    @pytest.mark.parametrize("ends", [(2,), (4,), (2, 4)])
    def test_a_failure_that_comes_back_is_open_again(self, ends: tuple[int, ...]) -> None:
        talk = self.fails(self.passes(self.fails(Talk())))
        assert both_ways(talk, *ends, types=FAILURES) == [(Status.OPEN, "Ran: bun test → exit 1: FAIL a.test.ts (× 2)")]

    def test_another_failure_of_a_command_leaves_a_resolved_one_alone(self) -> None:
        talk = self.fails(self.passes(self.fails(Talk())), "FAIL b.test.ts")
        assert both_ways(talk, 4, types=FAILURES) == [
            (Status.RESOLVED, "Ran: bun test → exit 1: FAIL a.test.ts"),
            (Status.OPEN, "Ran: bun test → exit 1: FAIL b.test.ts"),
        ]

    def test_another_command_that_passes_resolves_nothing(self) -> None:
        talk = self.fails(Talk()).tool("Bash", {"command": "bun lint"}, "ok", exit_code=0)
        assert [status for status, _ in both_ways(talk, 2, types=FAILURES)] == [Status.OPEN]

    @pytest.mark.parametrize("ends", [(), (2,), (3,)])
    def test_a_failure_is_resolved_by_the_same_command_in_other_words(self, ends: tuple[int, ...]) -> None:
        """S4.16: what was run again is the same, however it was spelled."""
        talk = Talk().tool("Bash", {"command": "npm test"}, "FAIL a.test.ts", failed=True, exit_code=1)
        talk.tool("Bash", {"command": "cd /src/app && CI=1 npm run test --silent"}, "12 passed", exit_code=0)
        assert both_ways(talk, *ends, types=FAILURES) == [(Status.RESOLVED, "Ran: npm test → exit 1: FAIL a.test.ts")]

    def test_a_run_shown_only_by_its_end_resolves_nothing_if_it_counts_failures(self) -> None:
        """S4.16: the status is that of `tail`."""
        talk = self.fails(Talk())
        talk.tool("Bash", {"command": "bun test 2>&1 | tail -2"}, "Tests: 3 failed, 9 passed", failed=False)
        assert [status for status, _ in both_ways(talk, 2, types=FAILURES)] == [Status.OPEN]

    @pytest.mark.parametrize("ends", [(), (3,), (5,), (6,)])
    def test_a_dead_end_is_resolved_once_another_way_works(self, ends: tuple[int, ...]) -> None:
        talk = Talk().user("Number the harbours")
        talk.tool("Bash", {"command": "node -e 'number()'"}, "SyntaxError: number", failed=True, exit_code=1)
        edits(talk).agent("Done: numbered the harbours in `auth.py`.")
        assert [status for status, _ in both_ways(talk, *ends, types=FAILURES)] == [Status.RESOLVED]

    @pytest.mark.parametrize("ends", [(), (3,), (5,), (6,)])
    def test_tests_that_failed_and_were_not_run_again_stay_open_whatever_is_reported(
        self, ends: tuple[int, ...]
    ) -> None:
        talk = self.fails(Talk().user("Number the harbours"))
        edits(talk).agent("Done: numbered the harbours in `auth.py`.")
        assert [status for status, _ in both_ways(talk, *ends, types=FAILURES)] == [Status.OPEN]

    @pytest.mark.parametrize("ends", [(), (3,), (4,)])
    def test_a_search_in_vain_is_resolved_with_the_turn(self, ends: tuple[int, ...]) -> None:
        talk = Talk().user("Where are the tides kept?")
        talk.tool("Read", {"file_path": "tides.csv"}, "File does not exist.", failed=True)
        talk.agent("They are computed from the moon.").user("Then add a table of them")
        assert [status for status, _ in both_ways(talk, *ends, types=FAILURES)] == [Status.RESOLVED]

    def test_a_supposed_end_of_a_turn_resolves_nothing(self) -> None:
        talk = Talk().user("Number the harbours")
        talk.tool("Bash", {"command": "node -e 'number()'"}, "SyntaxError: number", failed=True, exit_code=1)
        edits(talk).agent("Numbered the harbours in `auth.py`.")
        talk.tool("Read", {"file_path": "b.py"}, "…")
        assert [status for status, _ in both_ways(talk, 6, types=FAILURES)] == [Status.OPEN]

    @pytest.mark.parametrize("end", [2, 4])
    def test_equal_outcomes_are_counted_in_one_row(self, end: int) -> None:
        """T22, F33: forty times `all passed` is one fact."""
        talk = Talk()
        for _ in range(3):
            talk.tool("Bash", {"command": "pytest -q"}, "3 passed", exit_code=0)
        assert both_ways(talk, end, types=(Type.COMMAND_RUN,)) == [
            (Status.DONE, "Ran: pytest -q → exit 0: 3 passed (× 3)")
        ]

    def test_the_same_words_in_a_later_run_are_one_row_with_both_sources(self) -> None:
        """T22: the same observation, and again next run."""
        (row,) = in_sight(remembered(Talk().user("Always use tabs").user("Always use tabs"), 1))
        assert row.sources == (1, 2)


class TestWhatGoesOn:
    def test_a_command_polled_in_a_later_run_gives_its_outcome(self) -> None:
        """T28: `(still running)` is replaced by the outcome."""
        talk = Talk().tool("exec_command", {"cmd": "bun run test"}, "Process running with session ID 7", failed=None)
        assert told(in_sight(remembered(talk))) == [(Status.OPEN, "Ran: bun run test (still running)")]
        talk.agent("Let me wait.")
        talk.tool("write_stdin", {"session_id": 7, "chars": ""}, "FAIL a.test.ts", failed=True, exit_code=1)
        for ends in ((), (2,), (3,)):
            rows = in_sight(remembered(talk, *ends))
            assert told(rows) == [(Status.OPEN, "Ran: bun run test → exit 1: FAIL a.test.ts")]
            assert {1, 5} <= set(rows[0].sources)

    def test_a_background_command_that_ends_well_resolves_an_earlier_failure(self) -> None:
        """S4.16."""
        talk = Talk().tool("Bash", {"command": "npm test"}, "3 failed", failed=True, exit_code=1)
        talk.tool("Bash", {"command": "npm test"}, "Command running in background with ID: ab12")
        talk.tool("BashOutput", {"bash_id": "ab12"}, "<status>completed</status>\n<exit_code>0</exit_code>\n9 passed")
        for ends in ((), (2,), (4,), (2, 4)):
            rows = told(in_sight(remembered(talk, *ends)))
            assert sorted(rows, key=str) == [
                (Status.DONE, "Ran: npm test → exit 0: 9 passed"),
                (Status.RESOLVED, "Ran: npm test → exit 1: 3 failed"),
            ]

    def test_a_delegation_in_the_background_says_what_came_of_it_when_it_is_asked(self) -> None:
        """S4.8."""
        launched = "Async agent launched successfully.\nagentId: a96 (internal)\nThe agent is currently working."
        talk = Talk().tool("Task", {"description": "Find the timeout", "prompt": "…"}, launched)
        answer = "<status>completed</status>\n<output>\nThe timeout is in `net/client.py`.\n</output>"
        talk.tool("TaskOutput", {"task_id": "a96"}, answer)
        assert both_ways(talk, 2, types=(Type.TASK_DELEGATED,)) == [
            (Status.DONE, "Delegated: Find the timeout → The timeout is in `net/client.py`.")
        ]
        assert told(in_sight(remembered(Talk(kept=talk.kept[:2])))) == [
            (Status.OPEN, "Delegated: Find the timeout (still running)")
        ]


class TestQuestions:
    def asked(self) -> Talk:
        return Talk().user("Set up the database").agent("The schema is ready. Which timezone should reports use?")

    def test_a_short_answer_takes_the_place_of_its_question_and_holds_it(self) -> None:
        talk = self.asked().user("UTC everywhere")
        assert both_ways(talk, 2, types=ASKED)[-1] == (
            Status.OPEN,
            "User: UTC everywhere (answering: Which timezone should reports use?)",
        )
        question = next(row for row in in_sight(remembered(talk, 2), hidden=True) if row.reason == "answered")
        assert question.text == "Agent: Which timezone should reports use?"

    def test_a_long_answer_that_takes_up_the_question_holds_it_too(self) -> None:
        long = "For now I would like the reports to be in UTC, whatever the customers have chosen in their settings"
        rows = both_ways(self.asked().user(long), 2, types=ASKED)
        assert rows[-1][1] == f"User: {long} (answering: Which timezone should reports use?)"
        assert not any(text.startswith("Agent: Which") for _, text in rows)

    def test_an_unanswered_question_stays_open(self) -> None:
        other = "Please add a changelog entry for the last release and tag it as v1.2.0, then push the branch"
        rows = both_ways(self.asked().user(other), 2, types=ASKED)
        assert (Status.OPEN, "Agent: Which timezone should reports use?") in rows

    def test_a_bare_yes_closes_the_question_it_agrees_to(self) -> None:
        """O9."""
        talk = Talk().user("Clean up").agent("The cache is stale. Is it fine to drop the `sessions` table?").user("yes")
        assert in_sight(remembered(talk, 2), Type.QUESTION) == []

    def test_a_question_below_a_heading_is_named_once(self) -> None:
        talk = Talk().user("Set up the database")
        talk.agent("The schema is ready.\n\n**Reports:**\n\nShould they be in UTC, or in local time?").user(
            "in UTC, please"
        )
        rows = both_ways(talk, 2, types=(*ASKED, Type.DECISION))
        assert [text for _, text in rows if "UTC" in text] == [
            "User: in UTC, please (answering: Should they be in UTC, or in local time?)"
        ]

    def test_an_answer_names_two_of_many_questions_and_closes_all(self) -> None:
        asked = "Which harbours? Which depths of harbours? Which names of harbours? Should harbours have names?"
        rows = both_ways(Talk().user("Draw it").agent(asked).user("the harbours with names and depths"), 2, types=ASKED)
        texts = [text for _, text in rows]
        assert [text.count("(answering: ") for text in texts if text.startswith("User: the harbours")] == [2]
        assert not any(text.startswith("Agent: ") for text in texts)

    def test_a_question_that_begins_like_a_named_one_is_not_named_again(self) -> None:
        asked = "Next: how should the harbours be sorted?\n\n**Next: how should the harbours be sorted?** By depth:"
        rows = both_ways(Talk().user("Draw it").agent(asked).user("sorted by depth"), 2, types=ASKED)
        assert [text.count("(answering: ") for _, text in rows if text.startswith("User: sorted")] == [1]

    def test_requests_that_come_to_say_the_same_are_settled_together(self) -> None:
        """XG2: the answer takes up the question each time, so two open rows say the same; settling one takes both."""
        talk = Talk()
        for _ in range(3):
            talk.user("Sounds good! I'll talk to Bea about the buoys and be open about the colour. Let's see!")
            talk.agent("The plan is ready. Which colour should the buoys be? And which harbour?")
        for _ in range(2):
            talk.user("Please paint the buoys red and plan the colour well").agent("It hardly matters. Good luck!")
        rows = in_sight(remembered(talk), *ASKED)
        assert len({row.text for row in rows}) == len(rows)

    def test_a_persons_question_is_answered_by_the_turns_closing_text(self) -> None:
        talk = Talk().user("What does the --strict flag do?").agent("It makes every warning an error.")
        assert both_ways(talk, 1, types=ASKED) == [(Status.DONE, "User: What does the --strict flag do?")]

    def test_what_is_answered_or_done_keeps_its_date_and_its_place_before_the_answer(self) -> None:
        """A log is read from the top: what was asked comes first, at the time it was asked."""
        talk = Talk().user("What does the --strict flag do?").agent("`--strict` makes every warning an error.")
        rows = in_sight(remembered(talk))
        assert [row.text.partition(":")[0] for row in rows] == ["User", "Agent"]
        assert (rows[0].status, rows[0].event_at) == (Status.DONE, "2026-03-02T10:00:00.000Z")
        [asked] = in_sight(remembered(talk, 1), *ASKED)
        assert asked.event_at == "2026-03-02T10:00:00.000Z"

    def test_an_answer_that_something_is_not_possible_answers_a_question_and_leaves_a_request_open(self) -> None:
        answer = "It is not possible: `sqlite` holds one writer at a time."
        for asked, status in (("Can two runs write at once?", Status.DONE), ("Let two runs write", Status.OPEN)):
            talk = Talk().user(asked).agent(answer).user("Rename the module to login")
            assert told(in_sight(remembered(talk), *ASKED))[0] == (status, f"User: {asked}")

    def test_a_persons_question_that_gets_no_answer_stays_open(self) -> None:
        talk = Talk().user("What does the --strict flag do?").tool("Read", {"file_path": "a.py"}, "…")
        assert both_ways(talk, 1, types=ASKED) == [(Status.OPEN, "User: What does the --strict flag do?")]


def edits(talk: Talk) -> Talk:
    return talk.tool("Edit", {"file_path": "auth.py", "old_string": "a", "new_string": "b"}, "ok")


class TestRequests:
    REQUEST = "User: Fix the login redirect"

    def start(self) -> Talk:
        return edits(Talk().user("Fix the login redirect"))

    def test_every_request_is_open_at_first(self) -> None:
        """Prompts and slash commands alike."""
        assert told(in_sight(remembered(Talk().user("Fix the login redirect")))) == [(Status.OPEN, self.REQUEST)]
        command = Talk().event("/review the login", MessageKind.COMMAND)
        assert told(in_sight(remembered(command))) == [(Status.OPEN, "User ran: /review the login")]

    @pytest.mark.parametrize("ends", [(1,), (3,), (1, 3)])
    def test_a_report_that_says_so_makes_it_done(self, ends: tuple[int, ...]) -> None:
        talk = self.start().agent("Done. Fixed the redirect in `auth.py`: `next_url` was dropped.")
        assert both_ways(talk, *ends, types=ASKED) == [(Status.DONE, self.REQUEST)]

    @pytest.mark.parametrize("ends", [(1,), (3,), (4,), (1, 4)])
    def test_a_report_that_is_accepted_makes_it_done(self, ends: tuple[int, ...]) -> None:
        talk = self.start().agent("The redirect keeps `next_url` this way.").user("Rename the module to login")
        assert both_ways(talk, *ends, types=ASKED) == [
            (Status.DONE, self.REQUEST),
            (Status.OPEN, "User: Rename the module to login"),
        ]

    @pytest.mark.parametrize(
        "report",
        [
            "I fixed the redirect, but I couldn't run the tests.",
            "I changed `auth.py`; the login test is still failing.",
            "I changed `auth.py`. Which of the two redirects did you mean?",
            "I changed `auth.py`. The second redirect is not done yet.",
            "Updated `auth.py`. I cannot push: the registry requires your credentials.",
            "Now let me run the tests.",
            "Updated `auth.py`.\n\nRemaining:\n- the logout page",
            "Updated `auth.py`. The logout page remains to be done.",
            "Updated `auth.py`. Three of the remaining tests need a browser.\nRemaining work: the logout page",
        ],
    )
    def test_a_report_that_leaves_something_open_leaves_the_request_open(self, report: str) -> None:
        talk = self.start().agent(report)
        for end in (1, 3, 4):
            rows = told(in_sight(remembered(talk, end), Type.REQUEST))
            assert rows == [(Status.OPEN, self.REQUEST)]

    @pytest.mark.parametrize(
        "remark",
        [
            "The logout page remains as it was.",
            "A warning is logged when the upload of the login fails.",
            "Next options:\n- Add a page for the logout?\n- Show the name of the user?",
            "Want to try it in the browser, or go on with the logout?",
            "| | before | now |\n|---|---|---|\n| asks | Who is it? | nothing |",
        ],
    )
    def test_what_is_offered_supposed_or_left_as_it_was_leaves_nothing_open(self, remark: str) -> None:
        talk = self.start().agent(f"Fixed the redirect in `auth.py`.\n\n{remark}")
        assert (Status.DONE, self.REQUEST) in told(in_sight(remembered(talk), Type.REQUEST))

    @pytest.mark.parametrize(
        "objection",
        [
            "No, that's the wrong file",
            "It still redirects to /",
            "continue",
            "you forgot the tests",
            "same error as before",
        ],
    )
    @pytest.mark.parametrize("ends", [(), (1,), (4,)])
    def test_a_person_who_objects_takes_it_up_again(self, objection: str, ends: tuple[int, ...]) -> None:
        talk = self.start().agent("Fixed the redirect in `auth.py`.").user(objection)
        assert (Status.OPEN, self.REQUEST) in told(in_sight(remembered(talk, *ends)))

    @pytest.mark.parametrize("ends", [(), (1,), (4,), (5,)])
    def test_what_was_interrupted_stays_open(self, ends: tuple[int, ...]) -> None:
        talk = (
            self.start()
            .agent("The redirect drops `next_url` here.")
            .event("[Request interrupted]", MessageKind.INTERRUPT)
        )
        talk.user("Rename the module to login")
        assert (Status.OPEN, self.REQUEST) in told(in_sight(remembered(talk, *ends)))

    @pytest.mark.parametrize("ends", [(), (1,), (2,)])
    def test_what_is_asked_again_with_more_words_takes_the_place_of_what_was_broken_off(
        self, ends: tuple[int, ...]
    ) -> None:
        talk = Talk().user("remove the tests of the parser").event("[Request interrupted]", MessageKind.INTERRUPT)
        talk.user("remove the two slow tests of the parser again")
        rows = told(in_sight(remembered(talk, *ends), *ASKED))
        assert rows == [(Status.OPEN, "User: remove the two slow tests of the parser again")]

    def test_a_request_for_something_else_replaces_nothing(self) -> None:
        talk = Talk().user("remove the tests of the parser").user("remove the tests of the lexer")
        assert len(in_sight(remembered(talk), *ASKED)) == 2

    @pytest.mark.parametrize("ends", [(), (2,), (5,)])
    def test_a_plan_that_was_approved_is_done_with_what_it_was_for(self, ends: tuple[int, ...]) -> None:
        talk = Talk().user("Plan and build the login page")
        talk.tool("ExitPlanMode", {"plan": "1. Draw the form\n2. Check the password"}, "User has approved your plan.")
        plans = in_sight(remembered(talk), Type.PLAN)
        assert [row.status for row in plans] == [Status.OPEN]
        edits(talk).agent("Implemented the login page in `auth.py`.")
        plans = in_sight(remembered(talk, *ends), Type.PLAN)
        assert [row.status for row in plans] == [Status.DONE]

    @pytest.mark.parametrize("ends", [(), (3,), (5,), (6,)])
    def test_what_ended_with_a_failure_stays_open(self, ends: tuple[int, ...]) -> None:
        talk = self.start().tool("Bash", {"command": "bun test"}, "FAIL login.test.ts", failed=True, exit_code=1)
        talk.agent("Fixed the redirect in `auth.py`.").user("Rename the module to login")
        assert (Status.OPEN, self.REQUEST) in told(in_sight(remembered(talk, *ends)))

    def test_an_agent_that_goes_on_after_a_report_takes_it_up_again(self) -> None:
        """A run in the middle of a turn may take a text for its last."""
        talk = self.start().agent("Updated `auth.py`.")
        assert told(in_sight(remembered(talk), *ASKED)) == [(Status.DONE, self.REQUEST)]
        talk.tool("Bash", {"command": "bun test"}, "FAIL login.test.ts", failed=True, exit_code=1)
        assert both_ways(talk, 4, types=ASKED) == [(Status.OPEN, self.REQUEST)]

    def test_an_answer_in_parts_is_read_as_a_whole(self) -> None:
        talk = self.start().agent("I couldn't find the second redirect.")
        talk.add(Message(role=Role.ASSISTANT, text="Fixed the first one in `auth.py`.", kind=MessageKind.CONTINUED))
        assert both_ways(talk, 1, 3, types=ASKED) == [(Status.OPEN, self.REQUEST)]

    def test_a_correction_belongs_to_the_request_before_it(self) -> None:
        talk = self.start().agent("Fixed the redirect in `auth.py`.").user("No, keep the query string")
        edits(talk).agent("Done: the query string is kept now.")
        assert both_ways(talk, 1, 4, 5, types=ASKED) == [(Status.DONE, self.REQUEST)]

    def test_what_is_done_is_asked_for_again(self) -> None:
        talk = self.start().agent("Fixed the redirect in `auth.py`.").user("Fix the login redirect")
        assert both_ways(talk, 4, types=ASKED) == [(Status.OPEN, self.REQUEST)]


class TestWhatTheTalkWentPast:
    """O9: people ask again for what they did not get; what nobody came back to is not open for ever."""

    FIRST = "User: Fix the login redirect"

    def start(self) -> Talk:
        return edits(Talk().user("Fix the login redirect"))

    @pytest.mark.parametrize("ends", [(), (3,), (4,), (6,)])
    def test_a_request_that_was_answered_with_a_question_is_done_with_what_came_of_the_answer(
        self, ends: tuple[int, ...]
    ) -> None:
        talk = self.start().agent("There are two redirects. Which of them should keep `next_url`?")
        edits(talk.user("The one in `auth.py`, after the password")).agent("Fixed the redirect in `auth.py`.")
        rows = both_ways(talk, *ends, types=ASKED)
        assert (Status.DONE, self.FIRST) in rows
        assert all(status is Status.DONE for status, _ in rows)

    @pytest.mark.parametrize("ends", [(), (3,), (4,), (6,)])
    def test_what_was_broken_off_is_done_with_what_it_was_part_of(self, ends: tuple[int, ...]) -> None:
        talk = (
            self.start().event("[Request interrupted]", MessageKind.INTERRUPT).user("Also keep the query string of it")
        )
        edits(talk).agent("Fixed the redirect in `auth.py`, with its query string.")
        assert (Status.DONE, self.FIRST) in both_ways(talk, *ends, types=ASKED)

    @pytest.mark.parametrize("ends", [(), (3,), (4,), (7,)])
    def test_a_corrected_request_is_neither_open_nor_done(self, ends: tuple[int, ...]) -> None:
        talk = self.start().event("[Request interrupted]", MessageKind.INTERRUPT).user("No, stop, not there")
        talk.user("Rename the module to login")
        edits(talk).agent("Renamed `auth.py` to `login.py`.")
        rows = both_ways(talk, *ends, types=ASKED)
        assert rows == [(None, self.FIRST), (Status.DONE, "User: Rename the module to login")]

    @pytest.mark.parametrize("ends", [(), (3,), (4,), (6,)])
    def test_what_an_agent_could_not_do_stays_open_when_something_else_is_done(self, ends: tuple[int, ...]) -> None:
        talk = self.start().agent("I couldn't find the second redirect.").user("Rename the module to login")
        edits(talk).agent("Renamed `auth.py` to `login.py`.")
        rows = both_ways(talk, *ends, types=ASKED)
        assert rows == [(Status.OPEN, self.FIRST), (Status.DONE, "User: Rename the module to login")]

    @pytest.mark.parametrize("ends", [(), (2,), (3,), (5,)])
    def test_a_question_of_the_agent_is_open_until_it_goes_on_without_an_answer(self, ends: tuple[int, ...]) -> None:
        question = "Agent: Which timezone should reports use?"
        talk = Talk().user("Set up the database").agent("The schema is ready. Which timezone should reports use?")
        talk.user("Please add a changelog entry for the last release and tag it as v1.2.0, then push the branch")
        assert (Status.OPEN, question) in both_ways(talk, 2, types=ASKED)
        edits(talk).agent("Added the entry and pushed v1.2.0.")
        assert (None, question) in both_ways(talk, *ends, types=ASKED)

    @pytest.mark.parametrize("command", ["/exit", "/review"])
    def test_a_slash_command_ends_the_turn_before_it(self, command: str) -> None:
        talk = self.start().agent("The redirect keeps `next_url` this way.").event(command, MessageKind.COMMAND)
        talk.tool("Read", {"file_path": "auth.py"}, "…").agent("I cannot review it: the file is empty.")
        assert both_ways(talk, 3, 4, types=ASKED) == [(Status.DONE, self.FIRST)]

    @pytest.mark.parametrize("ends", [(), (3,), (4,)])
    def test_a_text_that_only_announces_ends_nothing(self, ends: tuple[int, ...]) -> None:
        talk = self.start().agent("Now let me run the tests.").user("Is the port still free?")
        assert (Status.OPEN, self.FIRST) in both_ways(talk, *ends, types=ASKED)


COMMIT = ("git commit -qam 'Fix the login'", "[main 1a2b3c4] Fix the login")
PUSH = ("git push", "1..2 main -> main")
TESTS = ("bun test", "12 pass")
PULL = ("gh pr create --fill", "https://github.com/ada/tides/pull/12")


class TestDeeds:
    """XC2: what commands have done is done, whatever the agent says of it, and if it says nothing."""

    def after(self, asked: str, *commands: tuple[str, str], fails: bool = False) -> Talk:
        talk = edits(Talk().user("Fix the login redirect")).agent("Fixed the redirect in `auth.py`.").user(asked)
        for command, output in commands:
            talk.tool("Bash", {"command": command}, output, failed=fails, exit_code=int(fails))
        return talk

    @pytest.mark.parametrize(
        ("asked", "commands"),
        [
            ("commit", [COMMIT]),
            ("ok, please commit this", [COMMIT]),
            ("push it", [PUSH]),
            ("great, now push to main", [PUSH]),
            ("commit and push", [COMMIT, PUSH]),
            ("open a PR for it", [PULL]),
            ("commit, push and create a PR please", [COMMIT, PUSH, PULL]),
            ("run the tests", [TESTS]),
            ("run all tests again and commit", [TESTS, COMMIT]),
            ("merge the branch", [("git merge login", "Fast-forward")]),
            ("merge the PR", [("gh pr merge 12 --squash", "merged")]),
        ],
    )
    @pytest.mark.parametrize("said", ["", "There you are.", "The branch is at `1a2b3c4`."])
    def test_what_was_asked_for_in_a_word_is_done_with_the_command(
        self, asked: str, commands: list[tuple[str, str]], said: str
    ) -> None:
        talk = self.after(asked, *commands)
        if said:
            talk.agent(said)
        for ends in ((), (4,), (4, 5, 6)):
            assert (Status.DONE, f"User: {asked}") in told(in_sight(remembered(talk, *ends), *ASKED))

    @pytest.mark.parametrize(
        ("asked", "commands"),
        [
            ("commit and push", [COMMIT]),
            ("push it", [COMMIT]),
            ("commit and add a changelog entry", [COMMIT]),
            ("run the tests and mend what breaks", [TESTS]),
            ("open a PR for it", [PUSH]),
            ("merge the branch", [("git status", "clean")]),
        ],
    )
    def test_what_asks_for_more_is_open_until_all_of_it_is_done(
        self, asked: str, commands: list[tuple[str, str]]
    ) -> None:
        talk = self.after(asked, *commands)
        for ends in ((), (4,), (4, 5)):
            assert (Status.OPEN, f"User: {asked}") in told(in_sight(remembered(talk, *ends), *ASKED))

    @pytest.mark.parametrize("asked", ["commit", "push it", "run the tests"])
    def test_a_command_that_failed_does_nothing(self, asked: str) -> None:
        talk = self.after(asked, (COMMIT[0], "hook failed"), (PUSH[0], "rejected"), ("bun test", "x"), fails=True)
        for ends in ((), (4,), (4, 6)):
            assert (Status.OPEN, f"User: {asked}") in told(in_sight(remembered(talk, *ends), *ASKED))

    @pytest.mark.parametrize("ends", [(), (3,), (6,)])
    def test_a_turn_that_changed_files_and_ends_with_nothing_missing_is_done(self, ends: tuple[int, ...]) -> None:
        talk = edits(Talk().user("Rename the module to login")).agent("It is called `login` everywhere in `auth.py`.")
        assert both_ways(talk, *ends, types=ASKED) == [(Status.DONE, "User: Rename the module to login")]


class TestPriorities:
    """XB4: a mark is for what the user wants now."""

    @pytest.mark.parametrize(
        "asked", ["Fix the login redirect", "Please add a table of the tides", "What does the --strict flag do?"]
    )
    @pytest.mark.parametrize("ends", [(), (3,)])
    def test_what_is_done_has_medium_priority_and_keeps_its_importance(self, asked: str, ends: tuple[int, ...]) -> None:
        talk = edits(Talk().user(asked))
        [before] = in_sight(remembered(talk), *ASKED)
        [row] = in_sight(remembered(talk.agent("Done: it is in `auth.py` now."), *ends), *ASKED)
        assert (row.status, row.priority, row.importance) == (Status.DONE, Priority.MEDIUM, before.importance)

    @pytest.mark.parametrize("objection", ["No, that's the wrong file", "It still redirects to /", "same error"])
    @pytest.mark.parametrize("ends", [(), (1,), (4,)])
    def test_what_is_taken_up_again_gets_its_priority_back(self, objection: str, ends: tuple[int, ...]) -> None:
        talk = edits(Talk().user("Fix the login redirect")).agent("Fixed the redirect in `auth.py`.").user(objection)
        row = in_sight(remembered(talk, *ends), *ASKED)[0]
        assert (row.status, row.priority) == (Status.OPEN, Priority.HIGH)

    def test_what_is_asked_for_again_is_as_important_as_before(self) -> None:
        talk = edits(Talk().user("Fix the login redirect")).agent("Fixed the redirect in `auth.py`.")
        talk.user("Fix the login redirect")
        [row] = in_sight(remembered(talk, 4), *ASKED)
        assert (row.status, row.priority) == (Status.OPEN, Priority.HIGH)


class TestTodosAndBlockers:
    def test_a_list_of_todos_takes_the_place_of_its_earlier_state(self) -> None:
        """T32: of several updates the latest only, also when they came in several runs."""
        talk = Talk()
        for state in ("pending", "in_progress", "completed"):
            talk.tool("TodoWrite", {"todos": [{"content": "write the parser", "status": state}]}, "ok")
            talk.agent("Let me go on.")
        assert both_ways(talk, 3, 6, types=(Type.TODO_UPDATED,)) == [(Status.DONE, "Todos: 1 completed")]

    def test_another_list_leaves_it_alone(self) -> None:
        talk = Talk().tool("TodoWrite", {"todos": [{"content": "write the parser", "status": "completed"}]}, "ok")
        talk.user("Now the docs")
        talk.tool("TodoWrite", {"todos": [{"content": "write the docs", "status": "pending"}]}, "ok")
        assert len(both_ways(talk, 2, types=(Type.TODO_UPDATED,))) == 2

    @pytest.mark.parametrize("done", [0, 1, 2, 3, 4])
    @pytest.mark.parametrize("ends", [(), (4,), (8,)])
    def test_a_list_that_nobody_touches_while_other_things_are_done_is_not_open_for_ever(
        self, done: int, ends: tuple[int, ...]
    ) -> None:
        """XC10: after three requests that were made and done since."""
        talk = Talk().user("Plan the docs")
        talk.tool("TodoWrite", {"todos": [{"content": "write the docs", "status": "pending"}]}, "ok")
        talk.agent("Planned the docs: there is one page to write.")
        for number in range(done):
            edits(talk.user(f"Add the harbour number {number}")).agent(f"Added harbour {number} to `auth.py`.")
        [row] = in_sight(remembered(talk, *ends), Type.TODO_UPDATED)
        assert row.status is (None if done >= 3 else Status.OPEN)
        if done >= 3:
            talk.tool("TodoWrite", {"todos": [{"content": "write the docs", "status": "in_progress"}]}, "ok")
            [row] = in_sight(remembered(talk, *ends), Type.TODO_UPDATED)
            assert row.status is Status.OPEN

    @pytest.mark.parametrize("ends", [(), (1,), (3,), (6,)])
    def test_a_blocker_is_resolved_when_what_it_stood_in_the_way_of_is_done(self, ends: tuple[int, ...]) -> None:
        talk = edits(Talk().user("Push the login fix").agent("I cannot push: the registry requires your credentials."))
        edits(talk).agent("Done. Fixed the login and pushed it to main.")
        rows = told(in_sight(remembered(talk, *ends), Type.BLOCKER))
        assert rows == [(Status.RESOLVED, "Agent: I cannot push: the registry requires your credentials.")]

    def test_a_blocker_that_the_report_ends_with_stays_open(self) -> None:
        talk = edits(Talk().user("Push the login fix")).agent("Fixed it. I cannot push: it requires your credentials.")
        assert [status for status, _ in both_ways(talk, 1, 3, types=(Type.BLOCKER,))] == [Status.OPEN]


class TestOverruling:
    @pytest.mark.parametrize(
        ("before", "after", "now"),
        [
            ("Let's use Postgres for the queue", "use SQLite instead of Postgres",
             "User: use SQLite instead of Postgres (earlier: Let's use Postgres for the queue)"),
            ("Let's use npm", "Let's switch from npm to pnpm", "User: Let's switch from npm to pnpm"),
            ("We use Redis for sessions", "We no longer use Redis",
             "User: We no longer use Redis (earlier: We use Redis for sessions)"),
            ("We have 10 rows per page", "Actually, make it 20 instead of 10",
             "User: Actually, make it 20 instead of 10 (earlier: We have 10 rows per page)"),
            ("I prefer tabs", "forget what I said about tabs", "User: forget what I said about tabs"),
            ("Let's call it `harbor`", "Scrap that, let's call it `quay`",
             "User: Scrap that, let's call it `quay` (earlier: Let's call it `harbor`)"),
            ("Our deadline is March 3", "Our deadline is March 10",
             "User: Our deadline is March 10 (earlier: March 3)"),
            ("My manager is Ada", "My manager is Bea", "User: My manager is Bea (earlier: Ada)"),
            ("I live in Lisbon", "I live in Porto", "User: I live in Porto (earlier: Lisbon)"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("ends", [(), (1,)])
    def test_what_a_later_message_changes_is_overruled(
        self, before: str, after: str, now: str, ends: tuple[int, ...]
    ) -> None:
        """The earlier row is hidden; its words stay in the row that supersedes it."""
        assert [row.text for row in in_sight(remembered(Talk().user(before).user(after), *ends))] == [now]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("I have a friend called Bea who sails", "I have a friend called Ada who dives"),
            ("I bought 3 boats in spring", "I bought 5 boats in spring"),
            ("We use Postgres for the queue", "use SQLite instead of Postgres in the unit tests"),
            ("Let's use Postgres", "Let's use Redis"),
            ("My sister works at Acme", "We no longer use Postgres"),
            ("Step 1 is in src/one.py", "Step 2 is in src/one.py"),
            ("Never use npm", "use pnpm instead of yarn"),
            ("use pnpm instead of npm", "We no longer use npm"),
            ("We ran it with all 10 workers", "We ran it with all 12 workers"),
        ],
    )
    def test_what_may_both_be_true_stays(self, before: str, after: str) -> None:
        """Superseding hides a row: if in doubt, both stay."""
        assert len(in_sight(remembered(Talk().user(before).user(after)))) == 2

    def test_a_long_row_is_not_hidden_for_one_of_its_words(self) -> None:
        long = "We use Postgres for the queue, Redis for the sessions, " + "and a service of its own for mail, " * 5
        assert len(in_sight(remembered(Talk().user(long).user("use SQLite instead of Postgres")))) == 2

    def test_people_do_not_overrule_each_other(self) -> None:
        talk = (
            Talk().user("I live in Lisbon, near the river", name="Bea").user("I no longer live in Lisbon", name="Ada")
        )
        assert len(in_sight(remembered(talk, 1))) == 2

    def test_an_agent_does_not_overrule_a_person(self) -> None:
        talk = Talk().user("Let's use Postgres").agent("I decided to use SQLite instead of Postgres for the prototype.")
        assert "User: Let's use Postgres" in [row.text for row in in_sight(remembered(talk, 1))]

    def test_a_person_overrules_an_agents_decision(self) -> None:
        talk = Talk().user("Pick a database").agent("I decided on Postgres for the queue, since it is there already.")
        talk.user("No, use SQLite instead of Postgres")
        texts = [row.text for row in in_sight(remembered(talk, 2), Type.DECISION, Type.CORRECTION)]
        assert len(texts) == 1
        assert "use SQLite instead of Postgres (earlier: I decided on Postgres" in texts[0]

    def test_a_chain_of_changes_names_only_the_last_value(self) -> None:
        talk = Talk().user("Let's use Postgres for the queue").user("use SQLite instead of Postgres")
        talk.user("Let's use Redis instead of SQLite")
        (row,) = in_sight(remembered(talk, 1, 2))
        assert row.text == "User: Let's use Redis instead of SQLite (earlier: use SQLite instead of Postgres)"

    @pytest.mark.parametrize(
        "run", ["instead of ", "not a, but ", "from ", " (earlier: ", "1 is ", "Scrap that ", ", not "]
    )
    def test_hostile_statements_take_linear_time(self, run: str) -> None:
        long = run * (50_000 // len(run))
        began = time.process_time()
        in_sight(remembered(Talk().user("Let's use a").user(long).user(f"Let's use {run * 30}").agent(long), 1))
        assert time.process_time() - began < 2


# ---- whatever is said, wherever it is cut

_COMMANDS = st.sampled_from(["bun test", "make lint", "make lint && bun test"])
_SAID = st.sampled_from([
    "I'll ask Bea about the flag. Let's see!",
    "Fix the parser", "Add a flag", "What is slow?", "no, revert it", "continue", "Let's use Postgres",
    "use SQLite instead of Postgres", "Always use tabs", "yes", "The limit is 10", "The limit is 20",
])  # fmt: skip
_ANSWERED = st.sampled_from([
    "Done. Fixed the parser.", "It is the loader.", "I couldn't find it.", "Which flag should it be?",
    "The plan is ready. Which flag should it be? And which colour?", "Let me look.", "Updated a.py; 3 tests pass.",
])  # fmt: skip


def _user(talk: Talk, text: str) -> None:
    talk.user(text)


def _agent(talk: Talk, text: str) -> None:
    talk.agent(text)


def _fails(talk: Talk, command: str) -> None:
    talk.tool("Bash", {"command": command}, f"error: {command} broke", failed=True, exit_code=1)


def _passes(talk: Talk, command: str) -> None:
    talk.tool("Bash", {"command": command}, "4 passed", failed=False, exit_code=0)


Step = tuple[Callable[[Talk, str], None], str]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just(_user), _SAID),
        st.tuples(st.just(_agent), _ANSWERED),
        st.tuples(st.just(_fails), _COMMANDS),
        st.tuples(st.just(_passes), _COMMANDS),
    ),
    max_size=10,
)


def _talk_of(steps: list[Step]) -> Talk:
    talk = Talk()
    for add, text in steps:
        add(talk, text)
    return talk


def _told_by(talk: Talk, ends: list[int], *types: Type) -> list[tuple[str, str | None, str]]:
    return sorted((row.type, row.status, row.text) for row in in_sight(remembered(talk, *ends), *types))


@given(steps=STEPS, ends=st.lists(st.integers(0, 20), max_size=4))
@settings(deadline=None)
def test_wherever_messages_are_cut_failures_and_commands_come_out_alike(steps: list[Step], ends: list[int]) -> None:
    """S4.16, T35, T22: one batch or several, the same rows are visible."""
    talk = _talk_of(steps)
    types = (*FAILURES, Type.COMMAND_RUN)
    assert _told_by(talk, ends, *types) == _told_by(talk, [], *types)


@given(steps=STEPS, ends=st.lists(st.integers(0, 20), max_size=4))
@settings(deadline=None)
def test_wherever_messages_are_cut_requests_come_out_alike(steps: list[Step], ends: list[int]) -> None:
    talk = _talk_of(steps)
    assert _told_by(talk, ends, Type.REQUEST) == _told_by(talk, [], Type.REQUEST)


ASKS_TWO_THINGS = "The plan is ready. Which flag should it be? And which colour?"


@given(steps=STEPS, ends=st.lists(st.integers(0, 20), max_size=4))
@example(steps=[(_agent, ASKS_TWO_THINGS), (_user, "Always use tabs")] * 2, ends=[])
@settings(deadline=None)
def test_no_visible_row_is_doubled_or_open_though_resolved(steps: list[Step], ends: list[int]) -> None:
    """T22, T35; and every row names only what its sources say (invariant 8)."""
    talk = _talk_of(steps)
    rows = in_sight(remembered(talk, *ends))
    assert len({(row.type, row.text) for row in rows}) == len(rows)
    passed = {text for add, text in steps if add is _passes}
    for row in rows:
        if row.type is Type.COMMAND_ERROR and row.status is Status.OPEN and row.metadata["command"] in passed:
            last = max(i for i, step in enumerate(steps) if step == (_passes, row.metadata["command"]))
            assert (_fails, row.metadata["command"]) in steps[last:]
    known = {
        kept.seq: searchable(f"{kept.message.tool or ''} {kept.message.exit_code} {kept.message.text}")
        for kept in talk.kept
    }
    assert all(unknown_anchors(row.text, [known[seq] for seq in row.sources]) == () for row in rows)


@given(steps=STEPS, ends=st.lists(st.integers(0, 20), max_size=4))
@settings(deadline=None)
def test_a_replaced_row_is_replaced_by_one_that_exists(steps: list[Step], ends: list[int]) -> None:
    """Invariant 5: nothing is destroyed in passing."""
    rows = {row.id: row for row in in_sight(remembered(_talk_of(steps), *ends), hidden=True)}
    for row in rows.values():
        if row.superseded_by:
            assert set(row.sources) <= set(rows[row.superseded_by].sources)
            assert row.reason
