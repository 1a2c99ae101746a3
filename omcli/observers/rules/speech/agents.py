"""Rows of what an agent says: the report at the end of a turn, and findings on the way.

The last text of a turn is its report; of earlier ones only findings, decisions, blockers and names are kept. Where no
tools are used, answers can be read again and little is kept of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Status, Type
from omcli.observers.rules import cues
from omcli.observers.rules.cues import agents
from omcli.observers.rules.sentences import Segment, cut, segments, text_length
from omcli.observers.rules.speech import (
    MIN_CHARACTERS,
    group_sentences,
    joined_sentences,
    text_draft,
)
from omcli.text.anchors import anchors

_OUTCOME_CHARACTERS = 1800
"""Characters kept of the last text of a turn."""
_ANSWER_CHARACTERS = 320
"""Characters kept of an answer in a chat without tools."""
_ROW_CHARACTERS = 500
"""Characters of one row: text full of code may have many."""
_NOTABLE = frozenset({Type.FACT, Type.DECISION, Type.BLOCKER})
_MIN_PROGRESS = 30
_UNNAMED_IMPORTANCE = 4
"""Importance of a sentence without a name, finding, decision or result."""
_STATUS: Mapping[Type, Status] = MappingProxyType({
    Type.OUTCOME: Status.DONE, Type.BLOCKER: Status.OPEN, Type.QUESTION: Status.OPEN,
})  # fmt: skip
_AGENT_IMPORTANCE: Mapping[Type, int] = MappingProxyType({
    Type.BLOCKER: 7, Type.OUTCOME: 7, Type.DECISION: 6, Type.QUESTION: 5, Type.PLAN: 4,
})  # fmt: skip


def progress_drafts(texts: Sequence[KeptMessage]) -> Iterator[Draft]:
    """Yield rows of findings, decisions, blockers and names in the texts of a turn before the last."""
    for text in texts:
        content = [part for part in segments(text.message.text) if _is_kept(part)]
        for row in group_sentences(content, [_progress_type(part.text) for part in content]):
            kind = row.kind or Type.FACT
            status = Status.OPEN if kind is Type.BLOCKER else None
            importance = _agent_importance(row.text, row.kind) - 1
            yield text_draft(text, f"Agent: {cut(row.text, _ROW_CHARACTERS)}", kind, importance, status=status)


def _is_kept(part: Segment) -> bool:
    """Return True if a sentence in the middle of a turn is worth a row."""
    if part.is_heading or text_length(part.text) < _MIN_PROGRESS:
        return False
    if agents.is_offer(part.text) or agents.is_progress(part.text):
        return False
    return agents.agent_type(part.text) in _NOTABLE or bool(anchors(part.text))


def _progress_type(sentence: str) -> Type | None:
    kind = agents.agent_type(sentence)
    return kind if kind in _NOTABLE else Type.PLAN if agents.is_narration(sentence) else None


def report_drafts(text: KeptMessage, *, worked: bool, in_chat: bool = False) -> Iterator[Draft]:
    """Yield rows of a turn's last text: one for each result, decision, blocker or question.

    `worked` is True if the agent used tools in the turn, `in_chat` if no tools are used at all.
    """
    speaker = text.message.name or "Agent"
    parts = [part for part in segments(text.message.text) if not agents.is_filler(part.text)]
    content = best_sentences(parts, _ANSWER_CHARACTERS if in_chat else _OUTCOME_CHARACTERS)
    for row in group_sentences(content, _report_kinds(content)):
        if text_length(row.text) < MIN_CHARACTERS and not anchors(row.text):
            continue
        kind = row.kind or Type.FACT
        if kind is Type.OUTCOME and not worked:
            kind = Type.FACT
        status = _STATUS.get(kind)
        importance = _agent_importance(row.text, kind if row.kind else None)
        importance += worked and kind is not Type.OUTCOME and importance > _UNNAMED_IMPORTANCE
        yield text_draft(
            text, f"{speaker}: {cut(row.text, _ROW_CHARACTERS)}", kind, importance - 2 * in_chat, status=status
        )


def _report_kinds(parts: Sequence[Segment]) -> list[Type | None]:
    """Return the type of each sentence of a report; items under "Next steps" are plans."""
    kinds: list[Type | None] = []
    is_next = False
    for part in parts:
        is_next = agents.opens_next_steps(part.text) if part.is_heading else is_next and part.is_item
        kinds.append(Type.PLAN if is_next else None if part.is_heading else agents.agent_type(part.text))
    return kinds


def _agent_importance(text: str, kind: Type | None) -> int:
    """Return 0 to 10: sentences with names count more, guesses without a name least."""
    if kind is None or kind is Type.FACT:
        named = bool(anchors(text))
        return 3 if agents.is_guess(text) and not named else _UNNAMED_IMPORTANCE + (kind is Type.FACT or named)
    return _AGENT_IMPORTANCE.get(kind, 4)


_MAX_WEIGHT = 3
"""Negated weight below which a sentence is kept if there is room: even long ones that name little."""


def report_summary(parts: Sequence[Segment], limit: int) -> str:
    """Return the most informative sentences of a report on one line, within `limit` characters."""
    return joined_sentences([part for part in best_sentences(parts, limit) if not cues.has_question_mark(part.text)])


def best_sentences(parts: Sequence[Segment], limit: int) -> list[Segment]:
    """Return the most informative sentences of a report in order, within `limit` characters.

    Weight comes from names (at most three), the type (`agents.agent_type`) and being first; length reduces it.
    Headings and filler are left out.
    """
    weights: list[tuple[float, int]] = []
    under = ""
    for index, part in enumerate(parts):
        under = part.text if part.is_heading else under
        opens_nothing = part.text.endswith(":") and not any(after.is_item for after in parts[index + 1 : index + 2])
        if part.is_heading or opens_nothing or agents.is_filler(part.text):
            continue
        value = min(len(anchors(part.text)), 3) - len(part.text) / 300
        value += 2 * bool(agents.agent_type(part.text)) + 2 * (index == 0) + agents.opens_next_steps(under)
        weights.append((-value, index))
    kept: list[int] = []
    room = limit
    for value, index in sorted(weights):
        if value < _MAX_WEIGHT and len(parts[index].text) <= room:
            kept.append(index)
            room -= len(parts[index].text) + 3
    return [parts[index] for index in _with_headings(parts, sorted(kept))]


def _with_headings(parts: Sequence[Segment], kept: Sequence[int]) -> list[int]:
    """Insert the headings that say something before the first kept sentence below each."""
    found: list[int] = []
    under = -1
    chosen = set(kept)
    for index in range(kept[-1] + 1 if kept else 0):
        if parts[index].is_heading:
            under = index
        elif index in chosen:
            if under >= 0 and _has_content(parts[under].text):
                found.append(under)
            found.append(index)
            under = -1
    return found


def _has_content(heading: str) -> bool:
    """Return True if a heading names a thing, a next step or a result: "Fixed in the importer"."""
    return bool(anchors(heading) or agents.opens_next_steps(heading) or agents.agent_type(heading))
