"""Daily notes: splitting them into pieces, and the sections of `MEMORY.md` that hold lasting facts from each day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Protocol

from omcli.base.record import record
from omcli.exchange import marks
from omcli.exchange.marks import appended, without_marks
from omcli.memory.message import digest
from omcli.memory.transcript import IngestedFile, Transcript
from omcli.text.clean import one_line

FORMAT = "notes"
"""Format name of sessions made from daily notes."""

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_ITEM = re.compile(r" ?(?:[-*+]|\d{1,9}[.)])[ \t]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@record
class Note:
    day: str
    """Date as `YYYY-MM-DD`."""
    path: str


class Notebook(Protocol):
    """Port for a folder of daily notes."""

    @property
    def path(self) -> str:
        """Absolute path of the folder, with links resolved."""

    def notes(self) -> tuple[Note, ...]:
        """Return the notes, oldest first. Raise NoInput if the folder cannot be read."""

    def as_it_is(self, note: Note) -> IngestedFile:
        """Return the origin and the current stamp of a note. Raise NoInput if it cannot be read."""

    def opened(self, note: Note) -> AbstractContextManager[Transcript]:
        """Open a note as a transcript of its session. Raise NoInput if it cannot be read."""

    def remember(self, note: Note, section: str) -> None:
        """Write the day's section to `MEMORY.md`, replacing an older one. May raise InputOutput or CannotCreate."""

    def forget(self, are_gone: Callable[[Sequence[str]], Sequence[bool]]) -> int:
        """Remove facts from the sections of `MEMORY.md` and return the number removed.

        `are_gone` returns, for each fact, True if it must be removed. May raise InputOutput or CannotCreate.
        """

    def archive(self, note: Note, known: IngestedFile) -> str | None:
        """Move a note to `archive` and return its new path, or None if the note has changed since `known`.

        May raise InputOutput or CannotCreate.
        """


def session_of(folder: str, day: str) -> str:
    return f"{FORMAT}-{digest(folder)[:8]}-{day}"


def pieces(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a note, each below its heading. Front matter is left out.

    A fenced block, if indented by three spaces at most, is not split. A first-level heading at the top is the note's
    title and is not repeated in pieces.
    """
    heading, piece, fence = "", list[str](), ""
    is_first = True
    for line in _without_head(text).split("\n"):
        if fence:
            piece.append(line)
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
            continue
        fenced = _FENCE.match(line)
        begins = bool(_ITEM.match(line) or _HEADING.match(line)) or not line.strip()
        if begins and piece:
            yield _below(heading, piece)
            piece = []
        if fenced:
            fence = fenced[1]
        if _HEADING.match(line):
            heading = "" if is_first and line.lstrip().startswith("# ") else line.strip()
        elif line.strip():
            piece.append(line.rstrip())
        is_first = is_first and not line.strip()
    if piece:
        yield _below(heading, piece)


def _below(heading: str, piece: Sequence[str]) -> str:
    text = "\n".join(piece).rstrip()
    return f"{heading}\n\n{text}" if heading else text


def _without_head(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else text[end + 5 :]


def section(day: str, facts: Sequence[str]) -> str:
    lines = (f"- {without_marks(one_line(fact))}\n" for fact in facts)
    return marks.section(day, f"## {day}\n\n{''.join(lines)}")


def with_section(content: bytes, day: str, section: str) -> bytes:
    """Return the content of `MEMORY.md` with a day's section replaced, or inserted in date order if it is new.

    All other bytes are unchanged.
    """
    new, found = section.encode(), _sections(content)
    for its_day, begin, end in found:
        if its_day == day:
            return content[:begin] + new + content[end:]
    later = next((begin for its_day, begin, _ in found if its_day > day), None)
    earlier = [end for its_day, _, end in found if its_day < day]
    if later is not None and not earlier:
        return content[:later] + new + b"\n" + content[later:]
    at = max(earlier, default=len(content))
    return appended(content[:at], new) + content[at:]


def without_facts(content: bytes, are_gone: Callable[[Sequence[str]], Sequence[bool]]) -> tuple[bytes, int]:
    """Return the content of `MEMORY.md` without the facts that `are_gone` selects, and their number. All other bytes
    are unchanged.
    """
    lines = content.splitlines(keepends=True)
    sections, ends = _sections(content), [*accumulate(map(len, lines))]
    facts = {
        place: line.decode("utf-8", "replace").removeprefix("- ")
        for place, (line, end) in enumerate(zip(lines, ends, strict=True))
        if line.startswith(b"- ") and any(begin < end <= last for _, begin, last in sections)
    }
    told = zip(facts, are_gone(tuple(facts.values())), strict=True)
    gone = {place for place, is_gone in told if is_gone}
    return b"".join(line for place, line in enumerate(lines) if place not in gone), len(gone)


def _sections(content: bytes) -> list[tuple[str, int, int]]:
    """Return the day, start and end of every section of a day. An unpaired mark is ordinary text."""
    found: list[tuple[str, int, int]] = []
    opening = None
    for mark in marks.marks(content):
        if not _DAY.fullmatch(mark.name):
            continue
        if not mark.is_end:
            opening = mark
        elif opening and mark.name == opening.name:
            found.append((mark.name, opening.first, mark.last))
            opening = None
    return found
