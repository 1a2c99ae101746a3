"""Removes text that programs put into messages: reminders, editor selections, om's own output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from omcli.base.patterns import lazily
from omcli.memory.notation import NOTATIONS, TAG, WORKING_HEADINGS, WORKING_TITLE

INJECTED_TAGS = ("system-reminder", TAG, "ide_opened_file", "ide_selection", "hook_context")
_TAG = lazily(rf"<(/?)({'|'.join(INJECTED_TAGS)})(?:\s[^<>]*)?>")


def without_injected(said: str) -> str:
    """Return a message's text without the blocks that programs put into it.

    Blocks may be nested. An unclosed block extends to the end, but only if its tag begins a line; elsewhere the tag is
    merely mentioned.
    """
    blocks = _injected_blocks(said)
    if not blocks:
        return said
    ends = [0, *(end for _, end in blocks)]
    starts = [*(start for start, _ in blocks), len(said)]
    kept = "".join(said[end:start] for end, start in zip(ends, starts, strict=True)).rstrip()
    return kept.lstrip() if not said[: blocks[0][0]].strip() else kept


def _injected_blocks(said: str) -> list[tuple[int, int]]:
    """Return start and end of each outermost injected block."""
    blocks: list[tuple[int, int]] = []
    after = 0
    for start, end in sorted([*printed(said), *_tag_blocks(said)]):
        if start >= after:
            blocks.append((start, end))
            after = end
    return blocks


def _tag_blocks(said: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each block between tags."""
    tags = list(_TAG.finditer(said)) if "<" in said else []
    ends = _ends(tags)
    for tag in tags:
        start = tag.start()
        if not tag[1] and (start in ends or begins_line(said, start)):
            yield start, ends.get(start, len(said))


def _ends(tags: list[re.Match[str]]) -> dict[int, int]:
    """Map the start of each closed opening tag to the end of its block."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {name: [] for name in INJECTED_TAGS}
    for tag in tags:
        if not tag[1]:
            opened[tag[2]].append(tag.start())
        elif opened[tag[2]]:
            ends[opened[tag[2]].pop()] = tag.end()
    return ends


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
_CHAT = (
    rf'\[\s*\{{\s*"role":\s*"system",\s*"content":\s*"<{TAG}'
    rf'|\[\s*\{{\s*"role":\s*"user",\s*"content":\s*\[\s*\{{\s*"type":\s*"text",\s*"text":\s*"<{TAG}'
)
_JSON = lazily(rf'{_ROW}|\{{\s*"schema":\s*1,\s*(?:{_INSIDE})|{_CHAT}')
# Only om's own layout: other programs format such a list differently, and theirs holds more than a pack.
_PRINTED_CHAT = lazily(rf'\[\r?\n\{{"role":"system","content":"<{TAG}')
_MARKS = "|".join(re.escape(mark) for notation in NOTATIONS for mark in notation.marks)
_LOG_LINE = lazily(
    r"^(?:\x1b\[\d+m)?[0-9a-f]{8} \[\d{4}-\d\d-\d\d \d\d:\d\d\] "
    rf"(?:(?:high  |medium|low   ) [a-z_]+(?: done| resolved)?: |(?:{_MARKS}) )"
    r".*(?:\n|\Z)",
    re.MULTILINE,
)
_HAS_LINE = lazily(rf"\] (?:high|medium|low|{_MARKS}) ")
# The title, followed only by om's own sections with list items and a count of more.
_HEADING = rf"\n### (?:{'|'.join(WORKING_HEADINGS)})\n"
_END = r"(?:\n|\Z)"
_BLOCK = lazily(
    rf"^{WORKING_TITLE}\n{_HEADING}- .*{_END}(?:- .*{_END}|{_HEADING}|\n?… \(\+\d+ more\){_END})*", re.MULTILINE
)
# The rest of a cut-off document: its line, and the lines after it that continue the JSON.
_CUT_OFF = lazily(r'[^\n]*(?:\n[ \t]*["\[\]{}][^\n]*)*')
_DEEPEST_INDENT = 80
_BROKEN = 64
"""Number of broken JSON documents tolerated in one text, to bound the time spent."""
_DECODER = json.JSONDecoder()


def is_pack(beginning: str) -> bool:
    """Return True if an input with this beginning is a pack that om printed as a list of messages."""
    return _PRINTED_CHAT.match(beginning) is not None


def printed(said: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a text that om printed, unordered.

    Packs in tags are found by `_tag_blocks`.
    """
    if "] " in said and _HAS_LINE.search(said):
        yield from (found.span() for found in _LOG_LINE.finditer(said))
    if WORKING_TITLE in said:
        yield from (found.span() for found in _BLOCK.finditer(said))
    if '"schema"' in said or '"kind"' in said or f"<{TAG}" in said:
        yield from _json(said)


def begins_line(said: str, at: int) -> bool:
    """Return True if only indentation precedes an offset on its line."""
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
                continue  # quoted within a sentence
            cut_off = _CUT_OFF.match(said, at)
            at = cut_off.end() if cut_off else len(said)
        yield start, at


# ---- files of exported memory

_STRING = r'"(?:[^"\\]|\\.)*"'
# Written rows quote what was said, after `User:` as often as not: they must not be taken for a dialogue.
_EXPORT = lazily(
    r"\s*(?:Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\n- \[[!?i]\] [0-9]{2}:[0-9]{2} "
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}\] (?:CRITICAL|IMPORTANT|NOTE) "
    r"|<observation-group\s"
    r"|## Group `[^`\n]*`\n"
    r"|## Conversation Memory\n\n### (?:Summary|Recent)\n"
    rf'|\{{"id":{_STRING},"(?:sessionId":{_STRING},"createdAt":"[^"]*","tier|type":"[a-z]+","category)":"'
    r'|\{"session_key":)'
)


def is_export(beginning: str) -> bool:
    """Return True if a file with this beginning is exported memory rather than a transcript."""
    return _EXPORT.match(beginning) is not None
