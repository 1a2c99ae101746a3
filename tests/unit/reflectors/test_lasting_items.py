"""Lasting facts: which rows a later session about something else would miss."""

from __future__ import annotations

import pytest

from omcli.memory.observation import Draft, Kind, Observation, Type
from omcli.reflectors.drafts import lasting
from omcli.reflectors.rules import RuleReflector
from tests.fakes import WordCounter
from tests.unit.reflectors.folded_rows import DONE, HIGH, material, row, stored, texts

LASTING = (
    row(1, "User: I prefer tabs over spaces in Makefiles", Type.PREFERENCE),
    row(2, "User: always run the linter before a commit", Type.INSTRUCTION, importance=9),
    row(3, "User: no, never push to main", Type.CORRECTION),
    row(4, "User: let's go with Postgres for the queue", Type.DECISION, priority=HIGH),
    row(5, 'User agreed ("yes") to: Use Postgres instead of Redis?', Type.DECISION, priority=HIGH),
    row(6, "User: my name is Ada and I live in Porto", Type.FACT),
    row(7, "Decided to keep the old importer", Type.DECISION, priority=HIGH),
)
PASSING = (
    row(11, "User: the crane is stuck again", Type.FACT),
    row(12, "User: use the other door", Type.REQUEST, priority=HIGH),
    row(13, "User: no, the left one", Type.CORRECTION),
    row(14, "User: but we use the old one for now", Type.DECISION, priority=HIGH),
    row(15, 'User agreed ("go on") to: Does this look right, shall I use it?', Type.DECISION, priority=HIGH),
    row(16, "Agent: I'm going to use a queue", Type.DECISION, priority=HIGH),
    row(17, "User: always the red one", Type.INSTRUCTION, importance=9, status=DONE),
    row(22, "User: don't touch the lock file", Type.INSTRUCTION, importance=8),
    row(18, "User: tabs", Type.PREFERENCE),
    row(19, "User: I prefer " + "tabs and more tabs " * 40, Type.PREFERENCE),
    row(20, "Modified src/always.py", Type.FILE_MODIFIED, priority=HIGH),
    row(21, "User: I prefer notes", Type.PREFERENCE, kind=Kind.NOTE),
)


@pytest.mark.parametrize("each", LASTING, ids=lambda each: each.type.value)
def test_what_somebody_wants_settled_or_is_lasts(each: Observation) -> None:
    """S0.32, R12: with the row it comes from, and the type that had among its tags."""
    (item,) = lasting((each,))
    assert (item.text, item.supports, item.sources, item.replaces) == (each.text, (each.id,), each.sources, ())
    assert each.type.value in item.tags


@pytest.mark.parametrize("each", PASSING, ids=lambda each: each.text[:30])
def test_what_is_of_the_moment_does_not_last(each: Observation) -> None:
    """R12: none is fine."""
    assert lasting((each,)) == ()


def test_types_of_items() -> None:
    """S0.32: how somebody wants things done, and what is so."""
    assert [item.type for item in lasting(LASTING)] == [
        Type.BEHAVIOR,
        Type.BEHAVIOR,
        Type.BEHAVIOR,
        Type.KNOWLEDGE,
        Type.KNOWLEDGE,
        Type.KNOWLEDGE,
        Type.KNOWLEDGE,
    ]


def test_a_fact_is_one_item_however_often_it_is_said() -> None:
    again = row(8, LASTING[0].text.upper(), Type.PREFERENCE)
    assert texts(lasting((LASTING[0], again))) == [again.text]


def test_what_is_an_item_already_is_none_again() -> None:
    """Also where the item words it otherwise: it says which row it was made of."""
    items = lasting(LASTING)
    kept = [stored(item, 50 + place, LASTING, Kind.ITEM) for place, item in enumerate(items)]
    assert lasting((*LASTING, *kept)) == ()
    reworded = Draft(text="Tabs!", type=Type.BEHAVIOR, importance=5, sources=(1,), supports=(LASTING[0].id,))
    assert len(lasting((LASTING[0], stored(reworded, 60, LASTING, Kind.ITEM)))) == 0


def test_items_come_with_a_reflection_also_where_nothing_is_folded() -> None:
    """S0.31, S0.32."""
    reflected = RuleReflector(WordCounter()).reflect(material(*LASTING, target=1000))
    assert (len(reflected.items), reflected.reflections, reflected.dropped) == (7, (), ())
