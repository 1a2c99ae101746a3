"""Whether a text says what another one says: in the same words, or most of it, or at least what it is about.

Rows that say the same but for a name, a number or a negation are told apart in `reflectors.rules.repeats`; texts that
run into a loop are found in `repetition`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from omcli.text.anchors import anchors
from omcli.text.speakers import words_of
from omcli.text.terms import COMMON_FOLDED, terms_of

_NAMES_KEPT, _WORDS_KEPT = 0.75, 0.5
_COMMON_WEIGHT = 0.25
SPEAKERS = frozenset({"user", "agent", "assistant"})
"""Who says it, where rows of the rules begin with that."""
LEAST_TOUCHED = 0.2
"""The part of a row's words that a text has at least that is about it, where it has none of its names."""


def wording(text: str) -> str:
    """A text in which case and spaces do not matter: what is equal then is said in the same words."""
    return " ".join(text.casefold().split())


def says(told: str, text: str) -> bool:
    """Whether a text tells three quarters of another's names, and half of its words.

    Names are anchors, in either case; of the words, common ones count a quarter.
    """
    told = told.lower()
    names = {name.lower() for name in anchors(text)}
    words = {word for word in significant_terms(text) - SPEAKERS if word.lower() not in names}
    named = sum(name in told for name in names)
    return named >= _NAMES_KEPT * len(names) and _weight(words & significant_terms(told)) >= _WORDS_KEPT * _weight(
        words
    )


def touches(told: str, text: str) -> bool:
    """Whether a text is about what another one tells: it has one of its names, or a fifth of its words."""
    return any(name and name in told for name in anchors(text)) or share(told, text) >= LEAST_TOUCHED


def share(told: str, text: str) -> float:
    """The part of a row's words, without who says it, that a text has; all of none."""
    words = significant_terms(words_of(text))
    return len(words & significant_terms(told)) / len(words) if words else 1.0


@lru_cache(maxsize=1024)
def significant_terms(text: str) -> frozenset[str]:
    """The words of a text that say something; remembered, for each row is compared with several texts."""
    (terms,) = terms_of([text])
    return terms


def _weight(words: Collection[str]) -> float:
    return sum(_COMMON_WEIGHT if word in COMMON_FOLDED else 1.0 for word in words)
