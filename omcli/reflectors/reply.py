"""Parser for a reflector's reply: JSON, text with the headings `FACTS:` and `CONDENSED:`, tagged text, or a list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.errors import CutOff, Unusable
from omcli.base.record import record, replace
from omcli.llm.model import Reply
from omcli.llm.replies import is_cut_off, json_in, list_of, read_list, row_text, rows_in, text_of, texts_of, whole
from omcli.memory.observation import Observation
from omcli.memory.reflection import Material


@record
class ProposedRow:
    """A reflection that the reply proposes."""

    text: str
    rows: tuple[str, ...] | None
    """Labels of the rows to replace. None means that the reply has no labels, so the reflection covers all rows shown.
    """
    priority: str = ""
    kind: str = ""
    status: str = ""
    at: str = ""
    """Time as `YYYY-MM-DD HH:MM`, or only the date or the time; empty if the reply gives none."""


@record
class ProposedDrop:
    """A row that the reply proposes to drop, given by its label.

    `by` is the label of the row that makes it redundant, or empty.
    """

    row: str
    reason: str
    by: str


@record
class ProposedItem:
    """A lasting fact that the reply proposes to keep for later sessions."""

    text: str
    kind: str
    tags: tuple[str, ...]
    rows: tuple[str, ...] | None
    """Labels of the rows that state the fact. None means that the reply has no labels."""
    category: str = ""


@record
class ReflectorReply:
    """A parsed reply before validation."""

    reflections: tuple[ProposedRow, ...] = ()
    keep: tuple[str, ...] = ()
    drops: tuple[ProposedDrop, ...] = ()
    items: tuple[ProposedItem, ...] = ()

    @property
    def has_rows(self) -> bool:
        """True if the reply has reflections, or rows to keep or drop."""
        return bool(self.reflections or self.keep or self.drops)


_KEYS = ("reflections", "keep", "drop", "items")
_FACTS = lazily(r"^[ \t]*(?:[*#]{1,6}[ \t]*)?FACTS[*]{0,2}:[*]{0,2}", re.MULTILINE)
_CONDENSED = lazily(r"^[ \t]*(?:[*#]{1,6}[ \t]*)?CONDENSED[*]{0,2}:[*]{0,2}", re.MULTILINE)
_TAGGED = lazily(r"<observations>(.*?)(?:</observations>|\Z)", re.DOTALL)
_OTHER_TAGS = lazily(r"<(current-task|suggested-response)>.*?(?:</\1>|\Z)", re.DOTALL)
_DATED = lazily(r"^[#* \t]{0,8}Date:[ *].*\n+[ \t]*[-*] ", re.MULTILINE)
_DAY = lazily(r"\d{4}-\d\d-\d\d")
_HEADING = lazily(r"[ \t]*(?:#{1,6} |```)")


def rows_by_label(material: Material) -> Mapping[str, Observation]:
    """Return the rows by label: `o1`, `o2`, …"""
    return MappingProxyType({f"o{number}": row for number, row in enumerate(material.rows, start=1)})


def parse_reply(reply: Reply) -> ReflectorReply:
    """Parse a reply.

    Raise Refused if the model declined, CutOff if the reply is incomplete, and Unusable if it cannot be parsed.
    """
    text = whole(reply)
    value = json_in(text)
    if isinstance(value, Mapping) and any(key in value for key in _KEYS):
        return _read(value)
    if (reply_in_text := _from_text(text)) is not None:
        return reply_in_text
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return _read({"reflections": value})
    if is_cut_off(text):
        raise CutOff(f"{reply.model}: the reply ended before it was complete")
    raise Unusable(f"{reply.model}: the reply is not the JSON that was asked for")


def _read(value: Mapping[str, object]) -> ReflectorReply:
    return ReflectorReply(
        reflections=tuple(
            ProposedRow(
                text=row_text(text_of(each, "text")),
                rows=tuple(texts_of(each, "from")),
                priority=text_of(each, "priority"),
                kind=text_of(each, "kind"),
                status=text_of(each, "status"),
            )
            for each in list_of(value, "reflections")
        ),
        keep=tuple(texts_of(value, "keep")),
        drops=tuple(
            ProposedDrop(row=text_of(each, "row"), reason=row_text(text_of(each, "reason")), by=text_of(each, "by"))
            for each in list_of(value, "drop")
        ),
        items=tuple(_item(each, cites=True) for each in list_of(value, "items")),
    )


def _item(value: object, *, cites: bool) -> ProposedItem:
    kind = text_of(value, "type") or text_of(value, "category")
    return ProposedItem(
        text=row_text(text_of(value, "text") or text_of(value, "summary")),
        kind=kind.partition("/")[0].lower(),
        tags=tuple(texts_of(value, "tags")),
        rows=tuple(texts_of(value, "from")) if cites else None,
        category=text_of(value, "category") or (kind if "/" in kind else ""),
    )


def _from_text(text: str) -> ReflectorReply | None:
    """Parse a reply that is not JSON. Return None if it has no known heading or tag, and no list of rows.

    In a list of rows, a `Date:` heading dates the items, or each item that is not indented begins with a mark and a
    date.
    """
    facts, condensed, tagged = _FACTS.search(text), _CONDENSED.search(text), _TAGGED.search(text)
    is_list = not (facts or condensed or tagged)
    if is_list and not (_DATED.search(text) or _is_marked_list(text)):
        return None
    items: tuple[ProposedItem, ...] = ()
    rest = text
    if facts:
        within = text[facts.end() : condensed.start() if condensed and condensed.start() > facts.end() else None]
        listed = read_list(within)
        items = tuple(_item(each, cites=False) for each in listed.values if isinstance(each, Mapping)) if listed else ()
        rest = within[listed.end :] if listed else ""
    if condensed:
        rest = text[condensed.end() :]
        if facts and facts.start() > condensed.start():
            rest = text[condensed.end() : facts.start()]
    elif tagged:
        rest = tagged[1]
    rows = tuple(
        ProposedRow(
            text=row_text(found.text), rows=found.labels, priority=found.priority, status=found.status, at=found.at
        )
        for line, found in rows_in(_OTHER_TAGS.sub("", rest), label="o")
        if row_text(found.text) and (found.is_listed or not (is_list or _HEADING.match(line)))
    )
    if not any(row.rows for row in rows):
        rows = tuple(replace(row, rows=None) for row in rows)
    return ReflectorReply(reflections=rows, items=items)


def _is_marked_list(text: str) -> bool:
    listed = [(line, row) for line, row in rows_in(text, label="o") if row.is_listed]
    marked = [
        bool(row.priority or row.status) and _DAY.match(row.at) is not None for line, row in listed if line[0] > " "
    ]
    return bool(marked) and all(marked)
