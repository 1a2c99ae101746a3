"""Replies in text: sections in tags, headers with dates, list items in any notation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omcli.memory.patterns import lazily
from omcli.memory.record import replace
from omcli.memory.spoken_dates import spoken_date
from omcli.observers.model.answer import Answer, Row

_SECTIONS = ("observations", "current-task", "suggested-response")
# Tags count at the beginning of a line only: prose may mention one. A section that is not closed goes on to the next.
_TAG = lazily(rf"^[ \t]*<(?P<close>/)?(?P<name>{'|'.join(_SECTIONS)})>[ \t]*", re.MULTILINE | re.IGNORECASE)
_CLOSED = lazily(rf"</(?:{'|'.join(_SECTIONS)})>[ \t]*$", re.MULTILINE | re.IGNORECASE)
_DATE = lazily(r"^[#* \t]{0,8}Date:[ *]{0,4}(?P<date>[^\n*]{1,40})[* ]{0,4}$", re.IGNORECASE)
_BULLET = lazily(r"^[ \t]*(?:[-*•+](?= )|[0-9]{1,3}[.)](?= ))[ \t]*(?:->[ \t]*|[\u2192\u21b3][ \t]*)?")
_EMOJI = {"🔴": "high", "🟡": "medium", "🟢": "low", "✅": "done"}
_MARKS = {
    **_EMOJI, "[!]": "high", "[?]": "medium", "[i]": "low",
    "critical": "high", "important": "medium", "note": "low", "high": "high", "med": "medium", "medium": "medium",
    "low": "low", "[high]": "high", "[med]": "medium", "[medium]": "medium", "[low]": "low",
    "(high)": "high", "(medium)": "medium", "(low)": "low",
}  # fmt: skip
# Words in capitals, or what could not begin a sentence.
_MARK = lazily(
    r"(?:\*\*)?(?:(?P<mark>[🔴🟡🟢✅]\ufe0f?|\[[!?i]\]|(?:CRITICAL|IMPORTANT|NOTE|HIGH|MEDIUM|MED|LOW)\b|"
    r"(?:high|medium|low)(?=:)|[\[(](?i:high|medium|med|low)[\])]):?"
    r"|[\[(]?(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})?(?:(?<=[0-9])[T ])?(?P<time>[0-9]{1,2}:[0-9]{2})?(?<=[0-9])[\])]?:?"
    r"|(?P<done>(?i:done|completed|resolved)):)(?:\*\*)?[ \t]+"
)
_MOST_MARKS = 6
_CITED = lazily(r"[ \t]*[\[(](?P<labels>m[0-9]{1,6}(?:[,; ]{1,3}m[0-9]{1,6}){0,19})[\])][ \t.]*$")
_LABEL = lazily("m[0-9]+")


def read_text(text: str) -> Answer | None:
    """The reply in a text; None where it has no row."""
    sections = dict.fromkeys(_SECTIONS, "")
    for name, body in _sections(text):
        sections[name] += f"\n{body}"
    body = sections["observations"] if sections["observations"].strip() else text if not any(sections.values()) else ""
    rows = tuple(_rows(body))
    if not rows:
        return None
    return Answer(
        rows=rows,
        current_task=sections["current-task"].strip(),
        next_step=sections["suggested-response"].strip(),
        cites=False,
    )


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Names of sections with what stands in them; several of a name are given one by one."""
    name, start = "", 0
    for tag in _TAG.finditer(text):
        if name:
            yield name, _CLOSED.sub("", text[start : tag.start()])
        name, start = ("" if tag["close"] else tag["name"].lower()), tag.end()
    if name:
        yield name, _CLOSED.sub("", text[start:])


def _rows(text: str) -> Iterator[Row]:
    """The list items of a text. One that is indented details the last that is not."""
    day, number = "", -1
    top: tuple[int, int] | None = None
    for line in text.splitlines():
        if header := _DATE.match(line):
            day = spoken_date(header["date"], at=None) or ""
        elif row := _item(line, day):
            number += 1
            indent = len(line) - len(line.lstrip())
            if top is None or indent <= top[0]:
                top = (indent, number)
                yield row
            else:
                yield replace(row, under=top[1])


def _item(line: str, day: str) -> Row | None:
    """A list item, or a line that begins with a priority or a date; None for prose."""
    bullet = _BULLET.match(line)
    text = (line[bullet.end() :] if bullet else line).strip()
    priority, status, time = "", "", ""
    is_marked = False
    for _ in range(_MOST_MARKS):
        if not (mark := _MARK.match(text)):
            break
        is_marked = True
        word = _MARKS.get((mark["mark"] or "").removesuffix("\ufe0f").lower(), "")
        priority = "high" if word == "done" else word or priority
        status = "done" if word == "done" or mark["done"] else status
        day, time = mark["day"] or day, mark["time"] or time
        text = text[mark.end() :]
    if not text or not (bullet or is_marked):
        return None
    cited = _CITED.search(text)
    return Row(
        text=text[: cited.start()] if cited else text,
        priority=priority,
        status=status,
        at=f"{day} {time:0>5}" if day and time else day or (f"{time:0>5}" if time else ""),
        sources=tuple(dict.fromkeys(_LABEL.findall(cited["labels"]))) if cited else (),
    )
