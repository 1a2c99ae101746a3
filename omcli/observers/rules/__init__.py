"""The observer without a model: rules turn a batch into rows about speech and tool calls."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from omcli.base import lazily
from omcli.base.record import field, mutable_record, replace
from omcli.memory.batch import Batch, Observed
from omcli.memory.message import KeptMessage, MessageKind, Role
from omcli.memory.observation import Draft, Observation, Type
from omcli.observers.rules import agents, cues, people_cues
from omcli.observers.rules.agents import progress_drafts, report_drafts
from omcli.observers.rules.people import other_drafts, prompt_drafts, with_work_importance
from omcli.observers.rules.sentences import TextPart, text_of, text_parts
from omcli.observers.rules.status import (
    StatusEvent,
    TurnAnswered,
    TurnDone,
    TurnUnfinished,
    open_if_asked,
    update_rows,
)
from omcli.text.phrases import searchable, unknown_anchors
from omcli.text.spoken_dates import each_spoken_date

_MAX_EVENTS = 40
"""Number of tool results after which a turn is split at the next call, because unattended agents may work for hours."""


_Update = Callable[[Iterable[Observation], Iterable[Draft], Iterable[StatusEvent]], tuple[Draft, ...]]


class RuleObserver:
    """A deterministic observer that uses no model."""

    def __init__(self, update: _Update = update_rows) -> None:
        """`update` combines the context rows, the new rows and the status events of a batch."""
        self._update = update

    def observe(self, batch: Batch) -> Observed:
        """Return the rows observed in a batch and the context rows that it changes, oldest first.

        A new row is left out if it contains an anchor (`text.phrases`) that none of its sources contains, unless it
        quotes a source verbatim.
        """
        calls = {
            kept.message.call_id: kept
            for kept in (*batch.earlier_calls, *batch.messages)
            if kept.message.role is Role.CALL
        }
        speakers = {kept.message.name for kept in batch.messages if kept.message.role is Role.USER}
        with_agent = len(speakers) < 2 or any(kept.message.role is not Role.USER for kept in batch.messages)
        sources = _Sources.of(batch, calls)
        tools = None
        if calls:
            from omcli.observers.rules.tools import ToolRules  # noqa: PLC0415 - a chat needs none of its modules

            tools = ToolRules(batch, calls)
        drafts: list[Draft] = []
        status_events: list[StatusEvent] = []
        for thread in _by_agent(batch.messages):
            is_main = thread[0].message.agent is None
            last_said = batch.last_said if is_main else None
            turns = list(_turns(thread))
            if is_main and with_agent:
                status_events += turn_events(turns, last_said)
            events_by_turn = tools.events_by_turn(turns) if tools else [[] for _ in turns]
            for turn, events, following in zip(turns, events_by_turn, [*turns[1:], None], strict=True):
                if tools and events:
                    status_events += tools.successes(events)
                    drafts += tools.drafts(events)
                texts = _text_drafts(
                    turn, calls, last_said, after=following, with_agent=with_agent, with_tools=bool(events)
                )
                drafts += map(sources.dated, texts)
                speaks = Role.ASSISTANT if with_agent else Role.USER
                last_said = next((kept for kept in reversed(turn) if kept.message.role is speaks), last_said)
        if not with_agent:
            from omcli.observers.rules.chats import joined_turns  # noqa: PLC0415 - agents need none of it

            places = {kept.seq: place for place, kept in enumerate(batch.messages, 1)}
            drafts = joined_turns(drafts, defaultdict(int, places))
        return Observed(drafts=self._update(batch.context_rows, filter(sources.support, drafts), status_events))


def _by_agent(messages: Sequence[KeptMessage]) -> list[list[KeptMessage]]:
    """Split messages into one thread for the main agent and one per subagent."""
    threads: dict[str | None, list[KeptMessage]] = {}
    for kept in messages:
        threads.setdefault(kept.message.agent, []).append(kept)
    return list(threads.values())


def _turns(thread: Sequence[KeptMessage]) -> Iterator[list[KeptMessage]]:
    """Split a thread before prompts, queued messages and slash commands. A turn with at least `_MAX_EVENTS` tool
    results is also split before its next tool call.
    """
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
    calls: Mapping[str | None, KeptMessage],
    last_said: KeptMessage | None,
    *,
    after: Sequence[KeptMessage] | None,
    with_agent: bool,
    with_tools: bool,
) -> Iterator[Draft]:
    """Yield the rows about what people and the agent write in a turn, and about its events.

    `after` is the next turn, or None. `with_agent` is False if only people talk to each other. `with_tools` is True if
    the turn has tool events.
    """
    texts = [kept for kept in turn if kept.message.role is Role.ASSISTANT]
    is_idle = after is not None and all(kept.message.role in (Role.USER, Role.EVENT) for kept in turn)
    for kept in turn:
        if kept.message.role is Role.USER and kept.message.kind is None:
            if with_agent:
                drafts = prompt_drafts(kept, last_said)
                yield from map(open_if_asked, map(with_work_importance, drafts) if calls else drafts)
            else:
                from omcli.observers.rules.chats import chat_drafts  # noqa: PLC0415 - agents need none of it

                yield from chat_drafts(kept, last_said)
        elif kept.message.role in (Role.USER, Role.EVENT):
            refused = calls.get(kept.message.call_id) if kept.message.call_id else None
            is_queued = kept.message.kind is MessageKind.QUEUED
            drafts = prompt_drafts(kept, None) if is_queued else other_drafts(kept, refused)
            for draft in drafts:
                is_own = is_idle and kept.message.kind is MessageKind.COMMAND  # the client ran it, not the agent
                yield replace(draft, type=Type.EVENT, importance=3, status=None) if is_own else open_if_asked(draft)
    ended = after is None or after[0].message.role is Role.USER or starts_turn(after[0])
    if texts and ended:
        yield from progress_drafts(texts[:-1])
        yield from report_drafts(texts[-1], worked=with_tools, in_chat=not calls)
    else:
        yield from progress_drafts(texts)  # the turn continues


@mutable_record
class _Sources:
    """Texts and times of the messages that a batch's rows may cite."""

    messages: Mapping[int, KeptMessage]
    earlier: Mapping[int, str]
    """Text of context rows by source `seq`, for messages that are not in `messages`."""
    searchable: dict[int, str] = field(default_factory=dict)
    """Cache of normalised text by `seq`."""

    @classmethod
    def of(cls, batch: Batch, calls: Mapping[str | None, KeptMessage]) -> _Sources:
        messages = [*calls.values(), *batch.messages, *([batch.last_said] if batch.last_said else [])]
        earlier: dict[int, str] = {}
        for row in batch.context_rows:
            for seq in row.sources:
                earlier[seq] = f"{earlier.get(seq, '')}\n{row.text} {row.metadata.get('arguments', '')}"
        return cls(messages={kept.seq: kept for kept in messages}, earlier=earlier)

    def dated(self, draft: Draft) -> Draft:
        """Return a row with `refers_to` set to the date in its text. The row is unchanged if its text has no date or
        several, or if its sources imply different dates. An event is also unchanged, because its text is a command.
        """
        if draft.type is Type.EVENT:  # its text is a command
            return draft
        readings: set[str | None] = set()
        for message in (self.messages[seq].message for seq in draft.sources):
            readings.update(set(each_spoken_date(draft.text, at=message.at, utc_offset=message.utc_offset)) or {None})
        date = readings.pop() if len(readings) == 1 else None
        return replace(draft, refers_to=date) if date else draft

    def support(self, draft: Draft) -> bool:
        """Return True if each anchor in a row occurs in one of its sources, or if the row quotes a source verbatim."""
        sources = list(map(self._text, draft.sources))
        speaker, _, quotation = draft.text.partition(": ")
        is_quoted = speaker in ("User", "Agent") and any(quotation in source for source in sources)
        return is_quoted or not unknown_anchors(draft.text, sources)

    def _text(self, seq: int) -> str:
        if seq not in self.searchable:
            message = self.messages[seq].message if seq in self.messages else None
            words = f"{message.tool or ''} {message.exit_code or ''} {message.text}" if message else self.earlier[seq]
            self.searchable[seq] = searchable(words)
        return self.searchable[seq]


# ---- ends of turns

# Words for unfinished work in a report. "0 failed" and "remains unchanged" do not match.
_UNDONE = lazily(
    r"\bi (?:can'?t|cannot|haven'?t|did(?:n'?t| not) (?:manage|finish|get to)|(?:wasn'?t|was not) able)\b"
    r"|\bunable to\b|(?:^|\b(?:i|we) )could(?:n'?t| not)\b|(?<!\b0 )(?<!\bno )\bfail(?:s|ed|ing|ures?)\b"
    r"|\bstill (?:broken|missing|open|to do|needs?\b)|\bnot (?:yet|done|finished|complete|implemented|fixed|working)\b"
    r"|\b(?:incomplete|partial(?:ly)?|left to do|in progress|underway|waiting (?:for|on)|blocked)\b"
    r"|^(?:still )?remaining\b|\bremain(?:s|ing)? (?:to be|to do|open|undone|unfinished|unresolved|broken|failing)\b"
    r"|\bremaining (?:\w+ )?(?:work|tasks?|steps?|issues?|items?|errors?|failures?|scope|problems?)\b"
    r"|\bi(?:'ll| will) (?:now|next|continue)\b|^(?:now |next |also |we |i )*(?:still )?(?:needs?|have|ha[sd]) to\b"
    r"|^(?:now |next |also |we |i )*(?:must|should)\b",
    re.IGNORECASE,
)
# Opens a report of finished work. Failures that such a report names are mended, and its questions are about new work.
_FINISHED = lazily(
    r"^\W*(?:(?:ok(?:ay)?|great|perfect|all|everything(?:'s| is)?|(?:it|that|this)(?:'s| is)|now) )*"
    r"(?:done|finished|completed?|fixed|resolved|pushed|committed|merged|deployed|released|implemented)"
    r"(?:,? (?:and|then|now) \w+)*\s*(?:[.!:\u2013\u2014]|$)",
    re.IGNORECASE,
)
_EXPLANATION = 3
"""Minimum number of sentences in a text that answers a request although nothing was changed."""
# A condition is not a report: "logs a warning when the upload fails".
_CONDITION = lazily(r"\b(?:if|when|whenever|where|once|unless|until|in case)\b", re.IGNORECASE)
# A mere request to continue, so that earlier requests are not done.
_GOES_ON = lazily(
    r"^(?:please |ok(?:ay)?,? |and |but |yes,? )*(?:continue|go on|go ahead|keep going|proceed|carry on|resume|"
    r"try (?:it )?again|retry|once more|again|"
    r"finish(?= (?:it|this|that|them|up|your|the rest)\b|\W*$))\b",
    re.IGNORECASE,
)
# A complaint, unless it is part of an order: "Log the error", "Is it still needed?".
_DISSATISFIED = lazily(
    r"\b(?:does|did|is|do)(?: not|n'?t) work|\bsame (?:error|problem|issue)\b"
    r"|\bstill (?:not|no|the same|broken|wrong|red|there|\w+ing|(?:is|does|has|can)(?:n'?t| not)|\w+s|get|see|have|"
    r"happen)\b"
    r"|\b(?:not working|fail(?:s|ed|ing)?|broken|wrong|error)\b",
    re.IGNORECASE,
)


def turn_events(turns: Sequence[Sequence[KeptMessage]], last_said: KeptMessage | None) -> Iterator[StatusEvent]:
    """Yield status events for the main thread's turns. `last_said` is the agent's last text before the batch."""
    text, since = last_said, None
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        opening = turn[0]
        if starts_turn(opening):
            if text is not None and opening.message.role is Role.USER:
                yield TurnAnswered(seq=opening.seq, asked=text.seq)
            since = opening.seq
        if turn is turns[0] and last_said is not None and (event := _earlier_turn_event(last_said, opening)):
            yield event
        if after is None or (starts_turn(after[0]) and not _is_complaint(after[0])):
            ended = _turn_end(_last_texts(turn), since=since, accepted=after is not None)
            if ended is None and after is not None and turn[-1].message.role is Role.RESULT:
                ended = _end_after(turn[-1], since=since)
            if ended is not None:
                yield ended
        text = next((kept for kept in reversed(turn) if kept.message.role is Role.ASSISTANT), text)


def starts_turn(kept: KeptMessage) -> bool:
    """Return True if the message is a slash command, or a prompt without a `kind` (not queued and not an answer)."""
    message = kept.message
    return message.kind is (None if message.role is Role.USER else MessageKind.COMMAND)


def _earlier_turn_event(last_said: KeptMessage, opening: KeptMessage) -> StatusEvent | None:
    """Return the event that ends or resumes the turn before the batch, or None."""
    if not starts_turn(opening):
        goes_on = opening.message.role in (Role.CALL, Role.ASSISTANT) or opening.message.kind is MessageKind.INTERRUPT
        return TurnUnfinished(seq=last_said.seq) if goes_on else None
    if _is_complaint(opening):
        return TurnUnfinished(seq=last_said.seq)
    return _turn_end([last_said], since=None, accepted=True)


def _last_texts(turn: Sequence[KeptMessage]) -> list[KeptMessage]:
    """Return the messages of the agent's final text, or none if the turn ends differently."""
    closing: list[KeptMessage] = []
    for kept in reversed(turn):
        if kept.message.role is Role.EVENT and kept.message.kind is not MessageKind.INTERRUPT and not closing:
            continue
        if kept.message.role is not Role.ASSISTANT:
            break
        closing.append(kept)
        if kept.message.kind is not MessageKind.CONTINUED:
            break
    return closing[::-1]


def _turn_end(closing: Sequence[KeptMessage], *, since: int | None, accepted: bool) -> TurnDone | None:
    """Return the turn's end event. Return None if the turn's last text is missing, contains nothing but questions,
    offers and courtesies, or ends by announcing more work.
    """
    if not closing:
        return None
    report = list(chain.from_iterable(map(text_parts, map(attrgetter("message.text"), closing))))
    parts = list(map(text_of, report))
    informative = [part for part in parts if not agents.says_nothing(part)]
    kinds = {agents.agent_type(part) for part in informative}
    announces = (
        bool(parts)
        and agents.says_nothing(parts[-1])
        and not (agents.is_offer(parts[-1]) or cues.is_courtesy(parts[-1]))
    )
    if all(map(cues.has_question_mark, informative)) or announces:
        return None
    is_finished = bool(_FINISHED.match(parts[0]))
    asks = not is_finished and _has_question(report)
    lacks = Type.BLOCKER in kinds or (not is_finished and _is_unfinished(report))
    return TurnDone(
        seq=closing[-1].seq,
        at=closing[-1].message.at,
        since=since,
        is_complete=not (asks or lacks),
        asks=asks,
        reports=Type.OUTCOME in kinds,
        explains=len(informative) >= _EXPLANATION,
        accepted=accepted,
    )


def _end_after(result: KeptMessage, *, since: int | None) -> TurnDone:
    """Return the end of a turn that ends with a tool result and that the person accepted by moving on."""
    return TurnDone(
        seq=result.seq, at=result.message.at, since=since, is_complete=not result.message.failed, asks=False,
        reports=False, explains=False, accepted=True,
    )  # fmt: skip


def _has_question(parts: Sequence[TextPart]) -> bool:
    """Return True if a report asks a question. Offers, courtesies and table rows do not count, and neither do list
    items under next steps or an offer.
    """
    offers = False
    for part in parts:
        if part.is_heading or part.text.endswith(":"):
            offers = agents.opens_next_steps(part.text) or agents.is_offer(part.text)
        if " | " in part.text or agents.says_nothing(part.text):
            continue
        if cues.has_question_mark(part.text) and not (offers and part.is_item):
            return True
    return False


def _is_unfinished(parts: Sequence[TextPart]) -> bool:
    """Return True if a report states that something is missing or failing. Conditions, table rows, announcements,
    offers and courtesies do not count.
    """
    for part in parts:
        said = cues.plain_quotes(part.text)
        undone = None if " | " in said or agents.says_nothing(said) else _UNDONE.search(said)
        if undone is None or _CONDITION.search(said, 0, undone.start()):
            continue
        # "Updated the failing tests" names what was mended.
        if not undone[0].lower().startswith("fail") or agents.agent_type(part.text) is not Type.OUTCOME:
            return True
    return False


def _is_complaint(prompt: KeptMessage) -> bool:
    """Return True if a prompt shows that earlier requests are not done: it corrects, complains or asks to continue."""
    text = cues.plain_quotes(prompt.message.text[:300])
    if _GOES_ON.match(text) or people_cues.user_type(text) is Type.CORRECTION:
        return True
    return bool(_DISSATISFIED.search(text)) and not cues.is_imperative(text)
