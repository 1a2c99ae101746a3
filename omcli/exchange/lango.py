"""Lango's formats: Markdown paragraphs, or JSON Lines with the message indexes of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from omcli.exchange.groups import NOWHERE, Exchange, Group, GroupRow, MessageRange, NotARow, lines_of, objects_of
from omcli.memory.notation import NONE
from omcli.memory.observation import Kind
from omcli.text.clean import json_line
from omcli.text.instants import instant

_TITLE = "## Conversation Memory"
_HEADINGS = {"### Summary": Kind.REFLECTION, "### Recent": Kind.OBSERVATION}
_GUARDED = (*_HEADINGS, _TITLE, "")
_ESCAPE = "\\"


def _render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield one paragraph per group and one line per row, without priorities and dates."""
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


def written(entry: GroupRow) -> str:
    """Return a row on one line. A backslash is put in front if the line is blank or looks like a heading."""
    words = NONE.words(entry.line, "")
    return _ESCAPE + words if words.strip().lstrip(_ESCAPE) in _GUARDED else words


def _parse(text: str) -> Iterator[Group | NotARow]:
    kind = Kind.OBSERVATION
    entries: list[GroupRow] = []
    for line in (*lines_of(text), ""):
        heading = line.strip()
        if heading in _GUARDED:
            if entries:
                yield Group(entries=tuple(entries), kind=kind)
            kind, entries = _HEADINGS.get(heading, kind), []
        else:
            entries.append(row(line))


def row(line: str) -> GroupRow:
    """Parse a line as a row without date and priority."""
    is_guarded = line.startswith(_ESCAPE) and line.strip().lstrip(_ESCAPE) in _GUARDED
    return GroupRow(line=NONE.line(line[1:] if is_guarded else line, mark="", dated=""))


_Fields = dict[str, object]


def _render_jsonl(groups: Iterable[Group], tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield a JSON object per group, with one line per row in its `content`.

    `source_end_index` is the index of the last message, not the index after it.
    """
    for group in groups:
        content = "\n".join(written(entry) for entry in group.entries)
        reach = group.reach
        fields: _Fields = {
            "session_key": group.session or "",
            "content": content,
            "token_count": tokens(content),
            "source_start_index": reach.start,
            "source_end_index": None if reach.end is None else reach.end - 1,
            "generation": group.generation if group.kind is Kind.REFLECTION else None,
            "created_at": group.created_at,
        }
        yield json_line({name: value for name, value in fields.items() if value is not None}) + "\n"


def _parse_jsonl(text: str) -> Iterator[Group | NotARow]:
    """Parse one JSON object per line. An object with a positive generation is a reflection."""
    for found in objects_of(text):
        yield (found and _group(found)) or NotARow(reason="no observation")


def _group(fields: Mapping[str, object]) -> Group | None:
    content, session, generation = fields.get("content"), fields.get("session_key"), fields.get("generation")
    if not isinstance(content, str) or not content.strip():
        return None
    is_reflection = type(generation) is int and 0 < generation < 2**31
    return Group(
        entries=tuple(map(row, filter(str.strip, lines_of(content)))),
        kind=Kind.REFLECTION if is_reflection else Kind.OBSERVATION,
        session=session if isinstance(session, str) and session else None,
        created_at=instant(fields.get("created_at")),
        reach=_reach(fields.get("source_start_index"), fields.get("source_end_index")),
        generation=generation if is_reflection and isinstance(generation, int) else 0,
    )


def _reach(first: object, last: object) -> MessageRange:
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        return NOWHERE
    return MessageRange(start=first, end=last + 1)


EXCHANGES = {
    "lango": Exchange(name="lango", counter="chars-4-cjk-2", render=_render, parse=_parse),
    "lango-jsonl": Exchange(name="lango-jsonl", counter="chars-4-cjk-2", render=_render_jsonl, parse=_parse_jsonl),
}
