"""Lines of files and outputs that name what the work comes back to, kept as they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import fsum, sqrt

from omcli.memory.message import KeptMessage, Role
from omcli.memory.observation import Draft, Type
from omcli.memory.patterns import lazily
from omcli.memory.record import positional_record
from omcli.memory.text import one_line
from omcli.observers.rules import shell
from omcli.observers.rules.drafting import Paths, draft_of
from omcli.observers.rules.edits import Change
from omcli.observers.rules.tools import ToolEvent, ToolKind, subject
from omcli.observers.rules.wording import cut

_LINES = 4
"""Lines in an excerpt."""
_SHORTEST, _LONGEST = 10, 200
"""Characters of a line that is looked at: shorter ones say nothing, longer ones are data."""
_LINE_CHARACTERS = 140
_MOST_LINES = 2000
"""Lines of one output that are looked at."""
_READ_CHARACTERS = 20_000
"""Characters of a message in which names are counted."""
_RESULT_SHARE = 0.4
"""What a name in an output counts beside one that somebody wrote: outputs name much that nobody asked for."""
_COMES_BACK = 1.5
"""What a name must count for to be worth a line: written twice, or written once and shown twice."""
_SUBJECT_CHARACTERS = 60

_WORD = lazily(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_IDENTIFIER = lazily(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
# A name alone says nothing: it is an entry of a list of exports, of fields, of arguments.
_SAYS_SOMETHING = lazily(r"\w[^\w.:/-]+\w|\w(?:: |::)\w|[/.:-]\w+[/.:-]\w")
# Agents number the lines of a file: `   12→`, `12:`, `src/a.py:12:`.
_NUMBERED = lazily(r"\s*\d{1,6}(?:→|\t|: ?|- ?)")


@positional_record
class Interest:
    """How often the messages of a batch come back to each identifier."""

    counts: Mapping[str, float]

    @classmethod
    def of(cls, messages: Iterable[KeptMessage]) -> Interest:
        """Counts each identifier once per message that names it."""
        said, shown = Counter[str](), Counter[str]()
        for kept in messages:
            named = shown if kept.message.role is Role.RESULT else said
            named.update(set(_WORD.findall(kept.message.text[:_READ_CHARACTERS])))
        # Most words come once, and need not be looked at.
        often = {word for word, times in shown.items() if times * _RESULT_SHARE >= _COMES_BACK}
        counts = {word: said[word] + _RESULT_SHARE * shown[word] for word in often.union(said)}
        return cls(
            {word: sqrt(count) for word, count in counts.items() if count >= _COMES_BACK and _is_identifier(word)}
        )

    def lines(self, lines: Sequence[str]) -> list[str]:
        """The lines, in their order, that together name most of what the batch comes back to, per character."""
        named = ((place, self.counts.keys() & _WORD.findall(line)) for place, line in enumerate(lines))
        ahead = [(-self._worth(names, lines[place]), place, names) for place, names in named if names]
        heapify(ahead)
        kept: list[int] = []
        told: set[str] = set()
        while ahead and len(kept) < _LINES:
            _, place, names = heappop(ahead)
            left = names - told
            if len(left) == len(names):
                kept.append(place)
                told |= names
            elif left:  # worth less by now: it waits for its turn
                heappush(ahead, (-self._worth(left, lines[place]), place, left))
        return [cut(lines[place], _LINE_CHARACTERS) for place in sorted(kept)]

    def _worth(self, names: Iterable[str], line: str) -> float:
        return fsum(map(self.counts.__getitem__, names)) / (len(line) + 16)


def _is_identifier(word: str) -> bool:
    """Whether a word looks like an identifier: camelCase, PascalCase of two parts, snake_case."""
    return not (word.isalpha() and word.islower()) and _IDENTIFIER.search(word) is not None


def new_lines(changes: Iterable[Change]) -> list[str]:
    """The lines that changes of a file add to it, each once."""
    before = {line for change in changes for line in _lines(change.old)}
    return list(dict.fromkeys(line for change in changes for line in _lines(change.new) if line not in before))


def excerpts(events: Sequence[ToolEvent], interest: Interest, near: Paths) -> Iterator[Draft]:
    """A row for each output that was read, of its telling lines; `events` worked."""
    told: set[str] = set()
    for event in reversed(events):  # what was seen last holds: of the same lines twice only the later are told
        if event.kind not in (ToolKind.READ, ToolKind.SEARCH, ToolKind.RUN):
            continue
        command = shell.command_of(event.arguments, event.raw) if event.kind is ToolKind.RUN else ""
        where = f"`{shell.shown(command, _SUBJECT_CHARACTERS)}`" if command else near(subject(event))
        lines = [line for line in _lines(event.output) if _SAYS_SOMETHING.search(line)]
        picked = [line for line in interest.lines(lines) if line not in told]
        told.update(picked)
        if where and picked:
            yield draft_of([event], f"In {where}: {' · '.join(picked)}", Type.EXCERPT, 3)


def _lines(text: str) -> list[str]:
    numbered = ((line, _NUMBERED.match(line)) for line in text.splitlines()[:_MOST_LINES])
    lines = (one_line(line[number.end() :] if number else line) for line, number in numbered)
    return [line for line in lines if _SHORTEST <= len(line) <= _LONGEST]
