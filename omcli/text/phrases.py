"""Phrases in the text of rows: counts (`(× 3)`, `+4 more`) and speakers (`User: `, `Agent: `)."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.patterns import lazily

_SHOWN = 8
"""Number of names to list before counting the rest."""
_TIMES = lazily(r" \(× (\d{1,9})\)$")


def counted(number: int) -> str:
    """Return a number as a string, or "99+" from 100 on, so that it can't be mistaken for an anchor."""
    return str(number) if number < 100 else "99+"


def first_of(names: Sequence[str], joint: str, *, shown: int = _SHOWN) -> str:
    """Join the first `shown` names, and add how many more there are."""
    more = len(names) - shown
    return joint.join(names[:shown]) + (f"{joint}+{counted(more)} more" if more > 0 else "")


def times_in(text: str) -> int:
    """Return the count at the end of a row's text; 1 without one."""
    return int(found[1]) if (found := _TIMES.search(text)) else 1


def without_times(text: str) -> str:
    """Return a row's text without its count."""
    return _TIMES.sub("", text)


def with_times(text: str, times: int) -> str:
    """Append a count, as in `Ran: make (× 3)`."""
    return f"{text} (× {times})" if times > 1 else text


USER = "User: "
"""Prefix of rows with a user's words. It is omitted in `MEMORY.md`."""
AGENT = "Agent: "
"""Prefix of rows with an agent's words."""
_LONGEST = 40


def speaker(text: str) -> str:
    """Return the speaker that text begins with, or ""."""
    who, colon, _ = text.partition(": ")
    return who if colon and len(who) <= _LONGEST and who[:1].isupper() and who.replace(" ", "").isalnum() else ""


def words_of(text: str) -> str:
    """Return text without the speaker it begins with."""
    who = speaker(text)
    return text.removeprefix(f"{who}: ") if who else text
