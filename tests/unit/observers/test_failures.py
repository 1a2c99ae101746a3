"""Commands that do the same in other words."""

from __future__ import annotations

import time

import pytest

from omcli.memory.observation import Status, Type
from omcli.observers.rules.failures import covers, parse_parts
from tests.batches import Talk

MENDED = (
    ("npm test", "npm run test"),
    ("npm run test -- parser", "npm test"),
    ("yarn test", "CI=1 yarn run test --silent"),
    ("npx jest src/parser.test.ts", "node_modules/.bin/jest --coverage"),
    ("pytest tests/tides -x", "pytest -q"),
    ("pytest -k high_water", ".venv/bin/pytest -q 2>&1 | tail -3"),
    ("python3 -m pytest -q", "uv run pytest -v"),
    ("go test -run TestTide ./...", "go test ./..."),
    ("mise run test", "mise run lint && mise run test"),
    ("go build ./... && mise run test", "mise run test"),
    ("ruff check", "ruff check --fix"),
    ("git push", "git push -u origin tides"),
    ("docker compose up", "docker compose up -d"),
    ("cargo build 2>/dev/null", "cargo build --verbose"),
    ("sudo make install", "make install"),
)
OTHERS = (
    ("npm test", "npm run build"),
    ("npm test", "npm test -- parser"),
    ("pytest", "pytest tests/tides"),
    ("pytest", "pytest --collect-only"),
    ("npm test", "npm test --help"),
    ("mypy --strict tides", "mypy tides"),
    ("go test ./...", "go test -short ./..."),
    ("make test", "make"),
    ("make", "make clean"),
    ("git commit -m 'tides'", "git commit -m 'harbours'"),
    ("git push", "git push --dry-run"),
    ("npm test", "npm test || true"),
    ("npm test", "npm test | grep tide"),
    ("npm test && git push", "npm test"),
    ("node tides.js", "node harbours.js"),
    ("cat tides.csv", "cat harbours.csv"),
    ("npm test", ""),
    ("", "npm test"),
)


def _mends(passed: str, failed: str) -> bool:
    parts = parse_parts(failed)
    return bool(parts) and covers(parse_parts(passed), parts[-1])


@pytest.mark.parametrize(("failed", "passed"), MENDED)
def test_the_same_in_other_words_or_more_of_it_resolves_a_failure(failed: str, passed: str) -> None:
    """S4.16: the program, its subcommand and its arguments count."""
    assert _mends(passed, failed)


@pytest.mark.parametrize(("failed", "passed"), OTHERS)
def test_less_of_it_and_anything_else_resolves_nothing(failed: str, passed: str) -> None:
    """S4.16: unknown differences count."""
    assert not _mends(passed, failed)


@pytest.mark.parametrize("run", ["sudo ", "A=1 ", "> a", " ", "-v ", "'", '"', "a && ", "npx -- ", "timeout 5 "])
def test_hostile_commands_take_linear_time(run: str) -> None:
    long = run * (300_000 // len(run))
    began = time.process_time()
    parse_parts(long)
    assert time.process_time() - began < 2


def test_many_commands_that_fail_and_many_that_work_are_compared_in_no_time() -> None:
    """S4.16: each is read once, and not with each of the others."""
    talk = Talk()
    for number in range(500):
        talk.tool("Bash", {"command": f"pytest tests/tide_{number}.py"}, "1 failed", failed=True, exit_code=1)
    for number in range(500):
        talk.tool("Bash", {"command": f"pytest tests/moon_{number}.py"}, "1 passed", failed=False, exit_code=0)
    began = time.process_time()
    failures = [row for row in talk.observed() if row.type is Type.COMMAND_ERROR]
    assert time.process_time() - began < 5
    assert len(failures) == 500
    assert {row.status for row in failures} == {Status.OPEN}
