"""Dates in natural language, found by a fixed grammar and resolved relative to the day of speaking, never guessed.

Each rule of the grammar has a resolver, whose docstring shows examples. An expression is resolved only if all speakers
mean the same date by it. "Tonight" after midnight means the coming evening. Weeks, quarters and years are calendar
ones, not fiscal ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from heapq import heapify, heappop, heapreplace

from omcli.base import lazily
from omcli.text import calendar
from omcli.text.calendar import (
    AMBIGUOUS_MONTHS,
    DAYS,
    FULL_MONTHS,
    MONTHS,
    NUMBERS,
    STEPS,
    UNITS,
    DateContext,
    Tense,
    any_of,
)


def spoken_date(text: str, *, at: str | None, utc_offset: int | None = None) -> str | None:
    """Return the first date in text, as `each_spoken_date` yields it, or None."""
    return next(each_spoken_date(text, at=at, utc_offset=utc_offset), None)


def each_spoken_date(text: str, *, at: str | None, utc_offset: int | None = None) -> Iterator[str]:
    """Yield the days, months, years, weeks, weekends and quarters mentioned in text, in order and in the notation
    of `calendar`. Repeated ones are yielded again.

    `at` is the instant of speaking and `utc_offset` the speaker's zone, in minutes east of UTC. If `at` is None, only
    full dates are resolved. The day of speaking is yielded only if no other date is. Inline code is skipped.
    """
    if not (rules := _select_rules(text, _ABSOLUTE if at is None else (*_ABSOLUTE, *_RELATIVE))):
        return
    said = DateContext(text=_plain(text), today=calendar.day_of(at, utc_offset) if at else date.min)
    today, mentioned, end = said.today.isoformat(), set[str](), 0
    lower = said.text.lower()  # five times as fast as matching with IGNORECASE
    matches = [(rank, rule.pattern.search(lower)) for rank, rule in enumerate(rules)]
    ahead = [(found.start(), rank, found) for rank, found in matches if found]
    heapify(ahead)
    while ahead:
        # At each position the first matching rule wins, and later matches must not overlap its match.
        begin, rank, found = ahead[0]
        if begin >= end:
            end = found.end()
            if spoken := rules[rank].resolve(found, said):
                mentioned.add(spoken)
                if spoken != today:
                    yield spoken
        if later := rules[rank].pattern.search(lower, end):
            heapreplace(ahead, (later.start(), rank, later))
        else:
            heappop(ahead)
    yield from mentioned if mentioned == {today} else ()


_INLINE_CODE = lazily(r"`[^`\n]{1,200}`")


def _plain(text: str) -> str:
    """Return text of the same length with inline code blanked out and apostrophes straightened.

    Lower-casing the result keeps its length too, so that indexes match.
    """
    straight = text.replace("\u2019", "'").replace("\u0130", "I")
    return _INLINE_CODE.sub(lambda code: "`" * len(code[0]), straight)


# ---- selecting rules

_WORD = lazily(r"[^\W\d_]+")
_DIGITS = {"year": lazily("[0-9]{4}"), "ordinal": lazily("[0-9](?:st|nd|rd|th)")}
_WORDS = {
    **dict.fromkeys({*_WORD.findall(" ".join(DAYS))} - {"the", "after", "before"}, "day"),
    **dict.fromkeys({*UNITS, *(f"{word}s" for word in UNITS), "quarter", "weekend"} - {"an"}, "unit"),
    **dict.fromkeys(MONTHS, "month"),
    **dict.fromkeys((f"{name}day" for name in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")), "weekday"),
    **dict.fromkeys("mon tue tues wed thu thur thurs fri sat sun".split(), "weekday"),
    **dict.fromkeys("last this next coming".split(), "step"),
    **dict.fromkeys("end beginning start middle close".split(), "part"),
    **dict.fromkeys("eom eoq eoy".split(), "end"),
    **dict.fromkeys("vor il hace".split(), "abroad"),
    **{word: word for word in ("ago", "from", "in", "q")},
}
"""Kinds of the words that occur in dates."""


def _select_rules(text: str, among: Iterable[_Rule]) -> list[_Rule]:
    """Return the rules whose required kinds of words all occur in the text. For most texts there are none."""
    small = text.lower()
    kinds = {_WORDS[word] for word in _WORDS.keys() & _WORD.findall(small)}
    kinds.update(kind for kind, digits in _DIGITS.items() if digits.search(small))
    return [rule for rule in among if rule.parts <= kinds]


Resolver = Callable[[re.Match[str], DateContext], str | None]
"""Returns the date that a match refers to, or None if it is ambiguous or not a date."""


# ---- full dates


def _written_day(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `2026-03-05`, `2026/03/05`, with or without a time. A weekday before the date must match it."""
    return _fitting(calendar.day(int(found["year"]), int(found["month"]), int(found["day"])), found["weekday"])


def _written_month(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `2026-03`, but not `2010-11`, which may be a season."""
    years, months = int(found["year"]), int(found["month"])
    return calendar.month(years, months) if 1 <= months <= 12 and (years + 1) % 100 != months else None


def _number_day(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `13.05.2026`, `05/13/2026` if the order is clear: one number is above 12, or both numbers are equal."""
    first, second = int(found["first"]), int(found["second"])
    if first <= 12 and second <= 12 and first != second:
        return None
    day, month = (second, first) if second > 12 else (first, second)
    return calendar.day(int(found["year"]), month, day)


def _named_day(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `5 March 2026`, `March 5th, 2026`, `5 de marzo de 2026`. A weekday before the date must match it."""
    day = calendar.day(int(found["year"]), MONTHS[found["month"]], int(found["day"]))
    return _fitting(day, found["weekday"])


def _named_month(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `March 2026`, `by the end of March 2026` (its last day).

    Without a preposition, a month that is also another word needs a capital and no noun after it ("May 2000 users").
    """
    if not found["lead"] and found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    spoken = calendar.month(int(found["year"]), MONTHS[found["month"]])
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


def _quarter_of_year(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `Q3 2026`, `2026 Q3`, but not `FY Q3 2026`."""
    return None if found["fiscal"] else calendar.quarter(int(found["year"]), int(found["quarter"]))


def _whole_year(found: re.Match[str], _: DateContext) -> str | None:
    """Resolve `in 2024`, `by the end of 2026` (its last day), but not `in 2024 lines`."""
    spoken = calendar.year(int(found["year"])) if calendar.goes_on(found) else None
    return calendar.last_day(spoken) if spoken and found["deadline"] else spoken


# ---- dates without a year


def _day_of_year(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `March 5`, `the 5th of March`.

    A weekday before the date determines the year. In a clause about the future, the next such day is returned.
    Otherwise it is the one at most 61 days away, unless that day is in the future and the clause in the past tense.
    """
    month, day = MONTHS[found["month"]], int(found["day"])
    if found["month"] in AMBIGUOUS_MONTHS and not _is_named(found, said):
        return None
    if found["weekday"]:
        return calendar.day_with_weekday(said.today, month, day, calendar.weekday_index(found["weekday"]))
    told, near = calendar.tense(found), calendar.near_day(said.today, month, day)
    if told is Tense.COMING:
        return calendar.next_day(said.today, month, day)
    return None if near and told is Tense.OVER and near > said.today.isoformat() else near


def _month_of_year(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `in March`, `since March`, `by the end of March` (its last day), similarly to `March 5`.

    `since` means the last such month. `by` and `until` mean the current or next one, unless the clause is in the past
    tense. `by` is not resolved before a name that can be another word (`by April`).
    """
    word, lead, month = found["month"], found["lead"], MONTHS[found["month"]]
    if word in AMBIGUOUS_MONTHS and (lead == "by" or (word not in FULL_MONTHS and not _is_named(found, said))):
        return None  # "by April", "in dec"
    told, this = calendar.tense(found), f"{said.today:%Y-%m}"
    if lead == "since":
        return None if month == said.today.month else calendar.next_month(said.today, month, -1)
    if told is Tense.COMING or (told is Tense.UNTOLD and (found["deadline"] or lead in ("by", "until", "till"))):
        spoken = this if month == said.today.month else calendar.next_month(said.today, month, 1)
        return calendar.last_day(spoken) if spoken and found["deadline"] else spoken
    near = calendar.near_month(said.today, month)
    return None if found["deadline"] or (near and told is Tense.OVER and near > this) else near


def _month_of_other_year(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `March last year`, `in May of next year`."""
    if not found["lead"] and not said.has_capital(found, "month"):
        return None
    return calendar.month(said.today.year + STEPS[found["step"]], MONTHS[found["month"]])


def _other_month(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `last March`, `next March` if no nearer March is in this year (`calendar.month_named`).

    In May 2026, `next March` is 2027-03. In January 2026 it is ambiguous. March and May need a capital letter, because
    "next may" need not mean the month ("who is next may answer").
    """
    is_verb = found["month"] in ("march", "may") and not said.has_capital(found, "month")
    if is_verb or found["rolling"] or found["month"] not in FULL_MONTHS:
        return None
    month = calendar.month_named(said.today, MONTHS[found["month"]], STEPS[found["step"]])
    if month is None:
        return None
    return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if found["day"] else month


def _day_of_month(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `the 15th of next month`, `by the 15th` (the next one), `on the 15th` in a clause about the future."""
    if found["step"]:
        month = calendar.month(said.today.year, said.today.month + STEPS[found["step"]])
        return calendar.day(int(month[:4]), int(month[5:]), int(found["day"])) if month else None
    if not found["lead"] or not calendar.goes_on(found) or not _is_after(found):
        return None
    return calendar.next_date(said.today, int(found["day"]))


# ---- days and weekdays


def _day_word(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `tomorrow`, `yesterday evening`, `vorgestern`.

    Return None for idioms ("it feels like yesterday"), names (a magazine called "Today"), and `Morgen` or `guten
    morgen`, which mean "morning".
    """
    is_name = said.is_title(found, "word") and (found["word"] == "morgen" or not calendar.opens_clause(found))
    if found["idiom"] or is_name:
        return None
    return calendar.days_from(said.today, DAYS[found["word"]])


def _other_weekday(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `last Friday`, `this Friday`, `next Friday` if all common readings agree (`calendar.weekday_from`).

    On a Wednesday, `next Friday` may be in two days or in nine, so it gives None. On a Saturday, `last Friday` may be
    yesterday. `coming Friday` and `this past Friday` are the nearest ones.
    """
    step, index = found["step"], calendar.weekday_index(found["weekday"])
    if found["rolling"] or not _is_weekday(found, said):
        return None
    if step in ("last", "this", "next"):
        return calendar.weekday_from(said.today, index, STEPS[step])
    return calendar.nearest_weekday(said.today, index, STEPS[step])


def _weekday_of_week(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `Friday next week`, `last week on Friday`, unless it matters on which day weeks begin."""
    return calendar.weekday_of_week(said.today, calendar.weekday_index(found["weekday"]), STEPS[found["step"]])


def _weekday_ahead(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `by Friday` (the next one), `since Friday` (the last one), and `on Friday` in a clause about the future.

    On a Friday, all three are ambiguous.
    """
    since = found["lead"] == "since"
    if not _is_weekday(found, said) or not (since or _is_after(found)):
        return None
    return calendar.nearest_weekday(said.today, calendar.weekday_index(found["weekday"]), -1 if since else 1)


# ---- counted units and parts of units


def _ago(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `3 days ago`, `a couple of weeks ago`, but not after a word such as `about` or `or`."""
    return None if found["vague"] else _count_from(found, said, -1)


def _ago_first(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `vor drei Tagen`, `il y a deux semaines`, `hace un mes`."""
    return _count_from(found, said, -1)


def _from_now(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `two weeks from now`, but not after a word such as `about` or `or`."""
    return None if found["vague"] else _count_from(found, said, 1)


def _within(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `in two weeks' time`, and `in two weeks` unless it is a duration (`calendar.is_ahead`)."""
    return _count_from(found, said, 1) if found["time"] or calendar.is_ahead(found) else None


def _count_from(found: re.Match[str], said: DateContext, direction: int) -> str | None:
    count = calendar.number_of(found["number"]) * direction
    return calendar.counted_from(said.today, count, calendar.unit_of(found["unit"]))


def _other_unit(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `last week`, `this month`, `next quarter`, but not `the last month`, which may be the last 30 days."""
    return None if found["rolling"] else calendar.unit_from(said.today, found["unit"], STEPS[found["step"]])


def _part_of_unit(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `by the end of the month` to its last day, and `at the end` (or start, middle) `of the month` to the
    month. Return None for a deadline at another part. For some people weeks end on Friday, so a week is always whole.
    """
    spoken = calendar.unit_from(said.today, found["unit"], STEPS[found["step"] or "this"])
    if spoken is None or not found["deadline"] or found["unit"] == "week":
        return spoken
    is_end = found["edge"] in ("end", "close") and calendar.tense(found) is not Tense.OVER
    return calendar.last_day(spoken) if is_end else None


def _end_of(found: re.Match[str], said: DateContext) -> str | None:
    """Resolve `EOM`, `EOQ`, `EOY`, but not `eom`, to the last day of the month, quarter or year."""
    if not said.has_capital(found, "unit"):
        return None
    spoken = calendar.unit_from(said.today, {"m": "month", "q": "quarter", "y": "year"}[found["unit"][-1]], 0)
    return spoken and calendar.last_day(spoken)


# ---- shared by several rules


def _fitting(day: str | None, name: str | None) -> str | None:
    """Return the day, or None if a weekday is given and the day falls on another one."""
    return day if not day or not name or date.fromisoformat(day).weekday() == calendar.weekday_index(name) else None


def _is_named(found: re.Match[str], said: DateContext) -> bool:
    """Return True if an ambiguous word is a month: it has a capital letter and is not followed by a noun."""
    return said.has_capital(found, "month") and calendar.goes_on(found)


def _is_weekday(found: re.Match[str], said: DateContext) -> bool:
    """Return True if the word is a weekday ("saturday", "Sat") and not another word ("sat", "Sun hardware")."""
    return found["weekday"].endswith("day") or (said.has_capital(found, "weekday") and calendar.goes_on(found))


def _is_after(found: re.Match[str]) -> bool:
    """Return True if the date is in the future, judged by the tense of its clause or a word such as `by`."""
    told = calendar.tense(found)
    return told is Tense.COMING or (told is Tense.UNTOLD and found["lead"] not in ("on", "for"))


# ---- parts of patterns

# A date must not be part of a path, an address, a version, an assignment or a call.
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
"""Ensures that the weekday before it does not begin a longer date ("Friday, March 5")."""
_NUMBER = rf"(?P<number>[0-9]{{1,4}}|{any_of(NUMBERS)})"
_UNIT = rf"(?P<unit>(?:{any_of(UNITS)})s?)\b"
_VAGUE = (
    r"(?:(?P<vague>about|almost|and|approximately|around|at least|half|less than|like|maybe|more than|nearly|or|over|"
    r"roughly|some|to|under|(?:year|month|week)s?,?) )?"
)
_STEP = r"(?P<step>last|this|next)"
_ROLLING = r"(?P<rolling>(?:the|every|each|any|past|first|second|third) )?"
_DEADLINE = r"by|until|till|before|due(?: by| on| at)?|no later than"
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

# ---- the grammar


class _Rule:
    """One way to write a date: the kinds of words it requires, its pattern, and its resolver."""

    def __init__(self, parts: str, pattern: str, resolve: Resolver) -> None:
        self.parts = frozenset(parts.split())
        """Kinds of `_WORDS` and keys of `_DIGITS`."""
        self.pattern = lazily(f"{_BEFORE}(?:{pattern}){_AFTER}")
        self.resolve = resolve


_ABSOLUTE = (
    _Rule(
        "year",
        rf"{_MAYBE_WEEKDAY}{_YEAR}(?P<mark>[-/])(?P<month>[0-9]{{2}})(?P=mark)(?P<day>[0-9]{{2}}){_TIME}",
        _written_day,
    ),
    _Rule(
        "year", r"(?P<first>[0-9]{1,2})(?P<mark>[-./])(?P<second>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})", _number_day
    ),
    _Rule(
        "month year",
        rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?:er)?(?: of| de)?[ -]{_MONTH},?(?: de)?[ -]{_YEAR}",
        _named_day,
    ),
    _Rule("month year", rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY},? {_YEAR}", _named_day),
    _Rule(
        "month year",
        rf"(?P<lead>(?:{_PART_OF}|in|since|until|during|by|from|of)[ -])?{_MONTH},?(?: de)?[ -]{_YEAR}",
        _named_month,
    ),
    _Rule("q year", rf"(?P<fiscal>fy |fiscal )?q(?P<quarter>[1-4])(?:,? | of |/|-){_YEAR}", _quarter_of_year),
    _Rule("q year", rf"(?P<fiscal>fy |fiscal )?{_YEAR}[ -]q(?P<quarter>[1-4])", _quarter_of_year),
    _Rule(
        "year",
        rf"(?:{_PART_OF}|in|since|until|till|by|during|back in|as of)[ -](?P<year>(?:19|20)[0-9]{{2}})",
        _whole_year,
    ),
    _Rule("year", rf"{_YEAR}-(?P<month>[0-9]{{2}})", _written_month),
)
"""Rules for dates that do not depend on the day of speaking."""
_RELATIVE = (
    _Rule("month step", rf"{_ROLLING}{_STEP} {_MONTH}(?: (?P<day>[0-9]{{1,2}}))?", _other_month),
    _Rule(
        "month step unit",
        rf"(?P<lead>(?:in|since|until|till|by|during|back in) )?{_MONTH}(?: of)? {_STEP} year",
        _month_of_other_year,
    ),
    _Rule(
        "month",
        rf"(?P<lead>{_PART_OF}|in|since|until|till|by|during|back in)[ -]{_MONTH}(?! ?[0-9])",
        _month_of_year,
    ),
    _Rule("month", rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?: of| de)?[ -]{_MONTH}", _day_of_year),
    _Rule(
        "month",
        rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY}(?! ?[-–] ?[0-9]| (?:to|or) [0-9])",
        _day_of_year,
    ),
    _Rule(
        "ordinal",
        rf"(?:(?P<lead>{_DEADLINE}|on|for) )?the (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)(?: of {_STEP} month)?(?! of\b)",
        _day_of_month,
    ),
    _Rule("day", rf"{_IDIOM}(?P<word>{any_of(DAYS)}){_PART_OF_DAY}", _day_word),
    _Rule(
        "weekday step unit",
        rf"(?:(?:on|by|until|before|for) )?{_WEEKDAY}(?: of)? {_STEP} week",
        _weekday_of_week,
    ),
    _Rule("weekday step unit", rf"{_STEP} week(?:'s)?(?: on)? {_WEEKDAY}{_NO_DATE}", _weekday_of_week),
    _Rule(
        "weekday step",
        rf"{_ROLLING}(?P<step>this coming|this past|coming|last|this|next) {_WEEKDAY}{_NO_DATE}",
        _other_weekday,
    ),
    _Rule("weekday", rf"(?P<lead>{_DEADLINE}|on|for|since) {_WEEKDAY}{_NO_DATE}", _weekday_ahead),
    _Rule("unit ago", rf"{_VAGUE}{_NUMBER} {_UNIT} ago(?! or\b| (?:on |last |this )?{_WEEKDAY})", _ago),
    _Rule("abroad", rf"(?:vor|il y a|hace) {_NUMBER} {_UNIT}(?! (?:dans|de|entre|or|ou|oder)\b)", _ago_first),
    _Rule("unit from", rf"{_VAGUE}{_NUMBER} {_UNIT} from (?:now|today)(?! or\b)", _from_now),
    _Rule("unit in", rf"in {_NUMBER} {_UNIT}'?(?P<time> time)?(?! (?:of|or|from)\b)", _within),
    _Rule(
        "unit part",
        rf"{_UP_TO}{_PART} (?:(?P<step>the|this|next|last) )?(?P<unit>week|month|quarter|year)(?! [0-9])",
        _part_of_unit,
    ),
    _Rule("end", rf"(?:(?:{_DEADLINE}) )?(?P<unit>eo[mqy])", _end_of),
    _Rule("unit step", rf"{_ROLLING}{_STEP} (?P<unit>weekend|week|month|quarter|year)(?! (?:of|or)\b)", _other_unit),
)
"""Rules for dates that depend on the day of speaking."""
