r"""How a row is written on one line, and read back: `[2026-02-10 14:32] CRITICAL done: text`.

A notation is exact: text goes in and comes out byte for byte, but for these escapes, which parsing takes back:

* a text that begins like a status (`done: `, `resolved: `) or a priority (`CRITICAL `) gets a backslash in front;
* `<om-memory` and `</om-memory` become `<\om-memory` and `<\/om-memory`: nothing inside a pack may end it;

and but for what is not written at all: an open status, line breaks (a space stands for them) and terminal controls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from omcli.memory.dates import minute
from omcli.memory.errors import BadUsage
from omcli.memory.observation import Observation, Priority, Status
from omcli.memory.patterns import lazily
from omcli.memory.record import record
from omcli.memory.text import printable

TAG = "om-memory"
"""What encloses a pack; `formats.values` leaves out what stands in it."""

_BREAKS = lazily("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_TAG_LIKE = lazily(rf"<(\\*/?{TAG})", re.IGNORECASE)
_GUARDED_TAG = lazily(rf"<\\(\\*/?{TAG})", re.IGNORECASE)
_MARK = r"(?:(?:done|resolved): |(?:CRITICAL|IMPORTANT|NOTE) )"
# Every row that is printed is looked at for one.
_MARK_LIKE = re.compile(rf"\\*{_MARK}")
_GUARDED_MARK = lazily(rf"\\+{_MARK}")


@record
class Line:
    """What a printed row says."""

    dated: str
    """`YYYY-MM-DD HH:MM`."""
    priority: Priority
    status: Status | None
    text: str


@record
class Notation:
    """A way to write rows, one per line."""

    name: str
    render: Callable[[Line], str]
    """The row on a line of its own, with its date."""
    render_under: Callable[[Line], str]
    """The row below a line that holds its minute; a medium priority goes without a word."""
    parse: Callable[[str, str], Line | None]
    """What a line says, or None where it is no row. The second text is the minute it stands under, or empty."""


def line(row: Observation) -> Line:
    """A row as it is printed."""
    return Line(dated=minute(row.dated), priority=row.priority, status=row.status, text=row.text)


def as_line(text: str) -> str:
    """A row's text as it is printed: on one line, with all its spaces."""
    return text if text.isprintable() else printable(_BREAKS.sub(" ", text))


def fenced(text: str) -> str:
    r"""Text in which nothing opens or closes a pack: `</om-memory` is `<\/om-memory`."""
    return _TAG_LIKE.sub(r"<\\\1", text) if "<" in text else text


def unfenced(text: str) -> str:
    """Text that was `fenced`, as it was."""
    return _GUARDED_TAG.sub(r"<\1", text)


_WORDS: Mapping[Priority, str] = {Priority.HIGH: "CRITICAL", Priority.MEDIUM: "IMPORTANT", Priority.LOW: "NOTE"}
_PRIORITIES = {word: priority for priority, word in _WORDS.items()}
_DATED = r"\[(?P<dated>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})\] "
_MARKED = rf"(?P<word>{'|'.join(_PRIORITIES)}) "
_SAID = r"(?:(?P<status>done|resolved): )?(?P<text>.*)"
_WRITTEN = lazily(_DATED + _MARKED + _SAID, re.DOTALL)
_WRITTEN_UNDER = lazily(f"(?:{_MARKED})?{_SAID}", re.DOTALL)


def _said(said: Line) -> str:
    text = as_line(said.text)
    if _MARK_LIKE.match(text):
        text = "\\" + text
    settled = f"{said.status}: " if said.status in (Status.DONE, Status.RESOLVED) else ""
    return f"{settled}{fenced(text)}"


def _words_dated(said: Line) -> str:
    return f"[{said.dated}] {_WORDS[said.priority]} {_said(said)}"


def _words_under(said: Line) -> str:
    return _said(said) if said.priority is Priority.MEDIUM else f"{_WORDS[said.priority]} {_said(said)}"


def _parse_words(written: str, minute: str = "") -> Line | None:
    found = (_WRITTEN_UNDER if minute else _WRITTEN).fullmatch(written)
    if found is None:
        return None
    text = unfenced(found["text"])
    return Line(
        dated=minute or found["dated"],
        priority=_PRIORITIES[found["word"] or "IMPORTANT"],
        status=Status(found["status"]) if found["status"] else None,
        text=text[1:] if _GUARDED_MARK.match(text) else text,
    )


WORDS = Notation(name="words", render=_words_dated, render_under=_words_under, parse=_parse_words)
"""The default: the priority in a word that reads the same everywhere, no emoji."""

NOTATIONS: tuple[Notation, ...] = (WORDS,)


def named(name: str) -> Notation:
    """The notation of this name. Raises BadUsage."""
    for notation in NOTATIONS:
        if notation.name == name:
            return notation
    raise BadUsage(f"unknown notation `{name}`", hint=f"notations: {', '.join(known.name for known in NOTATIONS)}")
