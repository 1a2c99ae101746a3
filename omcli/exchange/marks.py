"""Sections of Markdown files that belong to om: the lines between om's own marks, such as `<!-- om: memory -->`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omcli.base.errors import BadInput
from omcli.base.record import record

_MARK = re.compile(rb"<!-- om: (end of )?([\w-]+) -->[ \t]*\r?\n?\Z")
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""Byte-order marks of UTF-16."""


@record
class Mark:
    """A line that begins or ends a section."""

    name: str
    is_end: bool
    first: int
    """Offset of the line in the file. If a byte-order mark precedes the first line, it is not part of the line."""
    last: int
    """Offset of the line after it."""


def marks(content: bytes) -> Iterator[Mark]:
    """Yield the marks of a file."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    for line in content[at:].splitlines(keepends=True):
        if line.startswith(b"<!-- om: ") and (found := _MARK.fullmatch(line)):
            yield Mark(name=found[2].decode(), is_end=bool(found[1]), first=at, last=at + len(line))
        at += len(line)


def section(name: str, text: str) -> str:
    """Return lines between the marks of a section."""
    return f"<!-- om: {name} -->\n{text}<!-- om: end of {name} -->\n"


def without_marks(text: str) -> str:
    """Return text with a space in each `<!--`, so that it cannot be read as a mark."""
    return text.replace("<!--", "<! --")


def with_section(content: bytes, name: str, section: str) -> bytes:
    """Return the content with a section in place of the one with this name or, if there is none, at the end.

    All other bytes are unchanged. The section's lines end like the first line of the file. Raise BadInput if marks with
    this name do not form one pair with no other mark between them, or if the file begins like UTF-16 or has a null
    byte.
    """
    if content.startswith(_WIDE) or b"\0" in content:
        raise BadInput("it is UTF-16 or not text", hint="convert it: `iconv -f UTF-16 -t UTF-8`")
    end = content.find(b"\n")
    line_end = b"\r\n" if end > 0 and content[end - 1 : end] == b"\r" else b"\n"
    new = section.encode().replace(b"\n", line_end)
    found = list(marks(content))
    own = [place for place, mark in enumerate(found) if mark.name == name]
    if not own:
        return appended(content, new, line_end)
    if len(own) != 2 or own[1] != own[0] + 1 or [found[place].is_end for place in own] != [False, True]:
        raise BadInput(
            f"its marks `<!-- om: {name} -->` and `<!-- om: end of {name} -->` are not one pair",
            hint="remove the lines with these marks, and what is left of the section",
        )
    opening, closing = (found[place] for place in own)
    return content[: opening.first] + new + content[closing.last :]


def appended(before: bytes, section: bytes, line_end: bytes = b"\n") -> bytes:
    """Return the content with a section below it, an empty line apart."""
    gap = b"" if before in (b"", _BOM) else line_end if before.endswith(b"\n") else 2 * line_end
    return before + gap + section
