"""Codex CLI: reading a session's records (its rollout), recognising repeated prompts, and resolving time zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Self

from omcli.base.record import fields_of, replace
from omcli.formats.codex.items import (
    CALLS,
    OUTPUTS,
    RECORDS,
    Content,
    answer_of,
    call_of,
    content_of,
    own_parts,
    prompt_text,
    result_of,
    user_command,
)
from omcli.formats.injected import memory_skips
from omcli.formats.source import Record
from omcli.formats.values import record, string, text
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip
from omcli.text.instants import instant

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


_NOISE_ITEMS = frozenset({"reasoning", "ghost_snapshot", "image_generation_call", "additional_tools"})
# Events that repeat a response item.
_REPEATS = frozenset(
    {
        "agent_message",
        "collab_agent_interaction_end",
        "collab_agent_spawn_end",
        "collab_close_end",
        "collab_resume_end",
        "collab_waiting_end",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "exec_command_begin",
        "exec_command_end",
        "image_generation_end",
        "item_completed",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "view_image_tool_call",
        "web_search_begin",
        "web_search_end",
    }
)
_NOISE_EVENTS = frozenset(
    {
        "account/rateLimits/updated",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "background_event",
        "entered_review_mode",
        "error",
        "exited_review_mode",
        "guardian_assessment",
        "injected_message",
        "plan_update",
        "session_configured",
        "stream_error",
        "sub_agent_activity",
        "task_complete",
        "task_started",
        "thread_goal_updated",
        "thread_rolled_back",
        "thread_settings_applied",
        "token_count",
        "turn_complete",
        "turn_diff",
        "turn_started",
        "undo_completed",
        "warning",
    }
)


# Maximum number of calls without a result that are remembered. An aborted call never gets a result.
_OPEN_CALLS = 1000
_NOISE = Skip(Reason.NOISE)
_REPEATED = Skip(Reason.REPEATED)


class Rollout:
    """Reads the records of a rollout."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._away: str | None = None
        """Working directory of the turn if it differs from the session's."""
        self._zone: str | None = None
        self._delegated: MessageKind | None = None
        self._wrapped = False
        self._compacted = False
        self._tools: dict[str, str] = {}
        self._prompts = PromptReader()
        self._answer: Message | None = None
        """An answer that is held back, because it is a summary if a compaction follows."""

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        rollout = cls()
        rollout._facts = Facts(**state["facts"])
        rollout._away = state["away"]
        rollout._delegated = MessageKind.DELEGATED if state["delegated"] else None
        rollout._wrapped, rollout._compacted = state["wrapped"], state["compacted"]
        rollout._tools = state["tools"]
        rollout._prompts = PromptReader.resume(state["prompts"])
        rollout._zone = state["zone"]
        return rollout

    def state(self) -> ReaderState | None:
        """Return the reader's state, or None while a message is held back."""
        prompts = self._prompts.state() if self._answer is None else None
        return prompts and {
            "facts": fields_of(self._facts),
            "away": self._away,
            "delegated": self._delegated is not None,
            "wrapped": self._wrapped,
            "compacted": self._compacted,
            "tools": dict(self._tools),
            "prompts": prompts,
            "zone": self._zone,
        }

    def items(self, entry: Record) -> Iterator[Item]:
        """Yield the items of one record. Messages get their UTC offset if the time zone is known."""
        items = self._items(entry)
        if self._answer is not None and not _may_follow(entry):
            items = chain(self._settled(entry), items)
        return self._dated(items)

    def _items(self, entry: Record) -> Iterable[Item]:
        kind, payload, at = text(entry.get("type")), entry.get("payload"), entry.get("timestamp")
        if not isinstance(payload, dict):
            return self._bare(entry, kind)
        self._wrapped = True
        if kind == "response_item":
            return self._item(payload, at)
        if kind == "event_msg":
            return self._event(payload, at)
        if kind == "turn_context":
            return self._turn(payload)
        if kind == "session_meta":
            return self._meta(payload)
        if kind == "compacted":
            self._compacted = True
            summary, at = text(payload.get("message")), instant(at)
            if summary.strip() and self._prompts.is_empty:
                return [Message(role=Role.EVENT, text=summary, kind=MessageKind.SUMMARY, at=at)]
            return [_compact_event(summary, at)]
        return [_NOISE if kind in RECORDS else Skip(Reason.UNKNOWN_TYPE, kind[:40])]

    def end(self) -> Iterator[Item]:
        """Yield the messages still held back at the end of the file."""
        answer, self._answer = self._answer, None
        return self._dated(chain([answer] if answer else [], self._prompts.end(has_events=self._wrapped)))

    def _dated(self, items: Iterable[Item]) -> Iterator[Item]:
        return iter(items) if self._zone is None else map(partial(_with_offset, self._zone), items)

    def _settled(self, entry: Record) -> Iterator[Item]:
        """Yield the answer held back, or a `Skip` if this record is a compaction with the same summary."""
        answer, self._answer = self._answer, None
        if answer is not None:
            compaction = record(entry.get("payload")) if text(entry.get("type")) == "compacted" else {}
            yield _REPEATED if text(compaction.get("message")).rstrip().endswith(answer.text.strip()) else answer

    def _bare(self, entry: Record, kind: str) -> Iterable[Item]:
        """Return the items of a record without a `payload`, as in the oldest files: the header, or a bare item."""
        if "record_type" in entry:
            return [_NOISE]
        if kind in RECORDS or not (kind or entry.keys() & {"role", "instructions", "git"}):
            return [Skip(Reason.MALFORMED, kind)]
        if not kind and "role" not in entry:
            return self._meta(entry)
        item: Record = entry if kind else {**entry, "type": "message"}
        if kind == "tool_call":
            item = {**entry, "type": "function_call", "name": record(entry.get("function")).get("name")}
        elif kind == "tool_result":
            item = {**entry, "type": "function_call_output", "output": entry.get("result")}
        return self._item(item, entry.get("timestamp"))

    def _meta(self, payload: Record) -> Iterator[Item]:
        """Yield the facts of a header. Only the first header is the session's own. Others are from copied history or a
        resume.
        """
        session = string(payload.get("id")) or string(payload.get("session_id"))
        if session is None:
            yield Skip(Reason.MALFORMED, "session_meta")
            return
        branch = string(record(payload.get("git")).get("branch"))
        if self._facts.session is None:
            origin = record(record(payload.get("source")).get("subagent"))
            spawned_by = record(origin.get("thread_spawn")).get("parent_thread_id")
            parents = (spawned_by, payload.get("parent_thread_id"), payload.get("forked_from_id"))
            self._delegated = MessageKind.DELEGATED if "subagent" in record(payload.get("source")) else None
            self._facts = Facts(
                session=session,
                cwd=string(payload.get("cwd")),
                branch=branch,
                parent=next(filter(None, map(string, parents)), None),
            )
            yield self._facts
        elif session == self._facts.session and branch:
            yield Facts(branch=branch)
        else:
            yield _NOISE

    def _turn(self, payload: Record) -> Iterator[Item]:
        """Yield facts if a turn changes the session's model or is the first to give its working directory."""
        known = self._facts
        cwd, model = string(payload.get("cwd")), string(payload.get("model"))
        self._facts = replace(known, cwd=known.cwd or cwd, model=model or known.model)
        self._away = cwd if cwd != self._facts.cwd else None
        self._zone = string(payload.get("timezone")) or self._zone
        if self._facts != known:
            yield Facts(cwd=None if known.cwd else cwd, model=model)
        else:
            yield _NOISE

    def _item(self, item: Record, timestamp: object) -> Iterator[Item]:
        is_said = item.get("type") == "message" and item.get("role") != "assistant"
        return self._said(item, timestamp) if is_said else self._done(item, timestamp)

    def _done(self, item: Record, timestamp: object) -> Iterator[Item]:
        kind = text(item.get("type"))
        yield from self._prompts.answered()
        if kind in _NOISE_ITEMS or "compaction" in kind:
            yield _NOISE
        elif kind == "message":
            self._answer = answer_of(item, at=instant(timestamp), cwd=self._away)
            if self._answer is None:
                yield _NOISE
        elif kind in CALLS:
            call = call_of(item, kind, at=instant(timestamp), cwd=self._away)
            if call and call.call_id and call.tool and kind != "web_search_call":
                self._tools[call.call_id] = call.tool
                if len(self._tools) > _OPEN_CALLS:
                    del self._tools[next(iter(self._tools))]
            yield call or Skip(Reason.MALFORMED, kind)
        elif kind in OUTPUTS:
            tool = self._tools.pop(text(item.get("call_id")), None) or string(item.get("name"))
            result = result_of(item, kind, tool, at=instant(timestamp), cwd=self._away)
            yield result or Skip(Reason.MALFORMED, kind)
        elif kind == "agent_message":
            yield self._agent_message(item, instant(timestamp))
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40] or "response_item")

    def _said(self, item: Record, timestamp: object) -> Iterator[Item]:
        """Yield the items of a message that is not the assistant's: a person's words, or a `Skip` for injected text."""
        if item.get("role") != "user":
            yield Skip(Reason.INJECTED)
            return
        at, content = instant(timestamp), item.get("content")
        if shell := user_command(content_of(content).text, at=at, cwd=self._away):
            yield shell
            return
        own = content_of(own_parts(content))
        if words := prompt_text(own.text):
            yield from memory_skips(own.text)
            kind, images = self._delegated, own.images
            prompt = Message(role=Role.USER, text=words, kind=kind, at=at, cwd=self._away, images=images)
            yield from self._prompts.item(prompt)
        else:
            yield Skip(Reason.INJECTED)

    def _agent_message(self, item: Record, at: str | None) -> Item:
        """Return a message from one agent to another, or a `Skip` if only the model can read its text."""
        said = content_of(item.get("content")).text
        if not said.strip():
            return _NOISE
        author = string(item.get("author"))
        return Message(role=Role.USER, text=said, kind=MessageKind.DELEGATED, at=at, cwd=self._away, name=author)

    def _event(self, event: Record, timestamp: object) -> Iterator[Item]:
        """Yield the items of an event. Most events repeat a response item."""
        kind = text(event.get("type"))
        if kind in _NOISE_EVENTS:
            yield _NOISE
        elif kind == "user_message":
            yield from self._prompt(kind, text(event.get("message")), _event_images(event), instant(timestamp))
        elif kind == "item_completed" and record(event.get("item")).get("type") == "UserMessage":
            content = content_of(record(event.get("item")).get("content"))
            yield from self._prompt(kind, content.text, Content("", content.images), instant(timestamp))
        elif kind in _REPEATS:
            yield _REPEATED
        elif kind == "turn_aborted":
            yield self._interrupt(text(event.get("reason")), instant(timestamp))
        elif kind == "context_compacted":
            yield _REPEATED if self._compacted else _compact_event("", instant(timestamp))
            self._compacted = False
        elif kind == "thread_name_updated":
            yield Facts(title=string(event.get("thread_name")))
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40] or "event_msg")

    def _interrupt(self, reason: str, at: str | None) -> Item:
        """Return an interrupt if the person aborted the turn, otherwise a `Skip`."""
        if reason not in {"", "interrupted"}:
            return _NOISE
        return Message(role=Role.EVENT, text="interrupted", kind=MessageKind.INTERRUPT, at=at)

    def _prompt(self, stream: str, said: str, attached: Content, at: str | None) -> Iterator[Item]:
        words = "\n".join(filter(None, (prompt_text(said), attached.text)))
        if not words:
            yield Skip(Reason.INJECTED if said else Reason.MALFORMED, "" if said else stream)
            return
        prompt = Message(
            role=Role.USER, text=words, kind=self._delegated, at=at, cwd=self._away, images=attached.images
        )
        yield from self._prompts.event(stream, prompt)


def _may_follow(entry: Record) -> bool:
    """Return True for an event that may stand between a summary and the compaction that repeats it."""
    kind = text(record(entry.get("payload")).get("type"))
    return text(entry.get("type")) == "event_msg" and kind in ("agent_message", "token_count")


def _event_images(event: Record) -> Content:
    parts: list[Record] = []
    for key, kind, name in (("images", "image", "image_url"), ("local_images", "local_image", "path")):
        if isinstance(listed := event.get(key), list):
            parts += [{"type": kind, name: place} for place in listed if isinstance(place, str)]
    return content_of(parts)


def _compact_event(summary: str, at: str | None) -> Message:
    return Message(role=Role.EVENT, text=summary, kind=MessageKind.COMPACTION, at=at)


_LONGEST_WAIT = 16
"""Maximum number of user items held back, to limit memory use."""


class PromptReader:
    """Separates prompts from their repetitions.

    Codex writes a prompt both as an event and as an item, and only events are certain to be a person's. Files without
    events (old ones, and some from `codex exec`) have only items. So an item is held back until Codex answers. If no
    event has appeared by then, the item is the prompt.
    """

    def __init__(self) -> None:
        self._held: list[Message] = []
        self._stream: str | None = None
        self._items_count = False

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        prompts = cls()
        prompts._stream, prompts._items_count = state["stream"], state["items_count"]
        return prompts

    def state(self) -> ReaderState | None:
        """Return the reader's state, or None while an item is held back."""
        return None if self._held else {"stream": self._stream, "items_count": self._items_count}

    @property
    def is_empty(self) -> bool:
        """True before the first prompt."""
        return not (self._stream or self._items_count or self._held)

    def event(self, stream: str, prompt: Message) -> Iterator[Item]:
        """Yield the prompt of an event. Newer files repeat events in a second `stream`, and only the one seen first
        counts.
        """
        yield from (Skip(Reason.REPEATED) for _ in self._held)
        self._held.clear()
        if self._stream is None:
            self._stream = stream
        yield prompt if stream == self._stream else Skip(Reason.REPEATED)

    def item(self, prompt: Message) -> Iterator[Item]:
        """Hold back the prompt of an item, or skip it as repeated if prompts have events."""
        if self._stream is not None:
            yield Skip(Reason.REPEATED)
            return
        self._held.append(prompt)
        if len(self._held) > _LONGEST_WAIT:
            yield from self.answered()

    def answered(self) -> Iterator[Item]:
        """Yield the held-back prompts, because no event follows once Codex has answered."""
        if self._held:
            yield from self._held
            self._held.clear()
            self._items_count = True

    def end(self, *, has_events: bool) -> Iterator[Item]:
        """Yield the prompts held back at the end of the file. If an event may still follow, leave them for the next
        run.
        """
        if has_events and not self._items_count:
            yield from (Skip(Reason.TRUNCATED) for _ in self._held)
        else:
            yield from self._held
        self._held.clear()


def _with_offset(zone: str, item: Item) -> Item:
    """Return the item. A message gets its UTC offset in the zone, if it is known and not 0."""
    offset = _offset_at(zone, item.at) if isinstance(item, Message) else None
    return replace(item, utc_offset=offset) if offset and isinstance(item, Message) else item


def _offset_at(zone: str | None, at: str | None) -> int | None:
    """Return a zone's offset at an instant, in minutes east of UTC. None if the zone or the instant is unknown, or if
    the instant is not in UTC.

    Zones (`Europe/Berlin`) are looked up in the system's database.
    """
    place = _place(zone) if zone and at and at.endswith("Z") else None
    if place is None or at is None:
        return None
    try:
        offset = datetime.fromisoformat(at).astimezone(UTC).astimezone(place).utcoffset()
    except OverflowError:  # the last hours of the year 9999
        return None
    return int(offset.total_seconds() // 60) if offset is not None else None


@cache
def _place(zone: str) -> ZoneInfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few transcripts name a zone

    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, not the name of a zone, a folder of zones
        return None
