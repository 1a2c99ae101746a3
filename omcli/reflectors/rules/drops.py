"""Rows to drop: repeated rows, outdated states, and then the least important rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from omcli.base import lazily
from omcli.base.record import record
from omcli.llm.schema import rules_of_user
from omcli.memory.observation import SETTLED, Dropped, Observation, Priority, Type
from omcli.pack.cross_session import days
from omcli.pack.salience import by_salience
from omcli.reflectors.rules.working_set import WorkingSet, is_kept
from omcli.text.phrases import AGENT, anchors, speaker
from omcli.text.terms import NEGATION, folded

_COMPARED_TYPES = frozenset(
    {Type.FACT, Type.OUTCOME, Type.PLAN, Type.DECISION, Type.EVENT, Type.REQUEST, Type.QUESTION}
)
_DATED_TYPES = frozenset({Type.EVENT, Type.FACT})
"""Types of rows that may occur again on another day with the same wording."""
_STATE_TYPES = frozenset({Type.TASK, Type.TODO_UPDATED})
"""Types of rows that describe a state, so that only the latest row is current."""
_COMPARED = 50
"""Maximum number of rows with the same names and numbers to compare a row with."""
_FEWEST_WORDS = 4
"""Minimum number of words a row must have to count as repeated by another."""
_LEAST_SHARED = 0.75
"""Minimum number of words in a repeated row, as a share of those in the row that repeats it."""

_WORD = lazily(r"\w+(?:[-./:#@'’]+\w+)*")
_STOP_WORDS = frozenset("a an the is are was were be been am it this that i we you has have had just also now".split())
_CLAUSE_ENDS = lazily(r" · |[.:;!?](?= |$)")


def repeated(rows: Sequence[Observation]) -> Iterator[Dropped]:
    """Yield the rows that another row repeats, each with the id of that row. `rows` is oldest first.

    Of identical rows the most important is kept, or the newest of equally important ones. Rows that differ in a detail
    such as a number, a name, a negation or their day do not repeat each other.
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
    """Yield all rows but the latest for each state, such as the current task or the todo list.

    `rows` is all rows, oldest first. `among` is the rows that may be dropped.
    """
    latest = {row.type: row for row in rows if row.type in _STATE_TYPES}
    for row in among:
        if row.type in _STATE_TYPES and row is not latest[row.type]:
            yield Dropped(row=row.id, reason="superseded", by=latest[row.type].id)


@record
class _Statement:
    row: Observation
    names: tuple[object, ...]
    """Parts that must be equal: type, speaker, day, names, numbers, the number of negations, and if a person ruled it.
    """
    words: tuple[str, ...]
    """Normalised words in order, without stop words."""

    @classmethod
    def of(cls, row: Observation) -> _Statement:
        words = _WORD.findall(row.text)
        named = [word for word in words if word != word.lower() or not word.isalpha()]
        negated = sum(NEGATION.match(word) is not None for word in words)
        return cls(
            row=row,
            names=(
                row.type,
                speaker(row.text),
                *_day(row),
                frozenset((*named, *anchors(row.text))),
                negated,
                bool(rules_of_user(row)),
            ),
            words=tuple(folded(word.lower()) for word in words if word.lower() not in _STOP_WORDS),
        )

    def is_repeated_by(self, other: _Statement) -> bool:
        """Return True if another row with the same names contains all words of this row, in order, and few others."""
        if len(self.words) < _FEWEST_WORDS or len(self.words) < _LEAST_SHARED * len(other.words):
            return False
        rest = iter(other.words)
        return all(word in rest for word in self.words)


class _ClauseIndex:
    """Finds rows that contain the clauses of another row.

    For example, `Committed 38a965e on main: docs: link the guide` contains `docs: link the guide`.
    """

    def __init__(self, statements: Sequence[_Statement]) -> None:
        self._clauses = [_clauses(one.row.text) for one in statements]
        self._statements = statements
        self._places: dict[str, list[int]] = defaultdict(list)
        """Positions in `statements` of the rows with each clause."""
        for place, clauses in enumerate(self._clauses):
            for clause in set(clauses.strip("\n").split("\n")):
                self._places[clause].append(place)

    def of(self, one: _Statement) -> _Statement | None:
        """Return the row that contains the first part of an agent's row.

        Return None if the row is not an agent's, if it is short, or if one of its parts is in no row that may cover it.
        """
        if not one.row.text.startswith(AGENT) or len(one.words) < _FEWEST_WORDS:
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
    """Return True if `whole` may make `part` redundant. It must be more important, or equally important and longer.

    So two rows can never make each other redundant. Plans make no row redundant.
    """
    ranks = part.priority.importance, whole.priority.importance
    return whole.type is not Type.PLAN and (ranks[0], len(part.text)) < (ranks[1], len(whole.text))


def _clauses(text: str) -> str:
    """Return text in lower case with each clause on a line of its own. It begins and ends with a line break."""
    lines = (line.strip(" `*.").lower() for line in _CLAUSE_ENDS.sub("\n", text).split("\n"))
    return f"\n{chr(10).join(line for line in lines if line)}\n"


def _day(row: Observation) -> tuple[str | None, str | None]:
    """Return the date that a row refers to, and the day of the row itself.

    The second is None unless the row is an event or a fact that does not quote an agent.
    """
    return row.refers_to, row.dated[:10] if row.type in _DATED_TYPES and speaker(row.text) != "Agent" else None


_LOW_DAYS, _SETTLED_DAYS = 2, 3
_RECENT = 4
"""The newest rows, one in this many, are dropped last."""


def by_importance(working: WorkingSet, *, now: str) -> Iterator[Dropped]:
    """Yield rows to drop, the least important first.

    Low-priority rows and announcements older than two days are first, and then settled medium rows older than three
    days. After these, low-priority rows, announcements and settled rows of any age follow. Each group is oldest first.
    The remaining medium rows are last: the least informative first, and the most recent last. Protected, high-priority,
    open and pinned rows, rows in force, what a person ruled, notes and items are never dropped.
    """
    rows = list(working.rows.values())
    kept = {row.id for row in rows if is_kept(row) or row.is_in_force or rules_of_user(row)} | working.protected
    free = [row for row in rows if row.id not in kept]
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
    """Return True if a row only announces what an agent does next, such as "Now the types after the options:"."""
    return row.priority is Priority.MEDIUM and row.text.startswith(AGENT) and row.text.endswith(":")


def _by_value(rows: list[Observation], among: list[Observation]) -> Iterator[Observation]:
    """Yield rows, the least informative first, but the most recent last. Values are computed only when needed.

    When rows were ordered by age instead, packs of long chats folded to half of their rows answered an eighth fewer
    questions.
    """
    recent = {row.id for row in rows[len(rows) - len(rows) // _RECENT :]}
    wanted = {row.id for row in among}
    least = [rows[place] for place in reversed(list(by_salience(rows))) if rows[place].id in wanted]
    yield from sorted(least, key=lambda row: row.id in recent)
