"""What a row is worth in a pack: what it says, per token, that no row chosen before it has said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappushpop
from math import fsum, log

from omcli.memory.common_words import COMMON_WORDS, FUNCTION_WORDS
from omcli.memory.observation import Kind, Observation, Priority, Status, Type
from omcli.memory.record import record

PINNED = "pinned"
"""A row with this tag goes before all others."""

# The constants were chosen on conversations of coding agents, of people with assistants and among people; a third up
# or down changes what is kept by a point or two in a hundred.
_IMPORTANCE_POWER = 2.5
_FRESHNESS_FLOOR = 0.3
"""What is left of the worth of a row of work at the beginning of a long session."""
_SAID_AGAIN = 0.5
"""A term counts half when one row has said it, a quarter when two have."""
_NAME, _COMMON = 2.0, 0.25
"""What a name and a common word weigh beside other words."""
_NAME_POWER, _WORD_POWER = 0.5, 0.4
"""How much a term gains by being used again: a little, and a name more, for it is what the work is about."""
_LINE_TOKENS = 15
"""Added to the length of a row: very short rows say little, however dense they are."""

_IMPORTANCE = {Priority.HIGH: 8, Priority.MEDIUM: 5, Priority.LOW: 2}
_BIAS = {Kind.NOTE: 2.0, Kind.REFLECTION: 1.3}
# What holds until somebody says otherwise. Everything else matters less the more has been done since.
_LASTING = frozenset(
    {Type.PREFERENCE, Type.INSTRUCTION, Type.DECISION, Type.CORRECTION, Type.FACT, Type.REQUEST, Type.QUESTION}
    | {Type.FILE_MODIFIED, Type.FILE_CREATED}
)

_WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"  # scripts without spaces
_WORD = r"\w+(?:[-./:#@]+\w+)*"
_TERM = re.compile(f"{_WIDE}|{_WORD}")
# Inside a sentence a capital means a name.
_CAPITAL_INSIDE = re.compile(rf" (?<=[^.!?:;·\"'(\[—-] )(?=[^\W\d_a-z])({_WORD})")
# Digits, a sign between letters, or capitals inside: paths, identifiers, versions, amounts.
_NAME_LIKE = re.compile(r"[\d_./:#@]|[^\W\d_]-\w+-|[a-z][A-Z]")
_SUFFIXES = ("ing", "ed", "es", "s", "ly")


def most_telling(rows: Sequence[Observation]) -> Iterator[int]:
    """Places of a session's rows in the order in which they deserve a place in its pack; computed as it is asked for.

    Pinned rows come first. Then each time the row (of equals the newest) with the highest

        (importance / 5)^2.5 · freshness · Σ over its terms of weight · 0.5^(rows that said it before) / (tokens + 15)

    where a term weighs `df^p · ln(N / df + 1)`, its rarity among the N rows (Spärck Jones 1972), raised a little by how
    often it is used; names - identifiers, paths, numbers, capitalised words - count double, common words a quarter.
    Such a sum has diminishing returns, so the greedy choice is near the best one, and a heap of stale values finds it
    without looking at every row each time (Minoux 1978).
    """
    found = [terms_of(row.text) for row in rows]
    terms = [each.names | each.words for each in found]
    untold = _weights(found)
    merits = [_merit(row, (place + 1) / len(rows)) / (row.tokens + _LINE_TOKENS) for place, row in enumerate(rows)]

    def worth(place: int) -> float:
        return merits[place] * fsum(map(untold.__getitem__, terms[place]))  # exact, so in any order the same

    def say(place: int) -> int:
        for term in terms[place]:
            untold[term] *= _SAID_AGAIN
        return place

    pinned = [place for place, row in enumerate(rows) if PINNED in row.tags]
    yield from map(say, pinned)
    heap = [(-worth(place), -place) for place in set(range(len(rows))).difference(pinned)]
    heapify(heap)
    while heap:
        best = heappop(heap)
        while (now := (-worth(-best[1]), best[1])) > best:  # rows chosen since have said some of it
            best = heappushpop(heap, now)
        yield say(-best[1])


@record
class Terms:
    """What a text is about: its words but for those that tell nothing, folded to one form each."""

    names: frozenset[str]
    """Identifiers, paths, numbers as they are written; capitalised words, folded."""
    words: frozenset[str]


def terms_of(text: str) -> Terms:
    """The terms of a text. A script without spaces gives its pairs of characters."""
    names: set[str] = set()
    words: set[str] = set()
    for token in set(_TERM.findall(text)):
        is_name, forms = _forms(token)
        (names if is_name else words).update(forms)
    for token in _CAPITAL_INSIDE.findall(text):
        if token[0].isupper():
            names.update(_forms(token)[1])
    return Terms(names=frozenset(names), words=frozenset(words - names))


@lru_cache(maxsize=1 << 14)
def _forms(token: str) -> tuple[bool, tuple[str, ...]]:
    """Whether a token is a name wherever it stands, and the terms it comes to."""
    if _NAME_LIKE.search(token):
        return True, (token,)
    if _is_wide(token[0]):
        return False, tuple(token[at : at + 2] for at in range(max(1, len(token) - 1)))
    word = token.lower()
    return False, (folded(word),) if word not in FUNCTION_WORDS and len(word) > 1 else ()


def _is_wide(character: str) -> bool:
    """Whether it is of a script without spaces, as `_WIDE` has them."""
    return "\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7af"


def folded(word: str) -> str:
    """A word without the commonest English endings: "tests" and "testing" are "test"."""
    if word.endswith(_SUFFIXES):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) >= len(suffix) + 3:
                return word[: -len(suffix)]
    return word


_COMMON_FOLDED = frozenset(map(folded, COMMON_WORDS))


def _weights(terms: Sequence[Terms]) -> dict[str, float]:
    """What each term weighs; one that is a name somewhere is a name everywhere."""
    names = frozenset().union(*(each.names for each in terms))
    used: Counter[str] = Counter()
    for each in terms:
        used.update(each.names)
        used.update(each.words)
    weights = {}
    for term, count in used.items():
        rarity = log(len(terms) / count + 1)
        if term in names:
            weights[term] = _NAME * count**_NAME_POWER * rarity
        else:
            weights[term] = (_COMMON if term in _COMMON_FOLDED else 1.0) * count**_WORD_POWER * rarity
    return weights


def _merit(row: Observation, age: float) -> float:
    """What a row is worth whatever it says. `age` is its place in the session: 1 for the newest row."""
    agrees = Priority.of_importance(row.importance) is row.priority
    importance = row.importance if agrees else _IMPORTANCE[row.priority]
    fresh = (
        1.0
        if row.type in _LASTING or row.status is Status.OPEN
        else _FRESHNESS_FLOOR + (1 - _FRESHNESS_FLOOR) * age * age
    )
    return float((max(1, importance) / 5) ** _IMPORTANCE_POWER * fresh * _BIAS.get(row.kind, 1.0))
