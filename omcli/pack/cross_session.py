"""Choosing the rows of other sessions that belong in a pack, and ranking them by importance and age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import e
from types import MappingProxyType

from omcli.memory.observation import (
    HIGH_FROM,
    PINNED,
    PROVISIONAL,
    SETTLED,
    TOOL_EVENTS,
    Kind,
    Observation,
    Priority,
    Source,
    Type,
)
from omcli.pack.salience import BIAS

_WEEK = 7.0
HALF_LIFE, TIME_CONSTANT = 2.0, e
"""Divisors of a row's score per week of age: 2 halves the score each week, and e reduces it faster."""
WEIGHTS: Mapping[Priority, int] = {Priority.HIGH: 3, Priority.MEDIUM: 2, Priority.LOW: 1}
# The current work of a session does not concern other sessions, whatever kind of row describes it.
_CURRENT_WORK = frozenset({Type.REQUEST, Type.TASK, Type.TODO_UPDATED, Type.TASK_DELEGATED})
_LASTING = frozenset({Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT})
_LASTING_IF_IMPORTANT = frozenset({Type.OUTCOME, Type.EVENT})
SHARED_TYPES = (*sorted(_LASTING | _LASTING_IF_IMPORTANT), Type.BLOCKER)
"""Types of observations that can pass `is_shared`."""


def is_shared(row: Observation, *, session: str | None) -> bool:
    """Return True if a row is visible, does not belong to `session`, and is worth showing in that session.

    Requests, tasks, delegated tasks and todos are never shared, nor are other tool events that rules folded, such as
    runs of a command. All other reflections, items and notes are. Observations are shared if they have a lasting type,
    but outcomes and events only if they are important, and blockers only until they are settled.
    """
    if not row.is_visible or row.type in _CURRENT_WORK or (row.session is not None and row.session == session):
        return False
    if row.kind is Kind.REFLECTION and row.source is Source.RULES and row.type in TOOL_EVENTS:
        return False
    if row.kind is not Kind.OBSERVATION or row.type in _LASTING:
        return True
    if row.type is Type.BLOCKER:
        return row.status not in SETTLED
    return row.type in _LASTING_IF_IMPORTANT and row.importance >= HIGH_FROM


def each_once(rows: Sequence[Observation], *, besides: Sequence[Observation] = ()) -> list[Observation]:
    """Return the rows without those whose text a row in `besides` has, and without duplicates by text.

    The mark of provisional rows is ignored.

    Of duplicates, the last row that is not an observation is kept, or the first one if all are observations.
    """
    said = {_bare_text(row) for row in besides}
    chosen: dict[str, Observation] = {}
    texts = [_bare_text(row) for row in rows]
    for row, text in zip(rows, texts, strict=True):
        if text not in said and (text not in chosen or row.kind is not Kind.OBSERVATION):
            chosen[text] = row
    return [row for row, text in zip(rows, texts, strict=True) if chosen.get(text) is row]


def _bare_text(row: Observation) -> str:
    """Return the text of a row without the mark of provisional rows."""
    return row.text.removesuffix(f" ({PROVISIONAL})")


def row_value(row: Observation, *, now: str, fading: float = HALF_LIFE) -> float:
    """Return the score of a row: `weight x bias x fading^(-age / 7 days)`.

    The age is the time since the row was last used or, if it was never used, since its date.
    """
    age = max(0.0, days(now) - days(row.last_used_at or row.dated))
    return float(WEIGHTS[row.priority] * BIAS.get(row.kind, 1.0) * fading ** (-age / _WEEK))


def by_value(
    rows: Sequence[Observation],
    *,
    now: str,
    fading: float = HALF_LIFE,
    matches: Mapping[str, float] = MappingProxyType({}),
) -> list[int]:
    """Return the indexes of rows, best first, as they rank in another session's pack.

    Pinned rows rank first, then those that match the task at hand, the best first, then rows by descending score. At
    equal scores notes rank first, then the lower id. `matches` maps the ids of matching rows to their degree of match.
    """

    def key(place: int) -> tuple[bool, float, float, bool, str]:
        row = rows[place]
        value = row_value(row, now=now, fading=fading)
        return (PINNED not in row.tags, -matches.get(row.id, 0), -value, row.kind is not Kind.NOTE, row.id)

    return sorted(range(len(rows)), key=key)


def days(at: str) -> float:
    """Convert an instant to days, for computing ages.

    The time zone is ignored because half a day does not matter here.
    """
    moment = datetime.fromisoformat(at.removesuffix("Z"))
    return moment.toordinal() + moment.hour / 24 + moment.minute / 1440 + moment.second / 86400
