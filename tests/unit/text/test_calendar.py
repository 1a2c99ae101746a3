"""Days, weeks, months and quarters, and the readings on which everybody agrees."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.text import calendar

DAYS = st.dates(date(1971, 1, 1), date(9998, 12, 31))


@pytest.mark.parametrize(
    ("stretch", "expected"),
    [
        ("2026", "2026-12-31"),
        ("2026-02", "2026-02-28"),
        ("2028-02", "2028-02-29"),
        ("2026-02-03", "2026-02-03"),
        ("2026-04/2026-06", "2026-06-30"),
        ("2026-03-02/2026-03-08", "2026-03-08"),
    ],
)
def test_every_stretch_has_a_last_day(stretch: str, expected: str) -> None:
    assert calendar.last_day(stretch) == expected


@pytest.mark.parametrize(("count", "expected"), [(0, "2025-12"), (1, "2026-01"), (13, "2027-01"), (-12, "2024-12")])
def test_months_are_counted_across_years(count: int, expected: str) -> None:
    assert calendar.month(2026, count) == expected


def test_what_lies_outside_the_calendar_is_none() -> None:
    """F70: years as for instants."""
    first, last = date(1970, 1, 1), date(9999, 12, 31)
    assert calendar.days_from(first, -1) is None
    assert calendar.days_from(last, 1) is None
    assert calendar.days_from(last, 10**12) is None
    assert calendar.month(1970, 0) is None
    assert calendar.year(10_000) is None
    assert calendar.quarter(9999, 5) is None
    assert calendar.week_from(last, 0) is None
    assert calendar.weekday_from(last, 0, 1) is None


@given(DAYS, st.integers(-3, 3))
def test_a_week_is_seven_days_from_monday_and_the_day_lies_in_its_own(day: date, count: int) -> None:
    found = calendar.week_from(day, count)
    assert (found is None) == (day.weekday() == 6)
    if found:
        first, last = map(date.fromisoformat, found.split("/"))
        assert (first.weekday(), last - first) == (0, timedelta(6))
        assert first <= day + timedelta(7 * count) <= last


@given(DAYS, st.integers(0, 6), st.sampled_from([-1, 1]))
def test_last_and_next_weekday_are_given_only_where_the_nearest_is_the_one_of_that_week(
    day: date, index: int, step: int
) -> None:
    """S0.29: the first Friday to come, or the Friday of next week, whichever day its weeks begin on."""
    found = calendar.weekday_from(day, index, step)
    nearest = next(day + timedelta(step * n) for n in range(1, 8) if (day + timedelta(step * n)).weekday() == index)
    from_monday = day - timedelta(day.weekday()) + timedelta(7 * step + index)
    from_sunday = day - timedelta(day.isoweekday() % 7) + timedelta(7 * step + (index + 1) % 7)
    agree = nearest == from_monday == from_sunday
    assert found == (nearest.isoformat() if agree else None)


def test_on_a_wednesday_next_friday_is_open_and_next_tuesday_is_not() -> None:
    wednesday = date(2026, 3, 11)
    assert [calendar.weekday_from(wednesday, index, 1) for index in (1, 4)] == ["2026-03-17", None]
