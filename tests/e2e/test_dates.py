"""The three dates of a row: when it was written, when it happened, and when its words speak of."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import Om
from tests.e2e.scripts import script
from tests.e2e.transcripts import Talk
from tests.replying import answer, said


def told(om: Om, *turns: tuple[str, str]) -> list[tuple[str, str | None]]:
    """What rows say and speak of, of a conversation in which each turn is a time and a person's words."""
    lines = [json.dumps({"role": "user", "content": text, "timestamp": at}) for at, text in turns]
    om("observe", "--format", "openai", "--now", "2026-04-01T10:00:00Z", stdin="\n".join(lines))
    return [(row["text"], row.get("refers_to")) for row in om("log", "--jsonl").lines]


def test_a_row_has_three_dates_and_its_words_as_they_were(om: Om) -> None:
    """S0.29, C19, T26: written, said, and spoken of."""
    talk = Talk().user("The audit is in two weeks, keep main green until then.")
    om("observe", "--now", "2026-02-11T08:30:00Z", stdin=talk.text())
    (row,) = om("log", "--json").document["observations"]
    assert (row["observed_at"][:16], row["event_at"][:16]) == ("2026-02-11T08:30", "2026-02-10T09:00")
    assert row["refers_to"] == "2026-02-24"
    assert row["text"].endswith("in two weeks, keep main green until then.")
    shown = om("show", row["id"]).stdout
    assert "refers_to     2026-02-24\n" in shown
    assert om("show", row["id"], "--json").document["observation"]["refers_to"] == "2026-02-24"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-11T00:30:00+02:00", "2026-03-10"),
        ("2026-03-10T22:30:00Z", "2026-03-09"),  # the same instant, and nothing said about the zone
        ("2026-03-11T00:30:00", "2026-03-10"),
        ("2026-03-10T20:30:00-05:00", "2026-03-09"),
    ],
)
def test_yesterday_is_the_day_before_in_the_speakers_zone(om: Om, at: str, expected: str) -> None:
    """S0.29, F70: also half an hour after midnight."""
    assert told(om, (at, "We moved the queue to Postgres yesterday")) == [
        ("User: We moved the queue to Postgres yesterday", expected)
    ]


def test_what_may_mean_two_days_is_left_open(om: Om) -> None:
    """S0.29: never guessed. 2026-03-11 is a Wednesday."""
    at = "2026-03-11T10:00:00Z"
    rows = told(
        om, (at, "The review is next Friday"), (at, "We use the backup from 03/04/2026"), (at, "I go next Monday")
    )
    assert [spoken for _, spoken in rows] == [None, None, "2026-03-16"]


@pytest.mark.parametrize("by_model", [False, True])
def test_no_date_stands_behind_words_that_name_several(om: Om, by_model: bool) -> None:
    """XB10, S0.29: it would be read as that of each of them. 2026-02-10 is a Tuesday."""
    texts = {
        "Tomorrow we ship version 2; on Friday Ines paints the quay; the review is next month.": None,
        "Today we decided that Ines paints the harbour tomorrow.": "2026-02-11",
    }
    for number, (text, expected) in enumerate(texts.items()):
        model = script(om, answer(said(text, "m1", refers_to="2026-02-11")), name=f"{number}.json")
        chosen = ("--model", model.model) if by_model else ()
        om("observe", "-q", *chosen, stdin=Talk(session=f"s{number}").user(text).text())
        found = om("log", "--jsonl", "--session", f"s{number}").lines
        assert {row.get("refers_to") for row in found} == {expected}
        pack = om("context", "--session", f"s{number}", "--tier", "session").stdout
        assert ("(2026-02-11)" in pack) == bool(expected)


def test_a_context_says_the_same_before_and_after_midnight(om: Om) -> None:
    """F48 F52: dates are absolute, and a plan for a day is not declared done when that day has passed.

    Only the heading of the last messages tells their age (S0.29).
    """
    told(om, ("2026-03-11T10:00:00Z", "We will migrate the billing tables tomorrow"))
    printed = [
        om("context", "--budget", "2000", "--now", now).stdout
        for now in ("2026-03-11T23:59:00Z", "2026-03-12T00:01:00Z", "2031-01-01T00:00:00Z")
    ]
    headings = [re.search("Last messages.*", pack)[0] for pack in printed]  # type: ignore[index]
    assert headings == ["Last messages:", "Last messages, 1 day ago:", "Last messages, 4 years ago:"]
    assert len({pack.replace(heading, "") for pack, heading in zip(printed, headings, strict=True)}) == 1
    assert "tables tomorrow" in printed[0]
