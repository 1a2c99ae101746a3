"""The day, month or year a row of speech refers to, by its words and the time of its messages."""

from __future__ import annotations

import pytest

from omcli.memory.message import Message, MessageKind, Role
from tests.batches import Talk

MONDAY = "2026-03-02T10:00:00.000Z"
"""When the conversations of `Talk` begin."""


def test_a_row_has_the_day_its_words_speak_of_and_keeps_the_words() -> None:
    """S0.29: `refers_to` is computed, the text stays."""
    row = Talk().user("The audit is tomorrow, keep main green").one()
    assert (row.text, row.refers_to) == ("User: The audit is tomorrow, keep main green", "2026-03-03")
    assert row.event_at == MONDAY


def test_each_row_has_the_day_of_its_own_words() -> None:
    """O16."""
    rows = Talk().user("Please book a room on 2026-05-04 for us. Always tell me by the 9th what is missing.").observed()
    assert [row.refers_to for row in rows] == ["2026-05-04", "2026-03-09"]


def test_what_an_agent_says_is_dated_as_well() -> None:
    talk = Talk().user("What about the certificate?").agent("The certificate in net/tls.py expires in 3 days.")
    assert [row.refers_to for row in talk.observed() if row.text.startswith("Agent")] == ["2026-03-05"]


def test_a_row_without_a_named_date_has_none() -> None:
    assert Talk().user("Rename the module to cursors").one().refers_to is None


def test_rows_of_tools_and_commands_have_no_date() -> None:
    talk = Talk().tool("Bash", {"command": "git commit -m 'due tomorrow'"}, "[main 1a2b3c4] due tomorrow")
    talk.event("git log --since yesterday", MessageKind.SHELL)
    assert {row.refers_to for row in talk.observed()} == {None}


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [("2026-03-02T23:50:00.000Z", "2026-03-02T23:58:00.000Z", "2026-03-03"),
     ("2026-03-02T23:58:00.000Z", "2026-03-03T00:02:00.000Z", None)],
)  # fmt: skip
def test_an_answer_after_midnight_leaves_the_questions_tomorrow_open(
    asked: str, answered: str, expected: str | None
) -> None:
    """S0.29: never guessed."""
    talk = Talk().add(Message(role=Role.ASSISTANT, text="Shall we release 2.1 tomorrow?", at=asked))
    rows = talk.add(Message(role=Role.USER, text="yes", at=answered)).observed()
    assert [row.refers_to for row in rows if "agreed" in row.text] == [expected]


@pytest.mark.parametrize(("utc_offset", "expected"), [(None, "2026-03-01"), (120, "2026-03-02"), (-720, "2026-03-01")])
def test_yesterday_is_the_day_before_where_it_was_said(utc_offset: int | None, expected: str) -> None:
    """S0.29, F70: half past midnight in a zone two hours east of UTC."""
    said = Message(
        role=Role.USER, text="We moved to Postgres yesterday", at="2026-03-02T22:30:00.000Z", utc_offset=utc_offset
    )
    assert Talk().add(said).one().refers_to == expected
