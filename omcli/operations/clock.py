"""The clock of a run, and parsing of periods into times."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

from omcli.base import lazily
from omcli.base.errors import BadUsage
from omcli.text.instants import format_time, instant


class Clock:
    """The time. A pinned clock does not advance, so repeated runs print the same bytes, but `sleep` takes real time."""

    def __init__(self, pinned: str | None = None) -> None:
        """`pinned` is a time in ISO format, in UTC. None means the real time."""
        self._pinned = None if pinned is None else datetime.fromisoformat(f"{pinned.removesuffix('Z')}+00:00")

    def now(self) -> str:
        return self.after(0)

    def after(self, seconds: float) -> str:
        """Return the time this many seconds from now, but not before 1970. Negative seconds give a past time."""
        return format_time(self._moment() + timedelta(seconds=seconds)) or "1970-01-01T00:00:00.000Z"

    def milliseconds(self) -> int:
        """Return the milliseconds since 1970."""
        return int(self._moment().timestamp() * 1000)

    def monotonic(self) -> float:
        """Return seconds on a clock for measuring durations, which is never pinned."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _moment(self) -> datetime:
        return self._pinned or datetime.now(UTC)


_AGO = lazily(r"([0-9]{1,6}) ?(m|h|d|w|mo|y|(?:minute|hour|day|week|month|year)s?)")
_UNITS = {
    "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1),
    "mo": timedelta(days=30), "y": timedelta(days=365),
}  # fmt: skip
_WORDS = {"minute": "m", "hour": "h", "day": "d", "week": "w", "month": "mo", "year": "y"}
_DAY = lazily(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def period(since: str | None, until: str | None, *, now: str) -> tuple[str | None, str | None]:
    """Return the start of a period (inclusive) and its end (exclusive), each None if it is not given.

    Each is a day in UTC (`2026-01-28`; an end includes that day), a time (`2026-01-28T09:30Z`, UTC if no zone is given)
    or an age (such as `90m`, `12h`, `7d`, `2w`, `6mo` or `3 days`). Raise BadUsage for anything else, for a time that
    does not exist, and if the period does not start before it ends.
    """
    begins = None if since is None else _end(since, now=now, option="--since", days=0)
    ends = None if until is None else _end(until, now=now, option="--until", days=1)
    if begins and ends and begins >= ends:
        raise BadUsage(f"`--since {since}` is not before `--until {until}`")
    return begins, ends


def before(text: str, *, now: str, option: str) -> str:
    """Return the time that `text` names: the start of a day, a time, or an age before now. Raise BadUsage for anything
    else.
    """
    return _end(text, now=now, option=option, days=0)


def days(age: str) -> float:
    """Return an age (`3d`, `12h`) in days. Raise BadUsage if it is invalid."""
    found = _ago(age)
    if found is None:
        raise BadUsage(f"`{age}` is not a valid age", hint="like 90m, 12h, 3d, 2w, 6mo")
    return found / timedelta(days=1)


def _ago(text: str) -> timedelta | None:
    """Return the length of an age, or None if it is invalid. A month has 30 days, a year 365."""
    found = _AGO.fullmatch(text)
    return int(found[1]) * _UNITS[_WORDS.get(found[2].removesuffix("s"), found[2])] if found else None


def _end(text: str, *, now: str, option: str, days: int) -> str:
    found = None
    if (ago := _ago(text)) is not None:
        found = _before(now, ago)
    elif _DAY.fullmatch(text):
        found = _start_of_day(text, days)
    elif (moment := instant(text)) is not None and not text.isdecimal():
        found = f"{moment.removesuffix('Z')}Z"
    if found is None:
        raise BadUsage(
            f"`{option} {text}` is not a valid time",
            hint="a day (2026-01-28), an instant (2026-01-28T09:30Z) or an age (90m, 12h, 7d, 2w, 6mo, 1y)",
        )
    return found


def _start_of_day(day: str, later: int) -> str | None:
    try:
        midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), tzinfo=UTC)
        return format_time(midnight + timedelta(days=later))
    except (ValueError, OverflowError):
        return None


def _before(now: str, age: timedelta) -> str | None:
    try:
        return format_time(datetime.fromisoformat(f"{now.removesuffix('Z')}+00:00") - age)
    except OverflowError:
        return None


def id_at(milliseconds: int, randomness: int) -> str:
    """Return the UUIDv7 for a time and at least 74 random bits."""
    tail = 0x7 << 76 | (randomness >> 62 & 0xFFF) << 64 | 0b10 << 62 | randomness & (1 << 62) - 1
    digits = f"{(milliseconds & (1 << 48) - 1) << 80 | tail:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
