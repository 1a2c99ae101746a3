"""Words of dates, and words around a date that show if it is past or to come."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from omcli.base.patterns import lazily

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner janvier enero",
            "february feb februar février febrero",
            "march mar märz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août agosto",
            "september sept sep septembre septiembre",
            "october oct oktober octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember décembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
"""Months by name: English, with its abbreviations, German, French and Spanish."""
FULL_MONTHS = frozenset("january february march april may june july august september october november december".split())
AMBIGUOUS_MONTHS = frozenset(
    "may march mars mar sep sept dec jan jun jul aug apr nov oct feb april june august mai".split()
)
"""Names of months that are also verbs, people, planets or technical terms."""
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NUMBERS = {
    **{word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)},
    "eleven": 11, "twelve": 12, "a": 1, "an": 1, "a couple": 2, "a couple of": 2, "couple of": 2,
    "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4,
    "una": 1, "dos": 2, "tres": 3, "cuatro": 4,
}  # fmt: skip
UNITS = {
    **dict.fromkeys(("day", "tag", "tagen", "jour", "día"), "day"),
    **dict.fromkeys(("week", "woche", "wochen", "semaine", "semana"), "week"),
    "fortnight": "fortnight",
    **dict.fromkeys(("month", "monat", "monaten", "mois", "mes", "mese"), "month"),
    **dict.fromkeys(("year", "jahr", "jahren", "an", "ans", "año"), "year"),
}
"""Units by their names; a plural -s is removed first."""
STEPS = {"last": -1, "this past": -1, "this": 0, "the": 0, "next": 1, "coming": 1, "this coming": 1}
DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1, "yesterday": -1,
    "the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
    "heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1, "übermorgen": 2,
    "aujourd'hui": 0, "avant-hier": -2, "hier soir": -1, "hier matin": -1, "demain": 1, "après-demain": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "pasado mañana": 2,
}  # fmt: skip
"""Words for days, by distance from today. Left out: `hier` alone, which is German for here, and `mañana`, which is also
a morning."""


def any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def weekday(word: str) -> int:
    """Return the number of a weekday, full or abbreviated: Monday is 0."""
    return _WEEKDAYS.index(word[:3])


def number(word: str) -> int:
    """Return the number in a word or digits."""
    return int(word) if word.isdecimal() else NUMBERS[word]


def unit(word: str) -> str:
    """Return `day`, `week`, `fortnight`, `month` or `year` for its name in any of the languages."""
    return UNITS.get(word) or UNITS[word.removesuffix("s")]


# ---- around a date

# What goes on after a date that is no part of a name or a quantity: "in 2024 we moved", but "in 2024 lines".
_FOLLOWS = lazily(
    r"\s*(?:$|[,.;:!?)\]\"'»”—–-]|(?:a|after|an|and|are|as|at|because|before|but|by|can|due|for|from|he|her|his|how|i|i'\w+|if|"
    r"in|instead|is|it|it's|last|let's|my|next|not|on|or|our|please|she|should|since|so|than|that|the|their|then|there|"
    r"they|this|to|too|until|was|we|we'\w+|were|what|when|where|which|while|who|will|with|you|your)\b)"
)
_BOUNDARY = lazily(r"[.;!?,:()\n]")
_CLAUSE = 160
"""Number of characters before and after a date to look at."""

_WAS = lazily(r"\b(?:was|were|did|had|wasn't|weren't|didn't|hadn't|(?:should|could|would|might|must) have)\b")
_WILL = lazily(
    r"\b(?:will|won't|shall|should|let's|gonna|going to|plan(?:s|ned|ning)? (?:to|for|on)|scheduled|due|deadline|"
    r"upcoming|need(?:s)? to|(?:have|has) to|want(?:s)? to)\b|'ll\b"
)
_PAST = lazily(
    r"\b(?:ago|became|began|bought|broke|brought|built|came|done|drove|fell|felt|found|gave|got|grew|held|kept|knew|left|"
    r"lost|made|met|paid|ran|said|sat|saw|sent|sold|spent|spoke|stood|taught|thought|told|took|went|won|wrote|yesterday|"
    r"(?!(?:need|speed|feed|seed|indeed|embed|proceed|exceed|succeed)\b)\w{2,30}ed)\b"
)
_COULD = lazily(
    r"\b(?:can|could|would|takes?|only|once|twice|times?|first|ever|every|each|per|most|best|worst|all|within)\b"
)
_STARTS = lazily(
    r"(?:\b(?:is|are|be|it's|that's|back|again|you|me|us|starts?|begins?|ends?|expires?|leaves?|opens?|launch(?:es)?|"
    r"arrives?|due|off|meet|ships?)) $"
)


class Tense(StrEnum):
    """Tense of a clause."""

    OVER = "over"
    COMING = "coming"
    UNTOLD = "untold"


def goes_on(found: re.Match[str]) -> bool:
    """Return True if the text after a date continues like after a date: with punctuation, or a word that starts a new
    phrase."""
    return bool(_FOLLOWS.match(found.string[found.end() : found.end() + _CLAUSE]))


def tense(found: re.Match[str]) -> Tense:
    """Return the tense of the clause around a date, by its verbs."""
    clause = _clause(found)
    if _WAS.search(clause):
        return Tense.OVER
    if _WILL.search(clause):
        return Tense.COMING
    return Tense.OVER if _PAST.search(clause) else Tense.UNTOLD


def is_ahead(found: re.Match[str]) -> bool:
    """Return True if "in three days" is a time to come, as shown by its clause, a position at its start, or a preceding
    "is" or "back".

    It can also be a duration ("built in three days", "the best in two weeks") or a rate ("three calls in a week"):
    words of that in the clause rule it out.
    """
    told = tense(found)
    if told is Tense.OVER or _COULD.search(_clause(found)):
        return False
    return told is Tense.COMING or opens_clause(found) or bool(_STARTS.search(_before(found)))


def opens_clause(found: re.Match[str]) -> bool:
    """Return True if only quotes and marks precede a date in its clause."""
    return not _before(found).strip(" \"'*_#>|·“”„‘’«»–—-")


def _before(found: re.Match[str]) -> str:
    return _BOUNDARY.split(found.string[max(0, found.start() - _CLAUSE) : found.start()])[-1]


def _clause(found: re.Match[str]) -> str:
    end = found.end()
    after = _BOUNDARY.split(found.string[end : end + _CLAUSE], maxsplit=1)[0]
    return f"{_before(found)} | {after}"
