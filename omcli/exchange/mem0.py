"""mem0's memories: what `get_all` returns as JSON, the Markdown that its plugin exports, or the history of a server.

Some clients write the names of fields in camel case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, json_values, lines_of, said
from omcli.memory.notation import PrintedRow
from omcli.memory.observation import Kind, Priority
from omcli.text.clean import json_line, one_line
from omcli.text.instants import instant, minute

_Fields = Mapping[str, object]

_LISTS = ("results", "memories")
_HISTORY = "history"
"""Table of `history.db`, with a row for each change of a memory."""
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "expiration_date")
_RULE = re.compile(r"---[ \t]*\Z")
_FIELD = re.compile(r"([A-Za-z_]\w*)[ \t]*:(.*)\Z")


def _parse(text: str) -> Iterator[Group | NotARow]:
    lines = lines_of(text)
    first = next(filter(str.strip, lines), "")
    memories = _blocks(lines) if _RULE.match(first) else _listed(text)
    for memory in memories:
        yield (isinstance(memory, dict) and _group(memory)) or NotARow(reason="no memory")


def _listed(text: str) -> Iterator[object]:
    """Yield the memories of a list, a page of results, or lines. Of a history, yield the last state of each memory that
    was not deleted.
    """
    last: dict[str, _Fields] = {}
    for document in json_values(text):
        pages = document if isinstance(document, list) else [document]
        for page in pages:
            held = page if isinstance(page, dict) else {}
            name = next((name for name in (*_LISTS, _HISTORY) if isinstance(held.get(name), list)), None)
            if name == _HISTORY:
                last |= {said(row, "memory_id"): row for row in held[name] if isinstance(row, dict)}
            elif name is not None:
                yield from held[name]
            else:
                yield page
    for memory_id, row in last.items():
        if row.get("event") != "DELETE" and not row.get("is_deleted"):
            yield {**row, "id": memory_id, "memory": row.get("new_memory")}


def _blocks(lines: list[str]) -> Iterator[_Fields]:
    """Yield the memories of a Markdown export: lines of fields between two rules, and the text below them."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if _RULE.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    for fields, text in zip(parts[1::2], parts[2::2], strict=False):
        found = {match[1]: match[2].strip() for line in fields if (match := _FIELD.match(line))}
        lists = {name: found.pop(name, "").split(",") for name in ("categories", "files")}
        details = {name: found[name] for name in ("type", "confidence", "branch") if found.get(name)}
        files = [file for file in map(str.strip, lists["files"]) if file]
        metadata = {**details, **({"files": files} if files else {})}
        yield {**found, "memory": "\n".join(text), "categories": lists["categories"], "metadata": metadata}


def _group(memory: _Fields) -> Group | None:
    fields = {_plain_name(name): value for name, value in memory.items()}
    text = said(fields, "memory")
    if not text:
        return None
    metadata, categories = fields.get("metadata"), fields.get("categories")
    created, updated = instant(fields.get("created_at")), instant(fields.get("updated_at"))
    at = updated or created
    row = PrintedRow(dated=minute(at) if at else "", priority=Priority.MEDIUM, status=None, text=text)
    owners = {name: owner for name in _OWNERS if (owner := said(fields, name))}
    tags = [one_line(tag) for tag in categories if isinstance(tag, str)] if isinstance(categories, list) else []
    return Group(
        entries=(GroupRow(line=row, id=said(fields, "id") or None),),
        kind=Kind.ITEM,
        created_at=created,
        category=next(filter(None, tags), None),
        tags=tuple(filter(None, tags)),
        facts={**owners, **({"metadata": json_line(metadata)} if metadata else {})},
    )


def _plain_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"_{found[0].lower()}", name)


EXCHANGES = {
    "mem0": Exchange(
        name="mem0",
        parse=_parse,
        hint="write what `get_all` returns as JSON, or name its history.db",
        files=("history.db",),
        tables=(_HISTORY,),
    )
}
