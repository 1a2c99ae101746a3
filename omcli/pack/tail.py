"""The tail of a pack: the newest messages that fit. Calls are kept with their results, and long messages are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from omcli.base.record import record, replace
from omcli.memory.message import KeptMessage, Message, Role, results_by_call
from omcli.text.clean import printable

TOOL_CHARS = 1500
"""Default maximum length, in characters, of a call's arguments, a result or an event."""
_LEAST_CHARS = 80
"""Minimum length of an excerpt, in characters."""
_WHOLE_SHARE = 2
"""The newest messages are shown whole as long as together they take at most the room divided by this number."""
_TOKEN_CHARS = 4
"""Typical number of characters per token."""
_TOOL_SHARE = 8
"""Texts of tools and events are cut to at most the room divided by this number."""
_SHORTENED = frozenset({Role.CALL, Role.RESULT, Role.EVENT})
_CHARS_PER_TOKEN = 8
"""Maximum number of characters per token assumed in the search for the length of an excerpt. Prose has fewer."""


@record
class Turn:
    """A message as shown in a pack."""

    kept: KeptMessage
    text: str
    """The printable text of the message, or an excerpt of it."""
    is_whole: bool

    @property
    def message(self) -> Message:
        return self.kept.message


@record
class TurnGroup:
    """Turns that are shown together or not at all: a single message, or a call with its results."""

    places: tuple[int, ...]
    """Indexes of the turns in the list of messages, ascending."""
    turns: tuple[Turn, ...]
    cost: int
    is_cut: bool = False
    """True if the texts were cut because the whole group exceeds the room of the tail."""


def newest(
    messages: Sequence[KeptMessage],
    *,
    room: int,
    cost: Callable[[Turn], int],
    chars: int | None = TOOL_CHARS,
    is_growing: bool = False,
    back_to: int = 0,
) -> tuple[TurnGroup, ...]:
    """Return the newest groups of turns that fit into `room` tokens, newest first and without gaps. They end before a
    group whose last message has a `seq` below `back_to`.

    `messages` is the main thread, oldest first. A result is left out if its call is missing or does not fit. The newest
    groups are whole until they take half of the room. In older ones, texts of tools and events are cut to `chars`
    characters, or to an eighth of the room if that is less; None means that they are not cut. The first group that
    does not fit ends the tail. If it alone exceeds the whole room, an excerpt of it that fits into the remaining room
    is added.

    With `is_growing`, a text is cut regardless of the messages after it, so that further messages change no earlier
    ones.
    """
    units: list[TurnGroup] = []
    left = room
    whole = 0 if is_growing else room // _WHOLE_SHARE
    chars = None if chars is None else max(_LEAST_CHARS, min(chars, room * _TOKEN_CHARS // _TOOL_SHARE))
    for places in _groups(messages):
        kept = [messages[place] for place in places]
        if kept[-1].seq < back_to:
            break
        unit = _unit(places, [_shown(one, None) for one in kept], cost) if whole > 0 else None
        if unit is None or unit.cost > whole:
            whole = 0
            unit = _unit(places, [_shown(one, chars if one.message.role in _SHORTENED else None) for one in kept], cost)
        whole -= unit.cost
        if unit.cost > left:
            if unit.cost > room and (cut := _cut(places, kept, left, cost)):
                units.append(cut)
            break
        units.append(unit)
        left -= unit.cost
    return tuple(units)


def beginning(
    messages: Sequence[KeptMessage],
    *,
    room: int,
    tokens: Callable[[KeptMessage], int],
    may_begin: Callable[[Message], bool] = lambda message: message.role is not Role.RESULT,
) -> int:
    """Return the index at which a tail of about `room` tokens begins, or the number of messages if `room` is 0 or less.

    `messages` is the main thread, oldest first. The tail holds the newest messages that fit, at least one. It must
    begin with a message that satisfies `may_begin`, and must not separate a call from its results. If necessary, it is
    shortened until it does so, or extended if nothing would remain: to all messages if it can begin nowhere.
    """
    if room <= 0:
        return len(messages)
    first, left = len(messages), room
    for place in reversed(range(len(messages))):
        left -= tokens(messages[place])
        if left < 0 and first < len(messages):
            break
        first = place
    parting = _split_calls([kept.message for kept in messages])
    later, earlier = range(first, len(messages)), reversed(range(first))
    fitting = (place for place in (*later, *earlier) if not parting[place] and may_begin(messages[place].message))
    return next(fitting, 0)


def _split_calls(messages: Sequence[Message]) -> list[bool]:
    """Return, for each index, True if a cut before it would separate a call from one of its results."""
    steps = [0] * (len(messages) + 1)
    for call, results in results_by_call(messages).items():
        if results:
            steps[call + 1] += 1
            steps[results[-1] + 1] -= 1
    return [open_calls > 0 for open_calls in accumulate(steps)]


def holds_all(units: Sequence[TurnGroup], messages: Sequence[KeptMessage]) -> bool:
    """Return True if the groups contain all messages that can be shown, and none was cut to fit into the whole room."""
    places = sum(len(unit.places) for unit in units)
    return places == sum(map(len, _groups(messages))) and not any(unit.is_cut for unit in units)


def turns(units: Sequence[TurnGroup]) -> tuple[Turn, ...]:
    """Return the turns of all groups, oldest first."""
    placed = [pair for unit in units for pair in zip(unit.places, unit.turns, strict=True)]
    return tuple(turn for _, turn in sorted(placed, key=lambda pair: pair[0]))


def excerpt(text: str, chars: int) -> str:
    """Return about `chars` characters of the text, half from its start and half from its end.

    A mark between the halves gives the number of characters left out. The text is cut between lines or words if
    possible, and returned unchanged if the mark would not be shorter than what it replaces.
    """
    head = _beginning(text, (chars + 1) // 2)
    tail = _beginning(text[: -chars - 1 : -1], chars // 2)[::-1]
    left_out = len(text) - len(head) - len(tail)
    mark = f"… [{left_out} characters left out] …"
    return text if left_out <= len(mark) else f"{head}{mark}{tail}"


def _groups(messages: Sequence[KeptMessage]) -> Iterator[tuple[int, ...]]:
    """Yield the index of each message, newest first, with the indexes of its results if it is a call.

    Results without a call are left out.
    """
    results = results_by_call([kept.message for kept in messages])
    for place in reversed(range(len(messages))):
        if messages[place].message.role is not Role.RESULT:
            yield (place, *results.get(place, ()))


def _unit(places: tuple[int, ...], shown: Sequence[Turn], cost: Callable[[Turn], int]) -> TurnGroup:
    return TurnGroup(places=places, turns=tuple(shown), cost=sum(cost(turn) for turn in shown))


def _shown(kept: KeptMessage, chars: int | None) -> Turn:
    said = kept.message.text
    text = said if chars is None else excerpt(said, chars)
    return Turn(kept=kept, text=printable(text), is_whole=len(text) == len(said))


def _cut(
    places: tuple[int, ...], kept: Sequence[KeptMessage], room: int, cost: Callable[[Turn], int]
) -> TurnGroup | None:
    """Return the group with all texts cut to the same length, the longest that fits; None if no useful length fits."""
    fits: TurnGroup | None = None
    low, high = _LEAST_CHARS, min(max(len(one.message.text) for one in kept), room * _CHARS_PER_TOKEN)
    while low <= high:
        chars = (low + high) // 2
        unit = _unit(places, [_shown(one, chars) for one in kept], cost)
        if unit.cost <= room:
            fits, low = replace(unit, is_cut=True), chars + 1
        else:
            high = chars - 1
    return fits


def _beginning(text: str, chars: int) -> str:
    """Return at most `chars` characters from the start of the text.

    If possible, the text is cut after a line break in the last fifth of that length, or else after a space in the last
    half.
    """
    if len(text) <= chars:
        return text
    for end, least in (("\n", chars * 4 // 5), (" ", chars // 2)):
        at = text.rfind(end, least, chars)
        if at >= 0:
            return text[: at + 1]
    return text[:chars]
