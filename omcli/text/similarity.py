"""Similarity of texts: equal text, shared anchors and words, and repetition.

Rows that differ only in a name, a number or a negation may count as similar here. `reflectors.rules` distinguishes such
rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from omcli.base import lazily
from omcli.text.clean import printable
from omcli.text.phrases import anchors, with_times, words_of
from omcli.text.terms import folded_words, terms_of

_NAMES_KEPT, _WORDS_KEPT = 0.75, 0.5
_COMMON_WEIGHT = 0.25
SPEAKERS = frozenset({"user", "agent", "assistant"})
"""Speakers named at the beginning of rows written by rules."""
LEAST_TOUCHED = 0.2
"""Text without any of a row's anchors is about the row only if it contains at least this share of the row's words."""


def folded_text(text: str) -> str:
    """Return text normalised for comparison: case-folded, with single spaces."""
    return " ".join(text.casefold().split())


def says(other: str, text: str) -> bool:
    """Return True if `other` contains at least three quarters of the anchors in `text`, and at least half of its other
    words.

    Anchors are compared without case. Common words count a quarter.
    """
    other = other.lower()
    names = {name.lower() for name in anchors(text)}
    words = {word for word in content_terms(text) - SPEAKERS if word.lower() not in names}
    named = sum(name in other for name in names)
    return named >= _NAMES_KEPT * len(names) and weight(words & content_terms(other)) >= _WORDS_KEPT * weight(words)


def is_about(other: str, text: str) -> bool:
    """Return True if `other` contains one of the anchors in `text`, or at least a fifth of its words, or if `text` has
    no words.
    """
    return any(name and name in other for name in anchors(text)) or share(other, text) >= LEAST_TOUCHED


def share(other: str, text: str) -> float:
    """Return the share of the words in `text`, without its speaker, that `other` contains. 1 if `text` has no words."""
    words = content_terms(words_of(text))
    return len(words & content_terms(other)) / len(words) if words else 1.0


def shares_nothing(other: str, words: frozenset[str]) -> bool:
    """Return True if `other` has none of the telling words among `words`, the terms of a text. If that text has no
    words, return False.

    Telling words are names and uncommon words, or all words if there are only numbers and common ones. `other` has one
    if any of its words begins with the telling word, or with a part of it if it is a name.
    """
    uncommon = words - folded_words()
    telling = words if all(map(str.isdecimal, uncommon)) else uncommon
    if not telling.isdisjoint(content_terms(other)):
        return False
    parts = [re.escape(part) for word in telling for part in _PARTS.findall(word.lower())]
    return bool(parts) and not re.search(rf"(?<![^\W_])(?:{'|'.join(parts)})", other.lower())


_PARTS = lazily(r"[^\W_]+")
"""Matches a word, or a part of a name."""


@lru_cache(maxsize=1024)
def content_terms(text: str) -> frozenset[str]:
    """Return the terms of text. They are cached because each row is compared several times."""
    (terms,) = terms_of([text])
    return terms


def weight(words: Collection[str]) -> float:
    """Return the number of words. Common words count a quarter."""
    return sum(_COMMON_WEIGHT if word in folded_words() else 1.0 for word in words)


_DISTINCTIVE, _OF_TOOLS = 2, 8
"""Minimum number of uncommon words in a distinctive text, and in a distinctive call or result of a tool."""


def is_distinctive(text: str, *, is_tool: bool = False) -> bool:
    """Return True if a text is unlikely to be said twice by chance, unlike `ok`, `go on` or `pytest -q`.

    It has an anchor or a few uncommon words. Calls and results of tools need more words, and anchors don't suffice,
    because they name the same files and commands in many sessions.
    """
    words = sum(term not in folded_words() for term in content_terms(text) - SPEAKERS)
    return words >= _OF_TOOLS if is_tool else words >= _DISTINCTIVE or bool(anchors(text))


# Inline and block elements of HTML, the first and last line of a fenced block, and the target of a link.
_MARKUP = lazily(
    r"</?(?:a|abbr|b|big|blockquote|br|center|cite|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|ins|kbd|li|mark|ol"
    r"|p|pre|q|s|samp|section|small|span|strike|strong|sub|summary|sup|table|tbody|td|th|tr|tt|u|ul)(?:\s[^<>]*)?/?>"
    r"|^[ \t>]*(?:`{3,}|~{3,})[ \t]{0,3}[\w+-]*[ \t]*$|\]\([^()\s]*\)",
    re.IGNORECASE | re.MULTILINE,
)
_PREFIXES = lazily(
    r"(?:[\W_]*(?:(?:[0-9]{1,3}[.)]|\[x\])\s|(?:(?:critical|important|note|high|med(?:ium)?|low)\b[\W_]+)?"
    r"(?:(?:the )?(?:user|human|agent|assistant)(?: said| says)?|output of [^\n:]{1,60}? says|pasted text says)"
    r"[*_`\"'\]\s]{0,9}:))+",
    re.IGNORECASE,
)
"""List marks, and words that name the user, the agent, an output or a paste as the speaker, also after a priority."""
_IGNORED = lazily("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that are not displayed."""
_WORD = lazily("(?:[a-z0-9\x80-\U0010ffff]+[+#%]*)+")
"""A word of folded text, in which all characters beyond ASCII are letters, marks or digits: also `c++`, `c#`, `5%`."""


def said_words(text: str) -> str:
    """Return the words of a text in folded case, so that texts that say the same are equal. Punctuation, markup,
    invisible characters, a list mark, and a prefix that names the speaker (user, agent or output) are left out.

    A text without words is returned folded.
    """
    from html import unescape  # noqa: PLC0415 - only stores with forgotten content need it
    from unicodedata import category, normalize  # noqa: PLC0415

    shown = printable(text)
    text = normalize("NFKC", unescape(shown))
    if not text.isascii():
        kinds = {char: category(char) for char in set(text) if not char.isascii()}
        kept = {char: char if kind[0] in "LMN" else " " for char, kind in kinds.items() if kind != "Cf"}
        text = text.translate({ord(char): "" if _IGNORED.match(char) else kept.get(char, "") for char in kinds})
    bare = _MARKUP.sub(" ", text)
    prefixes = _PREFIXES.match(bare)
    bare = bare[prefixes.end() :] if prefixes else bare
    return " ".join(_WORD.findall(normalize("NFKC", bare.casefold()))) or folded_text(shown)


_ROWS, _ROW_CHARS, _EQUAL = 20, 24, 0.5
"""At least `_ROWS` rows of at least `_ROW_CHARS` characters repeat themselves if more than `_EQUAL` are duplicates."""
_TEXT_CHARS, _WINDOWS, _WINDOW_CHARS, _SEEN_AGAIN = 2_000, 50, 200, 0.4
"""Text of at least `_TEXT_CHARS` characters repeats itself if more than `_SEEN_AGAIN` of its samples occur in it again.
About `_WINDOWS` samples of `_WINDOW_CHARS` characters are taken.
"""
_LONGEST_LINE = 50_000

_DIGITS = lazily(r"[0-9]+")
_SENTENCE_END = lazily(r"(?<=[.!?;])\s+")


def without_numbers(text: str) -> str:
    """Return text in lower case, with single spaces and every number replaced by 0."""
    return " ".join(_DIGITS.sub("0", text.lower()).split())


def without_repeats(text: str) -> str:
    """If text of at least 20 sentences repeats itself, return each sentence once, with its count. Otherwise return text
    unchanged. Sentences that differ only in numbers count as equal.
    """
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) < _ROWS or not is_repeated(sentences):
        return text
    groups: dict[str, list[str]] = {}
    for sentence in sentences:
        groups.setdefault(without_numbers(sentence), []).append(sentence)
    return " ".join(with_times(group[0], len(group)) for group in groups.values())


def is_repeated(rows: Sequence[str]) -> bool:
    """Return True if rows repeat themselves, ignoring numbers, or one of them has more than 50,000 characters.

    A model caught in a loop writes such rows, but genuine logs can look like this too.
    """
    long = [without_numbers(row) for row in rows if len(row) >= _ROW_CHARS]
    if len(long) >= _ROWS and 1 - len(set(long)) / len(long) > _EQUAL:
        return True
    return any(len(row) > _LONGEST_LINE for row in rows) or _has_repeats(without_numbers("\n".join(rows)))


def _has_repeats(text: str) -> bool:
    if len(text) < _TEXT_CHARS:
        return False
    places = range(0, len(text) - _WINDOW_CHARS, max(1, (len(text) - _WINDOW_CHARS) // _WINDOWS))
    windows = [(place, text[place : place + _WINDOW_CHARS]) for place in places]
    again = sum(text.find(window) < place or text.find(window, place + 1) >= 0 for place, window in windows)
    return again / len(windows) > _SEEN_AGAIN
