"""Drafts made of rows: several folded into one, and lasting facts for later sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from omcli.base.patterns import lazily
from omcli.llm.json_reply import LONGEST_ROW
from omcli.memory.observation import SETTLED, Draft, Kind, Observation, Priority, Source, Status, Type
from omcli.text.phrases import AGENT
from omcli.text.similarity import wording

LASTING_TYPES = MappingProxyType(
    {
        Type.PREFERENCE: Type.BEHAVIOR,
        Type.INSTRUCTION: Type.BEHAVIOR,
        Type.CORRECTION: Type.BEHAVIOR,
        Type.DECISION: Type.KNOWLEDGE,
        Type.FACT: Type.KNOWLEDGE,
        Type.KNOWLEDGE: Type.KNOWLEDGE,
        Type.BEHAVIOR: Type.BEHAVIOR,
        Type.SKILL: Type.SKILL,
        Type.PROFILE: Type.PROFILE,
    }
)
"""What sort of item a row of a type becomes."""
_STANDING_FROM = 9
"""Importance from which on an instruction that rules wrote down holds beyond its request: "Don't touch the lock file"
is 8, "Never touch a lock file" 9."""
_SHORTEST, _LONGEST = 12, 400
"""Characters: shorter rows tell nothing by themselves, longer ones are no one fact."""

_AGREED = lazily(r"User agreed \(")
# Leave to go on settles nothing for later.
_LEAVE = lazily(
    r"\b(?:look(?:s)? (?:right|good|ok(?:ay)?)|sounds? (?:right|good)|make sense|match(?:es)? (?:what|your)|proceed|"
    r"continue|go ahead|want me to|would you like|should i|shall i|shall we|ready to|may i|can i|do you want)\b",
    re.IGNORECASE,
)
_CHOSEN = lazily(
    r"\b(?:us(?:e|ing)|go(?:ing)? with|st(?:ick|ay)(?:ing)? (?:with|to|on)|switch(?:ing)? (?:to|from)|keep(?:ing)?|"
    r"decided|chose|choose|agreed|instead of|rather than|must|no longer|always|never|by default)\b",
    re.IGNORECASE,
)
_FOR_NOW = lazily(
    r"\b(?:for now|for the moment|after (?:you|that|this)|then|first|next|today|tomorrow|later|this time|once you)\b",
    re.IGNORECASE,
)
_STANDS = lazily(
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|by default|every time|whenever|any ?more|"
    r"prefer\w*|instead of|rather than|(?:is|are) (?:not )?(?:called|named|spelled|pronounced))\b",
    re.IGNORECASE,
)
_WHO = lazily(
    r"\b(?:my name(?: is|['’]s)|call me|i(?: am|['’]m) (?:an?|the|from|based|\d)|"
    r"i (?:live|work|study|speak) (?:in|at|for|as|on|with)|we(?: are|['’]re) an? |"
    r"my (?:job|role|title|team|company|employer|time ?zone|birthday|wife|husband|partner|son|daughter|dog|cat|email) "
    r"(?:is|are))\b",
    re.IGNORECASE,
)


def lasting(rows: Sequence[Observation]) -> tuple[Draft, ...]:
    """Items that rows come to, each once: preferences, standing instructions, corrections and decisions that hold, and
    who somebody is.

    Nothing that is an item already (`rows` may hold those) becomes one again.
    """
    known = {wording(row.text) for row in rows if row.kind is Kind.ITEM}
    covered = {support for row in rows if row.kind is Kind.ITEM for support in row.supports}
    drafts: dict[str, Draft] = {}
    for row in reversed(rows):
        key = wording(row.text)
        if row.kind is Kind.OBSERVATION and row.id not in covered and key not in known and _lasts(row):
            drafts.setdefault(key, _item(row))
    return tuple(reversed(drafts.values()))


def _lasts(row: Observation) -> bool:
    if not _SHORTEST <= len(row.text) <= _LONGEST or row.status in SETTLED:
        return False
    if row.type is Type.INSTRUCTION:
        return row.source is not Source.RULES or row.importance >= _STANDING_FROM
    if row.type is Type.PREFERENCE:
        return True
    if row.text.startswith(AGENT):
        return False
    if row.type is Type.CORRECTION:
        return bool(_STANDS.search(row.text))
    if row.type is Type.DECISION:
        leave = _AGREED.match(row.text) and _LEAVE.search(row.text)
        binds = row.priority is Priority.HIGH and not leave and not _FOR_NOW.search(row.text)
        return binds and bool(_CHOSEN.search(row.text))
    return row.type is Type.FACT and row.status is not Status.OPEN and bool(_WHO.search(row.text))


def _item(row: Observation) -> Draft:
    return Draft(
        text=row.text,
        type=LASTING_TYPES[row.type],
        importance=row.importance,
        priority=row.priority,
        sources=row.sources,
        event_at=row.event_at,
        refers_to=row.refers_to,
        tags=tuple(dict.fromkeys((row.type.value, *row.tags))),
        supports=(row.id,),
        source=row.source,
    )


_BETWEEN = len(" · [2026-02-10] ")
"""Characters between two texts of one row."""


class _Told(Protocol):
    @property
    def text(self) -> str: ...


_Piece = TypeVar("_Piece", bound=_Told)


def in_rows(pieces: Sequence[_Piece], *, most_rows: int) -> Iterator[list[_Piece]]:
    """Texts that are to become at most so many rows, those of each row together, in their order.

    They are more rows where one would be longer than a row may be: what fits into no pack is told to nobody.
    """
    most = -(-len(pieces) // most_rows)
    part: list[_Piece] = []
    room = LONGEST_ROW
    for piece in pieces:
        size = len(piece.text) + _BETWEEN
        if part and (len(part) == most or size > room):
            yield part
            part, room = [], LONGEST_ROW
        part.append(piece)
        room -= size
    if part:
        yield part


def folded(
    rows: Sequence[Observation],
    text: str,
    *,
    reason: str,
    told: Iterable[Observation] = (),
    status: Status | None = None,
) -> Draft:
    """One row in the place of several: of the strongest type and priority, dated like the newest.

    `told` are rows that it draws on and that stay. Rows of one instant stay in the order they are given in: ids are
    random, and the same rows are to come to the same.
    """
    ground = sorted({row.id: row for row in (*rows, *told)}.values(), key=lambda row: row.dated)
    strongest = max(reversed(rows), key=lambda row: (row.priority.importance, row.importance, row.dated))
    statuses = {row.status for row in rows}
    dates = {row.refers_to for row in rows}
    return Draft(
        text=text,
        type=strongest.type,
        importance=max(row.importance for row in rows),
        priority=strongest.priority,
        status=status or (statuses.pop() if len(statuses) == 1 else None),
        sources=tuple(sorted({seq for row in ground for seq in row.sources})),
        event_at=max((row.event_at for row in rows if row.event_at), default=None),
        refers_to=dates.pop() if len(dates) == 1 else None,
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
        metadata={"folded": len(rows)},
        supports=tuple(row.id for row in ground),
        replaces=tuple(row.id for row in rows),
        reason=reason,
    )
