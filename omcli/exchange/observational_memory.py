"""The folder of `observational-memory`: dated notes in `observations.md`, lasting facts in `reflections.md`.

Its other notes, `profile.md` and `active.md`, are excerpts of these two, which it writes anew whenever they change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omcli.base.record import field, mutable_record
from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, lines_of
from omcli.memory.notation import EMOJI, PrintedRow
from omcli.memory.observation import Kind, Priority
from omcli.text.clean import one_line
from omcli.text.instants import instant, minute

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+)\Z")
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")
_BULLET = re.compile(r"([ \t]*)[-*+][ \t]+(.*)\Z")
# Facts about a row, or about a section: `<!--om: id=ome_1 kind=preference last_seen=2026-02-10T09:00:00Z-->`.
_FACTS = re.compile(r"<!--om(?:-section)?:((?:(?!-->|<!--).)*)-->")
_STAMP = re.compile(r"\*Last (?:updated|reflected): *(\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2})?)[^*]*\*\s*\Z")
_LAYOUT = re.compile(r"(?:-{3,}|</?(?:details|summary)\b.*|<!--.*-->)?\Z")
_MARK = re.compile("(\N{LARGE RED CIRCLE}|\N{LARGE YELLOW CIRCLE}|\N{LARGE GREEN CIRCLE})\ufe0f?[ \t]*")
_CLOCK = re.compile(r"((?:[01]\d|2[0-3]):[0-5]\d)(?![\d:])(?:[ \t]*(?:UTC|Z)\b)?[ \t]*(?:[-–—:][ \t]+)?")
_DATED = re.compile(r"\[(\d{4}-\d{2}-\d{2})\][ \t]*")
_AS_OF = re.compile(r"\(as of (\d{4}-\d{2}-\d{2})\b[^()]*\)")
_LABEL = re.compile(r"[^:]+:\**\Z")
_CONTEXT = "current context"
"""Heading of what was going on at the end of a day."""
_ARCHIVE = "archive"
_TYPES = {
    "identity": "profile", "profile": "profile", "preference": "behavior", "opinion": "behavior",
    "communication": "behavior", "relationship": "behavior",
}  # fmt: skip
"""Type of the items below a heading with this word. Others are knowledge."""


@mutable_record
class _Document:
    """The part of a folder that is being read."""

    stamp: str | None = None
    """Time at which the reflections were last updated."""
    headings: dict[int, str] = field(default_factory=dict)
    """Headings above the current line, by level."""
    day: str | None = None
    """Day of the observations, or None among reflections."""
    entries: list[GroupRow] = field(default_factory=list)
    """Observations of the day."""
    above: list[tuple[int, int | None, str]] = field(default_factory=list)
    """Bullets that the next one may be below: indentation, index in `entries` if any, and text if it is a label."""

    def enter(self, level: int, heading: str) -> Iterator[Group]:
        """Begin a section. If it ends a day, yield the observations of that day."""
        self.above = []
        self.headings = {known: text for known, text in self.headings.items() if known < level} | {level: heading}
        if level > 2:
            return
        yield from self.end()
        day = _DAY.match(heading) if level == 2 else None
        self.day = day[1] if day and instant(day[1]) else None

    def end(self) -> Iterator[Group]:
        if self.entries:
            yield Group(entries=tuple(self.entries), created_at=instant(f"{self.day}T12:00:00Z"))
        self.entries = []

    def take(self, indent: int, written: str) -> Iterator[Group | NotARow]:
        """Keep an observation, or yield a reflection."""
        facts = dict(part.partition("=")[::2] for found in _FACTS.findall(written) for part in found.split())
        text = one_line(_FACTS.sub("", written))
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()
        if not text:
            return
        if self.day is not None:
            self._observe(indent, text)
        elif _LABEL.match(text):
            self.above.append((indent, None, text))
        else:
            self.above.append((indent, None, ""))
            yield self._reflection(text, facts)

    def _observe(self, indent: int, text: str) -> None:
        mark, text = _without(_MARK, text)
        clock, text = _without(_CLOCK, text)
        priority = Priority.LOW if self._below(_CONTEXT) else _priority(mark)
        under = next((place for _, place, _ in reversed(self.above)), None)
        row = PrintedRow(dated="", priority=priority, status=None, text=text, mark=mark)
        self.above.append((indent, len(self.entries), ""))
        self.entries.append(GroupRow(line=row, clock=clock, under=under))

    def _reflection(self, text: str, facts: Mapping[str, str]) -> Group:
        """Return an item. Its subject precedes its text: the headings below the section's, and the labels above it."""
        mark, text = _without(_MARK, text)
        day, text = _without(_DATED, text)
        as_of = _AS_OF.search(text)
        at = _at(day or (as_of[1] if as_of else facts.get("last_seen", "")))
        section = self.headings.get(2, "")
        subjects = [heading for level, heading in sorted(self.headings.items()) if level > 2]
        labels = [label.strip("* \t").rstrip(":") for _, _, label in self.above if label]
        text = ": ".join([*subjects, *labels, text])
        priority = Priority.LOW if self._below(_ARCHIVE) else _priority(mark)
        row = PrintedRow(dated=minute(at) if at else "", priority=priority, status=None, text=text, mark=mark)
        words = section.casefold()
        type_ = next((type_ for word, type_ in _TYPES.items() if word in words), "knowledge")
        known = {"section": section, **facts}
        row_id = known.pop("id", None)
        return Group(
            entries=(GroupRow(line=row, id=row_id),),
            kind=Kind.ITEM,
            created_at=self.stamp,
            category=f"{type_}/{section}",
            facts={name: fact for name, fact in known.items() if fact},
        )

    def _below(self, heading: str) -> bool:
        return any(text.casefold() == heading for text in self.headings.values())


def _without(mark: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return the mark at the beginning of a text, and the rest. Return "" and the text if either is missing."""
    found = mark.match(text)
    return (found[1], text[found.end() :]) if found and text[found.end() :] else ("", text)


def _at(written: str) -> str | None:
    """Return the instant of a time in UTC, or of the beginning of a day."""
    return instant(f"{written}T00:00:00Z" if len(written) == len("2026-01-05") else written.removesuffix("Z") + "Z")


def _priority(mark: str) -> Priority:
    meaning = EMOJI.mark_value(mark)
    return meaning.priority if meaning else Priority.MEDIUM


def _parse(text: str) -> Iterator[Group | NotARow]:
    document = _Document()
    indent, piece = 0, list[str]()
    for line in (*lines_of(text), ""):
        bullet, heading = _BULLET.match(line), _HEADING.match(line)
        is_layout = _LAYOUT.match(line.strip()) is not None
        stamp = _STAMP.match(line)
        if (bullet or heading or is_layout or stamp) and piece:
            yield from document.take(indent, " ".join(piece))
            piece = []
        if heading:
            yield from document.enter(len(heading[1]), heading[2].rstrip("# \t"))
        elif stamp:
            document.stamp = document.stamp or _at(stamp[1])
        elif not is_layout and not document.headings:
            yield NotARow(reason="no section")
        elif bullet and not is_layout:
            indent, piece = len(bullet[1].expandtabs(4)), [bullet[2]]
        elif not is_layout:
            indent = indent if piece else 0
            piece.append(line)
    yield from document.end()


EXCHANGES = {
    "observational-memory": Exchange(
        name="observational-memory",
        parse=_parse,
        hint="name its folder, usually ~/.local/share/observational-memory",
        files=("observations.md", "reflections.md"),
    )
}
