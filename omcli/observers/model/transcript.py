"""A transcript as shown to a model. Each message has a label that the model can cite."""

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
from omcli.memory.message import (
    Image,
    KeptMessage,
    Message,
    MessageKind,
    Role,
    TokenCounter,
    attachment,
    results_by_call,
)
from omcli.pack.budget import last_fitting
from omcli.pack.tail import excerpt
from omcli.text.clean import printable
from omcli.text.instants import format_time, minute


@record
class ObserverLimits:
    """Limits for a prompt and its reply, in tokens of the observer's counter unless stated otherwise."""

    transcript: int = 35_000
    """Maximum size of the transcript. In a larger transcript, long messages are cut to their beginning and end."""
    newest_only: bool = False
    """True to show only the newest messages of a larger batch and leave the others to the rules."""
    previous: int | None = 4_000
    """Maximum size of the context rows, which are also limited to an eighth of the transcript, or 700 tokens if that is
    more. None removes both limits.
    """
    output: int = 8_000
    """Maximum size of the text of all rows in a reply."""
    reply: int | None = None
    """Maximum size of the whole reply, as counted by the endpoint. None leaves it to the provider."""
    args_chars: int = 1_500
    """Maximum number of characters shown of a tool call's arguments."""
    result_chars: int = 1_500
    """Maximum number of characters shown of a tool result."""
    rows: int = MOST_ROWS
    """Maximum number of rows in a reply."""


Pictures = Callable[[Image], bytes | None]
"""Function that returns the bytes of an image, or None if it is not available or the model does not accept it."""

_TOOLS = frozenset({Role.CALL, Role.RESULT})
_UNSHOWN = frozenset({MessageKind.COMPACTION, MessageKind.SUMMARY})
"""Kinds of messages that are not shown, because they summarise messages that have already been observed."""
_LEAST_CHARS = 24
"""Minimum number of characters shown per message when messages are cut."""
_CHARS_PER_TOKEN = 8
_LAST_SAID_CHARS = 600
"""Maximum number of characters shown of the agent's last text before the batch."""


@record
class TranscriptView:
    """A batch as shown to a model."""

    content: tuple[str | Picture, ...]
    labels: Mapping[str, KeptMessage]
    """Messages by label, the oldest first, including earlier messages shown for context."""
    new: frozenset[str]
    """Labels of the batch's own messages."""
    utc_offset: int | None
    """Offset of the times shown, in minutes east of UTC. None means that times are shown as stored."""
    tokens: int
    """Size of the text, without pictures."""
    minutes: Mapping[str, str]
    """Time of each message as shown (`YYYY-MM-DD HH:MM`), by label. Messages without a time have no entry."""


def view_transcript(
    batch: Batch, *, limits: ObserverLimits, counter: TokenCounter, pictures: Pictures
) -> TranscriptView:
    """Return the view of a batch that a model gets to see. Its `new` is empty if nothing in the batch can be shown.

    Raise PromptTooLong if even the shortest excerpts do not fit into `limits.transcript`.
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
    """Return the largest number of characters per message that lets the transcript fit.

    Raise PromptTooLong if that number is less than `_LEAST_CHARS`.
    """
    best = last_fitting(fits, _LEAST_CHARS, room * _CHARS_PER_TOKEN)
    if best < _LEAST_CHARS:
        raise PromptTooLong(
            f"a batch may have {room} tokens, too few to show one message", hint="raise observe.max_transcript"
        )
    return best


class _Lines:
    """Formats messages as labelled lines, each cut to a given length."""

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
        return "".join(part for part in self.content(longest) if isinstance(part, str))

    def line_of(self, message: Message) -> str:
        """Return one message as it would be shown, with a placeholder label and time, to count its tokens."""
        return f"m100 2026-01-01 00:00 {self._shown_text(message, None, is_before=False)}\n"

    def content(self, longest: int | None) -> Iterator[str | Picture]:
        """Yield all lines, and each picture after its message. A date is shown only when it changes. `longest` limits
        the characters of each message, besides the limits of its role.
        """
        day = ""
        for place in self._order:
            label, kept = self._lines[place]
            at = shown_minute(kept.message.at, self._zone) if kept.message.at else ""
            stamp = f" {at[11:] if at[:10] == day else at}" if at else ""
            day = at[:10] if at else day
            before = " (before)" if place < self._earlier else ""
            yield f"{label}{stamp}{before} {self._shown_text(kept.message, longest, is_before=bool(before))}\n"
            for image in kept.message.images:
                yield f"  {attachment('image', image.media_type, image.size)}\n"
                if (seen := self._pictures(image)) is not None:
                    yield Picture(media_type=image.media_type, data=seen)

    def _shown_text(self, message: Message, longest: int | None, *, is_before: bool) -> str:
        limit = {Role.CALL: self._limits.args_chars, Role.RESULT: self._limits.result_chars}.get(message.role)
        if is_before and message.role is Role.ASSISTANT:
            limit = _LAST_SAID_CHARS
        chars = min((most for most in (limit, longest) if most is not None), default=None)
        text = message.text if chars is None else excerpt(message.text, chars)
        return printable(_with_speaker(message, text.strip("\n"))).rstrip().replace("\n", "\n  ")


def _with_speaker(message: Message, text: str) -> str:
    name = f" {message.name}" if message.name else ""
    if message.role is Role.CALL:
        return f"[toolCall {message.tool or '?'}({text})]"
    if message.role is Role.RESULT:
        failed = message.failed or bool(message.exit_code)
        exited = f"exit {message.exit_code}: " if message.exit_code else ""
        return f"[toolResult {message.tool or '?'}{' (error)' if failed else ''}] {exited}{text}"
    if message.role is Role.EVENT:
        return f"[{message.kind or 'event'}] {text}"
    if message.agent is not None:
        return f"{'main agent' if message.role is Role.USER else 'subagent'}{name}: {text}"
    who = "main agent" if message.kind is MessageKind.DELEGATED else message.role.value
    return f"{who}{name}: {text}"


def _has_content(message: Message) -> bool:
    return message.kind not in _UNSHOWN and bool(message.text.strip() or message.images or message.role in _TOOLS)


def _messages(lines: Sequence[tuple[str, KeptMessage]]) -> list[Message]:
    return [kept.message for _, kept in lines]


def _shown_order(messages: Sequence[Message]) -> Iterator[int]:
    """Yield message indexes in the order shown. Results directly follow their calls unless someone spoke in between."""
    answered = results_by_call(messages)
    stretch = list(accumulate(message.role not in _TOOLS for message in messages))
    shown: set[int] = set()
    for place in range(len(messages)):
        for each in (place, *answered.get(place, ())):
            if each not in shown and stretch[each] == stretch[place]:
                shown.add(each)
                yield each


def shown_minute(at: str, utc_offset: int | None) -> str:
    """Return a time as `YYYY-MM-DD HH:MM`. A time in UTC is shifted by `utc_offset`, in minutes east of UTC."""
    if utc_offset and at.endswith("Z"):
        with suppress(OverflowError):
            at = format_time(datetime.fromisoformat(at[:-1]) + timedelta(minutes=utc_offset)) or at
    return minute(at)


_LEAST_END_CHARS = 200
"""Minimum number of characters to show of a message that is cut to its end."""
_MARKER = "[… {} characters before]\n"


def newest_fitting(
    messages: Sequence[KeptMessage], *, room: int, cost: Callable[[KeptMessage], int]
) -> tuple[KeptMessage, ...]:
    """Return the newest messages that fit into `room` tokens, oldest first.

    The end of the message before them is added after a marker, if at least 200 characters of it fit. `cost` returns the
    number of tokens in a message. Source: duet, which shows the newest 35,000 tokens.
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
    """Return the longest end of a message that fits, or None if that is too short."""
    text = kept.message.text

    def last(chars: int) -> KeptMessage:
        cut = _MARKER.format(len(text) - chars) + text[len(text) - chars :]
        return replace(kept, message=replace(kept.message, text=cut))

    chars = last_fitting(lambda chars: cost(last(chars)) <= room, 0, len(text))
    return last(chars) if chars >= _LEAST_END_CHARS else None
