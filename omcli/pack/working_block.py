"""The working-memory block: a session's current task, changes, failures and decisions in at most 800 tokens.

It is made from all observations and notes of a session, including superseded and dropped ones. So reflecting and
pruning do not change a single byte of it. Only rows replaced by another observation or note of the session are left
out, apart from failures that such a row resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from omcli.base.record import field, mutable_record, record
from omcli.memory.message import TokenCounter
from omcli.memory.notation import WORKING_HEADINGS, WORKING_TITLE
from omcli.memory.observation import Observation
from omcli.pack.working_changes import FactLine
from omcli.pack.working_lines import BlockLine, entry, sections_of

CAP = 800
"""Maximum number of tokens, even if the budget is larger."""

_MAIN = WORKING_HEADINGS[:4]
_FIRST = 4
"""Number of lines reserved for each of the four main sections before any section gets more."""
_MISSES = 30
"""The block counts as full once more than this many successive lines do not fit."""


@record
class Section:
    """A heading, its lines by importance, and the number of its lines that did not fit."""

    heading: str
    entries: tuple[BlockLine, ...]
    more: int = 0


@record
class WorkingBlock:
    """The sections of the block that contain lines, and its printed text."""

    sections: tuple[Section, ...]
    more: int
    """Total number of lines in the sections that were left out because none of their lines fit."""
    older: int
    """Number of older rows that the block was not made from, because the session is long."""
    budget: int
    tokens: int
    """Number of tokens in `printed`, never more than `budget`. The budget itself is at most `CAP`."""
    counter: str
    printed: str
    """Markdown that ends with a line break; empty if there are no lines, or none fits."""


def working_block(
    rows: Iterable[Observation], *, cwd: str | None, budget: int, counter: TokenCounter, older: int = 0
) -> WorkingBlock:
    """Build the working-memory block from all rows of a session, hidden ones too, in the order they were added.

    `older` is the number of older rows that are not in `rows` because the session is long. Paths below `cwd` are
    printed relative to it.
    """
    opened = _OpenBlock(sections=sections_of(rows, cwd=cwd), budget=min(budget, CAP), counter=counter, older=older)
    opened.fill()
    opened.fill()  # lines counted one by one have more tokens than together, so more of them may fit now
    sections, more = opened.shown()
    printed = _printed(sections, more, older)
    return WorkingBlock(
        sections=tuple(sections),
        more=more,
        older=older,
        budget=opened.budget,
        tokens=counter.text(printed) if printed else 0,
        counter=counter.name,
        printed=printed,
    )


def document(block: WorkingBlock, *, session: str | None) -> dict[str, object]:
    """Return the block as a JSON object. Each line has the ids of its rows; `tokens` counts the printed Markdown."""
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
        "older": block.older,
    }


@mutable_record
class _OpenBlock:
    """A block being filled. `chosen` holds the heading and index of each chosen line, in the order they were chosen."""

    sections: Mapping[str, Sequence[FactLine]]
    budget: int
    counter: TokenCounter
    older: int
    chosen: list[tuple[str, int]] = field(default_factory=list)
    entries: dict[tuple[str, int], BlockLine] = field(default_factory=dict)
    """Cache of printed lines. Only the few lines that may fit are prepared for printing."""

    def fill(self) -> None:
        """Add lines that fit into the rest of the budget.

        If the whole block exceeds the budget nevertheless, the lines added last are dropped. Once a section has had to
        omit a line, the sections after it get only their reserved lines.
        """
        chosen, shown = set(self.chosen), {heading for heading, _ in self.chosen}
        room, full, misses = self.budget - self._tokens(), len(WORKING_HEADINGS), 0
        for heading, place in self._order():
            rank = WORKING_HEADINGS.index(heading)
            if (heading, place) in chosen:
                continue
            if rank > full and not _is_first(heading, place):
                break
            line = self.counter.text(_line(self._entry(heading, place))) + 1
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
        """Return the sections that have chosen lines, and the total number of lines in the other sections."""
        chosen = sorted(self.chosen)
        sections, more = [], 0
        for heading, lines in self.sections.items():
            kept = tuple(self._entry(heading, place) for section, place in chosen if section == heading)
            if kept:
                sections.append(Section(heading=heading, entries=kept, more=len(lines) - len(kept)))
            else:
                more += len(lines)
        return sections, more

    def _entry(self, heading: str, place: int) -> BlockLine:
        if (heading, place) not in self.entries:
            self.entries[heading, place] = entry(self.sections[heading][place])
        return self.entries[heading, place]

    def _order(self) -> Iterator[tuple[str, int]]:
        """Yield the lines by priority: first the reserved lines of the main sections, then all others."""
        lines = [(heading, place) for heading, some in self.sections.items() for place in range(len(some))]
        yield from (line for line in lines if _is_first(*line))
        yield from (line for line in lines if not _is_first(*line))

    def _tokens(self) -> int:
        printed = _printed(*self.shown(), self.older)
        return self.counter.text(printed or f"{WORKING_TITLE}\n")


def _is_first(heading: str, place: int) -> bool:
    return heading in _MAIN and place < _FIRST


def _printed(sections: Sequence[Section], more: int, older: int) -> str:
    if not sections:
        return ""
    lines = [WORKING_TITLE]
    for section in sections:
        lines += ["", _heading(section.heading), *map(_line, section.entries)]
        if section.more:
            lines.append(_left_out(section.more))
    if more:
        lines += ["", _left_out(more)]
    if older:
        lines += ["", f"… (+{older} older rows)"]
    return "".join(f"{line}\n" for line in lines)


def _heading(heading: str) -> str:
    return f"### {heading}"


def _line(entry: BlockLine) -> str:
    return f"- {entry.text}"


def _left_out(count: int) -> str:
    return f"… (+{count} more)"
