"""The current task of the working-memory block: the todos, what was noted or approved, what was asked for last."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.observation import Kind, Priority, Status, Type
from omcli.pack.working_facts import Fact, Line

_DONE_BESIDES = 3
"""Requests asked and done since a list of todos was touched, from which on it is an old one."""


def task_lines(facts: Sequence[Fact]) -> list[Line]:
    """What is being done: the entry of the todos that is in progress, tasks that were noted, the approved plan."""
    by_hand = [
        fact
        for fact in facts
        if fact.row.kind is Kind.NOTE and fact.row.type in (Type.TASK, Type.PLAN) and not fact.is_settled
    ]
    observed = [fact for fact in facts if fact.row.kind is not Kind.NOTE and not fact.is_settled]
    task = [fact for fact in observed if fact.row.type is Type.TASK][-1:]
    plan = [fact for fact in observed if fact.row.type is Type.PLAN and fact.row.priority is Priority.HIGH][-1:]
    return [*_todos(facts), *(Line(facts=[fact], text=fact.row.text) for fact in (*by_hand[::-1], *task, *plan))]


def request_lines(facts: Sequence[Fact]) -> list[Line]:
    """What was asked for last, unless it is settled or was let go: what the rest of the block is about."""
    asked = [fact for fact in facts if fact.row.type is Type.REQUEST and fact.row.kind is not Kind.NOTE][-1:]
    return [Line(facts=[fact], text=fact.row.text) for fact in asked if not (fact.is_settled or _is_let_go(fact))]


def _is_let_go(fact: Fact) -> bool:
    """Whether the talk went past a request: then nothing is known of what became of it."""
    return fact.row.status is None and bool(fact.known("left"))


def _todos(facts: Sequence[Fact]) -> list[Line]:
    """The todos as they stand, on one line; once all are completed, only until something else is asked for.

    A list that nobody touched while one request after the other was done is not what is being done.
    """
    todos: dict[str, tuple[str, str]] = {}
    latest: Fact | None = None
    for fact in facts:
        if fact.row.type is Type.TODO_UPDATED and not fact.known("agent"):
            if not fact.row.metadata.get("partial"):
                todos.clear()
            for number, entry in enumerate(fact.objects("todos")):
                key = str(entry.get("id") or f"{number}.")
                known = todos.get(key, ("", f"#{key}"))[1]
                todos[key] = (str(entry.get("state") or "pending"), str(entry.get("text") or known))
            latest = fact
    if latest is None:
        return []
    text = _todo_text([(state, text) for state, text in todos.values() if state != "deleted"]) or latest.row.text
    is_done = all(state in ("completed", "deleted") for state, _ in todos.values()) if todos else latest.is_settled
    if is_done and any(fact.row.type in (Type.REQUEST, Type.TASK) for fact in facts if fact.place > latest.place):
        return []
    if sum(_is_done_since(fact, latest) for fact in facts) >= _DONE_BESIDES:
        return []
    return [Line(facts=[latest], text=text)]


def _is_done_since(fact: Fact, latest: Fact) -> bool:
    """Whether a request was asked after the messages of another row, and is done."""
    asked, touched = fact.row.sources[:1], latest.row.sources[-1:]
    return fact.row.type is Type.REQUEST and fact.row.status is Status.DONE and bool(touched) and asked > touched


def _todo_text(todos: Sequence[tuple[str, str]]) -> str:
    """`write the parser (1 completed, 1 in progress, 2 pending; next: test it)`."""
    if not todos:
        return ""
    states = ["completed", "in_progress", "pending", *(state for state, _ in todos)]
    counts = ", ".join(
        f"{sum(one == state for one, _ in todos)} {state.replace('_', ' ')}"
        for state in dict.fromkeys(states)
        if any(one == state for one, _ in todos)
    )
    now = "; ".join(text for state, text in todos if state == "in_progress")
    following = next((f"; next: {text}" for state, text in todos if state == "pending"), "")
    return f"{now} ({counts}{following})" if now else f"Todos: {counts}{following}"
