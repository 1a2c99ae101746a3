"""Dates in natural language, found by a fixed grammar and resolved relative to the day of speaking, never guessed.

The grammar is here; `date_meanings` has the meaning of each rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from heapq import heappop, heappush

from omcli.base.patterns import lazily
from omcli.text import calendar
from omcli.text import date_meanings as means
from omcli.text.date_meanings import DAYS, MONTHS, NUMBERS, UNITS, DateContext, Resolver, any_of


def spoken_date(text: str, *, at: str | None, utc_offset: int | None = None) -> str | None:
    """Return the day, month, year, week or quarter mentioned in text, spelled as in `calendar`, or None.

    `at` is the instant of speaking and `utc_offset` the speaker's zone, in minutes east of UTC. Without an instant,
    only full dates count. If there are several dates, the first counts that is not the day of speaking itself. Inline
    code is skipped.
    """
    productions = _select_rules(text, _ABSOLUTE if at is None else (*_ABSOLUTE, *_RELATIVE))
    if not productions:
        return None
    said = DateContext(text=_plain(text), today=calendar.day_of(at, utc_offset) if at else date.min)
    spoken_today = None
    for spoken in _spoken(said, productions):
        if spoken != said.today.isoformat():
            return spoken
        spoken_today = spoken
    return spoken_today


_INLINE_CODE = lazily(r"`[^`\n]{1,200}`")


def _plain(text: str) -> str:
    """Return text of the same length with code blanked out and apostrophes straightened.

    The lower case of the result has the same length too, so that indexes match.
    """
    straight = text.replace("\u2019", "'").replace("\u0130", "I")
    return _INLINE_CODE.sub(lambda code: "`" * len(code[0]), straight)


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
"""Must follow a weekday that is not itself the start of a date ("Friday, March 5")."""
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
        """Names of `_WORDS` and `_DIGITS`."""
        self.pattern = lazily(f"{_BEFORE}(?:{pattern}){_AFTER}")
        self.resolve = resolve


_ABSOLUTE = (
    _Rule(
        "year",
        rf"{_MAYBE_WEEKDAY}{_YEAR}(?P<mark>[-/])(?P<month>[0-9]{{2}})(?P=mark)(?P<day>[0-9]{{2}}){_TIME}",
        means.written_day,
    ),
    _Rule(
        "year", r"(?P<first>[0-9]{1,2})(?P<mark>[-./])(?P<second>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})", means.numbers
    ),
    _Rule(
        "month year",
        rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?:er)?(?: of| de)?[ -]{_MONTH},?(?: de)?[ -]{_YEAR}",
        means.named_day,
    ),
    _Rule("month year", rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY},? {_YEAR}", means.named_day),
    _Rule(
        "month year",
        rf"(?P<lead>(?:{_PART_OF}|in|since|until|during|by|from|of)[ -])?{_MONTH},?(?: de)?[ -]{_YEAR}",
        means.named_month,
    ),
    _Rule("q year", rf"(?P<fiscal>fy |fiscal )?q(?P<quarter>[1-4])(?:,? | of |/|-){_YEAR}", means.quarter),
    _Rule("q year", rf"(?P<fiscal>fy |fiscal )?{_YEAR}[ -]q(?P<quarter>[1-4])", means.quarter),
    _Rule(
        "year",
        rf"(?:{_PART_OF}|in|since|until|till|by|during|back in|as of)[ -](?P<year>(?:19|20)[0-9]{{2}})",
        means.year,
    ),
    _Rule("year", rf"{_YEAR}-(?P<month>[0-9]{{2}})", means.written_month),
)
"""Dates that don't depend on the day of speaking."""
_RELATIVE = (
    _Rule("month step", rf"{_ROLLING}{_STEP} {_MONTH}(?: (?P<day>[0-9]{{1,2}}))?", means.other_month),
    _Rule(
        "month step unit",
        rf"(?P<lead>(?:in|since|until|till|by|during|back in) )?{_MONTH}(?: of)? {_STEP} year",
        means.month_of_other_year,
    ),
    _Rule(
        "month",
        rf"(?P<lead>{_PART_OF}|in|since|until|till|by|during|back in)[ -]{_MONTH}(?! ?[0-9])",
        means.month_of_year,
    ),
    _Rule("month", rf"{_MAYBE_WEEKDAY}(?:the )?{_DAY}\.?(?: of| de)?[ -]{_MONTH}", means.day_of_year),
    _Rule(
        "month",
        rf"{_MAYBE_WEEKDAY}{_MONTH} (?:the )?{_DAY}(?! ?[-–] ?[0-9]| (?:to|or) [0-9])",
        means.day_of_year,
    ),
    _Rule(
        "ordinal",
        rf"(?:(?P<lead>{_DEADLINE}|on|for) )?the (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)(?: of {_STEP} month)?(?! of\b)",
        means.day_of_month,
    ),
    _Rule("day", rf"{_IDIOM}(?P<word>{any_of(DAYS)}){_PART_OF_DAY}", means.day_word),
    _Rule(
        "weekday step unit",
        rf"(?:(?:on|by|until|before|for) )?{_WEEKDAY}(?: of)? {_STEP} week",
        means.weekday_of_week,
    ),
    _Rule("weekday step unit", rf"{_STEP} week(?:'s)?(?: on)? {_WEEKDAY}{_NO_DATE}", means.weekday_of_week),
    _Rule(
        "weekday step",
        rf"{_ROLLING}(?P<step>this coming|this past|coming|last|this|next) {_WEEKDAY}{_NO_DATE}",
        means.other_weekday,
    ),
    _Rule("weekday", rf"(?P<lead>{_DEADLINE}|on|for|since) {_WEEKDAY}{_NO_DATE}", means.weekday_ahead),
    _Rule("unit ago", rf"{_VAGUE}{_NUMBER} {_UNIT} ago(?! or\b| (?:on |last |this )?{_WEEKDAY})", means.ago),
    _Rule("abroad", rf"(?:vor|il y a|hace) {_NUMBER} {_UNIT}(?! (?:dans|de|entre|or|ou|oder)\b)", means.ago_first),
    _Rule("unit from", rf"{_VAGUE}{_NUMBER} {_UNIT} from (?:now|today)(?! or\b)", means.from_now),
    _Rule("unit in", rf"in {_NUMBER} {_UNIT}'?(?P<time> time)?(?! (?:of|or|from)\b)", means.within),
    _Rule(
        "unit part",
        rf"{_UP_TO}{_PART} (?:(?P<step>the|this|next|last) )?(?P<unit>week|month|quarter|year)(?! [0-9])",
        means.part_of_unit,
    ),
    _Rule("end", rf"(?:(?:{_DEADLINE}) )?(?P<unit>eo[mqy])", means.end_of),
    _Rule(
        "unit step", rf"{_ROLLING}{_STEP} (?P<unit>weekend|week|month|quarter|year)(?! (?:of|or)\b)", means.other_unit
    ),
)
"""Dates that depend on the day of speaking."""


# ---- reading a text

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
"""Kind of each word that occurs in dates."""


def _select_rules(text: str, among: Iterable[_Rule]) -> list[_Rule]:
    """Return the rules for which the text has all kinds of words; for most sentences there are none."""
    small = text.lower()
    kinds = {_WORDS[word] for word in _WORDS.keys() & _WORD.findall(small)}
    kinds.update(kind for kind, digits in _DIGITS.items() if digits.search(small))
    return [production for production in among if production.parts <= kinds]


def _spoken(said: DateContext, productions: Sequence[_Rule]) -> Iterator[str]:
    """Yield the dates in order. The first rule that matches at a place wins, and later matches must not overlap it."""
    text = said.text.lower()  # five times as fast as matching with IGNORECASE
    ahead: list[tuple[int, int, re.Match[str]]] = []

    def look(rank: int, begin: int) -> None:
        if found := productions[rank].pattern.search(text, begin):
            heappush(ahead, (found.start(), rank, found))

    end = 0
    for rank in range(len(productions)):
        look(rank, end)
    while ahead:
        begin, rank, found = heappop(ahead)
        if begin >= end:
            end = found.end()
            if spoken := productions[rank].resolve(found, said):
                yield spoken
        look(rank, end)
