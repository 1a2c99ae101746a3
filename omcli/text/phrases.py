"""Counts in the words of rows: how often something happened, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.patterns import lazily

_SHOWN = 8
"""Names that are listed before the rest is counted."""
_TIMES = lazily(r" \(× (\d{1,9})\)$")


def counted(number: int) -> str:
    """A count in words that can be taken for nothing else: large ones are "99+", not a number somebody may look for."""
    return str(number) if number < 100 else "99+"


def first_of(names: Sequence[str], joint: str, *, shown: int = _SHOWN) -> str:
    """The first names, and how many more there are."""
    more = len(names) - shown
    return joint.join(names[:shown]) + (f"{joint}+{counted(more)} more" if more > 0 else "")


def times_in(text: str) -> int:
    """How often a row says that it happened."""
    return int(found[1]) if (found := _TIMES.search(text)) else 1


def without_times(text: str) -> str:
    """A row's text but for how often that happened."""
    return _TIMES.sub("", text)


def with_times(text: str, times: int) -> str:
    """A text with how often that happened: `Ran: make (× 3)`."""
    return f"{text} (× {times})" if times > 1 else text


USER = "User: "
"""How a row begins that tells what a user said; in `MEMORY.md` it stands without that."""
AGENT = "Agent: "
"""How a row begins that tells what an agent said."""
_LONGEST = 40


def speaker(text: str) -> str:
    """Who says it, as it is told; empty where nobody is."""
    who, colon, _ = text.partition(": ")
    return who if colon and len(who) <= _LONGEST and who[:1].isupper() and who.replace(" ", "").isalnum() else ""


def words_of(text: str) -> str:
    """What is said, without who says it."""
    who = speaker(text)
    return text.removeprefix(f"{who}: ") if who else text
