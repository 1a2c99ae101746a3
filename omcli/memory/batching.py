"""Where a batch ends: what of the waiting messages an observer is shown at once."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from omcli.memory.message import Role


class Waiting(NamedTuple):
    """What has to be known of a waiting message to place the end of a batch."""

    tokens: int
    role: str
    """One of `Role`."""
    call_id: str | None


def batch_length(waiting: Iterable[Waiting], *, max_tokens: int, max_messages: int | None = None) -> int:
    """How many of the waiting messages, oldest first, make the next batch: at most `max_tokens` and `max_messages`, at
    least one if any.

    A batch does not end between a call and its result where the two, and what stands between them, fit into one batch:
    it then ends before the call. Reads no further than twice `max_tokens`.
    """
    starts: list[int] = []
    calls: dict[str, int] = {}
    fitting_pairs: list[tuple[int, int]] = []
    length = end = 0
    most = max_messages or inf
    for index, (tokens, role, call_id) in enumerate(waiting):
        starts.append(end)
        end += tokens
        if index == 0 or (index == length and end <= max_tokens and index < most):
            length += 1
        elif end - starts[length - 1] > max_tokens:
            break
        if call_id is None:
            continue
        if role == Role.CALL:
            calls[call_id] = index
        elif role == Role.RESULT and call_id in calls:
            call = calls[call_id]
            fits = end - starts[call] <= max_tokens and index - call < most
            fitting_pairs += [(call, index)] if fits else []
    return _before_open_calls(length, fitting_pairs) or length


def _before_open_calls(length: int, pairs: list[tuple[int, int]]) -> int:
    """The length, shortened until no pair is parted; 0 where the pairs interlock from the first message on."""
    for call, result in sorted(pairs, reverse=True):
        if call < length <= result:
            length = call
    return length
