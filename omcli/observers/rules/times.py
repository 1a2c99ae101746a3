"""Which day, month or year a row of what was said speaks of, by its words and when its messages were said."""

from __future__ import annotations

from omcli.memory.message import KeptMessage
from omcli.memory.observation import Type
from omcli.memory.spoken_dates import spoken_date


def spoken_of(text: str, kind: Type, *sources: KeptMessage | None) -> str | None:
    """What a row speaks of (`spoken_date`), where all its messages agree: midnight may lie between a question and its
    answer. None for events, whose texts are commands."""
    if kind is Type.EVENT:
        return None
    said = (source.message for source in sources if source is not None)
    readings = {spoken_date(text, at=message.at, utc_offset=message.utc_offset) for message in said}
    return readings.pop() if len(readings) == 1 else None
