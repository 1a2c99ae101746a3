"""Arithmetic on days, weeks, months, quarters and years, spelled as text.

A day is `YYYY-MM-DD`, a month `YYYY-MM`, a year `YYYY`; a week or a quarter is an ISO 8601 interval, from its first day
or month to its last: `2026-03-02/2026-03-08`, `2026-07/2026-09`. Functions return None for years outside 1970 to 9999,
as for instants. Weeks begin on Monday (ISO 8601).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, timedelta

_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_SUNDAY = 6
_NEAR = timedelta(days=61)
"""Largest distance from today for a day without a year; the same day in another year is five times as far."""


def day_of(at: str, utc_offset: int | None = None) -> date:
    """Return the local day of an instant (`instants`).

    `utc_offset` is in minutes east of UTC. Without it, the day is that of UTC. Instants without a zone are already
    local.
    """
    moment = datetime.fromisoformat(at.removesuffix("Z"))
    if utc_offset and at.endswith("Z"):
        with suppress(OverflowError):  # in the last hours of the calendar
            moment += timedelta(minutes=utc_offset)
    return moment.date()


# ---- spelled


def day(of_year: int, of_month: int, number: int) -> str | None:
    """Return a day; None if it does not exist."""
    try:
        return _text(date(of_year, of_month, number))
    except ValueError:
        return None


def month(of_year: int, number: int) -> str | None:
    """Return a month; numbers below 1 and above 12 are months of other years."""
    years, index = divmod(of_year * 12 + number - 1, 12)
    return f"{years:04}-{index + 1:02}" if _FIRST_YEAR <= years <= _LAST_YEAR else None


def year(number: int) -> str | None:
    """Return a year, four digits."""
    return f"{number:04}" if _FIRST_YEAR <= number <= _LAST_YEAR else None


def quarter(of_year: int, number: int) -> str | None:
    """Return a quarter of the calendar year; numbers below 1 and above 4 are quarters of other years."""
    first, last = month(of_year, number * 3 - 2), month(of_year, number * 3)
    return f"{first}/{last}" if first and last else None


def last_day(stretch: str) -> str:
    """Return the last day of a day, month, quarter or year."""
    end = stretch.rpartition("/")[2]
    if len(end) == 4:
        return f"{end}-12-31"
    if len(end) == 7:
        return f"{end}-{_days(int(end[:4]), int(end[5:])):02}"
    return end


# ---- from today


def days_from(today: date, count: int) -> str | None:
    """Return the day `count` days later, or earlier if negative."""
    moved = _moved(today, count)
    return _text(moved) if moved else None


def week_from(today: date, count: int) -> str | None:
    """Return the week `count` weeks later, from Monday to Sunday; None on a Sunday, when weeks are ambiguous."""
    if today.weekday() == _SUNDAY:
        return None
    return _day_range(today, 7 * count - today.weekday(), 6)


def weekend_from(today: date, count: int) -> str | None:
    """Return a Saturday and Sunday: 0 is the current or coming weekend, -1 the one before.

    From Monday to Friday "next weekend" (1) is ambiguous, so the result is None.
    """
    goes_on = today.weekday() >= 5
    return None if count > 0 and not goes_on else _day_range(today, 5 - today.weekday() + 7 * count, 1)


def weekday_of_week(today: date, index: int, count: int) -> str | None:
    """Return a weekday (Monday is 0) of the week `count` weeks later; None if it depends on a week's first day."""
    return _only_day(_of_week(today, index, count))


def weekday_from(today: date, index: int, step: int) -> str | None:
    """Return the last (-1), this (0) or next (1) weekday (Monday is 0); None if readings disagree.

    "Next Friday" may be the coming Friday or the Friday of next week, and weeks may begin on Monday or Sunday, so it is
    unambiguous only on a Friday or Saturday. "This Friday" is that of this week; None if it has passed, since the
    speaker may mean the coming one.
    """
    if step:
        return _only_day({_nearest_weekday(today, index, step), *_of_week(today, index, step)})
    ahead = index - today.weekday()
    return days_from(today, ahead) if ahead >= 0 else None


def nearest_weekday(today: date, index: int, step: int) -> str | None:
    """Return the first such weekday after today (1), or the last one before (-1); None if today is one."""
    nearest = _nearest_weekday(today, index, step)
    return None if index == today.weekday() or nearest is None else _text(nearest)


def month_named(today: date, number: int, step: int) -> str | None:
    """Return last (-1), this (0) or next (1) March, for example; None unless the nearest one is in that year."""
    if not step:
        return month(today.year, number)
    nearest = next_month(today, number, step)
    return nearest if nearest == month(today.year + step, number) else None


def next_month(today: date, number: int, step: int) -> str | None:
    """Return the first such month after this one (1), or the last one before it (-1)."""
    is_past = (today.month - number) * step >= 0
    return month(today.year + step * is_past, number)


def near_month(today: date, number: int) -> str | None:
    """Return the month with that number that is within two months of today, if any."""
    years = (today.year - 1, today.year, today.year + 1)
    near = (one for one in years if abs((one - today.year) * 12 + number - today.month) <= 2)
    return next((month(one, number) for one in near), None)


def near_day(today: date, of_month: int, number: int) -> str | None:
    """Return the day of that month and number that is within 61 days of today, if any."""
    return next((_text(found) for found in _in_each_year(today, of_month, number) if abs(found - today) <= _NEAR), None)


def next_day(today: date, of_month: int, number: int) -> str | None:
    """Return the first such day from today on."""
    return next((_text(found) for found in _in_each_year(today, of_month, number) if found >= today), None)


def day_with_weekday(today: date, of_month: int, number: int, index: int) -> str | None:
    """Return the day in last, this or next year that falls on the given weekday; at most one does."""
    return next((_text(found) for found in _in_each_year(today, of_month, number) if found.weekday() == index), None)


def next_date(today: date, number: int) -> str | None:
    """Return the first day with this number after today; None if today has it, or the month is too short."""
    if number == today.day:
        return None
    years, index = divmod(today.year * 12 + today.month - 1 + (number < today.day), 12)
    return day(years, index + 1, number)


# ---- beneath


def _text(found: date) -> str | None:
    return found.isoformat() if found.year >= _FIRST_YEAR else None


def _moved(today: date, days: int) -> date | None:
    try:
        return today + timedelta(days=days)
    except OverflowError:
        return None


def _day_range(today: date, days: int, more: int) -> str | None:
    first, last = days_from(today, days), days_from(today, days + more)
    return f"{first}/{last}" if first and last else None


def _nearest_weekday(today: date, index: int, step: int) -> date | None:
    return _moved(today, step * ((step * (index - today.weekday()) - 1) % 7 + 1))


def _of_week(today: date, index: int, count: int) -> set[date | None]:
    from_monday = _moved(today, index - today.weekday() + 7 * count)
    from_sunday = _moved(today, (index + 1) % 7 - (today.weekday() + 1) % 7 + 7 * count)
    return {from_monday, from_sunday}


def _only_day(readings: set[date | None]) -> str | None:
    (found,) = readings if len(readings) == 1 else (None,)
    return _text(found) if found else None


def _in_each_year(today: date, of_month: int, number: int) -> list[date]:
    """Return that day in last, this and next year, where it exists."""
    found = []
    for years in (today.year - 1, today.year, today.year + 1):
        try:
            found.append(date(years, of_month, number))
        except ValueError:
            continue
    return found


def _days(year: int, month: int) -> int:
    """Return the days in a month. Python's `calendar` takes a millisecond to import."""
    return 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days
