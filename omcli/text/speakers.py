"""Who says what a row tells: it begins with that where rules wrote it, as `User: ` or `Agent: `."""

from __future__ import annotations

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
