"""Words in dates, and the meaning of each kind of date: one function per rule of the grammar in `spoken_dates`.

An expression resolves only if all speakers mean the same by it; anything ambiguous gives None. The docstrings show
examples of what each function resolves. "Tonight", said after midnight, is the coming evening. Weeks, quarters and
years are those of the calendar, not of a fiscal year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from enum import StrEnum

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.text import calendar

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
"""Units by name; see `unit` for plurals."""
STEPS = {"last": -1, "this past": -1, "this": 0, "the": 0, "next": 1, "coming": 1, "this coming": 1}
DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1, "yesterday": -1,
    "the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
    "heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1, "übermorgen": 2,
    "aujourd'hui": 0, "avant-hier": -2, "hier soir": -1, "hier matin": -1, "demain": 1, "après-demain": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "pasado mañana": 2,
}  # fmt: skip
"""Days from today for each word. Omitted are `hier` alone, which is German for "here", and `mañana`, which also means
"morning"."""


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

# Text that can follow a date, but not a name or a quantity: "in 2024 we moved", but "in 2024 lines".
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
    """Return True if a match is followed by punctuation or a word that starts a new phrase, as dates are."""
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
    """Return True if "in three days" means a point in the future.

    It can also be a duration ("built in three days", "the best in two weeks") or a rate ("three calls in a week"). So
    the clause must be about the future, begin with the date, or have "is", "back" or the like right before it.
    """
    told = tense(found)
    if told is Tense.OVER or _COULD.search(_clause(found)):
        return False
    return told is Tense.COMING or opens_clause(found) or bool(_STARTS.search(_before(found)))


def opens_clause(found: re.Match[str]) -> bool:
    """Return True if only quotes and other marks precede a date in its clause."""
    return not _before(found).strip(" \"'*_#>|·“”„‘’«»–—-")


def _before(found: re.Match[str]) -> str:
    return _BOUNDARY.split(found.string[max(0, found.start() - _CLAUSE) : found.start()])[-1]


def _clause(found: re.Match[str]) -> str:
    end = found.end()
    after = _BOUNDARY.split(found.string[end : end + _CLAUSE], maxsplit=1)[0]
    return f"{_before(found)} | {after}"


@record
class DateContext:
    """The original text, of which rules match the lower case, and the day of speaking."""

    text: str
    today: date

    def has_capital(self, found: re.Match[str], group: str) -> bool:
        """Return True if a word begins with a capital."""
        return self.text[found.start(group)].isupper()

    def is_title(self, found: re.Match[str], group: str) -> bool:
        """Return True if a word is written like a name: neither lower case nor all capitals."""
        return self.text[found.start(group) : found.end(group)].istitle()


Resolver = Callable[[re.Match[str], DateContext], str | None]
"""Returns the date that a match refers to; None if it is ambiguous or not a date."""


# ---- dates in full


def written_day(found: re.Match[str], _: DateContext) -> str | None:
    """`2026-03-05`, `2026/03/05`, with or without a time; a weekday before it must fit."""
    return _fitting(calendar.day(int(found["year"]), int(found["month"]), int(found["day"])), found["weekday"])


def written_month(found: re.Match[str], _: DateContext) -> str | None:
    """`2026-03`, but not `2010-11`, which may be a season."""
    years, months = int(found["year"]), int(found["month"])
    return calendar.month(years, months) if 1 <= months <= 12 and (years + 1) % 100 != months else None


def numbers(found: re.Match[str], _: DateContext) -> str | None:
    """`13.05.2026`, `05/13/2026`: only if the order is clear, since one number is above 12 or both are equal."""
    first, second = int(found["first"]), int(found["second"])
    if first <= 12 and second <= 12 and first != second:
        return None
    day, month = (second, first) if second > 12 else (first, second)
    return calendar.day(int(found["year"]), month, day)


def named_day(found: re.Match[str], _: DateContext) -> str | None:
    """`5 March 2026`, `March 5th, 2026`, `5 de marzo de 2026`; a weekday before it must fit."""
    day = calendar.day(int(found["year"]), MONTHS[found["month"]], int(found["day"]))
    return _fitting(day, found["weekday"])


def named_month(found: re.Match[str], said: DateContext) -> str | None:
    """`March 2026`; a month that is also another word needs a capital and no noun after it ("May 2000 users")."""
    if not found["lead"] and found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    spoken = calendar.month(int(found["year"]), MONTHS[found["month"]])
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


def quarter(found: re.Match[str], _: DateContext) -> str | None:
    """`Q3 2026`, `2026 Q3`: of the calendar year."""
    return None if found["fiscal"] else calendar.quarter(int(found["year"]), int(found["quarter"]))


def year(found: re.Match[str], _: DateContext) -> str | None:
    """`in 2024`, `by the end of 2026` (its last day); not `in 2024 lines`."""
    spoken = calendar.year(int(found["year"])) if goes_on(found) else None
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


# ---- dates without a year


def day_of_year(found: re.Match[str], said: DateContext) -> str | None:
    """`March 5`, `the 5th of March`: in the year that fits a weekday before it; else the next one if the clause is
    about the future; else the one within two months, unless that is in the future and the clause in the past tense."""
    month, day = MONTHS[found["month"]], int(found["day"])
    if found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    if found["weekday"]:
        return calendar.day_with_weekday(said.today, month, day, weekday(found["weekday"]))
    told, near = tense(found), calendar.near_day(said.today, month, day)
    if told is Tense.COMING:
        return calendar.next_day(said.today, month, day)
    return None if near and told is Tense.OVER and near > said.today.isoformat() else near


def month_of_year(found: re.Match[str], said: DateContext) -> str | None:
    """`in March`, `since March`, `by the end of March` (its last day): chosen like days without a year.

    `since` means the last such month, `by` and `until` the next one, or the current month.
    """
    word, lead, month = found["month"], found["lead"], MONTHS[found["month"]]
    if word in AMBIGUOUS_MONTHS and (lead == "by" or (word not in FULL_MONTHS and not _is_named(found, said))):
        return None  # "by April", "in dec"
    told, this = tense(found), f"{said.today:%Y-%m}"
    if lead == "since":
        return None if month == said.today.month else calendar.next_month(said.today, month, -1)
    if told is Tense.COMING or (told is Tense.UNTOLD and (found["deadline"] or lead in ("by", "until", "till"))):
        spoken = this if month == said.today.month else calendar.next_month(said.today, month, 1)
        return calendar.last_day(spoken) if spoken and found["deadline"] else spoken
    near = calendar.near_month(said.today, month)
    return None if found["deadline"] or (near and told is Tense.OVER and near > this) else near


def month_of_other_year(found: re.Match[str], said: DateContext) -> str | None:
    """`March last year`, `in May of next year`."""
    if not found["lead"] and not said.has_capital(found, "month"):
        return None
    return calendar.month(said.today.year + STEPS[found["step"]], MONTHS[found["month"]])


def other_month(found: re.Match[str], said: DateContext) -> str | None:
    """`last March`, `next March`: only if the nearest one is in last or next year (`calendar.month_named`).

    In May 2026, `next March` is 2027-03; in January 2026 it may be in 2026 or 2027. March and May need a capital
    letter, because of "who is next may answer".
    """
    is_verb = found["month"] in ("march", "may") and not said.has_capital(found, "month")
    if is_verb or found["rolling"] or found["month"] not in FULL_MONTHS:
        return None
    month = calendar.month_named(said.today, MONTHS[found["month"]], STEPS[found["step"]])
    if month is None:
        return None
    return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if found["day"] else month


def day_of_month(found: re.Match[str], said: DateContext) -> str | None:
    """`the 15th of next month`; `by the 15th` (the next one); `on the 15th`, if the clause is about the future."""
    if found["step"]:
        month = calendar.month(said.today.year, said.today.month + STEPS[found["step"]])
        return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if month else None
    if not found["lead"] or not goes_on(found) or not _is_after(found):
        return None
    return calendar.next_date(said.today, int(found["day"]))


# ---- days and weekdays


def day_word(found: re.Match[str], said: DateContext) -> str | None:
    """`tomorrow`, `yesterday evening`, `vorgestern`; but not "it feels like yesterday", or a magazine called "Today".

    `morgen` with a capital, or in `guten morgen`, is a morning.
    """
    is_name = said.is_title(found, "word") and (found["word"] == "morgen" or not opens_clause(found))
    if found["idiom"] or is_name:
        return None
    return calendar.days_from(said.today, DAYS[found["word"]])


def other_weekday(found: re.Match[str], said: DateContext) -> str | None:
    """`last`, `this`, `next Friday`: only if all common readings agree (`calendar.weekday_from`).

    On a Wednesday, `next Friday` may be in two days or in nine, so it gives None; on a Friday or Saturday it is the
    Friday of next week. On a Wednesday or Friday, `last Friday` is that of last week; on a Saturday it may be
    yesterday. `coming Friday` and `this past Friday` are the nearest ones.
    """
    step, index = found["step"], weekday(found["weekday"])
    if found["rolling"] or not _is_weekday(found, said):
        return None
    if step in ("last", "this", "next"):
        return calendar.weekday_from(said.today, index, STEPS[step])
    return calendar.nearest_weekday(said.today, index, STEPS[step])


def weekday_of_week(found: re.Match[str], said: DateContext) -> str | None:
    """`Friday next week`, `last week on Friday`: only if it does not matter which day a week begins on."""
    return calendar.weekday_of_week(said.today, weekday(found["weekday"]), STEPS[found["step"]])


def weekday_ahead(found: re.Match[str], said: DateContext) -> str | None:
    """`by Friday` (the next one); `on Friday`, if the clause is about the future; `since Friday` (the last one).

    On a Friday, all of them are ambiguous.
    """
    since = found["lead"] == "since"
    if not _is_weekday(found, said) or not (since or _is_after(found)):
        return None
    return calendar.nearest_weekday(said.today, weekday(found["weekday"]), -1 if since else 1)


# ---- counted, and named by their unit


def ago(found: re.Match[str], said: DateContext) -> str | None:
    """`3 days ago`, `a couple of weeks ago`: see `_counted`. A preceding `about` or `or` gives None."""
    return None if found["vague"] else _counted(found, said.today, -1)


def ago_first(found: re.Match[str], said: DateContext) -> str | None:
    """`vor drei Tagen`, `il y a deux semaines`, `hace un mes`."""
    return _counted(found, said.today, -1)


def from_now(found: re.Match[str], said: DateContext) -> str | None:
    """`two weeks from now`."""
    return None if found["vague"] else _counted(found, said.today, 1)


def within(found: re.Match[str], said: DateContext) -> str | None:
    """`in two weeks' time`; `in two weeks`, unless it is a duration (`is_ahead`)."""
    return _counted(found, said.today, 1) if found["time"] or is_ahead(found) else None


def _counted(found: re.Match[str], today: date, direction: int) -> str | None:
    """Return a date as exact as its unit: days and weeks give a day, months a month, years a year."""
    count, of = number(found["number"]) * direction, unit(found["unit"])
    if of == "month":
        return calendar.month(today.year, today.month + count)
    if of == "year":
        return calendar.year(today.year + count)
    return calendar.days_from(today, count * {"day": 1, "week": 7, "fortnight": 14}[of])


def other_unit(found: re.Match[str], said: DateContext) -> str | None:
    """`last week`, `this month`, `next quarter`; but not `the last month`, which may be the last thirty days."""
    return None if found["rolling"] else _unit(found["unit"], said.today, STEPS[found["step"]])


def part_of_unit(found: re.Match[str], said: DateContext) -> str | None:
    """`by the end of the month` (its last day); `at the end of the month`, or another part of it (the month).

    For a week it is always the whole week, since weeks end on Friday for some.
    """
    spoken = _unit(found["unit"], said.today, STEPS[found["step"] or "this"])
    if spoken is None or not found["deadline"] or found["unit"] == "week":
        return spoken
    is_end = found["edge"] in ("end", "close") and tense(found) is not Tense.OVER
    return calendar.last_day(spoken) if is_end else None


def end_of(found: re.Match[str], said: DateContext) -> str | None:
    """`EOM`, `EOQ`, `EOY`: the last day."""
    if not said.has_capital(found, "unit"):
        return None
    spoken = _unit({"m": "month", "q": "quarter", "y": "year"}[found["unit"][-1]], said.today, 0)
    return spoken and calendar.last_day(spoken)


def _unit(word: str, today: date, step: int) -> str | None:
    match word:
        case "week":
            return calendar.week_from(today, step)
        case "weekend":
            return calendar.weekend_from(today, step)
        case "month":
            return calendar.month(today.year, today.month + step)
        case "quarter":
            return calendar.quarter(today.year, (today.month + 2) // 3 + step)
        case _:
            return calendar.year(today.year + step)


# ---- what several productions ask


def _fitting(day: str | None, name: str | None) -> str | None:
    """Return the day if it falls on the weekday named with it, or none is named."""
    return day if not day or not name or date.fromisoformat(day).weekday() == weekday(name) else None


def _is_named(found: re.Match[str], said: DateContext) -> bool:
    """Return True if an ambiguous word is a month: it has a capital letter and is not followed by a noun."""
    return said.has_capital(found, "month") and goes_on(found)


def _is_weekday(found: re.Match[str], said: DateContext) -> bool:
    """Return True if a word is a weekday: "saturday", "Sat", but not "sat" or "Sun hardware"."""
    return found["weekday"].endswith("day") or (said.has_capital(found, "weekday") and goes_on(found))


def _is_after(found: re.Match[str]) -> bool:
    """Return True if `by`, `until` or `on` a day is about the future."""
    told = tense(found)
    return told is Tense.COMING or (told is Tense.UNTOLD and found["lead"] not in ("on", "for"))
