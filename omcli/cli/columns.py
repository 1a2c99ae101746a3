"""How many columns of a terminal a text takes."""

from __future__ import annotations

_WIDE = "WF"
_TAKE_NONE = ("Mn", "Me", "Cf")
"""Marks that stand on the character before them, and characters that are not shown."""


def width(text: str) -> int:
    """The columns that a text of one line takes: two for a character of Chinese, say, none for an accent of its own."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def fitted(text: str, columns: int, *, in_front: bool = False) -> str:
    """The text in so many columns; what is longer loses its end, or its beginning, and says so by `…`."""
    if width(text) <= columns:
        return text
    kept, room = list[str](), columns - 1
    for character in reversed(text) if in_front else text:
        room -= _columns(character)
        if room < 0:
            break
        kept.append(character)
    return f"…{''.join(reversed(kept))}" if in_front else f"{''.join(kept)}…"


def padded(text: str, columns: int) -> str:
    """The text with spaces behind it, up to so many columns."""
    return text + " " * (columns - width(text))


def _columns(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in _TAKE_NONE:
        return 0
    return 2 if east_asian_width(character) in _WIDE else 1
