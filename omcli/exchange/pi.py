"""pi's format: a `Date:` header for each day, then rows such as `- [!] HH:MM text`. Details are indented."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from omcli.base import lazily
from omcli.base.record import replace
from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, escape_tag, lines_of, outline, unescape_tag
from omcli.memory.notation import BRACKETS, EMOJI, Notation, PrintedRow
from omcli.text.calendar import MONTHS

_DAY = lazily(r"[*# ]*Date:[* ]*(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[* ]*")
_SPOKEN_DAY = lazily(r"[*# ]*Date:[* ]*(?P<month>[A-Za-z]{3,9})\.? (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})[* ]*")
_ROW = lazily(r"(?P<indent>[ \t]*)[-*] (?P<rest>.*)", re.DOTALL)
_TIME = lazily(r"\(?(?P<time>[0-2]?[0-9]:[0-5][0-9])\)? (?P<words>.*)", re.DOTALL)
_READ = (BRACKETS, EMOJI)
INDENT = "  "
_TAB = "    "
_ELEMENT = "summary"


def render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield the text of groups, with a header whenever the day changes."""
    return days(chain.from_iterable(nested(group.entries) for group in groups))


def days(rows: Iterable[tuple[int, GroupRow]], *, write: Callable[[PrintedRow], str] | None = None) -> Iterator[str]:
    """Yield rows with their depths as text, with a header whenever the day changes, and a blank line above each header
    but the first. `write` returns a row's line as `row` does.
    """
    day = ""
    for depth, entry in rows:
        if entry.line.dated[:10] != day:
            yield f"{day and chr(10)}{header(entry.line)}"
            day = entry.line.dated[:10]
        yield f"{INDENT * depth}{(write or row)(entry.line)}"


def header(line: PrintedRow) -> str:
    return f"Date: {line.dated[:10]}\n"


def row(line: PrintedRow) -> str:
    """Return a row as a line that ends with a line break. pi puts summaries into a `summary` element, which no row may
    close.
    """
    mark = BRACKETS.mark(line)
    return f"- {mark} {line.dated[11:]} {escape_tag(BRACKETS.words(line, mark), _ELEMENT)}\n"


def nested(entries: Sequence[GroupRow]) -> Iterator[tuple[int, GroupRow]]:
    """Yield rows with their depths, details after their row. A detail is nested only if it has the same day as its row.

    Otherwise the `Date:` header of its day would separate it from the row.
    """
    same = [
        entry
        if entry.under is None or entries[entry.under].line.dated[:10] == entry.line.dated[:10]
        else replace(entry, under=None)
        for entry in entries
    ]
    return outline(same)


def parse(text: str) -> Iterator[Group | NotARow]:
    """Parse all rows into one group.

    A row without a time gets the time of the previous row on that day, or 00:00 if it is the first.
    """
    day, clock = "", "00:00"
    entries: list[GroupRow] = []
    above: list[tuple[int, int]] = []  # indent and index of rows that may have details
    for written in lines_of(text):
        if header := day_in(written):
            day, clock, above = header, "00:00", []
            continue
        found = _ROW.fullmatch(written)
        if found is None or not day:
            if written.strip():
                yield NotARow(reason="no row" if found is None else "no date")
            continue
        indent = len(found["indent"].replace("\t", _TAB))
        above = [(other, place) for other, place in above if other < indent]
        notation, mark, rest = _split_mark(found["rest"])
        timed = _TIME.fullmatch(rest)
        clock = timed["time"].rjust(5, "0") if timed else clock
        words = unescape_tag(timed["words"] if timed else rest, _ELEMENT)
        line = notation.line(words, mark=mark, dated=f"{day} {clock}")
        under = above[-1][1] if above else None
        above.append((indent, len(entries)))
        entries.append(GroupRow(line=line if mark else replace(line, mark=""), under=under))
    if entries:
        yield Group(entries=tuple(entries))


def _split_mark(written: str) -> tuple[Notation, str | None, str]:
    for notation in _READ:
        found = notation.undated.fullmatch(written)
        if found and found["mark"]:
            return notation, found["mark"], found["said"]
    return BRACKETS, None, written


def day_in(written: str) -> str | None:
    """Return the date in a `Date:` header as `YYYY-MM-DD`, or None for any other line."""
    if found := _DAY.fullmatch(written):
        return f"{found['year']}-{found['month']}-{found['day']}"
    found = _SPOKEN_DAY.fullmatch(written)
    month = MONTHS.get(found["month"].lower()) if found else None
    return f"{found['year']}-{month:02}-{int(found['day']):02}" if found and month else None


EXCHANGES = {"pi": Exchange(name="pi", counter="chars-4", render=render, parse=parse)}
