"""Looking around, to drafts: a turn's reads, its searches with what they found, and what it asked of connectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from omcli.memory.counts import counted, first_of
from omcli.memory.observation import Draft, Type
from omcli.memory.patterns import lazily
from omcli.memory.text import one_line
from omcli.observers.rules.drafting import Paths, draft_of
from omcli.observers.rules.tools import ToolEvent, ToolKind, subject
from omcli.observers.rules.wording import cut, first_lines

_COUNT_LINE = lazily(r"^(?:Found )?(\d{1,9}) (files?|match(?:es)?|results?|lines?)\b", re.IGNORECASE)
_NAMES_FILES = frozenset("glob ls find list_dir list_directory list_files file_search".split())
_NOTHING = lazily(r"^(?:no (?:files|matches|results)|\(no output\)|nothing found)", re.IGNORECASE)
_FIRST_MATCHES = 3
_MATCH_CHARACTERS = 200


def looks(events: Sequence[ToolEvent], near: Paths) -> Iterator[Draft]:
    """At most one row each for what was read, searched and asked; `events` are those that worked."""
    read = [(near(subject(event)), event) for event in events if event.kind is ToolKind.READ and subject(event)]
    if read:
        names = list(dict.fromkeys(name for name, _ in read))
        yield draft_of(
            (event for _, event in read), f"Read {first_of(names, ', ')}", Type.FILE_READ, 3, metadata={"paths": names}
        )
    searched = [event for event in events if event.kind is ToolKind.SEARCH and subject(event)]
    if searched:
        yield _searches(searched)
    remote = [event for event in events if event.kind is ToolKind.REMOTE and event.looks_only]
    if remote:
        names = list(dict.fromkeys(event.name for event in remote))
        yield draft_of(remote, f"Used {first_of(names, ', ')}", Type.TOOL_USED, 3)


def _searches(events: Sequence[ToolEvent]) -> Draft:
    """The searches of a turn: of the same search twice, what it found last."""
    found: dict[str, tuple[str, dict[str, object]]] = {}
    for event in events:
        pattern, (number, noun, matches) = one_line(subject(event)), _found(event)
        first = [cut(line, _MATCH_CHARACTERS) for line in matches[:_FIRST_MATCHES]]
        told = {"pattern": pattern, "matches": number, "unit": noun, "first_matches": first}
        found[pattern] = (f'"{pattern}" → {counted(number)} {noun}', told)
    lines = [line for line, _ in found.values()]
    return draft_of(
        events,
        f"Searched {first_of(lines, '; ')}",
        Type.SEARCH_PERFORMED,
        3,
        metadata={"searches": [told for _, told in found.values()]},
    )


def _found(event: ToolEvent) -> tuple[int, str, list[str]]:
    """How many files, matches or results, and the lines that hold them.

    The number is what the tool says it found, else that of the lines it printed.
    """
    lines = first_lines(event.output, None)
    if lines and (told := _COUNT_LINE.match(lines[0])):
        return int(told[1]), told[2].lower(), lines[1:]
    if not lines or _NOTHING.match(lines[0]):
        lines = []
    one, several = ("file", "files") if event.name.lower() in _NAMES_FILES else ("match", "matches")
    return len(lines), one if len(lines) == 1 else several, lines
