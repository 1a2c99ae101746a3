"""Similarity of texts: equal text, shared names and words, and repetition within a text.

Rows that differ only in a name, a number or a negation are told apart in `reflectors.rules`.
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
"""Speakers that rows of the rules begin with."""
LEAST_TOUCHED = 0.2
"""Share of a row's words that a text about it contains at least, if it contains none of its names."""


def folded_text(text: str) -> str:
    """Return a text for comparison, without differences in case and spaces."""
    return " ".join(text.casefold().split())


def says(told: str, text: str) -> bool:
    """Return True if a text contains three quarters of another's names, and half of its words.

    Names are anchors, ignoring case; common words count a quarter.
    """
    told = told.lower()
    names = {name.lower() for name in anchors(text)}
    words = {word for word in content_terms(text) - SPEAKERS if word.lower() not in names}
    named = sum(name in told for name in names)
    return named >= _NAMES_KEPT * len(names) and _weight(words & content_terms(told)) >= _WORDS_KEPT * _weight(words)


def is_about(told: str, text: str) -> bool:
    """Return True if a text is about another: it contains one of its names, or a fifth of its words."""
    return any(name and name in told for name in anchors(text)) or share(told, text) >= LEAST_TOUCHED


def share(told: str, text: str) -> float:
    """Return the share of a row's words, without its speaker, that a text contains; 1 if the row has none."""
    words = content_terms(words_of(text))
    return len(words & content_terms(told)) / len(words) if words else 1.0


@lru_cache(maxsize=1024)
def content_terms(text: str) -> frozenset[str]:
    """Return the significant words of a text; cached, since each row is compared with several texts."""
    (terms,) = terms_of([text])
    return terms


def _weight(words: Collection[str]) -> float:
    return sum(_COMMON_WEIGHT if word in COMMON_FOLDED else 1.0 for word in words)


_ROWS, _ROW_CHARS, _EQUAL = 20, 24, 0.5
"""Minimum rows of minimum length, of which more than this share repeats another one."""
_TEXT_CHARS, _WINDOWS, _WINDOW_CHARS, _SEEN_AGAIN = 2_000, 50, 200, 0.4
"""In a text of this length, of this many windows of this size, more than this share occurs again."""
_LONGEST_LINE = 50_000

_DIGITS = lazily(r"[0-9]+")
_SENTENCE_END = lazily(r"(?<=[.!?;])\s+")


def without_numbers(text: str) -> str:
    """Normalise counters and times in a text: lower case, every number 0, single spaces."""
    return " ".join(_DIGITS.sub("0", text.lower()).split())


def without_repeats(text: str) -> str:
    """Reduce a text that repeats a sentence to each sentence once, with its count."""
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) < _ROWS or not is_repeated(sentences):
        return text
    groups: dict[str, list[str]] = {}
    for sentence in sentences:
        groups.setdefault(without_numbers(sentence), []).append(sentence)
    return " ".join(with_times(group[0], len(group)) for group in groups.values())


def is_repeated(rows: Sequence[str]) -> bool:
    """Return True if rows repeat themselves, apart from numbers.

    Loops do, and so do honest logs: only a reply that was cut off is a loop.
    """
    long = [without_numbers(row) for row in rows if len(row) >= _ROW_CHARS]
    if len(long) >= _ROWS and 1 - len(set(long)) / len(long) > _EQUAL:
        return True
    return any(len(row) > _LONGEST_LINE for row in rows) or _has_repeats(without_numbers("\n".join(rows)))


def _has_repeats(text: str) -> bool:
    """Return True if samples of a text occur in it a second time."""
    if len(text) < _TEXT_CHARS:
        return False
    places = range(0, len(text) - _WINDOW_CHARS, max(1, (len(text) - _WINDOW_CHARS) // _WINDOWS))
    windows = [(place, text[place : place + _WINDOW_CHARS]) for place in places]
    again = sum(text.find(window) < place or text.find(window, place + 1) >= 0 for place, window in windows)
    return again / len(windows) > _SEEN_AGAIN
