"""Progress of long work: how much is done, how fast, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omcli.operations.deps import StepCount

_TELLING = 1.0
"""Seconds of work after which the time left is estimated, and a person wants to see that it goes on."""
_ANYTHING = "working"
"""Shown while nothing says what is being done."""


class ProgressMeter:
    """Shows the progress of a run. The numbers follow what is being done: `a.jsonl · 3 of 40 files · 1.5/s · 0:25
    left`.
    """

    def __init__(self, show: Callable[[str], None], *, clock: Callable[[], float], every: float = 0.0) -> None:
        """`clock` returns seconds. If something was shown less than `every` seconds ago, nothing is shown."""
        self._show = show
        self._clock = clock
        self._every = every
        self._step: StepCount | None = None
        self._text = _ANYTHING
        self._began = self._shown = clock()

    def begin(self, step: StepCount | None) -> None:
        """Go on to a step. None ends the last one: its numbers are no longer shown."""
        now = self._clock()
        if self._step is None or step is None or (step.noun, step.total) != (self._step.noun, self._step.total):
            self._began = now
        self._step = step
        if step is None:
            self._text = _ANYTHING

    def show(self, text: str) -> None:
        """Show what is being done, with the numbers of the step."""
        now, self._text = self._clock(), text
        if self._every and now - self._shown < self._every:
            return
        self._shown = now
        self._show(" · ".join((text, *self._numbers(now))))

    def tick(self) -> None:
        """Show again what is being done, with the time it takes, unless something was shown in the last second."""
        now = self._clock()
        if now - self._shown >= max(self._every, _TELLING):
            self._shown = now
            self._show(" · ".join((self._text, *self._numbers(now), f"{_time(now - self._began)} so far")))

    def _numbers(self, now: float) -> tuple[str, ...]:
        step, seconds = self._step, now - self._began
        if step is None:
            return ()
        ending = "es" if step.noun.endswith("ch") else "s"
        place = f"{min(step.done + 1, step.total)} of {step.total} {step.noun}{ending}"
        if not step.done or seconds < _TELLING:
            return (place,)
        rate = step.done / seconds
        return (place, _in_words(rate), f"{_time((step.total - step.done) / rate)} left")


def _in_words(number: float) -> str:
    """Return a number of steps per second as text: per second or, if that is less than one, per minute or per hour."""
    for unit, seconds in (("s", 1), ("min", 60)):
        if (each := number * seconds) >= 1:
            return f"{each:.0f}/{unit}" if each >= 10 else f"{each:.1f}/{unit}"
    return f"{number * 3600:.1f}/h"


def _time(seconds: float) -> str:
    """Return a duration as minutes and seconds, or as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
