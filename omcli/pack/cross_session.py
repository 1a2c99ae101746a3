"""Rows of other sessions in a pack: the choice of those to share, and their order by importance and age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import e

from omcli.memory.observation import PINNED, SETTLED, Kind, Observation, Priority, Type
from omcli.pack.salience import BIAS

_WEEK = 7.0
HALF_LIFE, TIME_CONSTANT = 2.0, e
"""Divisors of a row's score per week of age: 2 halves it each week, e fades it faster."""
WEIGHTS: Mapping[Priority, int] = {Priority.HIGH: 3, Priority.MEDIUM: 2, Priority.LOW: 1}
# Current work of one session does not concern another, whatever kind of row describes it.
_CURRENT_WORK = frozenset({Type.REQUEST, Type.TASK, Type.TODO_UPDATED, Type.TASK_DELEGATED})
_LASTING = frozenset({Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT})
_LASTING_IF_HIGH = frozenset({Type.OUTCOME, Type.EVENT})
SHARED_TYPES = (*sorted(_LASTING | _LASTING_IF_HIGH), Type.BLOCKER)
"""Types of observations that `is_shared` may accept."""


def is_shared(row: Observation, *, session: str | None) -> bool:
    """Return True if a visible row of another session is a lasting fact, which concerns `session` too.

    Reflections, items and notes are always lasting, observations only if of certain types; a blocker is until it is
    settled. Requests and tasks are never shared.
    """
    if not row.is_visible or row.type in _CURRENT_WORK or (row.session is not None and row.session == session):
        return False
    if row.kind is not Kind.OBSERVATION or row.type in _LASTING:
        return True
    if row.type is Type.BLOCKER:
        return row.status not in SETTLED
    return row.type in _LASTING_IF_HIGH and row.priority is Priority.HIGH


def each_once(rows: Sequence[Observation], *, besides: Sequence[Observation] = ()) -> list[Observation]:
    """Remove rows with the same text as another, or as a row in `besides`. Items are kept rather than observations."""
    said = {row.text for row in besides}
    chosen: dict[str, Observation] = {}
    for row in rows:
        if row.text not in said and (row.text not in chosen or row.kind is not Kind.OBSERVATION):
            chosen[row.text] = row
    return [row for row in rows if chosen.get(row.text) is row]


def row_value(row: Observation, *, now: str, fading: float = HALF_LIFE) -> float:
    """Return `weight x bias x fading^(-age / 7 days)`, with the age since the row was last used, or else dated."""
    age = max(0.0, days(now) - days(row.last_used_at or row.dated))
    return float(WEIGHTS[row.priority] * BIAS.get(row.kind, 1.0) * fading ** (-age / _WEEK))


def by_value(rows: Sequence[Observation], *, now: str, fading: float = HALF_LIFE) -> list[int]:
    """Return indexes of rows in the order of their rank in another session's pack.

    Pinned rows come first, then the highest scores. At equal scores notes come first, then the lower id.
    """

    def key(place: int) -> tuple[bool, float, bool, str]:
        row = rows[place]
        return (PINNED not in row.tags, -row_value(row, now=now, fading=fading), row.kind is not Kind.NOTE, row.id)

    return sorted(range(len(rows)), key=key)


def days(at: str) -> float:
    """Return an instant in days, to compute ages. Its zone is ignored: half a day does not matter here."""
    moment = datetime.fromisoformat(at.removesuffix("Z"))
    return moment.toordinal() + moment.hour / 24 + moment.minute / 1440 + moment.second / 86400
