"""Saved memories of ChatGPT: copied from its settings, written out by it when asked to, or as its website loads them.

No file of ChatGPT's data export is documented to hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, json_values, lines_of, said
from omcli.memory.notation import PrintedRow
from omcli.memory.observation import Kind, Priority
from omcli.text.clean import one_line
from omcli.text.instants import instant, minute

_JSON = re.compile(r"\s*[\[{]\s*(?:[\[{\"\]}]|\Z)")
_PAGE = re.compile(r"\s*<(?:!DOCTYPE|html|\?xml)", re.IGNORECASE)
_FRAME = re.compile(r"[ \t]*(?:```.*|~~~.*|#{1,6}[ \t].*|[-*_=]{3,}[ \t]*)\Z")
"""Fences, headings and rules around memories."""
_ITEM = re.compile(r"(?:[-*+•][ \t]+|\d{1,4}[.)][ \t]+)")
_DATED = re.compile(r"\[([^\[\]]{1,40})\][ \t]*[-–—.:]*[ \t]+|(\d{4}-\d{2}-\d{2})[ \t]*[-–—:]+[ \t]+")
_NO_DATE = re.compile(
    r"(?:(?:date )?(?:unknown|unavailable|not available)|no date|undated|n/?a|-|–|—)\Z", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\Z")
_HEADING_END = (":", ":**")


def _parse(text: str) -> Iterator[Group | NotARow]:
    if "\0" in text or _PAGE.match(text):
        yield NotARow(reason="no memory")
    elif _JSON.match(text):
        for document in json_values(text):
            yield from map(_from_json, _listed(document))
    else:
        for written in _pieces(lines_of(text)):
            if group := _from_text(written):
                yield group


def _listed(document: object) -> list[object]:
    held = document.get("memories") if isinstance(document, dict) else document
    return held if isinstance(held, list) else [held]


def _from_json(memory: object) -> Group | NotARow:
    if isinstance(memory, str):
        return _from_text(memory) or NotARow(reason="no memory")
    fields: Mapping[str, object] = memory if isinstance(memory, dict) else {}
    text = said(fields, "content", "memory")
    if not text:
        return NotARow(reason="no memory")
    times = ("updated_at", "created_at", "created_timestamp")
    return _group(text, next(filter(None, (instant(fields.get(name)) for name in times)), None), said(fields, "id"))


def _pieces(lines: list[str]) -> Iterator[str]:
    """Yield the memories of a text, each on one line. A line that goes on with a sentence belongs to the one above."""
    piece: list[str] = []
    for line in (*lines, ""):
        text = "" if _FRAME.match(line) else line.strip()
        if piece and not _goes_on(piece[-1], text):
            yield " ".join(piece)
            piece = []
        if text:
            piece.append(text)
    if piece:
        yield " ".join(piece)


def _goes_on(above: str, text: str) -> bool:
    if not text or _ITEM.match(text) or _DATED.match(text) or _SENTENCE_END.search(above):
        return False
    return text[0].islower() or above.endswith((",", ";"))


def _from_text(written: str) -> Group | None:
    """Return a memory, with its list mark and date removed from the text, or None for a heading or blank text."""
    item = _ITEM.match(written)
    text = one_line(written[item.end() :] if item else written)
    at = None
    if dated := _DATED.match(text):
        at = instant(dated[1] or dated[2])
        if at or _NO_DATE.match((dated[1] or "").strip()):
            text = text[dated.end() :]
    return _group(text, at) if text and not text.endswith(_HEADING_END) else None


def _group(text: str, at: str | None, memory_id: str = "") -> Group:
    row = PrintedRow(dated=minute(at) if at else "", priority=Priority.MEDIUM, status=None, text=text)
    return Group(entries=(GroupRow(line=row, id=memory_id or None),), kind=Kind.ITEM, created_at=at)


EXCHANGES = {
    "chatgpt": Exchange(
        name="chatgpt",
        parse=_parse,
        hint="copy the list in Settings, Personalization, Manage memories into a text file, one memory per line",
    )
}
