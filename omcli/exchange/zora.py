"""Zora's formats: lines such as `[2026-02-10 14:32] CRITICAL text`, or JSON Lines with the messages of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from omcli.exchange.groups import NOWHERE, Exchange, Group, GroupRow, MessageRange, NotARow, lines_of, objects_of
from omcli.memory.notation import BRACKETS, EMOJI, NONE, WORDS, PrintedRow
from omcli.memory.observation import Kind, Priority
from omcli.text.clean import json_line
from omcli.text.instants import instant

_READ = (WORDS, EMOJI, BRACKETS, NONE)
"""Notations to try, in this order."""


def row(written: str) -> PrintedRow | None:
    """Parse a line as a row, or return None if the line does not begin with `[YYYY-MM-DD HH:MM]`."""
    return next((read for notation in _READ if (read := notation.parse(written))), None)


def _render(groups: Iterable[Group], _tokens: Callable[[str], int]) -> Iterator[str]:
    for group in groups:
        for entry in group.entries:
            yield f"{WORDS.render(entry.line)}\n"


def _parse(text: str) -> Iterator[Group | NotARow]:
    """Parse all rows into one group, because the lines do not show where a group ends."""
    entries: list[GroupRow] = []
    for written in lines_of(text):
        read = row(written)
        if read is not None:
            entries.append(GroupRow(line=read))
        elif written.strip():
            yield NotARow(reason="no row")
    if entries:
        yield Group(entries=tuple(entries))


_Fields = dict[str, object]


def _render_jsonl(groups: Iterable[Group], tokens: Callable[[str], int]) -> Iterator[str]:
    for group in groups:
        yield json_line(_item(group) if group.kind is Kind.ITEM else _block(group, tokens)) + "\n"


def _block(group: Group, tokens: Callable[[str], int]) -> _Fields:
    text = "\n".join(WORDS.render(entry.line) for entry in group.entries)
    reach = group.reach
    return {
        "id": group.id or "",
        "sessionId": group.session or "",
        "createdAt": group.created_at or "",
        "tier": "cross-session" if group.session is None else "session",
        **({} if group.kind is Kind.OBSERVATION else {"kind": group.kind}),
        "observations": text,
        "sourceMessageRange": [reach.start or 0, reach.end or 0],
        "estimatedTokens": tokens(text),
    }


def _item(group: Group) -> _Fields:
    [entry] = group.entries
    return {
        "id": group.id or "",
        "type": (group.category or "").partition("/")[0],
        "category": group.category,
        "createdAt": group.created_at or "",
        "tags": list(group.tags),
        "summary": WORDS.render(entry.line),
    }


def _parse_jsonl(text: str) -> Iterator[Group | NotARow]:
    """Parse one JSON object per line. Other lines that are not blank, and objects without rows, give a `NotARow`."""
    for found in objects_of(text):
        yield (found and _group(found)) or NotARow(reason="no block")


def _group(fields: Mapping[str, object]) -> Group | None:
    said = next((text for key in ("observations", "summary", "content") if (text := _text(fields.get(key)))), "")
    entries = tuple(_entries(said))
    if not entries:
        return None
    session = _text(fields.get("sessionId")) or None
    is_item = "observations" not in fields
    tags = fields.get("tags")
    return Group(
        entries=entries,
        kind=Kind.ITEM if is_item else _kind(fields.get("kind")),
        id=_text(fields.get("id")) or None,
        session=None if is_item or fields.get("tier") == "cross-session" else session,
        created_at=instant(fields.get("createdAt")),
        reach=_reach(fields.get("sourceMessageRange")),
        category=_text(fields.get("category")) or _text(fields.get("type")) or None if is_item else None,
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
    )


def _entries(said: str) -> Iterator[GroupRow]:
    """Yield a row for each line that is not blank, even if it has no date."""
    for written in filter(str.strip, lines_of(said)):
        read = row(written)
        yield GroupRow(line=read or PrintedRow(dated="", priority=Priority.MEDIUM, status=None, text=written))


def _reach(value: object) -> MessageRange:
    if not isinstance(value, list) or len(value) != 2 or not all(type(place) is int for place in value):
        return NOWHERE
    start, end = value
    return MessageRange(start=start, end=end) if 0 <= start < end else NOWHERE


def _kind(value: object) -> Kind:
    return next((kind for kind in (Kind.REFLECTION, Kind.NOTE) if kind == value), Kind.OBSERVATION)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


EXCHANGES = {
    "zora": Exchange(name="zora", counter="chars-3.5-3", render=_render, parse=_parse),
    "zora-jsonl": Exchange(name="zora-jsonl", counter="chars-3.5-3", render=_render_jsonl, parse=_parse_jsonl),
}
