r"""Notations: ways to write a row on one line and read it back, like `[2026-02-10 14:32] CRITICAL done: text`.

Parsing restores the text exactly, by removing these escapes:

* text that begins like a status (`done: `, `resolved: `) or a mark of the notation is preceded by a backslash;
* `<om-memory` and `</om-memory` become `<\om-memory` and `<\/om-memory`, so that no row can end the pack.

Lost are an open status, line breaks (written as spaces) and terminal controls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base import lazily
from omcli.base.errors import BadUsage
from omcli.base.record import record
from omcli.memory.observation import SETTLED, Observation, Priority, Status
from omcli.text.clean import printable
from omcli.text.instants import minute

PREAMBLE = (
    "Dated notes from earlier work; where two differ the later holds, and the latest user message decides. "
    "Names, paths and ids are exact."
)
"""Introduction to a pack. It only makes statements, since agents distrust commands in the output of a tool."""

TAG = "om-memory"
"""Element that encloses a pack. Readers of transcripts skip its content."""

WORKING_TITLE = "## Working Memory"
"""Title of the working-memory block."""
WORKING_HEADINGS = (
    "Current Task", "Modified Files", "Recent Errors", "Key Decisions", "Blockers", "Open Questions", "Notes",
    "Outcomes", "Commands", "Delegated Tasks", "Searches",
)  # fmt: skip
"""All sections of the working-memory block, in order."""

_BREAKS = lazily("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_TAG_LIKE = lazily(rf"<(\\*/?{TAG})", re.IGNORECASE)
_GUARDED_TAG = lazily(rf"<\\(\\*/?{TAG})", re.IGNORECASE)
_SETTLED = "(?:done|resolved): "
_DATED = r"\[(?P<dated>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})\] "
_SAID = lazily(r"(?:(?P<status>done|resolved): )?(?P<text>.*)", re.DOTALL)


@record
class PrintedRow:
    """Content of a printed row."""

    dated: str
    """`YYYY-MM-DD HH:MM`."""
    priority: Priority
    status: Status | None
    text: str
    importance: int | None = None
    """0 to 10, if known."""
    mark: str = ""
    """The mark it was read with, if any. It is written again by notations that have the same mark."""


@record
class MarkValue:
    """Priority, status and importance that a mark stands for."""

    priority: Priority
    status: Status | None = None
    importance: int | None = None


_UNMARKED = MarkValue(priority=Priority.MEDIUM)


@record
class Notation:
    """A way to write rows, one per line."""

    name: str
    marks: Mapping[str, MarkValue]
    """Meaning of each mark; empty if the notation does not write priorities."""
    looks_marked: re.Pattern[str]
    """Matches text whose start would be read as a status or a mark, so that it needs a backslash."""
    written: re.Pattern[str]
    """Matches a row on its own line, with a date."""
    undated: re.Pattern[str]
    """Matches a row below a line with its minute."""
    usual: str
    """Mark of a medium row without status, omitted below a line with the minute."""
    may_repeat: bool
    """True if several marks before one text are accepted."""

    def render(self, said: PrintedRow) -> str:
        """Return the row on its own line, with its date."""
        mark = self.mark(said)
        return f"[{said.dated}] {mark} {self.words(said, mark)}" if mark else f"[{said.dated}] {self.words(said, mark)}"

    def render_under(self, said: PrintedRow) -> str:
        """Return the row without its date, to be printed below a line with its minute."""
        mark = self.mark(said)
        return self.words(said, mark) if mark == self.usual else f"{mark} {self.words(said, mark)}"

    def parse(self, written: str, minute: str = "") -> PrintedRow | None:
        """Parse a line; None if it is not a row. Pass `minute` for a row below a line with that minute."""
        found = (self.undated if minute else self.written).fullmatch(written)
        return found and self.line(found["said"], mark=found["mark"], dated=minute or found["dated"])

    def mark(self, said: PrintedRow) -> str:
        """Return the mark of a row: the one it was read with if that fits, else the first that fits, else ""."""
        meaning = self.mark_value(said.mark) if said.mark else None
        if meaning is not None and _fits(meaning, said):
            return said.mark
        return next((mark for mark, meaning in self.marks.items() if _fits(meaning, said)), "")

    def mark_value(self, mark: str) -> MarkValue | None:
        """Return the meaning of a mark; None if it is not a mark. Of several separated by spaces, the most important
        counts."""
        if not self.may_repeat or mark in self.marks:
            return self.marks.get(mark)
        known = [self.marks.get(one) for one in mark.split(" ")]
        found = [meaning for meaning in known if meaning is not None]
        if len(found) < len(known):
            return None
        return max(found, key=lambda meaning: (meaning.priority.importance, meaning.status is not None))

    def words(self, said: PrintedRow, mark: str) -> str:
        """Return a row's status and text, to follow its mark."""
        text = single_line(said.text)
        if self.looks_marked.match(text):
            text = "\\" + text
        if said.status in SETTLED:
            meaning = self.mark_value(mark)
            if meaning is None or meaning.status is not said.status:
                return f"{said.status}: {escape_tags(text)}"
        return escape_tags(text)

    def line(self, words: str, *, mark: str | None, dated: str) -> PrintedRow:
        """Build a row from the status and text after its mark. Without a mark, it is a medium row."""
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
        )


def _fits(meaning: MarkValue, said: PrintedRow) -> bool:
    """Return True if a mark with this meaning fits a row."""
    if meaning.priority is not said.priority or meaning.status not in (None, said.status):
        return False
    return meaning.importance is None or meaning.importance == _importance(said)


def _importance(said: PrintedRow) -> int:
    """Return the importance of a row, or its priority's default if it is unknown or contradicts the priority."""
    if said.importance is not None and Priority.of_importance(said.importance) is said.priority:
        return said.importance
    return said.priority.importance


def line(row: Observation) -> PrintedRow:
    """Convert a row for printing."""
    return PrintedRow(
        dated=minute(row.dated),
        priority=row.priority,
        status=row.status,
        text=row.text,
        importance=row.importance,
        mark=str(row.metadata.get("mark", "")) if row.metadata else "",
    )


def single_line(text: str) -> str:
    """Return text on one line: line breaks become spaces, other spaces are kept."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def escape_tags(text: str) -> str:
    r"""Escape the tags of packs: `</om-memory` becomes `<\/om-memory`."""
    return _TAG_LIKE.sub(r"<\\\1", text) if "<" in text else text


def unescape_tags(text: str) -> str:
    """Undo `escape_tags`."""
    return _GUARDED_TAG.sub(r"<\1", text)


def _notation(name: str, marks: Mapping[str, MarkValue], *, may_repeat: bool = False) -> Notation:
    """Build a notation. If several marks fit a row, the first in `marks` is written."""
    one = f"(?:{'|'.join(map(re.escape, marks))}) " if marks else "(?!)"
    # Backslashes match too, since text that begins with an escaped mark needs one more.
    written = f"(?P<mark>(?:{one})+)" if may_repeat else f"(?P<mark>{one})" if marks else "(?P<mark>)"
    return Notation(
        name=name,
        marks=marks,
        looks_marked=lazily(rf"\\*(?:{_SETTLED}|{one})"),
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
"""The default: the priority as a word, no emoji."""
EMOJI = _notation(
    "emoji",
    {
        "✅": MarkValue(priority=Priority.HIGH, status=Status.DONE),
        **_of_priority("\N{LARGE RED CIRCLE}", "\N{LARGE YELLOW CIRCLE}", "\N{LARGE GREEN CIRCLE}"),
    },
    may_repeat=True,
)
"""Coloured circles for priorities, and a tick for rows of high priority that are done."""
BRACKETS = _notation("brackets", _of_priority("[!]", "[?]", "[i]"))
LEVELS = _notation("levels", _of_priority("HIGH", "MED", "LOW"))
OF_TEN = _notation(
    "importance",
    {f"{number}/10": MarkValue(priority=Priority.of_importance(number), importance=number) for number in range(11)},
)
"""The importance as a number."""
NONE = _notation("none", {})
"""No priorities; rows are read as medium."""

NOTATIONS: tuple[Notation, ...] = (WORDS, EMOJI, BRACKETS, LEVELS, OF_TEN, NONE)


def named(name: str) -> Notation:
    """Return the notation with this name. Raise BadUsage if there is none."""
    for notation in NOTATIONS:
        if notation.name == name:
            return notation
    raise BadUsage(f"unknown notation `{name}`", hint=f"notations: {', '.join(known.name for known in NOTATIONS)}")
