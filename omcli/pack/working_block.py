"""The working-memory block: current task, changes, failures and decisions of a session, in at most 800 tokens.

It is made of all observed and noted rows of a session, including superseded and dropped ones: reflecting and pruning
leave it unchanged to the byte. Only a row that another observation or note of the session replaced is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import TokenCounter
from omcli.memory.notation import WORKING_HEADINGS, WORKING_TITLE
from omcli.memory.observation import Observation
from omcli.pack.working_lines import BlockLine, sections_of

CAP = 800
"""Largest number of tokens, even with a larger budget."""

_MAIN = WORKING_HEADINGS[:4]
_FIRST = 4
"""Lines reserved for each of the four main sections before any section gets more."""
_MISSES = 30
"""The block counts as full after this many successive lines that don't fit."""


@record
class Section:
    """A heading, its lines by importance, and the number of lines that did not fit."""

    heading: str
    entries: tuple[BlockLine, ...]
    more: int = 0


@record
class WorkingBlock:
    """The non-empty sections and the printed text."""

    sections: tuple[Section, ...]
    more: int
    """Number of lines in sections that were left out because none of their lines fit."""
    budget: int
    tokens: int
    """Tokens of `printed`: at most `budget`, which is at most CAP."""
    counter: str
    printed: str
    """Markdown, line end included; empty if there are no lines, or no room for any."""


def working_block(rows: Iterable[Observation], *, cwd: str | None, budget: int, counter: TokenCounter) -> WorkingBlock:
    """Build the block from a session's rows in the order they were added, hidden ones included. `cwd` shortens
    paths."""
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
    """Return the block as JSON: its lines with the ids of their rows; `tokens` are those of the lines."""
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
    """A block in progress, with the chosen lines in order of choice."""

    sections: Mapping[str, Sequence[BlockLine]]
    budget: int
    counter: TokenCounter
    chosen: list[tuple[str, int]] = field(default_factory=list)

    def fill(self) -> None:
        """Choose lines that fit into the rest of the budget, then drop the last ones if the total still exceeds it.

        After a section that has to omit lines, sections only get their reserved lines.
        """
        chosen, shown = set(self.chosen), {heading for heading, _ in self.chosen}
        room, full, misses = self.budget - self._tokens(), len(WORKING_HEADINGS), 0
        for heading, place in self._order():
            rank = WORKING_HEADINGS.index(heading)
            if (heading, place) in chosen:
                continue
            if rank > full and not _is_first(heading, place):
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
        """Return the sections so far, and the number of lines in omitted sections."""
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
        """Yield the lines in order of priority: the reserved lines of the main sections before all others."""
        lines = [(heading, place) for heading, entries in self.sections.items() for place in range(len(entries))]
        yield from (line for line in lines if _is_first(*line))
        yield from (line for line in lines if not _is_first(*line))

    def _tokens(self) -> int:
        printed = _printed(*self.shown())
        return self.counter.text(printed or f"{WORKING_TITLE}\n")


def _is_first(heading: str, place: int) -> bool:
    return heading in _MAIN and place < _FIRST


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
