"""Where what `om` prints is not wanted, or cannot be written: the work it was asked for is done all the same."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, beside, number_of
from tests.e2e.test_exit_codes import shell
from tests.e2e.transcripts import long_talk


@pytest.fixture
def transcripts(om: Om) -> list[Path]:
    """Three sessions; each gives more lines than a pipe or a buffer holds."""
    return [om.write(f"{name}.jsonl", long_talk(name, 400).text()) for name in "abc"]


def assert_all_is_taken_in(om: Om) -> None:
    assert number_of(om.place, "messages") == 1200
    assert number_of(om.place, "leases") == 0
    assert_covered_once(om.place)
    assert beside(om.place) == []


@pytest.mark.parametrize("form", ["", "--json"])
def test_transcripts_are_taken_in_also_when_nobody_reads_the_lines(om: Om, transcripts: list[Path], form: str) -> None:
    """F93: `om observe a b c | head -1` ends with 141 and says nothing, after the last of them."""
    run = shell(om, f"om observe -q {form} a.jsonl b.jsonl c.jsonl | head -c 100; exit ${{PIPESTATUS[0]}}")
    assert (run.returncode, len(run.stdout), run.stderr) == (141, 100, "")
    assert_all_is_taken_in(om)


@pytest.mark.parametrize(
    ("target", "said"), [("/dev/full", "cannot write the output: No space"), ("&-", "standard output is closed")]
)
def test_transcripts_are_taken_in_also_when_the_lines_cannot_be_written(
    om: Om, transcripts: list[Path], target: str, said: str
) -> None:
    """F32: exit 74 and one line, after the last of them."""
    run = shell(om, f"om observe a.jsonl b.jsonl c.jsonl >{target}")
    assert run.returncode == 74
    *reports, error = run.stderr.splitlines()
    assert [report.split(":")[0] for report in reports] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert error.startswith(f"om: error: {said}")
    assert_all_is_taken_in(om)


def test_what_failed_is_told_rather_than_that_the_lines_could_not_be_written(om: Om, transcripts: list[Path]) -> None:
    """F32, F66: the code is that of the input."""
    run = shell(om, "om observe --strict a.jsonl nowhere.jsonl b.jsonl c.jsonl >/dev/full")
    assert run.returncode == 66
    assert_all_is_taken_in(om)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_the_disk_takes_only_a_part_of_is_not_taken_for_written(
    om: Om, transcripts: list[Path], unbuffered: str
) -> None:
    """F32: Python itself, told not to buffer, passes over it."""
    om("observe", "-q", *transcripts)
    run = shell(om, f"export PYTHONUNBUFFERED={unbuffered}; ulimit -f 100; om log --json >printed")
    assert run.returncode == 74
    assert "cannot write the output: File too large" in run.stderr


def test_a_command_that_only_prints_ends_when_nobody_reads(om: Om, transcripts: list[Path]) -> None:
    """F93."""
    om("observe", "-q", *transcripts)
    page = 4096  # the smallest pipe: what is printed must not fit into it and into the buffer of who reads a line
    assert len(om("log").stdout) > 10 * page
    with subprocess.Popen(
        om.command("log"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=om.environment(), pipesize=page
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE
