"""Text as segments: sentences, list items and table rows, with code left out and markup taken off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from omcli.memory.text import one_line
from omcli.observers.rules.shell import counted

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_BULLET = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)]|\[[ xX]\])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"^[\s|:+\-=]+$")
_STRONG = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^`]+?)(?<=[^\s*])\*\*(?![\w*])")
_INLINE_CODE = re.compile(r"(`[^`]*`)")
# A sentence ends at . ! ? (or their wide forms) before a space and something that can begin one; not after "e.g.",
# an initial, or a number ("v1. 2"): names and versions are never cut.
_END = re.compile(r"(?<=[.!?…])[\"')\]”’]*\s+(?=[\"'(\[“‘`*]*[A-Z0-9À-ÞЀ-Я/@#])|(?<=[。！？])")
_LONG = 400
"""Characters beyond which a sentence is taken apart: a row shows a few hundred."""
_CLAUSE_END = re.compile(r"(?<=[,;:] )|(?<=[，；：、])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|ms|dr|st|prof|inc|jr|sr)|\b[A-Z]|\b\d{1,2})\.$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Segment:
    """One sentence, list item, heading or table row, on one line."""

    text: str
    is_item: bool = False
    is_heading: bool = False


def segments(text: str) -> Iterator[Segment]:
    """The segments of a text in order. Fenced code is left out; inline code stays as it is written."""
    for line in _prose_lines(text, as_written=False):
        if _TABLE.match(line):
            yield Segment(without_markup(" | ".join(filter(None, _cells(line)))), is_item=True)
            continue
        heading, bullet = _HEADING.match(line), _BULLET.match(line)
        mark = heading or bullet
        body = without_markup(line[mark.end() :] if mark else line)
        if not body:
            continue
        if heading or (body.endswith(":") and len(body) < 60 and not bullet):
            yield Segment(body.rstrip(":"), is_heading=True)
        elif bullet:
            yield Segment(body, is_item=True)
        else:
            yield from (Segment(sentence) for sentence in sentences(body))


def sentences(line: str) -> list[str]:
    """The sentences of one line of prose, long ones in clauses; abbreviations and versions don't end one."""
    found: list[str] = []
    for piece in _END.split(line):
        if found and len(found[-1]) < _LONG and _ABBREVIATION.search(found[-1][-12:]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return [clause for sentence in found for clause in _clauses(sentence)]


def _clauses(sentence: str) -> Iterator[str]:
    """A sentence as it is, or, where it goes on and on, in stretches that end with a comma or its like."""
    if len(sentence) <= _LONG:
        yield sentence
        return
    stretch = ""
    for clause in _CLAUSE_END.split(sentence):
        if stretch and len(stretch) + len(clause) > _LONG:
            yield stretch.strip()
            stretch = ""
        stretch += clause
    if stretch.strip():
        yield stretch.strip()


def without_markup(text: str) -> str:
    """One line without Markdown's strong marks; inline code, `**kwargs` and `__main__` stay."""
    pieces = _INLINE_CODE.split(one_line(text))
    return "".join(part if part.startswith("`") else _STRONG.sub(r"\1", part) for part in pieces).strip()


def prose(text: str) -> str:
    """A text as it is written, with its fenced code replaced by a short note of its size, on one line."""
    return one_line("\n".join(_prose_lines(text, as_written=True)))


def _prose_lines(text: str, *, as_written: bool) -> Iterator[str]:
    """Lines outside code fences. `as_written` notes the size of code, and leaves tables alone; else their rows name
    their columns, and code goes without a word.

    A fence that is never closed hides nothing: what follows it may be the point.
    """
    lines = text.splitlines()
    columns: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while at < len(lines):
        line = lines[at]
        opening = _FENCE.match(line)
        fence = opening.group(1) if opening else ""
        closing = _closing(lines, at + 1, fence) if fence and fence not in unclosed else None
        if closing is not None:
            yield from _note_of(lines[at + 1 : closing]) if as_written else ()
            at = closing
        elif fence:
            unclosed.add(fence)
        elif _TABLE.match(line) and not as_written:
            begins = not columns and _TABLE_RULE.match(lines[at + 1] if at + 1 < len(lines) else "x")
            columns = _cells(line) if begins else columns
            if not begins and not _TABLE_RULE.match(line):
                yield _row_with_columns(line, columns)
        elif not _TABLE_RULE.match(line):
            columns = []
            yield line
        at += 1


def _note_of(code: list[str]) -> Iterator[str]:
    """What stands for a block of code: a line or two as they are, more as their number."""
    inside = [line.strip() for line in code if line.strip()]
    if inside:
        yield (
            f"`{' '.join(' '.join(inside).split())}`" if len(inside) <= 2 else f"[{counted(len(inside))} lines of code]"
        )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _row_with_columns(line: str, columns: list[str]) -> str:
    """`| speed | before: 3 ms | after: 1 ms |`: a row says nothing without the names of its columns."""
    first, *cells = _cells(line)
    named = columns[1:] if len(columns) == len(cells) + 1 else [""] * len(cells)
    told = [f"{name}: {cell}" if name else cell for name, cell in zip(named, cells, strict=True) if cell]
    return f"| {' | '.join((first, *told))} |"


def _closing(lines: list[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        if lines[at].strip() == fence or (lines[at].strip().startswith(fence) and not lines[at].strip(" `~")):
            return at
    return None
