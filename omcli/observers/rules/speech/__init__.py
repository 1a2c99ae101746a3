"""Sentences grouped into rows, one fact each, and the draft of a row of speech."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.base.record import positional_record
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Status, Type
from omcli.observers.rules import cues
from omcli.observers.rules.sentences import Segment, word_count
from omcli.text.spoken_dates import spoken_date

MIN_CHARACTERS = 20
"""Characters below which a sentence without a name says nothing."""


def text_draft(source: KeptMessage, text: str, kind: Type, importance: int, *, status: Status | None = None,
           also: KeptMessage | None = None) -> Draft:  # fmt: skip
    seqs = {source.seq} if also is None else {source.seq, also.seq}
    return Draft(text=text, type=kind, importance=importance, status=status, sources=tuple(sorted(seqs)),
                 event_at=source.message.at, refers_to=date_of_row(text, kind, source, also))  # fmt: skip


_ROW_WORDS = 45
"""Words beyond which no sentence is added to a row."""
_QUESTION_BEGINS_WITHIN = 60
"""Characters after a comma in which a question is recognised."""
_FRAGMENT_WORDS = 3
"""Words up to which a sentence says nothing on its own."""
_SHORT_WORDS = 8
"""Words up to which a sentence joins another of its type: "Fixed. All tests pass."."""
_OWN_ROW = frozenset({Type.INSTRUCTION, Type.PREFERENCE, Type.DECISION, Type.CORRECTION, Type.QUESTION, Type.BLOCKER})
"""Types that always start a row of their own."""
_ONE_PER_ROW = frozenset({Type.FACT, Type.OUTCOME})
"""Types of which a row holds one."""

_COMMA = lazily(r",\s+(?:and |but |so )?(?=\w)")


@positional_record
class SentenceGroup:
    """The sentences of one row."""

    text: str
    kind: Type | None
    """Type of the first sentence that has one."""


def group_sentences(parts: Sequence[Segment], kinds: Sequence[Type | None]) -> Iterator[SentenceGroup]:
    """Group sentences into rows: one joins the last if it depends on it or neither has a type."""
    row: list[Segment] = []
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
                yield SentenceGroup(joined_sentences(row), kind)
            row, kind, words = [], part_kind, 0
        row.append(part)
        words += size
    if row:
        yield SentenceGroup(joined_sentences(row), kind)


def _belongs_to_group(
    last: Segment, kind: Type | None, part: Segment, part_kind: Type | None, size: int, *, is_listing: bool
) -> bool:
    """Return True if a sentence joins the row that ends with `last`; `is_listing` if the row opens a list."""
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


def joined_sentences(parts: Sequence[Segment]) -> str:
    """Join segments on one line: headings are followed by a colon, items separated by dots."""
    text = ""
    for at, part in enumerate(parts):
        joint = "" if not text else ": " if parts[at - 1].is_heading else " · " if part.is_item else " "
        text += joint + part.text
    return text.rstrip(",")


def split_question(part: Segment) -> Iterator[Segment]:
    """Split off a question after a comma: "I use SQLite, how do I index it?"."""
    start = 0
    for joint in _COMMA.finditer(part.text):
        statement = part.text[start : joint.start() + 1]
        question = part.text[joint.end() : joint.end() + _QUESTION_BEGINS_WITHIN]
        if word_count(statement) > _FRAGMENT_WORDS and cues.starts_question(question):
            yield Segment(statement, is_item=part.is_item)
            start = joint.end()
    yield Segment(part.text[start:], is_item=part.is_item, is_heading=part.is_heading)


def date_of_row(text: str, kind: Type, *sources: KeptMessage | None) -> str | None:
    """Return the date a row refers to if all its messages agree; midnight may lie between question and answer.

    None for events, whose texts are commands.
    """
    if kind is Type.EVENT:
        return None
    said = (source.message for source in sources if source is not None)
    readings = {spoken_date(text, at=message.at, utc_offset=message.utc_offset) for message in said}
    return readings.pop() if len(readings) == 1 else None
