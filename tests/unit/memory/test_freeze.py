"""Where the tail of a frozen pack is cut."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.session import EvictionPolicy

CUTTINGS = st.integers(1, 400).flatmap(
    lambda most: st.builds(EvictionPolicy, most=st.just(most), left=st.integers(0, most))
)


@given(eviction=CUTTINGS, messages=st.lists(st.integers(1, 90), max_size=60))
def test_the_tail_has_at_most_so_many_tokens_and_a_cut_leaves_about_as_many_as_it_should(
    eviction: EvictionPolicy, messages: list[int]
) -> None:
    """S2.34, C13: what is told by rows only grows, and stays as it is until the tail has more than `most`."""
    before = 0
    for said in accumulate(messages):
        told = eviction.evicted_tokens(said=said, covered=said)
        assert told is not None
        assert said - told <= eviction.most
        if told > before:
            assert said - before > eviction.most, "it had to be cut"
            assert said - told > eviction.left - max(1, eviction.left == eviction.most), "and no more was cut than that"
        assert told >= before
        before = told


@given(eviction=CUTTINGS, said=st.integers(0, 3000), part=st.floats(0, 1), further=st.integers(0, 20))
def test_nothing_is_cut_off_that_is_not_covered(eviction: EvictionPolicy, said: int, part: float, further: int) -> None:
    """T56."""
    covered = int(said * part)
    least, told = (eviction.evicted_tokens(said=said, covered=covered, further=number) for number in (0, further))
    assert least is not None
    assert least <= covered
    assert told is None or least <= told <= covered


@given(eviction=CUTTINGS, room=st.integers(-5, 500))
def test_where_it_is_printed_the_tail_is_cut_in_the_same_proportion(eviction: EvictionPolicy, room: int) -> None:
    printed = eviction.within(room)
    assert 1 <= printed.most <= max(1, room)
    assert printed.left / printed.most <= eviction.left / eviction.most
    assert (printed.left + 1) / printed.most > eviction.left / eviction.most
    assert eviction.within(eviction.most) == eviction
