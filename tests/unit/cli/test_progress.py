"""Progress of long work: numbers that say how far it is."""

from __future__ import annotations

import pytest

from omcli.cli.progress import ProgressMeter
from omcli.operations.deps import StepCount


class Shown:
    """A meter whose clock stands still unless it is moved, and what it has shown."""

    def __init__(self, every: float = 0.0) -> None:
        self.now = 0.0
        self.texts: list[str] = []
        self.meter = ProgressMeter(self.texts.append, clock=lambda: self.now, every=every)

    def after(self, seconds: float, done: int | None = None, *, total: int = 40, noun: str = "file") -> str:
        """What is shown after some seconds, at a step or at none."""
        self.now += seconds
        if done is not None:
            self.meter.begin(StepCount(noun=noun, done=done, total=total))
        self.meter.show("a.jsonl: 3 messages")
        return self.texts[-1]

    def ticks(self, seconds: float) -> None:
        self.now += seconds
        self.meter.tick()


def test_the_first_step_gives_no_rate() -> None:
    assert Shown().after(60, 0) == "a.jsonl: 3 messages · 1 of 40 files"


@pytest.mark.parametrize(
    ("done", "seconds", "numbers"),
    [
        (1, 0.5, "2 of 40 files"),
        (4, 2, "5 of 40 files · 2.0/s · 0:18 left"),
        (30, 2, "31 of 40 files · 15/s · 0:01 left"),
        (2, 20, "3 of 40 files · 6.0/min · 6:20 left"),
        (1, 240, "2 of 40 files · 15.0/h · 2:36:00 left"),
    ],
)
def test_the_numbers_follow_the_text(done: int, seconds: float, numbers: str) -> None:
    shown = Shown()
    shown.after(0, 0)
    assert shown.after(seconds, done) == f"a.jsonl: 3 messages · {numbers}"


def test_steps_of_another_kind_are_timed_anew() -> None:
    shown = Shown()
    shown.after(100, 0)
    shown.after(100, 39)
    assert shown.after(0, 0, noun="session", total=7).endswith("· 1 of 7 sessions")
    assert shown.after(2, 1, noun="session", total=7).endswith("· 2 of 7 sessions · 30/min · 0:12 left")


def test_after_a_second_it_is_shown_that_the_work_goes_on() -> None:
    shown = Shown()
    shown.ticks(0.9)
    assert shown.texts == []
    shown.ticks(0.2)
    assert shown.texts == ["working · 0:01 so far"]
    shown.after(1, 0)
    shown.ticks(5)
    assert shown.texts[1:] == [
        "a.jsonl: 3 messages · 1 of 40 files",
        "a.jsonl: 3 messages · 1 of 40 files · 0:05 so far",
    ]
    shown.meter.begin(None)
    shown.ticks(1)
    assert shown.texts[-1] == "working · 0:01 so far"


def test_in_a_pipe_work_that_goes_on_is_shown_every_few_seconds() -> None:
    shown = Shown(every=5)
    for _ in range(11):
        shown.ticks(1)
    assert shown.texts == ["working · 0:05 so far", "working · 0:10 so far"]


def test_without_steps_there_are_no_numbers() -> None:
    shown = Shown()
    shown.after(0, 3)
    shown.meter.begin(None)
    assert shown.after(9) == "a.jsonl: 3 messages"


def test_lines_of_their_own_come_every_few_seconds() -> None:
    shown = Shown(every=5)
    for _ in range(30):
        shown.now += 1
        shown.meter.show("a")
    assert len(shown.texts) == 6
