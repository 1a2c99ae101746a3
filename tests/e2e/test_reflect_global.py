"""`om reflect --global`: which old rows are folded, in which batches, and that all of it happens or nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from omcli.memory.observation import Kind, Observation, Priority, Status, Type
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.reflecting import in_sight, kept, labels, noticed, reflecting, reply, texts, told
from tests.e2e.scripts import UNTIL, Script, always, calls, rows
from tests.material import row

NOW = ("--now", "2026-03-02T12:00:00Z")
DUET = {"OM_PRESET": "duet"}
AGES = {1: "2026-03-01", 5: "2026-02-25", 7: "2026-02-23", 30: "2026-01-31", 365: "2025-03-02"}
ANY = {"OM_REFLECT_TARGET": "1"}
HARBOURS = "/src/harbours"


def across(om: Om, *arguments: str, model: Script | None = None, **how: Any) -> Ended:
    """`om reflect --global`, with a model or by rules."""
    return om("reflect", "--global", *NOW, *(("--model", model.model) if model else ()), *arguments, **how)


def aged(number: int, days: int, text: str, **columns: Any) -> Observation:
    """A row that is so many days old."""
    return row(number, text=text, event_at=f"{AGES[days]}T09:00:00.000Z", **columns)


def plan(om: Om, *arguments: str, **how: Any) -> tuple[list[str], list[list[str]]]:
    """What stays, and what is folded together, by their texts."""
    said = {each["id"]: each["text"] for each in rows(om)}
    found = across(om, "--dry-run", "--json", *arguments, **how).document["plan"]
    return [said[id_] for id_ in found["keep"]], [[said[id_] for id_ in batch["rows"]] for batch in found["batches"]]


def log(om: Om) -> str:
    """All rows, to the byte."""
    return om("log", "--all", "--jsonl").stdout


def snapshots(om: Om) -> list[Path]:
    """Copies of the store beside it."""
    return sorted(om.db.parent.glob("*.bak"))


# The plan


def test_what_is_younger_than_three_days_stays(om: Om) -> None:
    """T45, S2.25, S2.26: rows of 1, 5 and 7 days, observed in sessions of their own; the oldest first."""
    for days in (1, 5, 7):
        noticed(om, f"The quay was painted {days} days ago", session=f"s{days}", day=AGES[days])
    before = log(om)
    one, five, seven = (f"The quay was painted {days} days ago" for days in (1, 5, 7))
    model = always(om, "echo", name="nobody.json")
    assert plan(om, env={"OM_REFLECTOR_MODEL": model.model}) == ([one], [[seven, five]])
    assert plan(om, "--min-age", "6d") == ([one, five], [[seven]])
    run = across(om, "--dry-run")
    assert run.stdout.splitlines()[0].startswith(
        "fold  2 rows of /home/ada/tide-tables, 2026-02-23 09:00 to 2026-02-25"
    )
    assert run.stdout.splitlines()[1] == "keep  1 row"
    assert (log(om), model.asked, snapshots(om)) == (before, [], [])


def test_what_was_folded_globally_pinned_or_noted_just_now_stays(om: Om) -> None:
    """T46, S2.25: a local reflection, a plain row and an old note go; items are none of its business."""
    kept(
        om,
        aged(1, 30, "global reflection", kind=Kind.REFLECTION, tags=("global-prune",), generation=1),
        aged(2, 30, "local reflection", kind=Kind.REFLECTION, generation=1),
        aged(3, 30, "raw"),
        aged(4, 365, "pinned", tags=("pinned",)),
        aged(5, 30, "open", status=Status.OPEN),
    )
    om("note", "old note", "--now", "2026-01-31T09:00:00Z")
    om("note", "pinned note", "--tag", "pinned", "--now", "2026-01-31T09:00:00Z")
    om("note", "fresh note", *NOW)
    om("note", "--item", "an item", "--now", "2026-01-31T09:00:00Z")
    keep, batches = plan(om)
    assert keep == ["global reflection", "pinned", "open", "pinned note", "fresh note"]
    assert sorted(text for batch in batches for text in batch) == ["local reflection", "old note", "raw"]


def test_batches_are_of_one_project_and_no_larger_than_they_may_be(om: Om) -> None:
    """T47, S2.27: six rows of 13 tokens by 30; a giant is one of its own; sessions mix, projects don't."""
    kept(om, *(aged(number, 30, f"row {number} ".ljust(40, "x"), session=f"s{number % 3}") for number in range(1, 7)))
    keep, batches = plan(om, env=DUET | {"OM_REFLECT_BATCH_TOKENS": "30"})
    assert (keep, [len(batch) for batch in batches]) == ([], [2, 2, 2])
    assert [len(batch) for batch in plan(om, env=DUET)[1]] == [6]
    kept(
        om, aged(7, 7, "small".ljust(20, "x"), project=HARBOURS), aged(8, 5, "giant".ljust(1000, "x"), project=HARBOURS)
    )
    _, batches = plan(om, env=DUET | {"OM_REFLECT_BATCH_TOKENS": "50"})
    assert [[text[:5] for text in batch] for batch in batches if batch[0].startswith(("small", "giant"))] == [
        ["small"],
        ["giant"],
    ]
    assert {text[:3] for batch in plan(om, env=DUET)[1][:1] for text in batch} == {"row"}


def test_of_nothing_nobody_is_asked(om: Om) -> None:
    """T47, T48: an empty store, and one whose rows are all fresh or pinned."""
    model = always(om, "echo")
    run = across(om, model=model)
    assert (run.code, run.stdout, "nothing to reflect on" in run.stderr) == (0, "", True)
    kept(om, aged(1, 1, "fresh"), aged(2, 365, "pinned", tags=("pinned",)))
    assert plan(om) == (["fresh", "pinned"], [])
    before = log(om)
    run = across(om, model=model)
    assert (run.stdout, "nothing to reflect on" in run.stderr) == ("", True)
    assert (model.asked, log(om), snapshots(om)) == ([], before, [])


# The swap


def test_old_rows_of_all_sessions_are_folded_in_one_swap(om: Om) -> None:
    """S2.28, S2.29, C8: tagged, of the project, nothing deleted; a snapshot of before can be used as a store."""
    noticed(om, "The crane is greased weekly", "The berth is dredged yearly", session="a", day=AGES[30])
    noticed(om, "The quay is painted each spring", session="b", day=AGES[7])
    noticed(om, "Ships book by phone", session="c", day=AGES[1])
    before = om("log", "--jsonl").stdout
    text = "Crane greased weekly, berth dredged yearly, quay painted in spring"
    document = across(om, "--json", model=reflecting(om, reply(told(text, *labels(3)))), env=ANY).document
    assert (document["read"], document["observations_condensed"], document["reflections_created"]) == (3, 3, 1)
    left = in_sight(om)
    assert [each["text"] for each in left] == ["Ships book by phone", text]
    folded = left[1]
    assert (folded["kind"], folded["tags"], folded["generation"], "session" in folded) == (
        "reflection", ["global-prune"], 1, False,
    )  # fmt: skip
    assert len(folded["message_ids"]) == 3
    assert [each["superseded_by"] for each in rows(om)[:3]] == [folded["id"]] * 3
    if om.url is None:
        assert [str(path) for path in snapshots(om)] == [document["snapshot"]]
        assert om("--db", document["snapshot"], "log", "--jsonl").stdout == before
        om.db.write_bytes(Path(document["snapshot"]).read_bytes())
        assert om("log", "--jsonl").stdout == before


def test_later_sessions_of_the_project_are_told_what_was_folded(om: Om) -> None:
    """S2.28: it belongs to no session, and to all of its project."""
    noticed(om, "The crane is greased weekly", "The berth is dredged yearly", day=AGES[30])
    across(om, model=reflecting(om, reply(told("Crane weekly, berth yearly", *labels(2)))), env=ANY)
    noticed(om, "Ships book by phone", session="new", day=AGES[1])
    assert "Crane weekly, berth yearly" in om("context", "--session", "new", *NOW).stdout


def test_projects_do_not_mix(om: Om) -> None:
    """S2.27: a batch each, and what comes of it belongs to the project."""
    kept(
        om,
        *(aged(number, 30, f"Ship {number} lies in the harbour", project=HARBOURS) for number in range(1, 4)),
        *(aged(number, 7, f"Tide {number} is high", project="/src/tides", session="t") for number in range(4, 7)),
    )  # fmt: skip
    model = reflecting(
        om, reply(told("Ships lie in the harbour", *labels(3))), reply(told("Tides are high", *labels(3)))
    )
    across(om, model=model, env=ANY)
    assert [
        f"The project is {project}." in prompt
        for project, prompt in zip((HARBOURS, "/src/tides"), model.prompts, strict=True)
    ] == [True, True]
    assert "Tide" not in model.prompts[0]
    for project, text in ((HARBOURS, "Ships lie in the harbour"), ("/src/tides", "Tides are high")):
        assert texts(om, "--project", project) == [text]


def test_a_reflection_that_says_nothing_of_its_sources_hides_none(om: Om) -> None:
    """XA7: across sessions too."""
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(1, 6)))
    before = texts(om)
    across(om, model=reflecting(om, *[reply(told("All is well.", *labels(5)))] * 4), env=ANY, code=69)
    assert texts(om) == before


def test_what_a_batch_comes_to_has_a_share_of_the_target(om: Om) -> None:
    """S2.28, XA7: the last of too many rows go, and what they told stays in sight; the next run goes on with that."""
    kept(om, *(aged(number, 30, f"Ship {'abcdef'[number]} took on {'coal ' * 30}") for number in range(6)))
    long = [
        told(f"Ship {letter} took on {'coal ' * 20}", f"o{number}") for number, letter in enumerate("abcdef", start=1)
    ]
    env = DUET | {"OM_REFLECT_TARGET": "60"}
    sources = {each["id"] for each in rows(om)}
    across(om, model=always(om, reply(*long)), env=env)
    new = [each for each in in_sight(om) if each["id"] not in sources]
    assert new
    assert sum(each["tokens"] for each in new) <= 60
    assert new[0]["text"].startswith("Ship a took on coal")
    assert sources & {each["id"] for each in in_sight(om)}
    for each in rows(om, "--all"):
        assert "dropped_at" not in each
        assert each["id"] not in sources or each.get("superseded_by") in {None, *(one["id"] for one in new)}
    told_so = " ".join(texts(om))
    assert all(f"Ship {letter} took" in told_so for letter in "abcdef")
    again = across(om, model=always(om, reply(*long[: len(sources) - len(new)])), env=env)
    assert "nothing has changed" not in again.stderr


def test_a_batch_that_cannot_shrink_is_left_alone(om: Om) -> None:
    """XA6: one lone old row that the model keeps, and others that are folded; and nobody is asked about it again."""
    kept(om, aged(1, 365, "The lighthouse keeper is called Enno, and his dog is called Fiete", project=HARBOURS))
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(2, 5)))
    assert sorted(map(len, plan(om)[1])) == [1, 3]
    lone, good = reply(keep=labels(1)), reply(told("Ships lie in the harbour", *labels(3)))
    attempts = [lone, lone, good, lone] if len(plan(om)[1][0]) == 1 else [good, lone, lone]
    model = reflecting(om, *attempts, {"text": good, "times": 9})
    across(om, model=model)
    assert sorted(texts(om)) == [
        "Ships lie in the harbour",
        "The lighthouse keeper is called Enno, and his dog is called Fiete",
    ]
    asked = len(model.asked)
    assert "nothing has changed" in across(om, model=model).stderr
    assert len(model.asked) == asked


@pytest.mark.parametrize("failure", ["[]", "", {"error": "unreachable"}, {"text": "cut", "stop": "length"}])
def test_a_batch_that_fails_aborts_all_of_it(om: Om, failure: object) -> None:
    """T48, S2.41: exit 69 with the batch, rows and store as they were; the next run goes through."""
    kept(om, *(aged(number, 30, f"row {number} ".ljust(40, "x")) for number in range(1, 7)))
    before = log(om)
    env = DUET | {"OM_REFLECT_BATCH_TOKENS": "30", "OM_REFLECT_TARGET": "1"}
    good = reply(told("rows", *labels(2)))
    model = reflecting(om, good, failure, failure, failure)
    run = across(om, model=model, env=env, code=69)
    assert run.stderr.startswith("om: error: batch 2 of 3: ")
    assert om("status", "--json").document["errors"][0]["error"].startswith("batch 2 of 3: ")
    assert (log(om), snapshots(om)) == (before, [])
    assert calls(om)["calls"] >= 2
    across(om, "--again", model=always(om, good), env=env)
    assert texts(om) == ["rows"] * 3


def test_every_batch_that_replies_nothing_leaves_everything(om: Om) -> None:
    """T48, S2.41, XA5: exit 69 with the batch, and the next run tries again, until it has to wait."""
    kept(om, *(aged(number, 30, f"row {number}") for number in range(1, 7)))
    before = log(om)
    model = always(om, "[]")
    across(om, model=model, code=69)
    asked = len(model.asked)
    assert "batch 1 of 1" in across(om, model=model, code=69).stderr
    assert asked < len(model.asked) <= 2 * asked
    asked = len(model.asked)
    assert "in a row" in across(om, model=model, code=69).stderr
    assert len(model.asked) == asked
    across(om, "--again", model=model, code=69)
    assert (len(model.asked) > asked, log(om)) == (True, before)
    run = across(om, "--best-effort", "--again", model=model)
    assert "batch 1 of 1" in run.stderr


def test_a_second_run_changes_nothing(om: Om) -> None:
    """F35: what was made is not folded again, and rows that were left are not asked about again."""
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(1, 7)))
    model = always(om, reply(told("Ships lie in the harbour", *labels(4))))
    across(om, model=model)
    asked, before = len(model.asked), log(om)
    run = across(om, model=model)
    assert "nothing has changed since" in run.stderr
    assert (len(model.asked), log(om), len(snapshots(om))) == (asked, before, om.url is None)


def test_rules_fold_what_is_old(om: Om) -> None:
    """S2.25: with no key, what matters stays word for word, and a second run has nothing to do."""
    decided = aged(1, 30, "User: we decided to moor on the left", type=Type.DECISION, priority=Priority.HIGH)
    wanted = aged(2, 30, "User: I prefer tabs", type=Type.PREFERENCE)
    some = [aged(number, 30, "The quay is painted each spring by Ada", session=f"s{number}") for number in range(3, 9)]
    low = [
        aged(number, 30, f"Read file {number} of the harbour {'by night ' * 40}", priority=Priority.LOW, tokens=90)
        for number in range(9, 50)
    ]
    kept(om, decided, wanted, *some, *low)
    run = across(om)
    assert om.url or f"backup of the store: {snapshots(om)[0]}" in run.stderr
    left = texts(om, "--kind", "observation")
    assert {decided.text, wanted.text, some[0].text} <= set(left)
    assert len(left) < 30
    assert om("items", "--tag", "decision").stdout
    before = log(om)
    assert "nothing has changed since" in across(om).stderr
    assert log(om) == before


def test_it_says_of_every_project_what_it_did(om: Om) -> None:
    """XC13: also `om consolidate`, as text and as JSON; nothing of a project whose rows all stay."""
    kept(
        om,
        *(
            aged(number, 30, f"Ship {number} took on coal {'by night ' * 40}", project=f"/{where}", tokens=90)
            for where, numbers in (("quay", range(50)), ("mill", range(50, 100)), ("inn", range(100, 110)))
            for number in numbers
        ),
    )
    plan = om("consolidate", "--no-places", "--dry-run", *NOW).stdout.splitlines()
    assert [line for line in plan if line.startswith("fold")] == [
        f"fold     {count} rows of /{where}" for where, count in (("quay", 50), ("mill", 50), ("inn", 10))
    ]
    run = om("consolidate", "--no-places", *NOW, "--json").document
    told = {each["project"]: each for each in run["global"]["projects"]}
    assert {name: each["outcome"] for name, each in told.items()} == {"/quay": "done", "/mill": "done", "/inn": "empty"}
    assert told["/quay"]["read"] == 50
    assert told["/quay"]["observations_condensed"] > 10
    om("undo", *NOW)
    lines = across(om, "--again").stderr.splitlines()
    for where in ("quay", "mill"):
        [line] = [line for line in lines if f"/{where}: " in line]
        assert "50 rows read, 0 folded into 0" in line
        assert "tokens" in line
    assert not [line for line in lines if "/inn: " in line]


# At once


def test_rows_that_changed_meanwhile_are_not_written_over(om: Om) -> None:
    """F28, S2.29: two at once: the one that is slower ends with 75, and nothing of it is there."""
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(1, 7)))
    slow = reflecting(om, {"text": reply(told("Ships, slowly", *labels(6))), **UNTIL}, name="slow.json")
    process = om.start("reflect", "--global", *NOW, "--model", slow.model)
    _until_asked(slow)
    across(om, model=reflecting(om, reply(told("Ships in harbour", *labels(6))), name="quick.json"), env=ANY)
    slow.answers()
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, b"while they were reflected on" in stderr) == (75, True)
    assert texts(om) == ["Ships in harbour"]


def test_rows_that_come_meanwhile_do_not_collide(om: Om) -> None:
    """F28: they were not read."""
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(1, 7)))
    slow = reflecting(om, {"text": reply(told("Ships", *labels(6))), **UNTIL}, name="slow.json")
    process = om.start("reflect", "--global", *NOW, "--model", slow.model)
    _until_asked(slow)
    kept(om, aged(7, 30, "Ship 7 lies in the harbour"))
    slow.answers()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert sorted(texts(om)) == ["Ship 7 lies in the harbour", "Ships"]


def _until_asked(model: Script) -> None:
    end = time.monotonic() + 60
    while not model.asked:
        assert time.monotonic() < end
        time.sleep(0.02)


# How it is asked for


@pytest.mark.parametrize("arguments", [("--session", "s"), ("--meta",)])
def test_it_is_for_no_single_session(om: Om, arguments: tuple[str, ...]) -> None:
    """S2.25."""
    assert "exclude each other" in across(om, *arguments, code=2).stderr


def test_an_age_goes_with_it(om: Om) -> None:
    """S2.25: in days, hours or weeks; none other."""
    assert "needs `--global`" in om("reflect", "--min-age", "3d", code=2).stderr
    kept(om, aged(1, 1, "a day"), aged(2, 7, "a week"), row(3, text="now", event_at="2026-03-02T11:00:00.000Z"))
    for age, folded in (("0d", 3), ("12h", 2), ("1w", 1), ("30d", 0)):
        assert sum(map(len, plan(om, "--min-age", age)[1])) == folded, age
    across(om, "--min-age", "soon", code=2)


@pytest.mark.file_store("its copies")
def test_a_snapshot_never_takes_the_place_of_another(om: Om) -> None:
    """T48: a second swap at the same moment has a copy of its own; the first is as it was."""
    kept(om, *(aged(number, 30, f"Ship {number} lies in the harbour") for number in range(1, 7)))
    across(om, model=always(om, reply(told("Ships lie in the harbour", *labels(6)))))
    (first,) = snapshots(om)
    before = first.read_bytes()
    kept(om, *(aged(number, 30, f"Boat {number} lies on the beach") for number in range(7, 13)))
    run = across(om, model=always(om, reply(told("Boats lie on the beach", *labels(6)))))
    assert (run.code, len(snapshots(om)), first.read_bytes()) == (0, 2, before)
