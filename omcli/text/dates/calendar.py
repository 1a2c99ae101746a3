"""Days, weeks, months, quarters and years as text, and how one is reached from another.

A day is `YYYY-MM-DD`, a month `YYYY-MM`, a year `YYYY`; a week or a quarter is an interval as ISO 8601 writes it, from
its first day or month to its last: `2026-03-02/2026-03-08`, `2026-07/2026-09`. Years are 1970 to 9999, as for instants;
what lies outside is None. Weeks begin on Monday (ISO 8601).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, timedelta

_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_SUNDAY = 6
_NEAR = timedelta(days=61)
"""How far a day or month without a year may be: at this distance the other year's is five times as far."""


def day_of(at: str, utc_offset: int | None = None) -> date:
    """The day of an instant (`dates`) on the calendar of whoever lives there.

    `utc_offset` is in minutes east of UTC. Without it an instant in UTC is filed under UTC's day; one without zone is
    the wall clock's already.
    """
    moment = datetime.fromisoformat(at.removesuffix("Z"))
    if utc_offset and at.endswith("Z"):
        with suppress(OverflowError):  # in the last hours of the calendar
            moment += timedelta(minutes=utc_offset)
    return moment.date()


# ---- spelled


def day(of_year: int, of_month: int, number: int) -> str | None:
    """A day, or None where there is none such."""
    try:
        return _spelled(date(of_year, of_month, number))
    except ValueError:
        return None


def month(of_year: int, number: int) -> str | None:
    """A month; numbers below 1 and above 12 lead into other years."""
    years, index = divmod(of_year * 12 + number - 1, 12)
    return f"{years:04}-{index + 1:02}" if _FIRST_YEAR <= years <= _LAST_YEAR else None


def year(number: int) -> str | None:
    """A year."""
    return f"{number:04}" if _FIRST_YEAR <= number <= _LAST_YEAR else None


def quarter(of_year: int, number: int) -> str | None:
    """A quarter of the calendar year, by its first and last month; numbers beyond 1 to 4 lead into other years."""
    first, last = month(of_year, number * 3 - 2), month(of_year, number * 3)
    return f"{first}/{last}" if first and last else None


def last_day(stretch: str) -> str:
    """The last day of a day, month, quarter or year."""
    end = stretch.rpartition("/")[2]
    if len(end) == 4:
        return f"{end}-12-31"
    if len(end) == 7:
        return f"{end}-{_days(int(end[:4]), int(end[5:])):02}"
    return end


# ---- from today


def days_from(today: date, count: int) -> str | None:
    """The day so many days later, or earlier."""
    moved = _moved(today, count)
    return _spelled(moved) if moved else None


def week_from(today: date, count: int) -> str | None:
    """The week so many weeks later, from Monday to Sunday. None on Sundays, which for many begin a week."""
    if today.weekday() == _SUNDAY:
        return None
    return _stretch(today, 7 * count - today.weekday(), 6)


def weekend_from(today: date, count: int) -> str | None:
    """Saturday and Sunday: 0 is the weekend that goes on or comes next, -1 the one before.

    The next one (1) is, from Monday to Friday, the one that comes or the one after it: None.
    """
    goes_on = today.weekday() >= 5
    return None if count > 0 and not goes_on else _stretch(today, 5 - today.weekday() + 7 * count, 1)


def weekday_of_week(today: date, index: int, count: int) -> str | None:
    """A weekday (Monday is 0) of this week or of another: as both see it for whom weeks begin on Monday or Sunday."""
    return _agreed(_of_week(today, index, count))


def weekday_from(today: date, index: int, step: int) -> str | None:
    """The last (-1), this (0) or next (1) Monday (0) to Sunday (6), where everybody means the same day.

    Some take "next Friday" for the first Friday to come, some for the Friday of next week, and a week begins on Monday
    or on Sunday: the day is given where all of these agree. So on a Friday or Saturday, and else it is None. "This
    Friday" is the one of this week, unless it is over: then it may be the one to come.
    """
    if step:
        return _agreed({_nearest_weekday(today, index, step), *_of_week(today, index, step)})
    ahead = index - today.weekday()
    return days_from(today, ahead) if ahead >= 0 else None


def nearest_weekday(today: date, index: int, step: int) -> str | None:
    """The first such weekday after today (1) or the last one before (-1). None where it is today."""
    nearest = _nearest_weekday(today, index, step)
    return None if index == today.weekday() or nearest is None else _spelled(nearest)


def month_named(today: date, number: int, step: int) -> str | None:
    """Last (-1), this (0) or next (1) March, where everybody means the same: the nearest, and that of the year."""
    if not step:
        return month(today.year, number)
    nearest = next_month(today, number, step)
    return nearest if nearest == month(today.year + step, number) else None


def next_month(today: date, number: int, step: int) -> str | None:
    """The first such month after this one (1), or the last one before it (-1)."""
    is_past = (today.month - number) * step >= 0
    return month(today.year + step * is_past, number)


def near_month(today: date, number: int) -> str | None:
    """The month of that name which is at most two months away."""
    years = (today.year - 1, today.year, today.year + 1)
    near = (one for one in years if abs((one - today.year) * 12 + number - today.month) <= 2)
    return next((month(one, number) for one in near), None)


def near_day(today: date, of_month: int, number: int) -> str | None:
    """The day of that name which is at most two months away."""
    return next((_spelled(found) for found in _of_years(today, of_month, number) if abs(found - today) <= _NEAR), None)


def coming_day(today: date, of_month: int, number: int) -> str | None:
    """The first day of that name from today on."""
    return next((_spelled(found) for found in _of_years(today, of_month, number) if found >= today), None)


def day_with_weekday(today: date, of_month: int, number: int, index: int) -> str | None:
    """The day of that name, this year, last year or next, that is such a weekday; one at most is."""
    return next((_spelled(found) for found in _of_years(today, of_month, number) if found.weekday() == index), None)


def coming_date(today: date, number: int) -> str | None:
    """The first 15th (or other day of a month) after today. None where it is today, or the month is too short."""
    if number == today.day:
        return None
    years, index = divmod(today.year * 12 + today.month - 1 + (number < today.day), 12)
    return day(years, index + 1, number)


# ---- beneath


def _spelled(found: date) -> str | None:
    return found.isoformat() if found.year >= _FIRST_YEAR else None


def _moved(today: date, days: int) -> date | None:
    try:
        return today + timedelta(days=days)
    except OverflowError:
        return None


def _stretch(today: date, days: int, more: int) -> str | None:
    first, last = days_from(today, days), days_from(today, days + more)
    return f"{first}/{last}" if first and last else None


def _nearest_weekday(today: date, index: int, step: int) -> date | None:
    return _moved(today, step * ((step * (index - today.weekday()) - 1) % 7 + 1))


def _of_week(today: date, index: int, count: int) -> set[date | None]:
    from_monday = _moved(today, index - today.weekday() + 7 * count)
    from_sunday = _moved(today, (index + 1) % 7 - (today.weekday() + 1) % 7 + 7 * count)
    return {from_monday, from_sunday}


def _agreed(readings: set[date | None]) -> str | None:
    (found,) = readings if len(readings) == 1 else (None,)
    return _spelled(found) if found else None


def _of_years(today: date, of_month: int, number: int) -> list[date]:
    """The day of that name last year, this year and next, where the years have one."""
    found = []
    for years in (today.year - 1, today.year, today.year + 1):
        try:
            found.append(date(years, of_month, number))
        except ValueError:
            continue
    return found


def _days(year: int, month: int) -> int:
    """How many days a month has; what the standard library knows of it takes a millisecond to import."""
    return 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days
