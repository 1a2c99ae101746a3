"""Observing ahead: a model works before it is due, and what it said is written down without asking it again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, copy, number_of, stored
from tests.e2e.scripts import UNTIL, Script, always, calls, pending, rows, said_by_model, script
from tests.e2e.test_model_crashes import wait_until
from tests.e2e.test_tick import NOTHING, asking
from tests.e2e.transcripts import Talk, tide_story
from tests.integration.sqlite.watching import Watcher
from tests.replying import answer, said

SMALL = {
    "OM_COUNTER": "chars-4", "OM_OBSERVE_TOKENS": "1000", "OM_OBSERVE_PRECOMPUTE": "200", "OM_OBSERVE_FLOOR": "150",
}  # fmt: skip
"""A threshold of 1000 tokens, blocks of 200, and 150 that stay."""


def keep(om: Om, talk: Talk, env: dict[str, str]) -> None:
    """Takes a transcript in; its messages wait."""
    om("observe", "--later", om.write(f"{talk.session}.jsonl", talk.text()), env=env)


def ahead(om: Om, model: Script, *arguments: str, env: dict[str, str] | None = None) -> dict[str, list[str]]:
    """What `om tick --check` says is due of which session."""
    run = om("tick", "--check", "--json", "--model", model.model, *arguments, env=env, code=None)
    lanes = ("observe", "ahead", "reflect")
    return {one["session"]: [lane for lane in lanes if one[lane]] for one in run.document["due"]}


def blocks(om: Om) -> tuple[int, int]:
    """Pending blocks, and the messages in them that wait."""
    status = om("status", "--json").document
    return status["blocks"], status["ahead"]


def told(shown: str) -> list[str]:
    """The numbers of the messages that a model was shown, but for those it only reads along."""
    return re.findall(r"(?<!\(before\) )assistant: s ([0-9]+) ", shown)


def grow(om: Om, model: Script, talk: Talk, *, env: dict[str, str]) -> str:
    """Takes in what a session has become, and does what is due; what was said of it."""
    keep(om, talk, env)
    return om("tick", "--model", model.model, env=env, code=None).stderr


# By presets


def test_mastra_observes_every_6000_tokens_and_activates_at_30000_without_a_call(om: Om) -> None:
    """S0.21, T77, T78, F19: while 6,000 stay unobserved; and nothing is reflected on below its own threshold."""
    model = always(om, "echo")
    preset = {"OM_PRESET": "mastra"}
    keep(om, asking("less", 5_999, name="chars-2.5"), preset)
    keep(om, asking("s", 6_000, name="chars-2.5"), preset)
    assert ahead(om, model, env=preset) == {"s": ["ahead"]}
    assert om("tick", "--check", "--model", model.model, env=preset).stdout == "s  ahead\n"
    run = om("tick", "--model", model.model, env=preset)
    assert (run.stdout, run.stderr) == ("", "s: 1 message buffered\n")
    assert (len(model.asked), blocks(om), pending(om), rows(om)) == (1, (1, 1), 2, [])
    assert "pending       2 (1 buffered, in 1 batch)\n" in om("status").stdout
    assert ahead(om, model, env=preset) == {}
    for number in range(2, 5):
        keep(om, asking("s", *[6_000] * number, name="chars-2.5"), preset)
        om("tick", "--model", model.model, env=preset)
        assert (len(model.asked), blocks(om)) == (number, (number, number))
    keep(om, asking("s", *[6_000] * 4, 5_999, name="chars-2.5"), preset)
    om("tick", "--model", model.model, env=preset)
    assert (len(model.asked), blocks(om)[0]) == (5, 5), "3,000 are enough now"
    keep(om, asking("s", *[6_000] * 4, 5_999, 50, name="chars-2.5"), preset)
    assert ahead(om, model, env=preset) == {"s": ["observe"]}
    run = om("tick", "--model", model.model, "--json", env=preset)
    assert (len(model.asked), calls(om)["calls"]) == (5, 5), "activation asks nobody"
    assert (run.document["observations"], run.document["due"][0]["activated"]) == (4, 4)
    assert [row["text"].split(" how")[0].split(": ")[-1] for row in rows(om)] == [f"s {number}" for number in range(4)]
    assert (blocks(om), pending(om)) == ((1, 1), 3)
    assert {row["kind"] for row in rows(om)} == {"observation"}
    assert ahead(om, model, env=preset) == {}


def test_near_the_threshold_of_mastra_blocks_are_of_3000(om: Om) -> None:
    """T77: from 23,400 on."""
    model = always(om, "echo")
    preset = {"OM_PRESET": "mastra"}
    for session, more in (("a", 5_399), ("b", 5_400)):
        keep(om, asking(session, *[6_000] * 3, name="chars-2.5"), preset)
        om("tick", "--model", model.model, env=preset)
        keep(om, asking(session, *[6_000] * 3, more, name="chars-2.5"), preset)
    assert ahead(om, model, env=preset) == {"b": ["ahead"]}


def test_zora_observes_its_oldest_chunk_at_21000_tokens_once(om: Om) -> None:
    """S0.18, S0.21, T10: 20 messages, none while one is in flight; more than 30,000 activate it without a call."""
    model = always(om, "echo")
    preset = {"OM_PRESET": "zora"}
    name = "chars-3.5-3"
    chunk = [50] * 20
    keep(om, asking("few", *[1_200] * 19, name=name), preset)
    keep(om, asking("less", *chunk, 19_999, name=name), preset)
    keep(om, asking("s", *chunk, 20_000, name=name), preset)
    assert ahead(om, model, env=preset) == {"s": ["ahead"]}
    om("tick", "--model", model.model, env=preset)
    keep(om, asking("s", *chunk, 20_000, 9_000, name=name), preset)
    assert ahead(om, model, env=preset) == {}
    assert (sum(len(told(shown)) for shown in model.transcripts), blocks(om)) == (20, (1, 20))
    asked = len(model.asked)
    keep(om, asking("s", *chunk, 20_000, 9_000, 10, name=name), preset)
    assert ahead(om, model, env=preset) == {"s": ["observe"]}
    om("tick", "--model", model.model, env=preset)
    assert (len(model.asked), blocks(om), len(rows(om))) == (asked, (0, 0), 20)


def test_where_rules_observe_nothing_is_observed_ahead(om: Om) -> None:
    """They need no model's time, and know most of a long stretch."""
    keep(om, asking("s", 7_000, name="chars-2.5"), {"OM_PRESET": "mastra"})
    assert om("tick", "--check", "--preset", "mastra", "--observer", "rules").stdout == "s  observe\n"
    assert om("tick", "--check", "--preset", "mastra", "--model", "scripted/nowhere").stdout == "s  ahead\n"


# What a block is


def test_nothing_of_a_block_is_seen_before_it_is_activated(om: Om) -> None:
    """S0.21: neither in a pack, nor in the log, nor in an export."""
    keep(om, talk := asking("s", *[100] * 3), SMALL)
    packed = om("context", "--session", "s", env=SMALL).stdout
    model = always(om, "echo")
    assert "2 messages buffered" in grow(om, model, talk, env=SMALL)
    assert om("context", "--session", "s", env=SMALL).stdout == packed
    assert om("log", "--all", "--jsonl").stdout == om("export", "--to", "zora-jsonl").stdout == ""
    assert om("pending", "--session", "s", "--json").document["pending"] == 3


def test_a_row_of_a_block_may_take_the_place_of_one_of_the_block_before(om: Om) -> None:
    """The model is shown the rows that wait, and cites them by a label."""
    texts = ["The gauge at pier 7 is to be read daily.", "The gauge at pier 7 is to be read weekly instead."]
    replies = [answer(said(texts[0], "m1", kind="instruction")), answer(said(texts[1], "m1", replaces=["o1"]))]
    model = script(om, *replies)
    env = SMALL | {"OM_OBSERVE_PRECOMPUTE": "10", "OM_OBSERVE_FLOOR": "0"}
    talk = Talk(session="s").user(texts[0])
    grow(om, model, talk, env=env)
    grow(om, model, talk.user(texts[1]), env=env)
    assert texts[0] in model.prompts[1].split("<<< transcript")[0] + model.prompts[1].split(">>> transcript")[-1]
    assert blocks(om) == (2, 2)
    om("tick", "--model", model.model, env=env | {"OM_OBSERVE_TOKENS": "20"})
    first, second = rows(om)
    assert (texts[0] in first["text"], second["text"]) == (True, f"User: {texts[1]}")
    assert first["superseded_by"] == second["id"]
    assert len(model.asked) == 2


CODE = "MARIGOLD-4711"
PIER = "The pier is closed at night, so nobody may walk, fish or swim there."


def harbour(om: Om) -> tuple[Talk, Script, dict[str, str]]:
    """A code that a model told ahead from a message that does not have it in one piece, and what is as it was."""
    told = [said(f"The harbour opens with {CODE}.", "m1"), said(PIER, "m1")]
    env = SMALL | {"OM_OBSERVE_PRECOMPUTE": "10", "OM_OBSERVE_FLOOR": "0"}
    talk = Talk(session="s").user("The harbour opens with MARIGOLD-47 and then 11; the pier is closed at night.")
    model = script(om, {"text": answer(*told)}, {"text": answer(said("The crane is blue.", "m1"))})
    grow(om, model, talk, env=env)
    assert blocks(om) == (1, 1)
    return talk, model, env


def test_what_was_observed_ahead_is_forgotten_as_well_until_that_is_undone(om: Om) -> None:
    """D6, S0.21: it is counted, shown to no model any more and not written down; the rest of its block is."""
    talk, model, env = harbour(om)
    planned = om("forget", "--match", CODE.lower(), "--dry-run", "--json").document
    assert [each["text"] for each in planned["ahead"]] == [f"The harbour opens with {CODE}."]
    run = om("forget", "--match", CODE.lower())
    assert run.stdout == f"s: The harbour opens with {CODE}. (buffered)\n"
    assert "1 buffered row forgotten; `om undo 1` reverses that" in run.stderr
    assert "source messages may still contain it: " in run.stderr
    assert "1 buffered row" in om("history").stdout
    grow(om, model, talk.user("The crane at pier 7 is blue, and it has been blue for years."), env=env)
    assert "The pier is closed" in model.prompts[1]
    assert CODE not in model.prompts[1]
    om("undo")
    om("forget", "--match", CODE)
    om("tick", "--model", model.model, env=env | {"OM_OBSERVE_TOKENS": "10"})
    assert said_by_model(om) == [PIER]


def test_an_undone_forgetting_lets_what_was_observed_ahead_be_written_down(om: Om) -> None:
    """D6: exactly once, and without asking again."""
    _, model, env = harbour(om)
    om("forget", "--match", CODE)
    om("undo")
    om("tick", "--model", model.model, env=env | {"OM_OBSERVE_TOKENS": "10"})
    assert sorted(said_by_model(om)) == [f"The harbour opens with {CODE}.", PIER]
    assert len(model.asked) == 1


@pytest.mark.parametrize("later", [False, True])
def test_what_was_observed_ahead_is_deleted_for_good_with_its_block(om: Om, *, later: bool) -> None:
    """D6, C20: nothing of it is in the store's files; its messages wait, and are observed again."""
    harbour(om)
    assert CODE.encode() in stored(om.place)
    if later:
        om("forget", "--match", CODE)
        om("prune", "--hard", "--yes")
    else:
        om("forget", "--match", CODE, "--hard", "--yes")
    assert CODE.encode() not in stored(om.place)
    assert (blocks(om), pending(om)) == ((0, 0), 1)


def test_what_is_said_of_a_message_that_was_deleted_while_a_model_thought_is_not_kept(om: Om) -> None:
    """F28, D6: it was shown the message; nothing of its reply is in the store's files."""
    env = SMALL | {"OM_OBSERVE_PRECOMPUTE": "10"}
    keep(om, Talk(session="s").user(f"The harbour opens with {CODE}; the pier is closed at night."), env)
    model = always(om, {"text": answer(said(f"Told: {CODE}.", "m1")), **UNTIL})
    ticking = om.start("tick", "--model", model.model, env=env)
    wait_until(lambda: bool(model.asked))
    om("forget", "--match", CODE, "--hard", "--yes")
    model.answers()
    told = ticking.communicate()[1].decode()
    assert (ticking.returncode, "were forgotten" in told) == (75, True)
    assert blocks(om) == (0, 0)
    assert CODE.encode() not in stored(om.place)


def test_what_a_block_made_of_a_forgotten_row_is_told_of_and_goes_where_that_is_asked(om: Om) -> None:
    """D6: as a row in sight would."""
    texts = ["The gauge at pier 7 is to be read daily.", "It is to be read weekly instead."]
    told = "Somebody has to climb down to pier 7 every morning, noon and evening and read the gauge daily."
    model = script(
        om,
        answer(said(told, "m1", kind="instruction")),
        answer(said(f"{texts[1]} Nobody climbs down to it three times.", "m1", replaces=["o2"])),
    )
    env = SMALL | {"OM_OBSERVE_PRECOMPUTE": "5"}
    talk = Talk(session="s").user(texts[0])
    om("observe", "-q", om.write("s.jsonl", talk.text()), "--model", model.model, env=env)
    grow(om, model, talk.user(f"{texts[1]} That was settled at the meeting."), env=env)
    assert blocks(om) == (1, 1)
    old = next(row["id"] for row in rows(om) if row["source"] == "model")
    run = om("forget", old, "--dry-run")
    assert "1 row buffered, derived from it, may still contain it (add `--derived`)" in run.stderr
    planned = om("forget", old, "--dry-run", "--json").document
    assert (len(planned["telling_ahead"]), planned["ahead"]) == (1, [])
    done = om("forget", old, "--derived", "--json").document
    assert (done["telling_ahead"], done["ahead"]) == ([], planned["telling_ahead"])
    om("tick", "--model", model.model, env=env | {"OM_OBSERVE_TOKENS": "10"})
    assert said_by_model(om) == []


def test_observing_by_hand_takes_blocks_first_and_asks_only_about_the_rest(om: Om) -> None:
    """S0.21: `om observe` observes everything that waits."""
    model = always(om, "echo")
    talk = asking("s", *[100] * 4)
    grow(om, model, talk, env=SMALL)
    run = om("observe", om.write("s.jsonl", asking("s", *[100] * 5).text()), "--model", model.model, env=SMALL)
    assert [told(shown) for shown in model.transcripts] == [["0", "1"], ["2", "3"], ["4"]]
    assert "5 observations" in run.stderr
    assert (blocks(om), pending(om), len(rows(om))) == ((0, 0), 0, 5)
    assert_covered_once(om.place)


def test_an_agent_that_observes_for_itself_makes_blocks_superfluous(om: Om) -> None:
    """T76: what it covered is left out of one that it came into, and one that it passed is gone."""
    model = always(om, "echo")
    env = SMALL | {"OM_OBSERVE_PRECOMPUTE": "300"}
    talk = asking("s", *[100] * 6)
    grow(om, model, talk, env=env)
    assert blocks(om) == (2, 6)
    shown = om("pending", "--session", "s", "--limit", "420", "--json", env=env).document
    handed = {"token": shown["token"], "observations": []}
    om("apply", "-", stdin=json.dumps(handed), env=env)
    assert 0 < pending(om) < 3
    assert blocks(om) == (1, pending(om))
    om("observe", om.write("s.jsonl", talk.text()), "--model", model.model, env=env)
    assert len(model.asked) == 2
    numbers = [re.findall(r"s ([0-9]) how", row["text"])[0] for row in rows(om)]
    assert numbers == [str(number) for number in range(6 - len(numbers), 6)]
    assert_covered_once(om.place)


def test_reflecting_while_blocks_are_pending_leaves_them(om: Om) -> None:
    """F14: they activate later."""
    model = always(om, "echo")
    om("observe", om.write("s.jsonl", tide_story(session="s").text()), "--model", model.model)
    lamps = " ".join(f"Lamp {number} stands {number} metres from the pier." for number in range(100, 120))
    talk = tide_story(session="s").assistant(lamps)
    grow(om, model, talk, env=SMALL)
    before = blocks(om)
    assert before[0] >= 1
    om("reflect", "--session", "s", "--model", model.model)
    assert "reflection" in {row["kind"] for row in rows(om)}
    assert blocks(om) == before
    asked = len(model.asked)
    om("tick", "--model", model.model, env=SMALL | {"OM_OBSERVE_TOKENS": "150", "OM_OBSERVE_FLOOR": "0"})
    assert len(model.asked) == asked
    assert blocks(om) == (0, 0)
    assert any("Lamp 100" in row["text"] for row in rows(om))


# What goes wrong


def test_a_failure_ahead_costs_nothing_but_its_price(om: Om) -> None:
    """S0.21: nothing is written, no cursor moves, the ledger has the call, and the next run asks again."""
    model = script(om, {"text": "No.", "stop": "refusal"}, "echo")
    keep(om, asking("s", *[100] * 2), SMALL)
    run = om("tick", "--model", model.model, env=SMALL, code=69)
    assert "s: " in run.stderr
    assert (blocks(om), pending(om), calls(om)["calls"]) == ((0, 0), 2, 1)
    assert [error["lane"] for error in om("status", "--json").document["errors"]] == ["observe"]
    om("tick", "--model", model.model, env=SMALL)
    assert model.transcripts[0] == model.transcripts[1]
    assert (blocks(om), om("status", "--json").document["errors"]) == ((1, 2), [])


def test_a_model_that_cannot_be_asked_is_told_of_where_it_was_to_look_ahead(om: Om) -> None:
    """F66: its key is missing; what waits does so still, and `om status` says why."""
    keep(om, asking("s", *[100] * 2), SMALL)
    run = om("tick", "--observer", "anthropic", env=SMALL, code=None)
    assert run.code not in (0, 1)
    (error,) = om("status", "--json").document["errors"]
    assert (error["session"], error["lane"]) == ("s", "observe")
    assert (blocks(om), pending(om)) == ((0, 0), 2)
    om("tick", "--model", always(om, "echo").model, env=SMALL)
    assert om("status", "--json").document["errors"] == []


def test_what_gave_nothing_ahead_is_offered_again_when_as_much_has_come(om: Om) -> None:
    """T14."""
    model = always(om, NOTHING)
    grow(om, model, asking("s", 200), env=SMALL)
    assert (len(model.asked), blocks(om)) == (1, (0, 0))
    assert "nothing is due" in grow(om, model, asking("s", 200, 100), env=SMALL)
    grow(om, model, asking("s", 200, 100, 100), env=SMALL)
    assert (len(model.asked), blocks(om), pending(om)) == (3, (1, 1), 3)
    assert "nothing is due" in grow(om, model, asking("s", 200, 100, 100), env=SMALL)


def test_two_ticks_at_once_make_one_block(om: Om) -> None:
    """T75, F21: the second waits for the first, and finds nothing due; or leaves it to that."""
    keep(om, asking("s", *[100] * 2), SMALL)
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    first = om.start("tick", "--model", slow.model, env=SMALL)
    while not slow.asked:
        assert first.poll() is None
    om("tick", "--model", slow.model, "--wait", "0", env=SMALL, code=75)
    second = om.start("tick", "--model", slow.model, "--wait", "60", env=SMALL)
    slow.answers()
    for process in (first, second):
        process.communicate(timeout=120)
    assert first.returncode == 0
    assert (len(slow.asked), blocks(om), pending(om)) == (1, (1, 2), 2)


def test_many_ticks_at_once_activate_each_block_once(om: Om) -> None:
    """T75, F25: no message is told twice, and nobody is asked."""
    model, env = always(om, "echo"), SMALL | {"OM_OBSERVE_TOKENS": "990"}
    for number in range(1, 10):
        grow(om, model, asking("s", *[100] * number), env=env)
    keep(om, asking("s", *[100] * 9, 90), env)
    asked = len(model.asked)
    racing = [om.start("tick", "-q", "--model", model.model, env=env) for _ in range(5)]
    for process in racing:
        process.communicate(timeout=120)
    assert 0 in {process.returncode for process in racing}
    assert (len(model.asked), blocks(om), pending(om), len(rows(om))) == (asked, (0, 0), 2, 8)


# Killed


def test_a_tick_that_is_killed_while_a_model_thinks_ahead_leaves_nothing_but_what_was_kept(om: Om) -> None:
    """F22, F24: the block before stays, the next run makes the other one at once, and no lane is held by the dead."""
    model = always(om, "echo")
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    grow(om, model, asking("s", *[100] * 2), env=SMALL)
    keep(om, asking("s", *[100] * 4), SMALL)
    process = om.start("tick", "--model", slow.model, env=SMALL)
    wait_until(lambda: bool(slow.asked))
    process.kill()
    process.communicate()
    assert blocks(om) == (1, 2)
    om("tick", "--model", model.model, "--wait", "0", env=SMALL)
    assert [told(shown) for shown in model.transcripts] == [["0", "1"], ["2", "3"]]
    assert blocks(om) == (2, 4)


@pytest.mark.parametrize("name", ["tick", "observe"])
def test_a_run_that_is_killed_while_it_activates_blocks_is_gone_on_with(
    om: Om, name: str, new_om: Callable[[], Om]
) -> None:
    """F22, F25, T75: kill -9 between two blocks; each is written down once, and nobody is asked again."""
    model, sizes = always(om, "echo"), [30] * 30
    made = {"OM_COUNTER": "chars-4", "OM_OBSERVE_TOKENS": "100000", "OM_OBSERVE_PRECOMPUTE": "30"}
    path = om.write("s.jsonl", asking("s", *sizes).text())
    keep(om, asking("s", *sizes), made)
    om("tick", "--model", model.model, env=made)
    assert (len(model.asked), blocks(om)) == (30, (30, 30))
    arguments: list[str | Path] = ["tick"] if name == "tick" else ["observe", path]
    env = made | {"OM_OBSERVE_TOKENS": "1"}
    made_ready = new_om().place
    copy(om.place, made_ready)
    left = 0
    while left in (0, 30):  # killed too late, or too early
        copy(made_ready, om.place)
        process = om.start(*arguments, "--model", model.model, env=env)
        while number_of(om.place, "blocks") == 30 and process.poll() is None:
            pass
        process.kill()
        process.communicate()
        left = number_of(om.place, "blocks")
    with closing(Watcher(om.place)) as watcher:
        watcher.look()
        om(*arguments, "--model", model.model, env=env, code=None)
        watcher.look()
        assert watcher.untold() == []
    assert (len(model.asked), pending(om), len(rows(om))) == (30, 0, 30)
    assert len({row["text"] for row in rows(om)}) == 30
    assert_covered_once(om.place)
