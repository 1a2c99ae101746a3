"""How much a model is shown, and how much it may answer."""

from __future__ import annotations

from omcli.memory.record import record
from omcli.memory.reply_schema import MOST_ROWS


@record
class Limits:
    """Sizes in tokens of the observer's counter, unless it says otherwise."""

    transcript: int = 35_000
    """What is shown of a batch. Messages of a larger one are shown by their beginnings and ends."""
    newest_only: bool = False
    """Of a larger one the newest messages are shown instead, and the others not at all: those only rules observe."""
    previous: int | None = 4_000
    """Rows that stand, at most; and not more than an eighth of the transcript, or 700. None: all of them."""
    output: int = 8_000
    """The texts of all rows of a reply together."""
    reply: int | None = None
    """The whole reply, as the endpoint counts; None leaves it to the provider."""
    args_chars: int = 1_500
    """Characters of the arguments of a tool call."""
    result_chars: int = 1_500
    """Characters of what a tool answered."""
    rows: int = MOST_ROWS
    """Rows of one reply."""
