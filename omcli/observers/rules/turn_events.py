"""Events in turns that change the status of rows: a reply, the end of a turn, its continuation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.base.record import record
from omcli.memory.message import KeptMessage, MessageKind, Role
from omcli.memory.observation import Type
from omcli.observers.rules import agents, cues, people_cues
from omcli.observers.rules.commands import Succeeded
from omcli.observers.rules.sentences import TextPart, text_parts


@record
class TurnAnswered:
    """A person spoke after an agent's message, which may have asked something."""

    seq: int
    asked: int
    """`seq` of the agent's text."""


@record
class TurnDone:
    """An agent's turn ended with a message, and the person did not object."""

    seq: int
    """`seq` of the text."""
    at: str | None
    since: int | None
    """`seq` of the prompt that began the turn; None if it is in an earlier batch."""
    is_complete: bool
    """True if nothing is asked, missing or failing."""
    asks: bool
    """True if the text asks a question."""
    reports: bool
    """True if the text reports a result."""
    accepted: bool
    """True if the person went on to something else."""


@record
class TurnUnfinished:
    """A turn that seemed to have ended continued, or the person complained."""

    seq: int
    """`seq` of the text that seemed to end it."""


StatusEvent = Succeeded | TurnAnswered | TurnDone | TurnUnfinished

# Words of a report for unfinished work; not "0 failed", nor what remains unchanged.
_UNDONE = lazily(
    r"\bi (?:can'?t|cannot|haven'?t|did(?:n'?t| not) (?:manage|finish|get to)|(?:wasn'?t|was not) able)\b"
    r"|\bunable to\b|\bcould(?:n'?t| not)\b|(?<!\b0 )(?<!\bno )\bfail(?:s|ed|ing|ures?)\b"
    r"|\bstill (?:broken|missing|open|to do|need)|\bnot (?:yet|done|finished|complete|implemented|fixed|working)\b"
    r"|\b(?:incomplete|partial(?:ly)?|left to do|in progress|underway|waiting (?:for|on)|blocked)\b"
    r"|^(?:still )?remaining\b|\bremain(?:s|ing)? (?:to be|to do|open|undone|unfinished|unresolved|broken|failing)\b"
    r"|\bremaining (?:\w+ )?(?:work|tasks?|steps?|issues?|items?|errors?|failures?|scope|problems?)\b"
    r"|\bi(?:'ll| will) (?:now|next|continue)\b",
    re.IGNORECASE,
)
# A condition is not a report: "logs a warning when the upload fails".
_CONDITION = lazily(r"\b(?:if|when|whenever|where|once|unless|until|in case)\b", re.IGNORECASE)
# A complaint, or a request only to continue: earlier requests are not done.
_DISSATISFIED = lazily(
    r"^(?:please |ok(?:ay)?,? |and |but )*(?:continue|go on|go ahead|keep going|proceed|carry on|resume|"
    r"try (?:it )?again|retry|once more|again|finish)\b"
    r"|\b(?:does|did|is|do)(?: not|n'?t) work|\bsame (?:error|problem|issue)\b"
    r"|\b(?:still|not working|fail(?:s|ed|ing)?|broken|wrong|error)\b",
    re.IGNORECASE,
)


def turn_events(turns: Sequence[Sequence[KeptMessage]], last_said: KeptMessage | None) -> Iterator[StatusEvent]:
    """Yield the events of the main thread's turns. `last_said` is the agent's last text before them."""
    text, since = last_said, None
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        opening = turn[0]
        if starts_turn(opening):
            if text is not None and opening.message.role is Role.USER:
                yield TurnAnswered(seq=opening.seq, asked=text.seq)
            since = opening.seq
        if turn is turns[0] and last_said is not None:
            yield from _first_events(opening, last_said)
        ended = _turn_end(_last_texts(turn), since=since, after=after)
        if ended is not None:
            yield ended
        text = next((kept for kept in reversed(turn) if kept.message.role is Role.ASSISTANT), text)


def starts_turn(kept: KeptMessage) -> bool:
    """Return True for a prompt or a slash command, which begin a new turn."""
    message = kept.message
    return message.kind is (None if message.role is Role.USER else MessageKind.COMMAND)


def _first_events(opening: KeptMessage, last_said: KeptMessage) -> Iterator[StatusEvent]:
    """Yield the events for the agent's last text before the batch, given the batch's first message."""
    if starts_turn(opening):
        ended = _turn_end([last_said], since=None, after=[opening])
        if ended is not None:
            yield ended
        elif _is_complaint(opening):
            yield TurnUnfinished(seq=last_said.seq)
    elif opening.message.role in (Role.CALL, Role.ASSISTANT):
        yield TurnUnfinished(seq=last_said.seq)


def _last_texts(turn: Sequence[KeptMessage]) -> list[KeptMessage]:
    """Return the agent's messages that end a turn; empty if it ends with something else."""
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


def _turn_end(
    closing: Sequence[KeptMessage], *, since: int | None, after: Sequence[KeptMessage] | None
) -> TurnDone | None:
    """Return the end of a turn; None if the turn continues, only asks or announces something, or meets a complaint."""
    goes_on = after is not None and not starts_turn(after[0])
    if not closing or goes_on or (after is not None and _is_complaint(after[0])):
        return None
    report = [part for kept in closing for part in text_parts(kept.message.text)]
    parts = [part.text for part in report]
    informative = [part for part in parts if not agents.says_nothing(part)]
    kinds = {agents.agent_type(part) for part in informative}
    announces = (
        bool(parts)
        and agents.says_nothing(parts[-1])
        and not (agents.is_offer(parts[-1]) or cues.is_courtesy(parts[-1]))
    )
    if all(map(cues.has_question_mark, informative)) or announces:
        return None
    asks, lacks = _has_question(report), Type.BLOCKER in kinds or _is_unfinished(report)
    return TurnDone(
        seq=closing[-1].seq,
        at=closing[-1].message.at,
        since=since,
        is_complete=not (asks or lacks),
        asks=asks,
        reports=Type.OUTCOME in kinds,
        accepted=after is not None,
    )


def _has_question(parts: Sequence[TextPart]) -> bool:
    """Return True if a report asks something. Questions among next steps are offers; tables ask nothing."""
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
    """Return True if a report says that something is missing or failing; table cells do not count."""
    for part in parts:
        undone = None if " | " in part.text or agents.says_nothing(part.text) else _UNDONE.search(part.text)
        if undone and not _CONDITION.search(part.text, 0, undone.start()):
            return True
    return False


def _is_complaint(prompt: KeptMessage) -> bool:
    """Return True if a prompt corrects, complains or only asks to continue, so that earlier requests are not done."""
    text = prompt.message.text[:300]
    return people_cues.user_type(text) is Type.CORRECTION or bool(_DISSATISFIED.search(text))
