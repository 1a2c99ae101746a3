"""Which files are to be taken in now: those that have changed and are no longer written to, and none too often."""

from __future__ import annotations

from collections.abc import Mapping

from omcli.base.record import mutable_record

Stamp = tuple[int, ...]
"""What a file is told from its earlier and later states by."""


@mutable_record
class _Known:
    """What is known of a file; times are seconds on a clock that only measures durations."""

    looked: Stamp
    """As it was at the last look."""
    changed_at: float
    """When it was first seen to be other than what was taken in."""
    taken: Stamp | None = None
    """As it was when it was taken in last."""
    tried_at: float | None = None


class Pace:
    """Decides it, look by look.

    A file that is as it was at the look before is taken in; one that changes with every look is when `seconds` have
    passed, and none is more often than that. Its last state is taken in whatever happens: what is not taken in is due
    until it is.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._has_looked = False

    def due(self, looked: Mapping[str, Stamp], now: float) -> list[str]:
        """What is to be taken in of the files that there are; at the first look that is all of them."""
        self._known = {path: known for path, known in self._known.items() if path in looked}
        due = [path for path, stamp in looked.items() if self._is_due(path, stamp, now)]
        self._has_looked = True
        return due

    def took(self, path: str, stamp: Stamp, now: float) -> None:
        """Notes that a file was taken in, at least as it was at that look."""
        self._known[path].taken = stamp
        self._known[path].tried_at = now

    def tried(self, path: str, now: float) -> None:
        """Notes that a file could not be taken in now, whatever is in it."""
        self._known[path].tried_at = now

    def _is_due(self, path: str, stamp: Stamp, now: float) -> bool:
        known = self._known.get(path)
        if known is None:
            self._known[path] = _Known(looked=stamp, changed_at=now)
            return not self._has_looked
        is_settled, was_taken = stamp == known.looked, known.looked == known.taken
        known.looked = stamp
        if stamp == known.taken:
            return False
        if was_taken:
            known.changed_at = now
        since = known.tried_at if is_settled else max(known.changed_at, known.tried_at or known.changed_at)
        return since is None or now >= since + self._seconds
