"""The observer that needs no model: it reads a batch turn by turn and writes down what was said and done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from omcli.memory.anchors import unsupported
from omcli.memory.message import Aside, KeptMessage, Role
from omcli.memory.observation import Draft
from omcli.memory.ports import Batch
from omcli.memory.text import one_line
from omcli.observers.rules.actions import drafts_of
from omcli.observers.rules.dialogue import (
    asides_of_person,
    said_among_people,
    said_by_person,
    said_last,
    said_on_the_way,
)
from omcli.observers.rules.tools import ToolEvent, tool_event

_MOST_EVENTS = 40
"""Tool events folded together at most: a turn of an agent left alone may run for hours."""


@dataclass(frozen=True, slots=True)
class RuleObserver:
    """Observations by rules: pure, deterministic, without a model."""

    def observe(self, batch: Batch) -> tuple[Draft, ...]:
        """What is worth keeping of a batch, in the order in which it came true.

        Every anchor (`memory.anchors`) of a row stands in one of its sources: a row that would name anything else is
        left out.
        """
        calls = {
            kept.message.call_id: kept
            for kept in (*batch.earlier_calls, *batch.messages)
            if kept.message.role is Role.CALL
        }
        speakers = {kept.message.name for kept in batch.messages if kept.message.role is Role.USER}
        with_agent = len(speakers) < 2 or any(kept.message.role is not Role.USER for kept in batch.messages)
        drafts: list[Draft] = []
        for thread in _threads(batch.messages):
            last_said = batch.last_said if thread[0].message.agent is None else None
            turns = list(_turns(thread))
            for turn, after in zip(turns, [*turns[1:], None], strict=True):
                drafts.extend(_drafts(turn, calls, last_said, cwd=batch.cwd, after=after, with_agent=with_agent))
                last_said = next((kept for kept in reversed(turn) if kept.message.role is Role.ASSISTANT), last_said)
        told = (*calls.values(), *batch.messages, *((batch.last_said,) if batch.last_said else ()))
        known = {kept.seq: _searched(kept) for kept in told}
        return tuple(_grouped(draft for draft in drafts if _is_grounded(draft, known)))


def _threads(messages: Sequence[KeptMessage]) -> list[list[KeptMessage]]:
    """The main thread and each subagent's, each in order: they interleave in a transcript."""
    threads: dict[str | None, list[KeptMessage]] = {}
    for kept in messages:
        threads.setdefault(kept.message.agent, []).append(kept)
    return list(threads.values())


def _turns(thread: Sequence[KeptMessage]) -> Iterator[list[KeptMessage]]:
    """Stretches that begin with a prompt; long ones are parted, for what is folded is folded within one."""
    turn: list[KeptMessage] = []
    events = 0
    for kept in thread:
        prompted = kept.message.role is Role.USER and kept.message.aside in (None, Aside.QUEUED)
        if turn and (prompted or (events >= _MOST_EVENTS and kept.message.role is Role.CALL)):
            yield turn
            turn, events = [], 0
        turn.append(kept)
        events += kept.message.role is Role.RESULT
    if turn:
        yield turn


def _drafts(
    turn: Sequence[KeptMessage],
    calls: dict[str | None, KeptMessage],
    last_said: KeptMessage | None,
    *,
    cwd: str | None,
    after: Sequence[KeptMessage] | None,
    with_agent: bool,
) -> Iterator[Draft]:
    """Rows of one turn. `after` is the next one, where there is one; `with_agent` tells a chat of people apart."""
    events = _events(turn, calls)
    texts = [kept for kept in turn if kept.message.role is Role.ASSISTANT]
    for kept in turn:
        if kept.message.role is Role.USER and kept.message.aside is None:
            yield from said_by_person(kept, last_said) if with_agent else said_among_people(kept)
        elif kept.message.role in (Role.USER, Role.EVENT):
            yield from asides_of_person(kept, calls.get(kept.message.call_id) if kept.message.call_id else None)
    yield from drafts_of(events, cwd=cwd)
    answered = after is not None and after[0].message.role is Role.USER
    if texts and (answered or after is None):
        yield from said_on_the_way(texts[:-1])
        yield from said_last(texts[-1], worked=bool(events), answered=answered)
    else:
        yield from said_on_the_way(texts)  # the turn goes on


def _events(turn: Sequence[KeptMessage], calls: dict[str | None, KeptMessage]) -> list[ToolEvent]:
    """The calls that were answered in this turn, each with its answer, in the order of the answers.

    What was refused with words is left to those words.
    """
    refused = {kept.message.call_id for kept in turn if kept.message.aside is Aside.REMARK}
    results = [kept for kept in turn if kept.message.role is Role.RESULT and kept.message.call_id not in refused]
    answered = ((calls.get(kept.message.call_id), kept) for kept in results)
    paired = (tool_event(call, result) for call, result in answered if call is not None)
    return [event for event in paired if event is not None]


def _searched(kept: KeptMessage) -> str:
    """Everything a message says: its text, the tool's name, the exit code."""
    return f"{kept.message.tool or ''} {kept.message.exit_code or ''} {kept.message.text}"


def _is_grounded(draft: Draft, known: dict[int, str]) -> bool:
    return not unsupported(draft.text, (known[seq] for seq in draft.sources if seq in known))


def _grouped(drafts: Iterator[Draft]) -> list[Draft]:
    """Rows in the order they came true; the same words again give no second row, but its sources to the first."""
    grouped: dict[tuple[str, str], Draft] = {}
    for draft in sorted(drafts, key=lambda draft: draft.sources[-1]):
        line = one_line(draft.text)
        first = grouped.get((draft.type, line))
        sources = draft.sources if first is None else tuple(sorted({*first.sources, *draft.sources}))
        grouped[draft.type, line] = replace(draft if first is None else first, text=line, sources=sources)
    return list(grouped.values())
