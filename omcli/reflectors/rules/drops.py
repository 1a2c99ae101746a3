"""Rows that can go: repeats of others first, then those needed least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.observation import SETTLED, Dropped, Observation, Priority, Type
from omcli.pack.cross_session import days
from omcli.pack.salience import most_telling
from omcli.reflectors.rules.working_set import WorkingSet, is_untouchable
from omcli.text.anchors import anchors
from omcli.text.phrases import AGENT, speaker
from omcli.text.terms import folded

_SAID = frozenset({Type.FACT, Type.OUTCOME, Type.PLAN, Type.DECISION, Type.EVENT, Type.REQUEST, Type.QUESTION})
_HAPPENS = frozenset({Type.EVENT, Type.FACT})
"""What may be said of another day in the same words."""
_STATES = frozenset({Type.TASK, Type.TODO_UPDATED})
"""What there is one of at any time."""
_COMPARED = 50
"""Rows with the same names and numbers that a row is compared with."""
_FEWEST_WORDS = 4
"""Words a row has to have before one that has them as well makes it superfluous."""
_LEAST_SHARED = 0.75
"""How much of the longer row the shorter one has to be."""

_WORD = lazily(r"\w+(?:[-./:#@'’]+\w+)*")
_SAYS_LITTLE = frozenset("a an the is are was were be been am it this that i we you has have had just also now".split())
_NEGATIONS = frozenset("no not never none nothing neither nor without cannot can't".split())
_CLAUSE_ENDS = lazily(r" · |[.:;!?](?= |$)")


def repeated(rows: Sequence[Observation]) -> Iterator[Dropped]:
    """Rows that others make superfluous, each with the one that does. `rows` are oldest first.

    Of equal rows the most important stays, of those the newest. What differs in a number, a name or a negation is
    another statement, and so is what was said of another day.
    """
    left: list[Observation] = []
    latest: dict[tuple[str, str | None, str | None], Observation] = {}
    newest = list(reversed(rows))
    newest.sort(key=lambda row: -row.priority.importance)
    for row in newest:
        if (same := latest.setdefault((row.text, *_occasion(row)), row)) is not row:
            yield Dropped(row=row.id, reason="duplicate", by=same.id)
        else:
            left.append(row)
    said = [_Said.of(row) for row in left if row.type in _SAID]
    wholes = _Wholes(said)
    kept: dict[tuple[object, ...], list[_Said]] = defaultdict(list)
    for one in said:
        alike = kept[one.names]
        by = next((other for other in reversed(alike[-_COMPARED:]) if one.is_told_by(other)), None) or wholes.of(one)
        if by is None:
            alike.append(one)
        else:
            yield Dropped(row=one.row.id, reason="duplicate", by=by.row.id)


def superseded(rows: Iterable[Observation], among: Iterable[Observation]) -> Iterator[Dropped]:
    """Of what there is one of at any time - what is being done, the list of todos - all but the present state.

    `rows` are all there are, oldest first; `among` those that may go.
    """
    latest = {row.type: row for row in rows if row.type in _STATES}
    for row in among:
        if row.type in _STATES and row is not latest[row.type]:
            yield Dropped(row=row.id, reason="superseded", by=latest[row.type].id)


@record
class _Said:
    """A row as far as it is compared with others."""

    row: Observation
    names: tuple[object, ...]
    """What may not differ: who says it, when, the names, the numbers and the negations."""
    words: tuple[str, ...]
    """In order, in one form each, without those that say little."""

    @classmethod
    def of(cls, row: Observation) -> _Said:
        words = _WORD.findall(row.text)
        told = [word for word in words if word != word.lower() or not word.isalpha()]
        negated = sum(word.lower() in _NEGATIONS or word.lower().endswith(("n't", "n’t")) for word in words)
        return cls(
            row=row,
            names=(row.type, speaker(row.text), *_occasion(row), frozenset((*told, *anchors(row.text))), negated),
            words=tuple(folded(word.lower()) for word in words if word.lower() not in _SAYS_LITTLE),
        )

    def is_told_by(self, other: _Said) -> bool:
        """Whether another row of the same names has all its words, in their order, and few more."""
        if len(self.words) < _FEWEST_WORDS or len(self.words) < _LEAST_SHARED * len(other.words):
            return False
        rest = iter(other.words)
        return all(word in rest for word in self.words)


class _Wholes:
    """Rows of which others are a part: `docs: link the guide` of `Committed 38a965e on main: docs: link the guide`."""

    def __init__(self, said: Sequence[_Said]) -> None:
        self._clauses = [_clauses(one.row.text) for one in said]
        self._said = said
        self._places: dict[str, list[int]] = defaultdict(list)
        """Rows by the clauses they have."""
        for place, clauses in enumerate(self._clauses):
            for clause in set(clauses.strip("\n").split("\n")):
                self._places[clause].append(place)

    def of(self, one: _Said) -> _Said | None:
        """A row that holds what an agent's row says, where others hold all of it and are no less important."""
        if not one.row.text.startswith(AGENT) or len(one.words) <= _FEWEST_WORDS:
            return None
        parts = one.row.text.removeprefix(AGENT).split(" · ")
        holders = [self._holder(one.row, _clauses(part)) for part in parts]
        return holders[0] if all(holders) else None

    def _holder(self, row: Observation, part: str) -> _Said | None:
        rarest = min((self._places[clause] for clause in part.strip("\n").split("\n")), key=len)
        for place in rarest:
            if _may_hold(row, self._said[place].row) and part in self._clauses[place]:
                return self._said[place]
        return None


def _may_hold(part: Observation, whole: Observation) -> bool:
    """Whether a row may hold another: it is more important, or says more. So no two rows hold each other."""
    ranks = part.priority.importance, whole.priority.importance
    return whole.type is not Type.PLAN and (ranks[0], len(part.text)) < (ranks[1], len(whole.text))


def _clauses(text: str) -> str:
    """A text in small letters with a line for every clause."""
    lines = (line.strip(" `*.").lower() for line in _CLAUSE_ENDS.sub("\n", text).split("\n"))
    return f"\n{chr(10).join(line for line in lines if line)}\n"


def _occasion(row: Observation) -> tuple[str | None, str | None]:
    """What day a row speaks of."""
    return row.refers_to, row.dated[:10] if row.type in _HAPPENS and speaker(row.text) != "Agent" else None


_LOW_DAYS, _SETTLED_DAYS = 2, 3
_RECENT = 4
"""The newest one of so many rows are the last to go."""


def in_order(sight: WorkingSet, *, now: str) -> Iterator[Dropped]:
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
