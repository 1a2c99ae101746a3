"""Anchors: exact strings worth keeping - paths, identifiers, flags, versions, ids, numbers, URLs, quoted code.

They are what a later reader searches for and acts on, so an observation may name only those that its sources name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_URL = r"https?://[^\s\"'<>)\]`]+"
_QUOTED = r"`[^`\n]{1,200}`"
# A path has slashes between name-like parts, or an ending; one slash between words is prose ("and/or").
_PATH = (
    r"(?:~|\.{1,2})?(?:/[\w.@+\-]+){2,}/?|[\w.@+\-]+(?:/[\w.@+\-]+)+\.\w{1,8}"
    r"|[\w\-]{2,}(?:\.[\w\-]+)*\.[a-z]{1,4}[a-z0-9]?\b"
)
_FLAG = r"(?<![\w\-])--?[a-zA-Z][\w\-]*"
_IDENTIFIER = (
    r"\b[A-Za-z_]\w+(?:(?:\.|::|->|#)[A-Za-z_]\w*)+"  # dotted: module.name, Type::method; not "e.g"
    r"|\b[A-Za-z]\w*_\w+"  # snake_case and SCREAMING_CASE
    r"|\b[a-z]+(?:[A-Z][a-z0-9]*)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b"  # camelCase, PascalCase
    r"|\b[A-Z]{1,6}-?\d{2,6}\b"  # E0308, TS2345, JIRA-12
)
_HEX = r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
_VERSION = r"\bv?\d+(?:\.\d+)+(?:[-+][\w.]+)?\b"
_REFERENCE = r"(?<!\w)#\d+\b|(?<!\w)@[A-Za-z][\w\-]+"
# Small whole numbers are counts, and counts are ours to make ("3 matches").
_NUMBER = r"\b(?:\d{1,3}(?:,\d{3})+|\d{3,}(?:[.:]\d+)*)\b"

_ANCHOR = re.compile("|".join((_URL, _QUOTED, _PATH, _FLAG, _IDENTIFIER, _HEX, _VERSION, _REFERENCE, _NUMBER)))


def anchors(text: str) -> tuple[str, ...]:
    """The anchors of a text in order, each once. Backticks and closing punctuation are not part of one."""
    found = (match.group().strip("`").rstrip(".,:;!?") for match in _ANCHOR.finditer(text))
    return tuple(dict.fromkeys(anchor for anchor in found if anchor))


def unsupported(text: str, sources: Iterable[str]) -> tuple[str, ...]:
    """The anchors of `text` that stand in none of the sources, compared with white space folded.

    A source that is JSON is searched as it is written and unescaped (`\\"` and `\\n` in arguments of tool calls).
    """
    wanted = anchors(text)
    if not wanted:
        return ()
    haystack = "\n".join(_searchable(source) for source in sources)
    return tuple(anchor for anchor in wanted if _folded(anchor) not in haystack)


def _searchable(source: str) -> str:
    folded = _folded(source)
    if "\\" not in source:
        return folded
    unescaped = (
        source.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\", "").replace("\0", "\\")
    )
    return f"{folded}\n{_folded(unescaped)}"


def _folded(text: str) -> str:
    return " ".join(text.split())
