"""duet's format: groups of rows between tags or below headings, each with the first and last message it covers.

Records of duet's store, which contain such groups, can be read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from omcli.base import lazily
from omcli.base.record import field, mutable_record, replace
from omcli.exchange.groups import (
    NOWHERE,
    Exchange,
    Group,
    GroupRow,
    NotARow,
    attribute,
    escape_tag,
    id_range,
    lines_of,
    reach_of,
    unescape_attribute,
    unescape_tag,
)
from omcli.exchange.pi import day_in
from omcli.memory.notation import EMOJI, PrintedRow
from omcli.memory.observation import Kind, Priority
from omcli.text.instants import instant

_TAG = "observation-group"
_OPENING = lazily(rf"\s*<{_TAG}(?P<attributes>(?:\s[^<>]*)?)>\s*")
_CLOSING = lazily(rf"\s*</{_TAG}>\s*")
_ATTRIBUTE = lazily(r"""([a-z_-]{1,40})=["']((?<=")[^"]*(?=")|(?<=')[^']*(?='))""")
_TAGS = lazily(rf"(</?{_TAG}(?:\s[^<>]*)?>)")
_HEADING = lazily(r"## Group `(?P<id>[^`]*)`\s*")
_RANGE = lazily(r"_range: `?(?P<range>[^`]*?)`?_\s*")
_BULLET = lazily(r"[ \t]*[*-] (?P<rest>.*)", re.DOTALL)
_DATE = lazily(
    r"\((?:(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}) )?(?P<clock>[0-2]?[0-9]:[0-5][0-9])\) (?P<words>.*)", re.DOTALL
)


def _in_tags(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    gap = ""
    for group in groups:
        attributes = {
            "id": attribute(group.id or ""),
            "range": id_range(group.reach),
            "kind": group.kind,
            "cwd": attribute(group.cwd) if group.cwd else None,
        }
        given = "".join(f' {name}="{value}"' for name, value in attributes.items() if value is not None)
        yield f"{gap}<{_TAG}{given}>\n"
        yield from _rows(group)
        yield f"</{_TAG}>\n"
        gap = "\n"


def _under_headings(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield groups in the form in which duet shows them to its reflector."""
    gap = ""
    for group in groups:
        written = id_range(group.reach)
        yield f"{gap}## Group `{attribute(group.id or '')}`\n"
        yield f"_range: `{written}`_\n\n" if written else "\n"
        yield from _rows(group)
        gap = "\n"


def _rows(group: Group) -> Iterator[str]:
    for entry in group.entries:
        mark = EMOJI.mark(entry.line)
        yield f"* {mark} ({entry.line.dated}) {escape_tag(EMOJI.words(entry.line, mark), _TAG)}\n"


def parse(text: str) -> Iterator[Group | NotARow]:
    """Parse groups in both forms, with tags or headings, or in records of duet's own store as JSON. A line outside any
    group, or a record without content, gives a `NotARow`.
    """
    records = _records(text)
    if records is None:
        yield from _groups(text)
    for found in records or ():
        content, day = found.get("content"), _text(found, "observedDate")[:10]
        if not isinstance(content, str):
            yield NotARow(reason="no record")
            continue
        is_tagged = f"<{_TAG}" in content
        for group in _groups(content if is_tagged else f"<{_TAG}>\n{content}\n", day=day):
            yield _of_record(group, found, day) if isinstance(group, Group) else group


def _records(text: str) -> list[Mapping[str, object]] | None:
    """Return the objects of a JSON list, which are records of duet's store, or None for any other text."""
    if not text.lstrip("\ufeff \t\r\n").startswith("["):
        return None
    try:
        found = json.loads(text.removeprefix("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return None
    return [each for each in found if isinstance(each, dict)]


def _of_record(group: Group, found: Mapping[str, object], day: str) -> Group:
    """Return a group with the id, the kind and the times of its record. Rows without a time get the record's."""
    at = f"{day} {_text(found, 'timeOfDay')[:5]}"
    dated = at if instant(f"{at}Z") else ""
    is_reflection = _text(found, "kind") == Kind.REFLECTION
    entries = (
        entry if entry.line.dated or entry.clock else replace(entry, line=replace(entry.line, dated=dated))
        for entry in group.entries
    )
    return replace(
        group,
        entries=tuple(entries),
        id=_text(found, "id") or group.id,
        kind=Kind.REFLECTION if is_reflection else group.kind,
        created_at=instant(found.get("createdAt")),
    )


def _text(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _groups(text: str, *, day: str = "") -> Iterator[Group | NotARow]:
    """Parse the groups of a text. `day` is the date of rows that give only their time of day."""
    reading: _Reading | None = None
    for written in chain.from_iterable(map(_split_tags, lines_of(text))):
        opened = _opened(written, day)
        if opened is not None or (_CLOSING.fullmatch(written) and reading is not None):
            if reading is not None:
                yield reading.group()
            reading = opened
        elif reading is None:
            if written.strip():
                yield NotARow(reason="outside of a group")
        elif written.strip():
            reading.add(written)
    if reading is not None:
        yield reading.group()


def _split_tags(line: str) -> Iterable[str]:
    """Return the tags of a line and the text around them, if a tag begins the line or a closing tag ends it. Otherwise
    the tags are only mentioned, and the line stays whole.
    """
    if not line.lstrip().startswith((f"<{_TAG}", f"</{_TAG}")) and not line.rstrip().endswith(f"</{_TAG}>"):
        return (line,)
    return filter(str.strip, _TAGS.split(line))


def _opened(written: str, day: str) -> _Reading | None:
    if found := _OPENING.fullmatch(written):
        given = dict(_ATTRIBUTE.findall(found["attributes"]))
        kind = given.get("kind")
        return _Reading(
            day=day,
            head=Group(
                entries=(),
                id=unescape_attribute(given.get("id", "")) or None,
                kind=Kind(kind) if kind in tuple(Kind) else Kind.OBSERVATION,
                cwd=unescape_attribute(given.get("cwd", "")) or None,
                reach=reach_of(given["range"]) if "range" in given else NOWHERE,
            ),
        )
    found = _HEADING.fullmatch(written)
    return _Reading(day=day, head=Group(entries=(), id=unescape_attribute(found["id"]) or None)) if found else None


@mutable_record
class _Reading:
    head: Group
    rows: list[PrintedRow] = field(default_factory=list)
    more: list[list[str]] = field(default_factory=list)
    """Continuation lines of each row."""
    clocks: list[str] = field(default_factory=list)
    """Time of day of each row whose date is not known, otherwise "" (see `GroupRow.clock`)."""
    day: str = ""
    """Date of the rows that follow and give only their time of day."""

    def add(self, written: str) -> None:
        """Add a line to the group: the range below the heading, a date, a row, or the continuation of a row."""
        if not self.rows and (named := _RANGE.fullmatch(written)):
            self.head = replace(self.head, reach=reach_of(named["range"]))
            return
        if header := day_in(written):
            self.day = header
            return
        bullet = _BULLET.fullmatch(written)
        marked = EMOJI.undated.fullmatch(bullet["rest"] if bullet else written.strip())
        assert marked is not None
        timed = _DATE.fullmatch(marked["said"])
        if self.rows and not (bullet or marked["mark"] or timed):
            self.more[-1].append(written.strip())
            return
        words = unescape_tag(timed["words"] if timed else marked["said"], _TAG)
        self.day = (timed and timed["day"]) or self.day
        clock = timed["clock"].rjust(5, "0") if timed else ""
        line = EMOJI.line(words, mark=marked["mark"], dated=f"{self.day} {clock}" if self.day and clock else "")
        self.rows.append(line if marked["mark"] else replace(line, mark=""))
        self.clocks.append("" if self.day else clock)
        self.more.append([])

    def group(self) -> Group:
        """Return the finished group.

        A row that does not start with a mark gets its priority from the marks in its text, or low priority if there are
        none.
        """
        rows = (_whole(line, " ".join((line.text, *more))) for line, more in zip(self.rows, self.more, strict=True))
        entries = (GroupRow(line=line, clock=clock) for line, clock in zip(rows, self.clocks, strict=True))
        return replace(self.head, entries=tuple(entries))


def _whole(line: PrintedRow, text: str) -> PrintedRow:
    if line.mark:
        return replace(line, text=text)
    inside = EMOJI.mark_value(" ".join(mark for mark in EMOJI.marks if mark in text))
    return replace(line, text=text, priority=inside.priority if inside else Priority.LOW)


EXCHANGES = {
    name: Exchange(name=name, counter="chars-3.2", render=render, parse=parse)
    for name, render in (("duet-groups", _in_tags), ("duet-headings", _under_headings))
}
