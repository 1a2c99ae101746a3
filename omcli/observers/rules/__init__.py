"""The observer that needs no model: rules read a batch turn by turn and write rows about speech and tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from omcli.base.patterns import lazily
from omcli.base.record import field, mutable_record
from omcli.memory.batch import Batch, Observed
from omcli.memory.message import KeptMessage, MessageKind, Role
from omcli.memory.observation import Draft
from omcli.observers.rules.agents import progress_drafts, report_drafts
from omcli.observers.rules.commands import command_drafts, failure_draft, is_answer, succeeded
from omcli.observers.rules.files import IdentifierCounts, excerpt_drafts, file_change_drafts, read_only_drafts
from omcli.observers.rules.people import chat_drafts, other_drafts, prompt_drafts, with_work_importance
from omcli.observers.rules.status import open_if_asked, update_rows
from omcli.observers.rules.tasks import DRAFTS, todo_draft
from omcli.observers.rules.tool_events import Paths, ToolEvent, ToolKind, process_end, running_call, tool_event
from omcli.observers.rules.turn_events import StatusEvent, starts_turn, turn_events
from omcli.text.anchors import searchable, unknown_anchors

Calls = Mapping[str | None, KeptMessage]
"""Tool calls by call id."""
_MAX_EVENTS = 40
"""Largest number of tool events summarised together: an unattended agent's turn may run for hours."""


class RuleObserver:
    """Observes by rules, deterministically and without a model."""

    def observe(self, batch: Batch) -> Observed:
        """Return the rows of a batch, oldest first."""
        return Observed(drafts=drafts_of_batch(batch))


def drafts_of_batch(batch: Batch) -> tuple[Draft, ...]:
    """Return the rows of a batch, oldest first.

    A row with an anchor (`text.anchors`) that occurs in none of its sources is left out.
    """
    calls = {
        kept.message.call_id: kept for kept in (*batch.earlier_calls, *batch.messages) if kept.message.role is Role.CALL
    }
    speakers = {kept.message.name for kept in batch.messages if kept.message.role is Role.USER}
    with_agent = len(speakers) < 2 or any(kept.message.role is not Role.USER for kept in batch.messages)
    interest = IdentifierCounts.of(batch.messages)
    running = dict(filter(None, map(running_call, batch.context_rows)))
    drafts: list[Draft] = []
    status_events: list[StatusEvent] = []
    for thread in _by_agent(batch.messages):
        last_said = batch.last_said if thread[0].message.agent is None else None
        turns = list(_turns(thread))
        if thread[0].message.agent is None and with_agent:
            status_events += turn_events(turns, last_said)
        events_by_turn = _tool_events(turns, calls, running)
        for turn, events, following in zip(turns, events_by_turn, [*turns[1:], None], strict=True):
            status_events += succeeded(events)
            drafts += tool_drafts(events, cwd=batch.cwd, interest=interest)
            drafts += _text_drafts(
                turn, calls, last_said, after=following, with_agent=with_agent, with_tools=bool(events)
            )
            speaks = Role.ASSISTANT if with_agent else Role.USER
            last_said = next((kept for kept in reversed(turn) if kept.message.role is speaks), last_said)
    source_text = _source_text(batch, calls)
    return update_rows(batch.context_rows, filter(source_text.supports, drafts), status_events)


def _by_agent(messages: Sequence[KeptMessage]) -> list[list[KeptMessage]]:
    """Split messages into the main thread and one thread per subagent; in a transcript they are interleaved."""
    threads: dict[str | None, list[KeptMessage]] = {}
    for kept in messages:
        threads.setdefault(kept.message.agent, []).append(kept)
    return list(threads.values())


def _turns(thread: Sequence[KeptMessage]) -> Iterator[list[KeptMessage]]:
    """Split a thread at prompts, and again after `_MAX_EVENTS` tool results."""
    turn: list[KeptMessage] = []
    events = 0
    for kept in thread:
        prompted = starts_turn(kept) or (kept.message.role is Role.USER and kept.message.kind is MessageKind.QUEUED)
        if turn and (prompted or (events >= _MAX_EVENTS and kept.message.role is Role.CALL)):
            yield turn
            turn, events = [], 0
        turn.append(kept)
        events += kept.message.role is Role.RESULT
    if turn:
        yield turn


def _text_drafts(
    turn: Sequence[KeptMessage],
    calls: Calls,
    last_said: KeptMessage | None,
    *,
    after: Sequence[KeptMessage] | None,
    with_agent: bool,
    with_tools: bool,
) -> Iterator[Draft]:
    """Yield the rows about what was said in a turn.

    `after` is the next turn, if any; `with_agent` is False if only people talk to each other.
    """
    texts = [kept for kept in turn if kept.message.role is Role.ASSISTANT]
    for kept in turn:
        if kept.message.role is Role.USER and kept.message.kind is None:
            if with_agent:
                drafts = prompt_drafts(kept, last_said)
                yield from map(open_if_asked, map(with_work_importance, drafts) if calls else drafts)
            else:
                yield from chat_drafts(kept, last_said)
        elif kept.message.role in (Role.USER, Role.EVENT):
            refused = calls.get(kept.message.call_id) if kept.message.call_id else None
            yield from map(open_if_asked, other_drafts(kept, refused))
    ended = after is None or after[0].message.role is Role.USER or starts_turn(after[0])
    if texts and ended:
        yield from progress_drafts(texts[:-1])
        yield from report_drafts(texts[-1], worked=with_tools, in_chat=not calls)
    else:
        yield from progress_drafts(texts)  # the turn continues


def _tool_events(
    turns: Sequence[Sequence[KeptMessage]], calls: Calls, running: Mapping[str, KeptMessage]
) -> list[list[ToolEvent]]:
    """Return the answered calls of each turn, in the order of their results.

    A call that the user refused with a comment is left out, since the comment becomes a row. A background command is
    reported once, when it ends; `running` maps processes from earlier batches to their calls.
    """
    started = dict(running)
    finished: set[int] = set()
    by_turn: list[list[ToolEvent]] = []
    for turn in turns:
        refused = {kept.message.call_id for kept in turn if kept.message.kind is MessageKind.REMARK}
        events: list[ToolEvent] = []
        for kept in turn:
            call = calls.get(kept.message.call_id) if kept.message.role is Role.RESULT else None
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


def _source_text(batch: Batch, calls: Calls) -> _SourceText:
    """Collect the text of the batch's messages and, for earlier ones, of the context rows made from them."""
    messages = [*calls.values(), *batch.messages, *([batch.last_said] if batch.last_said else [])]
    earlier: dict[int, str] = {}
    for row in batch.context_rows:
        for seq in row.sources:
            earlier[seq] = f"{earlier.get(seq, '')}\n{row.text} {row.metadata.get('arguments', '')}"
    return _SourceText(messages={kept.seq: kept for kept in messages}, earlier=earlier)


@mutable_record
class _SourceText:
    """Text of messages by `seq`, for checking the names in a row; each text is normalised once."""

    messages: Mapping[int, KeptMessage]
    earlier: Mapping[int, str]
    searchable: dict[int, str] = field(default_factory=dict)

    def supports(self, draft: Draft) -> bool:
        """Return True if every anchor of a row occurs in one of its sources."""
        sources = [self._text(seq) for seq in draft.sources]
        return _is_quoted(draft.text, sources) or not unknown_anchors(draft.text, sources)

    def _text(self, seq: int) -> str:
        if seq not in self.searchable:
            message = self.messages[seq].message if seq in self.messages else None
            words = f"{message.tool or ''} {message.exit_code or ''} {message.text}" if message else self.earlier[seq]
            self.searchable[seq] = searchable(words)
        return self.searchable[seq]


def _is_quoted(text: str, sources: Iterable[str]) -> bool:
    """Return True if a row quotes a message word for word, so that its names need no search."""
    speaker, _, quotation = text.partition(": ")
    return speaker in ("User", "Agent") and any(quotation in source for source in sources)


# ---- rows of tools
#
# One row per fact: all edits of one file, and all reads of a turn, are one row. Importances come from the coding-agent
# design: edits 7, failures 8, commands 4, todos and delegations 5, reading and searching 3.

_REFUSED = lazily(
    r"^(?:User (?:denied|rejected|declined)|BLOCKED|The user doesn't want to|patch rejected|aborted by user|"
    r"\[Request interrupted by user|Operation aborted)",
    re.IGNORECASE,
)


def tool_drafts(events: Sequence[ToolEvent], *, cwd: str | None, interest: IdentifierCounts) -> Iterator[Draft]:
    """Yield the rows about one turn's tool events, unordered.

    Paths are shown relative to `cwd`; `interest` chooses the lines to quote from files and output.
    """
    paths = Paths(cwd)
    finished = [event for event in events if event.result is not None and not _REFUSED.match(event.output)]
    successful = [event for event in finished if not event.failed]
    yield from (failure_draft(event, paths) for event in finished if event.failed and not is_answer(event))
    yield from file_change_drafts(
        [event for event in successful if event.kind in (ToolKind.EDIT, ToolKind.WRITE)], interest, paths
    )
    yield from command_drafts([event for event in successful if event.kind is ToolKind.RUN])
    yield from read_only_drafts(successful, paths)
    yield from excerpt_drafts(successful, interest, paths)
    if draft := todo_draft([event for event in successful if event.kind is ToolKind.TODO]):
        yield draft
    for event in successful:
        if (single := DRAFTS.get(event.kind)) and (draft := single(event)):
            yield draft
