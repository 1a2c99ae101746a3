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
    for line in _prose_lines(text):
        if _TABLE.match(line):
            cells = [cell for cell in (cell.strip() for cell in line.strip().strip("|").split("|")) if cell]
            yield Segment(without_markup(" | ".join(cells)), is_item=True)
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
    """The sentences of one line of prose; abbreviations and versions don't end one."""
    found: list[str] = []
    for piece in _END.split(line):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return found


def without_markup(text: str) -> str:
    """One line without Markdown's strong marks; inline code, `**kwargs` and `__main__` stay."""
    pieces = _INLINE_CODE.split(one_line(text))
    return "".join(part if part.startswith("`") else _STRONG.sub(r"\1", part) for part in pieces).strip()


def prose(text: str) -> str:
    """A text with its fenced code replaced by a short note of its size, on one line."""
    return one_line("\n".join(_prose_lines(text, note_code=True)))


def _prose_lines(text: str, *, note_code: bool = False) -> Iterator[str]:
    """Lines outside code fences. A fence that is never closed hides nothing: what follows it may be the point."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        closing = _closing(lines, at + 1, opening.group(1)) if opening else None
        if closing is None:
            names_columns = _TABLE.match(lines[at]) and _TABLE_RULE.match(" ".join(lines[at + 1 : at + 2]) or "x")
            if not opening and not names_columns and not _TABLE_RULE.match(lines[at]):
                yield lines[at]
            at += 1
            continue
        inside = [line for line in lines[at + 1 : closing] if line.strip()]
        if note_code and inside:
            # A line or two of code is quicker to read than a note about it.
            yield (
                f"`{' '.join(' '.join(inside).split())}`"
                if len(inside) <= 2
                else f"[{counted(len(inside))} lines of code]"
            )
        at = closing + 1


def _closing(lines: list[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        if lines[at].strip() == fence or (lines[at].strip().startswith(fence) and not lines[at].strip(" `~")):
            return at
    return None
