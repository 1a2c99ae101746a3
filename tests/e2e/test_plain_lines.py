"""A command line that is read without Typer does what the same one does that is left to it."""

from __future__ import annotations

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import tide_story

LINES = [
    "context", "context --tier session --budget 500", "context --json", "context --to markdown --tail-budget 0",
    "context --session nobody", "context --json --to xml", "context --json --now never",
    "context --counter nope --json",
    "context --wait 9999999", "context -C nowhere", "context --db .", "log -n 3", "log --jsonl --type decision",
    "log --since 3d --until 5d", "sessions", "status --json", "show 0000", "show x", "tokens missing.txt",
    "observe missing.jsonl", "observe missing.jsonl --json", "observe tide.jsonl --format nope",
    "export --to zora", "export --to pi --session nobody", "export --to nope", "export",
    "import missing.txt --format pi",
    "import tide.jsonl --format zora", "log --notation emoji", "context --notation nope",
]  # fmt: skip
ENVIRONMENTS: list[dict[str, str]] = [
    {"OM_COUNTER": "nope"}, {"OM_CONTEXT_BUDGET": "300", "OM_WAIT": "long"}, {"OM_DB": "/proc/x/y.db"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "environment"), [(line, {}) for line in LINES] + [("context", e) for e in ENVIRONMENTS]
)
def test_both_ways_print_and_end_alike(om: Om, line: str, environment: dict[str, str]) -> None:
    """`--` at the end of a line changes nothing, but makes it one for Typer."""
    om("observe", om.write("tide.jsonl", tide_story().text()), "--now", "2026-02-11")
    words = line.split()
    plain = om(*words, env=environment, code=None)
    by_typer = om(*words, "--", env=environment, code=None)
    assert (plain.code, plain.stdout, plain.stderr) == (by_typer.code, by_typer.stdout, by_typer.stderr)


def test_help_and_what_is_wrong_are_typers(om: Om) -> None:
    assert om("context", "--session", "a", "--help").stdout.startswith("Usage: om context [OPTIONS]")
    assert om("context", "--budget", "many", code=2).stderr.startswith("om: error: invalid value for '--budget'")
    assert "no such option: --bugdet" in om("context", "--bugdet", "3", code=2).stderr
