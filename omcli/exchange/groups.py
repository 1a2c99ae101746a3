"""Groups of rows, the structure that all exchange formats share, and functions to read and write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from omcli.base import lazily
from omcli.base.record import field, record, replace
from omcli.memory.notation import PrintedRow
from omcli.memory.observation import UNDER, Kind, Observation
from omcli.text.clean import clean, one_line, printed_name, single_line
from omcli.text.instants import instant
from omcli.text.redaction import redact

_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# Markup, and characters that end lines, reverse text or are invisible, such as copies of ASCII that only a model reads.
_SPECIAL = lazily('[&<>"`\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]')
_REFERENCE = lazily(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@record
class GroupRow:
    line: PrintedRow
    """Content of the row. `dated` is empty if the file gives no date."""
    under: int | None = None
    """Index of the earlier row in the group that this row is a detail of; None if it is not a detail."""
    clock: str = ""
    """Time of day as `HH:MM` if the file gives it without a date."""
    id: str | None = None
    """Id of the row itself, if the file gives one. It helps to find a row that was imported before."""


@record
class MessageRange:
    """The messages that a group was made from, given by ids, by indexes in the session, or both. None means
    unknown.
    """

    first: str | None = None
    last: str | None = None
    """Id of the last message in the range."""
    start: int | None = None
    """Index of the first message."""
    end: int | None = None
    """Index of the last message plus one."""


NOWHERE = MessageRange()


@record
class Group:
    """Rows that were written together, usually for one batch. Each item or note forms its own group."""

    entries: tuple[GroupRow, ...]
    kind: Kind = Kind.OBSERVATION
    id: str | None = None
    session: str | None = None
    """None if the group belongs to no session."""
    cwd: str | None = None
    created_at: str | None = None
    """Instant at which the rows were written."""
    reach: MessageRange = NOWHERE
    category: str | None = None
    """Category of an item, as named in the format."""
    tags: tuple[str, ...] = ()
    generation: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    """Everything else that the file says of the rows, by its own names. It is stored with them."""


@record
class NotARow:
    """A part of a file that is not a valid row."""

    reason: str


def nothing(_groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield nothing: `render` of the formats that om only reads."""
    return iter(())


@record
class Exchange:
    """A file format for exchanging memory."""

    name: str
    parse: Callable[[str], Iterator[Group | NotARow]]
    """Function that parses the text of a file. Parts that are not valid rows give a `NotARow`, not an error."""
    counter: str = ""
    """Name of the token counter used for sizes given in the file."""
    render: Callable[[Iterable[Group], Callable[[str], int]], Iterator[str]] = nothing
    """Function that yields the text of groups in pieces. It takes the groups and a function that counts tokens."""
    hint: str = ""
    """Description of the right input, for the error about a wrong one."""
    files: tuple[str, ...] = ()
    """Names of the files to read, one after another, if the input is a folder. Empty if it must not be a folder."""
    tables: tuple[str, ...] = ()
    """Tables to read, in this order, if the input is a database. `parse` gets a line of JSON for each of their rows,
    which maps the name of the table to a list with the row."""


def lines_of(text: str) -> list[str]:
    """Split text into lines at line feeds only, because a row may contain other line breaks.

    A byte-order mark and the carriage return before a line feed are removed.
    """
    return [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]


def clean_group(group: Group, clean_text: Callable[[str], str]) -> Group:
    """Return a group whose texts, names and facts went through `clean_text`, which removes secrets and characters that
    cannot be stored. In the session's id, only such characters are removed. If the ids of its messages contain a
    secret, its range of messages is left out.
    """
    entries = [
        replace(
            entry,
            line=replace(entry.line, text=clean_text(single_line(entry.line.text))),
            id=entry.id and clean_text(entry.id),
        )
        for entry in group.entries
    ]
    reach = group.reach
    is_safe = not any(redact(key).counts for key in (reach.first, reach.last) if key)
    return replace(
        group,
        entries=tuple(entries),
        id=group.id and clean_text(group.id),
        session=group.session and printed_name(clean(group.session)),
        cwd=group.cwd and clean_text(group.cwd),
        category=group.category and clean_text(group.category),
        tags=tuple(dict.fromkeys(filter(None, map(clean_text, group.tags)))),
        facts={clean_text(name): clean_text(fact) for name, fact in group.facts.items()},
        reach=replace(reach, first=reach.first and clean(reach.first), last=reach.last and clean(reach.last))
        if is_safe
        else NOWHERE,
    )


def with_date(entry: GroupRow, times: Sequence[str]) -> GroupRow:
    """Add a date to a row that gives only its time of day: the first date in `times` (minutes, ascending) with which
    the row is between the first and the last time, otherwise the last date.

    Without `times`, the time of day becomes part of the text, as does a date that does not exist.
    """
    if not entry.clock:
        is_valid = not entry.line.dated or instant(f"{entry.line.dated}Z") is not None
        return entry if is_valid else _without_date(entry, entry.line.dated)
    if not times:
        return _without_date(entry, entry.clock)
    dates = [f"{at[:10]} {entry.clock}" for at in times]
    fitting = (at for at in dates if times[0] <= at <= times[-1])
    return replace(entry, line=replace(entry.line, dated=next(fitting, dates[-1])))


def _without_date(entry: GroupRow, written: str) -> GroupRow:
    return replace(entry, line=replace(entry.line, dated="", text=f"({written}) {entry.line.text}"))


def outline(entries: Sequence[GroupRow]) -> Iterator[tuple[int, GroupRow]]:
    """Yield each row with its depth. Details follow the row they belong to, one level deeper."""
    below: dict[int | None, list[int]] = {}
    for place, entry in enumerate(entries):
        below.setdefault(entry.under, []).append(place)
    waiting = [(0, place) for place in reversed(below.get(None, ()))]
    while waiting:
        depth, place = waiting.pop()
        yield depth, entries[place]
        waiting += [(depth + 1, child) for child in reversed(below.get(place, ()))]


def parents(rows: Sequence[Observation]) -> Iterator[int | None]:
    """For each row, yield the index of the earlier row that it is a detail of, or None if there is no such row."""
    places: dict[str, int] = {}
    for place, row in enumerate(rows):
        above = row.metadata.get(UNDER)
        yield places.get(above) if isinstance(above, str) else None
        places[row.id] = place


def escape_tag(text: str, tag: str) -> str:
    r"""Escape tags with this name in the text, so that `</tag` becomes `<\/tag`."""
    return _tag(rf"<(\\*/?{tag})").sub(r"<\\\1", text) if "<" in text else text


def unescape_tag(text: str, tag: str) -> str:
    return _tag(rf"<\\(\\*/?{tag})").sub(r"<\1", text) if "<" in text else text


@cache
def _tag(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


def attribute(text: str) -> str:
    """Return text escaped for a quoted attribute, on one line."""
    return _SPECIAL.sub(lambda found: _MARKUP.get(found[0]) or f"&#{ord(found[0])};", text)


def unescape_attribute(text: str) -> str:
    return _REFERENCE.sub(lambda found: _NAMED[found[1]] if found[1] else _text_of_code(int(found[2])), text)


def _text_of_code(number: int) -> str:
    return chr(number) if number < 0xD800 or 0xE000 <= number < 0x110000 else "\ufffd"


def id_range(reach: MessageRange) -> str | None:
    """Return the range as `first:last`, escaped for an attribute, or None if an id is unknown."""
    if reach.first is None or reach.last is None:
        return None
    return ":".join(attribute(key).replace(":", "&#58;") for key in (reach.first, reach.last))


def reach_of(written: str) -> MessageRange:
    """Parse a range of the form `first:last`. Invalid text gives `NOWHERE`.

    Ids may contain colons if both ids have the same number of them.
    """
    parts = written.split(":")
    half, is_odd = divmod(len(parts), 2)
    if is_odd or not written.strip(":"):
        return NOWHERE
    return MessageRange(
        first=unescape_attribute(":".join(parts[:half])), last=unescape_attribute(":".join(parts[half:]))
    )


def objects_of(text: str) -> Iterator[Mapping[str, object] | None]:
    """Yield the JSON object on each line, or None for a line that is not an object. Blank lines are skipped."""
    for written in filter(str.strip, lines_of(text)):
        try:
            found = json.loads(written, strict=False)
        except (ValueError, RecursionError):
            found = None
        yield found if isinstance(found, dict) else None


def json_values(text: str) -> Iterator[object]:
    """Yield the JSON value of a text or, if it is not JSON as a whole, each line's object. A line without one gives
    None.
    """
    try:
        yield json.loads(text.removeprefix("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        yield from objects_of(text)


def said(fields: Mapping[str, object], *keys: str) -> str:
    """Return the first of these values that is text and not blank, on one line, or ""."""
    texts = (value for key in keys if isinstance(value := fields.get(key), str))
    return next(filter(None, map(one_line, texts)), "")


FORMAT = "imported_from"
ORIGINAL_ID = "original_id"
"""Id of the group or item in the imported file."""
_ORIGINAL = "original_"
WRITTEN_AT = "written_at"
CWD = "cwd"
CATEGORY = "category"
MARK = "mark"
"""The mark with which the row was parsed (`PrintedRow.mark`)."""
_ENDS = {"first": "first_message", "last": "last_message", "start": "first_place", "end": "end_place"}
"""Metadata key for each field of a `MessageRange`."""


def origin_fields(group: Group, *, format_name: str) -> dict[str, object]:
    """Return metadata that describes a group, to be stored with its imported rows. Unknown values are omitted."""
    said: dict[str, object] = {
        FORMAT: format_name,
        ORIGINAL_ID: group.id,
        WRITTEN_AT: group.created_at,
        CWD: group.cwd,
        CATEGORY: group.category,
        **{key: getattr(group.reach, name) for name, key in _ENDS.items()},
        **{_ORIGINAL + name: fact for name, fact in group.facts.items()},
    }
    return {name: value for name, value in said.items() if value is not None}


def range_of(metadata: Mapping[str, object]) -> MessageRange:
    """Return the messages that an imported row was made from, as stored in its metadata."""
    first, last, start, end = (metadata.get(key) for key in _ENDS.values())
    return MessageRange(
        first=first if isinstance(first, str) else None,
        last=last if isinstance(last, str) else None,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )
