"""Dates in what people say: a closed grammar finds them, resolves them against the day of speaking, and guesses none.

An expression is resolved only where all who speak that way mean the same by it; what may mean two things, or no date at
all, gives nothing. Each production states its rule. Days are those of the calendar: "tonight", said after midnight, is
the evening to come. Weeks, quarters and years are the calendar's as well, not those of a fiscal year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import cache

from omcli.memory import calendar
from omcli.memory.date_words import (
    AMBIGUOUS_MONTHS,
    DAYS,
    FULL_MONTHS,
    MONTHS,
    NUMBERS,
    STEPS,
    UNITS,
    Tense,
    any_of,
    goes_on,
    is_ahead,
    number,
    opens_clause,
    tense,
    unit,
    weekday,
)
from omcli.memory.patterns import lazily
from omcli.memory.record import record


def spoken_date(text: str, *, at: str | None, utc_offset: int | None = None) -> str | None:
    """The day, month, year, week or quarter that a text speaks of, spelled as `calendar` does, or None.

    `at` is the instant at which it was said and `utc_offset` the speaker's zone, in minutes east of UTC; where the
    instant is unknown, only dates that are given in full count. Of several dates the first counts, and the day of
    speaking itself ("today") only where there is no other. Inline code is passed over.
    """
    if not _may_speak(text):
        return None
    said = Said(text=_plain(text), today=calendar.day_of(at, utc_offset) if at else date.min)
    spoken_today = None
    for spoken in _grammar(in_full=at is None).spoken(said):
        if spoken != said.today.isoformat():
            return spoken
        spoken_today = spoken
    return spoken_today


@record
class Said:
    """What was said: the text, where a match is of its lower case, and the day."""

    text: str
    today: date

    def has_capital(self, found: re.Match[str], group: str) -> bool:
        """Whether a word begins with a capital."""
        return self.text[found.start(group)].isupper()

    def is_title(self, found: re.Match[str], group: str) -> bool:
        """Whether a word is written as a name is: not small, and not shouted."""
        return self.text[found.start(group) : found.end(group)].istitle()


_INLINE_CODE = lazily(r"`[^`\n]{1,200}`")


def _plain(text: str) -> str:
    """With code blanked, straight apostrophes and a lower case as long as it is, every character in its place."""
    straight = text.replace("\u2019", "'").replace("\u0130", "I")
    return _INLINE_CODE.sub(lambda code: "`" * len(code[0]), straight)


# ---- parts of patterns

# Nothing of a path, an address, a version, an assignment or a call.
_BEFORE, _AFTER = r"\b(?<![\w/\\.@#$=+&%~:–-])", r"(?![\w/\\@%(]|[-.:+–]\w|,[0-9])"
_YEAR = r"(?P<year>[0-9]{4})"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"(?P<month>{any_of(MONTHS)})\b\.?"
_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?|"
    r"sun(?:day)?)\b"
)
_MAYBE_WEEKDAY = rf"(?:{_WEEKDAY}\.?,? )?"
_NO_DATE = rf"(?! (?:of|in)\b|\.?,? (?:the )?(?:[0-9]|(?:{any_of(MONTHS)})\b))"
"""After a weekday: neither the first of several, nor the beginning of a date."""
_NUMBER = rf"(?P<number>[0-9]{{1,4}}|{any_of(NUMBERS)})"
_UNIT = rf"(?P<unit>(?:{any_of(UNITS)})s?)\b"
_VAGUE = (
    r"(?:(?P<vague>about|almost|and|approximately|around|at least|half|less than|like|maybe|more than|nearly|or|over|"
    r"roughly|some|to|under|(?:year|month|week)s?,?) )?"
)
_STEP = r"(?P<step>last|this|next)"
_ROLLING = r"(?P<rolling>(?:the|every|each|any|past|first|second|third) )?"
_DEADLINE = r"by|until|till|before|due(?: by| on| at)?|no later than"

Resolver = Callable[[re.Match[str], Said], str | None]
"""What an expression found in a text, said on a day, speaks of."""


# ---- dates in full


def _iso_day(found: re.Match[str], _: Said) -> str | None:
    """`2026-03-05`, `2026/03/05`: as written, whatever time follows; a weekday before it must fit."""
    return _fitting(calendar.day(int(found["year"]), int(found["month"]), int(found["day"])), found["weekday"])


def _iso_month(found: re.Match[str], _: Said) -> str | None:
    """`2026-03`, but not `2010-11`, which may be a season."""
    years, months = int(found["year"]), int(found["month"])
    return calendar.month(years, months) if 1 <= months <= 12 and (years + 1) % 100 != months else None


def _numbers(found: re.Match[str], _: Said) -> str | None:
    """`13.05.2026`, `05/13/2026`: where it is clear which is the day, since one is above 12 or both are equal."""
    first, second = int(found["first"]), int(found["second"])
    if first <= 12 and second <= 12 and first != second:
        return None
    day, month = (second, first) if second > 12 else (first, second)
    return calendar.day(int(found["year"]), month, day)


def _named_day(found: re.Match[str], _: Said) -> str | None:
    """`5 March 2026`, `March 5th, 2026`, `5 de marzo de 2026`; a weekday before it must fit."""
    day = calendar.day(int(found["year"]), MONTHS[found["month"]], int(found["day"]))
    return _fitting(day, found["weekday"])


def _named_month(found: re.Match[str], said: Said) -> str | None:
    """`March 2026`; where it is another word as well, with a capital and no noun after it ("May 2000 users")."""
    if not found["lead"] and found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    spoken = calendar.month(int(found["year"]), MONTHS[found["month"]])
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


def _quarter(found: re.Match[str], _: Said) -> str | None:
    """`Q3 2026`, `2026 Q3`: of the calendar year."""
    return None if found["fiscal"] else calendar.quarter(int(found["year"]), int(found["quarter"]))


def _year(found: re.Match[str], _: Said) -> str | None:
    """`in 2024`, `by the end of 2026` (its last day); not `in 2024 lines`."""
    spoken = calendar.year(int(found["year"])) if goes_on(found) else None
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


# ---- dates without a year


def _day_of_year(found: re.Match[str], said: Said) -> str | None:
    """`March 5`, `the 5th of March`: of the year in which the weekday before it fits; else at most two months away, and
    not on the wrong side of what the clause tells; else the next, where the clause tells that it is to come."""
    month, day = MONTHS[found["month"]], int(found["day"])
    if found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    if found["weekday"]:
        return calendar.day_with_weekday(said.today, month, day, weekday(found["weekday"]))
    told, near = tense(found), calendar.near_day(said.today, month, day)
    if told is Tense.COMING:
        return calendar.coming_day(said.today, month, day)
    return None if near and told is Tense.OVER and near > said.today.isoformat() else near


def _month_of_year(found: re.Match[str], said: Said) -> str | None:
    """`in March`, `since March`, `by the end of March` (its last day): as for days without a year.

    `since` leads to the last one, `by` and `until` to the first to come, this month included.
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


def _month_of_other_year(found: re.Match[str], said: Said) -> str | None:
    """`March last year`, `in May of next year`."""
    if not found["lead"] and not said.has_capital(found, "month"):
        return None
    return calendar.month(said.today.year + STEPS[found["step"]], MONTHS[found["month"]])


def _stepped_month(found: re.Match[str], said: Said) -> str | None:
    """`last March`, `next March`: where the nearest one and that of last or next year are the same (`month_named`).

    Said in May 2026, `next March` is 2027-03; said in January 2026, it may be that of 2026 or of 2027. March and May
    need a capital: "who is next may answer".
    """
    is_verb = found["month"] in ("march", "may") and not said.has_capital(found, "month")
    if is_verb or found["rolling"] or found["month"] not in FULL_MONTHS:
        return None
    month = calendar.month_named(said.today, MONTHS[found["month"]], STEPS[found["step"]])
    if month is None:
        return None
    return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if found["day"] else month


def _day_of_month(found: re.Match[str], said: Said) -> str | None:
    """`the 15th of next month`; `by the 15th`: the first to come; `on the 15th` where it is said to come."""
    if found["step"]:
        month = calendar.month(said.today.year, said.today.month + STEPS[found["step"]])
        return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if month else None
    if not found["lead"] or not goes_on(found) or not _is_coming(found):
        return None
    return calendar.coming_date(said.today, int(found["day"]))


# ---- days and weekdays


def _day_word(found: re.Match[str], said: Said) -> str | None:
    """`tomorrow`, `yesterday evening`, `vorgestern`; but not "it feels like yesterday", or a magazine called "Today".

    `morgen` with a capital, or in `guten morgen`, is a morning.
    """
    is_name = said.is_title(found, "word") and (found["word"] == "morgen" or not opens_clause(found))
    if found["idiom"] or is_name:
        return None
    return calendar.days_from(said.today, DAYS[found["word"]])


def _stepped_weekday(found: re.Match[str], said: Said) -> str | None:
    """`last`, `this`, `next Friday`: where all common readings agree (`calendar.weekday_from`).

    Said on a Wednesday, `next Friday` is in two days or in nine, and so nothing; said on a Friday or Saturday it is the
    Friday of next week. `last Friday`, said on a Wednesday or a Friday, is the one of last week; said on a Saturday, it
    may be yesterday. `coming Friday` and `this past Friday` are the nearest.
    """
    step, index = found["step"], weekday(found["weekday"])
    if found["rolling"] or not _is_weekday(found, said):
        return None
    if step in ("last", "this", "next"):
        return calendar.weekday_from(said.today, index, STEPS[step])
    return calendar.nearest_weekday(said.today, index, STEPS[step])


def _weekday_of_week(found: re.Match[str], said: Said) -> str | None:
    """`Friday next week`, `last week on Friday`: where weeks from Monday and from Sunday agree."""
    return calendar.weekday_of_week(said.today, weekday(found["weekday"]), STEPS[found["step"]])


def _weekday_ahead(found: re.Match[str], said: Said) -> str | None:
    """`by Friday`: the first to come; `on Friday` where the clause tells it is to come; `since Friday`: the last one.

    On a Friday, none of them.
    """
    since = found["lead"] == "since"
    if not _is_weekday(found, said) or not (since or _is_coming(found)):
        return None
    return calendar.nearest_weekday(said.today, weekday(found["weekday"]), -1 if since else 1)


# ---- counted, and named by their unit


def _ago(found: re.Match[str], said: Said) -> str | None:
    """`3 days ago`, `a couple of weeks ago`: see `_counted`. `About` or `or` before it leave it open."""
    return None if found["vague"] else _counted(found, said.today, -1)


def _ago_abroad(found: re.Match[str], said: Said) -> str | None:
    """`vor drei Tagen`, `il y a deux semaines`, `hace un mes`."""
    return _counted(found, said.today, -1)


def _from_now(found: re.Match[str], said: Said) -> str | None:
    """`two weeks from now`."""
    return None if found["vague"] else _counted(found, said.today, 1)


def _within(found: re.Match[str], said: Said) -> str | None:
    """`in two weeks' time`; `in two weeks` where it is not how long something takes (`date_words.is_ahead`)."""
    return _counted(found, said.today, 1) if found["time"] or is_ahead(found) else None


def _counted(found: re.Match[str], today: date, direction: int) -> str | None:
    """As exact as its unit: days give a day, weeks (of seven days) too; months give a month, years a year."""
    count, of = number(found["number"]) * direction, unit(found["unit"])
    if of == "month":
        return calendar.month(today.year, today.month + count)
    if of == "year":
        return calendar.year(today.year + count)
    return calendar.days_from(today, count * {"day": 1, "week": 7, "fortnight": 14}[of])


def _stepped_unit(found: re.Match[str], said: Said) -> str | None:
    """`last week`, `this month`, `next quarter`: of the calendar. `The last month` may be the last thirty days."""
    return None if found["rolling"] else _unit(found["unit"], said.today, STEPS[found["step"]])


def _edge(found: re.Match[str], said: Said) -> str | None:
    """`by the end of the month` is its last day; `at the end of the month`, or any part of it, is the month.

    Of a week it is always the week: for some it ends on Friday.
    """
    spoken = _unit(found["unit"], said.today, STEPS[found["step"] or "this"])
    if spoken is None or not found["deadline"] or found["unit"] == "week":
        return spoken
    is_end = found["edge"] in ("end", "close") and tense(found) is not Tense.OVER
    return calendar.last_day(spoken) if is_end else None


def _end_of(found: re.Match[str], said: Said) -> str | None:
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
    """The day, unless it is another weekday than the one named with it."""
    return day if not day or not name or date.fromisoformat(day).weekday() == weekday(name) else None


def _is_named(found: re.Match[str], said: Said) -> bool:
    """Whether a word that is not only a month's name stands as one: with a capital, and no noun behind it."""
    return said.has_capital(found, "month") and goes_on(found)


def _is_weekday(found: re.Match[str], said: Said) -> bool:
    """Whether a weekday is written in full, or else as a name: "Sat", but not "sat" or "Sun hardware"."""
    return found["weekday"].endswith("day") or (said.has_capital(found, "weekday") and goes_on(found))


def _is_coming(found: re.Match[str]) -> bool:
    """Whether what is said `by`, `until` or `on` a day is to come."""
    told = tense(found)
    return told is Tense.COMING or (told is Tense.UNTOLD and found["lead"] not in ("on", "for"))


# ---- the grammar

_PART = r"(?:at )?(?:the )?(?P<edge>end|beginning|start|middle|close) of"
_PART_OF = (
    rf"(?P<deadline>{_DEADLINE}) (?:the )?end of|(?:the )?(?:end|beginning|start|middle) of|early(?: in)?|mid|"
    r"late(?: in)?"
)
_TIME = r"(?:[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:z| ?[+-][0-9]{2}:?[0-9]{2})?)?"
_IDIOM = (
    r"(?P<idiom>(?:like|like only|like just|like it was|"
    r"guten?|schönen|am|jeden?|jeder|diesen|eines|der|den|goede|god|elke) )?"
)
_PART_OF_DAY = r"(?: morning| afternoon| evening| night| früh| morgen| mittag| abend| matin| soir)?"
_UP_TO = rf"(?:(?P<deadline>{_DEADLINE}) )?"
_ABSOLUTE: tuple[tuple[str, Resolver], ...] = (
    (rf"{_MAYBE_WEEKDAY}{_YEAR}(?P<mark>[-/])(?P<month>[0-9]{{2}})(?P=mark)(?P<day>[0-9]{{2}}){_TIME}", _iso_day),
    (r"(?P<first>[0-9]{1,2})(?P<mark>[-./])(?P<second>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})", _numbers),
    (rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?:er)?(?: of| de)?[ -]{_MONTH},?(?: de)?[ -]{_YEAR}", _named_day),
    (rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY},? {_YEAR}", _named_day),
    (rf"(?P<lead>(?:{_PART_OF}|in|since|until|during|by|from|of)[ -])?{_MONTH},?(?: de)?[ -]{_YEAR}", _named_month),
    (rf"(?P<fiscal>fy |fiscal )?q(?P<quarter>[1-4])(?:,? | of |/|-){_YEAR}", _quarter),
    (rf"(?P<fiscal>fy |fiscal )?{_YEAR}[ -]q(?P<quarter>[1-4])", _quarter),
    (rf"(?:{_PART_OF}|in|since|until|till|by|during|back in|as of)[ -](?P<year>(?:19|20)[0-9]{{2}})", _year),
    (rf"{_YEAR}-(?P<month>[0-9]{{2}})", _iso_month),
)
"""Dates that are the same whenever they are said."""
_RELATIVE: tuple[tuple[str, Resolver], ...] = (
    (rf"{_ROLLING}{_STEP} {_MONTH}(?: (?P<day>[0-9]{{1,2}}))?", _stepped_month),
    (rf"(?P<lead>(?:in|since|until|till|by|during|back in) )?{_MONTH}(?: of)? {_STEP} year", _month_of_other_year),
    (rf"(?P<lead>{_PART_OF}|in|since|until|till|by|during|back in)[ -]{_MONTH}(?! ?[0-9])", _month_of_year),
    (rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?: of| de)?[ -]{_MONTH}", _day_of_year),
    (rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY}(?! ?[-–] ?[0-9]| (?:to|or) [0-9])", _day_of_year),
    (
        rf"(?:(?P<lead>{_DEADLINE}|on|for) )?the (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)(?: of {_STEP} month)?(?! of\b)",
        _day_of_month,
    ),
    (rf"{_IDIOM}(?P<word>{any_of(DAYS)}){_PART_OF_DAY}", _day_word),
    (rf"(?:(?:on|by|until|before|for) )?{_WEEKDAY}(?: of)? {_STEP} week", _weekday_of_week),
    (rf"{_STEP} week(?:'s)?(?: on)? {_WEEKDAY}{_NO_DATE}", _weekday_of_week),
    (
        rf"{_ROLLING}(?P<step>this coming|this past|coming|last|this|next) {_WEEKDAY}{_NO_DATE}",
        _stepped_weekday,
    ),
    (rf"(?P<lead>{_DEADLINE}|on|for|since) {_WEEKDAY}{_NO_DATE}", _weekday_ahead),
    (rf"{_VAGUE}{_NUMBER} {_UNIT} ago(?! or\b| (?:on |last |this )?{_WEEKDAY})", _ago),
    (rf"(?:vor|il y a|hace) {_NUMBER} {_UNIT}(?! (?:dans|de|entre|or|ou|oder)\b)", _ago_abroad),
    (rf"{_VAGUE}{_NUMBER} {_UNIT} from (?:now|today)(?! or\b)", _from_now),
    (rf"in {_NUMBER} {_UNIT}'?(?P<time> time)?(?! (?:of|or|from)\b)", _within),
    (rf"{_UP_TO}{_PART} (?:(?P<step>the|this|next|last) )?(?P<unit>week|month|quarter|year)(?! [0-9])", _edge),
    (rf"(?:(?:{_DEADLINE}) )?(?P<unit>eo[mqy])", _end_of),
    (rf"{_ROLLING}{_STEP} (?P<unit>weekend|week|month|quarter|year)(?! (?:of|or)\b)", _stepped_unit),
)
"""Dates that depend on the day they are said."""


class _Grammar:
    """Productions as one pattern: of those that match at a place the first counts, and hides what it covers."""

    def __init__(self, productions: Iterable[tuple[str, Resolver]]) -> None:
        self._productions = {
            f"p{number}": (f"(?:{pattern}){_AFTER}", resolve) for number, (pattern, resolve) in enumerate(productions)
        }
        named = (
            f"(?P<{name}>" + _GROUP.sub(rf"(?P\1{name}_", pattern) + ")"
            for name, (pattern, _) in self._productions.items()
        )
        self._any = re.compile(f"{_BEFORE}(?:{'|'.join(named)})")

    def spoken(self, said: Said) -> Iterator[str]:
        """What a text speaks of, in its order."""
        text = said.text.lower()  # five times as fast as to match without regard to case
        for expression in self._any.finditer(text):
            pattern, resolve = self._productions[expression.lastgroup or ""]
            found = re.compile(pattern).match(text, expression.start())
            if found and (spoken := resolve(found, said)):
                yield spoken


_GROUP = lazily(r"\(\?P([<=])")


@cache
def _grammar(*, in_full: bool) -> _Grammar:
    """The grammar, or its absolute dates alone; made when a text first needs it: that takes 13 ms."""
    return _Grammar(_ABSOLUTE if in_full else (*_ABSOLUTE, *_RELATIVE))


# What every expression holds: most sentences are turned away by it, at a fraction of the cost of looking closer.
_WORD = lazily(r"[^\W\d_]+")
_NUMBER_OF_DATE = lazily(r"[0-9](?:[0-9]{3}|st|nd|rd|th)")
_WORDS = (
    frozenset(_WORD.findall(" ".join([*MONTHS, *UNITS, *(f"{word}s" for word in UNITS), *DAYS])))
    | frozenset(f"{name}day" for name in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))
    | frozenset("mon tue tues wed thu thur thurs fri sat sun quarter weekend eom eoq eoy il".split())
) - {"the", "this", "after", "before", "an"}


def _may_speak(text: str) -> bool:
    return bool(_NUMBER_OF_DATE.search(text)) or not _WORDS.isdisjoint(_WORD.findall(text.lower()))
