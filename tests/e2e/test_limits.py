"""What models may cost: every call is in the ledger, and none is made past a limit; each run a fresh process."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Om
from tests.e2e.scripts import always, calls, pending, rows, script
from tests.e2e.transcripts import Talk, tide_story
from tests.fake_provider import KEY, Act, FakeModel
from tests.replying import answer, said

DAY = "2026-02-10T23:30:00Z"
NEXT_DAY = "2026-02-11T00:30:00Z"
NEXT_MONTH = "2026-03-01T00:00:00Z"


def echo(tokens: int = 1_000) -> dict[str, object]:
    """A reply that says what it took."""
    return {"text": "echo", "usage": {"input": tokens - 100, "output": 100, "cached": 50}}


def ledger(om: Om, by: str = "day") -> list[dict[str, object]]:
    """The ledger's sums."""
    found: list[dict[str, object]] = om("usage", "--by", by, "--json").document["usage"]
    return found


def grown(om: Om, messages: int) -> str:
    """A transcript with so many messages beside the story's."""
    talk = tide_story()
    for number in range(messages):
        talk.user(f"The gauge {number} stands in harbour {number + 100}.")
    return str(om.write("t.jsonl", talk.text()))


# The ledger


@pytest.mark.parametrize("text", ["Certainly! Here is what I noticed.", ""], ids=["prose", "blank"])
def test_a_reply_that_cannot_be_read_is_a_failed_call(om: Om, text: str) -> None:
    """It was answered and paid for, and was of no use."""
    om("observe", grown(om, 2), "--model", always(om, text).model, code=69)
    assert {day["failed"] == day["calls"] for day in ledger(om)} == {True}


def test_every_call_is_in_the_ledger_with_what_became_of_it(om: Om) -> None:
    """Failures as well as replies, of both lanes and of every session, at the time of the run."""
    model = script(om, echo(), {"error": "unreachable"}, {"text": "No.", "stop": "refusal"}, echo(500), echo(200))
    a, b = (om.write(f"{name}.jsonl", tide_story(session=name).text()) for name in "ab")
    om("observe", a, "--model", model.model, "--now", DAY)
    om("observe", b, "--model", model.model, "--now", NEXT_DAY, code=69)
    om("observe", b, "--model", model.model, "--now", NEXT_DAY, code=69)
    om("observe", b, "--model", model.model, "--now", NEXT_DAY)
    om("reflect", "--session", "a", "--model", model.model, "--now", NEXT_MONTH, code=None)
    reflected = len(model.asked) - 4
    assert reflected >= 1
    assert [(day["day"], day["calls"], day["failed"]) for day in ledger(om)][:2] == [
        ("2026-02-10", 1, 0),
        ("2026-02-11", 3, 2),
    ]
    assert [(one["lane"], one["calls"]) for one in ledger(om, "lane")] == [("observe", 4), ("reflect", reflected)]
    assert {one["session"]: one["calls"] for one in ledger(om, "session")} == {"a": 1 + reflected, "b": 3}
    day = ledger(om)[0]
    assert (day["input_tokens"], day["output_tokens"], day["cached_tokens"]) == (900, 100, 50)


def test_retries_and_halves_are_counted(om: Om) -> None:
    """What is asked again is paid again."""
    long = " ".join(f"gauge{number}" for number in range(40))
    model = script(om, {"text": "{", "stop": "length"}, *[{"text": answer(said(long, "m1"))}] * 6)
    talk = Talk().user(long).user(f"also {long}")
    env = {"OM_OBSERVE_MAX_OUTPUT": "10"}
    om("observe", om.write("t.jsonl", talk.text()), "--model", model.model, env=env, code=None)
    total = calls(om)
    assert (total["calls"], total["failed"]) == (len(model.asked), 1)
    assert total["calls"] >= 4


def test_tokens_and_cost_are_those_of_the_endpoint(om: Om, fake_model: FakeModel) -> None:
    """By a price of one's own where there is one; failed calls cost nothing that anybody knows of."""
    fake_model.then(Act(usage={"input": 1_000_000, "output": 100_000, "cached": 500_000}), Act(html=True))
    config = om.write("c.toml", '[prices."gauge-1"]\ninput = 2.0\noutput = 10.0\ncached = 0.5\n')
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": fake_model.url}
    om("observe", grown(om, 0), "--model", "openai/gauge-1", "--config", config, env=env)
    om("observe", grown(om, 1), "--model", "openai/gauge-1", "--config", config, env=env, code=69)
    total = calls(om)
    assert (total["calls"], total["failed"]) == (2, 1)
    assert total["cost"] == pytest.approx(0.5 * 2 + 0.5 * 0.5 + 0.1 * 10)


# The limits


@pytest.mark.parametrize(
    ("limit", "later"),
    [("day_tokens", NEXT_DAY), ("month_tokens", NEXT_MONTH)],
)
def test_a_hard_limit_refuses_before_the_call(om: Om, limit: str, later: str) -> None:
    """Exit 69; nothing is asked, messages are kept; the next day or month begins anew."""
    model = always(om, echo())
    env = {f"OM_LIMITS_{limit.upper()}": "1000"}
    om("observe", grown(om, 0), "--model", model.model, "--now", DAY, env=env)
    run = om("observe", grown(om, 2), "--model", model.model, "--now", "2026-02-10T23:59:59Z", env=env, code=69)
    assert f"`limits.{limit}` is reached: 1000 of 1000 tokens" in run.stderr
    assert "nothing was asked" in run.stderr
    assert (len(model.asked), pending(om)) == (1, 2)
    assert "reached" in om("status").stdout
    for command in ("reflect", "tick"):
        om(command, "--model", model.model, "--now", DAY, env={**env, "OM_OBSERVE_TOKENS": "1"}, code=69)
    assert len(model.asked) == 1
    om("observe", grown(om, 2), "--model", model.model, "--now", DAY, "--best-effort", env=env)
    om("observe", grown(om, 2), "--model", model.model, "--now", later, env=env)
    assert (len(model.asked), pending(om)) == (2, 0)


def test_a_limit_in_the_middle_of_a_run_keeps_what_was_done(om: Om) -> None:
    """The batches before it are written; the rest waits."""
    model = always(om, echo(600))
    env = {"OM_LIMITS_DAY_TOKENS": "1000", "OM_OBSERVE_BATCH_TOKENS": "60"}
    run = om("observe", grown(om, 20), "--model", model.model, "--now", DAY, env=env, code=69)
    assert "1200 of 1000 tokens today" in run.stderr
    assert len(model.asked) == 2
    assert rows(om)
    assert 0 < pending(om) < 28


def test_a_limit_of_money_in_a_file(om: Om, fake_model: FakeModel) -> None:
    """In US dollars, by the price that is known or set."""
    fake_model.then(Act(usage={"input": 1_000_000, "output": 0, "cached": 0}))
    config = om.write(
        "c.toml", '[limits]\nday_cost = 1.5\nmonth_cost = 100.0\n[prices."gauge-1"]\ninput = 2.0\noutput = 10.0\n'
    )
    named = ("--model", "openai/gauge-1", "--config", config)
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": fake_model.url}
    om("observe", grown(om, 0), *named, env=env)
    run = om("observe", grown(om, 1), *named, env=env, code=69)
    assert "`limits.day_cost` is reached: $2.00 of $1.50 today" in run.stderr
    assert len(fake_model.asked) == 1
    limits = om("usage", "--config", config, "--json").document["limits"]
    assert [(limit["name"], limit["used"], limit["limit"]) for limit in limits] == [
        ("limits.day_cost", 2.0, 1.5),
        ("limits.month_cost", 2.0, 100.0),
    ]
    variable = {**env, "OM_LIMITS_DAY_COST": "5"}
    om("observe", grown(om, 1), *named, env=variable)
    assert len(fake_model.asked) == 2


def test_a_soft_limit_only_says_so(om: Om) -> None:
    """Once in a run; by day and by month, tokens and money."""
    model = always(om, echo())
    env = {"OM_LIMITS_SOFT_DAY_TOKENS": "500", "OM_LIMITS_SOFT_MONTH_TOKENS": "900", "OM_OBSERVE_BATCH_TOKENS": "60"}
    run = om("observe", grown(om, 20), "--model", model.model, "--now", DAY, env=env)
    assert len(model.asked) > 2
    assert run.stderr.count("`limits.soft_day_tokens` is reached") == 1
    assert run.stderr.count("`limits.soft_month_tokens` is reached") == 1
    assert run.stderr.count("warning") == 2
    assert pending(om) == 0


def test_a_limit_also_holds_for_the_model_that_is_asked_in_place(om: Om) -> None:
    """S3.5: nobody is asked past a limit, and rules stand in only if that is wanted."""
    first = script(om, {"error": "unreachable"}, name="first.json")
    second = always(om, echo())
    env = {"OM_OBSERVER_FALLBACK_MODEL": second.model, "OM_LIMITS_DAY_TOKENS": "1000"}
    om("observe", grown(om, 0), "--model", first.model, "--now", DAY, env=env)
    om("observe", grown(om, 1), "--model", first.model, "--now", DAY, env=env, code=69)
    assert (len(first.asked), len(second.asked)) == (1, 1)
    run = om(
        "observe", grown(om, 1), "--model", first.model, "--now", DAY, env={**env, "OM_OBSERVER_FALLBACK": "rules"}
    )
    assert "observed by rules" in run.stderr
    assert pending(om) == 0


def test_a_limit_that_makes_no_sense_is_none(om: Om) -> None:
    """F92, D11: it is said, and no limit holds; `--strict` refuses."""
    model = always(om, echo())
    env = {"OM_LIMITS_DAY_TOKENS": "many"}
    run = om("observe", grown(om, 0), "--model", model.model, env=env)
    assert "OM_LIMITS_DAY_TOKENS" in run.stderr
    assert pending(om) == 0
    om("observe", grown(om, 1), "--model", model.model, "--strict", env=env, code=78)


def test_rules_know_no_limits(om: Om) -> None:
    """They cost nothing."""
    om("observe", grown(om, 0), env={"OM_LIMITS_DAY_TOKENS": "0"})
    assert pending(om) == 0
    assert json.loads(om("usage", "--json").stdout)["total"]["calls"] == 0
