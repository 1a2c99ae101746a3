"""Rows of a session as the working-memory block takes them, and lines: rows about one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from omcli.base.record import mutable_record, record
from omcli.memory.observation import PINNED, Observation
from omcli.pack.cross_session import WEIGHTS

LINE_CHARACTERS = 300
"""A longer line is cut between words; `om show` prints the whole row."""


@record
class Fact:
    """A row, its place among the rows of the session, and whether another one settled it."""

    place: int
    row: Observation
    is_settled: bool

    def known(self, name: str) -> str:
        """What the metadata says, where it is a text."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        """What the metadata says, where it is a count."""
        value = self.row.metadata.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default

    def objects(self, name: str) -> list[Mapping[str, object]]:
        """What the metadata says, where it is a list of objects."""
        value = self.row.metadata.get(name)
        return [part for part in value if isinstance(part, dict)] if isinstance(value, (list, tuple)) else []


@mutable_record
class Line:
    """Rows about one thing, the latest last."""

    facts: list[Fact]
    text: str
    is_settled: bool = False

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Pinned lines first, then what is not settled, then by priority, then the newest."""
        last = self.facts[-1]
        return (PINNED not in last.row.tags, self.is_settled, -WEIGHTS[last.row.priority], -last.place)


def ranked(lines: Iterable[Line]) -> list[Line]:
    """Lines, the most important first."""
    return sorted(lines, key=lambda line: line.order)


def lines_of(facts: Iterable[Fact], belongs: Callable[[Fact], bool]) -> Iterator[Line]:
    """A line for each of these rows; the same words again are the same line."""
    lines: dict[str, Line] = {}
    for fact in facts:
        if belongs(fact):
            put(lines, fact.row.text, fact, fact.row.text)
    yield from lines.values()


def put(lines: dict[str, Line], key: str, fact: Fact, text: str) -> Line:
    """The line of a thing, with one more row about it: what that says is what holds now."""
    line = lines.setdefault(key, Line(facts=[], text=text))
    line.facts.append(fact)
    line.text, line.is_settled = text, fact.is_settled
    return line


def short(text: str, limit: int) -> str:
    """A text of at most `limit` characters, cut between words where it is longer."""
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit - 1)
    return f"{text[:end].rstrip()} …" if end > 0 else f"{text[: limit - 1]}…"
