"""OpenAI chat messages as JSON or JSON Lines: bare messages, whole conversations, or data sets of conversations."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from omcli.base.record import field, fields_of, mutable_record
from omcli.formats import Format, by_turn, instant_of, utc_offset_of
from omcli.formats.injected import is_pack, memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, Record, RecordStream, Sample
from omcli.formats.values import compact_json, data_in, image_from_text, image_text, objects, record, string, text
from omcli.memory.message import Image, Message, Role, attachment
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_LISTS = ("messages", "traj", "conversation", "conversations")
# Keys next to `role` in other programs' messages, which mean something else or need another reader.
_FOREIGN = frozenset({"type", "message", "parts", "payload", "uuid", "parentUuid", "sessionId", "sessionID"})
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_SOUNDS = frozenset({"input_audio", "output_audio", "audio"})
_PARTS = _TEXTS | _SOUNDS | {"image_url", "input_image", "file", "input_file", "reasoning", "tool_call"}
# mini-swe-agent writes the output of commands in the user's role.
_COMMAND_OUTPUT = "<returncode>"
_WAITING = 1000
"""Maximum number of calls without a result that are remembered."""
_ENOUGH = 0.8
"""Minimum share of chat records. The rest may be stray lines, as in data sets and logs."""


def detect(sample: Sample) -> bool:
    """Return True for messages with a role of the chat API, or objects that contain a list of such messages."""
    if sample.shape not in (InputShape.LINES, InputShape.DOCUMENT) or not sample.records:
        return False
    return sum(map(_is_chat, sample.records)) >= _ENOUGH * len(sample.records)


@mutable_record
class _Conversation:
    """State of a conversation between messages: calls without a result, and the session's facts."""

    waiting: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_WAITING))
    """Ids and tool names of calls without a result so far, in order."""
    calls: int = 0
    known: Facts = field(default_factory=Facts)

    @classmethod
    def begin(cls, state: ReaderState | None) -> _Conversation:
        if state is None:
            return cls()
        waiting = deque(((call, tool) for call, tool in state["waiting"]), maxlen=_WAITING)
        return cls(waiting=waiting, calls=state["calls"], known=Facts(**state["known"]))

    def state(self) -> ReaderState:
        return {"waiting": list(self.waiting), "calls": self.calls, "known": fields_of(self.known)}

    def whole(self, entry: Record) -> Iterator[Item]:
        return iter(self.facts(entry, whole=True))

    def turn(self, entry: Record) -> Iterator[Item]:
        """Yield a message's text and then its calls, or the result of a call."""
        facts = self.facts(entry, whole=False)
        role = entry.get("role")
        items: Iterable[Item]
        if role in ("system", "developer"):
            items = [Skip(Reason.INJECTED)]
        elif role in ("tool", "function"):
            items = self._result(entry)
        elif role in ("user", "assistant"):
            items = self._turn(entry, Role(role))
        elif isinstance(role, str):
            items = [Skip(Reason.UNKNOWN_TYPE, role[:40])]
        else:
            # A line may introduce the session without a message.
            items = [Skip(Reason.NOISE if facts and "content" not in entry else Reason.MALFORMED)]
        return chain(facts, items)

    def facts(self, entry: Record, *, whole: bool) -> list[Facts]:
        """Return the session's facts if they changed, otherwise an empty list.

        The `id` of a `whole` conversation is the session's id, unless the record also has a session id or the `id` is a
        number.
        """
        session = _identifier(entry, "session_id", "conversation_id", "thread_id")
        row = string(entry.get("id")) if whole else None
        if row and not row.isdecimal():  # a number would repeat in other files
            session = session or row
        before = self.known if session in (None, self.known.session) else Facts()
        said = Facts(
            session=session or before.session,
            cwd=string(entry.get("cwd")) or before.cwd,
            title=string(entry.get("title")) or before.title,
            model=string(entry.get("model")) or before.model,
        )
        if said == self.known:
            return []
        self.known = said
        return [said]

    def _turn(self, entry: Record, role: Role) -> Iterator[Item]:
        content = _Content.of(entry.get("content"))
        said = own_words(content.text) if role is Role.USER else content.text
        said = said or text(entry.get("refusal")) or text(record(entry.get("audio")).get("transcript"))
        at = instant_of(entry)
        items: list[Item] = [*content.faults, *(memory_skips(content.text) if role is Role.USER else ())]
        if said.strip():
            name = string(entry.get("name"))
            items.append(
                Message(
                    role=role,
                    text=said,
                    id=_identifier(entry, "id", "message_id"),
                    at=at,
                    utc_offset=utc_offset_of(entry),
                    name=name if name and name.casefold() != role else None,
                    images=content.images,
                )
            )
        items += map(partial(self._call, at=at), (*_calls(entry), *content.calls))
        if not items and content.text.strip():
            items.append(Skip(Reason.INJECTED))
        elif not items:
            something = {"content", "refusal", "audio", "tool_calls", "function_call"} & entry.keys()
            items.append(Skip(Reason.NOISE if something else Reason.MALFORMED))
        yield from items

    def _call(self, call: object, at: str | None) -> Item:
        """Return a call in any dialect: `{id, function: {name, arguments}}`, `custom` in place of `function`, or
        without nesting. Return a `Skip` if it has no name.
        """
        written = record(call)
        inner = record(written.get("function")) or record(written.get("custom")) or written
        tool = string(inner.get("name"))
        if tool is None:
            return Skip(Reason.MALFORMED)
        self.calls += 1
        # In old dialects, results match calls by order alone. Numbering from the beginning gives stable ids.
        call_id = _identifier(written, "id") or f"call-{self.calls}"
        self.waiting.append((call_id, tool))
        given = inner.get("arguments", inner.get("input"))
        arguments = "" if given is None else compact_json(given)
        return Message(role=Role.CALL, text=arguments, at=at, tool=tool, call_id=call_id)

    def _result(self, entry: Record) -> Iterator[Item]:
        content = _Content.of(entry.get("content"))
        yield from content.faults
        call_id, tool = self._answered(_identifier(entry, "tool_call_id"), string(entry.get("name")))
        said = without_injected(content.text)
        yield Message(
            role=Role.RESULT,
            text=said,
            id=_identifier(entry, "id", "message_id"),
            at=instant_of(entry),
            tool=tool,
            call_id=call_id,
            failed=True if said.startswith("Error") else None,
            images=content.images,
        )

    def _answered(self, call_id: str | None, tool: str | None) -> tuple[str | None, str | None]:
        """Remove the call that a result answers from `waiting`, and return its id and tool: the first call with the
        result's id or, if that has no id, the first with its tool (or any, if it names none). Without such a call,
        return `call_id` and `tool`.
        """
        for place, (waiting_id, waiting_tool) in enumerate(self.waiting):
            if waiting_id == call_id or (call_id is None and tool in (None, waiting_tool)):
                del self.waiting[place]
                return waiting_id, tool or waiting_tool
        return call_id, tool


@mutable_record
class _Content:
    text: str = ""
    images: tuple[Image, ...] = ()
    calls: list[object] = field(default_factory=list)
    faults: list[Skip] = field(default_factory=list)

    @classmethod
    def of(cls, content: object) -> _Content:
        """Parse a string, None, or a list of parts."""
        if content is None or isinstance(content, str):
            return cls(text=content or "")
        if not isinstance(content, list):
            return cls(faults=[Skip(Reason.MALFORMED)])
        taken = cls()
        said = [part if isinstance(part, str) else taken._part(record(part)) for part in content]
        taken.text = "\n".join(filter(None, said))
        return taken

    def _part(self, part: Record) -> str:
        """Return the text of a part. Its images, calls and faults are added to `self`."""
        kind = text(part.get("type"))
        # One dialect uses the key `value` for every type.
        value = part.get("value")
        if kind in _TEXTS:
            return text(part.get("text", part.get("refusal", value)))
        if kind in ("image_url", "input_image"):
            linked = part.get("image_url", value)
            url = text(linked) or text(record(linked).get("url"))
            if data := data_in(url):
                self.images = (*self.images, image_from_text(*data))
                return image_text(self.images[-1])
            return f"[image {url}]" if url else "[image]"
        if kind in _SOUNDS:
            sound = record(part.get("input_audio", part.get("audio"))) or part
            if spoken := text(sound.get("transcript", part.get("transcript"))):
                return spoken
            return attachment("audio", text(sound.get("format")), len(text(sound.get("data"))) * 3 // 4)
        if kind in ("file", "input_file"):
            return f"[file {text(record(part.get('file', part)).get('filename')) or 'unnamed'}]"
        if kind == "tool_call":
            self.calls.append(_parsed(value))
        elif kind != "reasoning":
            self.faults.append(Skip(Reason.UNKNOWN_TYPE, kind[:40]) if kind else Skip(Reason.MALFORMED))
        return ""


def _messages(entry: Record) -> list[object] | None:
    """Return the messages of a conversation, and the response if it is a logged request, or None for other objects."""
    if "role" in entry:
        return None
    for holder in (entry, record(entry.get("request"))):
        for key in _LISTS:
            found = holder.get(key)
            if isinstance(found, list):
                answers = objects(record(entry.get("response")).get("choices"))[:1]
                return [*found, *(record(answer.get("message")) for answer in answers)]
    return None


def _calls(entry: Record) -> list[object]:
    """Return the calls of a message, including the single call of the API's first version."""
    given = entry.get("tool_calls")
    calls = given if isinstance(given, list) else [] if given is None else [given]
    legacy = entry.get("function_call")
    return calls if legacy is None else [*calls, legacy]


def _parsed(value: object) -> object:
    """Return a call given as JSON text or as an object, or None if the JSON is invalid."""
    if not isinstance(value, str):
        return value
    try:
        parsed: object = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return parsed


def _identifier(entry: Record, *keys: str) -> str | None:
    for key in keys:
        value = entry.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def _is_chat(entry: Record) -> bool:
    messages = _messages(entry)
    if messages is None:
        return _is_message(entry)
    asked = messages[:20]
    # Hermes also stores chat messages, but marks failures elsewhere.
    return "session_start" not in entry and sum(map(_is_message, asked)) >= max(1, _ENOUGH * len(asked))


def _is_message(entry: object) -> bool:
    if not isinstance(entry, dict) or text(entry.get("role")) not in _ROLES or not _FOREIGN.isdisjoint(entry):
        return False
    content = entry.get("content")
    if isinstance(content, list):
        return all(isinstance(part, str) or text(record(part).get("type")) in _PARTS for part in content)
    if isinstance(content, str):
        return not content.startswith(_COMMAND_OUTPUT)
    return content is None and ("content" in entry or any(map(entry.get, ("audio", "tool_calls", "function_call"))))


_in_turns = by_turn(turns_of=_messages, begin=_Conversation.begin)


def read(source: RecordStream) -> Iterator[Item]:
    """Yield the items of messages or whole conversations. A pack printed by om is skipped."""
    if source.state is None and is_pack(source.beginning):
        return iter([Skip(Reason.INJECTED)])
    return _in_turns(source)


FORMAT = Format(name="openai", title="OpenAI chat messages", detect=detect, read=read)
