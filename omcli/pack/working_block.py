"""The working-memory block: what a session is at, what it changed, what failed, what was decided; at most 800 tokens.

It is made of all rows of a session that were observed or noted, of those as well that a reflection superseded or that
were dropped: folding and pruning leave it as it was, to the byte. Only a row that another observation or a note of the
session took the place of gives way to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from omcli.base.record import field, mutable_record, record
from omcli.memory.notation import WORKING_HEADINGS, WORKING_TITLE
from omcli.memory.observation import Observation
from omcli.memory.tokens import TokenCounter
from omcli.pack.working_lines import BlockLine, sections_of

CAP = 800
"""Tokens of a block at most, whatever its budget."""

_MAIN = WORKING_HEADINGS[:4]
_ASSURED = 4
"""Lines that each of the four main sections is given before any section is given more."""
_MISSES = 30
"""Lines in succession that do not fit: the block is full then, and the rest of a long session is not counted."""


@record
class Section:
    """A heading, its lines, the most important first, and how many more found no room."""

    heading: str
    entries: tuple[BlockLine, ...]
    more: int = 0


@record
class WorkingBlock:
    """The sections that have lines, and the text that holds them."""

    sections: tuple[Section, ...]
    more: int
    """Lines of sections of which none found room."""
    budget: int
    tokens: int
    """Of `printed`: never above `budget`, and `budget` is never above CAP."""
    counter: str
    printed: str
    """Markdown, line end included; empty where there is nothing to say, or no room for any of it."""


def working_block(rows: Iterable[Observation], *, cwd: str | None, budget: int, counter: TokenCounter) -> WorkingBlock:
    """The block of a session, of its rows in the order they were added, hidden ones included. `cwd` shortens paths."""
    draft = _Draft(sections=sections_of(rows, cwd=cwd), budget=min(budget, CAP), counter=counter)
    draft.fill()
    draft.fill()  # lines were counted one by one; together they are less, and what that leaves is used as well
    sections, more = draft.shown()
    printed = _printed(sections, more)
    return WorkingBlock(
        sections=tuple(sections),
        more=more,
        budget=draft.budget,
        tokens=counter.text(printed) if printed else 0,
        counter=counter.name,
        printed=printed,
    )


def document(block: WorkingBlock, *, session: str | None) -> dict[str, object]:
    """The block as JSON: the same lines, with the ids of their rows; `tokens` are those of the lines."""
    return {
        "session": session,
        "counter": block.counter,
        "budget": block.budget,
        "tokens": block.tokens,
        "sections": [
            {
                "heading": section.heading,
                "lines": [{"text": entry.text, "rows": list(entry.rows)} for entry in section.entries],
                "more": section.more,
            }
            for section in block.sections
        ],
        "more": block.more,
    }


@mutable_record
class _Draft:
    """A block in the making: which lines are chosen, in the order in which they were."""

    sections: Mapping[str, Sequence[BlockLine]]
    budget: int
    counter: TokenCounter
    chosen: list[tuple[str, int]] = field(default_factory=list)

    def fill(self) -> None:
        """Chooses what fits into what is left; then gives up the last chosen while it is too much after all.

        Below a section that has to leave out lines, no section has more than what is assured to it.
        """
        chosen, shown = set(self.chosen), {heading for heading, _ in self.chosen}
        room, full, misses = self.budget - self._tokens(), len(WORKING_HEADINGS), 0
        for heading, place in self._order():
            rank = WORKING_HEADINGS.index(heading)
            if (heading, place) in chosen:
                continue
            if rank > full and not _is_assured(heading, place):
                break
            line = self.counter.text(_line(self.sections[heading][place])) + 1
            cost = line + (0 if heading in shown else self.counter.text(_heading(heading)) + 2)
            if cost <= room:
                self.chosen.append((heading, place))
                shown.add(heading)
                room, misses = room - cost, 0
            elif misses == _MISSES:
                break
            else:
                full, misses = min(full, rank), misses + 1
        while self.chosen and self._tokens() > self.budget:
            self.chosen.pop()

    def shown(self) -> tuple[list[Section], int]:
        """The sections as they stand, and how many lines there are in those that are left out."""
        chosen = sorted(self.chosen)
        sections, more = [], 0
        for heading, entries in self.sections.items():
            kept = tuple(entries[place] for section, place in chosen if section == heading)
            if kept:
                sections.append(Section(heading=heading, entries=kept, more=len(entries) - len(kept)))
            else:
                more += len(entries)
        return sections, more

    def _order(self) -> Iterator[tuple[str, int]]:
        """The lines in the order in which they are given room: the first of each main section before all others."""
        lines = [(heading, place) for heading, entries in self.sections.items() for place in range(len(entries))]
        yield from (line for line in lines if _is_assured(*line))
        yield from (line for line in lines if not _is_assured(*line))

    def _tokens(self) -> int:
        printed = _printed(*self.shown())
        return self.counter.text(printed or f"{WORKING_TITLE}\n")


def _is_assured(heading: str, place: int) -> bool:
    return heading in _MAIN and place < _ASSURED


def _printed(sections: Sequence[Section], more: int) -> str:
    if not sections:
        return ""
    lines = [WORKING_TITLE]
    for section in sections:
        lines += ["", _heading(section.heading), *map(_line, section.entries)]
        if section.more:
            lines.append(_left_out(section.more))
    if more:
        lines += ["", _left_out(more)]
    return "".join(f"{line}\n" for line in lines)


def _heading(heading: str) -> str:
    return f"### {heading}"


def _line(entry: BlockLine) -> str:
    return f"- {entry.text}"


def _left_out(count: int) -> str:
    return f"… (+{count} more)"
