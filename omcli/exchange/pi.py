"""pi's format: a `Date:` header for each day, then rows such as `- [!] HH:MM text`. Details are indented."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from omcli.base import lazily
from omcli.base.record import replace
from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, lines_of, outline
from omcli.memory.notation import BRACKETS, EMOJI, Notation
from omcli.text.calendar import MONTHS

_DAY = lazily(r"[*# ]*Date:[* ]*(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[* ]*")
_SPOKEN_DAY = lazily(r"[*# ]*Date:[* ]*(?P<month>[A-Za-z]{3,9})\.? (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})[* ]*")
_ROW = lazily(r"(?P<indent>[ \t]*)[-*] (?P<rest>.*)", re.DOTALL)
_TIME = lazily(r"\(?(?P<time>[0-2]?[0-9]:[0-5][0-9])\)? (?P<words>.*)", re.DOTALL)
_READ = (BRACKETS, EMOJI)
_INDENT = "  "
_TAB = "    "


def render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield the text of groups, with a header whenever the day changes."""
    day = ""
    for group in groups:
        for depth, entry in _by_day(group):
            if entry.line.dated[:10] != day:
                yield f"{day and chr(10)}Date: {entry.line.dated[:10]}\n"
                day = entry.line.dated[:10]
            mark = BRACKETS.mark(entry.line)
            yield f"{_INDENT * depth}- {mark} {entry.line.dated[11:]} {BRACKETS.words(entry.line, mark)}\n"


def _by_day(group: Group) -> Iterator[tuple[int, GroupRow]]:
    """Return the outline of a group. A detail is nested only if it has the same day as its row.

    Otherwise the `Date:` header of its day would separate it from the row.
    """
    entries = group.entries
    same = [
        entry
        if entry.under is None or entries[entry.under].line.dated[:10] == entry.line.dated[:10]
        else replace(entry, under=None)
        for entry in entries
    ]
    return outline(replace(group, entries=tuple(same)))


def parse(text: str) -> Iterator[Group | NotARow]:
    """Parse all rows into one group.

    A row without a time gets the time of the previous row on that day, or 00:00 if it is the first.
    """
    day, clock = "", "00:00"
    entries: list[GroupRow] = []
    above: list[tuple[int, int]] = []  # indent and index of rows that may have details
    for written in lines_of(text):
        if header := _date(written):
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
        line = notation.line(timed["words"] if timed else rest, mark=mark, dated=f"{day} {clock}")
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


def _date(written: str) -> str | None:
    """Return the date in a header as `YYYY-MM-DD`."""
    if found := _DAY.fullmatch(written):
        return f"{found['year']}-{found['month']}-{found['day']}"
    found = _SPOKEN_DAY.fullmatch(written)
    month = MONTHS.get(found["month"].lower()) if found else None
    return f"{found['year']}-{month:02}-{int(found['day']):02}" if found and month else None


EXCHANGES = {"pi": Exchange(name="pi", counter="chars-4", render=render, parse=parse)}
