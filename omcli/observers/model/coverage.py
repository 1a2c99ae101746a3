"""Whether a text says what another one says: most of its names, and half of its words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from omcli.memory.anchors import anchors
from omcli.memory.common_words import COMMON_WORDS
from omcli.memory.observation import Draft
from omcli.memory.worth import folded, terms_of

_NAMES_KEPT, _WORDS_KEPT = 0.75, 0.5
_COMMON_WEIGHT = 0.25
_SPEAKERS = frozenset({"user", "agent", "assistant"})
"""Who says it, where rows of the rules begin with that."""


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Whether rows of the same messages say what a row says.

    A message may come to several rows, so those that share a message with it count together.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def says(told: str, text: str) -> bool:
    """Whether a text tells three quarters of another's names, and half of its words.

    Names are anchors, in either case; of the words, common ones count a quarter.
    """
    told = told.lower()
    names = {name.lower() for name in anchors(text)}
    words = {word for word in _words(text) if word.lower() not in names}
    named = sum(name in told for name in names)
    return named >= _NAMES_KEPT * len(names) and _weight(words & _words(told)) >= _WORDS_KEPT * _weight(words)


def _words(text: str) -> frozenset[str]:
    """The words of a text that say something."""
    (terms,) = terms_of([text])
    return terms - _SPEAKERS


def _weight(words: Collection[str]) -> float:
    return sum(_COMMON_WEIGHT if word in _common() else 1.0 for word in words)


@cache
def _common() -> frozenset[str]:
    return frozenset(map(folded, COMMON_WORDS))
