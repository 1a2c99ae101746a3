"""Instants as text in one canonical form, so that they can be sorted and compared without parsing.

An instant is `YYYY-MM-DDTHH:MM:SS.mmmZ` (UTC, milliseconds). A local time whose zone is unknown has no `Z`. Zones are
never guessed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import inf

from omcli.base import lazily
from omcli.base.errors import BadUsage

# Bounds in seconds (1973 and 2286). A number has the unit in which it lies between them. Only one unit can fit.
_FIRST, _LAST = 1e8, 1e10
_UNITS = (1e3, 1e6, 1e9)
"""Milliseconds, microseconds and nanoseconds per second."""
_TOO_LATE = "9990"
"""First year that is not accepted as the current one, because leases and days must end before the year 10000."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The canonical form, which most programs write. Recognising it takes a third of the time of converting.
_CANONICAL = lazily(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII)
_DAY = lazily(r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-9]{2})")
_SHARED_START = lazily(r"^([0-9]{4}-(?:[0-9]{2}-)?)([0-9-]{2,5})/\1")
_MONTHS = "January February March April May June July August September October November December".split()


def instant(value: object) -> str | None:
    """Return a time from a transcript as a canonical instant, or None if it is not a time from 1970 to 9999.

    Accepts ISO 8601 text (with `Z`, an offset, or neither), and seconds since 1970, as a number or as text with at
    least nine digits before any decimal point. A number from 10^10 on counts as milliseconds, microseconds or
    nanoseconds, whichever gives a time from 1973 to 2286.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not (text.replace(".", "", 1).isdecimal() and text.isascii() and len(text.partition(".")[0]) >= 9):
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                return None
            return text if _CANONICAL.fullmatch(text) and moment.year >= 1970 else format_time(moment)
        value = float(text)
    elif not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    if 0 <= seconds < _LAST:
        return format_time(_EPOCH + timedelta(seconds=seconds))
    for unit in _UNITS:
        if _FIRST <= seconds / unit < _LAST:
            return format_time(_EPOCH + timedelta(seconds=seconds / unit))
    return None


def parse_time(now: str | None, *, option: str = "") -> str | None:
    """Return the instant that a user gave in place of the current time, or None if none was given.

    Raise BadUsage if it is not a valid time before the year 9990. `option` is the option's name, for the error message.
    """
    moment = None if now is None else instant(now)
    if now is not None and (moment is None or moment >= _TOO_LATE):
        raise BadUsage(f"`{option}{now}` is not a valid time", hint="an instant like 2026-01-28T09:30:00Z")
    return moment


def check_number(given: float | None, *, option: str = "", least: float = 0, most: float = inf) -> float | None:
    """Return a number of seconds that a user gave, if any. Raise BadUsage, naming `option`, if it is infinite, NaN or
    out of bounds.
    """
    if given is not None and not (least <= given <= most and given < inf):
        bounds = f"between {least:g} and {most:g}" if most < inf else f"from {least:g} up"
        raise BadUsage(f"`{option}{given:g}` is not a valid number of seconds (expected one {bounds})")
    return given


def utc_offset(value: object) -> int | None:
    """Return the UTC offset of a time in a transcript, in minutes east of UTC, or None if unknown.

    `Z` and `+00:00` count as unknown, because most programs write UTC regardless of their zone.
    """
    if not isinstance(value, str):
        return None
    try:
        offset = datetime.fromisoformat(value.strip()).utcoffset()
    except ValueError:
        return None
    return int(offset.total_seconds() // 60) or None if offset is not None else None


def later(at: str, seconds: float) -> str:
    """Return the time this many seconds after `at`."""
    return format_time(datetime.fromisoformat(at) + timedelta(seconds=seconds)) or at


def format_time(moment: datetime) -> str | None:
    """Return a datetime as an instant, without `Z` if it is naive. None if its year in UTC is not from 1970 to 9999."""
    zone = "" if moment.tzinfo is None else "Z"
    if zone:
        try:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            return None
    if moment.year < 1970:
        return None
    return f"{moment.isoformat(timespec='milliseconds')}{zone}"


def minute(at: str) -> str:
    """Return an instant as `YYYY-MM-DD HH:MM`."""
    return f"{at[:10]} {at[11:16]}"


def first_id(at: str) -> str:
    """Return the beginning of the lowest id that a row written at a time can have. Ids of earlier rows are lower."""
    moment = datetime.fromisoformat(f"{at.removesuffix('Z')}+00:00")
    digits = f"{max(0, int(moment.timestamp() * 1000)):012x}"
    return f"{digits[:8]}-{digits[8:]}"


def printed_date(date: str) -> str:
    """Return a date, or a range without the year and month that its end shares with its start: `2026-04-02 to 05`."""
    return _SHARED_START.sub(r"\1\2 to ", date).replace("/", " to ")


def has_date(text: str, date: str, *, at: str) -> bool:
    """Return True if a text contains a date or both ends of a range, also in words (`April 2`, `2nd of April`).

    The year may be missing in the text if it is that of the instant `at`.
    """
    for end in date.split("/"):
        if end in text:
            continue
        found = _DAY.fullmatch(end)
        if not found or (found["year"] not in text and not at.startswith(found["year"])):
            return False
        name = _MONTHS[int(found["month"]) - 1]
        month, day = rf"{name[:3]}(?:{name[3:]})?", rf"{int(found['day'])}(?:st|nd|rd|th)?"
        if not re.search(rf"\b(?:{month}\.? (?:the )?{day}|{day}\.? (?:of )?{month})\b", text, re.IGNORECASE):
            return False
    return True
