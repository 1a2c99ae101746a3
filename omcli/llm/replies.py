"""Tolerant parsing of a model's reply: JSON in a code fence or within prose, or rows in plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from omcli.base import lazily
from omcli.base.errors import CutOff, Looped, Refused, Unusable
from omcli.base.record import record
from omcli.llm.model import EndReason, Reply
from omcli.memory.notation import unescape_tags
from omcli.memory.observation import Priority
from omcli.text.clean import clean, one_line
from omcli.text.similarity import is_repeated
from omcli.text.spoken_dates import spoken_date

LONGEST_ROW = 10_000
"""Maximum length of a row, in characters. A longer row is cut."""
_STARTS = 8
"""Maximum number of positions at which to try parsing JSON within prose, because each try may parse all the rest."""
# Matches the start of an object with a key, or of a list of objects. `[ ]` and `{}` within prose are not an answer.
_BEGINS = lazily(r"\{\s*\"|\[\s*\{")
_FENCED = lazily(r"\A```[\w+-]*[ \t]*\n(.*?)(?:\n[ \t]*```.*)?\Z", re.DOTALL)
_ENDS = frozenset("]}")
_TEXTS = lazily(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)


def whole(reply: Reply) -> str:
    """Return the text of a complete reply.

    Raise Refused if the model declined, CutOff if the reply was cut off, Looped if it was cut off while repeating
    itself, and Unusable if it is empty.
    """
    if reply.stop is EndReason.REFUSAL:
        raise Refused(f"{reply.model} declined to answer")
    if reply.stop is EndReason.LENGTH and is_repeated(_TEXTS.findall(reply.text) or reply.text.splitlines()):
        raise Looped(f"{reply.model} repeated itself until it was cut off")
    if reply.stop is EndReason.LENGTH:
        raise CutOff(f"the reply of {reply.model} was cut off")
    if not reply.text.strip():
        raise Unusable(f"{reply.model} gave an empty reply")
    return reply.text


def json_in(text: str) -> Any:
    """Return the JSON value that a reply consists of, or otherwise the first object or list of objects in it.

    Return None if there is neither. A code fence around the reply is ignored. Line breaks inside strings are allowed,
    but NaN and infinities are not.
    """
    bare = _bare(text)
    for start in (0, *_starts(bare)):
        try:
            value, end = _DECODER.raw_decode(bare, start)
        except (ValueError, RecursionError):
            continue
        if start or end == len(bare) or _is_answer(value):
            return value
    return None


def is_cut_off(text: str) -> bool:
    """Return True if a reply contains JSON that ends before it is complete."""
    bare = _bare(text)
    start = next(iter(_starts(bare)), None)
    if start is None:
        return bare in ("{", "[")
    try:
        _DECODER.raw_decode(bare, start)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or not _ENDS & set(bare[error.pos :])
    except (ValueError, RecursionError):
        return False
    return False


@record
class ListPart:
    values: tuple[Any, ...]
    end: int
    """Index in the text after the list or, if the list breaks off, after its last readable item."""
    is_whole: bool


def read_list(text: str) -> ListPart | None:
    """Return the items of the first JSON list in the text up to the first unreadable item; None if there is no list."""
    at = text.find("[")
    if at < 0:
        return None
    values: list[Any] = []
    end = at = at + 1
    while True:
        at = _next_item(text, at)
        if text[at : at + 1] == "]":
            return ListPart(values=tuple(values), end=at + 1, is_whole=True)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return ListPart(values=tuple(values), end=end, is_whole=False)
        values.append(value)
        at = end


def text_of(value: object, key: str) -> str:
    """Return the string under a key of an object, or an empty string if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def list_of(value: object, key: str) -> list[Any]:
    """Return the list under a key of an object, or an empty list if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def texts_of(value: object, key: str) -> list[str]:
    """Return the distinct strings in the list under a key of an object. A single string counts as a list."""
    found = value.get(key) if isinstance(value, Mapping) else None
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return list(dict.fromkeys(each for each in listed if isinstance(each, str)))


def label_in(text: str) -> str:
    """Return a cited label, id or handle in lower case, without surrounding brackets."""
    return text.strip(" []()").lower()


def row_text(text: str) -> str:
    """Return text as it is stored in a row: on one line, without control characters, and cut if it is too long."""
    line = one_line(clean(text))
    return line if len(line) <= LONGEST_ROW else f"{line[:LONGEST_ROW]}… [truncated {len(line) - LONGEST_ROW} chars]"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


def _bare(text: str) -> str:
    """Return a reply without surrounding white space, or only the content of the code fence that it begins with."""
    stripped = text.lstrip("\ufeff").strip()
    fenced = _FENCED.match(stripped) if stripped.startswith("```") else None
    return fenced[1].strip() if fenced else stripped


def _is_answer(value: object) -> bool:
    """Return True if a JSON value that is followed by prose is the answer.

    Only objects and lists of objects are answers. Other values belong to the prose, like `[1]` in `[1] says so`.
    """
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
    )


def _starts(text: str) -> list[int]:
    return [found.start() for found, _ in zip(_BEGINS.finditer(text), range(_STARTS), strict=False)]


def _next_item(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n", ","):
        at += 1
    return at


# ---- rows in plain text

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
"""Importance as a mark. It is read only after another mark or a date, because alone it may begin a sentence."""
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
