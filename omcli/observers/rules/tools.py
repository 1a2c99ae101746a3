"""Rows about a turn's tool calls. All edits of a file share a row, and so do all reads.

The importance is 7 for edits, 8 for most failures, 4 for most commands, 5 for todos and delegations, and 3 for reading
and searching.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.record import record
from omcli.memory.batch import Batch
from omcli.memory.message import KeptMessage, MessageKind, Role
from omcli.memory.observation import Draft, Status, Type
from omcli.observers.rules import shell
from omcli.observers.rules.agents import report_summary
from omcli.observers.rules.commands import command_drafts, failure_draft, is_answer, succeeded
from omcli.observers.rules.files import IdentifierCounts, excerpt_drafts, file_change_drafts, read_only_drafts
from omcli.observers.rules.sentences import cut, text_of, text_parts
from omcli.observers.rules.status import Succeeded
from omcli.observers.rules.tool_events import (
    Paths,
    ToolEvent,
    ToolKind,
    event_draft,
    process_end,
    process_fields,
    running_call,
    tool_event,
)
from omcli.text.clean import one_line
from omcli.text.phrases import first_of

_REFUSED = lazily(
    r"^(?:User (?:denied|rejected|declined)|BLOCKED|The user doesn't want to|patch rejected|aborted by user|"
    r"\[Request interrupted by user|Operation aborted)",
    re.IGNORECASE,
)


class ToolRules:
    """Rules for tool calls, with the data they need from the whole batch."""

    def __init__(self, batch: Batch, calls: Mapping[str | None, KeptMessage]) -> None:
        self._calls = calls
        """Tool calls by call id."""
        self._running = dict(filter(None, map(running_call, batch.context_rows)))
        """Calls from earlier batches by the process that they left running."""
        self._paths = Paths(batch.cwd)
        self._interest = IdentifierCounts.of(batch.messages)
        """Chooses the lines to quote from files and output."""

    def events_by_turn(self, turns: Sequence[Sequence[KeptMessage]]) -> list[list[ToolEvent]]:
        """Return the answered calls of known tools in each turn, in the order of their results.

        A call that the user refused with a comment is left out, because the comment becomes a row. A background command
        that ends within the batch is reported only at its end.
        """
        started = dict(self._running)
        finished: set[int] = set()
        by_turn: list[list[ToolEvent]] = []
        for turn in turns:
            refused = {kept.message.call_id for kept in turn if kept.message.kind is MessageKind.REMARK}
            events: list[ToolEvent] = []
            for kept in turn:
                call = self._calls.get(kept.message.call_id) if kept.message.role is Role.RESULT else None
                if call is None or kept.message.call_id in refused:
                    continue
                if (process := process_end(call, kept)) and process in started:
                    call = started.pop(process)
                    finished.add(call.seq)
                if (event := tool_event(call, kept)) is not None:
                    events.append(event)
                    if event.process:
                        started[event.process] = call
            by_turn.append(events)
        return [[event for event in events if not (event.process and event.call.seq in finished)] for events in by_turn]

    def successes(self, events: Iterable[ToolEvent]) -> Iterable[Succeeded]:
        return succeeded(events)

    def drafts(self, events: Sequence[ToolEvent]) -> Iterator[Draft]:
        """Yield the rows about one turn's tool events, unordered."""
        interest, paths = self._interest, self._paths
        finished = [event for event in events if event.result is not None and not _REFUSED.match(event.output)]
        successful = [event for event in finished if not event.failed]
        for event in finished:
            if event.failed and not is_answer(event):
                yield failure_draft(event, paths)
        yield from file_change_drafts(
            [event for event in successful if event.kind in (ToolKind.EDIT, ToolKind.WRITE)], interest, paths
        )
        yield from command_drafts([event for event in successful if event.kind is ToolKind.RUN])
        yield from read_only_drafts(successful, paths)
        yield from excerpt_drafts(successful, interest, paths)
        if draft := todo_draft([event for event in successful if event.kind is ToolKind.TODO]):
            yield draft
        for event in successful:
            if (single_draft := _DRAFTS.get(event.kind)) and (draft := single_draft(event)):
                yield draft


# ---- todos, plans, delegations and remote tools

_ANSWER_CHARACTERS = 300
_REPORT_CHARACTERS = 20_000
"""Number of characters read from the end of a subagent's report. Longer reports are logs that end with the result."""
_TODO_CHARACTERS = 200
_TODOS_KEPT = 50
_STATES = ("completed", "in_progress", "pending")
_STATE_ALIASES = MappingProxyType({
    "done": "completed", "complete": "completed", "active": "in_progress", "in-progress": "in_progress",
    "doing": "in_progress", "todo": "pending", "not_started": "pending", "not-started": "pending", "open": "pending",
})  # fmt: skip
_DELETED = "deleted"
_NUMBERED = lazily(r"\btask #(\w{1,40})", re.IGNORECASE)


@record
class _Todo:
    """An entry in a todo list. Its text and id are empty if unknown."""

    state: str
    text: str = ""
    id: str = ""

    @property
    def as_fields(self) -> dict[str, str]:
        """The entry as stored in a row's metadata."""
        fields = {"id": self.id, "state": self.state, "text": cut(self.text, _TODO_CHARACTERS)}
        return {name: value for name, value in fields.items() if value}


def todo_draft(events: Sequence[ToolEvent]) -> Draft | None:
    """Return a row with the todo list at the end of the turn, or None if the turn did not write the list.

    If the tool writes one entry at a time, the row has only the changed entries.
    """
    entries: dict[str, _Todo] = {}
    touched: list[ToolEvent] = []
    is_whole = False
    for event in events:
        if (listed := _whole_list(event)) is not None:
            entries = {str(place): todo for place, todo in enumerate(listed)}
            touched, is_whole = [event], True
        elif (todo := _entry(event)) is not None:
            known = entries.get(f"#{todo.id}")
            text = todo.text or (known.text if known else "")
            entries[f"#{todo.id}"] = _Todo(state=todo.state, text=text, id=todo.id)
            touched.append(event)
    if not touched:
        return None
    listed = [todo for todo in entries.values() if todo.state != _DELETED]
    now = "; ".join(_label(todo) for todo in listed if todo.state == "in_progress")
    is_open = any(todo.state != "completed" for todo in listed)
    return event_draft(
        touched,
        cut(f"Todos: {_list_text(listed, now=now)}", 500),
        Type.TODO_UPDATED,
        5 if entries else 3,
        status=Status.OPEN if is_open else Status.DONE,
        metadata={
            "current_task": now,
            "todos": [todo.as_fields for todo in list(entries.values())[:_TODOS_KEPT]],
            "partial": None if is_whole else True,
            "agent": touched[-1].call.message.agent,
        },
    )


def _list_text(listed: Sequence[_Todo], *, now: str) -> str:
    """Describe a list as `1 completed, 2 pending; now: …; next: …`, or entry by entry if some text is unknown. An empty
    list is described as "none left".
    """
    if not listed:
        return "none left"
    if not all(todo.text for todo in listed):
        return "; ".join(f"{_label(todo)} {todo.state.replace('_', ' ')}" for todo in listed)
    counts = [
        f"{sum(todo.state == state for todo in listed)} {state.replace('_', ' ')}"
        for state in dict.fromkeys([*_STATES, *(todo.state for todo in listed)])
        if any(todo.state == state for todo in listed)
    ]
    left = [todo.text for todo in listed if todo.state == "pending"]
    return ", ".join(counts) + (f"; now: {now}" if now else "") + (f"; next: {first_of(left, ' · ')}" if left else "")


def _label(todo: _Todo) -> str:
    return todo.text or f"#{todo.id}"


def _whole_list(event: ToolEvent) -> list[_Todo] | None:
    """Return the entries if the call writes a whole list, otherwise None."""
    listed = next((event.arguments[name] for name in ("todos", "plan", "items") if name in event.arguments), None)
    if not isinstance(listed, list):
        return None
    found = []
    for entry in listed:
        if not isinstance(entry, dict):
            continue
        text = next((entry[key] for key in ("content", "step", "text", "title", "description") if entry.get(key)), "")
        state = str(entry.get("status") or ("completed" if entry.get("completed") is True else "pending"))
        if isinstance(text, str) and text:
            found.append(_Todo(state=_known_state(state), text=one_line(text)))
    return found


def _entry(event: ToolEvent) -> _Todo | None:
    """Return the entry that a call creates or changes, or None."""
    text, state = one_line(event.argument("subject", "title")), event.argument("status")
    number = event.argument("taskId", "task_id", "id")
    if not number and (match := _NUMBERED.search(event.output[:500])):
        number = match[1]
    if not (text or (number and state)):
        return None
    return _Todo(state=_known_state(state or "pending"), text=text, id=one_line(number) or text)


def _known_state(state: str) -> str:
    plain = one_line(state).lower().replace(" ", "_")
    return _STATE_ALIASES.get(plain, plain)


def _task_draft(event: ToolEvent) -> Draft | None:
    task = event.argument("description", "task_name", "summary") or cut(
        one_line(event.argument("prompt", "message", "task")), 100
    )
    if not task:
        return None
    is_text = not event.process and event.output.lstrip()[:1] not in ("{", "[")
    answer = report_summary(text_parts(_tail(event.output)), _ANSWER_CHARACTERS) if is_text else ""
    outcome = " (still running)" if event.process else f" → {answer}" if answer else ""
    return event_draft(
        [event],
        f"Delegated: {one_line(task)}{outcome}",
        Type.TASK_DELEGATED,
        5,
        status=Status.OPEN if event.process else Status.DONE,
        metadata={"task": cut(one_line(task), _TODO_CHARACTERS), **process_fields(event)},
    )


def _tail(report: str) -> str:
    return report if len(report) <= _REPORT_CHARACTERS else report[-_REPORT_CHARACTERS:].partition("\n")[2]


def _plan_draft(event: ToolEvent) -> Draft | None:
    plan = event.argument("plan")
    lines = list(map(text_of, text_parts(plan)))
    if not lines:
        return None
    return event_draft(
        [event], cut(f"Plan approved by the user: {' · '.join(lines)}", 700), Type.PLAN, 8, status=Status.OPEN
    )


def _remote_draft(event: ToolEvent) -> Draft | None:
    """Return a row with the tool's short arguments, or None if the tool is read-only."""
    if event.is_read_only:
        return None
    given = [
        f"{name}={one_line(value)}"
        for name, value in event.arguments.items()
        if isinstance(value, str) and len(value) <= 80
    ]
    address = shell.request_url(event.output)
    text = f"Used {event.name}: {', '.join(given)}" + (f" → {address}" if address else "")
    return event_draft([event], cut(text.rstrip(": "), 300), Type.TOOL_USED, 4, status=Status.DONE)


_DRAFTS: Mapping[ToolKind, Callable[[ToolEvent], Draft | None]] = MappingProxyType(
    {ToolKind.DELEGATE: _task_draft, ToolKind.PLAN: _plan_draft, ToolKind.REMOTE: _remote_draft}
)
