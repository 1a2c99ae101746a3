"""The calendar in everyday language: words for dates, the clause around a date, and date arithmetic.

A day is `YYYY-MM-DD`, a month `YYYY-MM`, a year `YYYY`. A week or quarter is an ISO 8601 interval of its first and last
day or month: `2026-03-02/2026-03-08`, `2026-07/2026-09`. Weeks begin on Monday. Functions return None for years outside
1970 to 9999, as `instants` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from enum import StrEnum

from omcli.base import lazily
from omcli.base.record import record

# ---- words

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
"""Months by name in English (with abbreviations), German, French and Spanish."""
FULL_MONTHS = frozenset("january february march april may june july august september october november december".split())
AMBIGUOUS_MONTHS = frozenset(
    "may march mars mar sep sept dec jan jun jul aug apr nov oct feb april june august mai".split()
)
"""Month names that can also be verbs, people, planets or technical terms."""
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
"""Units by name. `unit_of` also handles plurals that end in `s`."""
STEPS = {"last": -1, "this past": -1, "this": 0, "the": 0, "next": 1, "coming": 1, "this coming": 1}
DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "tomorrow": 1, "yesterday": -1,
    "the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
    "heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1, "übermorgen": 2,
    "aujourd'hui": 0, "avant-hier": -2, "hier soir": -1, "hier matin": -1, "demain": 1, "après-demain": 2,
    "hoy": 0, "ayer": -1, "anteayer": -2, "pasado mañana": 2,
}  # fmt: skip
"""Distance of each word's day from today, in days. `hier` alone (German for "here") and `mañana` (also "morning") are
left out.
"""


def any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, trying longer ones first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def weekday_index(word: str) -> int:
    """Return the index of a weekday (Monday is 0) from its full or short name."""
    return _WEEKDAYS.index(word[:3])


def number_of(word: str) -> int:
    """Return a number written as a word or in digits."""
    return int(word) if word.isdecimal() else NUMBERS[word]


def unit_of(word: str) -> str:
    """Return `day`, `week`, `fortnight`, `month` or `year` for a unit's name, singular or plural."""
    return UNITS.get(word) or UNITS[word.removesuffix("s")]


# ---- around a date

# Text that can follow a date but not a quantity or a name: "in 2024 we moved", but not "in 2024 lines".
_FOLLOWS = lazily(
    r"\s*(?:$|[,.;:!?)\]\"'»”—–-]|(?:a|after|an|and|are|as|at|because|before|but|by|can|due|for|from|he|her|his|how|i|i'\w+|if|"
    r"in|instead|is|it|it's|last|let's|my|next|not|on|or|our|please|she|should|since|so|than|that|the|their|then|there|"
    r"they|this|to|too|until|was|we|we'\w+|were|what|when|where|which|while|who|will|with|you|your)\b)"
)
_BOUNDARY = lazily(r"[.;!?,:()\n]")
_CLAUSE = 160
"""Maximum length of the text searched on each side of a date, in characters."""

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
    OVER = "over"
    COMING = "coming"
    UNTOLD = "untold"


def goes_on(found: re.Match[str]) -> bool:
    """Return True if the text after a match fits a date: punctuation, a word that starts a new phrase, or nothing."""
    return bool(_FOLLOWS.match(found.string[found.end() : found.end() + _CLAUSE]))


def tense(found: re.Match[str]) -> Tense:
    """Return the tense of the clause around a date, judged by its verbs."""
    clause = " | ".join(_around(found))
    if _WAS.search(clause):
        return Tense.OVER
    if _WILL.search(clause):
        return Tense.COMING
    return Tense.OVER if _PAST.search(clause) else Tense.UNTOLD


def is_ahead(found: re.Match[str]) -> bool:
    """Return True if "in three days" means a point in the future.

    It can also be a duration ("built in three days", "the best in two weeks") or a rate ("three calls in a week"). So
    the clause must be about the future, begin with the date, or have a word such as "is" or "back" right before it, but
    none such as "can" or "best".
    """
    told, (before, after) = tense(found), _around(found)
    if told is Tense.OVER or _COULD.search(f"{before} | {after}"):
        return False
    return told is Tense.COMING or opens_clause(found) or bool(_STARTS.search(before))


def opens_clause(found: re.Match[str]) -> bool:
    """Return True if only quotation marks, bullets or similar marks precede a date in its clause."""
    before, _ = _around(found)
    return not before.strip(" \"'*_#>|·“”„‘’«»–—-")


def _around(found: re.Match[str]) -> tuple[str, str]:
    text, begin, end = found.string, found.start(), found.end()
    before = _BOUNDARY.split(text[max(0, begin - _CLAUSE) : begin])[-1]
    return before, _BOUNDARY.split(text[end : end + _CLAUSE], maxsplit=1)[0]


@record
class DateContext:
    """The day of speaking, and the original text, in which matched words can be checked for capitals."""

    text: str
    today: date

    def has_capital(self, found: re.Match[str], group: str) -> bool:
        """Return True if the group's text begins with a capital letter."""
        return self.text[found.start(group)].isupper()

    def is_title(self, found: re.Match[str], group: str) -> bool:
        """Return True if the group's text is capitalised like a name: neither lower case nor all capitals."""
        return self.text[found.start(group) : found.end(group)].istitle()


# ---- arithmetic

_FIRST_YEAR, _LAST_YEAR = 1970, 9999
_SUNDAY = 6
_NEAR = timedelta(days=61)
"""Maximum distance from today of a day without a year. The same day in another year is about five times as far away."""


def day_of(at: str, utc_offset: int | None = None) -> date:
    """Return the local date of an instant (see `instants`).

    `utc_offset` is in minutes east of UTC. None means the date in UTC. An instant without a zone is already local.
    """
    moment = datetime.fromisoformat(at.removesuffix("Z"))
    if utc_offset and at.endswith("Z"):
        with suppress(OverflowError):  # in the last hours of the year 9999
            moment += timedelta(minutes=utc_offset)
    return moment.date()


def day(of_year: int, of_month: int, number: int) -> str | None:
    """Return a day, or None if it does not exist or is before 1970."""
    try:
        return _text(date(of_year, of_month, number))
    except ValueError:
        return None


def month(of_year: int, number: int) -> str | None:
    """Return a month. Numbers below 1 or above 12 are months of earlier or later years."""
    years, index = divmod(of_year * 12 + number - 1, 12)
    return f"{years:04}-{index + 1:02}" if _FIRST_YEAR <= years <= _LAST_YEAR else None


def year(number: int) -> str | None:
    return f"{number:04}" if _FIRST_YEAR <= number <= _LAST_YEAR else None


def quarter(of_year: int, number: int) -> str | None:
    """Return a calendar quarter. Numbers below 1 or above 4 are quarters of earlier or later years."""
    first, last = month(of_year, number * 3 - 2), month(of_year, number * 3)
    return f"{first}/{last}" if first and last else None


def last_day(stretch: str) -> str:
    """Return the last day of a date, or of an interval such as a quarter."""
    end = stretch.rpartition("/")[2]
    if len(end) == 4:
        return f"{end}-12-31"
    if len(end) == 7:
        return f"{end}-{_days(int(end[:4]), int(end[5:])):02}"
    return end


# ---- from today


def days_from(today: date, count: int) -> str | None:
    """Return the day `count` days after today, or before today if `count` is negative."""
    moved = _day_after(today, count)
    return _text(moved) if moved else None


def week_from(today: date, count: int) -> str | None:
    """Return the week `count` weeks after the current one. None on a Sunday, because some speakers begin a new week
    then.
    """
    if today.weekday() == _SUNDAY:
        return None
    return _day_range(today, 7 * count - today.weekday(), 6)


def weekend_from(today: date, count: int) -> str | None:
    """Return a Saturday and Sunday. 0 means the current or coming weekend, -1 the one before it.

    None from Monday to Friday if `count` is positive, because "next weekend" is then ambiguous.
    """
    goes_on = today.weekday() >= 5
    return None if count > 0 and not goes_on else _day_range(today, 5 - today.weekday() + 7 * count, 1)


def counted_from(today: date, count: int, unit: str) -> str | None:
    """Return the date `count` units after today: a month if the unit is a month, a year if it is a year, else a day."""
    if unit == "month":
        return month(today.year, today.month + count)
    if unit == "year":
        return year(today.year + count)
    return days_from(today, count * {"day": 1, "week": 7, "fortnight": 14}[unit])


def unit_from(today: date, unit: str, step: int) -> str | None:
    """Return the last (-1), current (0) or next (1) week, weekend, month, quarter or year."""
    match unit:
        case "week":
            return week_from(today, step)
        case "weekend":
            return weekend_from(today, step)
        case "month":
            return month(today.year, today.month + step)
        case "quarter":
            return quarter(today.year, (today.month + 2) // 3 + step)
        case _:
            return year(today.year + step)


def weekday_of_week(today: date, index: int, count: int) -> str | None:
    """Return a weekday (Monday is 0) of the week `count` weeks after the current one.

    None if the result depends on the day on which weeks begin (Monday or Sunday).
    """
    return _only_day(_of_week(today, index, count))


def weekday_from(today: date, index: int, step: int) -> str | None:
    """Return the last (-1), this (0) or next (1) weekday (Monday is 0), or None if speakers may disagree about it.

    "Next Friday" may be the coming Friday or the one in next week, and weeks may begin on Monday or Sunday. So the
    phrase is only resolved on a Friday or Saturday. "This Friday" is the one in this week, unless it has passed.
    """
    if step:
        return _only_day({_nearest_weekday(today, index, step), *_of_week(today, index, step)})
    ahead = index - today.weekday()
    return days_from(today, ahead) if ahead >= 0 else None


def nearest_weekday(today: date, index: int, step: int) -> str | None:
    """Return the first such weekday after today (1) or the last one before it (-1). None if today is that weekday."""
    nearest = _nearest_weekday(today, index, step)
    return None if index == today.weekday() or nearest is None else _text(nearest)


def month_named(today: date, number: int, step: int) -> str | None:
    """Return the month with this number in last (-1), this (0) or next (1) year.

    For last and next, return None if a nearer such month is in this year, because speakers may then mean either.
    """
    if not step:
        return month(today.year, number)
    nearest = next_month(today, number, step)
    return nearest if nearest == month(today.year + step, number) else None


def next_month(today: date, number: int, step: int) -> str | None:
    """Return the first month with this number after the current month (1), or the last one before it (-1)."""
    is_past = (today.month - number) * step >= 0
    return month(today.year + step * is_past, number)


def near_month(today: date, number: int) -> str | None:
    """Return the month with this number that is at most two months away, if any."""
    years = (today.year - 1, today.year, today.year + 1)
    near = (one for one in years if abs((one - today.year) * 12 + number - today.month) <= 2)
    return next((month(one, number) for one in near), None)


def near_day(today: date, of_month: int, number: int) -> str | None:
    """Return the date that is day `number` of month `of_month` and at most 61 days away, if any."""
    return next((_text(found) for found in _in_each_year(today, of_month, number) if abs(found - today) <= _NEAR), None)


def next_day(today: date, of_month: int, number: int) -> str | None:
    """Return the first date from today on that is day `number` of month `of_month`, this year or next, if any."""
    return next((_text(found) for found in _in_each_year(today, of_month, number) if found >= today), None)


def day_with_weekday(today: date, of_month: int, number: int, index: int) -> str | None:
    """Return the date that is day `number` of month `of_month` in last, this or next year and falls on the weekday
    `index`, if any. At most one can.
    """
    return next((_text(found) for found in _in_each_year(today, of_month, number) if found.weekday() == index), None)


def next_date(today: date, number: int) -> str | None:
    """Return the next date with this day of the month. None if that is today's, or if the month in question is too
    short.
    """
    if number == today.day:
        return None
    years, index = divmod(today.year * 12 + today.month - 1 + (number < today.day), 12)
    return day(years, index + 1, number)


# ---- helpers


def _text(found: date) -> str | None:
    return found.isoformat() if found.year >= _FIRST_YEAR else None


def _day_after(today: date, days: int) -> date | None:
    try:
        return today + timedelta(days=days)
    except OverflowError:
        return None


def _day_range(today: date, days: int, more: int) -> str | None:
    first, last = _day_after(today, days), _day_after(today, days + more)
    return f"{first}/{last}" if first and last and first.year >= _FIRST_YEAR else None


def _nearest_weekday(today: date, index: int, step: int) -> date | None:
    return _day_after(today, step * ((step * (index - today.weekday()) - 1) % 7 + 1))


def _of_week(today: date, index: int, count: int) -> set[date | None]:
    from_monday = _day_after(today, index - today.weekday() + 7 * count)
    from_sunday = _day_after(today, (index + 1) % 7 - (today.weekday() + 1) % 7 + 7 * count)
    return {from_monday, from_sunday}


def _only_day(readings: set[date | None]) -> str | None:
    (found,) = readings if len(readings) == 1 else (None,)
    return _text(found) if found else None


def _in_each_year(today: date, of_month: int, number: int) -> list[date]:
    """Return the dates with this month and day in last, this and next year. Years without one (29 February) are
    skipped.
    """
    found = []
    for years in (today.year - 1, today.year, today.year + 1):
        try:
            found.append(date(years, of_month, number))
        except ValueError:
            continue
    return found


def _days(year: int, month: int) -> int:
    """Return the length of a month in days. Importing Python's `calendar` would take a millisecond."""
    return 31 if month == 12 else (date(year, month + 1, 1) - date(year, month, 1)).days
