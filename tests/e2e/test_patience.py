"""Patience with models that fail: how many calls an ask makes, and how long a session waits before the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Om
from tests.e2e.reflecting import labels, noticed, reply, texts, told
from tests.e2e.scripts import always, rows, script
from tests.e2e.test_models import LINES, at, talk
from tests.fake_provider import PROSE, Act, FakeModel

NOON = "2026-03-02T12:00:00Z"
SMALL = {"OM_OBSERVE_TOKENS": "1"}
GOOD = {"text": "echo", "when": "observations"}
EMPTY: dict[str, Any] = {"json": {"reflections": [], "keep": [], "drop": [], "items": []}}


def minute(number: int) -> str:
    """`--now` for so many minutes after noon."""
    return f"--now=2026-03-02T{12 + number // 60:02}:{number % 60:02}:00Z"


def chat(fake: FakeModel, **more: str) -> dict[str, str]:
    return {**at(fake, "openai"), "OM_OBSERVER_MODEL": "openai/m", **SMALL, **more}


def waiting(om: Om, *arguments: str, **how: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = om("status", "--json", *arguments, **how).document["waiting"]
    return found


# ---- calls of one ask


@pytest.mark.parametrize(
    ("act", "most"),
    [
        (Act(text=PROSE), 3),
        (Act(text=" "), 3),
        (Act(text='{"rows": 1}'), 3),
        (Act(text='{"observations": [{"text": "The ferry'), 3),
        (Act(text='{"observations": [', stop="length"), 3),
        (Act(status=500, error="out of order"), 3),
        (Act(html=True), 1),
    ],
    ids=["prose", "blank", "other-json", "broken", "cut", "500", "html"],
)
def test_an_ask_makes_three_calls_at_most(om: Om, fake_model: FakeModel, act: Act, most: int) -> None:
    """XA4: retries, other output modes, corrections and smaller slices together; in `observe` as in `compact`."""
    fake_model.always(act)
    om("observe", talk(om), env=chat(fake_model, OM_PROVIDER_TIMEOUT="600"), code=69)
    assert 1 <= len(fake_model.asked) <= most
    assert rows(om) == []
    assert om("status", "--json").document["pending"] == len(LINES)
    fake_model.asked.clear()
    om("compact", talk(om, *LINES, "And the dog is called Leo."), "--best-effort", env=chat(fake_model), code=None)
    assert 1 <= len(fake_model.asked) <= most


@pytest.mark.parametrize("text", [PROSE, " ", json.dumps(EMPTY["json"]), '{"reflections": [{"text": "Ti'])
def test_a_reflection_makes_three_calls_at_most(om: Om, fake_model: FakeModel, text: str) -> None:
    """XA4: with as many levels of compression as there are."""
    noticed(om, *(f"The quay of harbour {number} was painted green in spring" for number in range(4)))
    fake_model.always(Act(text=text))
    env = {
        **at(fake_model, "openai"),
        "OM_REFLECT_TARGET": "1",
        "OM_REFLECT_ATTEMPTS": "4",
        "OM_REFLECT_LEVELS": "0,1,2,3",
    }
    om("reflect", "--model", "openai/m", env=env, code=69)
    assert 1 <= len(fake_model.asked) <= 3


def test_a_large_reply_is_asked_for_once(om: Om, fake_model: FakeModel) -> None:
    """XA4: its size is bounded by the output limit."""
    fake_model.always(Act(text="x" * 4_000_000))
    env = chat(fake_model, OM_OBSERVER_MAX_OUTPUT="4000")
    assert "more than 518144 bytes" in om("observe", talk(om), env=env, code=69).stderr
    assert len(fake_model.asked) == 1


def test_a_fallback_model_has_one_of_the_three_calls(om: Om, fake_model: FakeModel) -> None:
    """XA4."""
    fake_model.always(Act(status=500, error="out of order"), times=2)
    env = chat(fake_model, OM_OBSERVER_FALLBACK_MODEL="openai/other")
    om("observe", talk(om), env=env)
    assert [asked.body["model"] for asked in fake_model.asked] == ["m", "m", "other"]
    assert len(rows(om)) >= len(LINES)


def test_messages_that_give_too_long_a_reply_are_read_in_smaller_slices(om: Om) -> None:
    """XA4: the whole, a half, an eighth."""
    cut = {"text": '{"observations": [', "stop": "length", "times": 2}
    model = script(om, cut, {**GOOD, "times": 50})
    om("observe", talk(om, *(f"Buoy {number} is green." for number in range(16))), "--model", model.model)
    shown = [text.count("Buoy") for text in model.transcripts]
    assert shown[:3] == [16, 8, 2]
    assert len({each for text in model.transcripts for each in text.split() if each.isdigit()}) >= 16


# ---- waiting


def test_sixty_ticks_make_a_handful_of_calls(om: Om, fake_model: FakeModel) -> None:
    """XA4: one every five minutes; a session waits longer after each failure in a row."""
    fake_model.always(Act(text='{"rows": 1}'), times=200)
    om("observe", "--later", talk(om))
    env = chat(fake_model)
    codes = [om("tick", minute(5 * number), env=env, code=None).code for number in range(60)]
    assert codes[0] == 69
    assert codes.count(69) <= 5
    assert set(codes) == {1, 69}
    assert len(fake_model.asked) <= 12
    [found] = waiting(om, minute(5 * 60))
    assert (found["lane"], found["provider"]) == ("observe", "openai")
    assert found["failures"] == len(fake_model.asked)
    assert "failed" in om("status", minute(5 * 60)).stdout


def test_a_success_ends_the_wait(om: Om) -> None:
    """XA4: and an earlier failure counts no more."""
    model = script(om, {"text": "Sure!", "times": 4}, GOOD, {"text": "Sure!", "times": 2}, {**GOOD, "times": 9})
    file = talk(om)
    for _ in range(2):
        assert "nothing was asked" not in om("observe", file, minute(0), "--model", model.model, code=69).stderr
    assert len(model.asked) == 4
    again = om("observe", file, minute(0), "--model", model.model, code=69)
    assert "4 times in a row" in again.stderr
    assert "12:01" in again.stderr
    assert "--again" in again.stderr
    assert len(model.asked) == 4
    assert len(waiting(om, minute(0))) == 1
    om("observe", file, minute(1), "--model", model.model)
    assert len(rows(om)) >= len(LINES)
    assert waiting(om, minute(1)) == []
    more = talk(om, *LINES, "And the dog is called Leo.")
    om("observe", more, minute(1), "--model", model.model, code=69)
    om("observe", more, minute(1), "--model", model.model)


@pytest.mark.parametrize("verb", [("observe",), ("tick",)])
def test_a_wait_ends_by_hand(om: Om, verb: tuple[str, ...]) -> None:
    """XA4: `--again`."""
    model = script(om, {"text": "Sure!", "times": 4}, GOOD)
    file = talk(om)
    for _ in range(2):
        om("observe", file, minute(0), "--model", model.model, code=69)
    words = (*verb, file) if verb == ("observe",) else verb
    om(*words, minute(0), "--model", model.model, env=SMALL, code=None)
    assert len(model.asked) == 4
    om(*words, minute(0), "--again", "--model", model.model, env=SMALL)
    assert len(model.asked) == 5
    assert len(rows(om)) >= len(LINES)


@pytest.mark.parametrize("verb", ["observe", "compact", "reflect"])
def test_a_model_that_waits_keeps_no_other_of_its_provider_waiting(om: Om, verb: str) -> None:
    """XA4: who mends a mistyped model is not told to wait for it, and `--again` asks the first one at once."""
    down, good = script(om, {"error": "unreachable"}, name="down.json"), always(om, "echo", name="good.json")
    if verb == "reflect":
        noticed(om, "The quay is green", "The quay is new")
    file = talk(om, *(f"The quay of harbour {number} was painted green in spring." for number in range(60)))
    words = {"reflect": (verb, "--session", "s"), "compact": (verb, file, "--budget", "300")}.get(verb, (verb, file))
    for _ in range(4):
        om(*words, minute(0), "--model", down.model, env=SMALL, code=69)
    asked = len(down.asked)
    run = om(*words, minute(0), "--model", down.model, env=SMALL, code=69)
    assert "4 times in a row" in run.stderr
    assert "`--again` asks now, and another model is asked at once" in run.stderr
    assert len(down.asked) == asked
    om(*words, minute(0), "--model", down.model, "--again", env=SMALL, code=69)
    assert len(down.asked) > asked
    om(*words, minute(0), "--model", good.model, env=SMALL, code=None)
    assert good.asked


def test_one_session_that_waits_keeps_no_other_waiting(om: Om) -> None:
    """XA4."""
    model = script(om, {"text": "Sure!", "times": 4}, {**GOOD, "times": 9})
    for _ in range(2):
        om("observe", talk(om), "--session", "one", minute(0), "--model", model.model, code=69)
    om("observe", talk(om, "Another talk."), "--session", "two", minute(0), "--model", model.model)
    found = om("tick", minute(0), "--model", model.model, env=SMALL, code=1)
    assert "one" in found.stderr
    assert "--again" in found.stderr


def test_rules_that_stand_in_do_so_while_a_session_waits(om: Om) -> None:
    """XA4: without a call."""
    model = always(om, "Sure!")
    env = {"OM_OBSERVER_FALLBACK": "rules"}
    lines = [*LINES, "Always mind the tide.", "The crane is new.", "Noted.", "We use pnpm."]
    for count in range(3, 8):
        om("observe", talk(om, *lines[:count]), minute(0), "--model", model.model, env=env)
    assert len(model.asked) == 4
    assert om("status", "--json").document["pending"] == 0


def test_what_is_no_call_is_not_waited_for(om: Om) -> None:
    """XA4: a missing key is known without a call; with the key, work goes on at once."""
    om("observe", talk(om), "--observer", "anthropic", minute(0), code=77)
    assert waiting(om, minute(0)) == []


def test_the_longest_wait_is_a_setting(om: Om) -> None:
    """XA4: 0 means none."""
    model = always(om, "Sure!")
    file = talk(om)
    for _ in range(4):
        om("observe", file, minute(0), "--model", model.model, env={"OM_PROVIDER_LONGEST_WAIT": "0"}, code=69)
    assert len(model.asked) == 8


# ---- reflecting


def test_a_reply_that_cannot_be_used_is_a_failure_of_a_reflection(om: Om) -> None:
    """XA5: the next run tries again once the wait is over, and never says that nothing has changed."""
    noticed(om, *(f"The quay of harbour {number} was painted green in spring" for number in range(4)))
    green = told("The quays of harbours 0, 1, 2 and 3 were painted green", *labels(4))
    model = script(om, {"text": "Sure!", "times": 6}, reply(green))

    def reflect(*arguments: str, code: int = 0) -> Any:
        return om("reflect", *arguments, "--model", model.model, env={"OM_REFLECT_TARGET": "1"}, code=code)

    reflect(minute(0), code=69)
    asked = len(model.asked)
    assert asked == 3
    assert "nothing has changed" not in reflect(minute(0), code=69).stderr
    assert len(model.asked) == 2 * asked
    third = reflect(minute(1), code=69)
    assert "in a row" in third.stderr
    assert len(model.asked) == 2 * asked
    reflect(minute(60))
    assert len(model.asked) == 2 * asked + 1
    assert texts(om) == ["The quays of harbours 0, 1, 2 and 3 were painted green"]


def test_a_failed_reflection_is_tried_again_by_tick(om: Om) -> None:
    """XA5: under the same patience."""
    noticed(om, *(f"The quay of harbour {number} was painted green in spring" for number in range(4)))
    model = always(om, "Sure!")
    env = {"OM_REFLECT_TOKENS": "1", "OM_REFLECTOR_MODEL": model.model, "OM_REFLECTOR_PROVIDER": "scripted"}
    codes = [om("tick", minute(number), env=env, code=None).code for number in (0, 0, 1, 60)]
    assert codes == [69, 69, 1, 69]


def test_consolidating_asks_a_model_that_failed_when_told_to(om: Om) -> None:
    """XA4: as its hint says."""
    model = always(om, "Sure!")
    om("observe", talk(om), "--model", model.model, minute(0), code=69)
    consolidate = ("consolidate", "--no-places", "--model", model.model, minute(60))
    for _ in range(3):
        run = om(*consolidate, code=69)
    asked = len(model.asked)
    assert "`--again` asks now" in run.stderr
    assert len(model.asked) == asked
    om(*consolidate, "--again", code=69)
    assert len(model.asked) > asked


def test_a_daily_note_that_waits_holds_back_no_other(om: Om) -> None:
    """XA4: each note is a session of its own."""
    notes = om.folder / "notes"
    notes.mkdir()
    (notes / "2026-02-27.md").write_text("# Friday\n\nWe decided to use the tide tables of Cuxhaven.\n")
    with FakeModel([Act(text=PROSE)] * 60) as fake:
        consolidate = ("consolidate", "--notes", notes, "--no-places")
        om(*consolidate, minute(0), env=chat(fake), code=None)
        om(*consolidate, minute(1), env=chat(fake), code=None)
        assert len(waiting(om, minute(2), env=chat(fake))) == 1
        asked = len(fake.asked)
        (notes / "2026-02-28.md").write_text("# Saturday\n\nWe decided to paint the mast red.\n")
        om(*consolidate, minute(2), env=chat(fake), code=None)
    later = [str(each.body) for each in fake.asked[asked:]]
    assert later
    assert all("mast red" in body for body in later)
