"""The time of a run: real, or pinned with `--now`."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from omcli.text.instants import spell


class Clock:
    """Tells the time. A pinned clock stands still, so that a run can be repeated to the byte; waiting stays real."""

    def __init__(self, pinned: str | None = None) -> None:
        """`pinned` is an instant (`memory.dates`); without a zone it is taken as UTC."""
        self._pinned = None if pinned is None else datetime.fromisoformat(f"{pinned.removesuffix('Z')}+00:00")

    def now(self) -> str:
        """The current instant."""
        return self.later(0)

    def later(self, seconds: float) -> str:
        """The instant some seconds from now; negative seconds lie in the past."""
        return spell(self._moment() + timedelta(seconds=seconds)) or "1970-01-01T00:00:00.000Z"

    def milliseconds(self) -> int:
        """Milliseconds since 1970."""
        return int(self._moment().timestamp() * 1000)

    def monotonic(self) -> float:
        """Seconds on a clock that only measures durations; never pinned."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    def _moment(self) -> datetime:
        return self._pinned or datetime.now(UTC)
