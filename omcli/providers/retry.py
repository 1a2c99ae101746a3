"""How long and how often an ask may go on: one deadline over all attempts, and waits between them."""

from __future__ import annotations

import signal
import time
from _thread import start_new_thread
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from omcli.base.record import record
from omcli.providers.wire import RequestFailed

T = TypeVar("T")
_LONGEST_DELAY = 8.0


class RetryBudget:
    """What is left of the time and the attempts of one ask."""

    def __init__(self, *, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep
        self._began = clock()
        self._failures = 0

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, never less than 0."""
        return max(0.0, self._seconds - self._elapsed)

    @property
    def _elapsed(self) -> float:
        return self._clock() - self._began

    def wait_after(self, failed: RequestFailed) -> bool:
        """Waits for the next attempt; False, at once, where there is none."""
        self._failures += 1
        delay = min(failed.delay * 2 ** (self._failures - 1), _LONGEST_DELAY)
        if failed.retry_after is not None:
            delay = failed.retry_after
        if self._failures >= failed.tries or delay >= self.remaining or self._elapsed + delay > failed.within:
            return False
        self._sleep(delay)
        return True


class NotConnected(Exception):
    """Work gave no sign of life in time."""


class DeadlinePassed(Exception):
    """Work was not done in time."""


@record
class _Ended:
    result: object = None
    error: BaseException | None = None


_ALIVE = _Ended()


def run_with_deadline(work: Callable[[Callable[[], None]], T], *, seconds: float, first_sign: float) -> T:
    """What work gives, or raises; it calls what it is given at its first sign of life.

    It runs in a thread that is left behind when time is up, since neither a name that is looked up nor a byte a second
    can be interrupted. Ctrl-C can. Raises NotConnected, DeadlinePassed.
    """
    news: SimpleQueue[_Ended] = SimpleQueue()

    def run() -> None:
        # `om | head` has to end quietly, so SIGPIPE ends the process; a connection that breaks must not.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            news.put(_Ended(result=work(lambda: news.put(_ALIVE))))
        except BaseException as error:  # noqa: BLE001 - it is raised again, where it is waited for
            news.put(_Ended(error=error))
            raise SystemExit from None  # the end of a thread that says nothing

    deadline = time.monotonic() + seconds
    start_new_thread(run, ())  # which keeps no process from ending
    try:
        ended = news.get(timeout=max(0.0, min(first_sign, seconds)))
    except Empty:
        raise (NotConnected if first_sign < seconds else DeadlinePassed) from None
    try:
        while ended is _ALIVE:
            ended = news.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        raise DeadlinePassed from None
    if ended.error is not None:
        raise ended.error
    return ended.result  # type: ignore[return-value]
