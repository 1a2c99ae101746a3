"""Rows of a model and rows of the rules, made one list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from omcli.base.record import record, replace
from omcli.memory.coverage import covers, repeats
from omcli.memory.message import Role
from omcli.memory.observation import HIGH_FROM, IN_FORCE, TOOL_EVENTS, Draft, Priority, Status, Type
from omcli.observers.model.evidence import UNVERIFIED

_ASKED = frozenset({Type.REQUEST, Type.QUESTION})
"""Types of rows that are settled later, as long as they are known to be open."""
_CERTAIN = IN_FORCE | _ASKED | {Type.BLOCKER}
"""Types that a row has because of what it says."""
_VAGUE = frozenset({Type.EVENT, Type.FACT})
"""Types that a row has where no more is known of it."""
_HIGH_SHARE = 3
"""One row in so many may be high."""
_FEW_HIGH = 3
"""As many may be in any batch, however short."""


@record
class MergedRows:
    """All rows of a batch."""

    drafts: tuple[Draft, ...]
    """In the order in which they came true."""
    added_back: int
    """Rows of the rules that the model should have had."""
    recorded_by_rules: int
    """Rows of the model that say no more than those of the rules."""


def limit_priorities(rows: Sequence[Draft], roles: Mapping[int, Role]) -> list[Draft]:
    """Rows of a model with its priorities as far as they are believed; what rules know of what they say comes on top.

    What is high to a model alone is so by a hair. Where more than a third of its rows are, and more than three, that
    says nothing of any, and they are medium. What it read off tools alone can be read again: one priority less.
    """
    sure = [row for row in rows if UNVERIFIED not in row.tags]
    is_flood = sum(row.importance >= HIGH_FROM for row in sure) > max(_FEW_HIGH, len(sure) / _HIGH_SHARE)
    most = Priority.MEDIUM.importance if is_flood else HIGH_FROM
    believed = [replace(row, importance=min(row.importance, most)) for row in rows]
    return [
        replace(row, importance=min(row.importance, _importance_below(row.importance)))
        if _comes_from_tools(row, roles)
        else row
        for row in believed
    ]


def _importance_below(importance: int) -> int:
    """The importance of the priority below that of another one."""
    return (Priority.MEDIUM if importance >= HIGH_FROM else Priority.LOW).importance


def merge_rows(
    by_model: Sequence[Draft],
    by_rules: Sequence[Draft],
    roles: Mapping[int, Role],
    *,
    unread: Collection[int] = (),
) -> MergedRows:
    """What tools did and people said as the rules have it, what agents said in the fewer words, and what a model adds.

    `roles` tells what the messages are; no model was shown those that are `unread`. With a model nothing is lost that
    rules alone would keep: a row of theirs goes only where it tells what an agent said, and the model's rows of the
    same messages say most of it (`covers`) in no more words. What the model says of a row that stays is told that row.
    """
    tools = [draft for draft in by_rules if draft.type in TOOL_EVENTS]
    ruled = [draft for draft in by_rules if draft.type not in TOOL_EVENTS]
    new = [draft for draft in by_model if not _only_repeats(draft, tools, roles)]
    unsure = [draft for draft in new if UNVERIFIED in draft.tags]
    believed = [draft for draft in new if UNVERIFIED not in draft.tags]
    read = [draft for draft in ruled if draft.sources[-1] not in unread]
    gone = [draft for draft in read if _is_replaced(draft, believed, roles)]
    staying = [draft for draft in ruled if draft not in gone]
    adding = [draft for draft in believed if _is_new(draft, staying, gone)]
    told = [
        _with_model_facts(draft, believed) if draft in staying else draft for draft in by_rules if draft not in gone
    ]
    told = _take_replacements(told, [draft for draft in believed if draft not in adding])
    settled = {row for draft in told for row in draft.replaces}
    added = [_with_rule_facts(_without_settled(draft, settled), ruled, gone) for draft in adding]
    return MergedRows(
        drafts=tuple(_in_order(told, [*added, *unsure])),
        added_back=sum(draft not in gone and not covers(believed, draft) for draft in read),
        recorded_by_rules=len(by_model) - len(added) - len(unsure),
    )


def _is_replaced(draft: Draft, by_model: Sequence[Draft], roles: Mapping[int, Role]) -> bool:
    """Whether rows of the model take the place of a row of the rules: it is an agent's, and they are no longer."""
    if draft.type is Type.REQUEST or any(roles.get(seq, Role.ASSISTANT) is not Role.ASSISTANT for seq in draft.sources):
        return False
    if draft.replaces:
        return {row for other in by_model for row in other.replaces}.issuperset(draft.replaces)
    about = [other for other in by_model if _shares_message(other, [draft])]
    if draft.type in _ASKED and draft.status is Status.OPEN:
        about = [other for other in about if other.status is Status.OPEN]
    return covers(about, draft) and sum(len(other.text) for other in about) <= len(draft.text)


def _is_new(draft: Draft, staying: Sequence[Draft], gone: Sequence[Draft]) -> bool:
    """Whether a row of the model stands for one that went, or says more than those that stay."""
    if draft.replaces and not any(covers([draft], rule) for rule in staying):
        return True  # none of them can settle in its place what it settles
    return _shares_message(draft, gone) or not repeats(draft, staying)


def _shares_message(draft: Draft, others: Sequence[Draft]) -> bool:
    """Whether a row and one of others are of one message."""
    return any(set(draft.sources) & set(other.sources) for other in others)


def _without_settled(draft: Draft, settled: Collection[str]) -> Draft:
    """A row of the model, in the place of what no row of the rules takes the place of."""
    replaces = tuple(row for row in draft.replaces if row not in settled)
    return replace(draft, replaces=replaces, reason=draft.reason if replaces else None)


def _take_replacements(rows: Sequence[Draft], repeating: Sequence[Draft]) -> list[Draft]:
    """Rows of the rules in the place of what those rows of the model that repeat them take the place of, each once."""
    settled = {row for draft in rows for row in draft.replaces}
    settling = list(rows)
    for draft in repeating:
        left = tuple(row for row in draft.replaces if row not in settled)
        place = next((at for at, row in enumerate(settling) if left and covers([draft], row)), None)
        if place is not None:
            settling[place] = replace(settling[place], replaces=(*settling[place].replaces, *left))
            settled.update(left)
    return settling


def _with_model_facts(rule: Draft, by_model: Sequence[Draft]) -> Draft:
    """A row of the rules with what the model knows of what it says: what it is, that it matters, what became of it."""
    same = [draft for draft in by_model if covers([draft], rule)]
    sure = [draft for draft in same if draft.type in _CERTAIN]
    kind = max(sure, key=lambda draft: draft.importance, default=rule).type if rule.type in _VAGUE else rule.type
    high = [draft.importance for draft in same if draft.importance >= HIGH_FROM]
    known = (draft.status for draft in same if draft.status and draft.type is kind)
    spoken = (draft.refers_to for draft in same if draft.refers_to)
    return replace(
        rule,
        type=kind,
        importance=max([rule.importance, *high]),
        status=rule.status or next(known, None),
        refers_to=rule.refers_to or next(spoken, None),
    )


def _with_rule_facts(draft: Draft, by_rules: Sequence[Draft], gone: Sequence[Draft]) -> Draft:
    """A row of the model with what rules know of what it says: what it is, whether that is open or done, and, of what
    it stands for, that it matters."""
    told = [rule for rule in by_rules if covers([draft], rule)]
    matters = [rule.importance for rule in told if rule in gone and rule.importance >= HIGH_FROM]
    importance = max([draft.importance, *matters])
    sure = [rule for rule in told if rule.type in _CERTAIN]
    if draft.type in _VAGUE:
        same = [rule for rule in sure if rule.sources == draft.sources]
        draft = replace(draft, type=max(same, key=lambda rule: rule.importance, default=draft).type)
    known = [rule.status for rule in sure if rule.type is draft.type]
    status = draft.status or next((status for status in known if status), None)
    return replace(draft, importance=importance, status=status)


def _only_repeats(draft: Draft, tools: Sequence[Draft], roles: Mapping[int, Role]) -> bool:
    """Whether a row of a model comes from tools alone, and rules have recorded it."""
    return _comes_from_tools(draft, roles) and not draft.replaces and covers(tools, draft)


def _comes_from_tools(draft: Draft, roles: Mapping[int, Role]) -> bool:
    """Whether a row comes from what tools were asked and answered, and nothing that anybody said."""
    return all(roles.get(seq) in (Role.CALL, Role.RESULT) for seq in draft.sources)


def _in_order(by_rules: Sequence[Draft], by_model: Sequence[Draft]) -> Iterator[Draft]:
    """All rows, oldest first. Those of the rules are in order already: what was asked stands before what came of it."""
    left = sorted(by_model, key=lambda draft: draft.sources[-1])[::-1]
    places = list(accumulate((draft.sources[-1] for draft in reversed(by_rules)), min))[::-1]
    for draft, place in zip(by_rules, places, strict=True):
        while left and left[-1].sources[-1] < place:
            yield left.pop()
        yield draft
    yield from reversed(left)
