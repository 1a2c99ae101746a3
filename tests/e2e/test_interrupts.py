"""Ctrl-C at any moment of a run: it ends with 130, and says nothing."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once
from tests.e2e.transcripts import long_talk, tide_story

STEPS, MOST = 60, 600
"""By so many steps of an undisturbed run the moment is put off, until a run is quicker than Ctrl-C."""


def interrupted(om: Om, *command: str, after: float) -> tuple[int, str]:
    """A run that is interrupted so many seconds after its beginning: how it ended, and all that it said of it."""
    process = om.start(*command)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr.decode()


def is_of_python_itself(code: int, stderr: str) -> bool:
    """Whether Python was still starting, or looking for om: it knows of no om then, nor om of it."""
    return code in (1, -signal.SIGINT) and "omcli" not in stderr


@pytest.mark.parametrize(
    "command", [["--help"], ["context", "--json"], ["log", "--all"], ["log", "--nonsense"]], ids=" ".join
)
def test_a_run_that_is_interrupted_anywhere_says_nothing(om: Om, command: list[str]) -> None:
    """F93: from the first of om's own lines to the last, at hundreds of points, with 130."""
    om("observe", "-q", om.write("t.jsonl", tide_story().text()))
    began = time.monotonic()
    undisturbed = om(*command, code=None).code
    step, ended = (time.monotonic() - began) / STEPS, list[tuple[int, str]]()
    while len(ended) < MOST and undisturbed not in [code for code, _ in ended]:
        ended.append(interrupted(om, *command, after=step * len(ended)))
    assert ended.pop()[0] == undisturbed
    of_om = [run for run in ended if not is_of_python_itself(*run)]
    assert of_om == [(130, "")] * len(of_om)
    assert len(of_om) > STEPS / 4


def test_a_run_that_is_interrupted_while_it_writes_gives_back_what_it_holds(om: Om) -> None:
    """F22, F93: again and again, and the next run goes on where it was."""
    transcript = om.write("t.jsonl", long_talk("s", 400, lines=20).text())
    codes = set()
    for step in range(40):
        code, stderr = interrupted(om, "observe", "-q", str(transcript), after=step * 0.03)
        assert (code, stderr) in ((130, ""), (0, "")) or is_of_python_itself(code, stderr)
        codes.add(code)
    assert 130 in codes
    om("observe", "-q", transcript, "--wait", "0")
    assert_covered_once(om.db)


def test_what_ignores_interrupts_from_birth_goes_on_doing_so(om: Om) -> None:
    """As a shell starts what it puts into the background."""
    process = subprocess.Popen(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *om.command("observe", "-q", "-")],
        stdin=subprocess.PIPE, env=om.environment(), cwd=om.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(20):
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
    assert process.communicate(tide_story().text().encode())[1] == b""
    assert process.returncode == 0
