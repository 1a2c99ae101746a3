r"""Notations: ways to write a row on one line and read it back, such as `[2026-02-10 14:32] CRITICAL done: text`.

Two escapes let parsing restore the text:

* Text that begins like a status (`done: `, `resolved: `, `unverified: `) or a mark of the notation gets a backslash in
  front. In a notation without marks, so does text that begins like a part of a pack: a heading, a date or a message.
* `<om-memory` and `</om-memory` become `<\om-memory` and `<\/om-memory`, so that no row can end the pack.

An open status, line breaks (written as spaces) and terminal control characters are lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base import lazily
from omcli.base.errors import BadUsage
from omcli.base.record import record
from omcli.memory.observation import CURRENT, NEXT_STEP, SETTLED, UNVERIFIED, Observation, Priority, Status
from omcli.text.clean import LOOKS_STRUCTURAL, OPENER, PACK_PART, single_line, visible
from omcli.text.instants import has_date, minute, printed_date

PREAMBLE = (
    "Dated notes from earlier work; where two differ the later holds, and the latest user message decides. "
    f"Names, paths and ids are exact, except in notes marked {UNVERIFIED}."
)
"""Introduction to a pack. It contains only statements, because agents distrust commands in the output of a tool."""

TAG = "om-memory"
"""Name of the element that encloses a pack. Transcript readers skip the element's content."""

WORKING_TITLE = "## Working Memory"
WORKING_HEADINGS = (
    "Current Task", "Modified Files", "Recent Errors", "Key Decisions", "Blockers", "Open Questions", "Notes",
    "Outcomes", "Commands", "Delegated Tasks", "Searches",
)  # fmt: skip
"""All section headings of the working-memory block, in order."""

_TAG_LIKE = lazily(rf"<(\\*/?{TAG})", re.IGNORECASE)
_GUARDED_TAG = lazily(rf"<\\(\\*/?{TAG})", re.IGNORECASE)
_SETTLED = f"(?:done|resolved|{UNVERIFIED}): "
_DATED = r"\[(?P<dated>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})\] "
_SAID = lazily(rf"(?:(?P<status>done|resolved): )?(?P<unverified>{UNVERIFIED}: )?(?P<text>.*)", re.DOTALL)


@record
class PrintedRow:
    """The parts of a row that are printed."""

    dated: str
    """Date and time as `YYYY-MM-DD HH:MM`, or "" if the row was read from a file that does not date it."""
    priority: Priority
    status: Status | None
    text: str
    importance: int | None = None
    """From 0 to 10, or None if unknown."""
    mark: str = ""
    """Mark with which the row was read, if any. Notations that have this mark use it again if it still fits."""
    is_unverified: bool = False
    """True if the row contains names that its sources lack."""


@record
class MarkValue:
    """Priority, status and importance expressed by a mark. A status or importance of None fits any."""

    priority: Priority
    status: Status | None = None
    importance: int | None = None


_UNMARKED = MarkValue(priority=Priority.MEDIUM)


@record
class Notation:
    """A way to write rows, one per line."""

    name: str
    marks: Mapping[str, MarkValue]
    """Meaning of each mark. Empty if the notation does not show priorities."""
    looks_marked: re.Pattern[str]
    """Matches text that needs a backslash: it begins like a status or a mark or, without marks, like part of a pack."""
    written: re.Pattern[str]
    """Matches a row with its date."""
    undated: re.Pattern[str]
    """Matches a row without a date, printed below a line that gives the minute."""
    usual: str
    """Mark, if any, of a medium-priority row without status. It is omitted below a line that gives the minute."""
    may_repeat: bool
    """True if several marks in front of the text are accepted."""

    def render(self, said: PrintedRow) -> str:
        """Return the row as a line with its date."""
        mark = self.mark(said)
        return f"[{said.dated}] {mark} {self.words(said, mark)}" if mark else f"[{said.dated}] {self.words(said, mark)}"

    def render_under(self, said: PrintedRow) -> str:
        """Return the row to print below its date. The usual mark is omitted, unless the words look like structure."""
        mark = self.mark(said)
        words = self.words(said, mark)
        is_plain = not mark or (mark == self.usual and not LOOKS_STRUCTURAL.match(visible(words)))
        return words if is_plain else f"{mark} {words}"

    def parse(self, written: str, minute: str = "") -> PrintedRow | None:
        """Parse a row that begins with its date and mark, or return None if it doesn't. With `minute` (the time from a
        line above), parse any text as a row, with or without a mark.
        """
        found = (self.undated if minute else self.written).fullmatch(written)
        return found and self.line(found["said"], mark=found["mark"], dated=minute or found["dated"])

    def mark(self, said: PrintedRow) -> str:
        """Return the mark to print: the one the row was read with if it fits, otherwise the first that fits, or ""."""
        meaning = self.mark_value(said.mark) if said.mark else None
        if meaning is not None and _fits(meaning, said):
            return said.mark
        return next((mark for mark, meaning in self.marks.items() if _fits(meaning, said)), "")

    def mark_value(self, mark: str) -> MarkValue | None:
        """Return the meaning of a mark, or of the most important of several, or None if it is not a mark."""
        if not self.may_repeat or mark in self.marks:
            return self.marks.get(mark)
        known = [self.marks.get(one) for one in mark.split(" ")]
        found = [meaning for meaning in known if meaning is not None]
        if len(found) < len(known):
            return None
        return max(found, key=lambda meaning: (meaning.priority.importance, meaning.status is not None))

    def words(self, said: PrintedRow, mark: str) -> str:
        """Return the row's text as printed after `mark`. It begins with the status, if the row is settled and the mark
        doesn't say so, and with `unverified: ` if the row is unverified.
        """
        text = single_line(said.text)
        if self.looks_marked.match(text):
            text = "\\" + text
        text = escape_tags(f"{UNVERIFIED}: {text}" if said.is_unverified else text)
        if said.status in SETTLED:
            meaning = self.mark_value(mark)
            if meaning is None or meaning.status is not said.status:
                return f"{said.status}: {text}"
        return text

    def line(self, words: str, *, mark: str | None, dated: str) -> PrintedRow:
        """Build a row from its mark and the words after it. Without a mark, the row gets medium priority."""
        mark = self.usual if mark is None else mark.rstrip(" ")
        meaning = self.mark_value(mark) or _UNMARKED
        found = _SAID.fullmatch(words)
        text = unescape_tags(found["text"] if found else words)
        return PrintedRow(
            dated=dated,
            priority=meaning.priority,
            status=Status(found["status"]) if found and found["status"] else meaning.status,
            text=text[1:] if text.startswith("\\") and self.looks_marked.match(text) else text,
            importance=meaning.importance,
            mark=mark,
            is_unverified=bool(found and found["unverified"]),
        )


def _fits(meaning: MarkValue, said: PrintedRow) -> bool:
    """Return True if a mark expresses a row's importance or, if it shows no importance, its priority and status."""
    if meaning.importance is not None:
        return meaning.importance == (said.priority.importance if said.importance is None else said.importance)
    return meaning.priority is said.priority and meaning.status in (None, said.status)


def line(row: Observation) -> PrintedRow:
    """Return the parts of a row to print."""
    return PrintedRow(
        dated=minute(row.dated),
        priority=row.priority,
        status=row.status,
        text=row.text,
        importance=row.importance,
        mark=str(row.metadata.get("mark", "")) if row.metadata else "",
        is_unverified=UNVERIFIED in row.tags,
    )


def reference(row: Observation) -> str | None:
    """Return the date that a row refers to, or None if there is none or the row's own date or text gives it already."""
    spoken = row.refers_to
    return None if not spoken or row.dated.startswith(spoken) or has_date(row.text, spoken, at=row.dated) else spoken


def full_text(row: Observation, *, is_dated: bool = True) -> str:
    """Return a row's text, its `reference` (if `is_dated`), and the next step if it is the unsettled current task."""
    text = row.text
    if is_dated and (spoken := reference(row)):
        text += f" ({printed_date(spoken)})"
    step = row.metadata.get(NEXT_STEP) if CURRENT in row.tags and row.status not in SETTLED else None
    return f"{text} (next: {step})" if step else text


def escape_tags(text: str) -> str:
    r"""Escape the tags of packs: `</om-memory` becomes `<\/om-memory`."""
    return _TAG_LIKE.sub(r"<\\\1", text) if "<" in text else text


def unescape_tags(text: str) -> str:
    return _GUARDED_TAG.sub(r"<\1", text)


def _notation(name: str, marks: Mapping[str, MarkValue], *, may_repeat: bool = False) -> Notation:
    """Build a notation. If several marks fit a row, the first in `marks` is used."""
    one = f"(?:{'|'.join(map(re.escape, marks))}) " if marks else "(?!)"
    # Backslashes match too, because text that begins with an escaped mark needs one more.
    structural = ("", "") if marks else (f"|{OPENER}", f"|{PACK_PART}")
    written = f"(?P<mark>(?:{one})+)" if may_repeat else f"(?P<mark>{one})" if marks else "(?P<mark>)"
    return Notation(
        name=name,
        marks=marks,
        looks_marked=lazily(rf"\\*(?:{_SETTLED}|{one.rstrip()}[ :]{structural[0]}){structural[1]}"),
        written=lazily(f"{_DATED}{written}(?P<said>.*)", re.DOTALL),
        undated=lazily(f"(?:{written})?(?P<said>.*)", re.DOTALL),
        usual=next(
            (
                mark
                for mark, meaning in marks.items()
                if meaning.priority is Priority.MEDIUM and meaning.importance in (None, Priority.MEDIUM.importance)
            ),
            "",
        ),
        may_repeat=may_repeat,
    )


def _of_priority(high: str, medium: str, low: str) -> dict[str, MarkValue]:
    return {mark: MarkValue(priority=priority) for mark, priority in zip((high, medium, low), Priority, strict=True)}


WORDS = _notation("words", _of_priority("CRITICAL", "IMPORTANT", "NOTE"))
"""The default notation: priorities as words, without emoji."""
EMOJI = _notation(
    "emoji",
    {
        "✅": MarkValue(priority=Priority.HIGH, status=Status.DONE),
        **_of_priority("\N{LARGE RED CIRCLE}", "\N{LARGE YELLOW CIRCLE}", "\N{LARGE GREEN CIRCLE}"),
    },
    may_repeat=True,
)
"""Coloured circles for priorities, and a tick for high-priority rows that are done."""
BRACKETS = _notation("brackets", _of_priority("[!]", "[?]", "[i]"))
LEVELS = _notation("levels", _of_priority("HIGH", "MED", "LOW"))
OF_TEN = _notation(
    "importance",
    {f"{number}/10": MarkValue(priority=Priority.of_importance(number), importance=number) for number in range(11)},
)
"""Importance as a number, such as `7/10`."""
NONE = _notation("none", {})
"""No priorities. Rows read back get medium priority."""

NOTATIONS: tuple[Notation, ...] = (WORDS, EMOJI, BRACKETS, LEVELS, OF_TEN, NONE)


def named(name: str) -> Notation:
    """Return the notation with this name. Raise BadUsage if the name is unknown."""
    for notation in NOTATIONS:
        if notation.name == name:
            return notation
    raise BadUsage(f"unknown notation `{name}`", hint=f"notations: {', '.join(known.name for known in NOTATIONS)}")
