"""pi and OpenClaw: session files, versions 1 to 3, and messages without their entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from omcli.base import lazily
from omcli.base.record import replace
from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.injected import memory_skips, opening_memory, own_words, without_injected
from omcli.formats.source import InputShape, Record, Sample, with_speaker
from omcli.formats.values import compact_json, exit_code, image_from_text, image_text, objects, record, string, text
from omcli.memory.message import Image, Message, MessageKind, Role
from omcli.memory.transcript import Abandoned, Facts, Handover, Item, ReaderState, Reason, Skip
from omcli.text.instants import instant

# Settings, bookmarks, the state of extensions.
_NOISE = frozenset({"thinking_level_change", "label", "custom"})
# The session's id at the end of the file name: `<time>_<id>.jsonl`.
_SESSION_FILE = lazily(r"_([^_/\\]+)\.jsonl$")
# OpenClaw puts facts about a message's sender and channel in front of it.
_ENVELOPE = lazily(
    r"\s*(?:[A-Z][\w ]{0,60} \(untrusted[^)\n]{0,40}\):\n```json\n.*?\n```(?:\n|\Z)"
    r"|\[(?:Telegram|WhatsApp|Discord|Slack|Signal|iMessage|BlueBubbles|Matrix|Teams|WebChat|Google Chat)\b"
    r"[^\]\n]{0,200}\]"
    r"|\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}[^\]\n]{0,20}\])\s*",
    re.DOTALL,
)
_MESSAGE_ID = lazily(r"\s*\n\[message_id: [^\]\n]{1,100}\]\s*\Z")
_OWN_PROMPT = lazily(r"\s*(?:\[OpenClaw heartbeat poll\]|Read HEARTBEAT\.md if it exists|\[cron:)")
_NOTHING_TO_DO = "HEARTBEAT_OK"
_TO_SUMMARIZE = "messagesToSummarize"
_ROLES = {
    "toolResult": "toolCallId",
    "bashExecution": "command",
    "branchSummary": "summary",
    "compactionSummary": "summary",
}
"""Roles that only pi has, each with a key of its messages."""
_EXIT_CODE = lazily(r"\n\nCommand exited with code (-?\d+)\s*\Z")


class _EntryReader:
    """Reads every entry in file order, including abandoned branches, because their messages did happen."""

    def __init__(self, state: ReaderState | None) -> None:
        self._session: str | None = state["session"] if state else None
        self._is_later = state is not None
        """True after the first entry with a message."""
        self._tree = _Entries()
        self._handover: Handover | None = None

    def items(self, entry: Record) -> Iterator[Item]:
        if (messages := _messages(entry)) is not None:
            yield from _facts(entry)
            self._handover = _request(entry)
            for message in messages:
                if isinstance(message, dict):
                    yield from map(partial(with_speaker, entry=message), self._bare(message))
                else:
                    yield Skip(Reason.NOT_AN_OBJECT)
        elif "role" in entry and "type" not in entry:
            yield from self._bare(entry)
        elif entry.get("type") != "session":
            said = tuple(_items(entry))
            if not self._is_later and entry.get("type") == "compaction":
                yield Facts(memory=text(entry.get("summary")))  # of messages that are not passed
            self._is_later = self._is_later or any(isinstance(item, Message) for item in said)
            self._tree.add(entry, said)
            yield from said
        elif self._session is None and (session := string(entry.get("id"))):
            self._session = session
            yield _header(entry, session)
        else:
            known = self._session is not None
            yield Skip(Reason.NOISE if known else Reason.MALFORMED, "" if known else "session")

    def _bare(self, message: Record) -> Iterator[Item]:
        """Yield the items of a message without its entry, as pi passes it to extensions. A summary that is only memory
        of om is added to the host's request, unless this has one.
        """
        request = self._handover or Handover()
        items = _bare_items(message)
        summary = text(message.get("summary")) if message.get("role") == "compactionSummary" else ""
        if summary.strip() != request.summary.strip() and without_injected(summary).strip():
            items = _summary({}, message, kind=MessageKind.RECAP)  # of messages that are not passed
        elif not request.summary:
            request = replace(request, summary=summary)  # memory in pi's form, which is not a message
        self._handover = request
        yield from items

    def end(self) -> Iterator[Item]:
        """Yield the host's request if there is one, and the ids of messages that are not on the last entry's branch."""
        if self._handover is not None:
            yield self._handover
        if abandoned := self._tree.abandoned():
            yield Abandoned(ids=abandoned)

    def state(self) -> ReaderState:
        return {"session": self._session}


class _Entries:
    """The tree of entries. In version 1, entries have no ids, and each follows the previous one."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._follows: list[int | None] = []
        self._said: list[tuple[str, ...]] = []

    def add(self, entry: Record, items: Iterable[Item]) -> None:
        """Add an entry and its items. If its parent is unknown (a lost line), it follows the previous entry."""
        before = len(self._follows) - 1 if self._follows else None
        parent = string(entry.get("parentId"))
        is_root = "parentId" in entry and entry["parentId"] is None
        self._follows.append(None if is_root else self._places.get(parent or "", before))
        self._said.append(tuple(item.id for item in items if isinstance(item, Message) and item.id))
        if own := string(entry.get("id")):
            self._places[own] = len(self._follows) - 1

    def abandoned(self) -> frozenset[str]:
        """Return the ids of messages that are not on the path from the last entry to its root."""
        live: set[int] = set()
        place = len(self._follows) - 1 if self._follows else None
        while place is not None:
            live.add(place)
            place = self._follows[place]
        said = frozenset(chain.from_iterable(self._said[at] for at in live))
        return frozenset(chain.from_iterable(self._said)) - said


def _header(entry: Record, session: str) -> Facts:
    origin = string(entry.get("branchedFrom")) or string(entry.get("parentSession"))
    named = _SESSION_FILE.search(origin) if origin else None
    return Facts(
        session=session,
        cwd=string(entry.get("cwd")),
        model=string(entry.get("modelId")),
        parent=named[1] if named else origin,
    )


# ---- messages without entries


def _to_compact(entry: Record) -> Record | None:
    """Return the object that pi passes to extensions when it compacts, bare or in its event, or None for others."""
    return next((found for found in (entry, record(entry.get("preparation"))) if _TO_SUMMARIZE in found), None)


def _messages(entry: Record) -> list[object] | None:
    """Return the messages of a whole conversation, which pi is about to summarise or the duet agent saved in its state.
    Return None for other records.
    """
    preparation = _to_compact(entry)
    if preparation is None:
        found = record(record(entry.get("state")).get("agent")).get("messages")
        return found if isinstance(found, list) else None
    first, rest = preparation.get(_TO_SUMMARIZE), preparation.get("turnPrefixMessages")
    return [*(first if isinstance(first, list) else ()), *(rest if isinstance(rest, list) else ())]


def _facts(entry: Record) -> Iterator[Item]:
    state = record(entry.get("state"))
    if session := string(entry.get("sessionId")):
        model = string(record(state.get("options")).get("model"))
        yield Facts(session=session, cwd=string(state.get("cwd")) or string(entry.get("cwd")), model=model)


def _request(entry: Record) -> Handover:
    preparation = _to_compact(entry) or {}
    tokens = preparation.get("tokensBefore")
    return Handover(
        first_kept=string(preparation.get("firstKeptEntryId")),
        tokens_before=tokens if type(tokens) is int and tokens >= 0 else None,
        summary=text(preparation.get("previousSummary")),
    )


def _bare_items(message: Record) -> Iterator[Item]:
    """Yield the items of a message without its entry, with the ids that duet gives to messages."""
    response = string(message.get("responseId"))
    own = string(message.get("id")) or (f"msg_assistant_{response}" if response else None)
    for item in _of_role({"id": own}, message):
        if isinstance(item, Message) and item.role is Role.RESULT and item.call_id:
            yield replace(item, id=f"msg_tool_{item.call_id}")
        else:
            yield item


# ---- entries


def _items(entry: Record) -> Iterable[Item]:
    kind, message = text(entry.get("type")), entry.get("message")
    if kind == "message" and isinstance(message, dict):
        return _of_role(entry, message)
    if kind == "message":
        return [Skip(Reason.MALFORMED, kind)]
    if kind in _SUMMARIES:
        return _summary(entry, entry, kind=_SUMMARIES[kind])
    if kind == "model_change" and (model := string(entry.get("modelId"))):
        return [Facts(model=model)]
    if kind == "session_info" and (name := string(entry.get("name"))):
        return [Facts(title=name)]
    if kind in {"model_change", "session_info"} or kind in _NOISE:
        return [Skip(Reason.NOISE)]
    if kind == "custom_message":
        return [Skip(Reason.INJECTED)]
    return [Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])]


def _of_role(entry: Record, message: Record) -> Iterable[Item]:
    role = text(message.get("role"))
    if role in _READERS:
        return _READERS[role](entry, message)
    if role in {"custom", "hookMessage", "system"}:
        return [Skip(Reason.INJECTED)]
    return [Skip(Reason.UNKNOWN_TYPE if role else Reason.MALFORMED, role[:40] or "message")]


def _at(entry: Record, message: Record) -> str | None:
    return instant(entry.get("timestamp")) or instant(message.get("timestamp"))


def _prompt(entry: Record, message: Record) -> Iterator[Item]:
    content = message.get("content")
    if not isinstance(content, str | list):
        yield Skip(Reason.MALFORMED, "user")
        return
    said, images = _content(content)
    yield from memory_skips(said)
    said = _prompt_text(own_words(said))
    if said.strip():
        own = string(entry.get("id"))
        yield Message(role=Role.USER, text=said, id=own, at=_at(entry, message), images=images)
    else:
        yield Skip(Reason.INJECTED)


def _prompt_text(said: str) -> str:
    """Return a prompt without OpenClaw's additions to messages from a chat program; "" if OpenClaw wrote all of it."""
    if _OWN_PROMPT.match(said):
        return ""
    at = 0
    while envelope := _ENVELOPE.match(said, at):
        at = envelope.end()
    return _MESSAGE_ID.sub("", said[at:])


def _turn(entry: Record, message: Record) -> Iterator[Item]:
    """Yield the answer and the calls of a turn, and an interrupt if it was aborted."""
    own, at = string(entry.get("id")), _at(entry, message)
    said, images = _content(message.get("content"))
    calls = [block for block in objects(message.get("content")) if block.get("type") == "toolCall"]
    aborted = message.get("stopReason") == "aborted"
    is_said = bool(said.strip()) and said.strip() != _NOTHING_TO_DO
    if is_said:
        yield Message(role=Role.ASSISTANT, text=said, id=own, at=at, images=images)
    for call in calls:
        yield _call(call, at)
    if aborted:
        stopped = text(message.get("errorMessage")) or "aborted"
        yield Message(role=Role.EVENT, text=stopped, kind=MessageKind.INTERRUPT, id=own and f"{own}:interrupt", at=at)
    if not (calls or aborted or is_said):
        yield Skip(Reason.NOISE)


def _call(call: Record, at: str | None) -> Item:
    tool = string(call.get("name"))
    if tool is None:
        return Skip(Reason.MALFORMED, "toolCall")
    call_id = string(call.get("id"))
    arguments = call.get("arguments")
    written = "" if arguments is None else compact_json(arguments)
    return Message(role=Role.CALL, text=written, id=call_id, at=at, tool=tool, call_id=call_id)


def _result(entry: Record, message: Record) -> Iterator[Item]:
    if "content" not in message:
        yield Skip(Reason.MALFORMED, "toolResult")
        return
    call_id = string(message.get("toolCallId"))
    said, images = _content(message["content"])
    is_error = message.get("isError")
    code = _EXIT_CODE.search(said, max(0, len(said) - 80)) if is_error is True else None
    yield Message(
        role=Role.RESULT,
        text=without_injected(said),
        id=call_id and f"{call_id}:result",
        at=_at(entry, message),
        tool=string(message.get("toolName")),
        call_id=call_id,
        failed=is_error if isinstance(is_error, bool) else None,
        exit_code=exit_code(code[1]) if code else None,
        images=images,
    )


def _user_command(entry: Record, message: Record) -> Iterator[Item]:
    """Yield a command that the person ran with `!`, with its output."""
    command = string(message.get("command"))
    if command is None:
        yield Skip(Reason.MALFORMED, "bashExecution")
        return
    output = text(message.get("output"))
    code = exit_code(message.get("exitCode"))
    yield Message(
        role=Role.EVENT,
        text=f"{command}\n{output}" if output else command,
        kind=MessageKind.SHELL,
        id=string(entry.get("id")),
        at=_at(entry, message),
        failed=code != 0 if code is not None else None,
        exit_code=code,
    )


def _summary(entry: Record, message: Record, *, kind: MessageKind) -> Iterator[Item]:
    """Yield a summary. If a recap begins with memory of om, yield that as a fact first: its messages may be missing."""
    written = text(message.get("summary"))
    summary, at = without_injected(written), _at(entry, message)
    if kind is MessageKind.RECAP and (memory := opening_memory(written)):
        yield Facts(memory=memory)
    yield Message(role=Role.EVENT, text=summary, kind=kind, id=string(entry.get("id")), at=at)


_SUMMARIES = {"compaction": MessageKind.COMPACTION, "branch_summary": MessageKind.RECAP}
_READERS: Mapping[str, Callable[[Record, Record], Iterator[Item]]] = {
    "assistant": _turn,
    "toolResult": _result,
    "user": _prompt,
    "bashExecution": _user_command,
    "branchSummary": partial(_summary, kind=MessageKind.RECAP),
    "compactionSummary": partial(_summary, kind=MessageKind.COMPACTION),
}
"""Message readers by role. Each takes an entry and its message."""


def _content(content: object) -> tuple[str, tuple[Image, ...]]:
    """Return the visible text of a string or a list of blocks, without thinking, and the images."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and block.get("type") == "text":
            texts.append(text(block.get("text")))
        elif isinstance(block, dict) and block.get("type") == "image":
            image = image_from_text(text(block.get("data")), text(block.get("mimeType")) or "image/*")
            texts.append(image_text(image))
            images.append(image)
    return "\n\n".join(filter(str.strip, texts)), tuple(images)


def detect(sample: Sample) -> bool:
    """Return True for a session header, or for a message that only pi writes, because a partial file has no header.

    Messages without entries may also be a list, or inside an object.
    """
    is_entries = sample.shape is InputShape.LINES
    return any(
        (is_entries and (_is_header(entry) or _is_pi_message(entry)))
        or _is_bare(entry)
        or any(isinstance(message, dict) and "role" in message for message in _messages(entry) or ())
        or _to_compact(entry) is not None
        for entry in sample.records
    )


def _is_header(entry: Record) -> bool:
    return entry.get("type") == "session" and entry.keys() >= {"id", "timestamp", "cwd"}


def _is_pi_message(entry: Record) -> bool:
    message = record(entry.get("message"))
    return entry.get("type") == "message" and (
        "stopReason" in message or message.get("role") in ("toolResult", "bashExecution")
    )


def _is_bare(message: Record) -> bool:
    """Return True for a message that only pi writes, and that stands alone instead of in its entry."""
    role = text(message.get("role"))
    is_pi = _ROLES[role] in message if role in _ROLES else role == "assistant" and "stopReason" in message
    return is_pi and "type" not in message


FORMAT = Format(
    name="pi",
    title="pi",
    detect=detect,
    read=by_record(_EntryReader),
    folders=TranscriptFolders(homes=("~/.pi/agent",), patterns=("sessions/*/*.jsonl",), variable="PI_CODING_AGENT_DIR"),
    copies=True,
)
