"""What a provider's prompt cache can keep: the rows of a session that grows are only added to at the end."""

from __future__ import annotations

import re
from itertools import pairwise
from json import dumps
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import Talk

STORIES = Path(__file__).parent.parent / "stories"
LASTING = {"OM_CONTEXT_APPEND_ONLY": "yes"}
GROWING = "a-session-that-grows"
FROZEN = {"OM_CONTEXT_FREEZE": "yes", "OM_CONTEXT_EVICT": "200", "OM_CONTEXT_TAIL": "50"}


def settling() -> list[str]:
    """A session in which all that can be settled is: requests, questions, failures, todos, repeats, decisions."""
    talk = Talk()
    todos = [{"content": f"Step {name}", "status": "pending", "activeForm": name} for name in ("one", "two", "three")]
    talk.user("Please add a --station flag to the tide program.")
    for number, todo in enumerate(todos):
        talk.call("TodoWrite", {"todos": todos}).result("ok")
        todo["status"] = "completed"
        talk.call("Bash", {"command": "pytest tests"}).result("1 failed: test_tides", is_error=True)
        talk.call("Edit", {"file_path": "tides.py", "old_string": "a", "new_string": f"b{number}"}).result("ok")
        talk.call("Bash", {"command": "pytest tests"}).result(f"{12 + number} passed")
        talk.assistant(f"Done: step {number} is finished and all {12 + number} tests pass. Shall I go on?")
        talk.user("Yes, go on." if number else "We decided to use port 8080.")
    talk.user("Use port 9090 instead of 8080. Why did the test fail?").assistant("It failed because of a missing flag.")
    talk.user("Thanks. Now push it.").call("Bash", {"command": "git push"}).result("ok").assistant("Pushed.")
    return talk.lines


def growing(om: Om, lines: list[str], *, steps: int, env: dict[str, str]) -> list[str]:
    """The rows of the session after each step, printed up to where they may go on."""
    packs = []
    for step in range(1, steps + 1):
        path = om.write("grown.jsonl", "".join(lines[: max(1, len(lines) * step // steps)]))
        om("observe", "-q", path, "--session", GROWING, env=env)
        pack = om(
            "context", "-q", "--session", GROWING, "--tier", "session", "--session-budget", "50000", env=env
        ).stdout
        packs.append(pack.removesuffix("</om-memory>\n").rstrip("\n"))
    return packs


@pytest.mark.parametrize("env", [LASTING, FROZEN], ids=["append_only", "freeze"])
@pytest.mark.parametrize("name", ["settling", "claude_code_refactor.jsonl", "codex_release.jsonl", "pi_bugfix.jsonl"])
def test_a_growth_changes_no_earlier_byte(om: Om, name: str, env: dict[str, str]) -> None:
    """XB11, S0.5: a status change is a later row; only folding, pruning and forgetting change what was printed."""
    lines = settling() if name == "settling" else (STORIES / name).read_text().splitlines(keepends=True)
    packs = growing(om, lines, steps=8, env=env)
    assert len(set(packs)) > 3
    for before, after in pairwise(packs):
        assert after.startswith(before)


@pytest.mark.parametrize("env", [LASTING, FROZEN], ids=["append_only", "freeze"])
def test_nor_does_one_of_very_many_rows_that_all_fit(om: Om, env: dict[str, str]) -> None:
    """XB11, S0.5: however many rows a session has; each is printed."""
    lines = [dumps({"role": "user", "content": f"We decided to use port {number}."}) for number in range(7000, 7700)]
    asked = ["Please close port 6999.", "Thanks. Now push it.", *["Go on."] * 9]
    lines[0:0] = [dumps({"role": "user", "content": text}) for text in asked]
    before, after = growing(om, [f"{line}\n" for line in lines], steps=2, env=env)[-2:]
    assert after.startswith(before)
    assert after.count("We decided to use port") > 600


def test_otherwise_a_row_that_is_settled_gives_way_to_a_later_one(om: Om) -> None:
    """XB11, XC8: what stays keeps its place, and every new line is at the end; a request that is done takes its own."""
    packs = growing(om, settling(), steps=12, env={})
    assert not all(after.startswith(before) for before, after in pairwise(packs))
    for before, after in pairwise([untimed(pack) for pack in packs]):
        stays = [line for line in before if line in after]
        others = [line for line in after if line in stays or not line.startswith("done: User: ")]
        assert others[: len(stays)] == stays


def untimed(pack: str) -> list[str]:
    """The lines of a pack without the times and empty lines above them: the first of several rows may go."""
    return [line for line in pack.splitlines() if not re.fullmatch("(?:[0-9]{2}:[0-9]{2})?", line)]


def test_a_tier_that_is_full_holds_no_row_that_was_replaced(om: Om) -> None:
    """XB11: without room for all, what is settled is left out first, and the budget holds."""
    growing(om, settling(), steps=12, env={})
    small = ("context", "-q", "--session", GROWING, "--tier", "session", "--session-budget", "400")
    assert sorted(om(*small, env=LASTING).stdout.splitlines()) == sorted(om(*small).stdout.splitlines())
    large = ("context", "-q", "--session", GROWING, "--tier", "session")
    assert len(om(*large, env=LASTING).stdout) > len(om(*large).stdout)


def test_folding_makes_room_and_what_was_folded_takes_along_what_it_had_replaced(om: Om) -> None:
    """XB11, S0.5, T62."""
    growing(om, settling(), steps=12, env={})
    om("reflect", "--session", GROWING, "--again", env={"OM_REFLECT_TARGET": "0.3"})
    shown = om("context", "-q", "--session", GROWING, "--tier", "session", "--json", env=LASTING).document[
        "observations"
    ]
    log = {row["id"]: row for row in om("log", "--json", "--all", "--session", GROWING).document["observations"]}
    assert len(shown) > 3
    ids = {row["id"] for row in shown}
    assert all(log[each].get("superseded_by") in {None, *ids} for each in ids)
