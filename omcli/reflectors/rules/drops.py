"""Rows to drop: repeats of others, outdated states, and then the least important ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.observation import SETTLED, Dropped, Observation, Priority, Type
from omcli.pack.cross_session import days
from omcli.pack.salience import by_salience
from omcli.reflectors.rules.working_set import WorkingSet, is_kept
from omcli.text.phrases import AGENT, anchors, speaker
from omcli.text.terms import folded

_COMPARED_TYPES = frozenset(
    {Type.FACT, Type.OUTCOME, Type.PLAN, Type.DECISION, Type.EVENT, Type.REQUEST, Type.QUESTION}
)
_DATED_TYPES = frozenset({Type.EVENT, Type.FACT})
"""Types whose rows may occur again on another day in the same words."""
_STATE_TYPES = frozenset({Type.TASK, Type.TODO_UPDATED})
"""Types of which only the latest row is current."""
_COMPARED = 50
"""Most rows with the same names and numbers that a row is compared with."""
_FEWEST_WORDS = 4
"""Least words of a row for another one to repeat it."""
_LEAST_SHARED = 0.75
"""Least length of a row, as a share of the one that repeats it."""

_WORD = lazily(r"\w+(?:[-./:#@'’]+\w+)*")
_STOP_WORDS = frozenset("a an the is are was were be been am it this that i we you has have had just also now".split())
_NEGATIONS = frozenset("no not never none nothing neither nor without cannot can't".split())
_CLAUSE_ENDS = lazily(r" · |[.:;!?](?= |$)")


def repeated(rows: Sequence[Observation]) -> Iterator[Dropped]:
    """Yield rows that others repeat, each with the other's id. `rows` are oldest first.

    Of equal rows the most important stays, and of those the newest. Rows that differ in a number, a name, a negation
    or their day are different statements.
    """
    left: list[Observation] = []
    latest: dict[tuple[str, str | None, str | None], Observation] = {}
    newest = list(reversed(rows))
    newest.sort(key=lambda row: -row.priority.importance)
    for row in newest:
        if (same := latest.setdefault((row.text, *_day(row)), row)) is not row:
            yield Dropped(row=row.id, reason="duplicate", by=same.id)
        else:
            left.append(row)
    statements = [_Statement.of(row) for row in left if row.type in _COMPARED_TYPES]
    containing = _ClauseIndex(statements)
    kept: dict[tuple[object, ...], list[_Statement]] = defaultdict(list)
    for one in statements:
        alike = kept[one.names]
        by = next(
            (other for other in reversed(alike[-_COMPARED:]) if one.is_repeated_by(other)), None
        ) or containing.of(one)
        if by is None:
            alike.append(one)
        else:
            yield Dropped(row=one.row.id, reason="duplicate", by=by.row.id)


def stale(rows: Iterable[Observation], among: Iterable[Observation]) -> Iterator[Dropped]:
    """Yield all but the latest row of each state: the current task, and the list of todos.

    `rows` are all rows, oldest first; `among` those that may be dropped.
    """
    latest = {row.type: row for row in rows if row.type in _STATE_TYPES}
    for row in among:
        if row.type in _STATE_TYPES and row is not latest[row.type]:
            yield Dropped(row=row.id, reason="superseded", by=latest[row.type].id)


@record
class _Statement:
    """The parts of a row that are compared with others."""

    row: Observation
    names: tuple[object, ...]
    """Parts that must be equal: speaker, day, names, numbers and negations."""
    words: tuple[str, ...]
    """In order, normalised, without stop words."""

    @classmethod
    def of(cls, row: Observation) -> _Statement:
        words = _WORD.findall(row.text)
        named = [word for word in words if word != word.lower() or not word.isalpha()]
        negated = sum(word.lower() in _NEGATIONS or word.lower().endswith(("n't", "n’t")) for word in words)
        return cls(
            row=row,
            names=(row.type, speaker(row.text), *_day(row), frozenset((*named, *anchors(row.text))), negated),
            words=tuple(folded(word.lower()) for word in words if word.lower() not in _STOP_WORDS),
        )

    def is_repeated_by(self, other: _Statement) -> bool:
        """Return True if another row with the same names has all its words, in order, and few more."""
        if len(self.words) < _FEWEST_WORDS or len(self.words) < _LEAST_SHARED * len(other.words):
            return False
        rest = iter(other.words)
        return all(word in rest for word in self.words)


class _ClauseIndex:
    """Rows that contain others: `docs: link the guide` in `Committed 38a965e on main: docs: link the guide`."""

    def __init__(self, statements: Sequence[_Statement]) -> None:
        self._clauses = [_clauses(one.row.text) for one in statements]
        self._statements = statements
        self._places: dict[str, list[int]] = defaultdict(list)
        """Rows by clause."""
        for place, clauses in enumerate(self._clauses):
            for clause in set(clauses.strip("\n").split("\n")):
                self._places[clause].append(place)

    def of(self, one: _Statement) -> _Statement | None:
        """Return a row that contains an agent's row, if rows of no less importance contain all of its parts."""
        if not one.row.text.startswith(AGENT) or len(one.words) <= _FEWEST_WORDS:
            return None
        parts = one.row.text.removeprefix(AGENT).split(" · ")
        holders = [self._whole(one.row, _clauses(part)) for part in parts]
        return holders[0] if all(holders) else None

    def _whole(self, row: Observation, part: str) -> _Statement | None:
        rarest = min((self._places[clause] for clause in part.strip("\n").split("\n")), key=len)
        for place in rarest:
            if _may_cover(row, self._statements[place].row) and part in self._clauses[place]:
                return self._statements[place]
        return None


def _may_cover(part: Observation, whole: Observation) -> bool:
    """Return True if a row may contain another: it is more important, or longer. So no two rows contain each other."""
    ranks = part.priority.importance, whole.priority.importance
    return whole.type is not Type.PLAN and (ranks[0], len(part.text)) < (ranks[1], len(whole.text))


def _clauses(text: str) -> str:
    """Return a text in lower case with a line for every clause."""
    lines = (line.strip(" `*.").lower() for line in _CLAUSE_ENDS.sub("\n", text).split("\n"))
    return f"\n{chr(10).join(line for line in lines if line)}\n"


def _day(row: Observation) -> tuple[str | None, str | None]:
    """Return the day that a row is about."""
    return row.refers_to, row.dated[:10] if row.type in _DATED_TYPES and speaker(row.text) != "Agent" else None


_LOW_DAYS, _SETTLED_DAYS = 2, 3
_RECENT = 4
"""The newest row in this many is among the last to be dropped."""


def by_importance(working: WorkingSet, *, now: str) -> Iterator[Dropped]:
    """Yield rows to drop, the least important first.

    First rows of low priority and announcements older than two days, and settled medium ones older than three; then
    the same of any age; each oldest first. Then medium ones, the least informative first and the most recent last.
    Rows of high priority, open ones and those in force stay.
    """
    rows = list(working.rows.values())
    free = [row for row in rows if not (row.id in working.protected or is_kept(row) or row.is_in_force)]
    low = [row for row in free if row.priority is Priority.LOW or _is_preamble(row)]
    medium = [row for row in free if row.priority is Priority.MEDIUM]
    settled = [row for row in medium if row.status in SETTLED]
    old_low = [row for row in low if days(now) - days(row.dated) > _LOW_DAYS]
    old_settled = [row for row in settled if days(now) - days(row.dated) > _SETTLED_DAYS]
    gone: set[str] = set()
    for row in chain(old_low, old_settled, low, settled, _by_value(rows, medium)):
        if row.id not in gone:
            gone.add(row.id)
            yield Dropped(row=row.id, reason="resolved" if row.status in SETTLED else "trivial")


def _is_preamble(row: Observation) -> bool:
    """Return True if a row only announces what an agent does next: "Now the types after the options:"."""
    return row.priority is Priority.MEDIUM and row.text.startswith(AGENT) and row.text.endswith(":")


def _by_value(rows: list[Observation], among: list[Observation]) -> Iterator[Observation]:
    """Yield the least informative rows first, the newest last. Evaluated lazily.

    Ordered by age instead, packs of long chats folded to half of their rows answered an eighth fewer questions.
    """
    recent = {row.id for row in rows[len(rows) - len(rows) // _RECENT :]}
    wanted = {row.id for row in among}
    least = [rows[place] for place in reversed(list(by_salience(rows))) if rows[place].id in wanted]
    yield from sorted(least, key=lambda row: row.id in recent)
