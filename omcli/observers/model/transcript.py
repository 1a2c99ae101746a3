"""The part of a transcript that a model is shown: a line per message, with a label that it can cite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import accumulate

from omcli.base.errors import PromptTooLong
from omcli.base.record import record, replace
from omcli.llm.model import Picture
from omcli.llm.schema import MOST_ROWS
from omcli.memory.batch import Batch
from omcli.memory.message import Aside, Image, KeptMessage, Message, Role, answers, attachment
from omcli.memory.tokens import TokenCounter
from omcli.pack.budget import largest
from omcli.pack.tail import excerpt
from omcli.text.clean import printable
from omcli.text.dates.instants import minute, spell


@record
class ObserverLimits:
    """Sizes in tokens of the observer's counter, unless it says otherwise."""

    transcript: int = 35_000
    """What is shown of a batch. Messages of a larger one are shown by their beginnings and ends."""
    newest_only: bool = False
    """Of a larger one the newest messages are shown instead, and the others not at all: those only rules observe."""
    previous: int | None = 4_000
    """Rows that stand, at most; and not more than an eighth of the transcript, or 700. None: all of them."""
    output: int = 8_000
    """The texts of all rows of a reply together."""
    reply: int | None = None
    """The whole reply, as the endpoint counts; None leaves it to the provider."""
    args_chars: int = 1_500
    """Characters of the arguments of a tool call."""
    result_chars: int = 1_500
    """Characters of what a tool answered."""
    rows: int = MOST_ROWS
    """Rows of one reply."""


Pictures = Callable[[Image], bytes | None]
"""The bytes of an image, where there are any and the model takes them."""

_TOOLS = frozenset({Role.CALL, Role.RESULT})
_UNSHOWN = frozenset({Aside.COMPACTION, Aside.SUMMARY})
"""Summaries of what was said before: it was observed when it was said."""
_LEAST_CHARS = 24
"""A message of which less is shown says nothing."""
_CHARS_PER_TOKEN = 8
_LAST_SAID_CHARS = 600
"""Characters of what was said before the batch."""


@record
class TranscriptView:
    """What a model is shown of a batch."""

    content: tuple[str | Picture, ...]
    labels: Mapping[str, KeptMessage]
    """The messages by label, in the order of arrival; those before the batch, for reading along, as well."""
    new: frozenset[str]
    """Labels of messages of the batch itself."""
    utc_offset: int | None
    """The zone that times are shown in, in minutes east of UTC; None where they are shown as they are written."""
    tokens: int
    """Of the texts, without pictures."""
    minutes: Mapping[str, str]
    """When the messages were said, as it is shown: `YYYY-MM-DD HH:MM`. Nothing of a message without a time."""


def view_transcript(
    batch: Batch, *, limits: ObserverLimits, counter: TokenCounter, pictures: Pictures
) -> TranscriptView:
    """A batch as a model is shown it. Without labels where nothing in it is for a model to read.

    Raises PromptTooLong where not even excerpts fit into `limits.transcript`.
    """
    before = [*batch.earlier_calls, *([batch.last_said] if batch.last_said else [])]
    earlier = sorted((kept for kept in before if _has_content(kept.message)), key=lambda kept: kept.seq)
    new = [kept for kept in batch.messages if _has_content(kept.message)]
    if limits.newest_only:
        line = _Lines({}, 0, None, limits, pictures)
        new = list(
            newest_fitting(new, room=limits.transcript, cost=lambda kept: counter.text(line.line_of(kept.message)))
        )
    labels = {f"m{number}": kept for number, kept in enumerate((*earlier, *new), start=1)}
    zones = (kept.message.utc_offset for kept in reversed(new))
    zone = next((offset for offset in zones if offset is not None), None)
    longest = None
    written = _Lines(labels, len(earlier), zone, limits, pictures)
    if counter.text(written.text(None)) > limits.transcript:
        longest = _fitting_length(
            lambda chars: counter.text(written.text(chars)) <= limits.transcript, limits.transcript
        )
    return TranscriptView(
        content=tuple(written.content(longest)),
        labels=labels,
        new=frozenset(list(labels)[len(earlier) :]),
        utc_offset=zone,
        tokens=counter.text(written.text(longest)),
        minutes={label: shown_minute(kept.message.at, zone) for label, kept in labels.items() if kept.message.at},
    )


def _fitting_length(fits: Callable[[int], bool], room: int) -> int:
    """The most characters per message with which a transcript fits."""
    best = largest(fits, _LEAST_CHARS, room * _CHARS_PER_TOKEN)
    if best < _LEAST_CHARS:
        raise PromptTooLong(
            f"a batch may have {room} tokens, too few to show one message", hint="raise observe.max_transcript"
        )
    return best


class _Lines:
    """Lines of messages, of any length asked for."""

    def __init__(
        self,
        labels: Mapping[str, KeptMessage],
        earlier: int,
        zone: int | None,
        limits: ObserverLimits,
        pictures: Pictures,
    ) -> None:
        self._lines = list(labels.items())
        self._order = [*range(earlier), *(earlier + at for at in _shown_order(_messages(self._lines[earlier:])))]
        self._earlier = earlier
        self._zone = zone
        self._limits = limits
        self._pictures = pictures

    def text(self, longest: int | None) -> str:
        """All lines, messages up to so many characters."""
        return "".join(part for part in self.content(longest) if isinstance(part, str))

    def line_of(self, message: Message) -> str:
        """A message on lines of its own, with a label and a time of the usual length."""
        return f"m100 2026-01-01 00:00 {self._body(message, None, is_before=False)}\n"

    def content(self, longest: int | None) -> Iterator[str | Picture]:
        """All lines, with pictures in between; the date where it changes."""
        day = ""
        for place in self._order:
            label, kept = self._lines[place]
            at = shown_minute(kept.message.at, self._zone) if kept.message.at else ""
            stamp = f" {at[11:] if at[:10] == day else at}" if at else ""
            day = at[:10] if at else day
            before = " (before)" if place < self._earlier else ""
            yield f"{label}{stamp}{before} {self._body(kept.message, longest, is_before=bool(before))}\n"
            for image in kept.message.images:
                yield f"  {attachment('image', image.media_type, image.size)}\n"
                if (seen := self._pictures(image)) is not None:
                    yield Picture(media_type=image.media_type, data=seen)

    def _body(self, message: Message, longest: int | None, *, is_before: bool) -> str:
        limit = {Role.CALL: self._limits.args_chars, Role.RESULT: self._limits.result_chars}.get(message.role)
        if is_before and message.role is Role.ASSISTANT:
            limit = _LAST_SAID_CHARS
        chars = min((most for most in (limit, longest) if most is not None), default=None)
        text = message.text if chars is None else excerpt(message.text, chars)
        return printable(_with_speaker(message, text.strip("\n"))).rstrip().replace("\n", "\n  ")


def _with_speaker(message: Message, text: str) -> str:
    """A message with who says it; lines after the first are indented, so that none passes for a message."""
    name = f" {message.name}" if message.name else ""
    if message.role is Role.CALL:
        return f"[toolCall {message.tool or '?'}({text})]"
    if message.role is Role.RESULT:
        failed = message.failed or bool(message.exit_code)
        exited = f"exit {message.exit_code}: " if message.exit_code else ""
        return f"[toolResult {message.tool or '?'}{' (error)' if failed else ''}] {exited}{text}"
    if message.role is Role.EVENT:
        return f"[{message.aside or 'event'}] {text}"
    if message.agent is not None:
        return f"{'main agent' if message.role is Role.USER else 'subagent'}{name}: {text}"
    who = "main agent" if message.aside is Aside.DELEGATED else message.role.value
    return f"{who}{name}: {text}"


def _has_content(message: Message) -> bool:
    """Whether there is anything in a message for a model to read."""
    return message.aside not in _UNSHOWN and bool(message.text.strip() or message.images or message.role in _TOOLS)


def _messages(lines: Sequence[tuple[str, KeptMessage]]) -> list[Message]:
    return [kept.message for _, kept in lines]


def _shown_order(messages: Sequence[Message]) -> Iterator[int]:
    """Places of messages in the order in which they are shown: results behind their calls, unless words stand between
    the two."""
    answered = answers(messages)
    stretch = list(accumulate(message.role not in _TOOLS for message in messages))
    shown: set[int] = set()
    for place in range(len(messages)):
        for each in (place, *answered.get(place, ())):
            if each not in shown and stretch[each] == stretch[place]:
                shown.add(each)
                yield each


def shown_minute(at: str, utc_offset: int | None) -> str:
    """An instant as it is shown: `YYYY-MM-DD HH:MM` by the clocks of a zone."""
    if utc_offset and at.endswith("Z"):
        with suppress(OverflowError):
            at = spell(datetime.fromisoformat(at[:-1]) + timedelta(minutes=utc_offset)) or at
    return minute(at)


_LEAST_END_CHARS = 200
"""Characters of a message of which less is left out altogether."""
_MARKER = "[… {} characters before]\n"


def newest_fitting(
    messages: Sequence[KeptMessage], *, room: int, cost: Callable[[KeptMessage], int]
) -> tuple[KeptMessage, ...]:
    """The last messages that come to at most `room` tokens together, oldest first.

    What is left of the room holds the end of the message before them, behind a marker, if that is 200 characters or
    more. `cost` counts a message. Source: duet, which shows the newest 35 000 tokens.
    """
    chosen: list[KeptMessage] = []
    left = room
    for kept in reversed(messages):
        if (size := cost(kept)) > left:
            end = _end_of(kept, left, cost)
            return (*([end] if end else []), *reversed(chosen))
        chosen.append(kept)
        left -= size
    return tuple(reversed(chosen))


def _end_of(kept: KeptMessage, room: int, cost: Callable[[KeptMessage], int]) -> KeptMessage | None:
    """The end of a message that fits; None where that is too little."""
    text = kept.message.text

    def last(chars: int) -> KeptMessage:
        cut = _MARKER.format(len(text) - chars) + text[len(text) - chars :]
        return replace(kept, message=replace(kept.message, text=cut))

    chars = largest(lambda chars: cost(last(chars)) <= room, 0, len(text))
    return last(chars) if chars >= _LEAST_END_CHARS else None
