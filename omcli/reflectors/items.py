"""Lasting facts for later sessions: what somebody wants, what was settled, who somebody is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.memory.observation import SETTLED, Draft, Kind, Observation, Priority, Source, Status, Type
from omcli.text.similarity import wording
from omcli.text.speakers import AGENT

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
