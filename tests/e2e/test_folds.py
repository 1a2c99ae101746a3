"""A fold by rules condenses: short rows, fewer tokens, and packs that keep what they kept before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omcli.reflectors.drafts import LONGEST
from omcli.text.phrases import anchors, searchable, unknown_anchors
from tests.conftest import Om
from tests.e2e.contents import copy
from tests.e2e.reflecting import in_sight
from tests.e2e.transcripts import PROJECT, Talk

NOW = ("--now", "2026-02-20T09:00:00Z")
SESSION = Talk().session
OTHERS = ("zora", "lango", "duet", "pi")
RULES = {"OM_OBSERVER_PROVIDER": "rules", "OM_REFLECTOR_PROVIDER": "rules"}
HALF, FOUR_FIFTHS, KEPT = 0.5, 0.8, 0.95


def story(place: str, thing: str, maker: str, unit: str) -> Talk:
    """A session about things of a place: what was wished, read, searched, tried, changed and remarked, 40 times."""
    talk = Talk().user(f"Always give {thing} sizes in {unit}. The {thing} register of {place} is kept by {maker}.")
    for number in range(40):
        path = f"{PROJECT}/{place}/{thing}_{number % 7}.py"
        talk.user(f"Please check {thing} {number} of {place} against the list of {maker}.")
        talk.call("Read", {"file_path": path}).result(
            f"def {thing}_{number}():\n    return {number * 37} * {unit}_scale\n"
        )
        talk.call("Grep", {"pattern": f"{thing}_{number}"}).result(f"{path}:1:def {thing}_{number}():")
        talk.assistant(
            f"The {thing} no. {number} weighs {number * 37} {unit}, {maker} noted; its row in register_{number}.csv is"
            f" older than the {place} survey of 19{10 + number}."
        )
        talk.call("Bash", {"command": f"make check-{number % 5}"}).result(f"checked {number} of {thing}s")
        talk.call("Edit", {"file_path": path, "old_string": f"limit_{number}", "new_string": f"{unit}_limit_{number}"})
        talk.result("The file has been updated.")
    talk.user(f"We decided to keep every {thing} of {place} in one ledger, ledger_{place}.csv.")
    return talk.assistant(f"Done: the ledger of {place} is complete.")


STORIES = {
    "harbour": ("harbour", "crane", "Ada", "tonnes"),
    "orchard": ("orchard", "ladder", "Boris", "feet"),
    "library": ("library", "shelf", "Chiara", "metres"),
    "bakery": ("bakery", "oven", "Dmitri", "degrees"),
    "garage": ("garage", "lift", "Elif", "kilos"),
    "theatre": ("theatre", "lamp", "Femi", "watts"),
    "quarry": ("quarry", "drill", "Greta", "inches"),
    "brewery": ("brewery", "vat", "Hugo", "litres"),
    "mill": ("mill", "wheel", "Ines", "turns"),
    "depot": ("depot", "tram", "Jonas", "seats"),
}


@pytest.fixture(scope="module")
def observed(new_om: Callable[[], Om]) -> Callable[..., Om]:
    """A store of a story, observed by rules under a preset. Each story is observed once."""
    made: dict[tuple[str, str], Om] = {}

    def store(name: str, preset: str = "default") -> Om:
        if (name, preset) not in made:
            om = made[name, preset] = new_om()
            talk = om.write("t.jsonl", story(*STORIES[name]).text())
            om("observe", talk, "--session", SESSION, *NOW, env=env(preset))
        other = new_om()
        copy(made[name, preset].place, other.place)
        return other

    return store


def env(preset: str) -> dict[str, str]:
    return {**RULES, "OM_PRESET": preset}


@pytest.mark.parametrize(
    ("name", "preset"),
    [(name, "default") for name in STORIES]
    + [(name, OTHERS[place % len(OTHERS)]) for place, name in enumerate(STORIES)],
)
def test_a_fold_makes_short_rows_and_saves_a_fifth_or_nothing_is_done(
    observed: Callable[..., Om], name: str, preset: str
) -> None:
    """XC12, S0.30: under every preset; and no name of a row of high priority is lost."""
    om = observed(name, preset)
    before = in_sight(om)
    report = om("reflect", "--session", SESSION, "--json", *NOW, env=env(preset)).document
    after = in_sight(om)
    assert max((len(row["text"]) for row in report["reflections"]), default=0) <= LONGEST
    assert report["observations_condensed"] == 0 or report["tokens_after"] <= FOUR_FIFTHS * report["tokens_before"]
    assert bool(report["observations_condensed"]) == (preset != "duet"), "which folds at 65,000"
    told = [searchable(row["text"]) for row in after]
    high = [row["text"] for row in before if row["priority"] == "high"]
    assert high
    assert not [anchor for text in high for anchor in unknown_anchors(text, told)]


def pack(om: Om, budget: int) -> str:
    """The session's pack."""
    return om("context", "--session", SESSION, "--tier", "session", "--budget", str(budget), *NOW).stdout


@pytest.mark.parametrize("name", STORIES)
def test_a_pack_keeps_after_a_fold_to_half_what_it_kept_before(observed: Callable[..., Om], name: str) -> None:
    """XC12: of every size; what a pack left out is dropped first."""
    om = observed(name)
    budgets = (500, 1000, 1500)
    before = [pack(om, budget) for budget in budgets]
    report = om("reflect", "--session", SESSION, "--json", *NOW, env=env("default")).document
    assert report["tokens_after"] <= max(2000, HALF * report["tokens_before"])
    after = [pack(om, budget) for budget in budgets]
    for was, now in zip(before, after, strict=True):
        assert len(anchors(now)) >= KEPT * len(anchors(was))
    for lasting in ("Always give", "We decided to keep"):
        assert all(lasting in text for text in (*before[1:], *after[1:]))


@pytest.mark.parametrize("name", STORIES)
def test_what_was_only_looked_at_is_told_to_no_other_session(observed: Callable[..., Om], name: str) -> None:
    """XC13: neither after a fold of the session nor after one of all sessions."""
    om = observed(name)
    om("reflect", "--session", SESSION, *NOW, env=env("default"))
    om("reflect", "--global", *NOW, env=env("default"))
    other = om("context", "--session", "another-session-1", *NOW, env={"OM_SCOPE": "global"}).stdout
    assert "Always give" in other
    assert "We decided to keep" in other
    assert not [line for line in other.splitlines() if any(looks in line for looks in ("Read ", "Searched ", "Ran: "))]


@pytest.mark.parametrize("name", STORIES)
def test_a_fold_is_undone_to_the_byte(observed: Callable[..., Om], name: str) -> None:
    """C8, T36: and changes nothing of the working-memory block."""
    om = observed(name)
    block = ("context", "--working-memory", "--session", SESSION, *NOW)
    log, memory = om("log", "--jsonl", *NOW).stdout, om(*block).stdout
    om("reflect", "--session", SESSION, *NOW, env=env("default"))
    assert om("log", "--jsonl", *NOW).stdout != log
    assert om(*block).stdout == memory
    om("undo", *NOW)
    assert om("log", "--jsonl", *NOW).stdout == log
