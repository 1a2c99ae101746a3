"""The order in which rows leave sight where folding is not enough: what matters least, and longest ago, first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from omcli.memory.observation import SETTLED, Observation, Priority
from omcli.memory.roles import Dropped
from omcli.pack.cross_session import days
from omcli.pack.salience import most_telling
from omcli.reflectors.rules.sight import Sight, is_untouchable
from omcli.text.speakers import AGENT

_LOW_DAYS, _SETTLED_DAYS = 2, 3
_RECENT = 4
"""The newest one of so many rows are the last to go."""


def in_order(sight: Sight, *, now: str) -> Iterator[Dropped]:
    """Rows that may leave sight, the least needed first.

    Low ones, and what leads in to what was done, older than two days; medium ones that are settled and older than
    three; then such low ones, and settled ones, of any age: each the oldest first. Then medium ones, what says least
    that no other row says first, the most recent ones last. What is high, open or in force stays.
    """
    rows = list(sight.rows.values())
    free = [row for row in rows if not (row.id in sight.protected or is_untouchable(row) or row.is_in_force)]
    low = [row for row in free if row.priority is Priority.LOW or _leads_in(row)]
    medium = [row for row in free if row.priority is Priority.MEDIUM]
    settled = [row for row in medium if row.status in SETTLED]
    old_low = [row for row in low if days(now) - days(row.dated) > _LOW_DAYS]
    old_settled = [row for row in settled if days(now) - days(row.dated) > _SETTLED_DAYS]
    gone: set[str] = set()
    for row in chain(old_low, old_settled, low, settled, _by_worth(rows, medium)):
        if row.id not in gone:
            gone.add(row.id)
            yield Dropped(row=row.id, reason="resolved" if row.status in SETTLED else "trivial")


def _leads_in(row: Observation) -> bool:
    """Whether a row only says what an agent was about to do: "Now the types after the options:"."""
    return row.priority is Priority.MEDIUM and row.text.startswith(AGENT) and row.text.endswith(":")


def _by_worth(rows: list[Observation], among: list[Observation]) -> Iterator[Observation]:
    """What tells least first; the newest rows last. Computed when it is asked for.

    By age instead, packs of long chats folded to half of their rows answered an eighth fewer questions.
    """
    recent = {row.id for row in rows[len(rows) - len(rows) // _RECENT :]}
    wanted = {row.id for row in among}
    least = [rows[place] for place in reversed(list(most_telling(rows))) if rows[place].id in wanted]
    yield from sorted(least, key=lambda row: row.id in recent)
