"""Plain-text dialogues, whose turns begin with `User:` or `Assistant:` in one of the usual notations."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from omcli.base import lazily
from omcli.base.record import field, mutable_record
from omcli.formats import Format
from omcli.formats.injected import INJECTED_TAGS, memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, RecordStream, Sample
from omcli.memory.message import Message, Role
from omcli.memory.transcript import Facts, Item, Reason, Skip
from omcli.text.instants import instant

_SPEAKERS = {
    **dict.fromkeys(("user", "human", "you", "me"), Role.USER),
    **dict.fromkeys(("ai", "assistant", "bot", "chatgpt", "claude"), Role.ASSISTANT),
    "tool": Role.RESULT,
    "system": None,
}
_NAME = rf"(?P<name>{'|'.join(_SPEAKERS)})"
_COLON = r"[ \t]*[:：]"
_TIME = r"(?P<time>\d[\d/. T-]*,?[ T]?\d?\d?:\d\d[\d:.]*(?:[ \u202f]?[ap]\.?m\.?)?Z?)"
# Ways to begin a turn. All turns have the form of the first one, so lists and headings in an answer begin no turn.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # `User: hello`, but not `user:group` and `tool://`
        rf"(?P<mark>){_NAME}[ \t]*(?:：|:(?![A-Za-z0-9/:._~-]))[ \t]*(?P<rest>.*)",
        # `**User:** hello`, `**User**: hello`
        rf"(?P<mark>\*\*|__){_NAME}(?:{_COLON}(?P=mark)|(?P=mark){_COLON})[ \t]*(?P<rest>.*)",
        # `## User`, `### Human: hello`
        rf"(?P<mark>\#{{1,6}} ){_NAME}[ \t]*(?:[:：][ \t]*(?P<rest>.*))?\Z",
        # `[12:03] Ada: hello`
        rf"(?P<mark>\[){_TIME}\][ \t]*(?P<name>[^\W\d_][\w .'-]{{0,38}}?){_COLON}(?:[ \t]+(?P<rest>.*)|\Z)",
    )
)
_FENCE = lazily(r" {0,3}(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})")
_TAG = lazily(rf"[ \t]*<(?P<tag>{'|'.join(INJECTED_TAGS)})(?:\s[^<>]*)?>")
_LONGEST_BLOCK = 2000
"""Maximum number of lines searched for the end of a fence or a tag. If there is no end, no block is opened."""
_SNIFFED = 20
"""Number of turns inspected for detection."""
# A call without text is `None`, as printed by Python. Its result follows as `tool:`.
_CALL = "None"


def detect(sample: Sample) -> bool:
    """Return True if a person and an agent speak, with nothing but a title before them, or if the text begins with a
    turn of several words by `User` or `Human`.

    After a title, a speaker must also occur twice.
    """
    if sample.shape is not InputShape.TEXT:
        return False
    lines = (line.rstrip("\r") for line in sample.text.split("\n"))
    opening, *turns = islice(_turns(lines), _SNIFFED)
    if not turns or (opening.text and opening.title is None):
        return False
    speakers = [turn.speaker.casefold() for turn in turns]
    if {Role.USER, Role.ASSISTANT} <= {turn.role for turn in turns}:
        # A document with a title may also have sections called User and Assistant, but each only once.
        return not opening.text or len(set(speakers)) < len(speakers)
    # Settings files may also have `user:`, but with only one word after it.
    first_line = turns[0].text.partition("\n")[0]
    return not opening.text and turns[0].speaker in ("User", "Human") and " " in first_line


def read(source: RecordStream) -> Iterator[Item]:
    """Yield the items of each turn. Text without turns is one message."""
    turns = _turns(source.text_lines())
    turn = next(turns, None)
    calls, call_id = 0, None
    while turn is not None:
        following = next(turns, None)
        if turn.is_call and following is None:
            yield Skip(Reason.TRUNCATED)  # only the next turn would show if this is a call or an answer
        elif turn.is_call and following is not None and following.role is Role.RESULT:
            calls += 1
            call_id = f"call-{calls}"
            yield Message(role=Role.CALL, text="", at=turn.at, call_id=call_id)
        else:
            yield from _items(turn, call_id=call_id, is_all=following is None)
            call_id = None
        turn = following
    yield from (Skip(Reason.TOO_LONG) for _ in range(source.left_out))


FORMAT = Format(name="text", title="plain text", detect=detect, read=read)


@mutable_record
class _Turn:
    """Text of one speaker up to the next one. The opening, before the first turn, has no speaker."""

    speaker: str
    at: str | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def role(self) -> Role | None:
        """Role of the speaker, or None for a system prompt. Unknown names are people's."""
        return _SPEAKERS.get(self.speaker.casefold(), Role.USER)

    @property
    def title(self) -> str | None:
        """Text of the opening if it is a single Markdown heading, otherwise None."""
        text = self.text
        return text.lstrip("# ") if text.startswith("#") and "\n" not in text else None

    @property
    def is_call(self) -> bool:
        """True if this may be a call without text."""
        return self.role is Role.ASSISTANT and self.text == _CALL


class _Lines:
    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._held: deque[str] = deque()
        self._taken = 0
        """Number of lines taken so far."""
        self._searched: dict[str, int] = {}
        """Number of lines in which there is no further match, by pattern."""

    def __iter__(self) -> Iterator[str]:
        while self._held or self._hold():
            yield self._take()

    def through(self, end: re.Pattern[str]) -> list[str]:
        """Take the lines up to and including the first match, or none if none of the next `_LONGEST_BLOCK` lines
        matches.
        """
        if self._searched.get(end.pattern, 0) > self._taken:
            return []
        for count in range(_LONGEST_BLOCK):
            if count == len(self._held) and not self._hold():
                break
            if end.search(self._held[count]):
                return [self._take() for _ in range(count + 1)]
        self._searched[end.pattern] = self._taken + len(self._held)
        return []

    def _take(self) -> str:
        self._taken += 1
        return self._held.popleft()

    def _hold(self) -> bool:
        line = next(self._lines, None)
        if line is not None:
            self._held.append(line)
        return line is not None


def _turns(lines: Iterator[str]) -> Iterator[_Turn]:
    """Yield the opening (empty if the first line begins a turn), then the turns."""
    reader = _Lines(lines)
    turn = _Turn(speaker="")
    forms, mark = _FORMS, None
    after_blank = True
    for line in reader:
        content = line
        head = _head(line, forms, mark)
        # Right below other text, `System:` is part of a report. Before the first turn, so is every name.
        if head is not None and (after_blank or (mark is not None and head["name"].casefold() != "system")):
            yield turn
            forms, mark = (head.re,), head["mark"]
            turn = _Turn(speaker=head["name"], at=instant(head.groupdict().get("time")))
            content = head["rest"] or ""
        turn.lines.append(content)
        if (end := _block_end(content)) is not None:
            turn.lines += reader.through(end)
        after_blank = not content.strip()
    yield turn


def _head(line: str, forms: tuple[re.Pattern[str], ...], mark: str | None) -> re.Match[str] | None:
    head = next((found for form in forms if (found := form.match(line))), None)
    return head if head is None or mark in (None, head["mark"]) else None


def _block_end(line: str) -> re.Pattern[str] | None:
    """Return the pattern that ends the block opened by a line (fenced code or injected text), if any."""
    if fence := _FENCE.match(line):
        return re.compile(rf"^ {{0,3}}{fence['fence']}{fence['fence'][0]}*[ \t]*\Z")
    if (opened := _TAG.match(line)) and (end := f"</{opened['tag']}>") not in line:
        return re.compile(end)
    return None


def _items(turn: _Turn, *, call_id: str | None, is_all: bool) -> Iterator[Item]:
    """Yield a turn's message, title or `Skip`, or nothing for an empty opening.

    `call_id` is the id of the call right before it, if any. `is_all` is True if nothing follows: a title alone is a
    message.
    """
    said, role = turn.text, turn.role
    if not turn.speaker and turn.title and not is_all:
        yield Facts(title=turn.title)
        return
    if role is None and said:
        yield Skip(Reason.INJECTED)
        return
    kept = said if role is Role.ASSISTANT else own_words(said) if role is Role.USER else without_injected(said)
    if role is Role.USER:
        yield from memory_skips(said)
    if role is Role.RESULT:
        failed = True if kept.startswith("Error") else None
        yield Message(role=role, text=kept, at=turn.at, call_id=call_id, failed=failed)
    elif kept and role is not None:
        name = turn.speaker if turn.speaker.casefold() not in ("", *_SPEAKERS) else None
        yield Message(role=role, text=kept, at=turn.at, name=name)
    elif turn.speaker or said:
        yield Skip(Reason.INJECTED if said else Reason.NOISE)
