"""The same transcript observed, reflected on and packed, by rules and by models."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.benchmarks.whole_way import BUDGET, KEPT, SCRIPTS, Way, environment, go, scripted
from tests.command_line import run_here


def whole_way(folder: Path, model: tuple[str, ...]) -> Way:
    return go(folder, model, run=run_in)


def run_in(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run a command in the process of the tests."""
    ended = run_here("om", arguments, stdin="", env=environment(folder), cwd=folder)
    return CompletedProcess(arguments, ended.expected(None).code, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory: pytest.TempPathFactory) -> Way:
    return whole_way(tmp_path_factory.mktemp("rules"), ("--who", "rules"))


def test_rules_take_a_story_the_whole_way(by_rules: Way) -> None:
    assert by_rules.codes == (0, 0, 0)
    assert by_rules.rows.keys() == {"rules"}
    assert by_rules.reflected["observation"] == by_rules.rows["rules"], "so few rows stay as they are"
    assert by_rules.kept == KEPT
    assert 0 < by_rules.pack_tokens <= BUDGET


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_with_a_model_a_pack_says_no_less_than_with_rules_alone(tmp_path: Path, by_rules: Way, name: str) -> None:
    """S0.24: one that repeats everything, and one that finds nothing: what the rules know is there all the same."""
    way = whole_way(tmp_path, scripted(tmp_path, name))
    assert set(by_rules.kept) <= set(way.kept)
    assert way.pack_tokens <= BUDGET
    assert way.codes == (0, 69 if name == "silent" else 0, 0), "a reflection of nothing is no reflection"
    assert way.tokens_after < way.tokens or name == "silent"
    assert ("model" in way.rows) == (name == "echo")
    assert way.rows["rules"] >= by_rules.rows["rules"] // 2
