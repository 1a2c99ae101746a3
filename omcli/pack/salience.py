"""Salience: the value of a row in a pack, by the terms per token that no row chosen before it contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappushpop
from itertools import accumulate
from math import fsum, log
from types import MappingProxyType

from omcli.memory.observation import FILE_CHANGES, PINNED, Kind, Observation, Priority, Source, Status, Type
from omcli.text.terms import COMMON_FOLDED, NAME_LIKE, capital_terms, terms_of

# The constants were chosen on conversations of coding agents, of people with assistants and among people; a third up
# or down changes what is kept by a point or two in a hundred.
_IMPORTANCE_POWER = 2.5
_FRESHNESS_FLOOR = 0.3
"""Part of its value that a row about work keeps if it is from the start of a long session."""
_SAID_AGAIN = 0.5
"""A term counts half if one row has it already, a quarter if two have."""
_NAME, _COMMON = 2.0, 0.25
"""Weights of names and of common words; any other word weighs 1."""
_NAME_POWER, _WORD_POWER = 0.5, 0.4
"""Exponents of how often a term is used: repetition adds little, and more for names, the subject of the work."""
_LINE_TOKENS = 15
"""Tokens added to the length of each row: very short rows say little, however dense they are."""

# A note is medium unless its author says otherwise, a reflection high: 2 × 2.0 puts a note of the same day ahead.
BIAS = MappingProxyType({Kind.NOTE: 2.0, Kind.REFLECTION: 1.3})
"""Factor on the value of rows that are not plain observations."""
# Rows of these types hold until they are contradicted. All others lose value as the session goes on.
_LASTING = frozenset(
    {Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT, Type.REQUEST, Type.QUESTION}
    | FILE_CHANGES
)


def by_salience(rows: Sequence[Observation]) -> Iterator[int]:
    """Yield indexes of a session's rows by their rank in its pack, computed lazily.

    Pinned rows come first. Then, one at a time, the row with the highest value, the newest among equals:

        (importance / 5)^2.5 · freshness · Σ over its terms of weight · 0.5^(rows that said it before) / (tokens + 15)

    where a term weighs `df^p · ln(N / df + 1)`: its rarity among the N rows (Spärck Jones 1972), raised a little with
    the number of rows that use it. Names (identifiers, paths, numbers, capitalised words) count double, common words a
    quarter. Such a sum has diminishing returns, so the greedy choice is near the best one, and a heap of stale values
    finds it without looking at every row each time (Minoux 1978).
    """
    texts = [row.text for row in rows]
    terms = terms_of(texts)
    telling = _counted_rows(rows)
    untold = _term_weight(terms, telling=telling, capitals=capital_terms([texts[place] for place in telling]))
    merits = [
        _value(row, age) / (row.tokens + _LINE_TOKENS)
        for row, age in zip(rows, _place_in_session(rows, telling), strict=True)
    ]

    def value(place: int) -> float:
        return merits[place] * fsum(map(untold.__getitem__, terms[place]))  # exact, so in any order the same

    def say(place: int) -> int:
        for term in terms[place]:
            untold[term] *= _SAID_AGAIN
        return place

    pinned = [place for place, row in enumerate(rows) if PINNED in row.tags]
    yield from map(say, pinned)
    heap = [(-value(place), -place) for place in set(range(len(rows))).difference(pinned)]
    heapify(heap)
    while heap:
        best = heappop(heap)
        while (now := (-value(-best[1]), best[1])) > best:  # rows chosen since have said some of it
            best = heappushpop(heap, now)
        yield say(-best[1])


def _counted_rows(rows: Sequence[Observation]) -> list[int]:
    """Indexes of the rows that define names, frequencies and the length of a session: those not written by a model, if
    they are a quarter of all.

    Repetitions and additions by a model make no word more common, and no row older.
    """
    others = [place for place, row in enumerate(rows) if row.source is not Source.MODEL]
    return others if 4 * len(others) >= len(rows) else list(range(len(rows)))


def _place_in_session(rows: Sequence[Observation], telling: Collection[int]) -> Iterator[float]:
    """Yield the position of each row in the session, from 0 to 1, as counted by those rows."""
    told = set(telling)
    return (max(1, passed) / len(told) for passed in accumulate(place in told for place in range(len(rows))))


def _term_weight(
    terms: Sequence[frozenset[str]], *, telling: Sequence[int], capitals: frozenset[str]
) -> dict[str, float]:
    """Weight of each term; a name in one place is a name everywhere. `telling` are the rows to count terms in; a term
    in none of them counts as used once."""
    used: Counter[str] = Counter()
    for place in telling:
        used.update(terms[place])
    weights = {}
    for term in frozenset().union(*terms):
        count = used[term] or 1
        rarity = log(len(telling) / count + 1)
        if term in capitals or NAME_LIKE.search(term):
            weights[term] = _NAME * count**_NAME_POWER * rarity
        else:
            weights[term] = (_COMMON if term in COMMON_FOLDED else 1.0) * count**_WORD_POWER * rarity
    return weights


def _value(row: Observation, age: float) -> float:
    """Value of a row regardless of its text. `age` is its position in the session: 1 for the newest row."""
    agrees = Priority.of_importance(row.importance) is row.priority
    importance = row.importance if agrees else row.priority.importance
    fresh = (
        1.0
        if row.type in _LASTING or row.status is Status.OPEN
        else _FRESHNESS_FLOOR + (1 - _FRESHNESS_FLOOR) * age * age
    )
    return float((max(1, importance) / 5) ** _IMPORTANCE_POWER * fresh * BIAS.get(row.kind, 1.0))
