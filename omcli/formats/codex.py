"""Codex CLI: rollouts of sessions, the prompt history, and the stream of `codex exec --json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from omcli.base.record import fields_of, replace
from omcli.formats.codex_items import (
    CALLS,
    OUTPUTS,
    Content,
    answer_of,
    call_of,
    content_of,
    image_note,
    prompt_of,
    prompt_text,
    result_of,
    shell_of,
)
from omcli.formats.codex_prompts import Prompts
from omcli.formats.codex_stream import STREAM_TYPES, ExecStream, History, is_history
from omcli.formats.format import Format, Place, by_record
from omcli.formats.source import Record, Sample, Shape
from omcli.formats.values import record, string, text
from omcli.formats.zones import offset_at
from omcli.memory.message import Aside, Image, Message, Role
from omcli.memory.transcript import Carried, Facts, Item, Reason, Skipped
from omcli.text.dates.instants import instant

_RECORDS = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication_metadata",
    }
)
_NOISE_ITEMS = frozenset({"reasoning", "ghost_snapshot", "image_generation_call", "additional_tools"})
# Events that say again what a response item says.
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


# Calls that wait for their results at most; an aborted one waits for ever.
_OPEN_CALLS = 1000
_NOISE = Skipped(Reason.NOISE)
_REPEATED = Skipped(Reason.REPEATED)


class _Rollout:
    """Reads the records of a rollout; what is kept in mind is the session, the open calls and the undecided prompts."""

    def __init__(self) -> None:
        self._facts = Facts()
        self._away: str | None = None
        """The turn's working directory, where it is not the session's."""
        self._zone: str | None = None
        self._delegated: Aside | None = None
        self._wrapped = False
        self._compacted = False
        self._tools: dict[str, str] = {}
        self._prompts = Prompts()

    @classmethod
    def going_on(cls, carried: Carried) -> Self:
        """One that goes on where another one carried this from."""
        rollout = cls()
        rollout._facts = Facts(**carried["facts"])
        rollout._away = carried["away"]
        rollout._delegated = Aside.DELEGATED if carried["delegated"] else None
        rollout._wrapped, rollout._compacted = carried["wrapped"], carried["compacted"]
        rollout._tools = carried["tools"]
        rollout._prompts = Prompts.going_on(carried["prompts"])
        rollout._zone = carried["zone"]
        return rollout

    def carried(self) -> Carried | None:
        """What it knows, as JSON; None while a prompt is undecided."""
        prompts = self._prompts.carried()
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
        """What one record says, and in which zone."""
        for item in self._items(entry):
            offset = offset_at(self._zone, item.at) if self._zone and isinstance(item, Message) else None
            yield replace(item, utc_offset=offset) if offset and isinstance(item, Message) else item

    def _items(self, entry: Record) -> Iterator[Item]:
        kind, payload = text(entry.get("type")), entry.get("payload")
        if not isinstance(payload, dict):
            yield from self._bare(entry, kind)
            return
        self._wrapped = True
        if kind == "response_item":
            yield from self._item(payload, entry.get("timestamp"))
        elif kind == "event_msg":
            yield from self._event(payload, entry.get("timestamp"))
        elif kind == "turn_context":
            yield from self._turn(payload)
        elif kind == "session_meta":
            yield from self._meta(payload)
        elif kind == "compacted":
            self._compacted = True
            yield _compaction(text(payload.get("message")), instant(entry.get("timestamp")))
        elif kind in _RECORDS:
            yield _NOISE
        else:
            yield Skipped(Reason.UNKNOWN_TYPE, kind[:40])

    def end(self) -> Iterator[Item]:
        """What was still undecided at the end of the file."""
        return self._prompts.end(has_events=self._wrapped)

    def _bare(self, entry: Record, kind: str) -> Iterator[Item]:
        """A record of the oldest files, without a wrapping: the header, or an item as it is."""
        if "record_type" in entry:
            yield _NOISE
        elif kind in _RECORDS or not (kind or entry.keys() & {"role", "instructions", "git"}):
            yield Skipped(Reason.MALFORMED, kind)
        elif kind or "role" in entry:
            yield from self._item(_modern(entry, kind), entry.get("timestamp"))
        else:
            yield from self._meta(entry)

    def _meta(self, payload: Record) -> Iterator[Item]:
        """A header. The first is the session's own; later ones come with copied history, or after a resume."""
        session = string(payload.get("id")) or string(payload.get("session_id"))
        if session is None:
            yield Skipped(Reason.MALFORMED, "session_meta")
            return
        branch = string(record(payload.get("git")).get("branch"))
        if self._facts.session is None:
            origin = record(record(payload.get("source")).get("subagent"))
            spawned_by = record(origin.get("thread_spawn")).get("parent_thread_id")
            parents = (spawned_by, payload.get("parent_thread_id"), payload.get("forked_from_id"))
            self._delegated = Aside.DELEGATED if "subagent" in record(payload.get("source")) else None
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
        """The settings of a turn: where it works, and with which model."""
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
        """A response item."""
        kind = text(item.get("type"))
        if kind == "message" and item.get("role") != "assistant":
            yield from self._said(item, instant(timestamp))
            return
        yield from self._prompts.answered()
        if kind in _NOISE_ITEMS or "compaction" in kind:
            yield _NOISE
        elif kind == "message":
            yield answer_of(item, at=instant(timestamp), cwd=self._away) or _NOISE
        elif kind in CALLS:
            call = call_of(item, kind, at=instant(timestamp), cwd=self._away)
            if call and call.call_id and call.tool and kind != "web_search_call":
                self._tools[call.call_id] = call.tool
                if len(self._tools) > _OPEN_CALLS:
                    del self._tools[next(iter(self._tools))]
            yield call or Skipped(Reason.MALFORMED, kind)
        elif kind in OUTPUTS:
            tool = self._tools.pop(text(item.get("call_id")), None) or string(item.get("name"))
            result = result_of(item, kind, tool, at=instant(timestamp), cwd=self._away)
            yield result or Skipped(Reason.MALFORMED, kind)
        elif kind == "agent_message":
            yield self._delivered(item, instant(timestamp))
        else:
            yield Skipped(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40] or "response_item")

    def _said(self, item: Record, at: str | None) -> Iterator[Item]:
        """An item of a role other than the assistant's: a person's words, or what Codex tells the model."""
        if item.get("role") != "user":
            yield Skipped(Reason.INJECTED)
        elif shell := shell_of(item, at=at, cwd=self._away):
            yield shell
        elif prompt := prompt_of(item, aside=self._delegated, at=at, cwd=self._away):
            yield from self._prompts.item(prompt)
        else:
            yield Skipped(Reason.INJECTED)

    def _delivered(self, item: Record, at: str | None) -> Item:
        """A message from one agent to another; it may be readable only to the model."""
        said = content_of(item.get("content")).text
        if not said.strip():
            return _NOISE
        author = string(item.get("author"))
        return Message(role=Role.USER, text=said, aside=Aside.DELEGATED, at=at, cwd=self._away, name=author)

    def _event(self, event: Record, timestamp: object) -> Iterator[Item]:
        """An event. Most repeat an item."""
        kind = text(event.get("type"))
        if kind in _NOISE_EVENTS:
            yield _NOISE
        elif kind == "user_message":
            yield from self._prompted(kind, text(event.get("message")), _attached(event), instant(timestamp))
        elif kind == "item_completed" and record(event.get("item")).get("type") == "UserMessage":
            content = content_of(record(event.get("item")).get("content"))
            yield from self._prompted(kind, content.text, Content("", content.images), instant(timestamp))
        elif kind in _REPEATS:
            yield _REPEATED
        elif kind == "turn_aborted":
            yield self._aborted(text(event.get("reason")), instant(timestamp))
        elif kind == "context_compacted":
            yield _REPEATED if self._compacted else _compaction("", instant(timestamp))
            self._compacted = False
        elif kind == "thread_name_updated":
            yield Facts(title=string(event.get("thread_name")))
        else:
            yield Skipped(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40] or "event_msg")

    def _aborted(self, reason: str, at: str | None) -> Item:
        """The end of a turn before its time; a person's doing only where it says so, or says nothing."""
        if reason not in {"", "interrupted"}:
            return _NOISE
        return Message(role=Role.EVENT, text="interrupted", aside=Aside.INTERRUPT, at=at)

    def _prompted(self, stream: str, said: str, attached: Content, at: str | None) -> Iterator[Item]:
        """A prompt told by an event, with what was attached to it."""
        words = "\n".join(filter(None, (prompt_text(said), attached.text)))
        if not words:
            yield Skipped(Reason.INJECTED if said else Reason.MALFORMED, "" if said else stream)
            return
        prompt = Message(
            role=Role.USER, text=words, aside=self._delegated, at=at, cwd=self._away, images=attached.images
        )
        yield from self._prompts.event(stream, prompt)


def _attached(event: Record) -> Content:
    """The images of a prompt's event: URLs, and paths of files."""
    images: list[Image] = []
    notes = [image_note(url, images) for url in _strings(event.get("images"))]
    notes += [f"[image {path}]" for path in _strings(event.get("local_images"))]
    return Content("\n".join(notes), tuple(images))


def _strings(value: object) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _compaction(summary: str, at: str | None) -> Message:
    return Message(role=Role.EVENT, text=summary, aside=Aside.COMPACTION, at=at)


def _modern(entry: Record, kind: str) -> Record:
    """A bare record as a response item, where it has another shape."""
    if kind == "tool_call":
        return {**entry, "type": "function_call", "name": record(entry.get("function")).get("name")}
    if kind == "tool_result":
        return {**entry, "type": "function_call_output", "output": entry.get("result")}
    return entry if kind else {**entry, "type": "message"}


class _Records:
    """Records of a rollout, a prompt history or an exec stream, told apart one by one."""

    def __init__(self, carried: Carried | None) -> None:
        self._rollout = _Rollout.going_on(carried["rollout"]) if carried else _Rollout()
        self._stream = ExecStream.going_on(carried["stream"]) if carried else ExecStream()
        self._history = History(carried["history"] if carried else None)

    def items(self, entry: Record) -> Iterator[Item]:
        """What one record says."""
        if "payload" in entry:
            return self._rollout.items(entry)
        if text(entry.get("type")) in STREAM_TYPES:
            return self._stream.items(entry)
        return self._history.items(entry) if is_history(entry) else self._rollout.items(entry)

    def end(self) -> Iterator[Item]:
        """What was still undecided at the end of the file."""
        return self._rollout.end()

    def carried(self) -> Carried | None:
        """What is known so far; None while a prompt is undecided."""
        rollout = self._rollout.carried()
        stream, history = self._stream.carried(), self._history.session
        return rollout and {"rollout": rollout, "stream": stream, "history": history}


def sniff(sample: Sample) -> bool:
    """Whether at least half of the records are Codex's: one of them in another transcript makes it nothing else."""
    if sample.shape is not Shape.LINES:
        return False
    known = sum(_is_wrapped(entry) or _is_plain(entry) for entry in sample.records)
    return 0 < len(sample.records) <= 2 * known or any(map(_is_legacy_call, sample.records))


def _is_wrapped(entry: Record) -> bool:
    return isinstance(entry.get("payload"), dict) and text(entry.get("type")) in _RECORDS


def _is_plain(entry: Record) -> bool:
    kind = text(entry.get("type"))
    return kind in STREAM_TYPES or is_history(entry) or _is_bare_item(entry, kind)


def _is_bare_item(entry: Record, kind: str) -> bool:
    """A record of the oldest rollouts: an item of the Responses API on a line, or a bookkeeping record."""
    if kind == "message":
        return "role" in entry and "content" in entry
    if kind in CALLS or kind in OUTPUTS:
        return "call_id" in entry
    if kind == "reasoning":
        return "summary" in entry
    return "record_type" in entry or entry.keys() >= {"id", "timestamp", "instructions"}


def _is_legacy_call(entry: Record) -> bool:
    return entry.get("type") == "tool_call" and "name" in record(entry.get("function")) and "timestamp" in entry


FORMAT = Format(
    name="codex",
    title="Codex CLI",
    sniff=sniff,
    read=by_record(_Records),
    place=Place(
        homes=("~/.codex",),
        patterns=("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/*.jsonl"),
        variable="CODEX_HOME",
    ),
    copies=True,
)
