"""`om context`: what an agent is given, within its budget, without a trace in the store."""

from __future__ import annotations

import json
import stat
from itertools import product
from typing import Any

import pytest

from omcli.tokenizers import counter
from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.transcripts import PROJECT, Talk, tide_story

OTHER = "5d0c6e0a-0000-4000-8000-00000000000b"
NEW = "5d0c6e0a-0000-4000-8000-0000000000ff"
"""A session without messages."""


def observe(om: Om, *talks: Talk) -> None:
    for number, talk in enumerate(talks):
        om("observe", "--now", f"2026-02-1{number}T12:00Z", stdin=talk.text())


def test_the_pack_holds_facts_of_other_sessions_then_this_one_then_its_last_messages(om: Om) -> None:
    """S0.2, D8: the other session's standing instruction, this one's decision, and the last answer."""
    observe(om, Talk(session=OTHER).user("Always run make lint before you push."), tide_story())

    pack = om("context", "--session", tide_story().session).stdout

    at = [pack.index(text) for text in ("make lint", "lower case", "all 12 tests pass")]
    assert at == sorted(at), pack


@pytest.mark.parametrize("to", ["text", "markdown", "xml", "json", "messages", "anthropic"])
def test_the_budget_is_never_exceeded_by_one_token(om: Om, to: str) -> None:
    """F50, S0.1: counted as the printed text, by the counter it is stated in."""
    observe(om, Talk(session=OTHER).user("Always run make lint before you push."), tide_story())
    for budget, name in (
        (0, "chars-4"),
        (25, "o200k-approx"),
        (100, "chars-4"),
        (300, "o200k-approx"),
        (900, "chars-4"),
    ):
        pack = om("context", "--budget", str(budget), "--to", to, "--counter", name).stdout
        assert counter(name).text(json.loads(pack)["text"] if to == "json" else pack) <= budget
        if to in ("json", "messages", "anthropic") and pack:
            json.loads(pack)
    assert pack, "there is something to say in 900 tokens"


@pytest.mark.parametrize("budget", [60, 90, 150, 400, 4000])
def test_messages_for_anthropic_begin_with_the_user(om: Om, budget: int) -> None:
    """As its API requires: with the memory or, in front of an agent's message, with a note."""
    talk = Talk().user("Hello.")
    for number in range(12):
        talk = talk.assistant(f"Line {number} is painted.")
    om("observe", "--later", "-", stdin=talk.text())
    printed = om("context", "--to", "anthropic", "--budget", str(budget)).stdout
    assert counter("o200k-approx").text(printed) <= budget
    if printed:
        assert json.loads(printed)[0]["role"] == "user"
    assert printed or budget < 100


def test_the_same_memory_gives_the_same_bytes(om: Om) -> None:
    """S0.5, T62, F52, XB10: also a day later, but for the age of the last messages."""
    observe(om, tide_story())
    first = om("context", "--now", "2026-02-10T23:59Z").stdout
    assert "\nLast messages:\n" in first
    for now, age in (("2026-02-11T00:01Z", "1 day"), ("2026-02-20T09:00Z", "1 week"), ("2028-03-01T09:00Z", "2 years")):
        later = om("context", "--now", now).stdout
        assert later.replace(f"Last messages, {age} ago:", "Last messages:") == first != later
        rows = ("context", "--tier", "session", "--tier", "cross")
        assert om(*rows, "--now", now).stdout == om(*rows, "--now", "2026-02-10T23:59Z").stdout
        frozen = ("context", "--now", now)
        assert " ago" not in om(*frozen, env={"OM_CONTEXT_FREEZE": "1"}).stdout


@pytest.mark.parametrize("budget", ["300", "3000", "20000"])
def test_a_date_that_a_row_speaks_of_stands_beside_it(om: Om, budget: str) -> None:
    """XB10, S0.29, C19: at any budget, never relative, and not if its text or its heading has the date."""
    talk = Talk().user("My boat is to be painted tomorrow.").user("We decided to close the quay on 2026-03-02.")
    observe(om, talk.user("The crane moves on March 5.").user("We decided today to move the fair."))
    rows = {row["text"]: row for row in om("log", "--json").document["observations"] if row.get("refers_to")}
    assert len(rows) == 4
    [boat] = [row for text, row in rows.items() if "boat" in text]
    shown = ("context", "--tier", "session", "--budget", budget)
    for pack in (om(*shown).stdout, om(*shown, "--to", "markdown").stdout):
        assert f"{boat['text']} ({boat['refers_to']})\n" in pack
        assert pack.count("(2026-") == 1
        assert pack.count("2026-03-02") == 1
    assert om(*shown, "--to", "xml").stdout.count("refers_to=") == 1
    assert f'refers_to="{boat["refers_to"]}"' in om(*shown, "--to", "xml").stdout


def test_nothing_stored_prints_nothing(om: Om) -> None:
    """T59: an empty output, not a bare heading."""
    assert om("context").stdout == ""
    assert not om.has_store, "asking makes no store"


@pytest.mark.file_store("its permissions")
def test_context_reads_a_store_that_cannot_be_written(om: Om) -> None:
    """F51, S0.19: its bytes stay as they are."""
    observe(om, tide_story())
    om.db.chmod(stat.S_IRUSR)
    before = stored(om.place)
    assert om("context").stdout
    assert stored(om.place) == before


def test_the_session_is_the_one_named_or_the_current_one_or_the_last_one_here_or_the_last_one(om: Om) -> None:
    here = om.folder / "project"
    here.mkdir()
    mine = Talk(session=OTHER, cwd=str(here)).user("We decided to use PNG here.")
    observe(om, mine, tide_story())

    named = om("context", "--json", "--session", OTHER)
    assert (named.document["session"], named.stderr) == (OTHER, "")
    current = om("context", "--json", env={"CLAUDE_CODE_SESSION_ID": OTHER})
    assert (current.document["session"], current.stderr) == (OTHER, "")
    of_here = om("context", "--json", cwd=here)
    assert of_here.document["session"] == OTHER
    assert f"`{OTHER}`" in of_here.stderr, "a guess is said"
    last = om("context", "--json")
    assert last.document["session"] == tide_story().session
    assert f"`{tide_story().session}` of {PROJECT}" in last.stderr
    assert om("context", "--json", "-q").stderr == ""


def test_an_unknown_session_is_given_what_others_of_this_project_left_behind(om: Om) -> None:
    here = om.folder / "project"
    here.mkdir()
    observe(om, Talk(session=OTHER, cwd=str(here)).user("Always run make lint before you push."), tide_story())

    run = om("context", "--session", NEW, cwd=here)
    assert "make lint" in run.stdout
    assert "lower case" not in run.stdout, "another project's decision is nobody's business here"
    assert run.stderr.startswith(f"om: unknown session `{NEW}`")


def test_another_session_s_current_task_is_not_continued(om: Om) -> None:
    """F49, F53."""
    observe(om, Talk(session=OTHER).user("Please add a --station flag.").user("We decided to use PNG."), tide_story())
    pack = om("context", "--session", tide_story().session, "--tier", "cross").stdout
    assert "PNG" in pack
    assert "--station" not in pack


def test_one_tier_can_be_asked_for_and_each_has_a_budget_of_its_own(om: Om) -> None:
    observe(om, Talk(session=OTHER).user("Always run make lint before you push."), tide_story())
    session = ["--session", tide_story().session]
    tail = om("context", *session, "--tier", "tail").stdout
    assert "12 tests" in tail
    assert "make lint" not in tail
    assert "CRITICAL" not in tail
    small = om("context", *session, "--session-budget", "400", "--json").document
    assert 0 < small["tokens"]["session"] <= 400
    assert om("context", *session, "--cross-budget", "0", "--json").document["tokens"]["cross"] == 0


def test_the_tail_is_measured_in_tokens_and_not_in_messages(om: Om) -> None:
    """S1.1: no number of turns is a limit, and what is not shown is kept all the same."""
    talk = Talk()
    for number in range(70):
        talk.user(f"Is berth {number} free?").assistant(f"Berth {number} is free.")
    observe(om, talk)

    def shown(*options: str) -> int:
        return om("context", "--tier", "tail", *options).stdout.count("erth ")

    assert shown() == 140
    assert 5 < shown("--tail-budget", "100") < 20
    assert om("status", "--json").document["messages"] == 140


def test_the_newest_results_are_raw_and_a_setting_says_how_long_the_others_are(om: Om) -> None:
    """XB8, S0.1, C13."""
    talk = Talk()
    for name in ("first", "second", "third"):
        output = "".join(f"{name} line {number} of the log of the tide gauge\n" for number in range(260))
        talk.call("Bash", {"command": f"cat {name}.log"}).result(output)
    observe(om, talk)

    def raw(*options: str, **env: str) -> list[str]:
        tail = om("context", "--tier", "tail", *options, env=env).stdout
        return [name for name in ("first", "second", "third") if f"{name} line 100 " in tail]

    assert raw() == ["third"]
    assert raw("--tail-budget", "20000") == ["first", "second", "third"]
    assert raw(OM_CONTEXT_RESULT_CHARS="unlimited") == ["second", "third"], "what is shown is whole"
    assert raw("--tail-budget", "9000", OM_CONTEXT_RESULT_CHARS="50000") == ["third"], "an eighth of the tail at most"
    tail = om("context", "--tier", "tail", env={"OM_CONTEXT_RESULT_CHARS": "200"}).stdout
    [cut] = [line for line in tail.splitlines() if "[toolResult" in line and "second" in line]
    assert "characters left out" in tail
    assert len(cut) < 200
    assert "expected a whole number from 0" in om("context", env={"OM_CONTEXT_RESULT_CHARS": "-1"}).stderr


def test_rows_of_other_sessions_compete_for_their_room(om: Om) -> None:
    """S2.35, S2.36, D9, T61: what is too long is passed over; worth halves every week, or fades faster."""
    om("note", "The mole is mended with granite blocks", "--priority", "high", "--now", "2026-03-06T21:00Z")
    om("note", "The quay is mended with timber piles", "--now", "2026-03-10T08:00Z")
    om("note", " ".join(f"berth{number}" for number in range(200)), "--priority", "high", "--now", "2026-03-10T08:30Z")

    def told(budget: int, **env: str) -> list[str]:
        asking = ("context", "--session", "ses_4a5b6c7d8e9f", "--tier", "cross", "--cross-budget", str(budget))
        pack = om(*asking, "--now", "2026-03-10T09:00Z", env=env).stdout
        return [name for name in ("mole", "quay", "berth") if name in pack]

    assert told(30) == ["mole"], "of 3.5 days ago, and high: 3 by the root of 2 is more than 2"
    assert told(30, OM_CONTEXT_RANK="time-constant") == ["quay"], "3 by the root of e is less"
    assert told(100) == ["mole", "quay"]
    assert told(2_000) == ["mole", "quay", "berth"]


def test_other_sessions_rows_are_ranked_pinned_first_and_old_and_light_last(om: Om) -> None:
    """T61, S2.35, S2.36: by the scores that `--explain` prints; rows of the current session are left out, rows without
    a session are not.
    """
    today, long_ago = ("--now", "2026-03-10T08:00Z"), ("--now", "2026-01-09T08:00Z")
    observe(om, Talk(session=NEW, cwd=str(om.folder)).user("We decided to keep the mole of this session."))
    om("note", "The old quay is closed", "--priority", "low", *long_ago)
    group = '<observation-group kind="reflection">\n* 🔴 (2026-03-10 08:00) The mole is mended each week\n'
    om("import", "-", "--format", "duet-groups", *today, stdin=f"{group}</observation-group>\n")
    om("note", "The crane is new", *today)
    om("note", " ".join(f"berth{number}" for number in range(99)), "--priority", "high", *today)
    om("note", "Never touch the lock", "--tag", "pinned", "--priority", "low", *long_ago)

    def ranked(budget: int, *rows: str) -> list[dict[str, Any]]:
        asking = ("context", "--session", NEW, "--tier", "cross", "--budget", str(budget), *today)
        found: list[dict[str, Any]] = om(*asking, "--explain", "--json").document["rows"]
        assert [word for row in found for word in rows if word in row["text"]] == list(rows)
        assert len(found) == len(rows)
        return found

    found = ranked(900, "lock", "berth0", "crane", "mole", "quay")
    assert [row["reason"] for row in found] == ["pinned", *["important and recent"] * 4]
    assert [row["score"] for row in found[1:]] == pytest.approx([3 * 2, 2 * 2, 3 * 1.3, 2 * 2 ** (-60 / 7)], rel=0.01)
    ranked(90, "lock", "crane", "mole", "quay")  # what does not fit is passed over
    assert om("context", "--session", NEW, "--tier", "cross", "--budget", "30").stdout


def test_reflections_are_the_summary_before_what_is_recent(om: Om) -> None:
    """T59, S1.9: with too little room for them, reflections that fit, and no observation."""
    rows = [
        {"session_key": OTHER, "content": f"The {name} was measured", "created_at": f"2026-03-0{number}T08:00:00Z"}
        | ({"generation": 1} if number > 3 else {})
        for number, name in enumerate(("quay", "mole", "crane", "berth", "lock", "buoy"), 1)
    ]
    om("import", "-", "--format", "lango-jsonl", stdin="\n".join(map(json.dumps, rows)))
    asking = ("context", "--session", OTHER, "--preset", "lango", "--to", "markdown", "--budget")
    pack = om(*asking, "4000").stdout
    parts = ["## Conversation Memory", "### Summary", "berth", "lock", "buoy", "### Recent", "quay", "mole", "crane"]
    assert sorted(parts, key=pack.index) == parts
    small = om(*asking, "30").stdout
    assert "### Summary" in small
    assert "buoy" in small
    assert not [part for part in ("berth", *parts[5:]) if part in small]


def test_the_json_document_says_what_each_tier_costs_and_what_is_pending(om: Om) -> None:
    """S0.17."""
    observe(om, tide_story())
    document = om("context", "--json").document
    assert document["schema"] == 1
    assert set(document["tokens"]) >= {"cross", "session", "tail"}
    assert document["pending"] == 0
    assert document["counter"] == "o200k-approx"
    assert om("context", "--to", "json").document == document


def test_json_has_the_rows_and_messages_of_the_text_beside_it(om: Om) -> None:
    """XB6: a budget is what a model is given."""
    talk = tide_story()
    for number in range(60):
        talk.user(f"We decided to paint buoy {number} in red, since {number} ships asked for it.")
    observe(om, talk, Talk(session=OTHER).user("Always run make lint before you push."))
    shown = 0
    for budget in (0, 60, 300, 1_000, 4_000):
        asking = ("context", "--session", talk.session, "--budget", str(budget))
        text, document = om(*asking).stdout, om(*asking, "--json").document
        assert document["text"] == text
        assert document["tokens"]["total"] == (counter().text(text) if text else 0) <= budget
        rows = [row["text"] for tier in ("cross", "observations") for row in document[tier]]
        lines = text.splitlines()
        assert all(any(line.endswith(row) for line in lines) for row in rows)
        assert len(rows) >= shown
        shown = len(rows)
    assert shown > 60


def test_a_budget_from_the_environment_counts_unless_a_flag_says_otherwise(om: Om) -> None:
    observe(om, tide_story())
    small = om("context", env={"OM_CONTEXT_BUDGET": "60"}).stdout
    assert 0 < counter().text(small) <= 60
    assert om("context", "--budget", "8000", env={"OM_CONTEXT_BUDGET": "60"}).stdout == om("context").stdout


def test_json_and_another_form_exclude_each_other(om: Om) -> None:
    assert om("context", "--json", "--to", "xml", code=2).stdout == ""
    assert "urgent" in om("context", "--to", "urgent", code=2).stderr


@pytest.fixture
def long_past(om: Om) -> str:
    """A session that begins with a rule, a decision and a preference, and then goes on for 800 rows."""
    talk = Talk(session=OTHER, cwd=str(om.folder)).user("Never push to the harbour branch.")
    talk.user("We decided to keep the tide tables in SQLite.").user("I prefer short commit messages.")
    for number in range(800):
        talk.user(f"The gauge at pier {number} reads {number + 100} cm.")
    om("observe", "-", stdin=talk.text())
    assert om("log", "--session", OTHER, "--json").stdout.count("The gauge at pier") == 800
    return OTHER


def test_rules_decisions_and_preferences_are_in_reach_at_any_age(om: Om, long_past: str) -> None:
    """XG1: of this session and, for another one, of the project; also in a frozen pack."""
    frozen = {"OM_CONTEXT_FREEZE": "true"}
    here, elsewhere = ("--session", long_past), ("--session", NEW)
    for options, env, budget in product((here, elsewhere), ({}, frozen), (300, 1_000, 8_000)):
        pack = om("context", *options, "--budget", str(budget), env=env).stdout
        for said in ("Never push to the harbour branch", "keep the tide tables in SQLite", "short commit messages"):
            assert said in pack, (options, env, budget)


def test_what_was_asked_and_what_came_of_it_are_one_paragraph(om: Om) -> None:
    """XC16: also in Markdown and in packs that only grow; not where the newest come first, nor in a small pack."""
    talk = Talk(cwd=str(om.folder)).user("Rename tide_high to high_water in tides.py.")
    talk.call("Edit", {"file_path": "tides.py", "old_string": "tide_high", "new_string": "high_water"}).result("ok")
    talk.call("Bash", {"command": "make gauges"}).result("12 passed")
    talk.user("Now the harbour list, please.").user("And what is the depth at the north pier?")
    talk.call("Bash", {"command": "make harbours"}).result("Exit code 2\nno rule to make target", is_error=True)
    om("observe", "-", stdin=talk.text())

    def paragraphs(*options: str, **env: str) -> list[list[str]]:
        pack = om("context", "--tier", "session", *options, env=env).stdout
        return [part.splitlines() for part in pack.split("\n\n")]

    for options, env in (((), {}), (("--to", "markdown"), {}), ((), {"OM_CONTEXT_APPEND_ONLY": "yes"})):
        *_, first, second = paragraphs(*options, **env)
        assert "high_water" in first[1]
        assert "Modified tides.py" in first[2]
        assert [first[0], second[0]] == ["09:00", "09:05"]
        assert "harbour list" in second[1]
        assert "north pier" in second[3]
        assert "make harbours" in second[4]
    for options, env in ((("--budget", "1500"), {}), ((), {"OM_CONTEXT_RENDER": "desc"})):
        assert len(paragraphs(*options, **env)) == 2, "the introduction and the rows"


def test_a_pack_with_room_quotes_more_of_what_was_read(om: Om) -> None:
    """XG4: lines that name what two outputs or the conversation mention; a small pack keeps to what was said."""
    functions = "\n".join(
        f"def tide_{name}(station, since_hour):" for name in ("high", "low", "range", "gauge", "table")
    )
    talk = Talk(cwd=str(om.folder)).user("Which functions of tides.py could take a station?")
    for tool, arguments in (("Read", {"file_path": "/src/tides.py"}), ("Bash", {"command": "grep -n tide_ tides.py"})):
        talk.call(tool, arguments).result(functions)
    talk.assistant("All five of them could; none has to read the clock.")
    om("observe", "-", stdin=talk.text())

    pack = om("context", "--budget", "1000", "--tier", "session").stdout
    assert all(f"def tide_{name}(station" in pack for name in ("high", "low", "range", "gauge", "table")), pack
    small = om("context", "--budget", "110", "--tier", "session").stdout
    assert "Which functions of tides.py" in small
    assert "def tide_high" not in small
