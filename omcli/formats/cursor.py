"""Cursor: transcripts of its agent, without ids, times and directories."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from omcli.base import lazily
from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.injected import memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import compact_json, objects, record, string, text
from omcli.memory.message import Message, Role
from omcli.memory.transcript import Item, ReaderState, Reason, Skip

_QUERY = lazily(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_WRITTEN_BY_CLIENT = lazily(r"<([a-z]{1,20}(?:_[a-z]{1,20}){1,6})>.*</\1>", re.DOTALL)
"""A block that the client puts before a person's words, such as rules, open files or the time."""
_HIDDEN = "[REDACTED]"
"""Written in place of thinking."""
_CALLS = frozenset({"tool_use", "tool_call"})
_RESULTS = frozenset({"tool_result", "tool-result"})
_SILENT = frozenset({"thinking", "reasoning", "redacted_thinking"})
_NOISE_RECORDS = frozenset({"turn_started", "turn_ended", "status"})
_WAITING = 1000
"""Maximum number of calls without a result that are remembered."""


def _is_message(entry: Record) -> bool:
    is_bare = entry.get("role") in ("user", "assistant") and {"type", "uuid", "sessionId"}.isdisjoint(entry)
    return is_bare and isinstance(record(entry.get("message")).get("content"), list | str)


def detect(sample: Sample) -> bool:
    """Return True if at least half of the records have a role beside their message object."""
    messages = sum(map(_is_message, sample.records))
    return sample.shape is InputShape.LINES and 0 < len(sample.records) <= 2 * messages


class _RecordReader:
    """Reads messages. A call without an id is named by its number, counted from the beginning."""

    def __init__(self, state: ReaderState | None) -> None:
        state = state or {"calls": 0, "waiting": []}
        self._calls: int = state["calls"]
        waiting = ((call, tool) for call, tool in state["waiting"])
        self._waiting: deque[tuple[str, str]] = deque(waiting, maxlen=_WAITING)
        """Ids and tools of calls without a result so far, in order."""

    def state(self) -> ReaderState:
        return {"calls": self._calls, "waiting": list(self._waiting)}

    def end(self) -> Iterator[Item]:
        """Yield nothing, because no item is ever held back."""
        return iter(())

    def items(self, entry: Record) -> Iterator[Item]:
        role, kind, content = (
            text(entry.get("role")),
            text(entry.get("type")),
            record(entry.get("message")).get("content"),
        )
        if role == "system" or kind in _NOISE_RECORDS:
            yield Skip(Reason.INJECTED if role else Reason.NOISE)
        elif role not in ("user", "assistant"):
            name = role or kind
            yield Skip(Reason.UNKNOWN_TYPE if name else Reason.MALFORMED, name[:40])
        elif isinstance(content, str | list):
            blocks: list[Record] = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
            found = list(self._blocks(role, blocks))
            yield from found or [Skip(Reason.NOISE)]
        else:
            yield Skip(Reason.MALFORMED, role)

    def _blocks(self, role: str, blocks: list[Record]) -> Iterator[Item]:
        """Yield the results of a message, its text, then its calls."""
        for block in blocks:
            kind = text(block.get("type"))
            if kind in _RESULTS:
                yield self._result(block)
            elif kind not in _CALLS and kind not in _SILENT and kind != "text":
                yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])
        said = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
        yield from _prompt(said) if role == "user" else _answer(said)
        for block in blocks:
            if text(block.get("type")) in _CALLS:
                yield self._call(block)

    def _call(self, block: Record) -> Item:
        tool = string(block.get("name"))
        if tool is None:
            return Skip(Reason.MALFORMED, "tool_use")
        self._calls += 1
        call_id = string(block.get("id")) or f"call-{self._calls}"
        self._waiting.append((call_id, tool))
        return Message(role=Role.CALL, text=compact_json(block.get("input") or {}), tool=tool, call_id=call_id)

    def _result(self, block: Record) -> Item:
        """Return a result. It answers the open call with its id, or else the first one with its tool or, if it names no
        tool, the first.
        """
        own, name = string(block.get("tool_use_id")), string(block.get("name"))
        open_calls = [*self._waiting]
        same = [known for known in open_calls if known[0] == own] or [
            known for known in open_calls if name in (None, known[1])
        ]
        answered = same[0] if same else None
        if answered:
            self._waiting.remove(answered)
        call_id, tool = answered or (own, name)
        is_error = block.get("is_error")
        return Message(
            role=Role.RESULT,
            text=without_injected(_text(block.get("content"))),
            tool=tool,
            call_id=call_id,
            failed=is_error if isinstance(is_error, bool) else None,
        )


def _prompt(parts: list[str]) -> Iterator[Item]:
    """Yield a person's words: those in the tags that the client puts around them, or all if it put none."""
    said = "\n\n".join(filter(str.strip, parts))
    if not said:
        return
    asked = _QUERY.findall(said)
    words = own_words("\n\n".join(asked) if asked else said).strip()
    if not words or (not asked and _WRITTEN_BY_CLIENT.fullmatch(words)):
        yield Skip(Reason.INJECTED)
        return
    yield from memory_skips(said)
    yield Message(role=Role.USER, text=words)


def _answer(parts: list[str]) -> Iterator[Item]:
    said = "\n\n".join(part.strip().removesuffix(_HIDDEN).strip() for part in parts)
    if said.strip():
        yield Message(role=Role.ASSISTANT, text=said.strip())


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(filter(None, (text(part) or text(record(part).get("text")) for part in content)))
    return "" if content is None else compact_json(content)


FORMAT = Format(
    name="cursor",
    title="Cursor",
    detect=detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(
        homes=("~/.cursor",),
        # Transcripts of subagents lie deeper. Nothing in them says that an agent wrote their prompts.
        patterns=("projects/*/agent-transcripts/*.jsonl", "projects/*/agent-transcripts/*/*.jsonl"),
    ),
)
