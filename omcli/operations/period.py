"""When something was: what people write for the two ends of a period, as instants."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from omcli.memory.dates import instant, spell
from omcli.memory.errors import BadUsage

_AGO = re.compile(r"([0-9]{1,6})(m|h|d|w)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def period(since: str | None, until: str | None, *, now: str) -> tuple[str | None, str | None]:
    """The instants a period begins at and ends before.

    Each end is a day (`2026-01-28`, from its first to its last millisecond, UTC), an instant (`2026-01-28T09:30Z`,
    UTC where it names no zone) or an age (`90m`, `12h`, `7d`, `2w`). Raises BadUsage for what is none of these, for
    days that do not exist, and for a period that has ended when it begins.
    """
    begins = None if since is None else _end(since, now=now, option="--since", days=0)
    ends = None if until is None else _end(until, now=now, option="--until", days=1)
    if begins and ends and begins >= ends:
        raise BadUsage(f"`--since {since}` is not before `--until {until}`")
    return begins, ends


def days(age: str) -> float:
    """An age (`3d`, `12h`) in days. Raises BadUsage."""
    found = _AGO.fullmatch(age)
    if found is None:
        raise BadUsage(f"`{age}` is no age", hint="like 90m, 12h, 3d, 2w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) / timedelta(days=1)


def _end(text: str, *, now: str, option: str, days: int) -> str:
    found = None
    if ago := _AGO.fullmatch(text):
        found = _before(now, timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
    elif _DAY.fullmatch(text):
        found = _midnight(text, days)
    elif (moment := instant(text)) is not None and not text.isdecimal():
        found = f"{moment.removesuffix('Z')}Z"
    if found is None:
        raise BadUsage(
            f"`{option} {text}` is no time",
            hint="a day (2026-01-28), an instant (2026-01-28T09:30Z) or an age (90m, 12h, 7d, 2w)",
        )
    return found


def _midnight(day: str, later: int) -> str | None:
    try:
        midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), tzinfo=UTC)
        return spell(midnight + timedelta(days=later))
    except (ValueError, OverflowError):
        return None


def _before(now: str, age: timedelta) -> str | None:
    try:
        return spell(datetime.fromisoformat(f"{now.removesuffix('Z')}+00:00") - age)
    except OverflowError:
        return None
