"""Parsing rows in plain text, in any notation, as models write them instead of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omcli.base import lazily
from omcli.base.record import record
from omcli.memory.notation import unescape_tags
from omcli.memory.observation import Priority
from omcli.text.spoken_dates import spoken_date

_DATE = lazily(r"^[#* \t]{0,8}Date:[ *]{0,4}(?P<date>[^\n*]{1,40})[* ]{0,4}$", re.IGNORECASE)
_BULLET = lazily(r"^[ \t]*(?:[-*•+](?= )|[0-9]{1,3}[.)](?= ))[ \t]*(?:->[ \t]*|[\u2192\u21b3][ \t]*)?")
_EMOJI = {"🔴": "high", "🟡": "medium", "🟢": "low", "✅": "done"}
_MARKS = {
    **_EMOJI, "[!]": "high", "[?]": "medium", "[i]": "low",
    "critical": "high", "important": "medium", "note": "low", "high": "high", "med": "medium", "medium": "medium",
    "low": "low", "[high]": "high", "[med]": "medium", "[medium]": "medium", "[low]": "low",
    "(high)": "high", "(medium)": "medium", "(low)": "low",
}  # fmt: skip
_STATUSES = {"done": "done", "completed": "done", "resolved": "resolved"}
# Words in capitals, or marks that cannot start a sentence.
_MARK = lazily(
    r"(?:\*\*)?(?:(?P<mark>[🔴🟡🟢✅]\ufe0f?|\[[!?i]\]|(?:CRITICAL|IMPORTANT|NOTE|HIGH|MEDIUM|MED|LOW)\b|"
    r"(?:high|medium|low)(?=:)|[\[(](?i:high|medium|med|low)[\])]):?"
    r"|[\[(]?(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})?(?:(?<=[0-9])[T ])?(?P<time>[0-9]{1,2}:[0-9]{2})?(?<=[0-9])[\])]?:?"
    r"|(?P<done>(?i:done|completed|resolved)):)(?:\*\*)?[ \t]+"
)
_OF_TEN = lazily(r"(?P<importance>[0-9]|10)/10[ \t]+")
"""Importance as a mark. Only a date in front of it distinguishes it from the beginning of a sentence."""
_MOST_MARKS = 6
_CITED = {
    label: lazily(
        rf"[ \t]*[\[(](?P<labels>{label}[0-9]{{1,6}}(?:[,; ]{{1,3}}{label}[0-9]{{1,6}}){{0,19}})[\])][ \t.]*$"
    )
    for label in ("m", "o")
}
_LABEL = lazily("[mo][0-9]+")


@record
class TextRow:
    """A line of text read as a row."""

    text: str
    priority: str = ""
    status: str = ""
    at: str = ""
    """Time as `YYYY-MM-DD HH:MM`, or only the date or the time."""
    labels: tuple[str, ...] = ()
    """Labels cited at the end of the line."""
    is_listed: bool = True
    """True for a list item or a line that begins with a mark, a date or a time. Other lines may be prose."""


def rows_in(text: str, *, label: str) -> Iterator[tuple[str, TextRow]]:
    """Yield each line that is neither blank nor a `Date:` header, with the row read from it.

    A header dates the rows below it. `label` is the letter of the labels that rows may cite: `m` or `o`.
    """
    day = ""
    for line in text.splitlines():
        if header := _DATE.match(line):
            day = spoken_date(header["date"], at=None) or ""
        elif (row := _row(line, day, label)).text:
            yield line, row


def _row(line: str, day: str, label: str) -> TextRow:
    bullet = _BULLET.match(line)
    text = (line[bullet.end() :] if bullet else line).strip()
    priority, status, time = "", "", ""
    is_marked = False
    for _ in range(_MOST_MARKS):
        if is_marked and (found := _OF_TEN.match(text)):
            priority, text = Priority.of_importance(int(found["importance"])), text[found.end() :]
        if not (mark := _MARK.match(text)):
            break
        is_marked = True
        word = _MARKS.get((mark["mark"] or "").removesuffix("\ufe0f").lower(), "")
        priority = "high" if word == "done" else word or priority
        status = _STATUSES.get((mark["done"] or "").lower(), "done" if word == "done" else status)
        day, time = mark["day"] or day, mark["time"] or time
        text = text[mark.end() :]
    cited = _CITED[label].search(text)
    text = text[: cited.start()] if cited else text
    return TextRow(
        text=unescape_tags(text[1:] if text.startswith("\\") and _MARK.match(text[1:]) else text),
        priority=priority,
        status=status,
        at=f"{day} {time:0>5}" if day and time else day or (f"{time:0>5}" if time else ""),
        labels=tuple(dict.fromkeys(_LABEL.findall(cited["labels"]))) if cited else (),
        is_listed=bool(bullet) or is_marked,
    )
