"""GitHub Copilot CLI: a session's events, and the timeline in one JSON document that its first versions wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from omcli.base import lazily
from omcli.base.record import fields_of, replace
from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.injected import memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import compact_json, exit_code, objects, record, string, text
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip
from omcli.text.hashes import HashSet, hash_of, packed, unpacked
from omcli.text.instants import instant

_NOISE_EVENTS = frozenset(
    """
    assistant.turn_start assistant.turn_end assistant.reasoning assistant.intent assistant.usage
    assistant.message_delta assistant.reasoning_delta assistant.streaming_delta tool.execution_progress
    tool.execution_partial_result tool.user_requested
    """.split()
)
_SIDE_EVENTS = ("session.", "hook.", "permission.", "subagent.", "skill.")
"""Beginnings of the types of bookkeeping events. Each version has other types."""
_WRITTEN_BY_CLIENT = ("system", "skill", "hook")
"""Beginnings of the source of messages in the user's role that no person typed."""
_EXIT_CODE = lazily(r"\s*<(?:exited|shellId: [^\s<>]{1,60} completed) with exit code (-?\d{1,9})>\s*\Z")
_LONGEST_MARK = 120
_ANSWERED = lazily(r"User (?:responded|selected): (.+)", re.DOTALL)
_ASK = "ask_user"
_OPEN_CALLS = 1000
"""Maximum number of calls without a result that are remembered."""
_COMPLETED = "tool_call_completed"
_OF_TIMELINE = frozenset({"user", "copilot", "tool_call_requested", _COMPLETED})


def _is_event(entry: Record) -> bool:
    kind = text(entry.get("type"))
    return ("." in kind or kind == "abort") and "parentId" in entry and isinstance(entry.get("data"), dict)


def detect(sample: Sample) -> bool:
    """Return True if at least half of the records are events, or if one has a timeline."""
    if sample.shape not in (InputShape.LINES, InputShape.DOCUMENT):
        return False
    events = sum(map(_is_event, sample.records))
    return 0 < len(sample.records) <= 2 * events or any(isinstance(x.get("timeline"), list) for x in sample.records)


class _RecordReader:
    def __init__(self, state: ReaderState | None) -> None:
        state = state or {}
        self._facts = Facts(**state.get("facts", {}))
        self._away: str | None = state.get("away")
        """Working directory if it differs from the session's."""
        self._calls: dict[str, tuple[str, str]] = {call: tuple(known) for call, known in state.get("calls", {}).items()}
        """Tool and question of calls without a result yet, by call id."""
        self._seen = HashSet(unpacked(state["seen"]) if state else ())

    def state(self) -> ReaderState:
        facts = fields_of(self._facts)
        return {"facts": facts, "away": self._away, "calls": dict(self._calls), "seen": packed(self._seen)}

    def end(self) -> Iterator[Item]:
        """Yield nothing, because no item is ever held back."""
        return iter(())

    def items(self, entry: Record) -> Iterator[Item]:
        timeline = entry.get("timeline")
        if isinstance(timeline, list):
            yield from self._learn(Facts(session=string(entry.get("sessionId"))))
            for step in timeline:
                yield from self._step(step) if isinstance(step, dict) else (Skip(Reason.NOT_AN_OBJECT),)
        else:
            yield from self._event(entry, text(entry.get("type")), record(entry.get("data")))

    def _event(self, entry: Record, kind: str, data: Record) -> Iterator[Item]:
        agent = string(entry.get("agentId")) or string(data.get("agentId")) or string(data.get("parentToolCallId"))
        message = partial(Message, at=instant(entry.get("timestamp")), cwd=self._away, agent=agent)
        own = string(entry.get("id"))
        if kind == "user.message":
            yield from self._prompt(data, partial(message, id=own))
        elif kind == "assistant.message":
            yield from self._answer(data, message, own)
        elif kind == "tool.execution_start":
            yield self._call(data, "toolName", message)
        elif kind == "tool.execution_complete":
            yield from self._result(data, message)
        elif kind == "abort":
            yield message(role=Role.EVENT, text=text(data.get("reason")), kind=MessageKind.INTERRUPT, id=own)
        elif kind == "session.compaction_complete":
            summary = without_injected(text(data.get("summaryContent")))
            yield message(role=Role.EVENT, text=summary, kind=MessageKind.COMPACTION, id=own)
        elif kind.startswith(_SIDE_EVENTS):
            yield from self._side(data, agent)
        elif kind.startswith("system."):
            yield Skip(Reason.INJECTED)
        elif kind in _NOISE_EVENTS:
            yield Skip(Reason.NOISE)
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])

    def _side(self, data: Record, agent: str | None) -> Iterator[Item]:
        """Yield the session's facts if a bookkeeping event changes them, or a `Skip`. A subagent's event never does."""
        place = record(data.get("context"))
        known = Facts(
            session=string(data.get("sessionId")),
            cwd=string(place.get("cwd")),
            branch=string(place.get("branch")),
            title=string(data.get("title")),
            model=string(data.get("newModel")) or string(data.get("selectedModel")),
        )
        yield from (list(self._learn(known)) if agent is None else ()) or (Skip(Reason.NOISE),)

    def _learn(self, found: Facts) -> Iterator[Facts]:
        """Add found facts to the known ones, and yield all of them if any changed. The first directory is kept."""
        known = self._facts
        if known.cwd and found.cwd:
            self._away = found.cwd if found.cwd != known.cwd else None
        now = replace(
            known,
            session=found.session or known.session,
            cwd=known.cwd or found.cwd,
            branch=found.branch or known.branch,
            title=found.title or known.title,
            model=found.model or known.model,
        )
        if now != known:
            self._facts = now
            yield now

    def _prompt(self, data: Record, message: partial[Message]) -> Iterator[Item]:
        said = data.get("content")
        if not isinstance(said, str):
            yield Skip(Reason.MALFORMED, "user.message")
            return
        words = "" if text(data.get("source")).startswith(_WRITTEN_BY_CLIENT) else own_words(said).strip()
        paths = [text(part.get("path")) or text(part.get("displayName")) for part in objects(data.get("attachments"))]
        if not words:  # the client goes on by itself, or a program speaks
            yield Skip(Reason.INJECTED)
            return
        yield from memory_skips(said)
        words = "\n".join((words, *(f"[file {path}]" for path in paths if path)))
        kind = MessageKind.DELEGATED if message.keywords["agent"] else None
        yield message(role=Role.USER, text=words, kind=kind)

    def _answer(self, data: Record, message: partial[Message], own: str | None) -> Iterator[Item]:
        said, model = text(data.get("content")), string(data.get("model"))
        if model and message.keywords["agent"] is None:
            yield from self._learn(Facts(model=model))
        own = string(data.get("messageId")) or own
        found: list[Item] = []
        if said.strip():
            is_repeated = own is not None and self._is_repeated("text", own, said)
            found.append(Skip(Reason.REPEATED) if is_repeated else message(role=Role.ASSISTANT, text=said, id=own))
        found += [self._call(call, "name", message) for call in objects(data.get("toolRequests"))]
        yield from found or [Skip(Reason.NOISE)]

    def _call(self, call: Record, key: str, message: partial[Message]) -> Item:
        """Return a call, or a `Skip` the second time: it is written when the model asks for it, and when it starts."""
        tool = string(call.get(key))
        call_id = string(call.get("toolCallId")) or string(call.get("callId"))
        if tool is None:
            return Skip(Reason.MALFORMED, key)
        if call_id:
            if self._is_repeated("call", call_id):
                return Skip(Reason.REPEATED)
            question = text(record(call.get("arguments")).get("question")) if tool == _ASK else ""
            self._calls[call_id] = (tool, question)
            if len(self._calls) > _OPEN_CALLS:
                del self._calls[next(iter(self._calls))]
        arguments = compact_json(call.get("arguments") or {})
        return message(role=Role.CALL, text=arguments, id=call_id, tool=tool, call_id=call_id)

    def _result(self, data: Record, message: partial[Message]) -> Iterator[Item]:
        call_id, success = string(data.get("toolCallId")), data.get("success")
        given, error = data.get("result"), data.get("error")
        said = text(record(given).get("content")) or text(given)
        said = said or text(record(error).get("message")) or text(error)
        failed = not success if isinstance(success, bool) else None
        yield from self._outcome(call_id, said, message, failed=failed)

    def _outcome(
        self, call_id: str | None, said: str, message: partial[Message], *, failed: bool | None
    ) -> Iterator[Item]:
        """Yield a result and, for a question to the person, their answer."""
        if call_id and self._is_repeated("result", call_id):
            yield Skip(Reason.REPEATED)
            return
        tool, question = self._calls.pop(call_id or "", (None, ""))
        code = _EXIT_CODE.search(said, max(0, len(said) - _LONGEST_MARK))
        message = partial(message, call_id=call_id)
        yield message(
            role=Role.RESULT,
            text=without_injected(said[: code.start()] if code else said),
            id=call_id and f"{call_id}:result",
            tool=tool,
            failed=failed,
            exit_code=exit_code(code[1]) if code else None,
        )
        if tool == _ASK and not failed and (answered := _ANSWERED.match(said)):
            words = f"{question} -> {answered[1].strip()}"
            yield message(role=Role.USER, kind=MessageKind.ANSWER, text=words, id=call_id and f"{call_id}:answer")

    def _step(self, step: Record) -> Iterator[Item]:
        """Yield the items of one step of a timeline."""
        kind, said, own = text(step.get("type")), text(step.get("text")), string(step.get("id"))
        message = partial(Message, at=instant(step.get("timestamp")), agent=None)
        if kind == "user":
            yield from self._prompt({"content": said}, partial(message, id=own))
        elif kind == "copilot" and said.strip():
            yield message(role=Role.ASSISTANT, text=said, id=own)
        elif kind in _OF_TIMELINE and kind != "copilot":
            yield self._call(step, "name", message)
            result = record(step.get("result"))
            if kind == _COMPLETED:
                outcome, log = text(result.get("type")), text(result.get("log"))
                failed = outcome != "success" if outcome else None
                yield from self._outcome(string(step.get("callId")), log, message, failed=failed)
        elif kind in ("copilot", "info", "error"):
            yield Skip(Reason.NOISE)
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])

    def _is_repeated(self, kind: str, *parts: str) -> bool:
        return not self._seen.add(hash_of(kind, *parts))


FORMAT = Format(
    name="copilot",
    title="GitHub Copilot CLI",
    detect=detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(
        homes=("~/.copilot",),
        patterns=("session-state/*/events.jsonl", "session-state/*.jsonl", "history-session-state/session_*.json"),
        variable="COPILOT_HOME",
    ),
)
