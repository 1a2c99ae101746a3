"""Phrases in the text of rows: anchors, counts (`(× 3)`, `+4 more`) and speakers (`User: `, `Agent: `).

Anchors are exact strings worth keeping, like paths, identifiers, flags, versions, ids, numbers, URLs and quoted code.
Later readers search for them and act on them, so an observation may contain only those in its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from omcli.base import lazily
from omcli.text.clean import is_word_split

_SHOWN = 8
"""Number of names to list before counting the rest."""
_TIMES = lazily(r" \(× (\d{1,9})\)$")


# ---- counts


def counted(number: int) -> str:
    """Return a number as a string, or "99+" from 100 on, so that it can't be mistaken for an anchor."""
    return str(number) if number < 100 else "99+"


def first_of(names: Sequence[str], joint: str, *, shown: int = _SHOWN) -> str:
    """Join the first `shown` names, and add how many more there are."""
    more = len(names) - shown
    return joint.join(names[:shown]) + (f"{joint}+{counted(more)} more" if more > 0 else "")


def times_in(text: str) -> int:
    """Return the count at the end of a row's text; 1 without one."""
    return int(found[1]) if (found := _TIMES.search(text)) else 1


def without_times(text: str) -> str:
    """Return a row's text without its count."""
    return _TIMES.sub("", text)


def with_times(text: str, times: int) -> str:
    """Append a count, as in `Ran: make (× 3)`."""
    return f"{text} (× {times})" if times > 1 else text


# ---- speakers

USER = "User: "
"""Prefix of rows with a user's words. It is omitted in `MEMORY.md`."""
AGENT = "Agent: "
"""Prefix of rows with an agent's words."""
_LONGEST_SPEAKER = 40


def speaker(text: str) -> str:
    """Return the speaker that text begins with, or ""."""
    who, colon, _ = text.partition(": ")
    return (
        who if colon and len(who) <= _LONGEST_SPEAKER and who[:1].isupper() and who.replace(" ", "").isalnum() else ""
    )


def words_of(text: str) -> str:
    """Return text without the speaker it begins with."""
    who = speaker(text)
    return text.removeprefix(f"{who}: ") if who else text


# ---- anchors

_URL = r"https?://[^\s\"'<>)\]`]+"
# A path has several slashes or an extension; one slash between words is prose ("and/or").
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
# Small whole numbers are not anchors, since an observation may count things itself ("3 matches").
_NUMBER = r"\b(?:\d{1,3}(?:,\d{3})+|\d{3,}(?:[.:]\d+)*)\b"

_ANCHOR = lazily("|".join((_URL, _PATH, _FLAG, _IDENTIFIER, _HEX, _VERSION, _REFERENCE, _NUMBER)))

_CODE = lazily(r"`([^`\n]{1,200})`")
_UNSPACED = lazily(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Characters of scripts that are written without spaces; they end a word, as spaces and backticks do."""
_PUNCTUATION = ".,:;!?"
_PLAIN = lazily(r"""[("']*(?:[A-Z]?[a-z]+|[A-Z])(?:['’][a-z]+)?[.,:;!?)"']*\Z""")
"""An ordinary word, which can't contain an anchor and is not searched."""
_LONGEST_WORD = 300
"""Longest word to search, in characters. Longer ones are not names, and the search takes quadratic time."""
_REMEMBERED = 256
"""Size of the cache: rules need the anchors of the same sentence several times."""


@lru_cache(maxsize=_REMEMBERED)
def anchors(text: str) -> tuple[str, ...]:
    """Return the distinct anchors in text, in order, without backticks and trailing punctuation."""
    found: list[str] = []
    for index, piece in enumerate(_CODE.split(text)):
        if index % 2:
            found.append(piece.strip().rstrip(_PUNCTUATION))
        else:
            found += _anchors_in_prose(piece)
    return tuple(dict.fromkeys(found))


def _anchors_in_prose(text: str) -> Iterator[str]:
    """Yield the anchors in text outside inline code."""
    apart = text.replace("`", " ")
    if not is_word_split(text):
        apart = _UNSPACED.sub(" ", apart)
    for word in apart.split():
        # Lower-case words are never anchors, and most words are lower case. This check takes a tenth of a match.
        if not (word.isalpha() and word.islower()) and len(word) <= _LONGEST_WORD and not _PLAIN.match(word):
            for match in _ANCHOR.finditer(word):
                yield match[0].rstrip(_PUNCTUATION)


def unknown_anchors(text: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Return the anchors of `text` that are in none of the sources, which `searchable` has prepared."""
    wanted = [anchor for anchor in anchors(text) if anchor]
    if not wanted:
        return ()
    haystack = "\n".join(sources)
    return tuple(anchor for anchor in wanted if _folded(anchor) not in haystack)


def searchable(source: str) -> str:
    """Return a source as `unknown_anchors` needs it: verbatim, and unescaped too, since arguments of calls are JSON."""
    folded = _folded(source)
    if "\\" not in source:
        return folded
    unescaped = source.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\", "")
    return "\n".join((folded, _folded(unescaped.replace("\0", "\\"))))


def _folded(text: str) -> str:
    return " ".join(text.split())
