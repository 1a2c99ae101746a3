"""Codex CLI: the output of `codex exec --json`, and the prompt history. Neither is a session file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from omcli.formats.codex.items import content_of, prompt_text
from omcli.formats.injected import without_injected
from omcli.formats.source import Record
from omcli.formats.values import compact_json, exit_code, record, string, text
from omcli.memory.message import Message, Role
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip
from omcli.text.instants import instant

# The types of items that are calls, with the keys of their arguments.
_CALLS = {
    "command_execution": ("command",),
    "mcp_tool_call": ("arguments",),
    "file_change": ("changes",),
    "web_search": ("query", "action"),
    "todo_list": ("items",),
    "collab_tool_call": ("prompt", "receiver_thread_ids"),
}
_RESULTLESS = frozenset({"web_search", "todo_list"})
# Calls whose arguments are complete at the start. Arguments of other calls may change until the end.
_ANNOUNCED = frozenset({"command_execution", "mcp_tool_call"})


class History:
    """Reads `history.jsonl`: the prompts of all sessions."""

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        """Session of the last line read."""

    def items(self, entry: Record) -> Iterator[Item]:
        """Yield the prompt on a line, preceded by its session if that has changed."""
        session = string(entry.get("session_id"))
        if session != self.session:
            self.session = session
            yield Facts(session=session)
        if said := prompt_text(text(entry.get("text"))):
            yield Message(role=Role.USER, text=said, at=instant(entry.get("ts")))
        else:
            yield Skip(Reason.INJECTED if string(entry.get("text")) else Reason.MALFORMED, "history")


class StreamReader:
    """Reads the output of `codex exec --json`: one turn of a thread, without times or the prompt."""

    def __init__(self) -> None:
        self._thread = ""
        self._open: set[str] = set()

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        stream = cls()
        stream._thread, stream._open = state["thread"], set(state["open"])
        return stream

    def state(self) -> ReaderState:
        return {"thread": self._thread, "open": sorted(self._open)}

    def items(self, entry: Record) -> Iterator[Item]:
        kind = entry.get("type")
        if kind == "thread.started":
            return self._start(string(entry.get("thread_id")))
        if kind == "item.completed":
            return self._item_end(record(entry.get("item")))
        return self._item_start(record(entry.get("item")) if kind == "item.started" else {})

    def _start(self, thread: str | None) -> Iterator[Item]:
        if thread is None:
            yield Skip(Reason.MALFORMED, "thread.started")
            return
        self._thread = thread
        self._open.clear()
        yield Facts(session=thread)

    def _id(self, item: Record) -> str | None:
        """Return an id that includes the thread, because items are numbered from 0 in every run."""
        own = string(item.get("id"))
        return f"{self._thread}:{own}" if own and self._thread else None

    def _item_start(self, item: Record) -> Iterator[Item]:
        call_id = self._id(item)
        if call_id is None or text(item.get("type")) not in _ANNOUNCED:
            yield Skip(Reason.NOISE)
        else:
            self._open.add(call_id)
            yield self._call(item)

    def _item_end(self, item: Record) -> Iterator[Item]:
        kind = text(item.get("type"))
        if kind == "agent_message":
            if said := string(item.get("text")):
                yield Message(role=Role.ASSISTANT, text=said, id=self._id(item))
            else:
                yield Skip(Reason.MALFORMED, kind)
        elif kind in _CALLS:
            call_id = self._id(item)
            if call_id not in self._open:
                yield self._call(item)
            self._open.discard(call_id or "")
            if kind not in _RESULTLESS:
                yield self._result(item)
        elif kind in {"reasoning", "error"}:
            yield Skip(Reason.NOISE)
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40] or "item.completed")

    def _call(self, item: Record) -> Message:
        kind = text(item.get("type"))
        arguments: object = {key: item[key] for key in _CALLS[kind] if key in item}
        if kind == "mcp_tool_call":
            arguments = item.get("arguments")
        call_id = self._id(item)
        return Message(
            role=Role.CALL, text=compact_json(arguments), id=call_id, tool=_tool(item, kind), call_id=call_id
        )

    def _result(self, item: Record) -> Message:
        kind = text(item.get("type"))
        code = exit_code(item.get("exit_code"))
        status = item.get("status")
        call_id = self._id(item)
        content = content_of(record(item.get("result")).get("content"))
        said = text(item.get("aggregated_output")) or content.text or text(record(item.get("error")).get("message"))
        return Message(
            role=Role.RESULT,
            text=without_injected(said) or ("" if kind == "command_execution" else text(status)),
            id=call_id and f"{call_id}:result",
            tool=_tool(item, kind),
            call_id=call_id,
            failed=code != 0 if code is not None else _failed(status),
            exit_code=code,
            images=content.images,
        )


def _tool(item: Record, kind: str) -> str:
    tool = string(item.get("tool")) or kind
    return f"mcp__{text(item.get('server'))}__{tool}" if kind == "mcp_tool_call" else tool


def _failed(status: object) -> bool | None:
    """Return True if the status means failure, False if it means success, and None otherwise."""
    return {"completed": False, "failed": True, "declined": True}.get(text(status))
