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
    ("git commit -m 'tides'", "git commit -am 'harbours'"),
    ("pytest tests/tides.py::test_high", "pytest tests/tides.py"),
    ("pytest tests/tides/high.py", "pytest tests/tides/"),
    ("go test ./tides/high", "go test ./tides/..."),
    ("pytest tests/tides.py tests/moon.py", "pytest tests"),
    ("pytest tests/tides.py tests/moon.py", "pytest"),
    ("pytest tests/tides.py -k high", "pytest tests/tides.py"),
)
OTHERS = (
    ("npm test", "npm run build"),
    ("npm test", "npm test -- parser"),
    ("pytest", "pytest tests/tides"),
    ("pytest tests/tides.py tests/moon.py", "pytest tests/tides.py"),
    ("ruff check tides moon", "ruff check moon"),
    ("pytest", "pytest --collect-only"),
    ("npm test", "npm test --help"),
    ("mypy --strict tides", "mypy tides"),
    ("go test ./...", "go test -short ./..."),
    ("make test", "make"),
    ("make", "make clean"),
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
    long = run * (100_000 // len(run))
    began = time.process_time()
    parse_parts(long)
    assert time.process_time() - began < 2


def test_many_commands_that_fail_and_many_that_work_are_compared_in_no_time() -> None:
    """S4.16: each is read once, and not with each of the others."""
    talk = Talk()
    for number in range(300):
        talk.tool("Bash", {"command": f"pytest tests/tide_{number}.py"}, "1 failed", failed=True, exit_code=1)
    for number in range(300):
        talk.tool("Bash", {"command": f"pytest tests/moon_{number}.py"}, "1 passed", failed=False, exit_code=0)
    began = time.process_time()
    failures = [row for row in talk.observed() if row.type is Type.COMMAND_ERROR]
    assert time.process_time() - began < 3
    assert len(failures) == 300
    assert {row.status for row in failures} == {Status.OPEN}


FAILED = (
    ("make tides", "Exit code: 1\nno moon"),
    ("make tides", "Process exited with code 1\nOutput:\nno moon"),
    ("make tides", "no moon\n[exit code: 2]"),
    ("make tides", "exit_code=1\nno moon"),
    ("make tides", "[The command completed with exit code 1.]\nno moon"),
    ("make tides", "<returncode>1</returncode>\n<output>\nno moon\n</output>"),
    ("make tides", "make: *** [tides] Error 2"),
    ("make tides && make moon", "cc tides.c\ngmake[1]: *** [tides.o] Error 1"),
    ("python tides.py", "Traceback (most recent call last):\n  File \"tides.py\", line 1\nKeyError: 'moon'"),
    ("tidectl up", "bash: tidectl: command not found"),
    ("tidectl up", "sh: 1: tidectl: not found"),
    ("pytest -q", "1 failed, 3 passed in 0.2s"),
    ("npm test", "> tides@1.0 test\nTests:  1 failed, 3 total"),
    ("go test ./...", "--- FAIL: TestTide (0.00s)\nFAIL\nFAIL\ttides 0.1s"),
    ("cargo build", "error[E0308]: mismatched types\nerror: could not compile `tides`"),
    ("node tides.js", "warming up\nError: Cannot find module './moon'\n    at load (tides.js:1:2)"),
)
WORKED = (
    ("make tides", "Exit code: 0\nbuilt"),
    ("make tides", "Process exited with code 0\nOutput:\nError: no moon, using the sun"),
    ("make tides", "<returncode>0</returncode>\n<output>\nbuilt\n</output>"),
    ("npm test", "Tests: 0 failed, 4 passed"),
    ("eslint .", "0 errors, 3 warnings"),
    ("python tides.py", "started\nError: no moon, using the sun\ndone"),
    ("cat tides.log", "Traceback (most recent call last):\nKeyError: 'moon'"),
    ("tail -5 tides.log", "Process exited with code 1"),
    ("grep -rn 'Exit code: 1' .", "a.py:1: Exit code: 1"),
    ("git log -3", "fix the fatal: and the error: of the tides"),
)


@pytest.mark.parametrize(("command", "output"), FAILED)
def test_a_failure_is_told_from_what_is_printed_where_nothing_marks_it(command: str, output: str) -> None:
    """XC6: lists of chat messages have neither an exit code nor a mark."""
    rows = Talk().tool("run_command", {"command": command}, output, failed=None).observed()
    assert [(row.type, row.status) for row in rows] == [(Type.COMMAND_ERROR, Status.OPEN)]
    assert "xit" not in rows[0].text.partition(": ")[2].partition(": ")[2], "the exit code is told once"


@pytest.mark.parametrize(("command", "output"), WORKED)
def test_what_worked_or_only_shows_a_file_is_no_failure(command: str, output: str) -> None:
    """XC6: an exit code of 0 comes first, and what is read was printed by something else."""
    rows = Talk().tool("run_command", {"command": command}, output, failed=None).observed()
    assert Type.COMMAND_ERROR not in {row.type for row in rows}


@pytest.mark.parametrize("trim", [" 2>&1 | tail -5", " | head -20", " | grep -v warn", "; echo done", " || true"])
def test_a_failure_whose_status_is_lost_is_told_by_its_output(trim: str) -> None:
    """XC5: `| tail` succeeds whatever comes before it."""
    talk = Talk().tool("Bash", {"command": f"npm test{trim}"}, "Tests: 1 failed, 3 total", failed=False, exit_code=0)
    assert talk.one().type is Type.COMMAND_ERROR
    talk.tool("Bash", {"command": "npm test"}, "Tests: 4 passed, 4 total", failed=False, exit_code=0)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


FULL = "Tests: 1 failed, 3 total"
NAMED = "FAILED tests/tides.py::test_high - assert 3 == 4\n1 failed, 3 passed"
TWO = f"FAILED tests/moon.py::test_full - assert 1 == 2\n{NAMED}"
AGAIN = (
    ("npm test", FULL, "npm test 2>&1 | grep -E 'pass|fail'", "12 passed", True),
    ("npm test | tail -3", FULL, "npx --yes npm test", "12 passed", False),
    ("npm test | tail -3", FULL, "npm run test", "12 passed", True),
    ("pytest", NAMED, "pytest tests/tides.py", "1 passed", True),
    ("pytest -q", NAMED, "pytest -k test_high", "1 passed", True),
    ("pytest", NAMED, "pytest tests/tides.py -q | tail -1", "1 passed", True),
    ("pytest", NAMED, "pytest tests/moon.py", "1 passed", False),
    ("pytest", TWO, "pytest tests/tides.py", "1 passed", False),
    ("pytest", TWO, "pytest tests/tides.py tests/moon.py", "2 passed", True),
    ("pytest tests/tides.py", NAMED, "pytest", "9 passed", True),
    ("pytest", NAMED, "pytest | grep tide", "tides.py", False),
    ("curl -s localhost:8443/tides", "Connection refused", "curl -sS -i localhost:8443/tides", "HTTP/1.1 200", True),
    ("python seed.py --all", "KeyError: 'moon'", "python seed.py --verbose --some", "seeded", True),
    ("python seed.py", "KeyError: 'moon'", "python grow.py", "grown", False),
    ("mypy --strict tides", "Found 2 errors", "mypy tides", "Success", False),
    ("npm test -- --grep moon", "a.ts(2,9): error TS2678: tide", "npm test -- --grep sun", "3 passing", True),
    ("npm test -- --grep moon", "AssertionError: 2 == 3", "npm test -- --grep sun", "3 passing", False),
    ("npm test -- --grep moon", "a.ts(2,9): error TS2678: tide", "npm run check-types", "", True),
    ("npm run build", "a.ts(2,9): error TS2678: tide", "npx tsc --noEmit", "", True),
    ("npm run build", "a.ts(2,9): error TS2678: tide", "npx tsc --noEmit -p other", "", False),
    ("cargo test high", "error[E0425]: cannot find value `tide`", "cargo test low", "ok", True),
    ("cargo test -p high", "error[E0425]: cannot find value `tide`", "cargo test -p low", "ok", False),
)


@pytest.mark.parametrize(("failed", "error", "passed", "output", "resolves"), AGAIN)
def test_a_failure_is_resolved_by_what_was_run_whatever_the_command_line(
    failed: str, error: str, passed: str, output: str, resolves: bool
) -> None:
    """XC5: by program and target, wider or narrower."""
    talk = Talk().tool("Bash", {"command": failed}, error, failed=True, exit_code=1)
    talk.tool("Bash", {"command": passed}, output, failed=False, exit_code=0)
    statuses = [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR]
    assert statuses == [Status.RESOLVED if resolves else Status.OPEN]


def test_a_fetch_that_failed_is_resolved_by_the_next_one() -> None:
    """It changes no file, but reaches a remote, whatever its arguments."""
    talk = Talk().tool("bash", {"command": "git fetch origin main"}, "fatal: no route to host", failed=True)
    failed = talk.one()
    assert (failed.type, failed.status) == (Type.COMMAND_ERROR, Status.OPEN)
    talk.tool("bash", {"command": "git fetch --all"}, "From harbour\n * branch  main -> origin/main", failed=False)
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


def test_a_commit_that_a_hook_refused_is_resolved_by_the_next_commit() -> None:
    """XC5: messages have several lines, and are never the same."""
    talk = Talk()
    for message, failed in (("Add tides\n\nAll of them.", True), ("Add the tides\n\nAll but one.", False)):
        command = f"git add -A && git commit -m \"$(cat <<'EOF'\n{message}\nEOF\n)\""
        printed = "eslint found 2 errors" if failed else "[main 1a2b3c4] Add the tides"
        talk.tool("Bash", {"command": command}, printed, failed=failed, exit_code=int(failed))
    assert [row.status for row in talk.observed() if row.type is Type.COMMAND_ERROR] == [Status.RESOLVED]


@pytest.mark.parametrize(
    "run", ["exited with ", "error: ", ": ", "make[1]: ", "the command ", "code ", "\n", "1 failed "]
)
def test_hostile_outputs_take_linear_time(run: str) -> None:
    """XC6."""
    long = run * (100_000 // len(run))
    began = time.process_time()
    Talk().tool("run_command", {"command": "make tides"}, long, failed=None).observed()
    assert time.process_time() - began < 2
