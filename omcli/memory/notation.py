r"""How a row is written on one line, and read back: `[2026-02-10 14:32] CRITICAL done: text`.

A notation is exact: text goes in and comes out byte for byte, but for these escapes, which parsing takes back:

* a text that begins like a status (`done: `, `resolved: `) or a mark of the notation gets a backslash in front;
* `<om-memory` and `</om-memory` become `<\om-memory` and `<\/om-memory`: nothing inside a pack may end it;

and but for what is not written at all: an open status, line breaks (a space stands for them) and terminal controls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base.errors import BadUsage
from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.observation import SETTLED, Observation, Priority, Status
from omcli.text.clean import printable
from omcli.text.dates.instants import minute

PREAMBLE = (
    "Dated notes from earlier work; where two differ the later holds, and the latest user message decides. "
    "Names, paths and ids are exact."
)
"""What the reader is told: statements, since agents distrust commands that come out of a tool."""

TAG = "om-memory"
"""What encloses a pack; `formats.values` leaves out what stands in it."""

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
    """What a printed row says."""

    dated: str
    """`YYYY-MM-DD HH:MM`."""
    priority: Priority
    status: Status | None
    text: str
    importance: int | None = None
    """0 to 10, where it is known."""
    mark: str = ""
    """What it was marked with where it was read; a notation that knows the mark writes it again."""


@record
class MarkMeaning:
    """What a mark says."""

    priority: Priority
    status: Status | None = None
    importance: int | None = None


_UNMARKED = MarkMeaning(priority=Priority.MEDIUM)


@record
class Notation:
    """A way to write rows, one per line."""

    name: str
    marks: Mapping[str, MarkMeaning]
    """None: priorities are not written."""
    looks_marked: re.Pattern[str]
    """The beginning of a text that would be read as a status or a mark, and so gets a backslash in front."""
    written: re.Pattern[str]
    """A row on a line of its own."""
    undated: re.Pattern[str]
    """A row below its minute."""
    usual: str
    """The mark of a medium row of which nothing else is known: what goes without saying below a minute."""
    may_repeat: bool
    """Whether several marks before one text are read."""

    def render(self, said: PrintedRow) -> str:
        """The row on a line of its own, with its date."""
        mark = self.mark(said)
        return f"[{said.dated}] {mark} {self.words(said, mark)}" if mark else f"[{said.dated}] {self.words(said, mark)}"

    def render_under(self, said: PrintedRow) -> str:
        """The row below a line that holds its minute; a medium priority goes without a mark."""
        mark = self.mark(said)
        return self.words(said, mark) if mark == self.usual else f"{mark} {self.words(said, mark)}"

    def parse(self, written: str, minute: str = "") -> PrintedRow | None:
        """What a line says, or None where it is no row. The second text is the minute it stands under, or empty."""
        found = (self.undated if minute else self.written).fullmatch(written)
        return found and self.line(found["said"], mark=found["mark"], dated=minute or found["dated"])

    def mark(self, said: PrintedRow) -> str:
        """The mark of a row: the one it was read with, where that says the same here. Empty where marks are none."""
        meaning = self.meaning(said.mark) if said.mark else None
        if meaning is not None and _fits(meaning, said):
            return said.mark
        return next((mark for mark, meaning in self.marks.items() if _fits(meaning, said)), "")

    def meaning(self, mark: str) -> MarkMeaning | None:
        """What a mark says, or several with a space between them: the gravest priority. None for what is none."""
        if not self.may_repeat or mark in self.marks:
            return self.marks.get(mark)
        known = [self.marks.get(one) for one in mark.split(" ")]
        found = [meaning for meaning in known if meaning is not None]
        if len(found) < len(known):
            return None
        return max(found, key=lambda meaning: (meaning.priority.importance, meaning.status is not None))

    def words(self, said: PrintedRow, mark: str) -> str:
        """A row's status and text, as they stand behind its mark."""
        text = single_line(said.text)
        if self.looks_marked.match(text):
            text = "\\" + text
        if said.status in SETTLED:
            meaning = self.meaning(mark)
            if meaning is None or meaning.status is not said.status:
                return f"{said.status}: {escape_tags(text)}"
        return escape_tags(text)

    def line(self, words: str, *, mark: str | None, dated: str) -> PrintedRow:
        """The row whose status and text are written so, behind a mark. Without one it is a medium row."""
        mark = self.usual if mark is None else mark.rstrip(" ")
        meaning = self.meaning(mark) or _UNMARKED
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


def _fits(meaning: MarkMeaning, said: PrintedRow) -> bool:
    """Whether a mark of this meaning may stand before a row."""
    if meaning.priority is not said.priority or meaning.status not in (None, said.status):
        return False
    return meaning.importance is None or meaning.importance == _importance(said)


def _importance(said: PrintedRow) -> int:
    """The importance of a row; where its priority was chosen for other reasons, one that goes with that."""
    if said.importance is not None and Priority.of_importance(said.importance) is said.priority:
        return said.importance
    return said.priority.importance


def line(row: Observation) -> PrintedRow:
    """A row as it is printed."""
    return PrintedRow(
        dated=minute(row.dated),
        priority=row.priority,
        status=row.status,
        text=row.text,
        importance=row.importance,
        mark=str(row.metadata.get("mark", "")) if row.metadata else "",
    )


def single_line(text: str) -> str:
    """A row's text as it is printed: on one line, with all its spaces."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def escape_tags(text: str) -> str:
    r"""Text in which nothing opens or closes a pack: `</om-memory` is `<\/om-memory`."""
    return _TAG_LIKE.sub(r"<\\\1", text) if "<" in text else text


def unescape_tags(text: str) -> str:
    """Text that was `escape_tags`, as it was."""
    return _GUARDED_TAG.sub(r"<\1", text)


def _notation(name: str, marks: Mapping[str, MarkMeaning], *, may_repeat: bool = False) -> Notation:
    """A notation of these marks; of several that fit a row the first is written."""
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


def _of_priorities(high: str, medium: str, low: str) -> dict[str, MarkMeaning]:
    return {mark: MarkMeaning(priority=priority) for mark, priority in zip((high, medium, low), Priority, strict=True)}


WORDS = _notation("words", _of_priorities("CRITICAL", "IMPORTANT", "NOTE"))
"""The default: the priority in a word that reads the same everywhere, no emoji."""
EMOJI = _notation(
    "emoji",
    {
        "✅": MarkMeaning(priority=Priority.HIGH, status=Status.DONE),
        **_of_priorities("\N{LARGE RED CIRCLE}", "\N{LARGE YELLOW CIRCLE}", "\N{LARGE GREEN CIRCLE}"),
    },
    may_repeat=True,
)
"""Circles, and a tick for what is done and of high priority."""
BRACKETS = _notation("brackets", _of_priorities("[!]", "[?]", "[i]"))
LEVELS = _notation("levels", _of_priorities("HIGH", "MED", "LOW"))
OF_TEN = _notation(
    "importance",
    {f"{number}/10": MarkMeaning(priority=Priority.of_importance(number), importance=number) for number in range(11)},
)
"""The importance as a number."""
NONE = _notation("none", {})
"""No priorities; what is read is medium."""

NOTATIONS: tuple[Notation, ...] = (WORDS, EMOJI, BRACKETS, LEVELS, OF_TEN, NONE)


def named(name: str) -> Notation:
    """The notation of this name. Raises BadUsage."""
    for notation in NOTATIONS:
        if notation.name == name:
            return notation
    raise BadUsage(f"unknown notation `{name}`", hint=f"notations: {', '.join(known.name for known in NOTATIONS)}")
