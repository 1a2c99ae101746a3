"""The observer's reply: its schema, and parsers for JSON and for plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from omcli.base import lazily
from omcli.base.errors import CutOff, Unusable
from omcli.base.record import record
from omcli.llm.replies import is_cut_off, json_in, label_in, rows_in, text_of, texts_of
from omcli.llm.schema import STATED, TEXT, TEXTS, Schema, list_of, object_of, one_of, optional

NAME = "observations"

_TIME: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}$"}
_ROW_SCHEMA = object_of({
    **STATED,
    "at": _TIME,
    "refers_to": optional(TEXT),
    "refers_to_kind": optional(one_of("exact", "estimated")),
    "sources": TEXTS,
    "replaces": TEXTS,
    "under": optional({"type": "integer"}),
})  # fmt: skip

FIELDS = {
    "observations": list_of(_ROW_SCHEMA),
    "used": TEXTS,
    "current_task": optional(TEXT),
    "next_step": optional(TEXT),
    "title": optional(TEXT),
}
SCHEMA = object_of(FIELDS)


@record
class ReplyRow:
    """A row of a reply before validation."""

    text: str
    priority: str = ""
    kind: str = ""
    status: str = ""
    at: str = ""
    """Time as `YYYY-MM-DD HH:MM`. A plain-text reply may give only the date or only the time."""
    refers_to: str = ""
    is_estimate: bool = False
    sources: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    under: int | None = None


@record
class ObserverReply:
    """A parsed reply before validation."""

    rows: tuple[ReplyRow, ...]
    used: tuple[str, ...] = ()
    current_task: str = ""
    next_step: str = ""
    title: str = ""
    cites: bool = True
    """False for a plain-text reply, because its rows may lack sources."""


_IS_JSON = lazily(r"[\s\ufeff]*(?:```\w*\s*)?(?:\{|\[\s*(?:[{\"\]]|\Z))")


def parse_reply(text: str) -> ObserverReply:
    """Parse a reply in JSON or plain text.

    Raise CutOff if JSON ends before it is complete, and Unusable if the reply contains no list of observations.
    """
    is_json = '"observations"' in text or _IS_JSON.match(text) is not None
    if is_json and is_cut_off(text):
        raise CutOff("the model's reply ended before it was complete")
    found = json_in(text)
    if isinstance(found, list) and (not found or all(text_of(each, "text") for each in found)):
        found = {"observations": found}
    if isinstance(found, Mapping) and isinstance(found.get("observations"), list):
        return _from_json(found)
    if is_json:
        raise Unusable("the reply is not a JSON object with a list of `observations`")
    answer = parse_text(text)
    if answer is None:
        raise Unusable("the reply holds neither a JSON object nor a list of observations")
    return answer


def _from_json(found: Mapping[str, Any]) -> ObserverReply:
    return ObserverReply(
        rows=tuple(map(_row, found["observations"])),
        used=_labels(found, "used"),
        current_task=text_of(found, "current_task"),
        next_step=text_of(found, "next_step"),
        title=text_of(found, "title"),
    )


def _row(found: object) -> ReplyRow:
    """Parse a row. A value that is not an object gives an empty row, which validation rejects."""
    if not isinstance(found, Mapping):
        return ReplyRow(text="")
    under = found.get("under")
    return ReplyRow(
        text=text_of(found, "text"),
        priority=_word(found, "priority"),
        kind=_word(found, "kind"),
        status=_word(found, "status"),
        at=text_of(found, "at").strip(),
        refers_to=text_of(found, "refers_to").strip(),
        is_estimate=_word(found, "refers_to_kind") == "estimated",
        sources=_labels(found, "sources"),
        replaces=_labels(found, "replaces"),
        under=under if isinstance(under, int) and not isinstance(under, bool) else None,
    )


def _word(found: Mapping[str, Any], key: str) -> str:
    return text_of(found, key).strip().lower()


def _labels(found: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(label_in, texts_of(found, key))))


_SECTIONS = ("observations", "current-task", "suggested-response")
# Tags count only at the start of a line, because prose may mention one. An unclosed section ends at the next tag.
_TAG = lazily(rf"^[ \t]*<(?P<close>/)?(?P<name>{'|'.join(_SECTIONS)})>[ \t]*", re.MULTILINE | re.IGNORECASE)
_CLOSED = lazily(rf"</(?:{'|'.join(_SECTIONS)})>[ \t]*$", re.MULTILINE | re.IGNORECASE)


def parse_text(text: str) -> ObserverReply | None:
    """Parse a plain-text reply, or return None if it has no rows."""
    sections = dict.fromkeys(_SECTIONS, "")
    for name, body in _sections(text):
        sections[name] += f"\n{body}"
    body = sections["observations"] if sections["observations"].strip() else text if not any(sections.values()) else ""
    rows = tuple(_text_rows(body))
    if not rows:
        return None
    return ObserverReply(
        rows=rows,
        current_task=sections["current-task"].strip(),
        next_step=sections["suggested-response"].strip(),
        cites=False,
    )


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each section, in order. A name may occur more than once."""
    name, start = "", 0
    for tag in _TAG.finditer(text):
        if name:
            yield name, _CLOSED.sub("", text[start : tag.start()])
        name, start = ("" if tag["close"] else tag["name"].lower()), tag.end()
    if name:
        yield name, _CLOSED.sub("", text[start:])


def _text_rows(text: str) -> Iterator[ReplyRow]:
    """Yield a row for each list item, and for each line with a mark, date or time (`TextRow.is_listed`). One that is
    indented deeper than the last top-level one becomes its child.
    """
    number = -1
    top: tuple[int, int] | None = None
    for line, row in rows_in(text, label="m"):
        if not row.is_listed:
            continue
        number += 1
        indent = len(line) - len(line.lstrip())
        under = None if top is None or indent <= top[0] else top[1]
        if under is None:
            top = (indent, number)
        status = "done" if row.status else ""  # resolved rows would have to name the row that they resolve
        yield ReplyRow(text=row.text, priority=row.priority, status=status, at=row.at, sources=row.labels, under=under)
