"""The date a row speaks of: as a model gave it, with what the closed grammar of dates has to say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from omcli.memory import calendar
from omcli.memory.message import Message, Role
from omcli.memory.patterns import lazily
from omcli.memory.record import record
from omcli.memory.spoken_dates import spoken_date

_DAY = lazily(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MONTH = lazily(r"([0-9]{4})-(0[1-9]|1[0-2])")
_SAID = frozenset({Role.USER, Role.ASSISTANT})
_REMEMBERED = 512
"""Messages whose dates are remembered: the rows of a reply cite the same ones."""


@record
class Spoken:
    """What a row speaks of."""

    date: str | None
    """As `calendar` spells it."""
    is_unreal: bool = False
    """Whether the model gave something that is no date."""
    is_other: bool = False
    """Whether the grammar reads another one in the row or in what was said."""


def spoken_of(text: str, given: str, messages: Sequence[Message]) -> Spoken:
    """The date a row speaks of. The model's counts where it gave one, else what the grammar reads in the row itself."""
    date = _real(given)
    # Of one day the reading is one.
    days = {(message.at and calendar.day_of(message.at, message.utc_offset)): message for message in messages}
    of_row = {spoken_date(text, at=message.at, utc_offset=message.utc_offset) for message in days.values()}
    if date is None:
        return Spoken(date=of_row.pop() if len(of_row) == 1 else None, is_unreal=bool(given))
    said = (message for message in messages if message.role in _SAID)
    readings = (of_row | {_of_message(message) for message in said}) - {None}
    return Spoken(date=date, is_other=bool(readings) and not any(_agree(date, reading or "") for reading in readings))


@lru_cache(maxsize=_REMEMBERED)
def _of_message(message: Message) -> str | None:
    return spoken_date(message.text, at=message.at, utc_offset=message.utc_offset)


def _real(given: str) -> str | None:
    if found := _DAY.fullmatch(given):
        return calendar.day(*map(int, found.groups()))
    if found := _MONTH.fullmatch(given):
        return calendar.month(*map(int, found.groups()))
    return None


def _agree(date: str, reading: str) -> bool:
    """Whether two dates may be the same: one lies within the other."""
    first, _, last = reading.partition("/")
    last = last or first
    return first[: len(date)] <= date[: len(first)] and date[: len(last)] <= last[: len(date)]
