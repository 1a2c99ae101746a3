"""The observer that needs no model: it reads a batch turn by turn and writes down what was said and done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omcli.memory.anchors import searchable, unsupported
from omcli.memory.message import Aside, KeptMessage, Role
from omcli.memory.observation import Draft
from omcli.memory.ports import Batch
from omcli.memory.text import one_line
from omcli.observers.rules.actions import drafts_of, worked
from omcli.observers.rules.dialogue import (
    asides_of_person,
    said_among_people,
    said_by_person,
    said_last,
    said_on_the_way,
)
from omcli.observers.rules.tools import ToolEvent, polled, tool_event

Calls = Mapping[str | None, KeptMessage]
"""Calls by their ids."""
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
            done = _events(turns, calls)
            mended = worked(event for events in done for event in events)
            for turn, events, after in zip(turns, done, [*turns[1:], None], strict=True):
                drafts += drafts_of(events, cwd=batch.cwd, mended=mended)
                drafts += _said(turn, calls, last_said, after=after, with_agent=with_agent, with_tools=bool(events))
                last_said = next((kept for kept in reversed(turn) if kept.message.role is Role.ASSISTANT), last_said)
        told = [*calls.values(), *batch.messages, *([batch.last_said] if batch.last_said else [])]
        ground = _Ground({kept.seq: kept for kept in told})
        return tuple(_grouped(draft for draft in drafts if ground.bears(draft)))


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


def _said(
    turn: Sequence[KeptMessage],
    calls: Calls,
    last_said: KeptMessage | None,
    *,
    after: Sequence[KeptMessage] | None,
    with_agent: bool,
    with_tools: bool,
) -> Iterator[Draft]:
    """Rows of what is said in a turn. `after` is the next one, if any; `with_agent` tells a chat of people apart."""
    texts = [kept for kept in turn if kept.message.role is Role.ASSISTANT]
    for kept in turn:
        if kept.message.role is Role.USER and kept.message.aside is None:
            yield from said_by_person(kept, last_said) if with_agent else said_among_people(kept)
        elif kept.message.role in (Role.USER, Role.EVENT):
            yield from asides_of_person(kept, calls.get(kept.message.call_id) if kept.message.call_id else None)
    answered = after is not None and after[0].message.role is Role.USER
    if texts and (answered or after is None):
        yield from said_on_the_way(texts[:-1])
        yield from said_last(texts[-1], worked=with_tools, answered=answered)
    else:
        yield from said_on_the_way(texts)  # the turn goes on


def _events(turns: Sequence[Sequence[KeptMessage]], calls: Calls) -> list[list[ToolEvent]]:
    """For each turn the calls that were answered in it, with their answers, in the order of the answers.

    What was refused with words is left to those words. A command that went on in the background counts where its end is
    reported, as the command it was.
    """
    started: dict[str, KeptMessage] = {}
    finished: set[int] = set()
    by_turn: list[list[ToolEvent]] = []
    for turn in turns:
        refused = {kept.message.call_id for kept in turn if kept.message.aside is Aside.REMARK}
        events: list[ToolEvent] = []
        for kept in turn:
            call = calls.get(kept.message.call_id) if kept.message.role is Role.RESULT else None
            if call is None or kept.message.call_id in refused:
                continue
            if (process := polled(call, kept)) and process in started:
                call = started.pop(process)
                finished.add(call.seq)
            if (event := tool_event(call, kept)) is not None:
                events.append(event)
                if event.process:
                    started[event.process] = call
        by_turn.append(events)
    return [[event for event in events if not (event.process and event.call.seq in finished)] for events in by_turn]


@dataclass(slots=True)
class _Ground:
    """What rows may name: everything that their messages say. Each message is made searchable once."""

    told: Mapping[int, KeptMessage]
    searched: dict[int, str] = field(default_factory=dict)

    def bears(self, draft: Draft) -> bool:
        """Whether every anchor of a row stands in one of its sources."""
        return not unsupported(draft.text, map(self._text, draft.sources))

    def _text(self, seq: int) -> str:
        if seq not in self.searched:
            said = self.told[seq].message
            self.searched[seq] = searchable(f"{said.tool or ''} {said.exit_code or ''} {said.text}")
        return self.searched[seq]


def _grouped(drafts: Iterator[Draft]) -> list[Draft]:
    """Rows in the order they came true; the same words again give no second row, but its sources to the first."""
    grouped: dict[tuple[str, str], Draft] = {}
    for draft in sorted(drafts, key=lambda draft: draft.sources[-1]):
        line = one_line(draft.text)
        first = grouped.get((draft.type, line))
        sources = draft.sources if first is None else tuple(sorted({*first.sources, *draft.sources}))
        grouped[draft.type, line] = replace(draft if first is None else first, text=line, sources=sources)
    return list(grouped.values())
