"""Parsing summaries stored by hosts: packs printed by `om`, pi's format, or prose and lists written by a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from omcli.base import lazily
from omcli.base.record import replace
from omcli.exchange import pi
from omcli.exchange.groups import Exchange, Group, GroupRow, NotARow, lines_of, objects_of
from omcli.memory.notation import BRACKETS, EMOJI, PREAMBLE, TAG, WORDS, PrintedRow
from omcli.memory.observation import Priority, Status
from omcli.text.clean import TIER_HEADINGS
from omcli.text.instants import instant, minute

_DATED_BY_PI = lazily(r"^[*# ]*Date:", re.MULTILINE)
_HEADING = lazily(r"#{1,6} +(?P<title>.*?)[ #]*")
_DAY = lazily(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_CLOCK = lazily(r"\d{2}:\d{2}")
_ITEM = lazily(r"\s*(?:[-*•+]|\d{1,3}[.)]) +(?P<said>.*)", re.DOTALL)
_OWN_OPENING = PREAMBLE.partition(";")[0]
"""Beginning of a pack's introduction in all versions of om."""
_OWN_TAG = lazily(rf"</?{TAG}(?: [^<>]*)?>")
_OWN_HEADINGS = frozenset(TIER_HEADINGS[:2])
_OWN_TITLES = frozenset({"Conversation Memory", "From Other Sessions", "Summary", "Recent"})
_RAW = lazily(r"Last (?:messages(?:, [^:]*)?:|Messages(?:, [^:]*)?)")
"""Heading of the messages in a pack. The messages are skipped because the transcript contains them."""
_LONGEST = 600
"""Maximum length of a row without its heading, in characters. A longer paragraph is split between sentences; a longer
sentence stays whole.
"""
_SENTENCE_END = lazily(r"(?<=[.!?。！？]) +")


def parse(text: str) -> Iterator[Group | NotARow]:
    """Parse each list item and paragraph as a row. A row without a mark is prefixed with the heading above it, if any.

    Text in pi's format is parsed by `pi.parse`. Text without rows gives a `NotARow`; no error is ever raised.
    """
    text = _summary_of(text)
    if _DATED_BY_PI.search(text):
        yield from pi.parse(text)
        return
    entries = [GroupRow(line=said) for said in _Outline().rows(text)]
    if entries:
        yield Group(entries=tuple(entries))
    else:
        yield NotARow(reason="no row")


def parse_before(first: str | None, text: str) -> Iterator[Group | NotARow]:
    """Parse a summary. Its rows without a date get the date `first`, if there is one."""
    for found in parse(text):
        if isinstance(found, NotARow) or first is None:
            yield found
            continue
        dated = (
            entry if entry.clock or entry.line.dated else replace(entry, line=replace(entry.line, dated=first))
            for entry in found.entries
        )
        yield replace(found, entries=tuple(dated))


def _summary_of(text: str) -> str:
    """Return the summary contained in JSON or JSON Lines: the rows of a pack, the memory that messages begin with, or
    the output of a compaction. Return "" for other objects and lists; other text is returned unchanged.
    """
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        lines = list(objects_of(text))
        return text if None in lines else _opening(lines)
    if isinstance(found, list):
        return _opening(found)
    if not isinstance(found, dict):
        return text
    if isinstance(messages := found.get("messages"), list) and "text" not in found:
        return _opening(messages)
    said, listed = found.get("summary"), found.get("observations")
    if isinstance(listed, list):
        return "\n".join(_written(row) for row in listed if isinstance(row, dict))
    return said if isinstance(said, str) else ""


def _opening(messages: Sequence[object]) -> str:
    """Return the memory with which chat messages begin, after prompts of the program, or "" if they begin otherwise.

    In other messages, a tool or an agent could imitate memory.
    """
    for opening in messages:
        if not isinstance(opening, dict) or opening.get("role") not in ("user", "system", "developer"):
            break
        content = opening.get("content")
        first = content[0] if isinstance(content, list) and content else content
        said = first.get("text") if isinstance(first, dict) else first
        if isinstance(said, str) and said.startswith(f"<{TAG}"):
            end = said.rfind(f"</{TAG}>")  # the next words may be in the same message
            return said if end < 0 else said[:end]
        if opening["role"] == "user":
            break
    return ""


def _written(row: Mapping[str, object]) -> str:
    """Return a row of a JSON pack as it is printed in a text pack: its minute, then its line."""
    at, said = instant(row.get("event_at") or row.get("observed_at")) or "", str(row.get("text") or "")
    priority = next((each for each in Priority if each == row.get("priority")), Priority.MEDIUM)
    status = next((each for each in Status if each == row.get("status")), None)
    line = PrintedRow(dated=minute(at), priority=priority, status=status, text=said)
    return f"{line.dated}\n{WORDS.render_under(line)}"


class _Outline:
    def __init__(self) -> None:
        self._title = ""
        self._dated = ""
        self._is_raw = False
        self._paragraph: list[str] = []
        self._above = ("", "")
        """Title and date above the paragraph. When the paragraph ends, `_title` and `_dated` may already be those of
        the next.
        """

    def rows(self, text: str) -> Iterator[PrintedRow]:
        for written in lines_of(text):
            if self._is_raw and written[:1].isspace():
                continue  # a later line of a message
            line = written.strip()
            item = _ITEM.fullmatch(written)
            is_structure = not line or self._is_about(line)
            if is_structure or item or self._dated:
                yield from self._said()
            if is_structure or self._is_raw:
                continue
            if not self._paragraph:
                self._above = self._title, self._dated
            self._paragraph.append(item["said"].strip() if item else line)
        yield from self._said()

    def _is_about(self, line: str) -> bool:
        """Return True if the line is a heading, a date or the like, and remember it for the lines below."""
        heading = _HEADING.fullmatch(line)
        title = heading["title"].strip() if heading else line
        if _OWN_TAG.fullmatch(line):
            self._is_raw = False
        elif _RAW.fullmatch(title):
            self._is_raw = True
        elif line in _OWN_HEADINGS or (heading and title in _OWN_TITLES):
            self._is_raw, self._title = False, ""
        elif self._dated and _CLOCK.fullmatch(line):
            self._dated = f"{self._dated[:10]} {line}"
        elif _DAY.fullmatch(line):
            self._dated = line if len(line) > len("2026-01-01") else f"{line} 00:00"
        elif heading:
            self._title = title.rstrip(":")
        elif not line.startswith(_OWN_OPENING):
            return False
        return True

    def _said(self) -> Iterator[PrintedRow]:
        said, self._paragraph = " ".join(self._paragraph), []
        title, dated = self._above
        for passage in _passages(said):
            yield _line(passage, title=title, dated=dated)


def _line(said: str, *, title: str, dated: str) -> PrintedRow:
    for notation in (WORDS, BRACKETS, EMOJI):
        found = notation.undated.fullmatch(said)
        if found and found["mark"]:
            return notation.line(found["said"], mark=found["mark"], dated=dated)
    line = replace(WORDS.line(said, mark=None, dated=dated), mark="")
    return replace(line, text=f"{title}: {line.text}") if title else line


def _passages(said: str) -> Iterator[str]:
    passage = ""
    for sentence in _SENTENCE_END.split(said):
        if passage and len(passage) + len(sentence) >= _LONGEST:
            yield passage
            passage = ""
        passage = f"{passage} {sentence}".lstrip()
    if passage:
        yield passage


SUMMARY = Exchange(name="summary", counter="chars-4", render=pi.render, parse=parse)
