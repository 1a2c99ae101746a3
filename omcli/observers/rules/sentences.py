"""Splitting text, without code and markup, into sentences, headings, items and table rows, and grouping them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import attrgetter

from omcli.base import lazily
from omcli.base.record import positional_record, record
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.observers.rules import cues
from omcli.text.clean import is_word_split, one_line, word_end
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
"""Maximum length, in characters, of a sentence that is not split into clauses."""
_CLAUSE_END = lazily(r"(?<=[,;:] )|(?= (?:and|but|so|or|because|und|aber|et|mais|y|pero) )|(?<=[，；：、])")
_CJK = lazily(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ABBREVIATION = lazily(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|ms|dr|st|prof|inc|jr|sr)|\b[A-Z]|\b\d{1,2})\.$", re.IGNORECASE
)
_CACHE_SIZE = 64
"""Number of texts whose parts are cached, because a turn's last text is read twice."""


@positional_record
class TextPart:
    """A sentence, list item, heading or table row, on one line."""

    text: str
    is_item: bool = False
    is_heading: bool = False


text_of: Callable[[TextPart], str] = attrgetter("text")


@lru_cache(maxsize=_CACHE_SIZE)
def text_parts(text: str) -> tuple[TextPart, ...]:
    """Return the sentences, list items, headings and table rows in text, without fenced code."""
    parts: list[TextPart] = []
    written = list(_lines_without_code(text, as_written=False))
    for line, following in pairwise([*_joined_lines(written), ""]):
        if _TABLE.match(line):
            parts.append(TextPart(_clean(" | ".join(filter(None, _cells(line)))), is_item=True))
            continue
        heading, bullet = _HEADING.match(line), _BULLET.match(line)
        mark = heading or bullet
        body = _clean(line[mark.end() :] if mark else line)
        if not body:
            continue
        if heading or _is_heading(line, body, following):
            parts.append(TextPart(body.rstrip(":"), is_heading=True))
        elif bullet:
            parts.append(TextPart(body, is_item=True))
        else:
            parts.extend(map(TextPart, sentences(body)))
    return tuple(parts)


def heading_texts(text: str) -> list[str]:
    """Return the Markdown headings of the two highest levels in text, without fenced code."""
    lines = list(filter(_HEADING.match, _lines_without_code(text, as_written=False)))
    levels = sorted({_mark_size(line) for line in lines})[:2]
    return [_clean(_HEADING.sub("", line)).rstrip(":") for line in lines if _mark_size(line) in levels]


def _mark_size(line: str) -> int:
    return line.split(maxsplit=1)[0].count("#")


def _is_heading(line: str, body: str, following: str) -> bool:
    """Return True if a short line of one sentence ends with a colon, or if it ends without punctuation and a list
    follows. Below a list item, the list must be indented deeper.
    """
    if body.endswith((":", "：")):
        return len(body) < _HEADING_CHARACTERS and not _END.search(body)
    if len(body) > _HEADING_CHARACTERS or body[-1] in ".!?…。！？,;" or not (below := _BULLET.match(following)):
        return False
    return not _BULLET.match(line) or _indent(below[0]) > _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined_lines(lines: Iterable[str]) -> list[str]:
    """Return the non-blank lines. A long line is joined with the next one if that starts in lower case."""
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
    """Split a line of prose into sentences, and long sentences into clauses, but not after abbreviations or in
    versions.
    """
    found: list[str] = []
    for piece in (_END if is_word_split(line) else _END_UNSPACED).split(line):
        if found and len(found[-1]) < _MAX_SENTENCE and _ABBREVIATION.search(found[-1][-12:]):
            found[-1] += f" {piece}"
        elif piece.strip():
            found.append(piece.strip())
    return list(chain.from_iterable(map(_clauses, found)))


def _clauses(sentence: str) -> list[str]:
    if len(sentence) <= _MAX_SENTENCE:
        return [sentence]
    stretches: list[str] = []
    stretch = ""
    for clause in _CLAUSE_END.split(sentence):
        if len(stretch) > _MAX_SENTENCE // 4 and len(stretch) + len(clause) > _MAX_SENTENCE:
            stretches.append(stretch.strip())
            stretch = ""
        stretch += clause
    return [*stretches, stretch.strip()] if stretch.strip() else stretches


def word_count(text: str) -> int:
    """Return the number of words. In scripts without spaces, two characters count as a word."""
    return len(text.split()) + _cjk_count(text) // 2


def shared_words(answer: str, question: str, letters: int = 5) -> set[str]:
    """Return the first five letters of each word that a question and an answer share, so that "report" matches
    "reporting". Only words of the question with at least `letters` letters count.
    """
    words = {word[:5].lower() for word in re.findall(rf"\w{{{letters},}}", question)}
    return words & {word[:5].lower() for word in re.findall(r"\w+", answer)}


def text_length(text: str) -> int:
    """Return the length in characters, with each CJK character counted as three."""
    return len(text) + 2 * _cjk_count(text)


def _cjk_count(text: str) -> int:
    return 0 if text.isascii() else len(_CJK.findall(text))


def _clean(text: str) -> str:
    """Return text on one line, without the `**` around bold text. Inline code and names such as `**kwargs` are
    unchanged.
    """
    line = one_line(text)
    if "**" not in text:
        return line
    pieces = _INLINE_CODE.split(_STRONG_CODE.sub(r"\1", line))
    return "".join(part if part.startswith("`") else _STRONG.sub(r"\1", part) for part in pieces).strip()


def without_code(text: str) -> str:
    """Return text on one line, with each long block of fenced code replaced by its number of lines."""
    return one_line("\n".join(_lines_without_code(text, as_written=True)))


def _lines_without_code(text: str, *, as_written: bool) -> Iterator[str]:
    """Yield the lines outside code blocks. The mark of an unclosed block is skipped.

    With `as_written`, a block of one or two lines becomes inline code, a longer one `[N lines of code]`, and table rows
    stay as they are. Otherwise code is dropped, and each table row names its columns.
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
                yield _named_cells(line, columns)
        elif not _TABLE_RULE.match(line):
            columns = []
            yield line
        at += 1


def _code_note(code: list[str]) -> Iterator[str]:
    """Yield up to two lines of code, joined, or a note that gives the number of lines."""
    inside = [line.strip() for line in code if line.strip()]
    if inside:
        yield (
            f"`{' '.join(' '.join(inside).split())}`" if len(inside) <= 2 else f"[{counted(len(inside))} lines of code]"
        )


def _cells(line: str) -> list[str]:
    return list(map(str.strip, line.strip().strip("|").split("|")))


def _named_cells(line: str, columns: list[str]) -> str:
    """Return a table row with its column names, as in `| speed | before: 3 ms | after: 1 ms |`."""
    first, *cells = _cells(line)
    named = columns[1:] if len(columns) == len(cells) + 1 else [""] * len(cells)
    labelled = [f"{name}: {cell}" if name else cell for name, cell in zip(named, cells, strict=True) if cell]
    return f"| {' | '.join((first, *labelled))} |"


def _code_end(lines: list[str], start: int, fence: str) -> int | None:
    for at in range(start, len(lines)):
        if lines[at].strip() == fence or (lines[at].strip().startswith(fence) and not lines[at].strip(" `~")):
            return at
    return None


def cut(text: str, limit: int) -> str:
    """Return text of at most `limit` characters. Longer text ends with an ellipsis after a word (see `word_end`). If
    not even the first word fits, only the ellipsis is left.
    """
    if len(text) <= limit:
        return text
    end = word_end(text, limit - 2)
    return f"{text[:end].rstrip()} …" if end else "…"


def first_lines(text: str, count: int | None) -> list[str]:
    """Return the first `count` non-blank lines, or all if it is None, with spaces collapsed."""
    return [one_line(line) for line in text.splitlines() if line.strip()][:count]


MIN_CHARACTERS = 20
"""Minimum length (`text_length`) of a sentence that is kept although it contains no anchor and answers nothing."""


def text_draft(source: KeptMessage, text: str, kind: Type, importance: int, *, priority: Priority | None = None,
           status: Status | None = None, also: KeptMessage | None = None) -> Draft:  # fmt: skip
    """Return a row about a message and the message that it answers or refuses (`also`), if any. `refers_to` is set
    later.
    """
    seqs = {source.seq} if also is None else {source.seq, also.seq}
    return Draft(text=text, type=kind, importance=importance, priority=priority, status=status,
                 sources=tuple(sorted(seqs)), event_at=source.message.at)  # fmt: skip


_ROW_WORDS = 45
"""Maximum number of words in a row made of several sentences."""
_QUESTION_BEGINS_WITHIN = 60
"""Number of characters examined after a comma for the start of a question."""
_FRAGMENT_WORDS = 3
"""Maximum number of words in a fragment, which has no meaning on its own."""
_SHORT_WORDS = 8
"""Maximum number of words in a fact or result that joins another: "Fixed. All tests pass."."""
_OWN_ROW = frozenset({Type.INSTRUCTION, Type.PREFERENCE, Type.DECISION, Type.CORRECTION, Type.QUESTION, Type.BLOCKER})
"""Types of sentences that always start a new row, except after a heading."""
_ONE_PER_ROW = frozenset({Type.FACT, Type.OUTCOME})
"""Types of sentences that join a row only if they are short (`_SHORT_WORDS`), go on from the sentence before, or stand
under a heading or an introduction.
"""

_COMMA = lazily(r",\s+(?:and |but |so )?(?=\w)")


@positional_record
class RowText:
    text: str
    kind: Type | None
    """Type of the first sentence that has one, or None if none has."""


def group_sentences(parts: Sequence[TextPart], kinds: Sequence[Type | None]) -> Iterator[RowText]:
    """Group sentences into rows. A sentence joins the previous row if it depends on that row or fits its type, and the
    row stays within `_ROW_WORDS`.
    """
    row: list[TextPart] = []
    kind: Type | None = None
    words = 0
    for part, part_kind in zip(parts, kinds, strict=True):
        size = word_count(part.text)
        is_listing = any(opens.is_heading or opens.text.endswith(":") for opens in row)
        joins = bool(row) and _belongs_to_group(row[-1], kind, part, part_kind, size, is_listing=is_listing)
        if joins and words + size <= _ROW_WORDS:
            kind = kind or part_kind
        else:
            if row:
                yield RowText(joined_sentences(row), kind)
            row, kind, words = [], part_kind, 0
        row.append(part)
        words += size
    if row:
        yield RowText(joined_sentences(row), kind)


def _belongs_to_group(
    last: TextPart, kind: Type | None, part: TextPart, part_kind: Type | None, size: int, *, is_listing: bool
) -> bool:
    """Return True if a sentence joins the row that ends with `last`.

    `is_listing` means that this row introduces a list.
    """
    if last.is_heading:
        return True
    if part_kind in _OWN_ROW or part.is_heading:
        return False
    if last.is_item and not part.is_item and last.text[-1] not in ".!?。！？:":
        return False
    if not part.is_item and (cues.follows_on(part.text) or (size <= _FRAGMENT_WORDS and kind not in _OWN_ROW)):
        return True
    if part.is_item != last.is_item:
        return last.text.endswith(":")
    if part.is_item and is_listing and part_kind is None:
        return True
    return (part_kind not in _ONE_PER_ROW or size <= _SHORT_WORDS) and (kind is None or kind is part_kind)


def joined_sentences(parts: Sequence[TextPart]) -> str:
    """Join parts on one line, with a colon after a heading and a middle dot before a list item."""
    text = ""
    for at, part in enumerate(parts):
        joint = "" if not text else ": " if parts[at - 1].is_heading else " · " if part.is_item else " "
        text += joint + part.text
    return text.rstrip(",")


def split_question(part: TextPart) -> Iterator[TextPart]:
    """Yield a sentence, with each question after a comma as a separate part: "I use SQLite, how do I index it?".

    A question after a fragment, as in "OK, can you …", is not separated.
    """
    start = 0
    for joint in _COMMA.finditer(part.text):
        statement = part.text[start : joint.start() + 1]
        question = part.text[joint.end() : joint.end() + _QUESTION_BEGINS_WITHIN]
        if word_count(statement) > _FRAGMENT_WORDS and cues.starts_question(question):
            yield TextPart(statement, is_item=part.is_item)
            start = joint.end()
    yield TextPart(part.text[start:], is_item=part.is_item, is_heading=part.is_heading)


# ---- prompts without pasted passages

_MARKS = 0xF0000
"""First code point of the characters that stand for passages. They are in a plane for private use."""
_MOST_PASSAGES = 4_000
_MARK = lazily("[\U000f0000-\U000f0f9f]")
_MARKED_LINE = lazily("^[\\s\U000f0000-\U000f0f9f]*$")
_HAS_WORDS = lazily(r"\w")
_LONG_PASSAGE = 200
"""Maximum length, in characters, of a passage that stays in the row of the sentence around it."""
_MAY_SHOW = lazily(r"[^\S ]|[:<>$➜❯\"“„«]|(?<!\w)'")
"""Matches a character that every prompt with a pasted or quoted passage has, apart from a long line of data."""


@record
class Pasted:
    """A prompt in which marks replace the passages that the person pasted or quoted (see `pasted.passages`). Passages
    without a word are left out.
    """

    words: str
    passages: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Pasted:
        if len(text) <= _LONG_PASSAGE and not _MAY_SHOW.search(text):
            return cls(words=text, passages=())
        from omcli.observers.rules.pasted import passages  # noqa: PLC0415

        words: list[str] = []
        shown: list[str] = []
        after = 0
        for start, end in passages(text)[:_MOST_PASSAGES]:
            words.append(text[after:start])
            if _HAS_WORDS.search(text, start, end):
                words.append(chr(_MARKS + len(shown)))
                shown.append(text[start:end])
            after = end
        return cls(words="".join((*words, text[after:])), passages=tuple(shown))

    def restore(self, text: str) -> str:
        """Return a part of the words with the passages, each on one line, in place of their marks."""
        return _MARK.sub(lambda found: self._passage(found[0]), text) if self.passages else text

    def without_blocks(self) -> tuple[str, list[str]]:
        """Return the words without passages that take up whole lines or are long, and the lines of these passages."""
        lines: list[str] = []
        kept: list[str] = []
        gone: list[str] = []
        for line in self.words.splitlines():
            marks = _MARK.findall(line)
            is_block = marks and is_marked(line)
            for mark in marks:
                passage = self.passages[ord(mark) - _MARKS] if ord(mark) - _MARKS < len(self.passages) else ""
                if is_block or len(passage) > _LONG_PASSAGE:
                    lines += filter(str.strip, passage.splitlines())
                    gone.append(mark)
            kept.append("" if is_block else _MARK.sub(lambda found: "…" if found[0] in gone else found[0], line))
        return "\n".join(kept), lines

    def _passage(self, mark: str) -> str:
        at = ord(mark) - _MARKS
        return one_line(self.passages[at]) if at < len(self.passages) else mark


def is_marked(text: str) -> bool:
    """Return True if words contain nothing but marks and white space, or nothing at all."""
    return bool(_MARKED_LINE.match(text))
