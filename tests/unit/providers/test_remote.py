"""One deadline and three attempts, on a clock that is told the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from omcli.base.errors import Unreachable
from omcli.providers.remote import NotConnected, Overdue, RetryState, run_within
from omcli.providers.wire import RequestFailed


class Clock:
    """A clock that goes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def patience(clock: Clock, seconds: float = 60) -> RetryState:
    return RetryState(seconds=seconds, clock=lambda: clock.now, sleep=clock.sleep)


def passing(**fields: float) -> RequestFailed:
    return RequestFailed(Unreachable, "busy", **{"tries": 3, **fields})  # type: ignore[arg-type]


def test_delays_double_up_to_eight_seconds() -> None:
    """F73."""
    clock = Clock()
    asked = patience(clock)
    assert all(asked.sleep_after(passing(tries=6)) for _ in range(5))
    assert clock.waits == [1, 2, 4, 8, 8]


def test_the_third_failure_is_the_last() -> None:
    """F73."""
    asked = patience(Clock())
    assert [asked.sleep_after(passing()) for _ in range(3)] == [True, True, False]


def test_a_permanent_failure_is_not_retried() -> None:
    """F76."""
    clock = Clock()
    assert not patience(clock).sleep_after(RequestFailed(Unreachable, "no"))
    assert not clock.waits


@pytest.mark.parametrize(("retry_after", "waits"), [(7.0, True), (9.9, True), (10.0, False), (3600.0, False)])
def test_a_requested_delay_is_kept_within_the_deadline(retry_after: float, *, waits: bool) -> None:
    """F78."""
    clock = Clock()
    assert patience(clock, 10).sleep_after(passing(retry_after=retry_after)) is waits
    assert clock.waits == ([retry_after] if waits else [])


def test_one_deadline_covers_all_attempts() -> None:
    """F74."""
    clock = Clock()
    asked = patience(clock, 10)
    clock.now += 9.5
    assert asked.remaining == 0.5
    assert not asked.sleep_after(passing())
    clock.now += 5
    assert asked.remaining == 0


def test_a_missing_endpoint_is_retried_for_a_short_time_only() -> None:
    """F73: an endpoint that is down is told of in less than five seconds."""
    clock = Clock()
    asked = patience(clock)
    clock.now += 3.8
    assert not asked.sleep_after(passing(delay=0.5, within=4))


def test_the_result_of_the_work_is_returned() -> None:
    def work(alive: Callable[[], None]) -> int:
        alive()
        return 7

    assert run_within(work, seconds=60, connect_within=60) == 7


def test_the_error_of_the_work_is_raised() -> None:
    def fails(_alive: object) -> int:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_within(fails, seconds=60, connect_within=60)


@pytest.mark.parametrize(("gives_sign", "outcome"), [(True, Overdue), (False, NotConnected)])
def test_work_that_does_not_end_is_abandoned(gives_sign: bool, outcome: type[Exception]) -> None:
    """F74."""
    over = threading.Event()

    def work(alive: Callable[[], None]) -> None:
        if gives_sign:
            alive()
        over.wait(120)

    began = time.monotonic()
    with pytest.raises(outcome):
        run_within(work, seconds=2, connect_within=1.5)
    assert time.monotonic() - began < 60
    over.set()


def test_a_deadline_before_the_connection_counts_as_the_deadline() -> None:
    over = threading.Event()
    with pytest.raises(Overdue):
        run_within(lambda _alive: over.wait(20), seconds=0.1, connect_within=4)
    over.set()
