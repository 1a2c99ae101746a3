"""Instants: one spelling for every way in which transcripts write a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.text.instants import format_time, has_date, instant, minute, printed_date, utc_offset


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-25T10:47:18.908Z", "2026-01-25T10:47:18.908Z"),
        ("2026-01-25T10:47:18Z", "2026-01-25T10:47:18.000Z"),
        ("2026-01-25T12:47:18.908123+02:00", "2026-01-25T10:47:18.908Z"),
        ("2026-01-25 10:47:18", "2026-01-25T10:47:18.000"),
        ("2026-01-25", "2026-01-25T00:00:00.000"),
        (1769338038, "2026-01-25T10:47:18.000Z"),
        (1769338038.908, "2026-01-25T10:47:18.908Z"),
        (1769338038908, "2026-01-25T10:47:18.908Z"),
        (1769338038908000, "2026-01-25T10:47:18.908Z"),
        (1769338038908000000, "2026-01-25T10:47:18.908Z"),
        ("1769338038.908", "2026-01-25T10:47:18.908Z"),
        ("1769338038908", "2026-01-25T10:47:18.908Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_every_spelling_of_a_time_becomes_one(written: object, expected: str) -> None:
    """F70, formats.md §0.7: ISO with and without zone, seconds, milliseconds, microseconds."""
    assert instant(written) == expected


@pytest.mark.parametrize(
    "written",
    [None, True, "", "yesterday", "12:03", -1, float("nan"), float("inf"), 10**400, "1969-12-31T23:59:59Z", [], {},
     "9999-12-31T23:59:59-14:00", "2026-02-31T00:00:00Z"],
)  # fmt: skip
def test_what_is_no_time_is_none(written: object) -> None:
    """F70: nothing is guessed."""
    assert instant(written) is None


@pytest.mark.parametrize(
    "number", [1e308, 99999999999999999999, "99999999999999999999", 2e10, 2e13, 2e16, 2e19, "9" * 400]
)
def test_a_number_that_is_no_plausible_time_in_any_unit_is_none(number: object) -> None:
    """F70: neither seconds, milliseconds, microseconds nor nanoseconds since 1970."""
    assert instant(number) is None


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_instants_sort_like_the_times_they_name(moment: datetime) -> None:
    later = moment.replace(tzinfo=UTC)
    first = format_time(datetime(1970, 1, 1, tzinfo=UTC))
    spelt = format_time(later)
    assert first is not None
    assert spelt is not None
    assert first < spelt
    assert instant(spelt) == spelt


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary()))
def test_nothing_that_is_written_raises(written: object) -> None:
    assert instant(written) is None or isinstance(instant(written), str)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-25T12:47:18+02:00", 120),
        ("2026-01-25 12:47:18-0330", -210),
        ("2026-01-25T12:47:18Z", None),
        ("2026-01-25T12:47:18+00:00", None),
        ("2026-01-25T12:47:18", None),
        ("noon", None),
        (1769338038, None),
        (None, None),
    ],
)
def test_a_zone_is_known_where_it_is_written_with_the_time(written: object, expected: int | None) -> None:
    """F70: UTC is how programs write times of any zone."""
    assert utc_offset(written) == expected


def test_a_row_is_dated_to_the_minute() -> None:
    """T26."""
    assert minute("2026-01-25T10:47:18.908Z") == "2026-01-25 10:47"


@pytest.mark.parametrize(
    ("text", "date", "expected"),
    [
        ("due 2026-04-02", "2026-04-02", True),
        ("due on April 2", "2026-04-02", True),
        ("due on Apr. 2nd, 2026", "2026-04-02", True),
        ("due on the 2nd of april", "2026-04-02", True),
        ("from 2 April to 5 April", "2026-04-02/2026-04-05", True),
        ("from 2 to 5 April", "2026-04-02/2026-04-05", False),
        ("due on April 20", "2026-04-02", False),
        ("due on April 2", "2025-04-02", False),
        ("due on April 2, 2025", "2025-04-02", True),
        ("it may be", "2026-05", False),
        ("due tomorrow", "2026-04-02", False),
        ("due then", "then or later", False),
    ],
)
def test_a_date_is_found_as_it_is_spoken(text: str, date: str, expected: bool) -> None:
    """XB10, S0.29: digits, or an English month with the day."""
    assert has_date(text, date, at="2026-03-10T09:00:00.000Z") is expected


@pytest.mark.parametrize(
    ("date", "printed"),
    [
        ("2026-04-02", "2026-04-02"),
        ("2026-04-02/2026-04-05", "2026-04-02 to 05"),
        ("2026-04-28/2026-05-02", "2026-04-28 to 05-02"),
        ("2026-01/2026-03", "2026-01 to 03"),
        ("2025-12-29/2026-01-04", "2025-12-29 to 2026-01-04"),
        ("2025/2026", "2025 to 2026"),
    ],
)
def test_a_range_says_the_year_and_month_that_its_ends_share_once(date: str, printed: str) -> None:
    """XC11: a date costs room in every pack."""
    assert printed_date(date) == printed
