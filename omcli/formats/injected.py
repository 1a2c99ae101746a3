"""Removing text that programs put into messages, such as reminders, editor selections and om's own output."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from omcli.base import lazily
from omcli.memory.notation import NOTATIONS, PREAMBLE, TAG, WORKING_HEADINGS, WORKING_TITLE
from omcli.memory.observation import UNVERIFIED
from omcli.memory.transcript import Reason, Skip

INJECTED_TAGS = ("system-reminder", TAG, "ide_opened_file", "ide_selection", "hook_context", "user-prompt-submit-hook")
_TAG = lazily(rf"<(/?)({'|'.join(INJECTED_TAGS)})(?:\s[^<>]*)?>")


_MEMORY_WORDS = (
    "memory|memories|observations?|reflections|observation[-_]group|memory[-_](?:context|blocks?|bank|pack)"
    "|current[-_]task|suggested[-_]response"
    "|(?:relevant|recalled|retrieved|user|agent|core|project|session|working|archival|recall|long[-_]term|short[-_]term"
    "|conversation|past|global|local|observational|episodic|semantic|claude[-_]mem|mem0|supermemory|hindsight|graphiti"
    "|zep|letta)"
    "[-_](?:memory|memories|observations|context|reflections|facts)"
)
_ATTRIBUTES = r"""(?:\s(?:"[^"\n]{0,300}"|'[^'\n]{0,300}'|[^<>"'])*)?"""
_MEMORY_TAG = lazily(
    r"(?P<fence>^[ ]{0,3}(?:`{3,}|~{3,}))(?=(?P<info>[^\n]*))"
    rf"|<(?P<closing>/?)(?P<name>{_MEMORY_WORDS}){_ATTRIBUTES}(?<!/)>",
    re.MULTILINE | re.IGNORECASE,
)
"""A tag with which other tools wrap memory, or the marks of a fence."""
_FENCE = lazily(r"^[ ]{0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)", re.MULTILINE)
_LINE_START = lazily(r"(?:\A|(?<=\n))[^\S\n]*[\ufeff\u200b]?[^\S\n]*\Z")
_COMMON_NAMES = frozenset({"memory", "memories", "observation", "observations", "reflections"})
"""Names that are also usual in configurations and documents."""
_CHILD = lazily(r"<([a-z][\w.:-]*)", re.IGNORECASE)
_CHILD_OF_MEMORY = lazily(
    rf"{_MEMORY_WORDS}|facts?|items?|entry|entries|notes?|rules?|preferences?|instructions?|summary|content|text|title"
    "|value|persona|human|user|profile|narrative|subtitle",
    re.IGNORECASE,
)
_HEADED_MEMORY = lazily(
    r"^## Conversation Memory\r?\n(?:\s*^### (?:Summary|Recent)\r?\n(?:\r?\n)?(?:[^\n#][^\n]*\S[^\n]*(?:\n|\Z))+)+",
    re.MULTILINE,
)
"""Memory as lango prints it: paragraphs below headings."""
_DEEPEST_PART = 8
"""Maximum depth of nested blocks with the same name."""
_QUERY = ("<user_query>", "</user_query>")
"""Tags that a program puts around a person's words."""


# Matches if only indentation precedes a position on its line.
_INDENTED = lazily(r"(?:\A|\n)[^\S\n]*\Z")
_DEEPEST_INDENT = 80
_PACK = lazily(rf'^<{TAG}(?: session="[^"\n]*")?>\r?\n(?:<about>)?Dated notes from earlier work;', re.MULTILINE)
"""The beginning of a printed pack."""


def without_injected(said: str, *, is_from_person: bool = False) -> str:
    """Return a message's text without blocks that programs added, and without om's own output.

    Blocks may be nested. A tag that is not closed is only a mention, except in a pack of om that was cut off. If the
    text `is_from_person`, blocks in a fence are kept, because the person pasted them.
    """
    blocks: list[tuple[int, int]] = []
    if "<" in said:
        fences = _shown_parts(said) if is_from_person else ()
        blocks += (block for block in _tag_blocks(said) if not _is_shown(said, block, fences))
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


def opening_memory(said: str) -> str:
    """Return the memory with which a text begins: a pack of om or its summary for pi. Return "" if it begins otherwise:
    memory after other words may be a quotation.
    """
    written = said.lstrip()
    if _PACK.match(written):
        start, end = min(_tag_blocks(written), default=(0, 0))
        return written[start:end] if start == 0 else ""
    found = _PI_SUMMARY.match(written)
    return found[0] if found else ""


def _shown_parts(said: str) -> list[tuple[int, int]]:
    """Return start and end of each closed code fence, whose content a person only pasted."""
    fences: list[tuple[int, int]] = []
    start, mark = 0, ""
    for found in _FENCE.finditer(said):
        if not mark and ("`" not in found["info"] or found["mark"][0] == "~"):
            start, mark = found.start(), found["mark"]
        elif mark and found["mark"].startswith(mark) and not found["info"].strip():
            fences.append((start, found.end()))
            mark = ""
    return fences


def _is_shown(said: str, block: tuple[int, int], fences: Sequence[tuple[int, int]]) -> bool:
    """Return True if a block is inside a fence, unless it is a pack of om."""
    start, end = block
    place = bisect(fences, block) - 1
    return place >= 0 and end <= fences[place][1] and not _PACK.match(said, start)


def is_block(part: str) -> bool:
    """Return True if a part of a message is one block that a client added: it begins and ends with the same tag.

    Nothing in between is a person's, even after a closing tag: a file in an editor's selection may contain tags that
    look like the end of one block and the beginning of another.
    """
    opening = _TAG.match(part.lstrip())
    return opening is not None and not opening[1] and part.rstrip().endswith(f"</{opening[2]}>")


def _tag_blocks(said: str, *, is_whole: bool = True) -> Iterator[tuple[int, int]]:
    """Yield start and end of each closed block, including its tags, and of each pack of om that was cut off.

    An unpaired closing tag extends the block before it, which quotes such tags. A pack without a closing tag extends to
    the end of the text. It is left out unless the text `is_whole`.
    """
    opened: dict[str, list[int]] = {}
    closed: dict[str, int] = {}
    ends: dict[int, int] = {}
    for tag in _TAG.finditer(said):
        name = tag[2]
        if not tag[1]:
            opened.setdefault(name, []).append(tag.start())
            continue
        if opened.get(name):
            closed[name] = opened[name].pop()
        if name in closed:
            ends[closed[name]] = tag.end()
    yield from ends.items()
    packs = opened.get(TAG, ()) if is_whole else ()
    yield from ((start, len(said)) for start in packs if _PACK.match(said, start))


# ---- memory of other tools


def own_words(said: str) -> str:
    """Return a person's words: the text without injected blocks, memory that other tools wrapped, and `_QUERY` tags
    around all of it.
    """
    blocks = _memory_blocks(said)
    rest = _without(said, blocks).strip() if blocks else said
    words = without_injected(rest, is_from_person=True).strip() if _QUERY[0] in rest else ""
    if words.startswith(_QUERY[0]) and words.endswith(_QUERY[1]):
        return words[len(_QUERY[0]) : -len(_QUERY[1])].strip()
    return without_injected(rest, is_from_person=True)


def memory_skips(said: str) -> Iterator[Skip]:
    """Yield a `Skip` for each block of memory that `own_words` leaves out of a person's message, if words are left."""
    blocks = _memory_blocks(said)
    packs = _PACK.findall(_without(said, blocks)) if f"<{TAG}" in said else ()
    if (blocks or packs) and own_words(said).strip():
        yield from (Skip(Reason.INJECTED) for _ in (*blocks, *packs))


def own_texts(parts: Sequence[str]) -> list[str]:
    """Return a person's words in each text of a message (see `own_words`). A block may begin in one text and end in a
    later one.
    """
    if len(parts) < 2:
        return list(map(own_words, parts))
    rest = "\n".join(map(_without_whole, parts))
    blocks = [block for block in _tag_blocks(rest, is_whole=False) if _begins_line(rest, block[0])]
    fences = _shown_parts(rest) if blocks else ()
    blocks = [block for block in blocks if not _is_shown(rest, block, fences)]
    blocks += _memory_blocks(rest)
    texts: list[str] = []
    begin = 0
    for part in parts:
        end = begin + len(part)
        across = [
            (max(first - begin, 0), min(last, end) - begin)
            for first, last in blocks
            if first < end < last or first < begin < last
        ]
        words = "" if is_block(part) else own_words(_without(part, across))
        texts.append(words.strip() if across else words)
        begin = end + 1
    return texts


def _without_whole(part: str) -> str:
    """Return a text with line feeds in place of the blocks that begin and end in it."""
    blocks = [*_tag_blocks(part, is_whole=False), *_memory_blocks(part)]
    return "\n" * len(part) if is_block(part) else _without(part, blocks, fill="\n")


def _begins_line(said: str, at: int) -> bool:
    return _INDENTED.search(said, max(0, at - _DEEPEST_INDENT), at) is not None


def _without(said: str, blocks: Iterable[tuple[int, int]], *, fill: str = "") -> str:
    """Return a text without the blocks, or with `fill` in place of each of their characters."""
    kept: list[str] = []
    after = 0
    for start, end in sorted(blocks):
        if end > after:
            kept += (said[after:start], fill * (end - max(start, after)))
            after = end
    return "".join((*kept, said[after:]))


def _memory_blocks(said: str) -> list[tuple[int, int]]:
    """Return start and end of each block in which another tool wrapped memory. The block is closed, and begins a line.

    Tags inside a line, unclosed or in a fence are a person's own words, or a document that they paste. Words may
    precede a tag that only tools use, if it ends its line and is closed at the beginning of a later one.
    """
    blocks: list[tuple[int, int]] = []
    if "</" in said:
        tags = list(_MEMORY_TAG.finditer(said))
        last = {tag["name"].casefold(): tag.start() for tag in tags if tag["closing"]}
        after, searched, fence = 0, 0, ""
        for place, tag in enumerate(tags if last else ()):
            if tag.start() < after:
                continue
            if mark := (tag["fence"] or "").strip():
                info = tag["info"].strip()
                if fence:
                    fence = "" if mark.startswith(fence) and not info else fence
                elif "`" not in info or mark[0] == "~":
                    fence = mark
            elif not fence and not tag["closing"] and last.get(tag["name"].casefold(), 0) > tag.start():
                follows = bool(blocks) and after == blocks[-1][1] and not said[after : tag.start()][:80].strip()
                start = tag.start() if follows else _line_start(said, tag)
                if start is None and tag.start() >= searched and _ends_line(said, tag):
                    searched = _block_end(said, tags, place).start()
                    start = tag.start() if _begins_line(said, searched) else None
                if start is not None:
                    closing = _block_end(said, tags, place)
                    after = closing.end()
                    if not _is_own_text(said, tag, closing, follows=follows):
                        blocks.append((start, after))
    if "## Conversation Memory" in said:
        headed = [found.span() for found in _HEADED_MEMORY.finditer(said)]
        blocks += [span for span in headed if not any(start < span[1] and span[0] < end for start, end in blocks)]
    return sorted(blocks)


def _line_start(said: str, tag: re.Match[str]) -> int | None:
    """Return the start of a tag's line if only indentation precedes the tag, or None."""
    found = _LINE_START.search(said, max(0, tag.start() - _DEEPEST_INDENT), tag.start())
    return found.start() if found else None


def _ends_line(said: str, tag: re.Match[str]) -> bool:
    """Return True if nothing follows a tag on its line, and its name is used by tools alone."""
    return tag["name"].casefold() not in _COMMON_NAMES and said[tag.end() : tag.end() + 1] in ("\n", "\r")


def _block_end(said: str, tags: list[re.Match[str]], place: int) -> re.Match[str]:
    """Return the tag that closes a block or, if not all blocks nested in it are closed, the first closing tag with its
    name.
    """
    name, depth = tags[place]["name"].casefold(), 1
    first: re.Match[str] | None = None
    for at in range(place + 1, len(tags)):
        tag = tags[at]
        if tag["fence"] or tag["name"].casefold() != name:
            continue
        if tag["closing"]:
            first = first or tag
            depth -= 1
        elif _line_start(said, tag) is not None:
            depth += 1
        if depth == 0:
            return tag
        if first and depth > _DEEPEST_PART:
            break
    assert first is not None
    return first


def _is_own_text(said: str, tag: re.Match[str], closing: re.Match[str], *, follows: bool) -> bool:
    """Return True if a block is a person's own XML: only child elements, or one value among other elements."""
    if tag["name"].casefold() not in _COMMON_NAMES:
        return False
    lines = list(filter(None, map(str.strip, said[tag.end() : closing.start()].splitlines())))
    if len(lines) == 1 and lines[0][0] != "<" and " " not in lines[0] and not follows:
        before = said[max(0, tag.start() - _DEEPEST_INDENT) : tag.start()].rstrip()
        return before.endswith(">") and said[closing.end() : closing.end() + _DEEPEST_INDENT].lstrip().startswith("<")
    if not lines or not all(line[0] == "<" and line[-1] == ">" for line in lines):
        return False
    return not any(map(_CHILD_OF_MEMORY.fullmatch, chain.from_iterable(map(_CHILD.findall, lines))))


_STRING = r'"(?:[^"\\]|\\.)*"'
_SESSION = rf'(?:"session":\s*{_STRING},\s*)?'
_ROW = (
    rf'\{{\s*"id":\s*"[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}",\s*{_SESSION}"kind":\s*"[a-z]+",\s*"type":'
)
_INSIDE = (
    rf'{_SESSION}"counter":\s*{_STRING},\s*"budget":\s*-?\d+,\s*"tokens":\s*(?:\{{|\d+,\s*"sections":)'  # om context
    rf'|"observations?":\s*(?:\[\s*)?{_ROW}'  # om log, om show, om note
    rf'|"files":\s*\[\s*\{{\s*"path":\s*{_STRING},\s*"format":'  # om observe
    rf'|"query":\s*{_STRING},\s*"(?:answer|vectors?)":'  # om ask, om recall
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
    rf"^{WORKING_TITLE}\n{_HEADING}- .*{_END}(?:- .*{_END}|{_HEADING}|\n?… \(\+\d+ (?:more|older rows)\){_END})*",
    re.MULTILINE,
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
    """Return True if an input with this beginning is a pack that om printed as a list of OpenAI chat messages."""
    return _PRINTED_CHAT.match(beginning) is not None


def _json_blocks(said: str, found: re.Match[str] | None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each JSON document that om printed, also of one that is cut off or broken if it begins a
    line. The search ends after `_BROKEN` broken ones. `found` is the first match of `_JSON`.
    """
    at = broken = 0
    while found and broken < _BROKEN:
        start, at = found.span()
        is_block = True
        try:
            _, at = _DECODER.raw_decode(said, start)
        except (ValueError, RecursionError):
            broken += 1
            # Elsewhere, the document is quoted in a sentence.
            is_block = _begins_line(said, start)
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
    rf"|(?:<!-- om: [\w-]+ -->\n)?<{TAG}>\n{re.escape(PREAMBLE)}\n\n#"
    rf'|\{{"id":{_STRING},"(?:sessionId":{_STRING},"createdAt":"[^"]*","tier|type":"[a-z]+","category)":"'
    r'|\{"session_key":)'
)


def is_export(beginning: str) -> bool:
    """Return True if a file with this beginning is exported memory rather than a transcript."""
    return _EXPORT.match(beginning) is not None
