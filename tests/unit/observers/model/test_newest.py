"""The newest messages that fit, as duet shows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import KeptMessage, Message, Role
from omcli.observers.model.transcript import newest_fitting
from omcli.tokenizers import counter

COUNTER = counter("chars-4")
FIVE = tuple(
    KeptMessage(
        seq=number,
        session="s",
        key=str(number),
        message=Message(role=Role.USER, text=str(number) * 400),
        tokens=100,
        counter=COUNTER.name,
    )
    for number in range(5)
)


def cost(kept: KeptMessage) -> int:
    return COUNTER.text(kept.message.text)


@pytest.mark.parametrize(
    ("room", "whole", "has_end"),
    [(200, [3, 4], False), (280, [3, 4], True), (250, [3, 4], False), (500, [0, 1, 2, 3, 4], False), (0, [], False),
     (1, [], False)],
)  # fmt: skip
def test_the_newest_are_shown_and_the_end_of_the_one_before_where_enough_of_it_fits(
    room: int, whole: list[int], has_end: bool
) -> None:
    """T17, S2.4, S2.16: of messages of 100 tokens each."""
    shown = newest_fitting(FIVE, room=room, cost=cost)
    assert [kept.seq for kept in shown if kept in FIVE] == whole
    ends = [kept for kept in shown if kept not in FIVE]
    assert [kept.seq for kept in ends] == ([2] if has_end else [])
    for kept in ends:
        marker, _, left = kept.message.text.partition("\n")
        assert marker == f"[… {400 - len(left)} characters before]"
        assert set(left) == {"2"}
        assert len(left) >= 200


@given(sizes=st.lists(st.integers(0, 900), max_size=8), room=st.integers(0, 500))
def test_never_more_than_there_is_room_for(sizes: list[int], room: int) -> None:
    """S2.4: and what is shown is the end of what there is."""
    messages = [
        KeptMessage(
            seq=number,
            session="s",
            key=str(number),
            message=Message(role=Role.USER, text="x" * size),
            tokens=0,
            counter=COUNTER.name,
        )
        for number, size in enumerate(sizes)
    ]
    shown = newest_fitting(messages, room=room, cost=cost)
    assert sum(map(cost, shown)) <= room
    assert [kept.seq for kept in shown] == list(range(len(sizes)))[len(sizes) - len(shown) :]
