"""Anthropic Messages: request bodies, lists of turns, and responses, as JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from omcli.base import lazily
from omcli.base.record import field, fields_of, mutable_record
from omcli.formats import Format, by_turn, instant_of, utc_offset_of
from omcli.formats.claude_prompts import is_own_tool, reason_to_refuse, user_text
from omcli.formats.injected import memory_skips, own_texts, without_injected
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import (
    attachment_text,
    compact_json,
    image_from_text,
    image_text,
    objects,
    record,
    string,
    text,
)
from omcli.memory.message import Image, Message, MessageKind, Role
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip

# Keys that other programs' turns have in addition to `role` and `content`.
_FOREIGN = frozenset({"name", "message", "parts", "uuid", "sessionId"})
# Keys of OpenAI chat messages. If one of them occurs, the whole input is OpenAI chat.
_CHAT = frozenset({"tool_calls", "tool_call_id", "function_call"})
_THOUGHTS = ("thinking", "redacted_thinking")
_SAID = ("text", "compaction")
"""Types of a block with words. A compaction holds the agent's summary of the turns before it."""
_ATTACHED = ("image", "document", "search_result", "web_search_result", "container_upload", "tool_reference")
# Cline adds this to every prompt. It also writes results as prompts, so it would need a separate reader.
_CLINE = "<environment_details>"
_EXIT_CODE = lazily(r"Exit code (\d+)(?:\n|\Z)")
_WAITING = 1000
"""Maximum number of calls without a result that are remembered."""
_ENOUGH = 0.8
"""Minimum share of turns in this format."""


def detect(sample: Sample) -> bool:
    """Return True for turns or request bodies with a feature of this API alone. Without one, they are OpenAI chat."""
    if sample.shape not in (InputShape.LINES, InputShape.DOCUMENT):
        return False
    turns = [turn for entry in sample.records for turn in (_turns(entry) or [entry])[:20]]
    is_chat = any(not _CHAT.isdisjoint(record(turn)) for turn in turns)
    if is_chat or sum(map(_is_turn, turns)) < max(1, _ENOUGH * len(turns)):
        return False
    return any(map(_is_anthropic_request, sample.records)) or any(map(_is_anthropic_turn, turns))


@mutable_record
class _Conversation:
    """State of a conversation between turns: calls without a result, and the session's facts."""

    waiting: dict[str, str] = field(default_factory=dict)
    """Tool names of calls without a result so far, by call id."""
    known: Facts = field(default_factory=Facts)

    @classmethod
    def begin(cls, state: ReaderState | None) -> _Conversation:
        return cls(waiting=state["waiting"], known=Facts(**state["known"])) if state else cls()

    def state(self) -> ReaderState:
        return {"waiting": dict(self.waiting), "known": fields_of(self.known)}

    def whole(self, entry: Record) -> Iterator[Item]:
        """Yield the session's facts from a request body, and a `Skip` for its system prompt."""
        return chain(self.facts(entry), (Skip(Reason.INJECTED),) if entry.get("system") else ())

    def facts(self, entry: Record) -> list[Facts]:
        """Return the session's facts if a request body or turn changes them, otherwise an empty list."""
        session = string(entry.get("session_id")) or string(entry.get("conversation_id")) or self.known.session
        before = self.known if session == self.known.session else Facts()
        now = Facts(
            session=session,
            cwd=string(entry.get("cwd")) or before.cwd,
            title=string(entry.get("title")) or before.title,
            model=string(entry.get("model")) or before.model,
        )
        if now == self.known:
            return []
        self.known = now
        return [now]

    def turn(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one turn: tool results before a user's prompt, an assistant's answer before its calls."""
        role, content = entry.get("role"), entry.get("content")
        given = [content] if isinstance(content, str) else content
        items: Iterable[Item]
        if role == "system":
            items = [Skip(Reason.INJECTED)]
        elif role not in ("user", "assistant") and isinstance(role, str):
            items = [Skip(Reason.UNKNOWN_TYPE, role[:40])]
        elif not isinstance(role, str) or not isinstance(given, list):
            items = [Skip(Reason.MALFORMED)]
        else:
            items = self._items(entry, Role(role), given)
        return chain(self.facts(entry), items)

    def _items(self, entry: Record, role: Role, given: list[object]) -> Iterator[Item]:
        at = instant_of(entry)
        spoken = _prompt if role is Role.USER else _answer
        message = partial(Message, at=at, utc_offset=utc_offset_of(entry))
        words: list[Record] = []
        tools: list[Item] = []
        for part in map(_part, given):
            if not _is_tool(part):
                words.append(part)
            elif text(part["type"]).endswith("tool_use"):
                tools += self._call(part, at)
            else:
                tools += self._result(part, at)
        said = list(spoken(words, message, turn_id=string(entry.get("id"))))
        items = [*tools, *said] if role is Role.USER else [*said, *tools]
        yield from items or [Skip(Reason.NOISE)]

    def _call(self, part: Record, at: str | None) -> Iterator[Item]:
        tool, call_id, arguments = string(part.get("name")), string(part.get("id")), part.get("input")
        if tool is None:
            yield Skip(Reason.MALFORMED)
            return
        if call_id:
            self.waiting[call_id] = tool
            if len(self.waiting) > _WAITING:
                del self.waiting[next(iter(self.waiting))]
        written = "" if arguments is None else compact_json(arguments)
        yield Message(role=Role.CALL, text=written, at=at, tool=tool, call_id=call_id)

    def _result(self, part: Record, at: str | None) -> Iterator[Item]:
        content, flag = part.get("content"), part.get("is_error")
        shown = _Content()
        for block in content if isinstance(content, list) else [content]:
            shown.add(block)
        yield from shown.faults
        call_id = string(part.get("tool_use_id"))
        result = without_injected(shown.text)
        # A missing flag does not mean success, because programs need not report that a tool failed.
        failed = flag if isinstance(flag, bool) else True if shown.is_error else None
        exit_code = _EXIT_CODE.match(result) if failed else None
        tool = self.waiting.pop(call_id, None) if call_id else None
        yield Message(
            role=Role.RESULT,
            text=result,
            at=at,
            tool=tool,
            call_id=call_id,
            failed=failed,
            exit_code=int(exit_code[1]) if exit_code else None,
            images=tuple(shown.images),
        )
        if failed and is_own_tool(tool) and (remark := reason_to_refuse(result, tool=tool)):
            yield Message(role=Role.USER, text=remark, kind=MessageKind.REMARK, at=at, call_id=call_id)


@mutable_record
class _Content:
    pieces: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    faults: list[Skip] = field(default_factory=list)
    is_error: bool = False

    @property
    def text(self) -> str:
        return "\n".join(filter(None, self.pieces))

    def add(self, block: object) -> None:
        """Add a content block, or a string or None in place of one."""
        if block is None or isinstance(block, str):
            self.pieces.append(block or "")
            return
        part = record(block)
        kind = text(part.get("type"))
        if kind in _SAID:
            self.pieces.append(text(part.get("text", part.get("content"))))
        elif kind == "image" and (encoded := text(record(part.get("source")).get("data"))):
            media_type = text(record(part.get("source")).get("media_type")) or "image"
            self.images.append(image_from_text(encoded, media_type))
            self.pieces.append(image_text(self.images[-1]))
        elif kind in _ATTACHED:
            self.pieces.append(attachment_text(kind, part))
            held = record(part.get("source")).get("content") or part.get("content")
            for inner in held if isinstance(held, list) else [held]:
                self.add(inner)
        elif kind.endswith("_error"):
            self.is_error = True
            self.pieces.append(text(part.get("error_code")) or kind)
        elif kind.endswith("_result"):
            self.pieces.append(compact_json({key: value for key, value in part.items() if key != "type"}))
        elif kind not in _THOUGHTS:
            self.faults.append(Skip(Reason.UNKNOWN_TYPE, kind[:40]) if kind else Skip(Reason.MALFORMED))


def _prompt(parts: list[Record], message: partial[Message], *, turn_id: str | None) -> Iterator[Item]:
    """Yield a person's text and attachments as one prompt without injected text, after any events such as commands."""
    shown = _Content()
    texts = [text(part.get("text")) if part.get("type") == "text" else "" for part in parts]
    for part, said, own in zip(parts, texts, own_texts(texts), strict=True):
        if part.get("type") != "text":
            shown.add(part)
        elif (words := user_text(own)) is None:
            yield Skip(Reason.INJECTED if said.strip() else Reason.NOISE)
        elif words.kind is None:
            yield from memory_skips(said)
            shown.pieces.append(words.text)
        else:
            yield message(role=Role.EVENT, text=words.text, kind=words.kind)
    yield from shown.faults
    if shown.text.strip():
        yield message(role=Role.USER, text=shown.text, id=turn_id, images=tuple(shown.images))


def _answer(parts: list[Record], message: partial[Message], *, turn_id: str | None) -> Iterator[Item]:
    """Yield the visible text of a turn as one answer, without the blank blocks that precede thinking."""
    shown = _Content()
    cited = False
    for part in parts:
        words = text(part.get("text"))
        # An answer with citations is split into blocks in mid-sentence.
        if part.get("type") == "text" and shown.pieces and (cited or part.get("citations")):
            shown.pieces[-1] += words
        elif part.get("type") != "text" or words.strip():
            shown.add(part)
        cited = bool(part.get("citations"))
    yield from shown.faults
    if shown.text.strip():
        yield message(role=Role.ASSISTANT, text=shown.text, id=turn_id, images=tuple(shown.images))


def _turns(entry: Record) -> list[object] | None:
    """Return the turns of a request body, or None for anything else."""
    turns = entry.get("messages")
    return turns if isinstance(turns, list) and "role" not in entry else None


def _part(part: object) -> Record:
    """Return a content block. A bare string becomes a text block."""
    return {"type": "text", "text": part} if isinstance(part, str) else record(part)


def _is_tool(part: Record) -> bool:
    return text(part.get("type")).endswith(("tool_use", "tool_result"))


def _is_turn(entry: object) -> bool:
    turn = record(entry)
    if turn.get("role") not in ("user", "assistant", "system") or turn.get("type", "message") != "message":
        return False
    content = turn.get("content")
    if not _FOREIGN.isdisjoint(turn) or not isinstance(content, str | list):
        return False
    parts = [_part(part) for part in content] if isinstance(content, list) else []
    known = all(part.get("type") in (*_SAID, *_THOUGHTS, *_ATTACHED) or _is_tool(part) for part in parts)
    return known and not any(_CLINE in text(part.get("text")) for part in parts)


def _is_anthropic_turn(entry: object) -> bool:
    turn = record(entry)
    if turn.get("type") == "message" and "stop_reason" in turn:
        return True
    parts = objects(turn.get("content"))
    return any(part.get("type") in _THOUGHTS or _is_tool(part) or "source" in part for part in parts)


def _is_anthropic_request(entry: Record) -> bool:
    if not _turns(entry):
        return False
    if not {"system", "anthropic_version"}.isdisjoint(entry):
        return True
    if any("input_schema" in tool for tool in objects(entry.get("tools"))):
        return True
    return "max_tokens" in entry and "claude" in text(entry.get("model"))


# A record is a turn of the current conversation, or a request body with a new conversation.
FORMAT = Format(
    name="anthropic",
    title="Anthropic Messages",
    detect=detect,
    read=by_turn(turns_of=_turns, begin=_Conversation.begin),
)
