"""`om usage`: what models have cost."""

from __future__ import annotations

from omcli.base.record import replace
from omcli.llm.model import ModelCall
from tests.conftest import Om
from tests.e2e.transcripts import tide_story

NOW = ("--now", "2026-02-12T12:00:00Z")
CALL = ModelCall(
    at="2026-02-10T14:32:00.000Z",
    lane="observe",
    session="tides",
    provider="anthropic",
    model="small",
    input_tokens=900,
    output_tokens=100,
    cached_tokens=400,
    cost=0.0014,
    duration=812,
    outcome="ok",
)
FAILED = replace(
    CALL, input_tokens=None, output_tokens=None, cached_tokens=None, cost=None, duration=5000, outcome="unreachable"
)
FREE = replace(
    CALL, at="2026-02-11T09:00:00.000Z", provider="ollama", model="tiny", session=None, lane="reflect", cost=None
)
SILENT = replace(FREE, input_tokens=None, output_tokens=None, cached_tokens=None, at="2026-02-12T00:00:00.000Z")


def noted(om: Om, *calls: ModelCall) -> None:
    om.db.parent.mkdir(exist_ok=True)
    with om.open() as store:
        for call in calls:
            store.ledger.note_call(call)


def cells(om: Om, *arguments: str) -> list[list[str]]:
    return [line.split("  ") for line in _narrow(om("usage", *NOW, *arguments).stdout)]


def _narrow(text: str) -> list[str]:
    """Lines with two spaces between cells, however wide the columns are."""
    return ["  ".join(part.strip() for part in line.split("  ") if part.strip()) for line in text.splitlines()]


def test_a_line_a_day_and_a_total(om: Om) -> None:
    noted(om, CALL, FAILED, FREE, SILENT)
    assert cells(om) == [
        ["DAY", "CALLS", "FAILED", "IN", "CACHED", "OUT", "COST", "TIME"],
        ["2026-02-10", "2", "1", "900", "400", "100", "$0.0014", "5.8 s"],
        ["2026-02-11", "1", "0", "900", "400", "100", "–", "0.8 s"],
        ["2026-02-12", "1", "0", "–", "–", "–", "–", "0.8 s"],
        ["total", "4", "1", "≥1800", "≥800", "≥200", "≥$0.0014", "7.4 s"],
    ]


def test_by_model_lane_and_session(om: Om) -> None:
    noted(om, CALL, FAILED, FREE)
    assert [line[0] for line in cells(om, "--by", "model")] == ["MODEL", "anthropic/small", "ollama/tiny", "total"]
    assert [line[:2] for line in cells(om, "--by", "lane")[1:]] == [["observe", "2"], ["reflect", "1"], ["total", "3"]]
    assert [line[:2] for line in cells(om, "--by", "session")[1:3]] == [["(none)", "1"], ["tides", "2"]]
    om("usage", "--by", "hour", code=2)


def test_a_period_has_the_calls_that_ended_in_it(om: Om) -> None:
    noted(om, CALL, FREE, SILENT)
    assert [line[0] for line in cells(om, "--since", "36h")] == ["DAY", "2026-02-11", "2026-02-12", "total"]
    assert [line[0] for line in cells(om, "--until", "2026-02-10")] == ["DAY", "2026-02-10", "total"]
    assert [line[0] for line in cells(om, "--since", "2026-02-11", "--until", "2026-02-11")][1] == "2026-02-11"
    om("usage", "--since", "whenever", code=2)


def test_json_says_what_is_not_known(om: Om) -> None:
    noted(om, CALL, FAILED, FREE, SILENT)
    document = om("usage", "--json", "--by", "model", *NOW).document
    assert document["usage"] == [
        {
            "model": "anthropic/small", "calls": 2, "failed": 1, "input_tokens": 900, "cached_tokens": 400,
            "output_tokens": 100, "untold_calls": 0, "cost": 0.0014, "unpriced_calls": 0, "duration_ms": 5812,
        },
        {
            "model": "ollama/tiny", "calls": 2, "failed": 0, "input_tokens": 900, "cached_tokens": 400,
            "output_tokens": 100, "untold_calls": 1, "unpriced_calls": 2, "duration_ms": 1624,
        },
    ]  # fmt: skip
    assert document["total"]["cost"] == 0.0014
    assert (document["total"]["calls"], document["total"]["unpriced_calls"]) == (4, 2)
    assert document["limits"] == []


def test_an_empty_ledger_says_so(om: Om) -> None:
    run = om("usage")
    assert (run.stdout, run.stderr) == ("", "om: no model was called\n")
    document = om("usage", "--json").document
    assert (document["usage"], document["total"]["calls"], document["total"]["cost"]) == ([], 0, 0.0)
    assert om("usage", "--since", "7d").stderr == "om: no model was called in this period\n"


def test_limits_are_shown_with_what_is_used_of_them(om: Om) -> None:
    today = replace(CALL, at="2026-02-12T08:00:00.000Z")
    noted(om, CALL, today)
    limits = {"OM_LIMITS_DAY_TOKENS": "5000", "OM_LIMITS_SOFT_MONTH_COST": "1.5"}
    run = om("usage", *NOW, env=limits)
    assert run.stdout.splitlines()[-2:] == [
        "limits.day_tokens: 1000 of 5000 tokens today",
        "limits.soft_month_cost: $0.0028 of $1.50 this month",
    ]
    assert om("usage", "--json", *NOW, env=limits).document["limits"] == [
        {
            "name": "limits.day_tokens", "limit": 5000, "used": 1000, "unit": "tokens", "period": "day",
            "soft": False,
        },
        {
            "name": "limits.soft_month_cost", "limit": 1.5, "used": 0.0028, "unit": "usd", "period": "month",
            "soft": True,
        },
    ]  # fmt: skip


def test_a_store_that_is_not_there_is_not_made(om: Om) -> None:
    om("usage")
    om("items")
    om("pending")
    assert not om.has_store


def test_calls_are_of_the_session_they_were_made_for(om: Om) -> None:
    """Of observing and of reflecting, through every attempt."""
    om.write("replies.json", '"echo"')
    model = ("--model", f"scripted/{om.folder / 'replies.json'}")
    om("observe", "-q", om.write("t.jsonl", tide_story(session="tides").text()), *model)
    om("reflect", "-q", "--session", "tides", *model, code=None)
    lines = [(line["session"], line["calls"]) for line in om("usage", "--by", "session", "--json").document["usage"]]
    assert lines == [("tides", lines[0][1])]
    assert lines[0][1] >= 2
