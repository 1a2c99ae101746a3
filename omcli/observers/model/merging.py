"""Rows of a model and rows of the rules made one: what tools did, what was said, and what the model left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from omcli.memory.message import Role
from omcli.memory.observation import IN_FORCE, TOOL_EVENTS, Draft, Status, Type
from omcli.memory.record import record, replace
from omcli.memory.saying import covers
from omcli.observers.model.standing import UNVERIFIED

_HELD = IN_FORCE | {Type.BLOCKER}
"""Types of rows that are never lost, however little they weigh."""
_MATTERS = 7
"""The importance from which on a row is not lost either."""
_MATTERS_UNSAID = 5
"""The same for a message that no row of the model comes from: it says nothing of it in other words."""
_ASKED = frozenset({Type.REQUEST, Type.QUESTION})
"""Types of rows that are settled later, as long as they are known to be open."""
_VAGUE = frozenset({Type.EVENT, Type.FACT})
"""Types that a model gives a row when it tells no more of it; rules know what kind of thing was said."""


@record
class Merged:
    """All rows of a batch."""

    drafts: tuple[Draft, ...]
    """In the order in which they came true."""
    added_back: int
    """Rows of the rules that the model should have had."""
    recorded_by_rules: int
    """Rows of the model that only repeat what tools did."""


def merged(
    by_model: Sequence[Draft],
    by_rules: Sequence[Draft],
    roles: Mapping[int, Role],
    *,
    unread: Collection[int] = (),
) -> Merged:
    """What tools did as the rules have it, what was said as the model has it, and what it left out of what matters.

    `roles` tells what the messages are; no model was shown those that are `unread`. With a model nothing that matters
    is lost that rules alone would keep: a row of theirs goes only where the model's rows of the same messages say most
    of it (`covers`).
    """
    tools = [draft for draft in by_rules if draft.type in TOOL_EVENTS]
    said = [_informed(draft, by_rules) for draft in by_model if not _only_repeats(draft, tools, roles)]
    verified = [draft for draft in said if UNVERIFIED not in draft.tags]
    # A model that finds nothing in all of a batch has judged; one that passes over a message may have overlooked it.
    unsaid = _MATTERS_UNSAID if by_model else _MATTERS
    others = [draft for draft in by_rules if draft.type not in TOOL_EVENTS]
    alone = [draft for draft in others if draft.sources[-1] in unread]
    lost = [draft for draft in others if draft.sources[-1] not in unread and _is_lost(draft, verified, unsaid)]
    kept = {id(draft) for draft in (*tools, *alone, *lost)}
    return Merged(
        drafts=tuple(_in_order([draft for draft in by_rules if id(draft) in kept], said)),
        added_back=len(lost),
        recorded_by_rules=len(by_model) - len(said),
    )


def _is_lost(draft: Draft, verified: Sequence[Draft], unsaid: int) -> bool:
    """Whether a row of what was said has to be added back; `unsaid` is the importance from which on one does that is of
    messages no row of the model comes from."""
    if draft.replaces:
        settled = {row for other in verified for row in other.replaces}
        return not settled.issuperset(draft.replaces)
    is_unsaid = not any(set(other.sources) & set(draft.sources) for other in verified)
    if draft.type in _ASKED and draft.status is Status.OPEN:
        verified = [other for other in verified if other.status is Status.OPEN]
    return (_matters(draft) or (is_unsaid and draft.importance >= unsaid)) and not covers(verified, draft)


def _matters(draft: Draft) -> bool:
    return draft.type in _HELD or draft.importance >= _MATTERS


def _informed(draft: Draft, by_rules: Sequence[Draft]) -> Draft:
    """A row of the model with what rules know of what it says: that it matters, that it is open still or done."""
    if UNVERIFIED in draft.tags:
        return draft
    told = [rule for rule in by_rules if rule.type not in TOOL_EVENTS and covers([draft], rule)]
    importance = max([draft.importance, *(rule.importance for rule in told if _matters(rule))])
    sure = [rule for rule in told if rule.type in _ASKED | _HELD]
    if draft.type in _VAGUE:
        same = [rule for rule in sure if rule.sources == draft.sources]
        draft = replace(draft, type=max(same, key=lambda rule: rule.importance, default=draft).type)
    known = [rule.status for rule in sure if rule.type is draft.type]
    status = draft.status or next((status for status in known if status), None)
    return replace(draft, importance=importance, status=status)


def _only_repeats(draft: Draft, tools: Sequence[Draft], roles: Mapping[int, Role]) -> bool:
    """Whether a row of a model comes from tools alone, and rules have recorded it."""
    is_of_tools = all(roles.get(seq) in (Role.CALL, Role.RESULT) for seq in draft.sources)
    return is_of_tools and not draft.replaces and covers(tools, draft)


def _in_order(by_rules: Sequence[Draft], by_model: Sequence[Draft]) -> Iterator[Draft]:
    """All rows, oldest first. Those of the rules are in order already: what was asked stands before what came of it."""
    left = sorted(by_model, key=lambda draft: draft.sources[-1])[::-1]
    places = list(accumulate((draft.sources[-1] for draft in reversed(by_rules)), min))[::-1]
    for draft, place in zip(by_rules, places, strict=True):
        while left and left[-1].sources[-1] < place:
            yield left.pop()
        yield draft
    yield from reversed(left)
