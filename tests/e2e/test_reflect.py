"""`om reflect` with a model, and `om tick` where that is due: what is folded, what stays, and when nobody is asked."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from omcli.base.record import replace
from omcli.memory.observation import Kind, Observation, Priority, Status, Type
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.contents import connected
from tests.e2e.reflecting import in_sight, kept, labels, noticed, reflecting, reply, texts, told
from tests.e2e.scripts import UNTIL, Script, always, calls, pending, rows
from tests.e2e.transcripts import Talk, tide_story
from tests.material import row, row_id

CRANES = "The crane is greased weekly", "The berth is dredged yearly"
FOLDED = "Crane greased weekly, berth dredged yearly"
ANY = {"OM_REFLECT_TARGET": "1"}
"""Any reply will do that is shorter than what it replaces."""
LANGO = {"OM_PRESET": "lango"}
PI = {"OM_PRESET": "pi"}


def reflect(om: Om, model: Script, *arguments: str, session: str = "s", **how: Any) -> Ended:
    """`om reflect` of a session, with a model."""
    return om("reflect", "--session", session, "--model", model.model, *arguments, **how)


def sized(tokens: int, number: int = 0) -> str:
    """A text of so many tokens, as `chars-4` counts them."""
    return f"tide {chr(ord('a') + number)} ".ljust(4 * tokens, "x")


def ten_rows_of_100() -> list[Observation]:
    """Ten rows, 1,000 tokens by `chars-4`."""
    return [row(number, text=sized(100, number), tokens=100, counter="chars-4") for number in range(1, 11)]


def tokens_in_sight(om: Om) -> int:
    """What the rows in sight come to."""
    return sum(each["tokens"] for each in in_sight(om, "--session", "s"))


# What becomes of rows


def test_one_reflection_takes_the_place_of_a_session_s_rows(om: Om) -> None:
    """T37, S1.8, S1.12, S2.24, C8: another session's rows are the same to the byte."""
    noticed(om, *CRANES)
    noticed(om, "Elsewhere the quay is painted", session="other")
    others = om("log", "--all", "--jsonl", "--session", "other").stdout
    model = reflecting(om, reply(told(FOLDED, "o1", "o2")))
    document = reflect(om, model, "--json", env=LANGO).document
    counted = {name: document[name] for name in ("items_created", "observations_condensed", "kept")}
    assert counted == {"items_created": 0, "observations_condensed": 2, "kept": 0}
    assert document["tokens_after"] < document["tokens_before"]
    (reflection,) = in_sight(om, "--session", "s")
    assert (reflection["text"], reflection["kind"], reflection["generation"]) == (FOLDED, "reflection", 1)
    folded = [each for each in rows(om, "--session", "s") if each["kind"] == "observation"]
    assert [each["text"] for each in folded] == list(CRANES)
    assert [each["superseded_by"] for each in folded] == [reflection["id"]] * 2
    assert reflection["supports"] == [each["id"] for each in folded]
    assert reflection["message_ids"] == [key for each in folded for key in each["message_ids"]]
    assert om("log", "--all", "--jsonl", "--session", "other").stdout == others
    assert "last_used_at" not in others


def test_reflections_stand_before_what_was_observed_since(om: Om) -> None:
    """S1.9, T59: whenever that was said; with little room they go before it, and nothing else is there."""
    noticed(om, *CRANES)
    reflect(om, reflecting(om, reply(told(FOLDED, "o1", "o2"))), env=LANGO)
    noticed(om, "The quay is painted each spring", name="since", day="2026-02-01")
    asking = ("context", "--session", "s", "--preset", "lango", "--tail-budget", "0")
    pack = om(*asking).stdout
    assert pack.index(FOLDED) < pack.index("The quay is painted")
    small = om(*asking, "--session-budget", "30").stdout
    assert FOLDED in small
    assert "quay" not in small


def test_rows_are_shown_under_headings_where_one_row_is_wanted(om: Om) -> None:
    """S2.22, S2.23."""
    noticed(om, *CRANES)
    model = reflecting(om, reply(told("Crane weekly", "o1"), told("Berth yearly", "o2")))
    reflect(om, model, env={"OM_PRESET": "duet"})
    assert "## Group `o1`\n_range: 2026-02-10 09:00_\n- medium fact: The crane is greased weekly" in model.prompts[0]
    assert texts(om) == ["Crane weekly · Berth yearly"]


def test_what_was_observed_stays_observed(om: Om) -> None:
    """T39, F16: the cursor has a table of its own, so that not even rows that are deleted are observed again."""
    model = always(om, "echo")
    transcript = om.write("t.jsonl", tide_story().text())
    om("observe", transcript, "--model", model.model)
    om("reflect", "--model", model.model)
    asked = len(model.asked)
    assert om("status", "--json").document["pending"] == 0
    for again, code in ((("tick",), 1), (("observe", transcript), 0)):
        om(*again, "--model", model.model, code=code)
    assert (len(model.asked), pending(om)) == (asked, 0)
    with connected(om.place) as store:
        store.execute("DELETE FROM observations WHERE superseded_by IS NOT NULL OR dropped_at IS NOT NULL")
        store.execute("DELETE FROM observations")
    for again, code in ((("tick",), 1), (("observe", transcript), 0)):
        om(*again, "--model", model.model, code=code)
    assert (len(model.asked), pending(om), rows(om)) == (asked, 0, [])


def test_reflecting_leaves_observing_as_it_is(om: Om) -> None:
    """T44: cursor, last observed time, tokens of messages; F14: what waits goes on waiting, and is observed later."""
    model = always(om, "echo")
    talk = tide_story()
    transcript = om.write("t.jsonl", talk.text())
    om("observe", transcript, "--model", model.model)
    transcript.write_text(talk.user("Hello, how are you today?").user("And how is the harbour?").text())
    om("observe", "--later", transcript)

    def state() -> object:
        status = om("status", "--json").document
        status = {name: value for name, value in status.items() if "pending" in name or "message" in name}
        shown = om("pending", "--json").document
        return (
            status,
            [message["id"] for message in shown["messages"]],
            om("sessions", "--json").document["sessions"][0]["messages"],
        )

    before = state()
    assert pending(om) == 2
    om("reflect", "--model", model.model)
    assert state() == before
    om("observe", transcript, "--model", model.model)
    assert pending(om) == 0


def test_reflections_are_folded_again_where_a_preset_says_so(om: Om) -> None:
    """T44, C9, D13: generation + 1, with what is new; by default they stay as they are."""
    noticed(om, *CRANES)
    whole = ANY | {"OM_REFLECT_META": "whole"}
    model = reflecting(om, reply(told(FOLDED, *labels(2))), reply(told("Crane, berth, quay", *labels(2))))
    reflect(om, model, env=whole)
    noticed(om, "The quay is painted each spring", name="more")
    rules = om("reflect", "--reflector", "rules", "--json").document
    assert (rules["read"], rules["observations_condensed"]) == (1, 0)
    reflect(om, model, env=whole)
    (last,) = in_sight(om)
    assert (last["generation"], len(last["supports"])) == (2, 2)
    assert len(rows(om)) == 5


# Reflections of reflections


def reflections(*generations: int) -> list[Observation]:
    """Reflections, each of its generation."""
    return [
        row(
            number, text=f"Reflection {number} told of tides", kind=Kind.REFLECTION, generation=generation, tokens=10,
            counter="chars-4-cjk-2",
        )
        for number, generation in enumerate(generations, start=1)
    ]  # fmt: skip


def test_two_reflections_are_folded_by_hand(om: Om) -> None:
    """T38: generation 2, both tombstoned; of nothing nobody is asked; who fails changes nothing."""
    kept(om, *reflections(1, 1))
    failing = reflecting(om, {"error": "unreachable"}, name="failing.json")
    before = om("log", "--all", "--jsonl").stdout
    reflect(om, failing, "--meta", env=LANGO, code=69)
    assert (om("log", "--all", "--jsonl").stdout, len(failing.asked)) == (before, 1)
    model = reflecting(om, reply(told("Tides, told twice", "o1", "o2")))
    reflect(om, model, "--meta", env=LANGO)
    assert [(each["text"], each["generation"]) for each in in_sight(om)] == [("Tides, told twice", 2)]
    assert len(rows(om)) == 3
    run = reflect(om, model, "--meta", env=LANGO)
    assert "nothing to reflect on" in run.stderr
    assert len(model.asked) == 1


def test_five_reflections_are_folded_by_themselves(om: Om) -> None:
    """T38: four are not; rows that are not due to be folded are not touched."""
    kept(om, *reflections(1, 1, 1, 1))
    kept(om, row(20, text="The quay is painted each spring", tokens=8, counter="chars-4-cjk-2"))
    model = reflecting(om, reply(told("Reflections", *labels(5))))
    tick = ("tick", "--session", "s", "--model", model.model, "--json")
    assert om("tick", "--check", env=LANGO, code=1).stdout == ""
    assert om(*tick, env=LANGO, code=1).document["due"] == []
    assert model.asked == []
    kept(om, row(5, text="Reflection 5", kind=Kind.REFLECTION, generation=1, tokens=10, counter="chars-4-cjk-2"))
    assert om("tick", "--check", env=LANGO).stdout == "s  reflect\n"
    assert om(*tick, env=LANGO).document["reflections"] == 1
    assert texts(om) == ["The quay is painted each spring", "Reflections"]
    assert len(model.asked) == 1
    om(*tick, env=LANGO, code=1)
    assert len(model.asked) == 1


def test_what_comes_to_nothing_is_not_tried_by_turns(om: Om) -> None:
    """F35, XA4: rows and reflections that are both due, and a model that makes nothing of either."""
    kept(om, *reflections(1, 1))
    kept(om, *(row(number, text=f"Ship {number}", tokens=10, counter="chars-4-cjk-2") for number in range(10, 15)))
    model = always(om, "[]")
    env = LANGO | {"OM_REFLECT_TOKENS": "10", "OM_REFLECT_META_AT": "2"}
    codes = [om("tick", "--model", model.model, env=env, code=None).code for _ in range(6)]
    assert (codes, len(model.asked)) == ([69, 69, 69, 69, 1, 1], 4)


# When it is due


def test_rows_are_folded_when_they_have_grown_enough(om: Om) -> None:
    """F19, S2.2, S2.21: not a token earlier, unless it is asked for; what was just observed counts."""
    model = always(om, "echo")
    transcript = om.write("t.jsonl", tide_story().text())
    om("observe", transcript, "--model", model.model)
    size = tokens_of(om)
    asked = len(model.asked)
    run = om("tick", "--model", model.model, "--json", env={"OM_REFLECT_TOKENS": str(size + 1)}, code=1)
    assert run.document == {"schema": 1, "observations": 0, "reflections": 0, "blocks": 0, "due": []}
    assert len(model.asked) == asked
    done = om("tick", "--model", model.model, "--json", env={"OM_REFLECT_TOKENS": str(size)}).document
    assert (done["observations"], done["reflections"]) == (0, 1)
    new = om.write("new.jsonl", tide_story(session="new").text())
    om("observe", "--later", new)
    env = {"OM_OBSERVE_TOKENS": "10", "OM_REFLECT_TOKENS": str(size)}
    done = om("tick", "--session", "new", "--model", model.model, "--json", env=env).document
    assert done["observations"] > 0
    assert done["reflections"] == 1
    noticed(om, "The quay is painted each spring", session="small")
    noticed(om, "The quay is painted each spring, and the harbour is dredged", session="small", name="again")
    small = reflecting(om, reply(told("Quay painted each spring, harbour dredged", "o1", "o2")), name="small.json")
    reflect(om, small, session="small")
    assert texts(om, "--session", "small") == ["Quay painted each spring, harbour dredged"]


def tokens_of(om: Om) -> int:
    """What the rows in sight come to, as they were counted."""
    return sum(each["tokens"] for each in in_sight(om))


# Replies that are text

ITEM = {"summary": "The crane is called Bertha", "type": "knowledge", "tags": ["crane"]}
THREE = [
    {"summary": "Berths are booked by phone", "type": "event", "category": "event/reflected", "tags": []},
    {"summary": "The tide table hangs in the office", "type": "weather", "tags": ["tide", ["a", "b"], {"c": "]"}]},
    {"summary": "Cranes are greased [weekly]", "type": "skill", "tags": ["crane"]},
]
SHORT = "Crane weekly, berth yearly"


@pytest.mark.parametrize(
    ("text", "items", "left"),
    [
        (f"FACTS: {json.dumps([ITEM])}\nCONDENSED:\n{SHORT}", ["knowledge"], [SHORT]),
        (f"FACTS: {json.dumps(THREE, indent=2)}\n\nCONDENSED:\n- {SHORT}", ["event", "knowledge", "skill"], [SHORT]),
        (f"FACTS: [{{broken\nCONDENSED: {SHORT}", [], [SHORT]),
        (f"FACTS: {json.dumps([ITEM])}\n{SHORT}", ["knowledge"], [SHORT]),
        (f"FACTS: []\nCONDENSED: {SHORT}", [], [SHORT]),
    ],
    ids=["one fact", "three facts, pretty-printed", "malformed facts", "no CONDENSED", "no facts"],
)
def test_facts_and_condensed_text_are_read(om: Om, text: str, items: list[str], left: list[str]) -> None:
    """T40, S0.30, S0.32, S0.33."""
    noticed(om, *CRANES)
    document = reflect(om, reflecting(om, text), "--json", env={"OM_PRESET": "zora"}).document
    assert (document["items_created"], document["observations_condensed"]) == (len(items), 2)
    lasting = om("items", "--json").document["items"]
    assert sorted(item["type"] for item in lasting) == items
    assert {item["metadata"]["category"] for item in lasting if "metadata" in item} <= {"event/reflected"}
    assert texts(om, "--kind", "reflection", "--kind", "observation") == left


@pytest.mark.parametrize(
    ("text", "priority", "status", "at"),
    [
        (
            "<observations>\nDate: Feb 10, 2026\n- [!] 09:00 {}\n</observations>\n<current-task>x\n",
            "high",
            None,
            "09:00",
        ),
        ("Here it is.\n\nDate: 2026-02-10\n* \U0001f7e2 (09:01) {}\nThat is all.", "low", None, "09:01"),
        ("- \U0001f534 (2026-02-10 09:01) {}\n", "high", None, "09:01"),
        ("Here:\n[2026-02-10 09:00] IMPORTANT {}\nThat is all.", "medium", None, "09:00"),
        ("CONDENSED:\n- \u2705 (9:00) {}", "high", "done", "09:00"),
        ("CONDENSED:\n* [?] {} [o1, o2]", "medium", None, "09:01"),
        ("FACTS: []\nCONDENSED:\n[2026-02-10 09:00] 2/10 resolved: {}", "low", "resolved", "09:00"),
        ("CONDENSED: **IMPORTANT** [2027-01-01] {}", "medium", None, "09:01"),
    ],
)
def test_marks_and_times_of_a_text_are_no_words(om: Om, text: str, priority: str, status: str | None, at: str) -> None:
    """XD4, S3.21, S3.8, T20: in any notation; a row is of the last message of its time, and never of another day."""
    noticed(om, *CRANES)
    reflect(om, reflecting(om, text.replace("{}", SHORT)))
    [row] = [row for row in in_sight(om) if row["kind"] == "reflection"]
    assert (row["text"], row["priority"], row.get("status")) == (SHORT, priority, status)
    assert row["event_at"] == f"2026-02-10T{at}:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "- 2026-02-10 {}",
        "- \U0001f534 {}",
        "- \U0001f534 (09:01) {}",
        "- \U0001f534 (2026-02-10 09:01) {}\n- I left the rest as it is.",
        "  - \U0001f534 (2026-02-10 09:01) {}",
    ],
)
def test_a_list_that_may_be_prose_is_no_reply(om: Om, text: str) -> None:
    """XD4, T20: without tags and headings, each item needs a mark and a date."""
    noticed(om, *CRANES)
    reflect(om, reflecting(om, text.replace("{}", SHORT)), code=69)


def test_nobody_is_asked_of_nothing_and_who_fails_changes_nothing(om: Om) -> None:
    """T40, S0.31, C17: an empty store, a session without rows; exit 69, and what went wrong is in the status."""
    model = reflecting(om, {"error": "unreachable"})
    run = om("reflect", "--model", model.model)
    assert (run.stdout, run.stderr) == ("", "om: nothing to reflect on\n")
    run = om("reflect", "--model", model.model, "--session", "s", code=66)
    assert (run.stdout, run.stderr.splitlines()[0]) == ("", "om: error: unknown session `s`: no sessions yet")
    assert model.asked == []
    noticed(om, *CRANES)
    before = om("log", "--all", "--jsonl").stdout
    reflect(om, model, code=69)
    assert om("log", "--all", "--jsonl").stdout == before
    assert calls(om)["failed"] == 1
    (error,) = om("status", "--json").document["errors"]
    assert (error["session"], error["lane"]) == ("s", "reflect")
    reflect(om, always(om, {"error": "unreachable"}), "--best-effort")


# What stays word for word

CRITICAL = "Never restart the berth controller by day"


@pytest.mark.parametrize(
    ("preset", "status", "stays"),
    [("zora", Status.DONE, True), ("default", Status.OPEN, True), ("default", Status.DONE, False)],
)
def test_a_row_of_high_priority_stays_word_for_word(om: Om, preset: str, status: Status, stays: bool) -> None:
    """T41, S0.33: absent from the reply, dropped with a reason, told in other words."""
    critical = row(5, text=CRITICAL, priority=Priority.HIGH, status=status, type=Type.OUTCOME)
    some = [
        row(number, text=f"Ship {name} lies in the harbour {'and waits ' * 9}") for number, name in enumerate("abcd", 1)
    ]
    dropped: dict[str, object] = {"row": "o5", "reason": "resolved", "by": None}
    answers = (
        reply(told("Ships a, b, c and d wait", *labels(4))),
        reply(told("Ships a, b, c and d wait", *labels(4)), drop=[dropped]),
        reply(told("Ships a, b, c and d wait, the controller is not to be restarted by day", *labels(5))),
    )
    for number, answer in enumerate(answers):
        session = f"s{number}"
        kept(om, *(_of(each, session, 100 * number + at) for at, each in enumerate((*some, critical), start=1)))
        model = reflecting(om, answer, name=f"{session}.json")
        reflect(om, model, session=session, env={"OM_PRESET": preset})
        assert (CRITICAL in texts(om, "--session", session)) == (stays or number == 0)
        assert ("(verbatim)" in model.prompts[0]) == stays


def _of(observation: Observation, session: str, number: int) -> Observation:
    return replace(observation, session=session, id=row_id(number))


def test_a_careless_model_does_not_lose_what_matters(om: Om) -> None:
    """V12, F6: many rows in the words of one, or in words that say nothing; more is left than by rules, or as much."""
    om("observe", om.write("t.jsonl", tide_story().text()))
    matters = {each["text"] for each in in_sight(om) if each["priority"] == "high"}
    assert len(matters) >= 4
    for name, text in (("one", texts(om)[-1]), ("vague", "The agent did some work and it went well")):
        model = always(om, reply(told(text, *labels(len(in_sight(om))))), name=f"{name}.json")
        run = om("reflect", "--model", model.model, "--json", env={"OM_REFLECT_VERBATIM": "none"}, code=None)
        assert run.code == 69 or run.document["findings"]["kept_back"] >= len(matters)
        assert matters <= set(texts(om))
    pack = om("context", "--budget", "400").stdout
    assert om("tokens", "--json", stdin=pack).document["tokens"] <= 400
    assert "metric units" in pack
    assert "we decided to keep them lower case" in pack


# How often a model is asked


def test_a_reply_that_is_not_short_enough_is_asked_for_again(om: Om) -> None:
    """T42, S3.10, S3.18: of 1,000 tokens 950, then 400."""
    kept(om, *ten_rows_of_100())
    model = reflecting(om, *(reply(told(sized(tokens), *labels(10))) for tokens in (950, 400)))
    document = reflect(om, model, "--json", env=PI).document
    assert (document["attempts"], document["tokens_before"], document["tokens_after"]) == (2, 1000, 400)
    assert (len(model.asked), tokens_in_sight(om)) == (2, 400)


def test_a_reply_that_is_short_enough_is_the_last(om: Om) -> None:
    """T42: 899 of 1,000, where 900 are wanted."""
    kept(om, *ten_rows_of_100())
    model = reflecting(om, *(reply(told(sized(tokens), *labels(10))) for tokens in (899, 100)))
    reflect(om, model, env=PI)
    assert (len(model.asked), tokens_in_sight(om)) == (1, 899)


def test_replies_that_are_larger_are_refused(om: Om) -> None:
    """T42, F7, XA6: the rows are left as they are, and nobody is asked again in vain (F35)."""
    kept(om, *ten_rows_of_100())
    before = om("log", "--all", "--jsonl").stdout
    larger = [reply(told(sized(tokens), *labels(10))) for tokens in (1000, 1100)]
    model = reflecting(om, *larger, reply(told(sized(50), *labels(11))))
    run = reflect(om, model, env=PI)
    assert "the rows could not be made shorter" in run.stderr
    assert om("log", "--all", "--jsonl").stdout == before
    for again, code in ((("reflect", "--session", "s"), 0), (("tick",), 1)):
        om(*again, "--model", model.model, env=PI | {"OM_REFLECT_TOKENS": "10"}, code=code)
        assert len(model.asked) == 2
    run = om("reflect", "--model", model.model, "--session", "s", env=PI)
    assert "nothing has changed since" in run.stderr
    env = PI | {"OM_REFLECT_TOKENS": "10"}
    assert om("tick", "--check", "--model", model.model, env=env, code=1).stdout == ""
    for other in ("rules", "anthropic"):  # who have not tried; and who is only asked about needs no key
        assert om("tick", "--check", "--observer", other, env=env).stdout == "s  reflect\n"
    kept(om, row(11, text="tides are new"))
    reflect(om, model, env=PI)
    assert (len(model.asked), tokens_in_sight(om)) == (3, 50)


def test_a_reflection_that_says_nothing_of_its_sources_hides_none(om: Om) -> None:
    """XA7: a reply of only such reflections is unusable; beside others, what nothing is said of stays in sight."""
    noticed(om, *CRANES, "The quay is painted each spring")
    before = texts(om)
    vague = told("All is well.", *labels(3))
    reflect(om, reflecting(om, *[reply(vague)] * 4), code=69)
    assert texts(om) == before
    reflect(om, reflecting(om, *[reply(vague, told("The quay, in spring", *labels(3)))] * 4, name="other.json"))
    assert texts(om) == [*CRANES, "The quay, in spring"]


def test_rules_stand_in_where_the_settings_say_so(om: Om) -> None:
    """T42, XA1: with a warning; no preset says so."""
    kept(om, *ten_rows_of_100())
    model = reflecting(om, *(reply(told(sized(tokens), *labels(10))) for tokens in (1000, 1100)))
    run = reflect(om, model, env=PI | {"OM_REFLECTOR_FALLBACK": "rules"})
    assert "reflected by rules" in run.stderr


def test_rows_that_are_more_than_a_model_takes_are_folded_in_halves(om: Om) -> None:
    """As batches of messages are: the calls are in the ledger, and all of it is written at once."""
    kept(om, *ten_rows_of_100())
    halves = [reply(told(sized(tokens), *labels(5))) for tokens in (200, 100)]
    model = reflecting(om, {"error": "prompt-too-long"}, *halves)
    document = reflect(om, model, "--json", env=PI).document
    assert (document["reflections_created"], document["tokens_after"], tokens_in_sight(om)) == (2, 300, 300)
    assert calls(om)["calls"] == 3


def test_what_a_model_folded_before_it_failed_is_written_and_the_next_run_folds_the_rest(om: Om) -> None:
    """XA5: no reply that was paid for is lost, and no row is folded twice; the rest need not have changed."""
    kept(om, *ten_rows_of_100())
    older, newer = (reply(told(sized(tokens), *labels(5))) for tokens in (200, 100))
    model = reflecting(om, {"error": "prompt-too-long"}, older, {"error": "unreachable"}, newer)
    run = reflect(om, model, env=PI)
    assert "5 left for the next run, because the model failed" in run.stderr
    assert tokens_in_sight(om) == 200 + 500
    reflect(om, model, env=PI)
    assert tokens_in_sight(om) == 200 + 100
    assert calls(om)["calls"] == 4


LADDER = {
    "OM_COUNTER": "chars-4", "OM_REFLECT_TARGET": "0.9", "OM_REFLECT_ATTEMPTS": "4", "OM_REFLECT_LEVELS": "0,1,2,3",
    "OM_REFLECT_TEMPERATURE_STEP": "0.05", "OM_REFLECTOR_TEMPERATURE": "0",
}  # fmt: skip


def test_a_ladder_goes_up_level_by_level_and_degree_by_degree(om: Om) -> None:
    """T43: too long three times, smaller at the fourth; 0, 0.05, 0.10, 0.15."""
    kept(om, *ten_rows_of_100())
    model = reflecting(om, *(reply(told(sized(tokens), *labels(10))) for tokens in (1000, 1200, 1000, 700)))
    reflect(om, model, env=LADDER)
    assert [ask["temperature"] for ask in model.asked] == [0.0, 0.05, 0.1, 0.15]
    assert len({ask["content"][-1] for ask in model.asked}) == 4
    assert tokens_in_sight(om) == 700
    assert calls(om)["calls"] == 4


def test_a_network_error_ends_the_ladder(om: Om) -> None:
    """T43: after one call; that is no attempt in vain, for a model may be up again."""
    kept(om, *ten_rows_of_100())
    model = reflecting(om, {"error": "unreachable"}, reply(told(sized(50), *labels(10))))
    reflect(om, model, env=LADDER, code=69)
    assert len(model.asked) == 1
    reflect(om, model, env=LADDER)
    assert (len(model.asked), tokens_in_sight(om)) == (2, 50)


def test_a_level_beyond_the_last_is_the_last(om: Om) -> None:
    """T43: level 99."""
    asked = []
    for number, level in enumerate(("99", "4")):
        session = f"s{number}"
        kept(om, *(_of(each, session, 100 * number + at) for at, each in enumerate(ten_rows_of_100(), start=1)))
        model = reflecting(om, reply(told(sized(50), *labels(10))), name=f"{session}.json")
        reflect(om, model, session=session, env=LADDER | {"OM_REFLECT_LEVELS": level, "OM_REFLECT_ATTEMPTS": "1"})
        asked.append(model.asked[0]["content"][-1])
    assert asked[0] == asked[1]


def test_the_best_of_the_replies_counts(om: Om) -> None:
    """F36: 60 %, 45 %, empty; F35: it is kept though the target was missed, and a second run asks nobody."""
    kept(om, *ten_rows_of_100())
    replies = [reply(told(sized(tokens), *labels(10))) for tokens in (600, 450)]
    model = reflecting(om, *replies, "[]", *replies)
    env = LADDER | {
        "OM_REFLECT_TARGET": "0.1", "OM_REFLECT_ATTEMPTS": "3", "OM_REFLECT_META": "whole", "OM_REFLECT_TOKENS": "100",
    }  # fmt: skip
    reflect(om, model, env=env)
    asked = len(model.asked)
    assert (asked, tokens_in_sight(om)) == (3, 450)
    for again, code in ((("reflect", "--session", "s"), 0), (("tick",), 1)):
        om(*again, "--model", model.model, env=env, code=code)
        assert len(model.asked) == asked
    run = om("reflect", "--session", "s", "--model", model.model, "--again", env=env, code=None)
    assert len(model.asked) > asked, run


# What a reply may not do


def test_what_a_reply_cites_and_repeats_is_checked(om: Om) -> None:
    """T49: an unknown row, line breaks, the words of a row, invented names."""
    noticed(om, *CRANES, "The quay is painted each spring", "The quay is painted in spring", "Ships book by phone")
    model = reflecting(om, reply(
        told("Greased and dredged,\n\tyearly\r\nor weekly", "o1", "o2"),
        told("The quay is painted each spring", "o3", "o4"),
        told("Ships book", "o5", "o99"),
        told("Ships book at https://harbour.example", "o5"),
    ))  # fmt: skip
    document = reflect(om, model, "--json").document
    assert document["findings"] == {"rejected": 2, "duplicates": 1, "unaccounted": 1}
    assert sorted(texts(om)) == [
        "Greased and dredged, yearly or weekly", "Ships book by phone", "The quay is painted each spring",
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", [reply(), "[]", "{}", "", "I would rather not."])
def test_an_empty_reply_is_refused(om: Om, nothing: str) -> None:
    """F7, T49: exit 69, rows unchanged."""
    noticed(om, *CRANES)
    before = om("log", "--all", "--jsonl").stdout
    reflect(om, always(om, nothing), code=69)
    assert om("log", "--all", "--jsonl").stdout == before
    assert om("status", "--json").document["pending"] == 0


def test_rows_that_a_reply_forgets_stay(om: Om) -> None:
    """F6: of 100 rows 60 are accounted for; the others are counted, in JSON and for people."""
    kept(om, *(row(number, text=f"Ship {number % 7} took on coal and water") for number in range(1, 101)))
    ships = (told("Ships took coal and water " + "abc"[at], *labels(20, 1 + 20 * at)) for at in range(3))
    model = always(om, reply(*ships))
    assert "; 40 kept, because the reply does not mention them\n" in reflect(om, model, "--dry-run").stderr
    document = reflect(om, model, "--json").document
    assert document["findings"] == {"unaccounted": 40}
    assert (document["read"], document["observations_condensed"], document["kept"]) == (100, 60, 40)
    assert [each["id"] for each in in_sight(om) if each["kind"] == "observation"] == [
        row_id(at) for at in range(61, 101)
    ]


def test_old_rows_are_hidden_and_not_deleted(om: Om) -> None:
    """F11, C8, C23: of thirty days; with their messages."""
    noticed(om, *CRANES)
    later = ("--now", "2026-03-12T09:00:00Z")
    model = reflecting(om, reply(told(FOLDED, "o1"), drop=[{"row": "o2", "reason": "trivial", "by": None}]))
    reflect(om, model, *later)
    folded, dropped = (each for each in rows(om) if each["kind"] == "observation")
    assert folded["superseded_by"]
    assert (dropped["dropped_at"][:10], dropped["reason"]) == ("2026-03-12", "trivial")
    for each in (folded, dropped):
        shown = om("show", each["id"], "--json").document
        assert shown["observation"]["text"] == each["text"]
        assert len(shown["messages"]) == 1


def test_a_row_says_how_well_reflections_cover_it(om: Om) -> None:
    """T50: supported by none, by one that cites it twice, by two."""
    noticed(om, *CRANES, "The quay is painted each spring", "Ships book by phone")
    model = reflecting(
        om,
        reply(told("Crane weekly, berth yearly", "o1", "o2", "o2"), told("Cranes and quays", "o1", "o3"), keep=["o4"]),
    )
    reflect(om, model)
    covered = {
        each["text"]: om("show", each["id"], "--json").document["observation"]["coverage"] for each in rows(om)[:4]
    }
    assert list(covered.values()) == ["strong", "partial", "partial", "none"]


# Meanwhile


def _started(om: Om, answer: str) -> tuple[Any, Script]:
    slow = reflecting(om, {"text": answer, **UNTIL}, answer, name="slow.json")
    process = om.start("reflect", "--session", "s", "--model", slow.model)
    end = time.monotonic() + 60
    while not slow.asked:
        assert time.monotonic() < end
        time.sleep(0.02)
    return process, slow


def test_rows_that_changed_meanwhile_are_not_written_over(om: Om) -> None:
    """F28: exit 75, and nothing of it written; the next run finds things as they are."""
    talk = Talk(session="s").user("Hello, how are you today?").call("Bash", {"command": "make harbour"})
    talk.result("Exit code 2\nmake: no rule to make target harbour", is_error=True)
    transcript = om.write("t.jsonl", talk.text())
    om("observe", transcript)
    noticed(om, *CRANES)
    process, slow = _started(om, reply(told("Crane greased, berth dredged", *labels(2, first=2))))
    talk.call("Bash", {"command": "make harbour"}).result("built harbour")
    transcript.write_text(talk.text())
    om("observe", transcript)
    meanwhile = om("log", "--all", "--jsonl").stdout
    slow.answers()
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, b"while they were reflected on" in stderr) == (75, True)
    assert om("log", "--all", "--jsonl").stdout == meanwhile
    assert any(each.get("status") == "resolved" for each in in_sight(om))


def test_rows_that_come_meanwhile_do_not_collide(om: Om) -> None:
    """F28, issue of concurrent observes: what is new was not read, and stays."""
    noticed(om, *CRANES)
    process, slow = _started(om, reply(told(FOLDED, *labels(2))))
    noticed(om, "The quay is painted each spring", name="more")
    slow.answers()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert sorted(texts(om)) == [FOLDED, "The quay is painted each spring"]


def test_two_at_once_do_not_fold_the_same_rows_twice(om: Om) -> None:
    """F28, S2.23: the second is told who is at it, or that rows went; one reflection is there."""
    noticed(om, *CRANES)
    process, slow = _started(om, reply(told(FOLDED, *labels(2))))
    second = reflecting(om, reply(told("Crane and berth", *labels(2))), name="second.json")
    run = reflect(om, second, env={"OM_WAIT": "0"}, code=75)
    slow.answers()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert "reflect" in run.stderr
    assert texts(om) == [FOLDED]
    assert second.asked == []


def test_an_interrupted_reflection_leaves_everything_as_it_was(om: Om) -> None:
    """S2.23: exit 130; the session is free for the next one."""
    noticed(om, *CRANES)
    before = om("log", "--all", "--jsonl").stdout
    process, _ = _started(om, reply(told(FOLDED, *labels(2))))
    process.send_signal(2)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert om("log", "--all", "--jsonl").stdout == before
    reflect(om, reflecting(om, reply(told(FOLDED, *labels(2)))))
    assert texts(om) == [FOLDED]


def test_a_dry_run_shows_what_would_come_of_it(om: Om) -> None:
    """S0.30."""
    noticed(om, *CRANES)
    before = om("log", "--all", "--jsonl").stdout
    model = always(om, reply(told(FOLDED, *labels(2))))
    run = reflect(om, model, "--dry-run")
    assert FOLDED in run.stdout
    assert "would be: 2 rows read, 2 folded into 1" in run.stderr
    assert om("log", "--all", "--jsonl").stdout == before
    assert reflect(om, model, "--dry-run", "--json").document["dry_run"] is True


def test_a_missing_key_is_told_with_the_flag_that_reflecting_has(om: Om) -> None:
    """S3.17."""
    noticed(om, *CRANES)
    run = om("reflect", "--session", "s", "--reflector", "anthropic", "--model", "m", code=77)
    assert "`--reflector rules` or OM_REFLECTOR_PROVIDER=rules" in run.stderr, "which tick has no flag for"
    assert "--observer" not in run.stderr


def test_what_only_goes_out_of_sight_is_not_said_to_be_folded(om: Om) -> None:
    """S0.30: rules drop what is done and small from sight first; that is in no new row."""
    small = [row(number, text=sized(400, number), tokens=400, priority=Priority.LOW) for number in range(1, 9)]
    kept(om, *small, *(row(number, text=sized(400, number), tokens=400) for number in range(9, 12)))
    run = om("reflect", "--session", "s", "--reflector", "rules")
    hidden = [each for each in rows(om, "--session", "s") if each.get("dropped_at")]
    assert hidden
    assert f"read, 0 folded into 0, {len(hidden)} hidden, 0 items" in run.stderr


def test_a_row_that_stays_is_not_said_to_be_folded(om: Om) -> None:
    """T41: though a reflection cites it."""
    opened = row(3, text="The crane on berth 4 is broken", priority=Priority.HIGH, status=Status.OPEN)
    kept(om, row(1, text=CRANES[0], tokens=9), row(2, text=CRANES[1], tokens=9), opened)
    run = reflect(om, always(om, reply(told(FOLDED, *labels(3)))), env=ANY)
    assert "3 rows read, 2 folded into 1, 0 items" in run.stderr


def test_an_item_is_written_once_for_each_place_it_belongs_to(om: Om) -> None:
    """S0.32: in a session of no project that begins with a row of one; another project knows the same."""
    old = row(1, text="Ships were counted by hand", event_at="2025-01-01T09:00:00.000Z", project="/src/harbours")
    wish = row(2, text="User: I prefer tabs", type=Type.PREFERENCE, event_at="2026-02-01T09:00:00.000Z", project=None)
    known = row(3, text=wish.text, kind=Kind.ITEM, type=Type.BEHAVIOR, session=None, project="/src/harbours")
    kept(om, old, wish, known)
    for _ in range(2):
        om("reflect", "--session", wish.session or "", "--again")
    items = [each for each in rows(om) if each["kind"] == "item"]
    assert [each["text"] for each in items] == [wish.text] * 2
    assert [each["id"] for each in om("items", "--project", "/src/harbours", "--jsonl").lines] == [known.id]


APPLES, BANANAS = "/src/apples", "/src/bananas"


def test_rows_of_two_projects_are_not_folded_into_one(om: Om) -> None:
    """XD3, S2.13, D8: each project keeps its facts, and none carries those of the other, in reflections and items."""
    ports = {APPLES: "Apples listen on ports 7100, 7110", BANANAS: "Bananas listen on ports 8100, 8110"}
    for number, (project, said) in enumerate(ports.items()):
        for other, port in enumerate(said.split()[-2:]):
            text = f"The {said.split()[0]} service listens on port {port.strip(',')} since it moved"
            kept(om, row(1 + 2 * number + other, text=text, tokens=9, project=project))
    item: dict[str, object] = {"type": "knowledge", "tags": [], "from": labels(2)}
    model = reflecting(
        om, *(reply(told(said, *labels(2)), items=[item | {"text": f"{said}."}]) for said in ports.values())
    )
    assert "4 rows read, 4 folded into 2, 2 items" in reflect(om, model, env=ANY).stderr
    for (project, said), prompt in zip(ports.items(), model.prompts, strict=True):
        assert [fruit for fruit in ("Apples", "Bananas") if fruit in prompt] == [said.split()[0]]
        assert texts(om, "--project", project) == [said, f"{said}."]


def test_a_reflection_that_comes_too_late_writes_nothing(om: Om) -> None:
    """F24, F28: it stood still until its lease was over, and another one has folded its rows in other words."""
    noticed(om, *CRANES)
    process, slow = _started(om, reply(told(FOLDED, *labels(2))))
    process.send_signal(signal.SIGSTOP)
    other = reflecting(om, reply(told("Crane and berth", *labels(2))), name="second.json")
    reflect(om, other, env={"OM_WAIT": "0"}, code=75)
    om("reflect", "--session", "s", "--model", other.model, "--now", f"{datetime.now(UTC) + timedelta(minutes=11)}")
    before = om("log", "--all", "--jsonl").stdout
    slow.answers()
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, b"while they were reflected on" in stderr) == (75, True), stderr
    assert om("log", "--all", "--jsonl").stdout == before
    assert texts(om) == ["Crane and berth"]
