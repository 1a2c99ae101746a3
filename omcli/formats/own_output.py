"""What om itself printed, found again in a text: packs and rows as JSON, lines of `om log`, working-memory blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from omcli.base.patterns import lazily
from omcli.memory.notation import NOTATIONS, TAG
from omcli.pack.headings import HEADINGS, TITLE

_STRING = r'"(?:[^"\\]|\\.)*"'
_SESSION = rf'(?:"session":\s*{_STRING},\s*)?'
_ROW = (
    rf'\{{\s*"id":\s*"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}",\s*{_SESSION}"kind":\s*"[a-z]+",\s*"type":'
)
_INSIDE = (
    rf'{_SESSION}"counter":\s*{_STRING},\s*"budget":\s*-?\d+,\s*"tokens":\s*(?:\{{|\d+,\s*"sections":)'  # om context
    rf'|"observations?":\s*(?:\[\s*)?{_ROW}'  # om log, om show, om note
    rf'|"files":\s*\[\s*\{{\s*"path":\s*{_STRING},\s*"format":'  # om observe
)
_CHAT = rf'\[\s*\{{\s*"role":\s*"system",\s*"content":\s*"<{TAG}'
_JSON = lazily(rf'{_ROW}|\{{\s*"schema":\s*1,\s*(?:{_INSIDE})|{_CHAT}')
# Other programs lay out the list of messages that an agent went on from otherwise; in theirs there is more than a pack.
_PRINTED_CHAT = lazily(rf'\[\r?\n\{{"role":"system","content":"<{TAG}')
_MARKS = "|".join(re.escape(mark) for notation in NOTATIONS for mark in notation.marks)
_LOG_LINE = lazily(
    r"^(?:\x1b\[\d+m)?[0-9a-f]{8} \[\d{4}-\d\d-\d\d \d\d:\d\d\] "
    rf"(?:(?:high  |medium|low   ) [a-z_]+(?: done| resolved)?: |(?:{_MARKS}) )"
    r".*(?:\n|\Z)",
    re.MULTILINE,
)
_HAS_LINE = lazily(rf"\] (?:high|medium|low|{_MARKS}) ")
# The title, then nothing but sections that om has, in them list items and a count of more.
_HEADING = rf"\n### (?:{'|'.join(HEADINGS)})\n"
_END = r"(?:\n|\Z)"
_BLOCK = lazily(rf"^{TITLE}\n{_HEADING}- .*{_END}(?:- .*{_END}|{_HEADING}|\n?… \(\+\d+ more\){_END})*", re.MULTILINE)
# What is left of a document that was cut off: its line, and those after it that go on in JSON.
_CUT_OFF = lazily(r'[^\n]*(?:\n[ \t]*["\[\]{}][^\n]*)*')
_DEEPEST_INDENT = 80
_BROKEN = 64
"""Documents of one text that may be broken; each costs as much as all before it."""
_DECODER = json.JSONDecoder()


def is_pack(beginning: str) -> bool:
    """Whether this is the beginning of a pack that was printed as a list of messages."""
    return _PRINTED_CHAT.match(beginning) is not None


def printed(said: str) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of a text that om printed, in no order. Packs as text are known by their tag."""
    if "] " in said and _HAS_LINE.search(said):
        yield from (found.span() for found in _LOG_LINE.finditer(said))
    if TITLE in said:
        yield from (found.span() for found in _BLOCK.finditer(said))
    if '"schema"' in said or '"kind"' in said or f"<{TAG}" in said:
        yield from _json(said)


def begins_line(said: str, at: int) -> bool:
    """Whether nothing but an indent stands before a place on its line."""
    before = said[max(0, at - _DEEPEST_INDENT) : at]
    indent = before.rpartition("\n")[2]
    return not indent.strip() and (len(indent) < len(before) or at <= _DEEPEST_INDENT)


def _json(said: str) -> Iterator[tuple[int, int]]:
    at = broken = 0
    while broken < _BROKEN and (found := _JSON.search(said, at)):
        start, at = found.span()
        try:
            _, at = _DECODER.raw_decode(said, start)
        except (ValueError, RecursionError):
            broken += 1
            if not begins_line(said, start):
                continue  # somebody is talking about it
            cut_off = _CUT_OFF.match(said, at)
            at = cut_off.end() if cut_off else len(said)
        yield start, at
