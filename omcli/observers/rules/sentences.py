"""Text split into sentences, list items and table rows, without code and markup; and text cut between words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from omcli.base.patterns import lazily
from omcli.base.record import positional_record
from omcli.text.clean import is_spaced, one_line
from omcli.text.phrases import counted

_FENCE = lazily(r"^ {0,3}(```+|~~~+)")
_BULLET = lazily(r"^\s*(?:[-*+•·]|\d{1,3}[.)]|\[[ xX]\])\s+(?:\[[ xX]\]\s+)?")
_HEADING = lazily(r"^\s*#{1,6}\s+")
_TABLE = lazily(r"^\s*\|.*\|\s*$")
_TABLE_RULE = lazily(r"^[\s|:+\-=]+$")
_CONTINUES = lazily(r"^ {0,8}[a-zß-ÿа-я]")
_HEADING_CHARACTERS = 60
_STRONG = lazily(r"(?<![\w*])\*\*(?=[^\s*])([^`]+?)(?<=[^\s*])\*\*(?![\w*])")
_STRONG_CODE = lazily(r"(?<![\w*`])\*\*([^`*\n]{0,100}`[^`*\n]{1,200}`[^`*\n]{0,100})\*\*(?![\w*])")
_INLINE_CODE = lazily(r"(`[^`]*`)")
# A sentence ends at . ! ? (or their wide forms) before a space and a capital, digit or the like; not after "e.g.",
# an initial or a number ("v1. 2"), so that names and versions are never split.
_STARTS = r"A-Z0-9À-ÞЀ-Я/@#"
_END_BY_SPACE = r"(?:(?<=[.!?…])|(?<=[.!?…][\"')\]”’»]))\s+(?=[\"'(\[“‘`*¿¡«]*[{begins}])|(?<=\w[!?])\s+(?=[a-zß-ÿа-я])"
_END = lazily(_END_BY_SPACE.format(begins=_STARTS))
_END_UNSPACED = lazily(
    _END_BY_SPACE.format(begins=_STARTS + r"\u3040-\u9fff\uac00-\ud7af") + r"|(?<=[。！？])(?![”’」』）)])"
)
_MAX_SENTENCE = 320
"""Characters beyond which a sentence is split into clauses: a row shows a few hundred."""
_CLAUSE_END = lazily(r"(?<=[,;:] )|(?= (?:and|but|so|or|because|und|aber|et|mais|y|pero) )|(?<=[，；：、])")
_CJK = lazily(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ABBREVIATION = lazily(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|ms|dr|st|prof|inc|jr|sr)|\b[A-Z]|\b\d{1,2})\.$", re.IGNORECASE
)
_CACHE_SIZE = 64
"""Texts whose segments are cached: the last one of a turn is read twice."""


@positional_record
class Segment:
    """A sentence, list item, heading or table row, on one line."""

    text: str
    is_item: bool = False
    is_heading: bool = False


@lru_cache(maxsize=_CACHE_SIZE)
def segments(text: str) -> tuple[Segment, ...]:
    """Return the segments of a text in order, without fenced code; inline code is kept."""
    return tuple(_segments(text))


def _segments(text: str) -> Iterator[Segment]:
    lines = _joined_lines(_lines_without_code(text, as_written=False))
    for line, following in pairwise([*lines, ""]):
        if _TABLE.match(line):
            yield Segment(_clean(" | ".join(filter(None, _cells(line)))), is_item=True)
            continue
        heading, bullet = _HEADING.match(line), _BULLET.match(line)
        mark = heading or bullet
        body = _clean(line[mark.end() :] if mark else line)
        if not body:
            continue
        if heading or _is_heading(line, body, following):
            yield Segment(body.rstrip(":"), is_heading=True)
        elif bullet:
            yield Segment(body, is_item=True)
        else:
            yield from (Segment(sentence) for sentence in sentences(body))


def _is_heading(line: str, body: str, following: str) -> bool:
    """Return True if a short line introduces what follows: it ends with a colon, or a list starts below it."""
    if body.endswith((":", "：")):
        return len(body) < _HEADING_CHARACTERS
    if len(body) > _HEADING_CHARACTERS or body[-1] in ".!?…。！？,;" or not (below := _BULLET.match(following)):
        return False
    return not _BULLET.match(line) or _indent(below[0]) > _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines that are not empty; a line continued in lower case is joined with the next."""
    joined: list[str] = []
    open_line = False
    for line in lines:
        if open_line and _CONTINUES.match(line):
            joined[-1] += f" {line.strip()}"
        elif line.strip():
            joined.append(line)
        open_line = len(line) > _HEADING_CHARACTERS and not _HEADING.match(line) and not _TABLE.match(line)
    return joined


def sentences(line: str) -> list[str]:
    """Split one line of prose into sentences, and long ones into clauses; not after abbreviations or in versions."""
    found: list[str] = []
    for piece in (_END if is_spaced(line) else _END_UNSPACED).split(line):
        if found and len(found[-1]) < _MAX_SENTENCE and _ABBREVIATION.search(found[-1][-12:]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return [clause for sentence in found for clause in _clauses(sentence)]


def _clauses(sentence: str) -> Iterator[str]:
    """Split a sentence over `_MAX_SENTENCE` at commas and the like."""
    if len(sentence) <= _MAX_SENTENCE:
        yield sentence
        return
    stretch = ""
    for clause in _CLAUSE_END.split(sentence):
        if len(stretch) > _MAX_SENTENCE // 4 and len(stretch) + len(clause) > _MAX_SENTENCE:
            yield stretch.strip()
            stretch = ""
        stretch += clause
    if stretch.strip():
        yield stretch.strip()


def word_count(text: str) -> int:
    """Number of words; in scripts without spaces every second character counts as a word."""
    return len(text.split()) + _cjk_count(text) // 2


def text_length(text: str) -> int:
    """Length in characters, CJK characters counted three times."""
    return len(text) + 2 * _cjk_count(text)


def _cjk_count(text: str) -> int:
    """Number of characters of scripts written without spaces between words."""
    return 0 if text.isascii() else len(_CJK.findall(text))


def _clean(text: str) -> str:
    """Return a text on one line without Markdown's strong marks; inline code, `**kwargs` and `__main__` are kept."""
    if "**" not in text:
        return one_line(text)
    pieces = _INLINE_CODE.split(_STRONG_CODE.sub(r"\1", one_line(text)))
    return "".join(part if part.startswith("`") else _STRONG.sub(r"\1", part) for part in pieces).strip()


def without_code(text: str) -> str:
    """Return a text on one line, each block of fenced code replaced by a short note of its size."""
    return one_line("\n".join(_lines_without_code(text, as_written=True)))


def _lines_without_code(text: str, *, as_written: bool) -> Iterator[str]:
    """Yield the lines outside code fences. An unclosed fence hides nothing.

    With `as_written` code leaves a note of its size and tables stay as they are; without, code leaves nothing and table
    rows name their columns.
    """
    lines = text.splitlines()
    columns: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while at < len(lines):
        line = lines[at]
        opening = _FENCE.match(line)
        fence = opening.group(1) if opening else ""
        closing = _code_end(lines, at + 1, fence) if fence and fence not in unclosed else None
        if closing is not None:
            yield from _code_note(lines[at + 1 : closing]) if as_written else ()
            at = closing
        elif fence:
            unclosed.add(fence)
        elif _TABLE.match(line) and not as_written:
            begins = not columns and _TABLE_RULE.match(lines[at + 1] if at + 1 < len(lines) else "x")
            columns = _cells(line) if begins else columns
            if not begins and not _TABLE_RULE.match(line):
                yield _labelled_cells(line, columns)
        elif not _TABLE_RULE.match(line):
            columns = []
            yield line
        at += 1


def _code_note(code: list[str]) -> Iterator[str]:
    """Yield one or two lines of code as they are, or the number of lines."""
    inside = [line.strip() for line in code if line.strip()]
    if inside:
        yield (
            f"`{' '.join(' '.join(inside).split())}`" if len(inside) <= 2 else f"[{counted(len(inside))} lines of code]"
        )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _labelled_cells(line: str, columns: list[str]) -> str:
    """Return a table row with its column names: `| speed | before: 3 ms | after: 1 ms |`."""
    first, *cells = _cells(line)
    named = columns[1:] if len(columns) == len(cells) + 1 else [""] * len(cells)
    labelled = [f"{name}: {cell}" if name else cell for name, cell in zip(named, cells, strict=True) if cell]
    return f"| {' | '.join((first, *labelled))} |"


def _code_end(lines: list[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        if lines[at].strip() == fence or (lines[at].strip().startswith(fence) and not lines[at].strip(" `~")):
            return at
    return None


_WIDE = lazily("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")


def cut(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters between words, never inside a name, and mark it with an ellipsis."""
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit - 1)
    if end <= 0:  # a script without spaces, or one long run of characters
        wide = [] if text.isascii() else list(_WIDE.finditer(text, 0, max(0, limit - 1)))
        end = wide[-1].end() if wide else 0
    return f"{text[:end].rstrip()} …" if end > 0 else "…"


def first_lines(text: str, count: int | None) -> list[str]:
    """Return the first `count` lines that are not empty, or all of them, each with its spaces collapsed."""
    return [one_line(line) for line in text.splitlines() if line.strip()][:count]
