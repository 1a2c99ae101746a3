"""The newest messages that fit, and the end of the one before them: what a model is shown where older ones may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omcli.memory.budget import largest
from omcli.memory.message import KeptMessage
from omcli.memory.record import replace

_LEAST_CHARS = 200
"""Characters of a message of which less is left out altogether."""
_MARKER = "[… {} characters before]\n"


def newest(
    messages: Sequence[KeptMessage], *, room: int, cost: Callable[[KeptMessage], int]
) -> tuple[KeptMessage, ...]:
    """The last messages that come to at most `room` tokens together, oldest first.

    What is left of the room holds the end of the message before them, behind a marker, if that is 200 characters or
    more. `cost` counts a message. Source: duet, which shows the newest 35 000 tokens.
    """
    chosen: list[KeptMessage] = []
    left = room
    for kept in reversed(messages):
        if (size := cost(kept)) > left:
            end = _end(kept, left, cost)
            return (*([end] if end else []), *reversed(chosen))
        chosen.append(kept)
        left -= size
    return tuple(reversed(chosen))


def _end(kept: KeptMessage, room: int, cost: Callable[[KeptMessage], int]) -> KeptMessage | None:
    """The end of a message that fits; None where that is too little."""
    text = kept.message.text

    def last(chars: int) -> KeptMessage:
        cut = _MARKER.format(len(text) - chars) + text[len(text) - chars :]
        return replace(kept, message=replace(kept.message, text=cut))

    chars = largest(lambda chars: cost(last(chars)) <= room, 0, len(text))
    return last(chars) if chars >= _LEAST_CHARS else None
