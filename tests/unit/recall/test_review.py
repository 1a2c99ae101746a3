"""Contradictions between statements, and what is old and unconfirmed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omcli.base.record import replace
from omcli.memory.observation import PINNED, UNVERIFIED, Kind, Observation, Source, Status, Type
from omcli.recall.review import CONFIRMED, ReviewReason, contradicted, to_review
from tests.material import row

FACT, DECISION, RULE, WISH = Type.FACT, Type.DECISION, Type.INSTRUCTION, Type.PREFERENCE

CONTRADICT = [
    (FACT, "User: The API listens on port 8123.", "User: The API now listens on port 9321."),
    (FACT, "Agent: The metrics exporter listens on port 8123.", "Agent: The metrics exporter listens on port 9321."),
    (FACT, "Agent: The metrics exporter listens on port 8123.", "User: The metrics exporter uses port 9321."),
    (FACT, "User: tide-gate runs on port 8123.", "User: Behind the proxy, set the tide-gate port to 9321."),
    (DECISION, "User: The port is 8123.", "User: We changed the port to 9321, because 8123 is taken."),
    (FACT, "User: The staging host is quay.example.", "User: The staging host is now pier.example."),
    (FACT, "User: Our wiki is at https://wiki.quay.example/", "User: Our wiki is at https://docs.quay.example/"),
    (DECISION, "User: We ship on Friday.", "User: Actually, we ship on Monday."),
    (DECISION, "User: The deadline is 3 March.", "User: The deadline is 17 March (Noor asked for it)."),
    (DECISION, "User: We use pandas version 1.4.", "User: We use pandas version 1.5."),
    (FACT, "User: The tide library is on 1.4.", "User: We updated the tide library to 1.5."),
    (DECISION, "User: Let's keep the retry limit at 5.", "User: The retry limit should be 8."),
    (DECISION, "User: The upload timeout is 30 s.", "User: We raised the upload timeout from 30 to 90 s."),
    (FACT, "User: The retry limit is 5.", "User: The retry limit is 50."),
    (DECISION, "User: Point the proxy to `north`.", "User: Point the proxy to `south`."),
    (RULE, "User: Keep coverage above 80%.", "User: Keep coverage above 85%."),
    (FACT, "User: We use version 1.4 of the tide library.", "User: We use version 1.5 of the tide library now."),
    (Type.REQUEST, "User: The API listens on port 8123.", "User: The API listens on port 9321 from now on."),
    (FACT, "User: Our database is Postgres.", "User: Our database is MariaDB."),
    (FACT, "User: I live in Lyon.", "User: I live in Porto now."),
    (FACT, "User: Our release branch is called `harbour`.", "User: Our release branch is called `jetty`."),
    (RULE, "User: Always squash commits before merging.", "User: Never squash commits before merging."),
    (RULE, "User: Use tabs in Makefiles.", "User: Don't use tabs in Makefiles."),
    (WISH, "User: I prefer tabs over spaces.", "User: I prefer spaces over tabs."),
    (RULE, "User: Use fakes instead of mocks.", "User: Use mocks instead of fakes."),
    (Type.KNOWLEDGE, "The nightly backup runs at 02:30.", "The nightly backup runs at 04:15."),
]  # fmt: skip

DO_NOT = [
    (FACT, "User: I opened port 8123 on the router.", "User: I opened port 9321 on the router."),
    (FACT, "User: Port 8123 is taken.", "User: Port 9321 is taken."),
    (FACT, "User: The API listens on port 8123.", "User: The worker listens on port 9321."),
    (FACT, "User: The API listens on port 8123.", "User: The API listens on port 8123 and 9321."),
    (FACT, "User: The API listens on port 8123.", "User: If that is taken, the API listens on port 9321."),
    (FACT, "User: The API listens on port 8123.", "User: Does the API listen on port 9321?"),
    (FACT, "User: The API listens on port 8123 in production.", "User: The API listens on port 9321 in staging."),
    (FACT, "User: The old host is quay.example.", "User: The host is pier.example."),
    (FACT, "User: tide-gate runs on port 8123 in tests.", "User: tide-gate runs on port 9321 in production."),
    (FACT, "Agent: 41 tests pass.", "Agent: 43 tests pass."),
    (FACT, "Agent: The number of failures is 3.", "Agent: The number of failures is 0."),
    (FACT, "Agent: The build took 31 seconds.", "Agent: The build took 44 seconds."),
    (FACT, "Agent: Coverage is at 81%.", "Agent: Coverage is at 84%."),
    (FACT, "User: The bug is in `gate.py`.", "User: The bug is in `lock.py`."),
    (FACT, "User: The root cause is `gate.py`.", "User: The root cause is `lock.py`."),
    (FACT, "User: The culprit is Noor.", "User: The culprit is Bea."),
    (FACT, "User: The radius is 5 cm.", "User: The circumference is 31 cm."),
    (RULE, "User: Deploy the tide tables to `north`.", "User: Deploy the tide tables to `south`."),
    (RULE, "User: Look at chapter 3.", "User: Look at chapter 4."),
    (RULE, "User: Don't push the branch yet.", "User: Push the branch."),
    (FACT, "User: tide-gate runs on port 8123.", "User: tide-gate runs on port 9321 in tests."),
    (FACT, "User: The error is E1234.", "User: The error is E2345."),
    (FACT, "Agent: The helper is at line 40.", "Agent: The helper is at line 88."),
    (FACT, "Agent: The tests in test_gate.py fail.", "Agent: The tests in test_lock.py fail."),
    (FACT, "User: We were on version 1.4.", "User: We were on version 1.5."),
    (FACT, "User: My sister lives in Lyon.", "User: I live in Porto."),
    (FACT, "User: His phone is 5550100.", "User: Her phone is 5550199."),
    (FACT, "User: I have a class on Monday.", "User: I have a class on Friday."),
    (FACT, "Noor: I live in Lyon.", "Bea: I live in Porto."),
    (FACT, "User: The retry limit is 5.", "Agent: The retry limit is 8."),
    (FACT, "Output of curl says: The retry limit is 5.", "Output of curl says: The retry limit is 8."),
    (FACT, "User: The version is 1.4.", "User: The version is 1.4.2."),
    (FACT, "User: We might ship on Friday.", "User: We might ship on Monday."),
    (FACT, "User: The cache is not warm.", "User: The cache is warm."),
    (RULE, "User: Always squash commits before merging.", "User: Never force-push commits before merging."),
    (RULE, "User: Use tabs in Makefiles.", "User: Don't use tabs in Python files."),
    (RULE, "User: Read docs/gate.md before you start.", "User: Read docs/lock.md before you start."),
    (WISH, "User: I prefer small commits.", "User: I prefer short functions."),
    (Type.COMMAND_RUN, "Ran: serve --port 8123", "Ran: serve --port 9321"),
    (Type.OUTCOME, "Agent: The API listens on port 8123.", "Agent: The API listens on port 9321."),
    (Type.REQUEST, "User: Start the API on port 8123.", "User: Start the API on port 9321."),
]  # fmt: skip


def said(*texts: str, type_: Type = FACT, source: Source = Source.RULES) -> list[Observation]:
    """Rows of one project, one a day."""
    return [
        replace(row(number, text=text, type=type_, event_at=f"2026-03-{number:02}T09:00:00.000Z"), source=source)
        for number, text in enumerate(texts, start=1)
    ]


def pairs(rows: Sequence[Observation]) -> list[tuple[str, str]]:
    return [(one.text, other.text) for one, other in contradicted(rows)]


class TestContradictions:
    @pytest.mark.parametrize(("type_", "earlier", "later"), CONTRADICT)
    def test_the_later_value_holds(self, type_: Type, earlier: str, later: str) -> None:
        assert pairs(said(earlier, later, type_=type_)) == [(earlier, later)]
        assert pairs(said(earlier, later, type_=type_)[::-1]) == [(earlier, later)]

    @pytest.mark.parametrize(("type_", "earlier", "later"), DO_NOT)
    def test_both_may_hold(self, type_: Type, earlier: str, later: str) -> None:
        assert pairs(said(earlier, later, type_=type_)) == []

    def test_of_rows_with_one_date_the_last_in_the_log_holds(self) -> None:
        """Their ids say nothing: those made in one millisecond are in no order."""
        texts = [f"User: The retry limit is {number}." for number in (5, 8, 12)]
        ids = [one.id for one in said(*texts)][::-1]
        rows = [
            replace(one, id=id_, event_at="2026-03-01T09:00:00.000Z")
            for one, id_ in zip(said(*texts), ids, strict=True)
        ]
        assert pairs(rows) == [(texts[0], texts[2]), (texts[1], texts[2])]

    def test_the_last_of_several_values_contradicts_all_others(self) -> None:
        texts = [f"User: The retry limit is {number}." for number in (5, 8, 12)]
        assert pairs(said(*texts)) == [(texts[0], texts[2]), (texts[1], texts[2])]

    def test_a_value_that_holds_again_is_not_contradicted(self) -> None:
        texts = [f"User: The retry limit is {number}." for number in (5, 8, 5)]
        assert pairs(said(*texts)) == [(texts[1], texts[2])]

    def test_of_two_statements_that_are_contradicted_the_last_contradiction_is_named(self) -> None:
        """Whichever of them is made first."""
        port, limit = "The API listens on port 9321.", "The retry limit is 8."
        both = "The API listens on port 8123. The retry limit is 5."
        for later in ([port, limit], [limit, port]):
            assert pairs(said(both, *later)) == [(both, later[1])]

    def test_many_values_are_a_list(self) -> None:
        assert pairs(said(*(f"User: The retry limit is {number}." for number in range(20, 29)))) == []

    def test_rows_of_other_projects_are_about_something_else(self) -> None:
        one, other = said("User: The port is 8123.", "User: The port is 9321.")
        assert contradicted([one, replace(other, project="/src/tide")]) == ()
        assert len(contradicted([one, replace(other, session="t")])) == 1
        assert contradicted([replace(one, project=None), replace(other, project=None, session="t")]) == ()
        assert len(contradicted([replace(one, project=None), replace(other, project=None)])) == 1

    def test_a_note_is_a_persons_statement(self) -> None:
        one, other = said("User: The port is 8123.", "The port is 9321.")
        assert contradicted([one, other]) == ()
        noted = replace(other, kind=Kind.NOTE, source=Source.USER)
        assert contradicted([one, noted]) == ((one, noted),)

    def test_a_confirmed_row_is_contradicted_only_by_what_is_said_after_that(self) -> None:
        one, other, third = said("User: The port is 8123.", "User: The port is 9321.", "User: The port is 9400.")
        confirmed = replace(one, tags=(CONFIRMED,), observed_at="2026-03-02T12:00:00.000Z")
        assert contradicted([confirmed, other]) == ()
        assert contradicted([confirmed, third]) == ((confirmed, third),)

    def test_hidden_and_settled_rows_hold_no_longer(self) -> None:
        one, other = said("User: The port is 8123.", "User: The port is 9321.")
        assert contradicted([replace(one, superseded_by=other.id), other]) == ()
        assert contradicted([replace(one, status=Status.RESOLVED), other]) == ()

    def test_a_day_that_has_passed_says_nothing_about_the_next_time(self) -> None:
        one, other = said("User: The demo is on Friday.", "User: The demo is on Monday.")
        assert contradicted([replace(one, refers_to="2026-03-06"), other])
        assert contradicted([replace(one, refers_to="2026-03"), other])
        assert not contradicted([replace(one, refers_to="2026-03-01"), other])
        assert not contradicted([replace(one, refers_to="2026-02"), other])


BEFORE = "2026-06-01T00:00:00.000Z"


def reasons(*rows: Observation) -> list[ReviewReason]:
    return [entry.reason for entry in to_review(rows, before=BEFORE)]


class TestOld:
    @pytest.mark.parametrize(
        ("type_", "status", "is_old"),
        [
            (Type.DECISION, None, True),
            (Type.INSTRUCTION, None, True),
            (Type.PREFERENCE, None, True),
            (Type.REQUEST, Status.OPEN, True),
            (Type.BLOCKER, Status.OPEN, True),
            (Type.REQUEST, Status.DONE, False),
            (Type.BLOCKER, Status.RESOLVED, False),
            (Type.DECISION, Status.RESOLVED, False),
            (Type.FACT, None, False),
            (Type.FILE_READ, None, False),
        ],
    )
    def test_rules_and_what_is_open_get_old(self, type_: Type, status: Status | None, is_old: bool) -> None:
        (one,) = said("User: Moor the barge at the north pier.", type_=type_)
        assert bool(reasons(replace(one, status=status))) is is_old

    def test_items_get_old(self) -> None:
        (one,) = said("The barge moors at the north pier.", type_=Type.KNOWLEDGE)
        assert reasons(replace(one, kind=Kind.ITEM)) == [ReviewReason.OLD]

    def test_what_was_pinned_or_used_is_not_old(self) -> None:
        (one,) = said("User: Moor the barge at the north pier.", type_=RULE)
        assert reasons(replace(one, tags=(PINNED,))) == []
        assert reasons(replace(one, last_used_at="2026-06-02T00:00:00.000Z")) == []
        assert reasons(replace(one, last_used_at="2026-05-02T00:00:00.000Z")) == [ReviewReason.OLD]
        assert reasons(replace(one, event_at="2026-06-02T00:00:00.000Z")) == []

    def test_what_a_later_row_repeats_is_not_old(self) -> None:
        rows = said(
            "User: Moor the barge at the north pier.", "User: The barge: moor it at the north pier.", type_=RULE
        )
        rows = [rows[0], replace(rows[1], event_at="2026-06-02T00:00:00.000Z")]
        assert reasons(*rows) == []
        assert reasons(rows[0], replace(rows[1], project="/src/tide")) == [ReviewReason.OLD]

    def test_contradictions_come_first_then_what_is_unverified_then_by_importance(self) -> None:
        rows = said(
            "User: Moor the barge.",
            "User: Paint the buoys.",
            "Agent: The lamp is `L7`.",
            "User: The port is 8123.",
            "User: The port is 9321.",
            type_=RULE,
        )
        rows[1] = replace(rows[1], importance=9)
        rows[2] = replace(rows[2], tags=(UNVERIFIED,))
        entries = to_review(rows, before=BEFORE)
        assert [(entry.reason.value, entry.row.text.split()[-1]) for entry in entries] == [
            ("contradicted", "8123."), ("unverified", "`L7`."), ("old", "buoys."), ("old", "barge."), ("old", "9321."),
        ]  # fmt: skip
        assert entries[0].by == rows[4]
