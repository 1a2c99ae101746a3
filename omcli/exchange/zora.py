"""Zora's lines: `[2026-02-10 14:32] CRITICAL text`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from omcli.exchange.groups import Entry, Exchange, Group, Unread, lines_of
from omcli.memory.notation import BRACKETS, EMOJI, NONE, WORDS, Line

_READ = (WORDS, EMOJI, BRACKETS, NONE)
"""Notations that are tried one after another."""


def row(written: str) -> Line | None:
    """What a line says, or None where it begins with no date."""
    return next((read for notation in _READ if (read := notation.parse(written))), None)


def render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """A line for every row."""
    for group in groups:
        for entry in group.entries:
            yield f"{WORDS.render(entry.line)}\n"


def parse(text: str) -> Iterator[Group | Unread]:
    """All rows as one group: the lines do not tell more."""
    entries: list[Entry] = []
    for written in lines_of(text):
        read = row(written)
        if read is not None:
            entries.append(Entry(line=read))
        elif written.strip():
            yield Unread(reason="no row")
    if entries:
        yield Group(entries=tuple(entries))


EXCHANGES = {"zora": Exchange(name="zora", counter="chars-3.5-3", render=render, parse=parse)}
