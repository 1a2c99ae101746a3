"""What all ways to write memory down have in common: groups of rows, with the messages they were made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.notation import PrintedRow
from omcli.memory.observation import Kind

_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_SPECIAL = lazily('[&<>"`\0-\x1f\x7f-\x9f\u2028\u2029]')
_REFERENCE = lazily(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@record
class GroupRow:
    """A row in a group."""

    line: PrintedRow
    """Its date is empty where none is written."""
    under: int | None = None
    """The place in the group, before its own, of the row that this one is a detail of."""


@record
class MessageRange:
    """The messages that a group was made of: by their printed ids, by their places in the session, or both."""

    first: str | None = None
    last: str | None = None
    """The id of the last message: both ends are included."""
    start: int | None = None
    """The place of the first message, from 0."""
    end: int | None = None
    """The place after the last message."""


NOWHERE = MessageRange()


@record
class Group:
    """Rows written in one piece. Rows of no batch, and lasting items, are groups of their own."""

    entries: tuple[GroupRow, ...]
    kind: Kind = Kind.OBSERVATION
    id: str | None = None
    session: str | None = None
    """None for what belongs to no session."""
    cwd: str | None = None
    created_at: str | None = None
    """Instant at which it was written."""
    reach: MessageRange = NOWHERE
    category: str | None = None
    """Of an item: what it is about, in the words of its design."""
    tags: tuple[str, ...] = ()
    generation: int = 0


@record
class Unreadable:
    """Something in a file that is no row."""

    reason: str


@record
class Exchange:
    """A way to write memory down."""

    name: str
    counter: str
    """The token counter in whose units it states sizes."""
    render: Callable[[Iterable[Group], Callable[[str], int]], Iterator[str]]
    """Groups as text, piece by piece; the function counts tokens."""
    parse: Callable[[str], Iterator[Group | Unreadable]]
    """What a file holds. Never raises: what is no row is `Unreadable`."""


def lines_of(text: str) -> list[str]:
    """The lines of a file; only a line feed ends one, since a row may hold other breaks."""
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


def outline(group: Group) -> Iterator[tuple[int, GroupRow]]:
    """The rows of a group with their depth, each behind the row it is a detail of."""
    below: dict[int | None, list[int]] = {}
    for place, entry in enumerate(group.entries):
        below.setdefault(entry.under, []).append(place)
    waiting = [(0, place) for place in reversed(below.get(None, ()))]
    while waiting:
        depth, place = waiting.pop()
        yield depth, group.entries[place]
        waiting += [(depth + 1, child) for child in reversed(below.get(place, ()))]


def escape_tag(text: str, tag: str) -> str:
    r"""Text in which no such tag opens or closes: `</tag` is `<\/tag`."""
    return _tag(rf"<(\\*/?{tag})").sub(r"<\\\1", text) if "<" in text else text


def unescape_tag(text: str, tag: str) -> str:
    """Undo `escape_tag`."""
    return _tag(rf"<\\(\\*/?{tag})").sub(r"<\1", text) if "<" in text else text


@cache
def _tag(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


def attribute(text: str) -> str:
    """Text as it stands between the quotes of an attribute, on one line."""
    return _SPECIAL.sub(lambda found: _MARKUP.get(found[0]) or f"&#{ord(found[0])};", text)


def unescaped(text: str) -> str:
    """Text that was an `attribute`, as it was."""
    return _REFERENCE.sub(lambda found: _NAMED[found[1]] if found[1] else _character(int(found[2])), text)


def _character(number: int) -> str:
    return chr(number) if number < 0xD800 or 0xE000 <= number < 0x110000 else "\ufffd"


def id_range(reach: MessageRange) -> str | None:
    """`first:last`, escaped for an attribute; None where the ids are not known."""
    if reach.first is None or reach.last is None:
        return None
    return ":".join(attribute(key).replace(":", "&#58;") for key in (reach.first, reach.last))


def reach_of(written: str) -> MessageRange:
    """The messages that `first:last` names. Ids may have colons themselves, both of them equally many."""
    parts = written.split(":")
    half, is_odd = divmod(len(parts), 2)
    if is_odd or not written.strip(":"):
        return NOWHERE
    return MessageRange(first=unescaped(":".join(parts[:half])), last=unescaped(":".join(parts[half:])))


def objects_of(text: str) -> Iterator[Mapping[str, object] | None]:
    """The objects of a text that has one on each line; None for a line that is none, nothing for a blank one."""
    for written in filter(str.strip, lines_of(text)):
        try:
            found = json.loads(written, strict=False)
        except (ValueError, RecursionError):
            found = None
        yield found if isinstance(found, dict) else None


FORMAT = "imported_from"
ORIGINAL_ID = "original_id"
"""Of the group, or of the item."""
WRITTEN_AT = "written_at"
CWD = "cwd"
CATEGORY = "category"
MARK = "mark"
"""What the row was marked with; see `notation.line`."""
_ENDS = {"first": "first_message", "last": "last_message", "start": "first_place", "end": "end_place"}
"""The keys of a `MessageRange`."""


def provenance(group: Group, *, format_name: str) -> dict[str, object]:
    """What the rows of a group keep of it; what it does not say is left out."""
    said: dict[str, object] = {
        FORMAT: format_name,
        ORIGINAL_ID: group.id,
        WRITTEN_AT: group.created_at,
        CWD: group.cwd,
        CATEGORY: group.category,
        **{key: getattr(group.reach, name) for name, key in _ENDS.items()},
    }
    return {name: value for name, value in said.items() if value is not None}


def imported_reach(metadata: Mapping[str, object]) -> MessageRange:
    """The messages that a row was made of, as its group said."""
    first, last, start, end = (metadata.get(key) for key in _ENDS.values())
    return MessageRange(
        first=first if isinstance(first, str) else None,
        last=last if isinstance(last, str) else None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )
