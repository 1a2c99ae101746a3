"""When messages are observed ahead, which blocks are written down, and which are superfluous."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory import buffer as block_text
from omcli.memory.batch import Observed
from omcli.memory.buffer import BufferPolicy, Span, count_due, in_line, is_covered, tokens_of
from omcli.memory.observation import Draft, Priority, Source, Status, Type
from tests.material import row_id

MASTRA = BufferPolicy.of(6_000, tokens=30_000, late=3_000, late_from=23_400, messages=0)
ZORA = BufferPolicy.of(0.7, tokens=30_000, late=0, late_from=0, messages=20)
SPANS = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda drawn: Span(drawn[0], drawn[0] + drawn[1]))


# When it is due


@pytest.mark.parametrize(
    ("waiting", "fresh", "is_due"),
    [
        (5_999, 5_999, False),
        (6_000, 6_000, True),
        (11_999, 5_999, False),
        (12_000, 6_000, True),
        (23_399, 5_999, False),
        (23_400, 2_999, False),
        (23_400, 3_000, True),
        (23_400, 5_400, True),
        (29_999, 3_000, True),
    ],
)
def test_a_block_is_made_of_every_so_many_tokens_and_of_fewer_near_the_threshold(
    waiting: int, fresh: int, *, is_due: bool
) -> None:
    """T77, S0.21: preset `mastra`, every 6,000, every 3,000 once 23,400 wait."""
    assert MASTRA.is_due(waiting=waiting, fresh=fresh, messages=1, blocks=3) is is_due


def test_a_block_is_as_long_as_the_step_it_is_made_after() -> None:
    """T77."""
    assert (MASTRA.step(23_399), MASTRA.step(23_400)) == (6_000, 3_000)


@pytest.mark.parametrize(
    ("fresh", "messages", "blocks", "is_due"),
    [
        (20_999, 200, 0, False),
        (21_000, 20, 0, True),
        (21_000, 19, 0, False),
        (29_000, 200, 1, False),
    ],
)
def test_a_share_of_the_threshold_is_waited_for_once(fresh: int, messages: int, blocks: int, *, is_due: bool) -> None:
    """S0.21, S0.18: preset `zora`, at 0.7 of 30,000, of at least 20 messages, and with no block in flight."""
    assert ZORA.is_due(waiting=fresh, fresh=fresh, messages=messages, blocks=blocks) is is_due


def test_nothing_is_observed_ahead_where_nobody_says_so() -> None:
    never = BufferPolicy.of(0, tokens=30_000, late=0, late_from=0, messages=0)
    assert not never.is_due(waiting=29_999, fresh=29_999, messages=99, blocks=0)


@pytest.mark.parametrize(
    ("amount", "tokens"),
    [(1 - 0.8, 6_000), (0.7, 21_000), (0.2, 6_000), (1, 30_000), (0.29, 8_700), (6_000, 6_000), (0, 0), (0.00001, 0)],
)
def test_a_share_is_not_one_token_less_for_how_it_is_computed(amount: float, tokens: int) -> None:
    """T77: `int(30000 * (1 - 0.8))` is 5,999."""
    assert int(30_000 * (1 - 0.8)) == 5_999
    assert tokens_of(amount, 30_000) == tokens


@given(st.integers(0, 1000), st.integers(1, 10**9))
def test_a_share_is_what_it_is_in_whole_numbers(thousandths: int, whole: int) -> None:
    assert tokens_of(thousandths / 1000, whole) == thousandths * whole // 1000


# What is written down


@pytest.mark.parametrize(
    ("sizes", "waiting", "number"),
    [
        ((5_000, 5_000), 20_000, 2),
        ((8_000,), 12_000, 1),
        ((5_000, 8_000), 16_000, 1),
        ((8_000, 8_000, 8_000), 25_000, 2),
        ((6_000, 6_000, 6_000, 6_000), 30_000, 4),
        ((), 30_000, 0),
    ],
)
def test_blocks_are_activated_while_enough_stays_unobserved(sizes: tuple[int, ...], waiting: int, number: int) -> None:
    """T78: with a floor of 6,000; the first always."""
    assert count_due(sizes, waiting=waiting, floor=6_000) == number


@given(st.lists(st.integers(0, 50)), st.integers(0, 200), st.integers(0, 60))
def test_as_many_are_activated_as_leave_the_floor_and_no_more(sizes: list[int], more: int, floor: int) -> None:
    """T78."""
    waiting = sum(sizes) + more
    number = count_due(sizes, waiting=waiting, floor=floor)
    assert min(1, len(sizes)) <= number <= len(sizes)
    assert number <= 1 or waiting - sum(sizes[:number]) >= floor
    assert number == len(sizes) or waiting - sum(sizes[: number + 1]) < floor
    assert count_due(sizes, waiting=waiting, floor=0) == len(sizes)


# What is superfluous


def test_a_block_inside_another_is_discarded_and_so_is_one_that_the_cursor_has_passed() -> None:
    """T76: {10, 11} in {10..13}; wholly before the cursor; one that straddles it is kept."""
    assert is_covered(Span(9, 11), [Span(9, 13)], 0)
    assert is_covered(Span(9, 13), [Span(9, 13)], 0), "the same is inside"
    assert not is_covered(Span(9, 13), [Span(9, 11), Span(10, 14)], 0)
    assert is_covered(Span(9, 13), [], 13)
    assert not is_covered(Span(9, 13), [], 12)


def test_blocks_are_written_down_from_the_cursor_on_each_behind_the_one_before() -> None:
    """T76: what straddles the cursor begins there, and behind a gap there is nothing to be written."""

    def line(*spans: Span, cursor: int) -> list[tuple[Span, int]]:
        return list(in_line(spans, cursor))

    first, second = Span(0, 4), Span(4, 9)
    assert line(second, first, cursor=0) == [(first, 0), (second, 4)]
    assert line(first, second, cursor=2) == [(first, 2), (second, 4)]
    assert line(first, second, cursor=4) == [(second, 4)]
    assert line(first, second, cursor=9) == []
    assert line(second, cursor=3) == []
    assert line(first, Span(3, 9), cursor=0) == [(first, 0), (Span(3, 9), 4)]
    assert line(first, Span(0, 2), Span(1, 4), second, cursor=0) == [(first, 0), (second, 4)]


@given(st.lists(SPANS, max_size=8), st.integers(0, 30))
def test_what_is_written_down_covers_each_message_once_and_leaves_no_gap(spans: list[Span], cursor: int) -> None:
    """T76: whatever blocks there are."""
    line = list(in_line(spans, cursor))
    places = [after for _, after in line] + [line[-1][0].through if line else cursor]
    assert places[0] == cursor
    assert all(earlier < later for earlier, later in pairwise(places))
    for span, after in line:
        assert span in spans
        assert span.after <= after < span.through
        assert not is_covered(span, [other for other in spans if other != span], cursor)
    assert not [span for span in spans if span.after <= places[-1] < span.through], "as far as they reach"


# How it is kept


DRAFTS = st.builds(
    Draft,
    text=st.text(min_size=1).filter(lambda text: "\n" not in text),
    type=st.sampled_from(Type),
    importance=st.integers(0, 10),
    sources=st.lists(st.integers(1, 10**9), min_size=1).map(tuple),
    priority=st.none() | st.sampled_from(Priority),
    status=st.none() | st.sampled_from(Status),
    event_at=st.none() | st.just("2026-03-02T10:00:00.000Z"),
    refers_to=st.none() | st.just("2026-03"),
    tags=st.lists(st.text()).map(tuple),
    metadata=st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())),
    replaces=st.lists(st.integers(0, 99).map(row_id)).map(tuple),
    reason=st.none() | st.text(min_size=1),
    supports=st.lists(st.integers(0, 99).map(row_id)).map(tuple),
    source=st.sampled_from(Source),
    under=st.none() | st.text(min_size=1),
)


@given(
    st.lists(DRAFTS, max_size=4), st.lists(st.integers(0, 99).map(row_id)), st.none() | st.text(min_size=1),
    st.dictionaries(st.text(), st.integers(1)),
)  # fmt: skip
def test_what_was_observed_is_read_as_it_was_written(
    drafts: list[Draft], used: list[str], title: str | None, findings: dict[str, int]
) -> None:
    observed = Observed(drafts=tuple(drafts), used=tuple(used), title=title, findings=findings)
    ids = tuple(map(row_id, range(len(drafts))))
    assert block_text.read(block_text.written(observed, ids)) == (observed, ids)


@pytest.mark.parametrize(
    "change",
    [
        {"text": 7}, {"text": ""}, {"text": "two\nlines"}, {"type": "rumour"}, {"type": None}, {"importance": 11},
        {"importance": "5"}, {"importance": True}, {"sources": []}, {"sources": ["1"]}, {"sources": 1},
        {"status": "perhaps"}, {"source": ["model"]}, {"metadata": []}, {"replaces": ["somebody"]}, {"id": 5},
        {"id": "x"}, {"tags": "tag"},
    ],
)  # fmt: skip
def test_what_was_not_written_so_is_not_read(change: dict[str, object]) -> None:
    draft = Draft(text="The tide turns at 6.", type=Type.FACT, importance=5, sources=(1,))
    document = json.loads(block_text.written(Observed(drafts=(draft,)), (row_id(1),)))
    document["rows"][0] |= change
    with pytest.raises(ValueError, match=r".+"):
        block_text.read(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"rows": [{}]}', '{"rows": [null]}', "[" * 100_000])
def test_anything_else_is_not_read_either(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        block_text.read(text)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_nothing_but_a_value_error_comes_of_any_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        block_text.read(text)
