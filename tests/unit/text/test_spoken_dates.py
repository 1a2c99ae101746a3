"""Dates in what people say: found where they are, resolved against the day of speaking, and never guessed."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omcli.text.instants import instant
from omcli.text.spoken_dates import spoken_date
from tests.strategies import texts

SPELLED = re.compile(
    r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?|[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{4}-[0-9]{2}-[0-9]{2}|"
    r"[0-9]{4}-[0-9]{2}/[0-9]{4}-[0-9]{2}"
)
DAYS = st.dates(date(1970, 1, 1), date(9999, 12, 31))
WEDNESDAY, FRIDAY, SATURDAY, SUNDAY = "2026-03-11", "2026-03-13", "2026-03-14", "2026-03-15"


def spoken(day: str, text: str) -> str | None:
    """What a text speaks of, said at noon of a day."""
    return spoken_date(text, at=f"{day}T12:00:00.000Z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The audit is on 2026-04-02.", "2026-04-02"),
        ("It broke on 2026-04-02T09:30:00Z and again later", "2026-04-02"),
        ("due 2026/04/02", "2026-04-02"),
        ("The report for 2026-04 is missing", "2026-04"),
        ("We moved on April 2nd, 2026.", "2026-04-02"),
        ("We moved on 2 April 2026", "2026-04-02"),
        ("on the 2nd of April, 2026", "2026-04-02"),
        ("2-Apr-2026", "2026-04-02"),
        ("Thursday, April 2, 2026", "2026-04-02"),
        ("am 2. April 2026", "2026-04-02"),
        ("le 2 avril 2026", "2026-04-02"),
        ("el 2 de abril de 2026", "2026-04-02"),
        ("25/12/2026", "2026-12-25"),
        ("12/25/2026", "2026-12-25"),
        ("25.12.2026", "2026-12-25"),
        ("04/04/2026", "2026-04-04"),
        ("the leap day 2028-02-29", "2028-02-29"),
        ("since April 2019 we own it", "2019-04"),
        ("May 2024: the first release", "2024-05"),
        ("in may 2024 it was slower", "2024-05"),
        ("The fair was in 2019, I think", "2019"),
        ("by the end of 2027 we leave", "2027-12-31"),
        ("Revenue of Q3 2026", "2026-07/2026-09"),
        ("2026-Q1 was slow", "2026-01/2026-03"),
    ],
)
@pytest.mark.parametrize("at", [None, "2026-03-11T12:00:00.000Z", "1999-12-31T23:59:59.999"])
def test_a_date_given_in_full_is_the_same_whenever_it_is_said(text: str, expected: str, at: str | None) -> None:
    """S0.29: also where the instant is unknown."""
    assert spoken_date(text, at=at) == expected


@pytest.mark.parametrize(
    ("day", "text", "expected"),
    [
        # Days
        (WEDNESDAY, "I shipped it yesterday", "2026-03-10"),
        (WEDNESDAY, "yesterday's build is green", "2026-03-10"),
        (WEDNESDAY, "Yesterday evening it rained", "2026-03-10"),
        (WEDNESDAY, "see you tomorrow!", "2026-03-12"),
        (WEDNESDAY, "DUE TOMORROW", "2026-03-12"),
        (WEDNESDAY, "the day after tomorrow", "2026-03-13"),
        (WEDNESDAY, "the day before yesterday", "2026-03-09"),
        (WEDNESDAY, "I start tonight", "2026-03-11"),
        ("2024-02-28", "tomorrow", "2024-02-29"),
        ("2026-02-28", "tomorrow", "2026-03-01"),
        ("2026-12-31", "tomorrow", "2027-01-01"),
        ("2026-01-01", "yesterday", "2025-12-31"),
        # Counted
        (WEDNESDAY, "3 days ago", "2026-03-08"),
        (WEDNESDAY, "a couple of days ago", "2026-03-09"),
        (WEDNESDAY, "two weeks ago", "2026-02-25"),
        (WEDNESDAY, "a fortnight ago", "2026-02-25"),
        (WEDNESDAY, "a month ago", "2026-02"),
        (WEDNESDAY, "twelve months ago", "2025-03"),
        (WEDNESDAY, "ten years ago", "2016"),
        ("2024-02-29", "a year ago", "2023"),
        ("2026-03-31", "one month ago", "2026-02"),
        ("2026-01-31", "a month from now", "2026-02"),
        (WEDNESDAY, "ten days from today", "2026-03-21"),
        (WEDNESDAY, "In two weeks we fly to Rome", "2026-03-25"),
        (WEDNESDAY, "The demo is in 3 days", "2026-03-14"),
        (WEDNESDAY, "Remind me in a week", "2026-03-18"),
        (WEDNESDAY, "We will know in two months.", "2026-05"),
        (WEDNESDAY, "I can do it in two weeks' time", "2026-03-25"),
        # Weeks and longer
        (WEDNESDAY, "last week", "2026-03-02/2026-03-08"),
        (WEDNESDAY, "this week's plan", "2026-03-09/2026-03-15"),
        (WEDNESDAY, "next week", "2026-03-16/2026-03-22"),
        (WEDNESDAY, "last weekend", "2026-03-07/2026-03-08"),
        (WEDNESDAY, "this weekend", "2026-03-14/2026-03-15"),
        (SATURDAY, "next weekend", "2026-03-21/2026-03-22"),
        (WEDNESDAY, "last month", "2026-02"),
        ("2026-01-15", "last month", "2025-12"),
        ("2026-12-15", "next month", "2027-01"),
        (WEDNESDAY, "next quarter", "2026-04/2026-06"),
        ("2026-02-01", "last quarter", "2025-10/2025-12"),
        (WEDNESDAY, "last year", "2025"),
        (WEDNESDAY, "the freeze is by the end of the month", "2026-03-31"),
        ("2028-02-03", "until end of month", "2028-02-29"),
        (WEDNESDAY, "by end of next month", "2026-04-30"),
        (WEDNESDAY, "before the end of the quarter", "2026-03-31"),
        (WEDNESDAY, "due by end of year", "2026-12-31"),
        (WEDNESDAY, "EOM", "2026-03-31"),
        (WEDNESDAY, "by the end of the week", "2026-03-09/2026-03-15"),
        (WEDNESDAY, "at the end of the month", "2026-03"),
        (WEDNESDAY, "at the beginning of the year", "2026"),
        # Months
        (WEDNESDAY, "next March", "2027-03"),
        (WEDNESDAY, "last March", "2025-03"),
        (WEDNESDAY, "this March", "2026-03"),
        ("2026-05-02", "next March", "2027-03"),
        ("2026-02-10", "last March", "2025-03"),
        (WEDNESDAY, "in April", "2026-04"),
        ("2026-12-20", "in January", "2027-01"),
        ("2026-01-20", "We met in December", "2025-12"),
        (WEDNESDAY, "We will move in October", "2026-10"),
        (WEDNESDAY, "by the end of April", "2026-04-30"),
        (WEDNESDAY, "in early April", "2026-04"),
        (WEDNESDAY, "since November", "2025-11"),
        (WEDNESDAY, "March last year", "2025-03"),
        (WEDNESDAY, "in may next year", "2027-05"),
        # Days of a year and of a month
        (WEDNESDAY, "March 20", "2026-03-20"),
        (WEDNESDAY, "on May 11", "2026-05-11"),
        (WEDNESDAY, "the 3rd of April", "2026-04-03"),
        (WEDNESDAY, "We met on Feb 12.", "2026-02-12"),
        ("2026-12-20", "on January 3rd", "2027-01-03"),
        (WEDNESDAY, "The wedding will be on August 8", "2026-08-08"),
        (WEDNESDAY, "Saturday, August 8", "2026-08-08"),
        (WEDNESDAY, "Friday, August 8", "2025-08-08"),
        ("2027-11-11", "Tue, Feb 29", "2028-02-29"),
        (WEDNESDAY, "by the 15th", "2026-03-15"),
        (WEDNESDAY, "by the 9th", "2026-04-09"),
        (WEDNESDAY, "We'll ship on the 20th.", "2026-03-20"),
        (WEDNESDAY, "the 15th of next month", "2026-04-15"),
        # Weekdays
        (WEDNESDAY, "last Friday", "2026-03-06"),
        (FRIDAY, "last Friday", "2026-03-06"),
        (FRIDAY, "next Friday", "2026-03-20"),
        (SATURDAY, "next Friday", "2026-03-20"),
        (WEDNESDAY, "next Monday", "2026-03-16"),
        (WEDNESDAY, "this Friday", "2026-03-13"),
        (WEDNESDAY, "this coming Sunday", "2026-03-15"),
        (SATURDAY, "this past Friday", "2026-03-13"),
        (WEDNESDAY, "by Friday", "2026-03-13"),
        (WEDNESDAY, "due Fri.", "2026-03-13"),
        (WEDNESDAY, "We'll meet on Friday", "2026-03-13"),
        (WEDNESDAY, "The call is scheduled for Monday", "2026-03-16"),
        (WEDNESDAY, "it has failed since Monday", "2026-03-09"),
        (WEDNESDAY, "Friday next week", "2026-03-20"),
        (WEDNESDAY, "last week on Tuesday", "2026-03-03"),
        # Other languages
        (WEDNESDAY, "Das habe ich gestern gemacht", "2026-03-10"),
        (WEDNESDAY, "bis morgen", "2026-03-12"),
        (WEDNESDAY, "vorgestern", "2026-03-09"),
        (WEDNESDAY, "vor drei Tagen", "2026-03-08"),
        (WEDNESDAY, "vor einem Jahr", "2025"),
        (WEDNESDAY, "hier soir", "2026-03-10"),
        (WEDNESDAY, "aujourd\u2019hui", "2026-03-11"),
        (WEDNESDAY, "il y a deux semaines", "2026-02-25"),
        (WEDNESDAY, "ayer fui a Madrid", "2026-03-10"),
        (WEDNESDAY, "pasado mañana", "2026-03-13"),
        (WEDNESDAY, "hace un mes", "2026-02"),
    ],
)
def test_what_is_said_of_a_day_is_resolved_against_the_day_it_is_said(day: str, text: str, expected: str) -> None:
    """S0.29: a closed grammar, anchored at the message's time."""
    assert spoken(day, text) == expected


@pytest.mark.parametrize(
    ("day", "text"),
    [
        # Two readings
        (WEDNESDAY, "next Friday"),
        (WEDNESDAY, "last Monday"),
        (SATURDAY, "last Friday"),
        (SUNDAY, "next Monday"),
        (FRIDAY, "this Monday"),
        (FRIDAY, "by Friday"),
        (WEDNESDAY, "on Friday"),
        (WEDNESDAY, "We met on Friday"),
        (WEDNESDAY, "We had to be done by Friday"),
        (WEDNESDAY, "next weekend"),
        (SUNDAY, "last week"),
        (SUNDAY, "Friday next week"),
        ("2026-02-10", "next March"),
        ("2026-05-02", "last March"),
        (WEDNESDAY, "in October"),
        (WEDNESDAY, "March 3-5, or later in August 9"),
        (WEDNESDAY, "on October 3"),
        (WEDNESDAY, "on May 12"),
        (WEDNESDAY, "in June"),
        (WEDNESDAY, "We met in April"),
        (WEDNESDAY, "by the beginning of the month"),
        (WEDNESDAY, "It was ready by the end of the month"),
        (WEDNESDAY, "The wedding was on August 8"),
        (WEDNESDAY, "on the 20th"),
        (WEDNESDAY, "the 15th"),
        ("2026-03-15", "by the 15th"),
        (WEDNESDAY, "03/04/2026"),
        (WEDNESDAY, "03.04.2026"),
        (WEDNESDAY, "the last month"),
        (WEDNESDAY, "over the next year"),
        # How long, how often, how much
        (WEDNESDAY, "it took 3 days"),
        (WEDNESDAY, "We shipped it in two weeks"),
        (WEDNESDAY, "It can be built in 3 days"),
        (WEDNESDAY, "three interviews in a week"),
        (WEDNESDAY, "the first rain in 3 months"),
        (WEDNESDAY, "365 days in a year"),
        (WEDNESDAY, "every last Friday of the month"),
        (WEDNESDAY, "a 3 day trip"),
        # Not exactly
        (WEDNESDAY, "about two weeks ago"),
        (WEDNESDAY, "two or three days ago"),
        (WEDNESDAY, "2-3 days ago"),
        (WEDNESDAY, "half a year ago"),
        (WEDNESDAY, "2 years and 3 months ago"),
        (WEDNESDAY, "a few days ago"),
        (WEDNESDAY, "in a week or two"),
        (WEDNESDAY, "a week ago Friday"),
        (WEDNESDAY, "recently"),
        (WEDNESDAY, "soon"),
        # Other words
        (WEDNESDAY, "you may 3 times retry"),
        (WEDNESDAY, "it may 12 or may not"),
        (WEDNESDAY, "May 3 people join?"),
        (WEDNESDAY, "we march 3 miles"),
        (WEDNESDAY, "on march for hours"),
        (WEDNESDAY, "who is next may answer"),
        (WEDNESDAY, "give me a second"),
        (WEDNESDAY, "I am in two minds"),
        (WEDNESDAY, "in two steps"),
        (WEDNESDAY, "in her Sunday best"),
        (WEDNESDAY, "we will sit on sat 3"),
        (WEDNESDAY, "write it in dec and hex"),
        (WEDNESDAY, "the book by April"),
        (WEDNESDAY, "by June we mean my sister"),
        (WEDNESDAY, "it feels like yesterday"),
        (WEDNESDAY, "I read Film Studies Today"),
        (WEDNESDAY, "the 21st century"),
        (WEDNESDAY, "for the 3rd time"),
        (WEDNESDAY, "good morning"),
        (WEDNESDAY, "guten morgen"),
        (WEDNESDAY, "Herr Morgen kommt"),
        (WEDNESDAY, "hier ist die Datei"),
        (WEDNESDAY, "por la mañana"),
        # Numbers that are no dates
        (WEDNESDAY, "version 2.0.1"),
        (WEDNESDAY, "v2026.04.02-rc1"),
        (WEDNESDAY, "10.12.2026.1"),
        (WEDNESDAY, "listens on port 2024"),
        (WEDNESDAY, "in 2024 lines"),
        (WEDNESDAY, "in 2048 bytes"),
        (WEDNESDAY, "at 12:30"),
        (WEDNESDAY, "the 2010-11 season"),
        (WEDNESDAY, "2026-13-01"),
        (WEDNESDAY, "2026-02-30"),
        (WEDNESDAY, "February 30, 2026"),
        (WEDNESDAY, "Friday, April 2, 2026"),
        (WEDNESDAY, "1969-12-31"),
        (WEDNESDAY, "FY 2026-Q1 and fiscal Q3 2026"),
        (WEDNESDAY, "9999 years ago"),
        # Parts of something else
        (WEDNESDAY, "logs/2026-04-02/app.log"),
        (WEDNESDAY, "backup-2026-04-02.tar"),
        (WEDNESDAY, "gpt-4o-2024-08-06"),
        (WEDNESDAY, "--since=yesterday"),
        (WEDNESDAY, "run `git log --since yesterday` again"),
        (WEDNESDAY, "today.md"),
        (WEDNESDAY, "call tomorrow() first"),
        (WEDNESDAY, "https://example.org/2026/04/02"),
        (WEDNESDAY, "next_friday"),
        (WEDNESDAY, ""),
    ],
)
def test_what_may_mean_two_things_or_no_date_at_all_is_left_alone(day: str, text: str) -> None:
    """S0.29: never guessed."""
    assert spoken(day, text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I came back yesterday and leave again next month", "2026-03-10"),
        ("Today I booked the flight for 2026-05-02", "2026-05-02"),
        ("today, as I said today", "2026-03-11"),
        ("Not next Friday but tomorrow", "2026-03-12"),
    ],
)
def test_of_several_dates_the_first_that_is_not_today_counts(text: str, expected: str) -> None:
    assert spoken(WEDNESDAY, text) == expected


@pytest.mark.parametrize(
    ("at", "utc_offset", "expected"),
    [
        ("2026-03-10T22:30:00.000Z", 120, "2026-03-10"),  # 00:30 on the 11th
        ("2026-03-10T22:30:00.000Z", None, "2026-03-09"),
        ("2026-03-11T03:00:00.000Z", -300, "2026-03-09"),  # 22:00 on the 10th
        ("2026-03-11T00:30:00.000", None, "2026-03-10"),
        ("2026-03-11T00:30:00.000", -300, "2026-03-10"),  # the wall clock's already
        ("9999-12-31T23:59:00.000Z", 120, "9999-12-30"),
        (None, 120, None),
    ],
)
def test_a_day_is_that_of_the_speakers_calendar(at: str | None, utc_offset: int | None, expected: str | None) -> None:
    """S0.29, F70: in the message's zone; where only UTC is known, UTC's."""
    assert spoken_date("it broke yesterday", at=at, utc_offset=utc_offset) == expected


@given(DAYS, st.integers(0, 9999), st.sampled_from(["day", "week"]))
def test_so_many_days_ago_is_that_many_days_before(day: date, count: int, unit: str) -> None:
    """S0.29."""
    text = f"{count} {unit}{'' if count == 1 else 's'} ago"
    ago = day.toordinal() - count * (7 if unit == "week" else 1)
    expected = date.fromordinal(ago).isoformat() if ago >= date(1970, 1, 1).toordinal() else None
    assert spoken(day.isoformat(), text) == expected


@given(DAYS, st.sampled_from(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]))
def test_a_weekday_is_one_and_lies_on_the_right_side(day: date, name: str) -> None:
    for words, least, most in ((f"last {name}", -13, -1), (f"this {name}", 0, 6), (f"next {name}", 1, 13)):
        if found := spoken(day.isoformat(), words):
            resolved = date.fromisoformat(found)
            assert f"{resolved:%A}" == name
            assert least <= (resolved - day).days <= most


WORDS = st.lists(
    st.sampled_from(
        "the last next this in on by since until end of month week year Friday Mon March May may 3 15th 2026"
        " 2024-02-29 2026-04 03/04/2026 a couple of two days ago from now tomorrow Yesterday morgen vor hace il y a Q3"
        " EOM will was at day before after early , . ; ( ' \u2019 \u0130 \u017f \u212a ` - 9999 0 years' time".split()
    ),
    max_size=12,
).map(" ".join)


@given(st.one_of(WORDS, texts, st.text()), st.none() | DAYS, st.none() | st.integers(-1440, 1440))
@example("in 9999 years", date(9999, 12, 31), 1440)
def test_any_text_gives_a_valid_date_or_none(text: str, day: date | None, utc_offset: int | None) -> None:
    """S0.29, T26: whatever is said, whenever; digits are ASCII's."""
    found = spoken_date(text, at=f"{day}T23:59:00.000Z" if day else None, utc_offset=utc_offset)
    if found is not None:
        assert SPELLED.fullmatch(found)
        for end in found.split("/"):
            date.fromisoformat(f"{end}-01-01"[:10])
            assert 1970 <= int(end[:4]) <= 9999
        assert found.split("/") == sorted(found.split("/"))


@given(WORDS, DAYS)
def test_what_is_said_around_an_expression_changes_nothing(text: str, day: date) -> None:
    """Sentences without a date, before and after."""
    assert spoken(day.isoformat(), f"Thanks a lot. {text} . The rest is fine.") == spoken(day.isoformat(), text)


@given(st.integers(86_400, 4_000_000_000), st.integers(-14 * 60, 14 * 60))
def test_a_zone_and_its_wall_clock_give_the_same_day(seconds: int, utc_offset: int) -> None:
    """F70: however the time is written down."""
    local = datetime.fromtimestamp(seconds, timezone(timedelta(minutes=utc_offset)))
    with_zone = spoken_date("tomorrow", at=instant(local.isoformat()), utc_offset=utc_offset)
    assert with_zone == spoken_date("tomorrow", at=instant(local.replace(tzinfo=None).isoformat()))


@given(st.text(alphabet="\u0130\u0131\u017f\u00df\u1e9e\u01f0\u0390\ufb03\u212a\u03a3\u2019`a ", max_size=30))
@example("\u0130" * 30)
def test_letters_that_are_longer_in_small_ones_move_no_capital_to_another_place(before: str) -> None:
    """Where a word begins with a capital is looked up in the text as it was said."""
    assert spoken_date(f"{before} ` . May 2024: the first release", at=None) == "2024-05"
    assert spoken_date(f"{before} ` . may 2024: the first release", at=None) is None
