"""What a model invents is marked wherever it is printed, and is no request of the user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.scripts import rows, script
from tests.e2e.transcripts import Talk
from tests.replying import answer, said

ASKED = "Please paint the quay of the harbour soon."


def noted(om: Om, user: str, text: str, **fields: object) -> list[dict[str, Any]]:
    """The rows of a session in which a model notes a text of what the user says on Tuesday, 10 February 2026."""
    model = script(om, answer(said(text, "m1", **fields)))
    talk = Talk().user(user).assistant("I look at it.")
    om("observe", "-q", om.write("t.jsonl", talk.text()), "--model", model.model)
    return rows(om)


@pytest.mark.parametrize(
    "text",
    [
        "The quay gets painted on 2027-05-14", "The quay gets painted in 2027-05", "The quay is painted in May 2027",
        "The quay painting failed with ECONNREFUSED", "The quay painting uses branch fix/quay",
    ],
)  # fmt: skip
def test_a_date_error_or_branch_that_no_source_names_is_unverified(om: Om, text: str) -> None:
    """XB12, XE1: the log and the pack say so."""
    (row,) = [row for row in noted(om, ASKED, text, kind="fact", priority="high") if row["text"] == text]
    assert (row["tags"], row["priority"]) == (["unverified"], "low")
    assert "unverified" in next(line for line in om("log").stdout.splitlines() if text in line)
    assert "unverified" in next(line for line in om("context").stdout.splitlines() if text in line)


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("Paint the quay next year.", "Painting of the quay moved to 2027"),
        ("Paint the quay in January 2027.", "The quay is painted in 2027-01"),
        ("We met. Paint the quay on May 14th, 2027, at last.", "The quay gets painted on 2027-05-14"),
        ("Look tomorrow. Paint the quay next year.", "The quay gets painted in 2027"),
        ("Paint the quay next Friday.", "The quay gets painted on 2026-02-20"),
        ("Paint the quay tomorrow.", "The quay gets painted on 2026-02-11"),
        ("It says econnrefused at the quay.", "ECONNREFUSED at the quay"),
        ("Never paint the quay by hand again.", "The quay is NOT to be painted by hand, AGAIN"),
        ("Use fix/quay for the painting.", "The quay painting uses branch fix/quay"),
    ],
)
def test_what_a_source_names_in_other_words_is_verified(om: Om, user: str, text: str) -> None:
    """XB12: relatively, in another notation, in another sentence, in small letters."""
    assert not [row for row in noted(om, user, text, kind="fact") if "unverified" in row.get("tags", ())]


@pytest.mark.parametrize("text", ["User rejected painting the quay", "Ines paints the quay"])
def test_a_fact_beside_a_request_is_no_second_request(om: Om, text: str) -> None:
    """XB12, XE2: it takes over type and status only of a row that it stands in for."""
    noted(om, ASKED, text, kind="fact")
    assert {row["text"]: row["type"] for row in rows(om) if "paint" in row["text"]} == {
        f"User: {ASKED}": "request", text: "fact",
    }  # fmt: skip
