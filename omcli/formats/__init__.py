"""Transcript formats of other tools, detected by content, and readers that work by record or by turn.

How to add a format is described in `omcli/README.md`. The order of the lines in `_FORMATS` is the order of detection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Protocol

from omcli.base.errors import BadUsage, UnknownFormat
from omcli.base.record import record, replace
from omcli.formats.injected import is_export, opening_memory
from omcli.formats.source import SQLITE, InputShape, Record, RecordStream, Sample, with_speaker
from omcli.formats.values import record as mapping
from omcli.formats.values import text
from omcli.memory.message import Message
from omcli.memory.transcript import Checkpoint, Facts, Item, NewConversation, ReaderState, Reason, Skip
from omcli.text.instants import instant, utc_offset

# Module and keys of each format, in the order of detection, with the most specific format first. A module is imported
# only if one of its keys occurs in the input (`keys_of`), or if it has no keys.
_FORMATS: Mapping[str, tuple[str, frozenset[str]]] = {
    "codex": ("codex", frozenset({"type", "record_type", "instructions", "ts", "input", "output"})),
    "pi": (
        "pi",
        frozenset(
            {"type", "stopReason", "toolCallId", "command", "summary", "messagesToSummarize", "preparation", "state"}
        ),
    ),
    "claude-code": (
        "claude_code",
        frozenset({"sessionId", "parentUuid", "leafUuid", "snapshot", "session_id"}),
    ),
    "gemini": ("gemini", frozenset({"projectHash", "$set", "$rewindTo", "tokens", "thoughts", "toolCalls"})),
    "opencode": ("opencode", frozenset({"info"})),
    "copilot": ("copilot", frozenset({"data", "timeline"})),
    "cursor": ("cursor", frozenset({"message"})),
    "anthropic": ("anthropic_messages", frozenset({"messages", "stop_reason", "content.type", "content.source"})),
    "openai": (
        "openai_chat",
        frozenset({"role", "messages", "traj", "conversation", "conversations", "request"}),
    ),
    "text": ("plain_text", frozenset()),
}
NAMES = tuple(_FORMATS)
_OF_CHAT = ("anthropic", "openai")


@record
class TranscriptFolders:
    """Folders in which a program keeps its transcripts."""

    homes: tuple[str, ...]
    """Base folders. `~` is the home directory."""
    patterns: tuple[str, ...]
    """Glob patterns of transcript files, relative to a base folder."""
    variable: str | None = None
    """Environment variable with a base folder to use instead of `homes`."""


@record
class Format:
    name: str
    """Value of `--format`."""
    title: str
    """Name shown to users."""
    detect: Callable[[Sample], bool]
    """Returns True if the sample looks like this format. The first matching format is used."""
    read: Callable[[RecordStream], Iterator[Item]]
    """Yields items in file order. Unusable records become `Skip` instead of raising an error."""
    folders: TranscriptFolders | None = None
    """None if no program keeps transcripts in this format."""
    copies: bool = False
    """True if a resumed session repeats messages of earlier ones, with their ids and times (see `Identities`)."""


# ---- detection


def named(name: str) -> Format:
    """Return the format with this name. Raise BadUsage if it is unknown."""
    if name not in _FORMATS:
        raise BadUsage(f"unknown format `{name}`", hint=f"formats: {', '.join(NAMES)}")
    found: Format = import_module(f"omcli.formats.{_FORMATS[name][0]}").FORMAT
    return found


def chosen(name: str, source: RecordStream) -> Format:
    """Return the format with this name. Raise BadUsage if it is unknown, and UnknownFormat if it is `text` but the
    input is not (`InputShape.TEXT`).
    """
    found = named(name)
    if found.name == "text" and source.shape is not InputShape.TEXT:
        raise UnknownFormat("this is JSON, not plain text", hint="leave out --format to detect the format")
    return found


def detect(source: RecordStream) -> Format:
    """Return the format of an input, judged by its content alone.

    Raise UnknownFormat if no format matches, or if the input is exported memory.
    """
    if is_export(source.beginning):
        raise UnknownFormat("this is exported memory, not a transcript", hint="use `om import` for it")
    for entry in possible_formats(source.sample):
        if entry.detect(source.sample):
            return entry
    raise _unknown(source.sample)


def _unknown(sample: Sample) -> UnknownFormat:
    """Return the error for an input that fits no format, with the name of the program that wrote it if it is known.

    The hint says which input om reads or, for prose, which option reads it as one message.
    """
    from omcli.formats.known import known_name  # noqa: PLC0415 - only for the error

    hint = f"om reads {', '.join(NAMES)}; see om-transcript(5)"
    if sample.text.startswith(SQLITE.decode()):
        return UnknownFormat("this is an SQLite database", hint="om reads that of OpenCode, from its file")
    if known := known_name(sample):
        return UnknownFormat(f"this is {known}, which om cannot read yet", hint=hint)
    if _is_prose(sample):
        hint = "`--format text` reads it as one message"
    return UnknownFormat("not a transcript in any format om knows", hint=hint)


def _is_prose(sample: Sample) -> bool:
    """Return True for text that is neither binary nor a single JSON value."""
    import json  # noqa: PLC0415 - only for the error

    if sample.shape is not InputShape.TEXT or "\0" in sample.text:
        return False
    try:
        json.loads(sample.text)
    except (ValueError, RecursionError):
        return True
    return False


def detect_chat(source: RecordStream) -> Format:
    """Return the format of messages sent to a model: OpenAI chat or Anthropic. Raise UnknownFormat for any other."""
    for entry in possible_formats(source.sample, _OF_CHAT):
        if entry.detect(source.sample):
            return entry
    raise UnknownFormat("the messages are neither OpenAI chat messages nor Anthropic Messages")


def possible_formats(sample: Sample, names: Iterable[str] = NAMES) -> Iterator[Format]:
    """Yield the formats that an input may have, judged by its keys. A format's module is imported just before it is
    yielded.
    """
    found = keys_of(sample)
    for name in names:
        _, keys = _FORMATS[name]
        if not keys or not keys.isdisjoint(found):
            yield named(name)


def keys_of(sample: Sample) -> frozenset[str]:
    """Return the keys of all records in a sample, and the keys of their content's parts as `content.<key>`."""
    keys: set[str] = set()
    for entry in sample.records:
        keys.update(entry)
        content = entry.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                keys.update(map("content.".__add__, part))
    return frozenset(keys)


TRANSCRIPTS = (".jsonl", ".ndjson")
"""Suffixes of transcript files."""


def agent_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the transcripts in the agents' own folders."""
    for format_name in NAMES:
        folders = named(format_name).folders
        if folders is None:
            continue
        other = environment.get(folders.variable, "").strip() if folders.variable else ""
        for pattern in folders.patterns:
            for home in (other,) if other else folders.homes:
                yield from sorted(Path(os.path.expanduser(home)).glob(pattern))  # noqa: PTH111 - Path.expanduser may raise


# ---- readers


class Reader(Protocol):
    """Reads a transcript record by record. Its state can be stored between records."""

    def items(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one record."""

    def end(self) -> Iterator[Item]:
        """Yield the items still held back at the end of the input."""

    def state(self) -> ReaderState | None:
        """Return a state from which another reader can resume, or None while an item is held back."""


def by_record(begin: Callable[[ReaderState | None], Reader]) -> Callable[[RecordStream], Iterator[Item]]:
    """Return a `Format.read` function. `begin` makes a reader, resumed from a state if one is given."""

    def read(source: RecordStream) -> Iterator[Item]:
        reader = begin(source.state)
        for entry in source.records():
            if isinstance(entry, dict):
                yield from map(partial(with_speaker, entry=entry), reader.items(entry))
            elif not isinstance(entry, Checkpoint):
                yield entry
            elif (state := reader.state()) is not None:
                yield replace(entry, reader_state=state)
        yield from reader.end()

    return read


_TIMES = ("timestamp", "created_at", "createdAt", "ts", "time", "date")
"""Keys for the time of a turn. No API defines one, so programs choose their own."""


class TurnReader(Protocol):
    """Reads one conversation turn by turn."""

    def whole(self, entry: Record) -> Iterator[Item]:
        """Yield the session's facts from the object that contains the whole conversation."""

    def turn(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one turn."""

    def state(self) -> ReaderState:
        """Return a state from which another reader can resume."""


Begin = Callable[[ReaderState | None], TurnReader]
"""Starts a conversation, or resumes one from a state."""


def by_turn(
    *, turns_of: Callable[[Record], list[object] | None], begin: Begin
) -> Callable[[RecordStream], Iterator[Item]]:
    """Return a `Format.read` function.

    A record is a whole conversation if `turns_of` returns a list, otherwise a turn of the current conversation.
    """

    def read(source: RecordStream) -> Iterator[Item]:
        has_begun = source.state is not None
        turns = _Turns(begin, source.state)
        for entry in source.records():
            if isinstance(entry, Checkpoint):
                if has_begun:
                    yield replace(entry, reader_state=turns.state())
            elif not isinstance(entry, dict):
                yield entry
            elif (given := turns_of(entry)) is None:
                has_begun = True
                yield from turns.items(entry)
            else:
                if has_begun:
                    yield NewConversation()
                has_begun = True
                turns = _Turns(begin, None)
                yield from turns.whole(entry)
                for turn in given:
                    yield from turns.items(turn) if isinstance(turn, dict) else (Skip(Reason.NOT_AN_OBJECT),)

    return read


class _Turns:
    """The turns of a conversation in any format, with their directories and the memory with which it begins."""

    def __init__(self, begin: Begin, state: ReaderState | None) -> None:
        self._conversation = begin(state)
        self._is_later = state is not None
        """True after the first turn that is not a program's prompt: no later turn can begin with memory."""
        self._session, self._cwd, homes = (state or {}).get("places", (None, None, ()))
        self._homes: dict[str | None, str] = dict(homes)
        """First directory of each session."""

    def state(self) -> ReaderState:
        return {**self._conversation.state(), "places": (self._session, self._cwd, [*self._homes.items()])}

    def whole(self, entry: Record) -> Iterator[Item]:
        return map(self._placed, self._conversation.whole(entry))

    def items(self, turn: Record) -> Iterator[Item]:
        if not self._is_later:
            yield from _opening_memory(turn)
            self._is_later = not _is_before_prompt(turn)
        for item in self._conversation.turn(turn):
            yield self._placed(with_speaker(item, entry=turn))

    def _placed(self, item: Item) -> Item:
        """Return the item. Facts set the current directory; a message gets it, unless the session began in it."""
        if isinstance(item, Facts):
            self._session, self._cwd = item.session, item.cwd
            if item.cwd:
                self._homes.setdefault(item.session, item.cwd)
        elif isinstance(item, Message) and self._cwd and self._cwd != self._homes[self._session]:
            return replace(item, cwd=self._cwd)
        return item


def _is_before_prompt(turn: Record) -> bool:
    """Return True for a program's instructions to the model."""
    return turn.get("role") in ("system", "developer")


def _opening_memory(turn: Record) -> Iterator[Facts]:
    """Yield the memory with which a turn begins, if any. Only pass the first turn, and turns that follow nothing but
    prompts of the program: memory in a later turn is a quotation. In a turn of an agent or a tool, it is an imitation.
    """
    content = turn.get("content")
    first = content[0] if isinstance(content, list) and content else content
    said = text(first) or text(mapping(first).get("text"))
    if (turn.get("role") == "user" or _is_before_prompt(turn)) and (memory := opening_memory(said)):
        yield Facts(memory=memory)


def instant_of(turn: Record) -> str | None:
    """Return the time of a turn, if given."""
    for key in _TIMES:
        if at := instant(turn.get(key)):
            return at
    return None


def utc_offset_of(turn: Record) -> int | None:
    """Return the UTC offset of a turn's time in minutes east of UTC, if given."""
    for key in _TIMES:
        if instant(turn.get(key)):
            return utc_offset(turn[key])
    return None
