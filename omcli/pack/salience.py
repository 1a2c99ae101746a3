"""Salience: ranking a session's rows by the new terms that each adds to a pack per token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heapify, heappop, heappushpop
from itertools import accumulate
from math import fsum, log
from types import MappingProxyType

from omcli.memory.observation import (
    CURRENT,
    FILE_CHANGES,
    PINNED,
    SETTLED,
    Kind,
    Observation,
    Priority,
    Source,
    Status,
    Type,
)
from omcli.pack.layouts.layout import is_asked
from omcli.text.clean import AGENT, PASTED
from omcli.text.terms import NAME_LIKE, capital_terms, folded_words, terms_of

# The constants were tuned on conversations of people with coding agents, with assistants and with each other. Changing
# one of them by a third changes only one or two percent of what is kept.
_IMPORTANCE_POWER = 2.5
_FRESHNESS_FLOOR = 0.2
"""Factor on the value of the oldest rows in a long session. Open rows and rows of lasting types keep their full value.
"""
_SAID_AGAIN = 0.5
"""Factor on a term's weight for each row that contains the term and is already chosen."""
_NAME, _COMMON = 2.0, 0.25
"""Factors on the weights of names and of common words. It is 1 for all other words."""
_NAME_POWER, _WORD_POWER = 0.5, 0.4
"""Exponents of the number of rows that use a name, or any other word.

Repetition adds little weight. It adds more for names because they are what the work is about.
"""
_LINE_TOKENS = 15
"""Tokens added to each row's length, so that very short rows, which contain little, do not rank too high."""

# By default notes have medium priority and reflections high priority. As `cross_session.WEIGHTS` are 2 and 3, a note
# (2 × 2.0) still ranks before a reflection of the same age (3 × 1.3).
BIAS = MappingProxyType({Kind.NOTE: 2.0, Kind.REFLECTION: 1.3})
"""Factor on the value of rows that are not plain observations."""
_WISH = 1.5
"""Factor on the value of the user's lasting rules and preferences, because later answers are wrong without them."""
_WISHED_FROM = MappingProxyType({Type.INSTRUCTION: 9, Type.PREFERENCE: 8})
"""Minimum importance of rows of these types that are lasting rules or preferences, not wishes for one occasion."""
_LAST_ASKED = 3
"""Number of a person's last requests, questions and corrections that are considered. The open ones among them are
chosen first.
"""
_OPENING = 0.2
"""Share of a session that is its opening. Statements of people count twice at the beginning, because they say who the
people are and what the session is about. The factor falls to 1 at the end of the opening.
"""
_STATEMENTS = frozenset(
    {Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT, Type.REQUEST, Type.QUESTION}
)
# Rows of these types are valid until they are contradicted. All others lose value as the session continues.
_LASTING = _STATEMENTS | FILE_CHANGES


class ChoiceReason(StrEnum):
    """The reason why a row is in a pack or not."""

    PINNED = "pinned"
    CURRENT = "current task"
    ASKED = "asked last and open"
    MATCH = "matches"
    INFORMATIVE = "most informative per token"
    IMPORTANT = "important and recent"
    NEWEST = "newest"

    TOO_LONG = "does not fit"
    OUTPUT = "quoted output gets a third at most"
    NOTHING_NEW = "says nothing new"
    FULL = "ranks below the rows that fill the tier"
    TOLD = "the last messages or another row say it"
    REPEATED = "another row has the same text"
    UNSHARED = "concerns only its session"
    OLD = "older than `context.reflections` or `context.observations` allow"
    EXCESS = "exceeds the budget as printed"


def comes_first(row: Observation) -> bool:
    """Return True for a pinned row, and for the current task as a model stated it, until it is settled."""
    return PINNED in row.tags or (CURRENT in row.tags and row.status not in SETTLED)


def by_salience(rows: Sequence[Observation], matches: Mapping[str, float] = MappingProxyType({})) -> Iterator[int]:
    """Yield the indexes of a session's rows, best first, computed lazily.

    Pinned rows and the current task rank first, then the open ones of the last requests, then those that match the task
    at hand. `matches` holds how well rows match, by id. Then the row with the highest value is chosen repeatedly, the
    newest among equals:

        (importance / 5)^2.5 · freshness · opening · bias · wish · Σ weight(t) · 0.5^n(t) / (tokens + 15)

    The sum is over the row's terms `t`, and `n(t)` is the number of chosen rows that contain `t`. The weight of a term
    is `df^p · ln(N / df + 1)`, where `df` of the `N` rows contain it: its rarity (Spärck Jones 1972), raised a little
    for each row that uses it. Names (identifiers, paths, numbers, capitalised words) have double weight, and common
    words a quarter. Because each further row with a term adds less, this greedy choice is close to the best possible
    one. A heap of outdated values finds the next row without computing the values of all rows again (Minoux 1978).
    """
    texts = [row.text for row in rows]
    terms = terms_of(texts)
    counted = _counted_rows(rows)
    weights = _term_weight(terms, counted=counted, capitals=capital_terms([texts[place] for place in counted]))
    merits = [
        _value(row, age) / (row.tokens + _LINE_TOKENS)
        for row, age in zip(rows, _place_in_session(rows, counted), strict=True)
    ]

    def value(place: int) -> float:
        return merits[place] * fsum(map(weights.__getitem__, terms[place]))  # exact, so the order does not matter

    def say(place: int) -> int:
        for term in terms[place]:
            weights[term] *= _SAID_AGAIN
        return place

    first = reason_of_first(rows, matches)
    yield from map(say, first)
    heap = [(-value(place), -place) for place in set(range(len(rows))).difference(first)]
    heapify(heap)
    while heap:
        best = heappop(heap)
        while (now := (-value(-best[1]), best[1])) > best:  # rows chosen since then share terms with it
            best = heappushpop(heap, now)
        yield say(-best[1])


def reason_of_first(
    rows: Sequence[Observation], matches: Mapping[str, float], *, has_asked: bool = True
) -> dict[int, ChoiceReason]:
    """Return the indexes of the rows that rank before all others, best first, each with the reason. Open requests are
    not among them unless `has_asked`.
    """
    pinned = [place for place, row in enumerate(rows) if comes_first(row)]
    found = {place: ChoiceReason.PINNED if PINNED in rows[place].tags else ChoiceReason.CURRENT for place in pinned}
    asked = _last_asked(rows) if has_asked else ()
    for places, reason in ((asked, ChoiceReason.ASKED), (matching(rows, matches), ChoiceReason.MATCH)):
        for place in places:
            found.setdefault(place, reason)
    return found


def matching(rows: Sequence[Observation], matches: Mapping[str, float]) -> list[int]:
    """Return the indexes of the rows that match the task at hand, best first."""
    places = (place for place, row in enumerate(rows) if row.id in matches)
    return sorted(places, key=lambda place: -matches[rows[place].id])


def _last_asked(rows: Sequence[Observation]) -> list[int]:
    """Return the indexes of the open rows among a person's last requests, questions and corrections, newest first, and
    of errors pasted at the same instants, that is into the same messages. A correction is open until the agent reports
    a result.
    """
    asked = [place for place, row in enumerate(rows) if is_asked(row)]
    reported = max((place for place, row in enumerate(rows) if row.type is Type.OUTCOME), default=-1)
    shown = [
        place
        for place in asked[: -_LAST_ASKED - 1 : -1]
        if rows[place].status is Status.OPEN or (rows[place].type is Type.CORRECTION and place > reported)
    ]
    times = {rows[place].dated for place in shown}
    errors = (n for n, row in enumerate(rows) if row.type is Type.FACT and row.text.startswith(PASTED))
    return [*shown, *(place for place in errors if rows[place].dated in times)]


def _counted_rows(rows: Sequence[Observation]) -> list[int]:
    """Return the indexes of the rows used to find names, to count terms, and to measure the length of the session.

    These are the rows that no model wrote, except excerpts. If they are less than a quarter of all rows, all rows are
    used instead. So a model that repeats itself, or a file that is read, makes no word more common and no row older.
    """
    others = [
        place for place, row in enumerate(rows) if row.source is not Source.MODEL and row.type is not Type.EXCERPT
    ]
    return others if 4 * len(others) >= len(rows) else list(range(len(rows)))


def _place_in_session(rows: Sequence[Observation], counted: Collection[int]) -> Iterator[float]:
    """Yield the position of each row in the session, from 0 to 1. Only rows with an index in `counted` count."""
    among = set(counted)
    return (max(1, passed) / len(among) for passed in accumulate(place in among for place in range(len(rows))))


def _term_weight(
    terms: Sequence[frozenset[str]], *, counted: Sequence[int], capitals: frozenset[str]
) -> dict[str, float]:
    """Return the weight of each term. Terms are counted in the rows whose indexes are in `counted`.

    A term that none of these rows contains counts as used once. A term in `capitals` is a name wherever it occurs.
    """
    used: Counter[str] = Counter()
    for place in counted:
        used.update(terms[place])
    weights = {}
    common = folded_words()
    for term in frozenset().union(*terms):
        count = used[term] or 1
        rarity = log(len(counted) / count + 1)
        if term in capitals or NAME_LIKE.search(term):
            weights[term] = _NAME * count**_NAME_POWER * rarity
        else:
            weights[term] = (_COMMON if term in common else 1.0) * count**_WORD_POWER * rarity
    return weights


def _value(row: Observation, age: float) -> float:
    """Return the part of a row's value that does not depend on its terms. `age` is its position in the session: 1 for
    the newest row.

    A resolved row has at most medium importance.
    """
    importance = min(row.importance, Priority.MEDIUM.importance) if row.status is Status.RESOLVED else row.importance
    fresh = (
        1.0
        if row.type in _LASTING or row.status is Status.OPEN
        else _FRESHNESS_FLOOR + (1 - _FRESHNESS_FLOOR) * age * age
    )
    is_told = row.type in _STATEMENTS and not row.text.startswith(AGENT)
    opening = 1 + is_told * max(0.0, 1 - age / _OPENING)
    wish = _WISH if importance >= _WISHED_FROM.get(row.type, 11) else 1.0
    return float((max(1, importance) / 5) ** _IMPORTANCE_POWER * fresh * opening * wish * BIAS.get(row.kind, 1.0))
