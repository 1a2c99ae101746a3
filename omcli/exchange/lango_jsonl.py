"""Lango's observations and reflections as JSON Lines, with the places of the messages they were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from omcli.exchange import lango
from omcli.exchange.groups import NOWHERE, Exchange, Group, Reach, Unread, lines_of, objects_of
from omcli.memory.observation import Kind
from omcli.memory.row_json import json_line
from omcli.text.dates.instants import instant

_Fields = dict[str, object]


def render(groups: Iterable[Group], tokens: Callable[[str], int]) -> Iterator[str]:
    """An object for every group; its content is a paragraph with a line for every row. Both ends are included."""
    for group in groups:
        content = "\n".join(lango.written(entry) for entry in group.entries)
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


def parse(text: str) -> Iterator[Group | Unread]:
    """Object by object; one with a generation is a reflection."""
    for found in objects_of(text):
        yield (found and _group(found)) or Unread(reason="no observation")


def _group(fields: Mapping[str, object]) -> Group | None:
    content, session, generation = fields.get("content"), fields.get("session_key"), fields.get("generation")
    if not isinstance(content, str) or not content.strip():
        return None
    is_reflection = type(generation) is int and 0 < generation < 2**31
    return Group(
        entries=tuple(map(lango.row, filter(str.strip, lines_of(content)))),
        kind=Kind.REFLECTION if is_reflection else Kind.OBSERVATION,
        session=session if isinstance(session, str) and session else None,
        created_at=instant(fields.get("created_at")),
        reach=_reach(fields.get("source_start_index"), fields.get("source_end_index")),
        generation=generation if is_reflection and isinstance(generation, int) else 0,
    )


def _reach(first: object, last: object) -> Reach:
    if type(first) is not int or type(last) is not int or not 0 <= first <= last:
        return NOWHERE
    return Reach(start=first, end=last + 1)


EXCHANGES = {"lango-jsonl": Exchange(name="lango-jsonl", counter="chars-4-cjk-2", render=render, parse=parse)}
