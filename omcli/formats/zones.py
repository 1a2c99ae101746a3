"""The zone of a transcript's times, where it names one: how far its clocks were from UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


def offset_at(zone: str | None, at: str | None) -> int | None:
    """Minutes east of UTC in a zone (`Europe/Berlin`) at an instant in UTC; None where either is unknown.

    Which zones are known is up to the system's database.
    """
    place = _place(zone) if zone and at and at.endswith("Z") else None
    if place is None or at is None:
        return None
    try:
        offset = datetime.fromisoformat(at).astimezone(UTC).astimezone(place).utcoffset()
    except OverflowError:  # the last hours of the calendar
        return None
    return int(offset.total_seconds() // 60) if offset is not None else None


@cache
def _place(zone: str) -> ZoneInfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few transcripts name a zone

    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, no name of a zone, a folder of zones
        return None
