"""Phrases in the text of rows: anchors, counts (`(× 3)`, `+4 more`) and speakers (`User: `, `Agent: `).

Anchors are exact strings worth keeping, such as paths, identifiers, flags, versions, ids, numbers, URLs and quoted
code. Later readers search for them and act on them, so an observation may contain only anchors from its sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from omcli.base import lazily
from omcli.text.clean import AGENT, is_word_split, visible

_SHOWN = 8
"""Number of names listed before the rest are counted."""
_TIMES = lazily(r" \(× (\d{1,9})\)$")


# ---- counts


def counted(number: int) -> str:
    """Return a number as text, or "99+" if it is 100 or more, because such numbers would count as anchors."""
    return str(number) if number < 100 else "99+"


def first_of(names: Sequence[str], joint: str, *, shown: int = _SHOWN) -> str:
    """Join the first `shown` names, followed by the number of omitted ones (`+4 more`)."""
    more = len(names) - shown
    return joint.join(names[:shown]) + (f"{joint}+{counted(more)} more" if more > 0 else "")


def times_in(text: str) -> int:
    """Return the count at the end of a row's text, or 1 if it has none."""
    return int(found[1]) if (found := _TIMES.search(text)) else 1


def without_times(text: str) -> str:
    return _TIMES.sub("", text)


def with_times(text: str, times: int) -> str:
    """Append a count above 1 to text, as in `Ran: make (× 3)`."""
    return f"{text} (× {times})" if times > 1 else text


# ---- speakers

OUTPUT_OF = "Output of "
"""Beginning of rows that only an output says (`Output of WebFetch says: …`)."""
HEARD_FROM = lazily(rf"(?:{OUTPUT_OF}.{{1,60}}? says|Pasted text says): ")
"""Matches the words that name the speaker of a row that neither the user nor the agent said."""
_LONGEST_SPEAKER = 40
_USER_NOUN = (
    r"\W*(?:(?:(?:the|der|die|le|la|el|il) |l['’])?"
    r"(?:user|human|(?:be)?nutzer(?:in)?|anwender(?:in)?|utilisat(?:eur|rice)|usu[aá]ri[oa]|utente|пользователь)\b"
    r"|用户|用戶|使用者|ユーザー|사용자)"
)
_MARKS = r"\W*(?:(?:critical|important|note|high|med(?:ium)?|low)\b\W+)*"
"""Matches marks of priority in front of a row, which say nothing about the speaker."""
_FOR_USER = lazily(_MARKS + _USER_NOUN, re.IGNORECASE)
# In the words of an agent, "User table created" does not speak for the user.
_STATES = lazily(
    rf"{_MARKS}{_USER_NOUN}(?:['’]s (?:name|wish|rule|preference|request|instruction|order|goal|decision)|:|"
    r" (?:also |now |explicitly |always |never |only |still )?(?:wants?|prefers?|asks?|asked|said|says|states?|stated|"
    r"asserts?|asserted|requires?|required|requests?|requested|likes?|dislikes?|needs?|decided|decides|instructs?|"
    r"instructed|told|tells|is|was|has|had|lives|works|uses|agreed|agrees|declined|confirm(?:s|ed)|approve[sd]|"
    r"allow(?:s|ed)|authori[sz]e[sd]|wishes|would|must|will|insist(?:s|ed)|expects?|does|did|refused|answered|ran|"
    r"chose|selected|corrected|intends|plans|hates|loves|owns)\b)",
    re.IGNORECASE,
)
_SAYS = lazily(r"[^:\n]{0,80}:")
# A colon may be that of another script. Paths, code and results are not names.
_BEGINS_WITH_NAME = lazily(rf"\W*[^:：﹕∶\n\"`/\\=(<>|&;$→]{{1,{_LONGEST_SPEAKER}}}(?::(?!\S)|:[*_]|[：﹕∶])")


def speaks_for_user(text: str, *, is_agent: bool = False) -> bool:
    """Return True if text begins by naming the user, as in "User: …", "The user prefers …" or "用户…".

    With `is_agent`, English text must also report a statement, a wish or a trait of the user.
    """
    said = visible(text)
    pattern = _STATES if is_agent and said.isascii() else _FOR_USER
    return bool(pattern.match(said))


def names_speaker(text: str) -> bool:
    """Return True if text may read as the words of a person, as "User: …", "Nora: …" and "The user wants …" do."""
    said = visible(text)
    user = _FOR_USER.match(said)  # compiled in a tenth of the time of the patterns that begin with it
    is_user = user is not None and (_SAYS.match(said, user.end()) or speaks_for_user(text, is_agent=True))
    return bool(is_user or _BEGINS_WITH_NAME.match(said))


def agent_name(name: str | None) -> str:
    """Return the speaker of an agent's rows: its name, or `Agent` if it has none or its name means the user."""
    return name if name and not speaks_for_user(name) else AGENT.removesuffix(": ")


def speaker(text: str) -> str:
    """Return the speaker named at the beginning of text, or "" if there is none."""
    who, colon, _ = text.partition(": ")
    return (
        who if colon and len(who) <= _LONGEST_SPEAKER and who[:1].isupper() and who.replace(" ", "").isalnum() else ""
    )


def words_of(text: str) -> str:
    """Return text without the speaker at its beginning."""
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
# Small whole numbers are not anchors, because an observation may itself count things ("3 matches").
_NUMBER = r"\b(?:\d{1,3}(?:,\d{3})+|\d{3,}(?:[.:]\d+)*)\b"

_ANCHOR = lazily("|".join((_URL, _PATH, _FLAG, _IDENTIFIER, _HEX, _VERSION, _REFERENCE, _NUMBER)))

_CODE = lazily(r"`([^`\n]{1,200})`")
_UNSPACED = lazily(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Chinese, Japanese and Korean characters. They end a word, just as spaces and backticks do."""
_PUNCTUATION = ".,:;!?"
_PLAIN = lazily(r"""[("']*(?:[A-Z]?[a-z]+|[A-Z])(?:['’][a-z]+)?[.,:;!?)"']*\Z""")
"""An ordinary word. It cannot contain an anchor, so it is not searched."""
_LONGEST_WORD = 300
"""Maximum length of a word to search, in characters. Longer words are not names, and searching takes quadratic time."""
_REMEMBERED = 256
"""Number of texts whose anchors are cached, because rules need the anchors of a sentence several times."""


@lru_cache(maxsize=_REMEMBERED)
def anchors(text: str) -> tuple[str, ...]:
    """Return the distinct anchors in text, in order, without backticks or trailing punctuation."""
    found: list[str] = []
    for index, piece in enumerate(_CODE.split(text)):
        if index % 2:
            found.append(piece.strip().rstrip(_PUNCTUATION))
        else:
            found += _anchors_in_prose(piece)
    return tuple(dict.fromkeys(found))


def _anchors_in_prose(text: str) -> Iterator[str]:
    apart = text.replace("`", " ")
    if not is_word_split(text):
        apart = _UNSPACED.sub(" ", apart)
    for word in apart.split():
        # Lower-case words are never anchors, and most words are lower case. This check is ten times as fast as a match.
        if not (word.isalpha() and word.islower()) and len(word) <= _LONGEST_WORD and not _PLAIN.match(word):
            for match in _ANCHOR.finditer(word):
                yield match[0].rstrip(_PUNCTUATION)


def unknown_anchors(text: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Return the anchors of `text` that none of the sources contains. Each source must be prepared by `searchable`."""
    wanted = [anchor for anchor in anchors(text) if anchor]
    if not wanted:
        return ()
    haystack = "\n".join(sources)
    return tuple(anchor for anchor in wanted if _folded(anchor) not in haystack)


_NAMES = lazily(r"(?<![\w-])(?!CRITICAL|IMPORTANT)[A-Z]{6,}(?![\w-])|(?<=\bbranch )[\w.-]+(?:/[\w.-]*\w)+")
"""Matches names such as ECONNREFUSED, but not the words that mark priority, and branches such as `fix/quay`."""


def unknown_names(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the anchors, names in capitals and branches in `text` that none of the sources (see `unknown_anchors`)
    contains. Names and branches are compared without case, because a row may emphasise words of its sources.
    """
    unknown = unknown_anchors(text, sources)
    if not (names := _NAMES.findall(text)):
        return unknown
    haystack = "\n".join(sources).lower()
    return tuple(dict.fromkeys((*unknown, *(name for name in names if name.lower() not in haystack))))


def searchable(source: str) -> str:
    """Return a source in the form needed by `unknown_anchors`: with single spaces, and if it contains backslashes, also
    a second time without escapes, because tool-call arguments are JSON.
    """
    folded = _folded(source)
    if "\\" not in source:
        return folded
    unescaped = source.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\", "")
    return "\n".join((folded, _folded(unescaped.replace("\0", "\\"))))


def _folded(text: str) -> str:
    return " ".join(text.split())
