"""Making drafts from rows: several rows folded into one, and lasting facts for later sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from omcli.base import lazily
from omcli.base.record import replace
from omcli.llm.replies import LONGEST_ROW, row_text
from omcli.llm.schema import ONLY_HEARD, RULED, is_only_heard, rules_of_user
from omcli.memory.message import TokenCounter, rows_tokens
from omcli.memory.observation import SETTLED, UNVERIFIED, Draft, Kind, Observation, Priority, Source, Status, Type
from omcli.memory.reflection import Material
from omcli.text.clean import AGENT
from omcli.text.phrases import HEARD_FROM, searchable, unknown_anchors, words_of
from omcli.text.similarity import folded_text, is_about

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
"""Maps the type of a row to the type of the item made from it."""
_LASTING_IMPORTANCE = 9
"""Minimum importance of instructions found by rules, and of corrections not worded as permanent, that become items. For
example, "Never touch a lock file" has 9, and "Don't touch the lock file" has 8.
"""
_SHORTEST, LONGEST = 12, 400
"""Minimum and maximum length, in characters, of rows that become items. Shorter rows mean nothing by themselves, and
longer rows state more than one fact; so rules fold no rows into a longer one.
"""

_AGREED = lazily(r"User agreed \(")
# Permission to continue is not a lasting decision.
_PERMISSION = lazily(
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
_PERMANENT = lazily(
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|by default|every time|whenever|any ?more|"
    r"prefer\w*|instead of|rather than|(?:is|are) (?:not )?(?:called|named|spelled|pronounced))\b",
    re.IGNORECASE,
)
_WHO = lazily(
    r"\b(?:(?:this|the|our) (?:repo(?:sitory)?|project|codebase|package|app|team|company|service|server|build|tests?)"
    r" (?:uses?|runs?|requires?|lives?|(?:is|are) (?:called|named|written|built|deployed|run))\b|"
    r"we use [\w./@+-]+ (?:here|for|to|as|in|everywhere|and not)\b|"
    r"my name(?: is|['’]s)|call me|i(?: am|['’]m) (?:an?|the|from|based|\d)|"
    r"i (?:live|work|study|speak) (?:in|at|for|as|on|with)|we(?: are|['’]re) an? |"
    r"my (?:job|role|title|team|company|employer|time ?zone|birthday|wife|husband|partner|son|daughter|dog|cat|email) "
    r"(?:is|are))\b",
    re.IGNORECASE,
)


def lasting(rows: Sequence[Observation]) -> tuple[Draft, ...]:
    """Return items for the lasting facts among the rows, except for facts that already are items.

    Lasting facts are unsettled, verified observations: preferences, instructions (of those that rules found, the
    important ones), important or permanent corrections, high-priority decisions that choose something for good, and
    facts about the user or the project. Of what agents say, only preferences and instructions are among them. Very
    short, very long and heard rows are not.
    """
    known = {folded_text(row.text) for row in rows if row.kind is Kind.ITEM}
    covered = {support for row in rows if row.kind is Kind.ITEM for support in row.supports}
    drafts: dict[str, Draft] = {}
    for row in reversed(rows):
        key = folded_text(row.text)
        if row.kind is Kind.OBSERVATION and row.id not in covered and key not in known and _is_lasting(row):
            drafts.setdefault(key, _item(row))
    return tuple(reversed(drafts.values()))


def is_trusted(row: Observation) -> bool:
    """Return True if a lasting fact may be made from a row: the row is verified and not heard."""
    return UNVERIFIED not in row.tags and not is_only_heard(row)


def _is_lasting(row: Observation) -> bool:
    if not _SHORTEST <= len(row.text) <= LONGEST or row.status in SETTLED or not is_trusted(row):
        return False
    if row.type is Type.INSTRUCTION:
        return row.source is not Source.RULES or row.importance >= _LASTING_IMPORTANCE
    if row.type is Type.PREFERENCE:
        return True
    if row.text.startswith(AGENT):
        return False
    if row.type is Type.CORRECTION:
        return row.importance >= _LASTING_IMPORTANCE or bool(_PERMANENT.search(row.text))
    if row.type is Type.DECISION:
        is_permission = _AGREED.match(row.text) and _PERMISSION.search(row.text)
        binds = row.priority is Priority.HIGH and not is_permission and not _FOR_NOW.search(row.text)
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
        metadata=rules_in(row.text, [row]),
        supports=(row.id,),
        source=row.source,
    )


_ENDS = " .!"
"""Characters at the end of a statement that need not be repeated."""


def verbatim_texts(row: Observation, material: Material) -> tuple[str, ...]:
    """Return the texts that another row must repeat to replace this row: its whole text if it is protected, otherwise
    the rules of the user in it.
    """
    return (row.text,) if row.id in material.protected else rules_of_user(row)


def repeats(text: str, said: str) -> bool:
    """Return True if `text` contains `said` word for word, as a statement between punctuation marks or ends.

    So "Say when to push to main." does not repeat "Push to main."
    """
    words = re.escape(row_text(said).strip(_ENDS))
    return bool(re.search(rf"(?:^|[^\w\s])\s*{words}\s*(?:$|[^\w\s])", text))


def rules_in(text: str, rows: Iterable[Observation]) -> dict[str, object]:
    """Return metadata with the rules of the user that the text repeats from the rows, with or without their speaker.

    The metadata is empty if there are none, or if the text names an output or a paste as its speaker.
    """
    if HEARD_FROM.match(text):
        return {}
    said = dict.fromkeys(ruling for row in rows for ruling in rules_of_user(row))
    forms = (next((form for form in (each, words_of(each)) if repeats(text, form)), "") for each in said)
    ruled = list(filter(None, forms))
    return {RULED: ruled} if ruled else {}


_BETWEEN = len(" · [2026-02-10] ")
"""Maximum number of characters added to join a piece of text to others in a row."""


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


_Piece = TypeVar("_Piece", bound=_HasText)


def in_rows(pieces: Sequence[_Piece], *, most_rows: int) -> Iterator[list[_Piece]]:
    """Group pieces of text, in order, into at most `most_rows` rows.

    There are more rows if one would exceed `LONGEST_ROW`, because no pack could contain such a row.
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
    also: Iterable[Observation] = (),
    status: Status | None = None,
) -> Draft:
    """Return a draft that replaces several rows, with the type and priority of the most important row, and the latest
    event date.

    Rows in `also` support the draft, but are not replaced. The draft is marked `ONLY_HEARD` if one of `rows` is heard.
    If its text repeats rules of the user, it has the type of the most important row with such a rule. Rows with the
    same date keep their order, so that the result is deterministic. If `status` is None, the draft gets the status that
    all rows have in common, if any.
    """
    sources = sorted({row.id: row for row in (*rows, *also)}.values(), key=lambda row: row.dated)

    def weight(row: Observation) -> tuple[int, int, str]:
        return row.priority.importance, row.importance, row.dated

    strongest = max(reversed(rows), key=weight)
    ruling = max((row for row in reversed(rows) if rules_in(text, [row])), key=weight, default=strongest)
    statuses = {row.status for row in rows}
    dates = {row.refers_to for row in rows}
    return Draft(
        text=text,
        type=ruling.type,
        importance=max(row.importance for row in rows),
        priority=strongest.priority,
        status=status or (statuses.pop() if len(statuses) == 1 else None),
        sources=tuple(sorted({seq for row in sources for seq in row.sources})),
        event_at=max((row.event_at for row in rows if row.event_at), default=None),
        refers_to=dates.pop() if len(dates) == 1 else None,
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
        metadata={
            "folded": len(rows),
            **({ONLY_HEARD: True} if any(map(is_only_heard, rows)) else {}),
            **rules_in(text, rows),
        },
        supports=tuple(row.id for row in sources),
        replaces=tuple(row.id for row in rows),
        reason=reason,
    )


def are_of_projects(rows: Iterable[Observation]) -> bool:
    """Return True if the rows come from more than one project, ignoring rows without one."""
    return len({row.project for row in rows if row.project}) > 1


def is_newer_rule(new: Observation, old: Observation) -> bool:
    """Return True if `new` is a verified rule of the user, later than `old`, and about the subject of all rules in
    `old`. A reflection is never newer, because it only repeats rules.
    """
    is_later = new.kind is not Kind.REFLECTION and (old.dated, old.id) < (new.dated, new.id)
    is_ruling = is_later and is_trusted(new) and bool(rules_of_user(new))
    return is_ruling and all(is_about(new.text, said) for said in rules_of_user(old))


def part_of_material(material: Material, rows: Sequence[Observation], counter: TokenCounter) -> Material:
    """Return some of the rows as material, with a share of the target in proportion to their tokens."""
    if len(rows) == len(material.rows):
        return material
    some, whole = (rows_tokens(each, counter) for each in (rows, material.rows))
    return replace(material, rows=tuple(rows), target=material.target * some // max(1, whole))


def may_replace(text: str, rows: Iterable[Observation]) -> bool:
    """Return True if text may take the place of rows: it has at most `LONGEST` characters, and all anchors of the
    high-priority rows.
    """
    if len(text) > LONGEST:
        return False
    said = [searchable(text)]
    return not any(unknown_anchors(row.text, said) for row in rows if row.priority is Priority.HIGH)
