"""Choosing rows that fit: what is added up row by row is what the tier costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import Kind, Observation, Priority, Type
from omcli.pack.budget import Tier, budgets
from omcli.pack.layouts import LAYOUTS, PackFormat
from omcli.pack.layouts.layout import Head, PackContent
from omcli.pack.selection import PackMeter, fitting, quotes_output
from omcli.tokenizers import Counter
from tests.strategies import observations
from tests.unit.pack.test_context_pack import mine

WORDS = Counter(name="words", count=lambda text: len(text.split()))
HEAD = Head(session="mine", counter="words", budgets=budgets(), pending=0)


def scales(to: PackFormat = PackFormat.TEXT) -> PackMeter:
    """Words, as printed in one form."""
    return PackMeter(layout=LAYOUTS[to](HEAD), counter=WORDS)


def printed(rows: Sequence[Observation], chosen: Sequence[int], to: PackFormat) -> list[str]:
    """The lines of the chosen rows under their headings, without the tier's own."""
    layout = LAYOUTS[to](HEAD)
    shown = PackContent(session=[rows[place] for place in sorted(chosen)])
    return layout.part(Tier.SESSION, shown).split("\n")[1:]


@given(
    rows=st.lists(observations(session=st.just("mine")), max_size=10),
    order=st.randoms(use_true_random=False),
    room=st.integers(0, 300),
    to=st.sampled_from([PackFormat.TEXT, PackFormat.MARKDOWN]),
)
def test_costs_add_up_to_what_is_printed(rows: list[Observation], order: object, room: int, to: PackFormat) -> None:
    """S2.35: headings are paid for by the row that needs them, whichever rows come between later."""
    places = list(range(len(rows)))
    order.shuffle(places)  # type: ignore[attr-defined]
    chosen = fitting(rows, places, room=room, meter=scales(to))
    lines = printed(rows, [price.place for price in chosen], to)
    assert sum(price.cost for price in chosen) == sum(WORDS.text(line) + 1 for line in lines) <= room


def test_rows_come_back_in_the_order_of_their_rank() -> None:
    rows = [mine(f"row {number}", number=number) for number in range(3)]
    assert [price.place for price in fitting(rows, [2, 0, 1], room=100, meter=scales())] == [2, 0, 1]


@given(rows=st.lists(observations(session=st.just("mine")), max_size=12), room=st.integers(0, 300))
def test_quoted_output_takes_a_third_at_most_unless_all_rows_fit(rows: list[Observation], room: int) -> None:
    """XG4: an agent can read a file again, but not what a person said."""
    chosen = fitting(rows, range(len(rows)), room=room, meter=scales())
    quoted = sum(each.cost for each in chosen if quotes_output(rows[each.place]))
    assert quoted <= room // 3 or len(chosen) == len(rows)


@pytest.mark.parametrize("told", [{0}, {1, 5}, {2, 3, 4}, set(range(8))], ids=str)
def test_rows_told_elsewhere_leave_their_room_to_the_others(told: set[int]) -> None:
    """S2.35: the others are chosen as if these were not there, quoted output among them."""
    texts = ["many words on the depth of the quay " * (number % 3 + 1) for number in range(8)]
    rows = [mine(text, number=number, tokens=number) for number, text in enumerate(texts)]
    rows[3:6] = [replace(row, type=Type.EXCERPT, priority=Priority.LOW) for row in rows[3:6]]
    others = [place for place in range(8) if place not in told]
    for room in range(200):
        chosen = fitting(rows, range(8), room=room, meter=scales(), left_out=frozenset(told))
        alone = fitting([rows[place] for place in others], range(len(others)), room=room, meter=scales())
        assert [(each.place, each.cost) for each in chosen] == [(others[each.place], each.cost) for each in alone]


def test_a_long_memory_is_not_counted_to_its_end() -> None:
    """A tier is full after fifty rows in succession that do not fit."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    rows = [mine(f"row {number}", number=number, minute=number, kind=Kind.NOTE) for number in range(5000)]
    counting = PackMeter(layout=LAYOUTS[PackFormat.TEXT](HEAD), counter=Counter(name="counting", count=count))
    chosen = fitting(rows, range(5000), room=100, meter=counting)
    assert 10 < len(chosen) < 30
    assert len(counted) < 160
