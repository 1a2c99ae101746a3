"""The three tiers of a context pack, and how a budget is shared between them."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """Parts of a pack, in the order they are printed."""

    CROSS = "cross"
    """Lasting facts from other sessions of the project."""
    SESSION = "session"
    """What was observed in this session."""
    TAIL = "tail"
    """The last messages, as they were said."""
