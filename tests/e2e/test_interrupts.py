"""Ctrl-C at any moment of a run: it ends with 130, and says nothing of it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omcli
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.contents import assert_covered_once
from tests.e2e.interrupting import runs
from tests.e2e.transcripts import long_talk, tide_story

COMMANDS = [["--help"], ["context", "--json"], ["log", "--all"], ["log", "--nonsense"]]
STEPS, LEAST = 60, 15
"""By so many steps of an undisturbed run the moment is put off; so many of them have to fall into what om does."""


def interrupted(om: Om, *command: str, after: float) -> tuple[int, str]:
    """A run that is interrupted so many seconds after its beginning: how it ended, and all that it said of it."""
    process = om.start(*command)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    return process.returncode, stderr.decode()


def interrupted_later_and_later(om: Om, *command: str, step: float, undisturbed: Ended) -> Iterator[tuple[int, str]]:
    """Yield the results of runs that are interrupted while om works, each a step later than the one before, until one
    ends undisturbed.

    Steps become longer, in case the machine has become slower.
    """
    after = 0.0
    while (run := interrupted(om, *command, after=after)) != (undisturbed.code, undisturbed.stderr):
        if not is_of_python_itself(*run):
            yield run
        after += max(step, after / STEPS)


def is_of_python_itself(code: int, stderr: str) -> bool:
    """Return True if the interrupt hit Python itself while it was starting or looking for om: no line of om is named.

    Python may also lose such an interrupt, in a callback in which nothing can be raised. Then it only reports that.
    """
    is_told = code in (1, -signal.SIGINT) or "KeyboardInterrupt" in stderr
    return is_told and f'File "{Path(omcli.__file__).parent}' not in stderr


def assert_silent(ended: list[tuple[int, str]], undisturbed: Ended) -> None:
    """It may have said already what it has to say without being interrupted, or a line of it."""
    assert [(code, said) for code, said in ended if code != 130 or not undisturbed.stderr.startswith(said)] == []
    assert ended


SOAK = pytest.mark.soak
POINTS = [("call", 8), ("enter", 14), pytest.param("call", 400, marks=SOAK), pytest.param("enter", 400, marks=SOAK)]
"""Where a run is interrupted, and at how many points."""


@pytest.mark.parametrize(("at", "points"), POINTS)
@pytest.mark.parametrize("command", [["context", "--json"], ["log", "--all"]], ids=" ".join)
def test_a_run_that_is_interrupted_while_it_reads_says_nothing(
    om: Om, command: list[str], at: str, points: int
) -> None:
    """F93: with 130, also as a `with` block is entered: its generator is then closed after the store is."""
    om("observe", "-q", om.write("t.jsonl", tide_story().text()))
    undisturbed = om(*command, code=None)
    first, *of_om = runs(*command, at=at, points=points, env=om.environment(), cwd=om.folder)
    assert first == (undisturbed.code, undisturbed.stderr)
    assert_silent(of_om, undisturbed)


@pytest.mark.parametrize(("at", "points"), POINTS)
def test_what_is_interrupted_while_it_writes_is_gone_on_with(om: Om, at: str, points: int) -> None:
    """F22, F93: again and again, and the next run goes on where it was, whatever is left of its lease."""
    texts = [long_talk("s", messages, lines=4).text() for messages in range(10, 70, 3)]
    transcript = om.write("t.jsonl", texts.pop(0))
    command = ("observe", "-q", "--wait", "0", transcript)
    of_om = runs(*command, at=at, points=points, env=om.environment(), cwd=om.folder)
    assert next(of_om) == (0, "")
    for code, stderr in of_om:
        assert (code, stderr) in ((130, ""), (0, ""))
        if texts:
            om.write("more.jsonl", texts.pop(0)).replace(transcript)
    om(*command)
    assert_covered_once(om.place)


@SOAK
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_run_that_is_interrupted_anywhere_says_nothing(om: Om, command: list[str]) -> None:
    """F93: from the first of om's own lines to the last, at hundreds of points, with 130."""
    om("observe", "-q", om.write("t.jsonl", tide_story().text()))
    began = time.monotonic()
    undisturbed = om.process(*command, code=None)
    step, of_om = (time.monotonic() - began) / STEPS, list[tuple[int, str]]()
    while len(of_om) < LEAST:  # again in smaller steps where the machine was slow when they were measured
        of_om += interrupted_later_and_later(om, *command, step=step, undisturbed=undisturbed)
        step /= 2
    assert_silent(of_om, undisturbed)


@SOAK
def test_a_run_that_is_interrupted_while_it_writes_gives_back_what_it_holds(om: Om, new_om: Callable[[], Om]) -> None:
    """F22, F93: again and again, and the next run goes on where it was."""
    command = ("observe", "-q", "--wait", "0", str(om.write("t.jsonl", long_talk("s", 400, lines=20).text())))
    began = time.monotonic()
    undisturbed = om.process(*command)
    step, of_om = (time.monotonic() - began) / STEPS, list[tuple[int, str]]()
    while len(of_om) < LEAST:
        again = new_om()
        of_om += interrupted_later_and_later(again, *command, step=step, undisturbed=undisturbed)
        step /= 2
        again(*command)
        assert_covered_once(again.place)
    assert of_om == [(130, "")] * len(of_om)


def test_what_ignores_interrupts_from_birth_goes_on_doing_so(om: Om) -> None:
    """As a shell starts what it puts into the background."""
    transcript = om.write("t.jsonl", tide_story().text())
    process = subprocess.Popen(
        om.command("observe", "-q", transcript), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=om.environment(), cwd=om.folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509 - this process has one thread
    )  # fmt: skip
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
    assert (process.communicate()[1], process.returncode) == (b"", 0)
