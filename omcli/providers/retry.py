"""Retries: one deadline over all attempts of a request, and the waits between them."""

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


class RetryState:
    """Remaining time and attempts for one request."""

    def __init__(self, *, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep
        self._began = clock()
        self._failures = 0

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, never less than 0."""
        return max(0.0, self._seconds - self._since_start)

    @property
    def _since_start(self) -> float:
        return self._clock() - self._began

    def sleep_after(self, failed: RequestFailed) -> bool:
        """Wait for the next attempt; return False at once if there is none."""
        self._failures += 1
        delay = min(failed.delay * 2 ** (self._failures - 1), _LONGEST_DELAY)
        if failed.retry_after is not None:
            delay = failed.retry_after
        if self._failures >= failed.tries or delay >= self.remaining or self._since_start + delay > failed.within:
            return False
        self._sleep(delay)
        return True


class NotConnected(Exception):
    """The connection was not made in time."""


class Overdue(Exception):
    """The work was not done in time."""


@record
class _Result:
    result: object = None
    error: BaseException | None = None


_CONNECTED = _Result()


def run_within(work: Callable[[Callable[[], None]], T], *, seconds: float, connect_within: float) -> T:
    """Return or raise the result of `work`, which calls its argument once it is connected.

    It runs in a thread that is abandoned at the deadline, since neither a DNS lookup nor one byte per second can be
    interrupted; Ctrl-C still works. Raises NotConnected, Overdue.
    """
    news: SimpleQueue[_Result] = SimpleQueue()

    def run() -> None:
        # SIGPIPE ends the process, so that `om | head` ends quietly; a broken connection must not.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            news.put(_Result(result=work(lambda: news.put(_CONNECTED))))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            news.put(_Result(error=error))
            raise SystemExit from None  # ends the thread silently

    deadline = time.monotonic() + seconds
    start_new_thread(run, ())  # unlike threading's, does not keep the process alive
    try:
        result = news.get(timeout=max(0.0, min(connect_within, seconds)))
    except Empty:
        raise (NotConnected if connect_within < seconds else Overdue) from None
    try:
        while result is _CONNECTED:
            result = news.get(timeout=max(0.0, deadline - time.monotonic()))
    except Empty:
        raise Overdue from None
    if result.error is not None:
        raise result.error
    return result.result  # type: ignore[return-value]
