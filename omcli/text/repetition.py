"""Whether a text repeats itself, as a model's reply does that has run into a loop, and as an honest log may."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.patterns import lazily
from omcli.text.phrases import with_times

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
