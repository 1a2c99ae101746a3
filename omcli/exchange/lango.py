"""Lango's memory as Markdown: a summary of what was reflected on, then what is recent, a paragraph for every batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from omcli.exchange.groups import Entry, Exchange, Group, Unread, lines_of
from omcli.memory.notation import NONE
from omcli.memory.observation import Kind

_TITLE = "## Conversation Memory"
_HEADINGS = {"### Summary": Kind.REFLECTION, "### Recent": Kind.OBSERVATION}
_GUARDED = (*_HEADINGS, _TITLE, "")
_ESCAPE = "\\"


def render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Paragraphs of a line for every row; priorities and dates are not written."""
    parts: dict[str, list[Group]] = {heading: [] for heading in _HEADINGS}
    for group in groups:
        parts["### Summary" if group.kind is Kind.REFLECTION else "### Recent"].append(group)
    if any(parts.values()):
        yield f"{_TITLE}\n"
    for heading, held in parts.items():
        if held:
            yield f"\n{heading}\n"
        for group in held:
            yield "".join(["\n", *(f"{written(entry)}\n" for entry in group.entries)])


def written(entry: Entry) -> str:
    """A row's line; one that looks like a heading, or like no line at all, begins with a backslash."""
    words = NONE.words(entry.line, "")
    return _ESCAPE + words if words.strip().lstrip(_ESCAPE) in _GUARDED else words


def parse(text: str) -> Iterator[Group | Unread]:
    """Paragraph by paragraph, a row for every line."""
    kind = Kind.OBSERVATION
    entries: list[Entry] = []
    for line in (*lines_of(text), ""):
        heading = line.strip()
        if heading in _GUARDED:
            if entries:
                yield Group(entries=tuple(entries), kind=kind)
            kind, entries = _HEADINGS.get(heading, kind), []
        else:
            entries.append(row(line))


def row(line: str) -> Entry:
    """A row that is written without date and priority."""
    is_guarded = line.startswith(_ESCAPE) and line.strip().lstrip(_ESCAPE) in _GUARDED
    return Entry(line=NONE.line(line[1:] if is_guarded else line, mark="", dated=""))


EXCHANGES = {"lango": Exchange(name="lango", counter="chars-4-cjk-2", render=render, parse=parse)}
