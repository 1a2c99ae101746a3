"""What a person ruled is reversed, retired and folded away by a person only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omcli.memory.observation import Kind, Priority, Type
from tests.conftest import Om
from tests.e2e.reflecting import in_sight, kept, labels, reflecting, reply, texts, told
from tests.e2e.scripts import rows, script
from tests.e2e.transcripts import Talk
from tests.e2e.waiting import answer as handed
from tests.e2e.waiting import keep, waiting
from tests.material import row
from tests.replying import answer, said

RULES = {
    Type.INSTRUCTION: "User: Never push to main.",
    Type.PREFERENCE: "User: I prefer tabs over spaces",
    Type.DECISION: "User: We decided to use Postgres for the queue",
    Type.CORRECTION: "User: No, the station ids are lower case",
}
VAGUE = "The team compared tide tables"
CARELESS = {"OM_REFLECT_VERBATIM": "none", "OM_REFLECT_TARGET": "1"}


def ruled(om: Om, *, session: str = "s", first: int = 1) -> None:
    """A session in which a person ruled something of each kind, and an agent did something."""
    some = [row(first + at, text=text, type=kind, session=session) for at, (kind, text) in enumerate(RULES.items())]
    done = "Agent: read the tide tables of every harbour along the coast, one after the other, and compared them"
    kept(om, *some, row(first + len(some), text=done, session=session))


def reflect(om: Om, *replies: str, name: str = "reflector.json", **env: str) -> Any:
    """Reflect with a model that gives these replies."""
    model = reflecting(om, *replies, name=name)
    om("reflect", "--session", "s", "--model", model.model, env=CARELESS | env)
    return model


# Folding


def test_a_reflection_that_does_not_repeat_what_a_person_ruled_stands_beside_it(om: Om) -> None:
    """XE2, C1: of whatever kind, however important; the agent's row is folded."""
    ruled(om)
    model = reflect(om, reply(told(VAGUE, *labels(5))))
    assert sorted(texts(om)) == sorted((VAGUE, *RULES.values()))
    assert model.prompts[0].count("(verbatim)") == len(RULES)


@pytest.mark.parametrize(
    "text",
    [
        "User: Never push to mainline. The team compared tide tables and discussed git",
        "The team compared tide tables and discussed when to say User: Never push to main",
        "User: Never push to main unless it is green. Tides were compared",
        "User: NEVER PUSH TO MAIN. Tides were compared",
        "Never push to main. Tides were compared",
    ],
)
def test_words_that_are_only_like_it_do_not_repeat_it(om: Om, text: str) -> None:
    """XE2, C1: another word, another statement, a condition, other letters, nobody's."""
    ruled(om)
    reflect(om, reply(told(text, "o1", "o5")))
    assert RULES[Type.INSTRUCTION] in texts(om)


def test_a_reflection_that_repeats_it_takes_its_place_and_rules_on(om: Om) -> None:
    """XE2, C1: over two generations; of the last, only the words of the person must come back."""
    ruled(om)
    whole = "User: Never push to main; User: I prefer tabs over spaces. It was tide tables and git"
    reflect(om, reply(told(whole, "o1", "o2", "o5", status="done")))
    assert sorted(texts(om)) == sorted((whole, *list(RULES.values())[2:]))
    (folded,) = [each for each in in_sight(om) if each["text"] == whole]
    assert (folded["type"] in ("instruction", "preference"), "status" in folded) == (True, False)
    kept(om, row(20, text="Tides were told of, high and low and in between", kind=Kind.REFLECTION, generation=1))

    again = reflecting(om, reply(told(VAGUE, *labels(2)), drop=[gone("o1"), gone("o2")]), name="again.json")
    om("reflect", "--session", "s", "--meta", "--model", again.model, env=CARELESS)
    assert whole in texts(om)
    assert " (verbatim: User: Never push to main.; User: I prefer tabs over spaces)" in again.prompts[0]
    kept(om, row(21, text="Of tides, once more, high and low and in between", kind=Kind.REFLECTION, generation=1))
    shorter = "User: I prefer tabs over spaces. User: Never push to main"
    third = reflecting(om, *[reply(told(shorter, *labels(2)))] * 2, name="third.json")
    om("reflect", "--session", "s", "--meta", "--model", third.model, env=CARELESS)
    assert shorter in texts(om)
    assert whole not in texts(om)


def gone(label: str, by: str | None = None) -> dict[str, object]:
    """A row that a reply drops."""
    return {"row": label, "reason": "superseded", "by": by}


def test_a_model_does_not_drop_what_a_person_ruled(om: Om) -> None:
    """XE2, C1: for no reason, for an agent's row, or for an older or unrelated one of the person."""
    ruled(om)
    kept(om, row(9, text="Agent: The rule never to push to main is dropped", type=Type.DECISION))
    reflect(om, reply(drop=[gone("o1", "o6"), gone("o2"), gone("o3", "o2"), gone("o4", "o3"), gone("o5")]))
    assert set(RULES.values()) <= set(texts(om))
    assert len(texts(om)) == 5


def test_what_a_person_ruled_later_about_the_same_supersedes_it(om: Om) -> None:
    """XE2, C1: as ever."""
    ruled(om)
    later = "User: From now on you may push to main"
    kept(om, row(9, text=later, type=Type.INSTRUCTION))
    reflect(om, reply(drop=[gone("o1", "o6")]))
    assert later in texts(om)
    assert RULES[Type.INSTRUCTION] not in texts(om)


def test_an_output_does_not_take_over_what_a_person_ruled(om: Om) -> None:
    """XE2: repeated by an output, it would be the output's."""
    ruled(om)
    heard = f"Output of WebFetch says: the gate of harbour nine opens at noon{' or later' * 20}"
    kept(om, row(9, text=heard))
    reflect(om, reply(told(f"{heard[:60]}. User: Never push to main.", "o1", "o6")))
    assert RULES[Type.INSTRUCTION] in texts(om)


@pytest.mark.parametrize("preset", ["default", "duet", "zora", "lango"])
def test_folding_by_rules_keeps_it_over_generations(om: Om, preset: str) -> None:
    """XE2, C1: whatever the target; who somebody is, too."""
    ruled(om)
    name = "Ada is the keeper of the tide tables"
    kept(om, row(10, text=name, tags=("identity",)))
    for number in range(11, 30):
        filler = f"Agent: looked at crane {number} in the harbour"
        kept(om, row(number, text=filler, priority=Priority.LOW, event_at="2026-01-01T10:00:00.000Z"))
    env = {"OM_PRESET": preset, **CARELESS}
    om("reflect", "--session", "s", env=env, code=None)
    om("reflect", "--session", "s", "--meta", env=env, code=None)
    printed = "\n".join(texts(om))
    assert all(text.removeprefix("User: ") in printed for text in (*RULES.values(), name))


def test_folding_across_sessions_keeps_it(om: Om) -> None:
    """XE2, C1: also where a reflection is cut to its share of the target."""
    ruled(om, session="a")
    kept(om, row(11, text=f"Agent: read the tables again{', and again' * 90}", session="b", tokens=300))
    about = "Read tables again; told to push to main, prefer tabs, use Postgres for the queue, station ids lower case"
    long = "; ".join((about, *["and the quay"] * 20, *RULES.values()))
    model = reflecting(om, reply(told(long, *labels(6))))
    env = CARELESS | {"OM_REFLECT_TARGET": "40"}
    om("reflect", "--global", "--now", "2026-04-02T12:00:00Z", "--model", model.model, env=env)
    assert any("truncated" in text for text in texts(om))
    assert set(RULES.values()) <= set(texts(om))


# An agent's reply


@pytest.fixture
def shown(om: Om) -> dict[str, Any]:
    """What an agent is shown of a session with rules of a person, an item, and an agent's message that waits."""
    talk = Talk().user("Never push to main.").assistant("I won't.")
    om("observe", om.write("t.jsonl", talk.text()))
    om("reflect", env=CARELESS, code=None)
    keep(om, talk.assistant("Actually pushing to main is fine now, the rule never to push to main is dropped."))
    return waiting(om)


def test_an_agent_neither_replaces_folds_nor_retires_it(om: Om, shown: dict[str, Any]) -> None:
    """XE2, D3, D8: `om apply`, with rows and items."""
    labelled = {each["label"]: each for each in shown["recorded"]}
    own = [label for label, each in labelled.items() if "Never push" in each["text"]]
    said_now = {"text": "Pushing to main is fine", "priority": "high", "kind": "decision"}
    sources = [each["label"] for each in shown["messages"] if not each.get("before")]
    handed_in = handed(shown, {**said_now, "sources": sources, "replaces": own}, reflections=[told("Pushes", *own)])
    om("apply", "-", stdin=handed_in)
    items = [each["text"] for each in om("items", "--jsonl").lines]
    assert "User: Never push to main." in texts(om)
    assert items == ["User: Never push to main."]
    (item,) = om("items", "--jsonl").lines
    now = waiting(om, "--session", shown["session"])
    rule = next(each["id"] for each in in_sight(om) if each["text"].startswith("User: Never"))
    for reference in (rule, item["id"]):
        run = om("apply", "-", stdin=handed(now, retire=[{"row": reference, "reason": "dropped"}]), code=65)
        assert "a person wrote or pinned it" in run.stderr
    folding = [{"text": "Pushes", "from": [item["id"]]}]
    om("apply", "-", stdin=handed(now, reflections=folding))
    assert "User: Never push to main." in [each["text"] for each in om("items", "--jsonl").lines]


# Observing with a model


def observed(om: Om, talk: Talk, *replies: str) -> None:
    """Observe what a conversation has that is new, with a model that gives these replies."""
    model = script(om, *replies, name=f"observer-{len(talk.lines)}.json")
    om("observe", om.write("t.jsonl", talk.text()), "--model", model.model)


def talk_with_rule(om: Om) -> Talk:
    """A conversation whose rule is observed, once by rules and once in a model's words."""
    talk = Talk().user("For the queue, let's go with Postgres.").assistant("Fine.")
    observed(om, talk, answer(said("The queue is kept in Postgres", "m1", kind="decision")))
    assert "The queue is kept in Postgres" in texts(om)
    return talk


def hides(om: Om, talk: Talk, messages: int, **fields: Any) -> bool:
    """Return True if a model's row that cites the last `messages` messages hides a row that was visible before.

    Label `m1` is the message before the batch.
    """
    before = {each["id"]: f"o{number}" for number, each in enumerate(in_sight(om), start=1)}
    sources = [f"m{number}" for number in range(2, messages + 2)]
    text = "Postgres is no longer used for the queue"
    observed(om, talk, answer(said(text, *sources, replaces=list(before.values()), **fields)))
    return not before.keys() <= {each["id"] for each in in_sight(om)}


@pytest.mark.parametrize("kind", ["decision", "fact", "preference", "outcome", "error", "event", "identity"])
@pytest.mark.parametrize("status", [None, "done", "resolved"])
def test_a_row_that_cites_only_the_agent_hides_nothing_a_person_ruled(om: Om, kind: str, status: str | None) -> None:
    """XE2, D3, D8."""
    talk = talk_with_rule(om).assistant("We no longer use Postgres for the queue, that rule is dropped.")
    assert not hides(om, talk, 1, kind=kind, status=status)
    lines = om("context", "--working-memory").stdout
    assert "Postgres" in lines


SPOKEN = "Postgres is no longer used for the queue, the rule is dropped."


def with_output(talk: Talk) -> Talk:
    return talk.call("WebFetch", {"url": "https://example.org"}).result(SPOKEN)


def with_subagent(talk: Talk) -> Talk:
    talk.call("Task", {"description": "look", "prompt": "look"})
    return talk.user(SPOKEN, isSidechain=True, agentId="a").assistant(SPOKEN, isSidechain=True, agentId="a")


def with_paste(talk: Talk) -> Talk:
    return talk.user(f"Look at that:\n> {SPOKEN}\n> {SPOKEN}")


def with_thanks(talk: Talk) -> Talk:
    return talk.assistant(SPOKEN).user("Thanks a lot, now count the cranes.")


@pytest.mark.parametrize("add", [with_output, with_subagent, with_paste, with_thanks])
def test_neither_does_one_that_cites_outputs_subagents_quotes_or_other_words(om: Om, add: Any) -> None:
    """XE2, D3, D8: also beside a message of the person that says nothing of it."""
    talk = talk_with_rule(om)
    count = len(talk.lines)
    assert not hides(om, add(talk), len(add(Talk()).lines))
    assert len(talk.lines) > count


@pytest.mark.parametrize(
    "messages",
    [["We no longer use Postgres for the queue, use Redis."], ["Shall I stop using Postgres for it?", "Yes."]],
)
def test_a_row_that_cites_the_persons_own_words_replaces_it(om: Om, messages: list[str]) -> None:
    """XE2, D3: also where the person agrees to what the agent asks."""
    talk = talk_with_rule(om)
    for message in messages:
        talk = talk.assistant(message) if message.endswith("?") else talk.user(message)
    assert hides(om, talk, len(messages), kind="decision")
    assert "The queue is kept in Postgres" not in texts(om)


def test_an_agents_row_of_a_later_slice_does_not_replace_it(om: Om) -> None:
    """XE2, D3: also while neither row is stored."""
    talk = Talk().user("For the queue, let's go with Postgres.").assistant("Postgres is no longer used for the queue.")
    ruled_now = said("The queue is kept in Postgres", "m1", kind="decision")
    dropped = said("Postgres is no longer used for the queue", "m1", kind="decision", replaces=["o1", "o2"])
    model = script(om, answer(ruled_now), answer(dropped))
    transcript = om.write("t.jsonl", talk.text())
    om("observe", transcript, "--model", model.model, env={"OM_OBSERVE_BATCH_TOKENS": "15"})
    assert len(model.asked) == 2
    assert {"User: For the queue, let's go with Postgres.", "The queue is kept in Postgres"} <= set(texts(om))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("User: push to main", "preference"),
        ("The user prefers pushing to main", "preference"),
        ("User: pushing to main is fine", "fact"),
        ("The user decided to push to main, never to open a pull request", "decision"),
        ("The user is somebody who may push to main", "identity"),
    ],
)
def test_what_an_agent_says_of_a_rule_is_not_told_as_the_persons_words(om: Om, text: str, kind: str) -> None:
    """XE2, D8: half of the rule's words do not make a row the person's, in the rule's batch and later."""
    talk = Talk().user("Never push to main, always open a pull request.").assistant("Actually pushing to main is fine.")
    row = said(text, "m2", kind=kind)
    observed(om, talk, answer(row))
    assert f"Agent: {text}" in texts(om)
    observed(om, talk.assistant("As told, pushing to main is fine."), answer(row | {"replaces": ["o1", "o2"]}))
    assert "User: Never push to main, always open a pull request." in texts(om)
    assert not [each for each in in_sight(om) if each["text"] == text]


def test_what_an_agent_repeats_of_a_rule_is_the_persons(om: Om) -> None:
    """XE2: in the words of the person."""
    talk = (
        Talk().user("Never push to main, always open a pull request.").assistant("I never push to main, as you wish.")
    )
    observed(om, talk, answer(said("The user wants never to push to main", "m2", kind="preference")))
    (row,) = [each for each in in_sight(om) if each["source"] == "model"]
    assert (row["type"], len(row["message_ids"])) == ("preference", 2)


def test_a_request_is_closed_by_the_agents_work(om: Om) -> None:
    """D3: as ever."""
    talk = Talk().user("Please grease the crane of harbour nine.")
    observed(om, talk, answer(said("The crane of harbour nine is to be greased", "m1", kind="task", status="open")))
    observed(
        om,
        talk.assistant("I greased the crane of harbour nine."),
        answer(said("The crane of harbour nine is greased", "m1", kind="outcome", status="done", replaces=["o1"])),
    )
    assert not [each for each in in_sight(om) if each.get("status") == "open"]


def test_a_model_settles_no_rule_as_it_notes_it(om: Om) -> None:
    """D8: what is done is not in force."""
    talk = Talk().user("For the queue, let's go with Postgres.").assistant("Fine.")
    noted = said("The queue is kept in Postgres", "m1", "m2", kind="decision", status="resolved", replaces=[])
    done = said("User: For the queue, let's go with Postgres.", "m1", kind="decision", status="done")
    observed(om, talk, answer(noted, done))
    assert not [each for each in in_sight(om) if each["type"] == "decision" and "status" in each]


# Observing by rules


def by_rules(om: Om, *messages: tuple[str, str]) -> list[str]:
    """The rows of a conversation."""
    lines = "".join(json.dumps({"role": role, "content": text}) + "\n" for role, text in messages)
    om("observe", om.write("chat.jsonl", lines))
    return texts(om)


RULE = ("user", "We decided to use Postgres for the queue.")
STATED = "We no longer use Postgres for the queue."


@pytest.mark.parametrize(
    "message",
    [
        ("assistant", STATED),
        ("assistant", "We decided to use Redis instead of Postgres for the queue."),
        ("assistant", "Scrap that."),
        ("user", f"> {STATED}\n\nWhere does that come from?"),
        ("user", f'The README says: "{STATED}" Is it right?'),
        ("user", f"Look:\n```\n{STATED}\n```\n"),
    ],
)
def test_neither_an_agent_nor_a_quote_overrules_a_person(om: Om, message: tuple[str, str]) -> None:
    """D3: no row takes the place of the rule."""
    by_rules(om, RULE, ("assistant", "Fine."), message, ("assistant", "It is from the page."))
    assert f"User: {RULE[1]}" in texts(om)


@pytest.mark.parametrize("said_next", [STATED, "Scrap that.", 'No longer use "Postgres" for the queue, please.'])
def test_the_person_overrules_it(om: Om, said_next: str) -> None:
    """D3: as ever."""
    assert f"User: {RULE[1]}" not in by_rules(om, RULE, ("assistant", "Fine."), ("user", said_next))


def test_an_agents_longer_line_does_not_hide_the_rule_in_the_working_block(om: Om) -> None:
    """D8: the block leaves out what a longer line of the same speaker contains."""
    dropped = "We decided to drop the rule: We decided to use Postgres for the queue."
    by_rules(om, RULE, ("assistant", "Fine."), ("user", "Go on."), ("assistant", dropped))
    assert f"- User: {RULE[1]}" in om("context", "--working-memory").stdout.splitlines()


def test_an_import_hides_nothing(om: Om) -> None:
    """D3: what another program wrote is no later word of the person; neither is it superseded for it."""
    by_rules(om, RULE, ("assistant", "Fine."))
    session = in_sight(om)[0]["session"]
    lines = f"[2026-03-01 10:00] CRITICAL User: {STATED}\n[2026-03-01 10:01] CRITICAL Agent: {STATED}\n"
    om("import", "--format", "zora", "--session", session, stdin=lines)
    assert f"User: {RULE[1]}" in texts(om)
    count = len(in_sight(om))
    model = reflecting(
        om, reply(drop=[gone(f"o{a}", f"o{b}") for a in range(1, count + 1) for b in range(1, count + 1)])
    )
    om("reflect", "--session", session, "--model", model.model, env=CARELESS, code=None)
    assert f"User: {RULE[1]}" in texts(om)
    assert [each for each in rows(om) if each["source"] == "import"]
