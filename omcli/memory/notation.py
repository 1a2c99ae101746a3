r"""Notations: a row on one line, written and read back, like `[2026-02-10 14:32] CRITICAL done: text`.

A notation is exact: text is restored byte for byte, with these escapes, which parsing removes:

* a text that begins like a status (`done: `, `resolved: `) or a mark of the notation gets a backslash in front;
* `<om-memory` and `</om-memory` become `<\om-memory` and `<\/om-memory`, so that nothing inside a pack can end it;

and without what is never written: an open status, line breaks (written as a space) and terminal controls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base.errors import BadUsage
from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.observation import SETTLED, Observation, Priority, Status
from omcli.text.clean import printable
from omcli.text.instants import minute

PREAMBLE = (
    "Dated notes from earlier work; where two differ the later holds, and the latest user message decides. "
    "Names, paths and ids are exact."
)
"""Told to the reader of a pack: statements, since agents distrust commands in the output of a tool."""

TAG = "om-memory"
"""Element that encloses a pack; `formats` leaves its content out of transcripts."""

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
    """The mark it was read with; a notation that knows the mark writes it again."""


@record
class MarkValue:
    """Meaning of a mark."""

    priority: Priority
    status: Status | None = None
    importance: int | None = None


_UNMARKED = MarkValue(priority=Priority.MEDIUM)


@record
class Notation:
    """A way to write rows, one per line."""

    name: str
    marks: Mapping[str, MarkValue]
    """Empty if priorities are not written."""
    looks_marked: re.Pattern[str]
    """Start of a text that would be read as a status or a mark, and is therefore escaped by a backslash."""
    written: re.Pattern[str]
    """A row on its own line, with a date."""
    undated: re.Pattern[str]
    """A row below the line with its minute."""
    usual: str
    """Mark of a plain medium row, omitted below a minute."""
    may_repeat: bool
    """True if several marks before one text are read."""

    def render(self, said: PrintedRow) -> str:
        """Return the row on its own line, with its date."""
        mark = self.mark(said)
        return f"[{said.dated}] {mark} {self.words(said, mark)}" if mark else f"[{said.dated}] {self.words(said, mark)}"

    def render_under(self, said: PrintedRow) -> str:
        """Return the row for a line below its minute; a medium priority needs no mark."""
        mark = self.mark(said)
        return self.words(said, mark) if mark == self.usual else f"{mark} {self.words(said, mark)}"

    def parse(self, written: str, minute: str = "") -> PrintedRow | None:
        """Parse a line; None if it is not a row. The second text is the minute it stands under, or empty."""
        found = (self.undated if minute else self.written).fullmatch(written)
        return found and self.line(found["said"], mark=found["mark"], dated=minute or found["dated"])

    def mark(self, said: PrintedRow) -> str:
        """Return the mark of a row: the one it was read with, if that means the same here. Empty if no mark fits."""
        meaning = self.mark_value(said.mark) if said.mark else None
        if meaning is not None and _fits(meaning, said):
            return said.mark
        return next((mark for mark, meaning in self.marks.items() if _fits(meaning, said)), "")

    def mark_value(self, mark: str) -> MarkValue | None:
        """Return the meaning of a mark, or of several separated by spaces: the highest priority. None if it is not a
        mark."""
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
        """Parse status and text that follow a mark; without a mark it is a medium row."""
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
    """Return True if a mark of this meaning fits a row."""
    if meaning.priority is not said.priority or meaning.status not in (None, said.status):
        return False
    return meaning.importance is None or meaning.importance == _importance(said)


def _importance(said: PrintedRow) -> int:
    """Return the importance of a row, or the usual one of its priority if the two disagree."""
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
    """Return a row's text on one line, with all its spaces."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def escape_tags(text: str) -> str:
    r"""Escape the tags of a pack in a text: `</om-memory` becomes `<\/om-memory`."""
    return _TAG_LIKE.sub(r"<\\\1", text) if "<" in text else text


def unescape_tags(text: str) -> str:
    """Undo `escape_tags`."""
    return _GUARDED_TAG.sub(r"<\1", text)


def _notation(name: str, marks: Mapping[str, MarkValue], *, may_repeat: bool = False) -> Notation:
    """Build a notation; of several marks that fit a row, the first is written."""
    one = f"(?:{'|'.join(map(re.escape, marks))}) " if marks else "(?!)"
    # Backslashes count: a text that has one already gets another.
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
"""Circles, and a tick for what is done and of high priority."""
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
    """Return the notation of this name. Raises BadUsage."""
    for notation in NOTATIONS:
        if notation.name == name:
            return notation
    raise BadUsage(f"unknown notation `{name}`", hint=f"notations: {', '.join(known.name for known in NOTATIONS)}")
