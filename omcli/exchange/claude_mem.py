"""claude-mem's database (`claude-mem.db`), and the JSON that its export script makes of it.

Older versions call the ids of sessions `sdk_session_id` and `claude_session_id`, and lack some columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, json_values, said
from omcli.memory.notation import PrintedRow
from omcli.memory.observation import Priority
from omcli.text.clean import one_line
from omcli.text.instants import instant, minute

_Fields = Mapping[str, object]

_TABLES = ("sdk_sessions", "observations", "session_summaries")
_EXPORTED = {"sessions": "sdk_sessions", "summaries": "session_summaries"}
"""Names of tables in exported JSON, where they differ."""
_SESSION = ("memory_session_id", "sdk_session_id")
_OF_CLIENT = ("content_session_id", "claude_session_id")
"""The client's own id of a session."""
_RECORDS = ("observations", "session_summaries")
_URGENT = frozenset({"decision", "security_alert"})
_PARTS = ("investigated", "learned", "completed", "next_steps", "notes")
"""Columns of a summary below its `request`."""
_FILES = {"files_modified": "modified", "files_edited": "modified", "files_read": "read"}


def _parse(text: str) -> Iterator[Group | NotARow]:
    """Parse observations and summaries. Prompts are left out: om reads them in the transcripts of the client."""
    found = list(json_values(text))
    tables: dict[str, list[object]] = {}
    for document in found:
        held = document if isinstance(document, dict) else {}
        for name in {*_TABLES, *_EXPORTED}.intersection(held):
            rows = held[name] if isinstance(held[name], list) else [None]
            tables.setdefault(_EXPORTED.get(name, name), []).extend(rows)
    if found and not tables:
        yield NotARow(reason="no observation")
    sessions = [(said(row, *_SESSION), said(row, *_OF_CLIENT)) for row in _rows(tables, "sdk_sessions")]
    clients = {session: client for session, client in sessions if session and client}
    folders = _folders(_rows(tables, *_RECORDS))
    for name in _RECORDS:
        for row in tables.get(name, ()):
            fields = row if isinstance(row, dict) else {}
            entries = tuple(_entries(fields, name))
            if entries:
                yield _group(fields, entries, clients=clients, folders=folders)
            else:
                yield NotARow(reason="no observation")


def _rows(tables: Mapping[str, Sequence[object]], *names: str) -> Iterator[_Fields]:
    yield from (row for name in names for row in tables.get(name, ()) if isinstance(row, dict))


def _folders(rows: Iterator[_Fields]) -> dict[str, str]:
    """Return the directories of projects, as found in paths of files: claude-mem knows only their last part."""
    folders: dict[str, str] = {}
    for fields in rows:
        project = said(fields, "project")
        last = project.rpartition("/")[2]
        if not last or project in folders:
            continue
        for column in _FILES:
            for path in _texts(fields.get(column)):
                above, found, _ = path.partition(f"/{last}/")
                if found and path.startswith("/"):
                    folders[project] = f"{above}/{last}"
    return folders


def _group(
    fields: _Fields, entries: tuple[GroupRow, ...], *, clients: Mapping[str, str], folders: Mapping[str, str]
) -> Group:
    session, project, type_ = said(fields, *_SESSION), said(fields, "project"), said(fields, "type")
    facts = {"session": session, "project": project, "type": type_, "prompt": fields.get("prompt_number")}
    return Group(
        entries=entries,
        session=clients.get(session, session) or None,
        cwd=folders.get(project, project) or None,
        created_at=_at(fields),
        tags=tuple(dict.fromkeys(filter(None, (type_, *_texts(fields.get("concepts")))))),
        facts={name: str(fact) for name, fact in facts.items() if fact},
    )


def _at(fields: _Fields) -> str | None:
    return instant(fields.get("created_at_epoch")) or instant(fields.get("created_at"))


def _entries(fields: _Fields, table: str) -> Iterator[GroupRow]:
    """Yield a title, and below it a row for each other part. Without a title, the first part stands for it."""
    at = _at(fields)
    number = fields.get("id")
    dated = minute(at) if at else ""
    for place, (part, text, priority) in enumerate(_parts(fields)):
        row = PrintedRow(dated=dated, priority=priority, status=None, text=text)
        # Numbers begin again in each database.
        row_id = None if number is None else f"{table}/{number}/{part} {at or ''}".rstrip()
        yield GroupRow(line=row, under=0 if place else None, id=row_id)


def _parts(fields: _Fields) -> Iterator[tuple[str, str, Priority]]:
    """Yield the name, text and priority of each part that has text."""
    title, request = said(fields, "title"), said(fields, "request")
    medium = Priority.MEDIUM
    if title:
        yield "title", title, Priority.HIGH if said(fields, "type") in _URGENT else medium
    if request:
        yield "request", f"Request: {request}", medium
    for number, fact in enumerate(_texts(fields.get("facts"))):
        yield f"fact {number}", fact, medium
    for column in _PARTS:
        if text := said(fields, column):
            yield column, f"{column.replace('_', ' ').capitalize()}: {text}", medium
    for column in ("narrative", "subtitle", "text"):
        if text := said(fields, column):
            yield column, text, Priority.LOW if title else medium
    for column, verb in _FILES.items():
        if files := _texts(fields.get(column)):
            yield column, f"Files {verb}: {', '.join(files)}", Priority.LOW


def _texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list, which the database keeps as JSON or, in old rows, as a single string."""
    if isinstance(value, str) and value.strip():
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = value
        value = found if isinstance(found, list) else [value]
    texts = [one_line(text) for text in value if isinstance(text, str)] if isinstance(value, list) else []
    return tuple(filter(None, texts))


EXCHANGES = {
    "claude-mem": Exchange(
        name="claude-mem",
        parse=_parse,
        hint="name its database, usually ~/.claude-mem/claude-mem.db, or a file that its export script wrote",
        files=("claude-mem.db",),
        tables=_TABLES,
    )
}
