"""Whether a text says what another one says: in the same words, or most of it, or at least what it is about.

Rows that say the same but for a name, a number or a negation are told apart in `reflectors.rules.repeats`; texts that
run into a loop are found in `repetition`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from omcli.base.patterns import lazily
from omcli.text.anchors import anchors
from omcli.text.phrases import with_times, words_of
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


_ROWS, _ROW_CHARS, _EQUAL = 20, 24, 0.5
"""At least so many rows of at least so many characters, of which more than this share say what another one says."""
_TEXT_CHARS, _WINDOWS, _WINDOW_CHARS, _SEEN_AGAIN = 2_000, 50, 200, 0.4
"""In a text of so many characters, of so many windows of this size, more than this share come up again."""
_LONGEST_LINE = 50_000

_DIGITS = lazily(r"[0-9]+")
_SENTENCE_END = lazily(r"(?<=[.!?;])\s+")


def normalised(text: str) -> str:
    """A text in which counters and times are equal: lower case, every number 0, one space where there is any."""
    return " ".join(_DIGITS.sub("0", text.lower()).split())


def unrepeated(text: str) -> str:
    """A text that says a sentence again and again, with each sentence once and how often it was said."""
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) < _ROWS or not is_repetitive(sentences):
        return text
    groups: dict[str, list[str]] = {}
    for sentence in sentences:
        groups.setdefault(normalised(sentence), []).append(sentence)
    return " ".join(with_times(group[0], len(group)) for group in groups.values())


def is_repetitive(rows: Sequence[str]) -> bool:
    """Whether rows say the same again and again, but for numbers.

    Loops do, and so do honest logs: whether the reply was cut off tells them apart, not the text.
    """
    long = [normalised(row) for row in rows if len(row) >= _ROW_CHARS]
    if len(long) >= _ROWS and 1 - len(set(long)) / len(long) > _EQUAL:
        return True
    return any(len(row) > _LONGEST_LINE for row in rows) or _comes_again(normalised("\n".join(rows)))


def _comes_again(text: str) -> bool:
    """Whether pieces of a text, taken at even distances, stand in it a second time."""
    if len(text) < _TEXT_CHARS:
        return False
    places = range(0, len(text) - _WINDOW_CHARS, max(1, (len(text) - _WINDOW_CHARS) // _WINDOWS))
    windows = [(place, text[place : place + _WINDOW_CHARS]) for place in places]
    again = sum(text.find(window) < place or text.find(window, place + 1) >= 0 for place, window in windows)
    return again / len(windows) > _SEEN_AGAIN
