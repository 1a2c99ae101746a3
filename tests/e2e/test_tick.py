"""`om tick`: what is due by the preset is done, and nothing else; each run a fresh process."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from omcli.memory.message import Message, Role
from omcli.tokenizers import counter
from tests.conftest import Om
from tests.e2e.scripts import UNTIL, always, calls, pending, rows, script
from tests.e2e.transcripts import PROJECT, Talk, tide_story
from tests.replying import answer, said

NOTHING = answer()
CHARS = {"OM_COUNTER": "chars-4", "OM_OBSERVE_BATCH_TOKENS": "35000"}
A_MODEL = {"OM_OBSERVER_MODEL": "scripted/nowhere"}
"""A model that nobody asks. Rules wait for no threshold."""


def keep(om: Om, talk: Talk) -> None:
    """Takes a transcript in; its messages wait."""
    om("observe", "--later", om.write(f"{talk.session}.jsonl", talk.text()))


def sized(tokens: int, name: str, *, start: str = "") -> str:
    """A question of exactly so many tokens as a message, in which there is nothing to keep."""
    count = counter(name).message
    long = f"{start or tokens} " + "how are you " * tokens

    def size(length: int) -> int:
        return count(Message(role=Role.ASSISTANT, text=f"{long[:length]}?"))

    low, high = 0, len(long)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if size(middle) < tokens else (low, middle)
    length = next(length for length in range(max(0, low - 30), low + 30) if size(length) == tokens)
    return f"{long[:length]}?"


def asking(session: str, *tokens: int, name: str = "chars-4") -> Talk:
    """A session in which an agent asks questions of so many tokens each: rules keep nothing of it."""
    talk = Talk(session=session)
    for number, size in enumerate(tokens):
        talk.assistant(sized(size, name, start=f"{session} {number}"))
    return talk


def due(om: Om, *arguments: str, env: dict[str, str] | None = None) -> dict[str, list[str]]:
    """What `om tick --check` says is due of which session with a model, after a look at how it ends."""
    run = om("tick", "--check", "--json", *arguments, env={**A_MODEL, **(env or {})}, code=None)
    found: list[dict[str, Any]] = run.document["due"]
    assert run.code == (0 if found else 1)
    return {one["session"]: [lane for lane in ("observe", "reflect") if one[lane]] for one in found}


# When something is due


@pytest.mark.parametrize(
    ("preset", "name", "tokens", "is_inclusive"),
    [
        ("default", "o200k-approx", 10_000, True),
        ("zora", "chars-3.5-3", 30_000, False),
        ("lango", "chars-4-cjk-2", 1_000, True),
        ("mastra", "chars-2.5", 30_000, True),
    ],
)
def test_a_threshold_has_two_sides(om: Om, preset: str, name: str, tokens: int, *, is_inclusive: bool) -> None:
    """T9, D7: exactly so many tokens are enough, or not, by the preset; one less never is, one more always."""
    for session, size in (("less", tokens - 1), ("exact", tokens), ("more", tokens + 1)):
        keep(om, asking(session, size, name=name))
    expected = {"exact", "more"} if is_inclusive else {"more"}
    found = due(om, "--preset", preset)  # without lanes, a session is only observed ahead
    assert {session for session, lanes in found.items() if lanes} == expected


@pytest.mark.parametrize(
    ("preset", "is_inclusive"), [("default", True), ("zora", False), ("lango", True), ("pi", False), ("mastra", True)]
)
def test_the_threshold_of_rows_has_two_sides_as_well(om: Om, preset: str, *, is_inclusive: bool) -> None:
    """S3.14, S1.8, D7: counted as the preset counts."""
    om("observe", "-q", "--session", "s", stdin=tide_story().text())
    size = om("status", "--preset", preset, "--json").document["observation_tokens"]

    def is_due(threshold: int) -> bool:
        return bool(due(om, "--preset", preset, env={"OM_REFLECT_TOKENS": str(threshold)}))

    assert [is_due(size + 1), is_due(size), is_due(size - 1)] == [False, is_inclusive, True]


def test_a_threshold_of_ones_own(om: Om) -> None:
    """T9: 4,999 tokens are not 5,000; by a variable, by a file, and for one session only."""
    keep(om, asking("less", 2_000, 2_999))
    keep(om, asking("exact", 2_000, 3_000))
    env = {"OM_COUNTER": "chars-4", "OM_OBSERVE_TOKENS": "5000"}
    assert due(om, env=env) == {"exact": ["observe"]}
    config = om.write("c.toml", 'counter = "chars-4"\nobserve.tokens = 4_999\nobserve.inclusive = false\n')
    assert due(om, "--config", str(config)) == {"exact": ["observe"]}
    assert due(om, "--session", "less", env=env) == {}
    assert om("tick", "--check", env={**env, **A_MODEL}).stdout == "exact  observe\n"


def test_rules_wait_for_no_threshold(om: Om) -> None:
    """XB2: they cost nothing; a session of one sentence is observed by the next tick, whatever the threshold."""
    keep(om, Talk(session="short").user("Always use pnpm in this project."))
    for preset in ("default", "zora", "lango"):
        check = om("tick", "--check", "--preset", preset, env={"OM_OBSERVE_TOKENS": "30000"})
        assert check.stdout == "short  observe\n"
        assert due(om, "--preset", preset, env={"OM_OBSERVE_TOKENS": "30000"}) == {}
    assert om("tick", "--check", "--observer", "rules", env=A_MODEL).stdout == "short  observe\n"
    om("tick")
    assert pending(om) == 0
    assert "pnpm" in om("context", "--session", "a-session-to-come", cwd=om.folder, env={"OM_SCOPE": "global"}).stdout
    om("tick", "--check", code=1)
    keep(om, Talk(session="manual").user("Never push on Fridays."))
    om("tick", env={"OM_OBSERVE_TRIGGER": "manual"}, code=1)


def test_other_presets_wait_for_something_else(om: Om) -> None:
    """T9, S2.1, C4: `duet` for the end of a turn, `coding` for a tool's result, `pi` for nothing."""
    talk = Talk(session="s").user("Where does the gauge stand?")

    def dues() -> list[str]:
        keep(om, talk)
        return [preset for preset in ("duet", "coding", "pi") if due(om, "--preset", preset)]

    assert dues() == []
    talk.call("Bash", {"command": "ls"})
    assert dues() == []
    talk.result("gauges.md")
    assert dues() == ["coding"]
    talk.assistant("It stands in harbour 7.")
    assert dues() == ["duet", "coding"]
    talk.user("And the other one?")
    assert dues() == ["coding"]
    talk.assistant(sized(40_000, "chars-4"))
    assert dues() == ["duet", "coding"]


def test_nothing_is_due_of_nothing(om: Om) -> None:
    """It exits with 1, silently with `--quiet`. `--check` writes nothing, even with a model that does not exist."""
    assert om("tick", "--check", code=1).stdout == ""
    assert om("tick", code=1).stderr == "om: nothing is due\n"
    silent = om("tick", "--quiet", code=1)
    assert (silent.stdout, silent.stderr) == ("", "")
    assert om("tick", "--json", code=1).document["due"] == []
    keep(om, tide_story(session="s"))
    assert due(om, env={"OM_OBSERVE_TOKENS": "1", "OM_OBSERVER_MODEL": "scripted/nowhere"}) == {"s": ["observe"]}
    assert pending(om) == 8
    assert rows(om) == []


def test_a_disabled_om_does_nothing(om: Om) -> None:
    """And says who disabled it."""
    keep(om, tide_story(session="s"))
    run = om("tick", env={"OM_DISABLED": "1", "OM_OBSERVE_TOKENS": "1"})
    assert "disabled by OM_DISABLED" in run.stderr
    assert pending(om) == 8


# What is done


def test_a_tick_observes_what_is_due_and_leaves_the_rest(om: Om) -> None:
    """T9: once it is done it is not due."""
    keep(om, asking("small", 50))
    keep(om, tide_story(session="s"))
    model = always(om, "echo")
    env = {"OM_OBSERVE_TOKENS": "100"}
    run = om("tick", "--model", model.model, "--json", env=env)
    assert [(one["session"], one["observe"]) for one in run.document["due"]] == [("s", True)]
    assert run.document["observations"] == len(run.document["due"][0]["observations"]) == len(rows(om))
    assert pending(om) == 1
    assert due(om, env=env) == {}
    om("tick", "--model", model.model, env=env, code=1)
    assert len(model.asked) == 1


def test_what_outgrows_its_threshold_is_told_by_rows_to_whoever_comes_next(om: Om) -> None:
    """S0.4: the oldest chunk goes to the model that is named; the next pack has its rows, and raw what came after."""
    talk = Talk(session="s")
    for number in range(4):
        talk.user(f"The gauge {number} stands in harbour {number}.").assistant("Thank you, that is good to know.")
    model = always(om, answer(said("Sailors painted both gauges red", "m1", "m3")))
    env = {"OM_PRESET": "zora", "OM_OBSERVE_TOKENS": "60", "OM_OBSERVE_CHUNK_MESSAGES": "4", "OM_CONTEXT_TAIL": "60"}
    keep(om, talk)
    before = om("context", "--session", "s", env=env).stdout
    assert "Sailors" not in before
    om("tick", "--model", model.model, env=env)
    (shown,) = model.transcripts
    assert re.findall("gauge ([0-9])", shown) == ["0", "1"]
    noted, _, raw = om("context", "--session", "s", env=env).stdout.partition("Last messages")
    assert "Sailors painted both gauges red" in noted
    assert re.findall("gauge ([0-9])", raw) == ["2", "3"]


def test_the_oldest_messages_are_observed_so_many_at_once(om: Om) -> None:
    """T10: three of ten, one question; the range of what was covered is half-open, and goes on where it ended."""
    keep(om, asking("s", *[20] * 10))
    model = always(om, "echo")
    env = {"OM_PRESET": "zora", "OM_OBSERVE_TOKENS": "50", "OM_OBSERVE_CHUNK_MESSAGES": "3"}
    om("tick", "--model", model.model, env=env)
    assert [re.findall(r"assistant: s ([0-9])", shown) for shown in model.transcripts] == [["0", "1", "2"]]
    assert pending(om) == 7
    om("tick", "--model", model.model, env=env)
    ranges = [json.loads(line)["sourceMessageRange"] for line in om("export", "--to", "zora-jsonl").stdout.splitlines()]
    assert ranges == [[0, 3], [3, 6]]
    assert pending(om) == 4


def test_a_model_is_asked_once_in_several_exchanges(om: Om) -> None:
    """S1.17: with the thresholds of `lango`; `om usage` tells how often."""
    model = always(om, "echo")
    env = {"OM_PRESET": "lango", "OM_REFLECT_TOKENS": "unlimited"}
    talk = Talk(session="s")
    for exchange in range(14):
        talk.user(sized(74, "chars-4-cjk-2", start=f"user {exchange}"))
        talk.assistant(sized(76, "chars-4-cjk-2", start=f"agent {exchange}"))
        keep(om, talk)
        om("tick", "--model", model.model, env=env, code=None)
        assert len(model.asked) == (exchange + 1) * 150 // 1_000
    assert calls(om)["calls"] == 2


def test_reflecting_is_done_where_it_is_due_and_only_there(om: Om) -> None:
    """F19: below its threshold nothing is folded unless that is asked for; after observing, in the same tick."""
    keep(om, tide_story(session="s"))
    model = always(om, "echo")
    env = {"OM_OBSERVE_TOKENS": "100", "OM_OBSERVER_MODEL": model.model}
    om("tick", env={**env, "OM_REFLECT_TOKENS": "100000"})
    assert {ask["name"] for ask in model.asked} == {"observations"}
    assert due(om, env={**env, "OM_REFLECT_TOKENS": "100000"}) == {}
    folding = {**env, "OM_REFLECT_TOKENS": "50"}
    assert due(om, env=folding) == {"s": ["reflect"]}
    run = om("tick", "--json", env=folding)
    assert run.document["reflections"] >= 1
    assert [ask["name"] for ask in model.asked][1:] == ["reflection"] * (len(model.asked) - 1)
    assert "reflection" in {row["kind"] for row in rows(om)}
    keep(om, tide_story(session="t"))
    run = om("tick", "--json", env=folding)
    by_session = {one["session"]: one for one in run.document["due"]}
    assert by_session["t"]["observe"]
    assert by_session["t"]["reflect"]


def test_messages_that_are_kept_for_later_wait_for_a_tick(om: Om) -> None:
    """`om observe --later` asks nobody, key or not, and needs no key."""
    model = always(om, "echo")
    transcript = om.write("t.jsonl", tide_story().text())
    run = om("observe", "--later", transcript, "--model", model.model)
    om("observe", "--later", transcript, "--observer", "anthropic")
    assert "8 messages pending" in run.stderr
    assert model.asked == []
    assert pending(om) == 8
    assert om("observe", "--later", transcript, "--json").document["files"][0]["new_messages"] == 0
    om("tick", "--model", model.model, env={"OM_OBSERVE_TOKENS": "1"})
    assert (len(model.asked), pending(om)) == (1, 0)


def test_rules_do_it_where_no_model_is_named(om: Om) -> None:
    """D15."""
    keep(om, tide_story(session="s"))
    om("tick", env={"OM_OBSERVE_TOKENS": "1", "OM_REFLECT_TOKENS": "1"})
    assert {row["source"] for row in rows(om)} == {"rules"}
    assert calls(om)["calls"] == 0


# Somebody can't be asked

KEYLESS = {"OM_OBSERVE_TOKENS": "1", "OM_REFLECT_TOKENS": "20"}


def lanes_that_failed(om: Om) -> dict[str, str]:
    """What `om status` tells of errors, by lane."""
    return {error["lane"]: error["error"] for error in om("status", "--json").document["errors"]}


@pytest.mark.parametrize("observer", ["rules", "scripted"])
def test_a_key_that_the_reflector_lacks_keeps_nothing_from_being_observed(om: Om, observer: str) -> None:
    """F75, S3.17: it is said once, noted where reflecting is due, and the run ends with 77."""
    keep(om, tide_story(session="a"))
    keep(om, tide_story(session="b"))
    model = always(om, "echo")
    env = {**KEYLESS, "OM_REFLECTOR_PROVIDER": "anthropic"}
    named = ["--model", model.model] if observer == "scripted" else []
    run = om("tick", *named, env=env, code=77)
    assert run.stderr.count("needs a key") == 1
    assert (pending(om), len(model.asked)) == (0, 2 if named else 0)
    assert {row["kind"] for row in rows(om)} == {"observation"}
    assert run.stdout.count("\n") == len(rows(om))
    assert set(lanes_that_failed(om)) == {"reflect"}
    run = om("tick", "--best-effort", *named, env=env)
    assert "om: warning: anthropic needs a key" in run.stderr
    om("tick", env=KEYLESS)
    assert lanes_that_failed(om) == {}
    assert om("tick", *named, env=env, code=77).stdout == "", "whether anything is due or not"


def test_a_key_that_the_observer_lacks_keeps_nothing_from_being_reflected_on(om: Om) -> None:
    """F75, S3.17: of what was observed before; what waits goes on waiting."""
    om("observe", om.write("a.jsonl", tide_story(session="s").text()))
    keep(om, tide_story(session="s").user("We decided to keep the tide table in git."))
    run = om("tick", "--observer", "anthropic", "--json", env={**KEYLESS, "OM_REFLECTOR_PROVIDER": "rules"}, code=77)
    assert [(each["observe"], each["reflection"]["outcome"]) for each in run.document["due"]] == [(False, "done")]
    assert pending(om) == 1
    assert set(lanes_that_failed(om)) == {"observe"}
    both = {**KEYLESS, "OM_REFLECTOR_PROVIDER": "openai", "OM_REFLECT_TOKENS": "1"}
    run = om("tick", "--observer", "anthropic", env=both, code=77)
    assert [line.split()[2] for line in run.stderr.splitlines() if "needs a key" in line] == ["anthropic", "openai"]


# Empty replies


def test_what_gave_nothing_is_offered_again_when_as_much_has_come(om: Om) -> None:
    """T14: at 12k it is asked; at 15k it is not; at 22k it is; and another session has a patience of its own."""
    model = always(om, NOTHING)

    def asks() -> int:
        before = len(model.asked)
        om("tick", "--model", model.model, env=CHARS, code=None)
        return len(model.asked) - before

    sizes = [12_000, 3_000, 6_999, 1]
    talk = asking("s", *sizes[:1])
    keep(om, talk)
    assert asks() == 1
    assert asks() == 0
    talk = asking("s", *sizes[:2])
    keep(om, talk)
    assert (asks(), due(om, env=CHARS)) == (0, {})
    keep(om, asking("s", *sizes[:3]))
    assert asks() == 0  # 9 999 since it was offered
    keep(om, asking("other", 12_000))
    assert due(om, env=CHARS) == {"other": ["observe"]}
    assert asks() == 1
    keep(om, asking("s", *sizes))
    assert asks() == 1
    assert "s 0 " in model.transcripts[-1]
    assert model.transcripts[-1].count("assistant: ") == 4
    assert (rows(om), pending(om)) == ([], 5)


def test_a_patience_ends_when_something_is_noted(om: Om) -> None:
    """T14: it begins anew when the cursor moves."""
    model = script(om, NOTHING, "echo", "echo")
    keep(om, asking("s", 12_000))
    om("tick", "--model", model.model, env=CHARS)
    keep(om, asking("s", 12_000, 10_000))
    om("tick", "--model", model.model, env=CHARS)
    assert pending(om) == 0
    keep(om, asking("s", 12_000, 10_000, 10_000))
    assert due(om, env=CHARS) == {"s": ["observe"]}
    om("tick", "--model", model.model, env=CHARS)
    assert [shown.count("assistant: ") for shown in model.transcripts][:2] == [1, 2]
    assert pending(om) == 0


def test_a_blank_reply_moves_nothing_and_is_asked_again(om: Om) -> None:
    """T13: it is a failure, and no answer: the next tick asks the same."""
    keep(om, asking("s", 12_000))
    model = script(om, " ", NOTHING)
    om("tick", "--model", model.model, env=CHARS, code=69)
    assert om("status", "--json").document["errors"][0]["session"] == "s"
    om("tick", "--model", model.model, env=CHARS)
    assert model.transcripts[0] == model.transcripts[1]
    assert om("status", "--json").document["errors"] == []
    assert due(om, env=CHARS) == {}
    assert pending(om) == 1


def test_empty_replies_to_full_batches_are_taken_as_read(om: Om) -> None:
    """F17, T14: of a long tail only the end waits for more; what a question could not have more of is covered."""
    model = always(om, NOTHING)
    keep(om, asking("s", *[1_000] * 14))
    om("tick", "--model", model.model, env={**CHARS, "OM_OBSERVE_BATCH_TOKENS": "6000"})
    new = [shown.count("assistant: ") - shown.count("(before)") for shown in model.transcripts]
    assert new == [6, 6, 2]
    assert pending(om) == 2


# Failures


def test_a_session_that_fails_keeps_no_other_waiting(om: Om) -> None:
    """F66: what a model will not read is of that session; the others' turn comes, and the code tells."""
    for session in ("a", "b", "c"):
        keep(om, tide_story(session=session))
    env = {"OM_OBSERVE_TOKENS": "1"}
    model = script(om, "echo", {"text": "I would rather not.", "stop": "refusal"}, "echo")
    run = om("tick", "--model", model.model, "--json", env=env, code=69)
    states = {one["session"]: one.get("error", {}).get("slug") for one in run.document["due"]}
    assert sorted(slug or "" for slug in states.values()) == ["", "", "refused"]
    assert pending(om) == 8
    (error,) = om("status", "--json").document["errors"]
    assert states[error["session"]] == "refused"
    again = script(om, {"text": "No.", "stop": "refusal"}, name="again.json")
    run = om("tick", "--model", again.model, "--best-effort", env=env)
    assert "warning" in run.stderr


def test_an_endpoint_that_fails_is_asked_once(om: Om) -> None:
    """What is down for one session is down for all; what was done before stays done."""
    for session in ("a", "b", "c", "d"):
        keep(om, tide_story(session=session))
    env = {"OM_OBSERVE_TOKENS": "1"}
    model = script(om, "echo", *[{"error": "unreachable", "text": "the tide is out"}] * 3)
    run = om("tick", "--model", model.model, env=env, code=69)
    assert run.stderr.count("the tide is out") == 1
    assert len(model.asked) == 2
    assert (pending(om), run.stdout.count("\n")) == (24, len(rows(om)))
    om("tick", "--model", model.model, env=env, code=69)
    assert len(due(om, env=env)) == 3


def test_files_that_a_model_will_not_read_keep_no_others_waiting(om: Om) -> None:
    """F66, F42: of `om observe` as well."""
    names = [om.write(f"{name}.jsonl", tide_story(session=name).text()) for name in "abc"]
    model = script(om, "echo", {"text": "I would rather not.", "stop": "refusal"}, "echo")
    run = om("observe", *names, "--model", model.model, "--json", code=69)
    assert [one.get("error", {}).get("slug") for one in run.document["files"]] == [None, "refused", None]
    assert pending(om) == 8


def test_a_call_and_its_result_stay_together(om: Om) -> None:
    """F71: also where only so many messages are observed at once."""
    talk = Talk(session="s").user("Where is it?")
    for number in range(3):
        talk.call("Bash", {"command": f"ls harbour-{number}", "cwd": PROJECT}).result(f"gauge-{number}")
    keep(om, talk)
    model = always(om, "echo")
    env = {"OM_OBSERVE_TOKENS": "1", "OM_OBSERVE_CHUNK_MESSAGES": "2"}
    codes = [om("tick", "--model", model.model, env=env, code=None).code for _ in range(6)]
    assert codes == sorted(codes)
    assert pending(om) == 0
    for shown in model.transcripts:
        assert re.findall("harbour-([0-9])", shown) == re.findall("gauge-([0-9])", shown)


def test_a_session_that_somebody_is_at_keeps_no_other_waiting(om: Om) -> None:
    """T75, F21: it is warned of; exit 75 where that is all that is due, and nothing is observed twice."""
    for session in ("a", "b"):
        keep(om, tide_story(session=session))
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    quick = always(om, "echo", name="quick.json")
    env = {"OM_OBSERVE_TOKENS": "1"}
    first = om.start("tick", "--model", slow.model, env=env)
    while not slow.asked:
        assert first.poll() is None
    run = om("tick", "--model", quick.model, "--wait", "0", "--json", env=env)
    assert sorted(one.get("error", {}).get("slug", "") for one in run.document["due"]) == ["", "lane-taken"]
    run = om("tick", "--model", quick.model, "--wait", "0", env=env, code=75)
    assert "is at the observe lane of session" in run.stderr
    assert om("tick", "--model", quick.model, "--wait", "0", "-q", env=env, code=75).stderr == ""
    slow.answers()
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert (len(slow.asked), len(quick.asked), pending(om)) == (1, 1, 0)
    assert len({(row["session"], row["text"]) for row in rows(om)}) == len(rows(om))


def test_a_session_that_is_not_there_is_said_to_be_missing(om: Om) -> None:
    keep(om, asking("s", 10))
    assert "unknown session `x`" in om("tick", "--session", "x", code=66).stderr
    assert om("tick", "--session", "s", env={"OM_OBSERVE_TRIGGER": "manual"}, code=1).stderr == "om: nothing is due\n"
    assert "unknown session `x`" in om("tick", "--check", "--session", "x", code=66).stderr
    assert om("tick", "--check", "--session", "s", env=A_MODEL, code=1).stderr == ""


def test_a_missing_key_is_told_with_a_flag_that_tick_has(om: Om) -> None:
    """S3.17: it is missed by who observes and by who reflects, and told once."""
    run = om("tick", "--observer", "anthropic", "--model", "m", code=77)
    assert "`--observer rules`" in run.stderr
    assert "--reflector" not in run.stderr
    assert run.stderr.count("error:") == 1
