"""Whether a text says what another one says: in the same words, or most of it, or at least what it is about.

Rows that say the same but for a name, a number or a negation are told apart in `reflectors.rules.repeats`; texts that
run into a loop are found in `repetition`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache

from omcli.memory.anchors import anchors
from omcli.memory.common_words import COMMON_WORDS
from omcli.memory.observation import Draft, Observation
from omcli.memory.speakers import words_of
from omcli.memory.worth import folded, terms_of

_NAMES_KEPT, _WORDS_KEPT = 0.75, 0.5
_COMMON_WEIGHT = 0.25
_WORDS_REPEATED = 0.75
_SPEAKERS = frozenset({"user", "agent", "assistant"})
"""Who says it, where rows of the rules begin with that."""
LEAST_TOUCHED = 0.2
"""The part of a row's words that a text has at least that is about it, where it has none of its names."""


def wording(text: str) -> str:
    """A text in which case and spaces do not matter: what is equal then is said in the same words."""
    return " ".join(text.casefold().split())


def row_says(row: Observation | Draft, text: str) -> bool:
    """Whether a part of a row - what it says, its tags, its metadata - contains a text as `wording` has it."""
    return any(text in wording(part) for part in _parts(row))


def _parts(row: Observation | Draft) -> Iterator[str]:
    yield row.text
    yield from row.tags
    if row.metadata:
        from omcli.memory.rows import json_line  # noqa: PLC0415 - few look at it

        yield json_line(dict(row.metadata))


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Whether rows of the same messages say what a row says.

    A message may come to several rows, so those that share a message with it count together.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def repeats(draft: Draft, rows: Sequence[Draft]) -> bool:
    """Whether a row says no more than rows of the same messages do together.

    They have all of its names and three quarters of its words, common ones as well: what is left out for that is gone.
    """
    told = "\n".join(row.text for row in rows if set(row.sources) & set(draft.sources))
    words = _terms(draft.text) - _SPEAKERS
    lower = told.lower()
    known = sum(word.lower() in lower for word in words - _terms(told)) + len(words & _terms(told))
    is_named = all(name.lower() in lower for name in anchors(draft.text))
    return bool(told) and is_named and known >= _WORDS_REPEATED * len(words)


def says(told: str, text: str) -> bool:
    """Whether a text tells three quarters of another's names, and half of its words.

    Names are anchors, in either case; of the words, common ones count a quarter.
    """
    told = told.lower()
    names = {name.lower() for name in anchors(text)}
    words = {word for word in _terms(text) - _SPEAKERS if word.lower() not in names}
    named = sum(name in told for name in names)
    return named >= _NAMES_KEPT * len(names) and _weight(words & _terms(told)) >= _WORDS_KEPT * _weight(words)


def touches(told: str, text: str) -> bool:
    """Whether a text is about what another one tells: it has one of its names, or a fifth of its words."""
    return any(name and name in told for name in anchors(text)) or share(told, text) >= LEAST_TOUCHED


def share(told: str, text: str) -> float:
    """The part of a row's words, without who says it, that a text has; all of none."""
    words = _terms(words_of(text))
    return len(words & _terms(told)) / len(words) if words else 1.0


@lru_cache(maxsize=1024)
def _terms(text: str) -> frozenset[str]:
    """The words of a text that say something; remembered, for each row is compared with several texts."""
    (terms,) = terms_of([text])
    return terms


def _weight(words: Collection[str]) -> float:
    return sum(_COMMON_WEIGHT if word in _common() else 1.0 for word in words)


@cache
def _common() -> frozenset[str]:
    return frozenset(map(folded, COMMON_WORDS))
