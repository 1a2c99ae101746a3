"""What a model answered when it was to fold rows: JSON, or as text with `FACTS:` and `CONDENSED:`, or in tags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base.errors import CutOff, Unusable
from omcli.base.patterns import lazily
from omcli.base.record import record, replace
from omcli.llm.json_reply import elements, ends_early, json_in, list_of, row_text, text_of, texts_of, whole
from omcli.llm.model import Reply
from omcli.memory.notation import NOTATIONS


@record
class ProposedRow:
    """A row that takes the place of others."""

    text: str
    rows: tuple[str, ...] | None
    """Labels of those; None in a text without labels, which is made of everything that was shown."""
    priority: str = ""
    kind: str = ""
    status: str = ""


@record
class ProposedDrop:
    """A row that goes untold."""

    row: str
    reason: str
    by: str


@record
class ProposedItem:
    """A fact for later sessions."""

    text: str
    kind: str
    tags: tuple[str, ...]
    rows: tuple[str, ...] | None
    """Labels of the rows it comes from; None where none were asked for."""
    category: str = ""


@record
class ReflectorReply:
    """A reply as it was read, before anything in it is believed."""

    merged: tuple[ProposedRow, ...] = ()
    keep: tuple[str, ...] = ()
    gone: tuple[ProposedDrop, ...] = ()
    items: tuple[ProposedItem, ...] = ()


_KEYS = ("reflections", "keep", "drop", "items")
_FACTS = lazily(r"^[ \t]*(?:[*#]{1,6}[ \t]*)?FACTS[*]{0,2}:[*]{0,2}", re.MULTILINE)
_CONDENSED = lazily(r"^[ \t]*(?:[*#]{1,6}[ \t]*)?CONDENSED[*]{0,2}:[*]{0,2}", re.MULTILINE)
_TAGGED = lazily(r"<observations>(.*?)(?:</observations>|\Z)", re.DOTALL)
_OTHER_TAGS = lazily(r"<(current-task|suggested-response)>.*?(?:</\1>|\Z)", re.DOTALL)
_BULLET = lazily(r"(?:[-*•]|\d{1,3}[.)])[ \t]+")
_HEADING = lazily(r"#{1,6} |Date: |```|\Z")
_CITED = lazily(r"[\[(](o\d{1,6}(?:,? ?o\d{1,6})*)[\])][.]?\Z")


def parse_reply(reply: Reply) -> ReflectorReply:
    """What a reply says. Raises CutOff, Refused, Unusable."""
    text = whole(reply)
    value = json_in(text)
    if isinstance(value, Mapping) and any(key in value for key in _KEYS):
        return _read(value)
    if (told := _from_text(text)) is not None:
        return told
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return _read({"reflections": value})
    if ends_early(text):
        raise CutOff(f"{reply.model}: the reply ended before it was complete")
    raise Unusable(f"{reply.model}: the reply is not the JSON that was asked for")


def _read(value: Mapping[str, object]) -> ReflectorReply:
    return ReflectorReply(
        merged=tuple(
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
        gone=tuple(
            ProposedDrop(row=text_of(each, "row"), reason=row_text(text_of(each, "reason")), by=text_of(each, "by"))
            for each in list_of(value, "drop")
        ),
        items=tuple(_fact(each, cites=True) for each in list_of(value, "items")),
    )


def _fact(value: object, *, cites: bool) -> ProposedItem:
    kind = text_of(value, "type") or text_of(value, "category")
    return ProposedItem(
        text=row_text(text_of(value, "text") or text_of(value, "summary")),
        kind=kind.partition("/")[0].lower(),
        tags=tuple(texts_of(value, "tags")),
        rows=tuple(texts_of(value, "from")) if cites else None,
        category=text_of(value, "category") or (kind if "/" in kind else ""),
    )


def _from_text(text: str) -> ReflectorReply | None:
    """A reply without JSON around it; None where it has none of the marks of one."""
    facts, condensed, tagged = _FACTS.search(text), _CONDENSED.search(text), _TAGGED.search(text)
    if not (facts or condensed or tagged):
        return None
    items: tuple[ProposedItem, ...] = ()
    rest = text
    if facts:
        within = text[facts.end() : condensed.start() if condensed and condensed.start() > facts.end() else None]
        listed = elements(within)
        items = tuple(_fact(each, cites=False) for each in listed.values if isinstance(each, Mapping)) if listed else ()
        rest = within[listed.end :] if listed else ""
    if condensed:
        rest = text[condensed.end() :]
        if facts and facts.start() > condensed.start():
            rest = text[condensed.end() : facts.start()]
    elif tagged:
        rest = tagged[1]
    merged = tuple(filter(None, map(_line, _OTHER_TAGS.sub("", rest).splitlines())))
    if not any(one.rows for one in merged):
        merged = tuple(replace(one, rows=None) for one in merged)
    return ReflectorReply(merged=merged, items=items)


def _line(written: str) -> ProposedRow | None:
    """A row as it is written in a text, in any notation; None for headings and blank lines."""
    line = written.strip()
    if _HEADING.match(line):
        return None
    if bullet := _BULLET.match(line):
        line = line[bullet.end() :]
    rows: tuple[str, ...] = ()
    if cited := _CITED.search(line):
        line, rows = line[: cited.start()], tuple(re.findall(r"o\d+", cited[1]))
    said = next((found for notation in NOTATIONS if (found := notation.parse(line, ""))), None)
    text = row_text(said.text if said else line)
    if not text:
        return None
    priority, status = (said.priority.value, said.status or "") if said else ("", "")
    return ProposedRow(text=text, rows=rows, priority=priority, status=status)
