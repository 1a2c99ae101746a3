"""Removing text that programs put into messages, such as reminders, editor selections and om's own output."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Iterator

from omcli.base import lazily
from omcli.memory.notation import NOTATIONS, TAG, WORKING_HEADINGS, WORKING_TITLE
from omcli.memory.observation import UNVERIFIED
from omcli.memory.transcript import Reason, Skip

INJECTED_TAGS = ("system-reminder", TAG, "ide_opened_file", "ide_selection", "hook_context", "user-prompt-submit-hook")
_TAG = lazily(rf"<(/?)({'|'.join(INJECTED_TAGS)})(?:\s[^<>]*)?>")


_MEMORY_WORDS = (
    "memory|memories|observations?|global_observations|reflections|observation[-_]group|memory[-_](?:context|blocks?|bank)"
    "|(?:relevant|recalled|retrieved|user|agent|core|project|session|working|archival|recall|long[-_]term|short[-_]term"
    "|conversation|past|global|episodic|semantic|claude[-_]mem|mem0|supermemory|hindsight|graphiti|zep|letta)"
    "[-_](?:memory|memories|observations|context|reflections|facts)"
)
_MEMORY_TAG = lazily(rf"^<(/?)({_MEMORY_WORDS})(?:\s[^<>]*)?>(?=(.*)$)", re.MULTILINE | re.IGNORECASE)
"""A tag with which other tools wrap memory, at the beginning of a line. Its third group is the rest of the line."""
_FENCE = lazily(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


# Matches if only indentation precedes a position on its line.
_INDENTED = re.compile(r"(?:\A|\n)[^\S\n]*\Z")
_DEEPEST_INDENT = 80
_PACK = lazily(rf'^<{TAG}(?: session="[^"\n]*")?>\r?\n(?:<about>)?Dated notes from earlier work;', re.MULTILINE)
"""The beginning of a printed pack."""


def without_injected(said: str) -> str:
    """Return a message's text without blocks that programs added, and without om's own output.

    Blocks may be nested. A tag that is not closed is only a mention, except in a pack of om that was cut off.
    """
    blocks: list[tuple[int, int]] = []
    if "<" in said and (tags := list(_TAG.finditer(said))):
        blocks += _tag_blocks(said, tags)
    if "] " in said and _HAS_LINE.search(said):
        blocks += map(re.Match.span, _LOG_LINE.finditer(said))
    if WORKING_TITLE in said:
        blocks += map(re.Match.span, _BLOCK.finditer(said))
    if "Date: " in said:
        blocks += map(re.Match.span, _PI_SUMMARY.finditer(said))
    if ('"schema"' in said or '"kind"' in said or f"<{TAG}" in said) and (found := _JSON.search(said)):
        blocks += _json_blocks(said, found)
    if not blocks:
        return said
    kept: list[str] = []
    after = 0
    for start, end in sorted(blocks):
        if start >= after:
            kept.append(said[after:start])
            after = end
    text = "".join((*kept, said[after:])).rstrip()
    return text if kept[0].strip() else text.lstrip()


def is_block(part: str) -> bool:
    """Return True if a part of a message is one block that a client added: it begins and ends with the same tag.

    What it quotes in between may contain such tags, too.
    """
    opening = _TAG.match(part.lstrip())
    return opening is not None and not opening[1] and part.rstrip().endswith(f"</{opening[2]}>")


def _tag_blocks(said: str, tags: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each closed block, including its tags.

    An unpaired closing tag extends the block before it, which quotes such tags. A pack of om that was cut off extends
    to the end of the text.
    """
    opened: dict[str, list[int]] = {}
    closed: dict[str, int] = {}
    ends: dict[int, int] = {}
    for tag in tags:
        name = tag[2]
        if not tag[1]:
            opened.setdefault(name, []).append(tag.start())
            continue
        if opened.get(name):
            closed[name] = opened[name].pop()
        if name in closed:
            ends[closed[name]] = tag.end()
    yield from ends.items()
    yield from ((start, len(said)) for start in opened.get(TAG, ()) if _PACK.match(said, start))


# ---- memory of other tools


def own_words(said: str) -> str:
    """Return a person's words: the text without injected blocks, and without memory that other tools wrapped."""
    parts, after = [], 0
    for start, end in _memory_blocks(said):
        parts.append(said[after:start])
        after = end
    rest = "".join((*parts, said[after:])).strip() if parts else said
    return without_injected(rest)


def memory_skips(said: str) -> Iterator[Skip]:
    """Yield a `Skip` for each block of a person's message that `own_words` leaves out, if words are left."""
    if "<" in said and own_words(said).strip():
        yield from (Skip(Reason.INJECTED) for _ in _memory_blocks(said))


def _memory_blocks(said: str) -> list[tuple[int, int]]:
    """Return start and end of each block that another tool wrapped memory in: closed, and on lines of its own.

    Tags inside a line, indented, unclosed or in a fence are a person's own words, or a document that they show.
    """
    blocks: list[tuple[int, int]] = []
    if "<" not in said or "</" not in said:
        return blocks
    opened: dict[str, list[int]] = {}
    fences = [fence.start() for fence in _FENCE.finditer(said)]
    for tag in _MEMORY_TAG.finditer(said):
        name, rest, start = tag[2].casefold(), tag[3].rstrip(), tag.start()
        if bisect(fences, start) % 2:
            continue
        if not tag[1] and not rest.casefold().endswith(f"</{name}>"):
            opened.setdefault(name, []).append(start)
            continue
        if tag[1]:
            if rest or not opened.get(name):
                continue
            start = opened[name].pop()
        while blocks and blocks[-1][0] > start:  # inside this one
            blocks.pop()
        blocks.append((start, tag.end() + len(rest)))
    return blocks


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
# Matches only om's own formatting. Other programs format such a list differently, and theirs contains more than a pack.
_PRINTED_CHAT = lazily(rf'\[\r?\n\{{"role":"system","content":"<{TAG}')
_MARKS = "|".join(re.escape(mark) for notation in NOTATIONS for mark in notation.marks)
_LOG_LINE = lazily(
    r"^(?:\x1b\[\d+m)?[0-9a-f]{8} \[\d{4}-\d\d-\d\d \d\d:\d\d\] "
    rf"(?:(?:high  |medium|low   ) [a-z_]+(?: done| resolved)?(?: {UNVERIFIED})?: |(?:{_MARKS}) )"
    r".*(?:\n|\Z)",
    re.MULTILINE,
)
_HAS_LINE = lazily(rf"\] (?:high|medium|low|{_MARKS}) ")
# The title, followed only by om's own sections with list items and a count of omitted items.
_HEADING = rf"\n### (?:{'|'.join(WORKING_HEADINGS)})\n"
_END = r"(?:\n|\Z)"
_BLOCK = lazily(
    rf"^{WORKING_TITLE}\n{_HEADING}- .*{_END}(?:- .*{_END}|{_HEADING}|\n?… \(\+\d+ more\){_END})*", re.MULTILINE
)
# Memory as `om compact --to pi` and `om export --to pi` print it, with the words that pi puts around a summary.
_PI_ROWS = rf"Date: \d{{4}}-\d\d-\d\d\n(?: *- \[[!?i]\] \d\d:\d\d .*{_END})+"
_PI_SUMMARY = lazily(
    r"^(?:(?:The conversation history before this point was compacted into the following summary:\s*)?<summary>\s*)?"
    rf"{_PI_ROWS}(?:\n{_PI_ROWS})*(?:\s*</summary>)?",
    re.MULTILINE,
)
# The rest of a cut-off document: its line, and the lines after it that continue the JSON.
_CUT_OFF = lazily(r'[^\n]*(?:\n[ \t]*["\[\]{}][^\n]*)*')
_BROKEN = 64
"""Maximum number of broken JSON documents per text, to limit the time spent."""
_DECODER = json.JSONDecoder()


def is_pack(beginning: str) -> bool:
    """Return True if an input with this beginning is a pack that om printed as a list of messages."""
    return _PRINTED_CHAT.match(beginning) is not None


def _json_blocks(said: str, found: re.Match[str] | None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each JSON document that om printed, beginning at the first match."""
    at = broken = 0
    while found and broken < _BROKEN:
        start, at = found.span()
        is_block = True
        try:
            _, at = _DECODER.raw_decode(said, start)
        except (ValueError, RecursionError):
            broken += 1
            # Elsewhere, the document is quoted in a sentence.
            is_block = _INDENTED.search(said, max(0, start - _DEEPEST_INDENT), start) is not None
            if is_block:
                cut_off = _CUT_OFF.match(said, at)
                at = cut_off.end() if cut_off else len(said)
        if is_block:
            yield start, at
        found = _JSON.search(said, at)


# ---- files of exported memory

# Exported rows quote messages, often after `User:`, so they would be detected as a dialogue.
_EXPORT = lazily(
    r"\s*(?:Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\n- \[[!?i]\] [0-9]{2}:[0-9]{2} "
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}\] (?:CRITICAL|IMPORTANT|NOTE) "
    r'|(?:\[\s*\{[^\[\]{}]{0,600}"content":\s*")?<observation-group\s'
    r"|## Group `[^`\n]*`\n"
    r"|## Conversation Memory\n\n### (?:Summary|Recent)\n"
    rf'|\{{"id":{_STRING},"(?:sessionId":{_STRING},"createdAt":"[^"]*","tier|type":"[a-z]+","category)":"'
    r'|\{"session_key":)'
)


def is_export(beginning: str) -> bool:
    """Return True if a file with this beginning is exported memory rather than a transcript."""
    return _EXPORT.match(beginning) is not None
