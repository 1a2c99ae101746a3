"""Rows of a model and rows of the rules made one: what tools did, what was said, and what the model left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import accumulate

from omcli.memory.anchors import anchors
from omcli.memory.common_words import COMMON_WORDS
from omcli.memory.message import Role
from omcli.memory.observation import Draft, Type
from omcli.memory.record import record, replace
from omcli.memory.worth import folded, terms_of
from omcli.observers.model.believing import UNVERIFIED
from omcli.observers.model.standing import TOOL_EVENTS

_HELD = frozenset({Type.BLOCKER, Type.DECISION, Type.INSTRUCTION, Type.PREFERENCE, Type.CORRECTION})
"""Types of rows that are never lost, however little they weigh."""
_MATTERS = 7
"""The importance from which on a row is not lost either."""
_NAMES_KEPT, _WORDS_KEPT = 0.75, 0.5
"""The shares of a row's names and of its words that cover it."""
_COMMON_WEIGHT = 0.25
_SPEAKERS = frozenset({"user", "agent", "assistant"})


@record
class Merged:
    """All rows of a batch."""

    drafts: tuple[Draft, ...]
    """In the order in which they came true."""
    added_back: int
    """Rows of the rules that the model should have had."""
    recorded_by_rules: int
    """Rows of the model that only repeat what tools did."""


def merged(by_model: Sequence[Draft], by_rules: Sequence[Draft], roles: dict[int, Role]) -> Merged:
    """What tools did as the rules have it, what was said as the model has it, and what it left out of what matters.

    `roles` tells what the messages are. With a model nothing that matters is lost that rules alone would keep: a row of
    theirs goes only where the model's rows of the same messages say most of it (`covers`).
    """
    tools = [draft for draft in by_rules if draft.type in TOOL_EVENTS]
    said = [draft for draft in by_model if not _only_repeats(draft, tools, roles)]
    verified = [draft for draft in said if UNVERIFIED not in draft.tags]
    settled = {row for draft in verified for row in draft.replaces}
    kept = [draft for draft in by_rules if draft.type in TOOL_EVENTS or _is_lost(draft, verified, settled)]
    held = [draft for draft in by_rules if draft not in kept and _matters(draft)]
    return Merged(
        drafts=tuple(_in_order(kept, [_weighed(draft, held) for draft in said])),
        added_back=len(kept) - len(tools),
        recorded_by_rules=len(by_model) - len(said),
    )


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Whether rows of the same messages say what a row says: three quarters of its names, and half of its words.

    A message may come to several rows, so those that share a message with it count together. Names are anchors; of the
    words, common ones count a quarter.
    """
    about = [row for row in rows if set(row.sources) & set(draft.sources)]
    if not about:
        return False
    told = "\n".join(row.text for row in about).lower()
    names = {name.lower() for name in anchors(draft.text)}
    words = {word for word in _words(draft.text) if word.lower() not in names}
    named = sum(name in told for name in names)
    return named >= _NAMES_KEPT * len(names) and _weight(words & _words(told)) >= _WORDS_KEPT * _weight(words)


def _is_lost(draft: Draft, verified: Sequence[Draft], settled: set[str]) -> bool:
    """Whether a row of what was said has to be added back."""
    if draft.replaces:
        return not settled.issuperset(draft.replaces)
    return _matters(draft) and not covers(verified, draft)


def _matters(draft: Draft) -> bool:
    return draft.type in _HELD or draft.importance >= _MATTERS


def _weighed(draft: Draft, held: Sequence[Draft]) -> Draft:
    """A row with the weight of what it says in place of the rules: what they hold to matter is no detail."""
    if UNVERIFIED in draft.tags:
        return draft
    told = [rule.importance for rule in held if covers([draft], rule)]
    return replace(draft, importance=max(draft.importance, *told)) if told else draft


def _only_repeats(draft: Draft, tools: Sequence[Draft], roles: dict[int, Role]) -> bool:
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


def _words(text: str) -> frozenset[str]:
    """The words of a text that say something."""
    (terms,) = terms_of([text])
    return terms - _SPEAKERS


def _weight(words: Collection[str]) -> float:
    return sum(_COMMON_WEIGHT if word in _common() else 1.0 for word in words)


@cache
def _common() -> frozenset[str]:
    return frozenset(map(folded, COMMON_WORDS))
