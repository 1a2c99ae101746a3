"""Where batches end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.batch import MessageSize, batch_length
from omcli.memory.message import Role


def said(tokens: int) -> MessageSize:
    return MessageSize(tokens, Role.USER, None)


def call(tokens: int, call_id: str) -> MessageSize:
    return MessageSize(tokens, Role.CALL, call_id)


def result(tokens: int, call_id: str) -> MessageSize:
    return MessageSize(tokens, Role.RESULT, call_id)


WAITING = st.lists(
    st.one_of(
        st.builds(said, st.integers(0, 20)),
        st.builds(call, st.integers(0, 20), st.sampled_from("ab")),
        st.builds(result, st.integers(0, 20), st.sampled_from("ab")),
    ),
    max_size=15,
)


def test_nothing_waiting_makes_no_batch() -> None:
    assert batch_length([], max_tokens=10) == 0


def test_a_batch_ends_before_a_call_whose_result_would_not_fit_any_more() -> None:
    assert batch_length([said(5), call(3, "a"), said(1), result(3, "a")], max_tokens=10) == 1


def test_a_pair_that_fits_into_no_batch_is_parted() -> None:
    assert batch_length([said(5), call(3, "a"), result(8, "a")], max_tokens=10) == 2


def test_ending_before_one_call_may_part_another_pair_and_then_ends_before_that() -> None:
    waiting = [said(1), call(1, "a"), call(1, "b"), result(1, "a"), said(5), result(5, "b")]
    assert batch_length(waiting, max_tokens=12) == 1


def test_pairs_that_interlock_from_the_first_message_on_are_parted() -> None:
    assert batch_length([call(4, "a"), call(1, "b"), result(4, "a"), result(4, "b")], max_tokens=9) == 3


@given(WAITING, st.integers(0, 40))
def test_a_batch_is_at_least_one_message_and_no_larger_than_allowed(
    waiting: list[MessageSize], max_tokens: int
) -> None:
    length = batch_length(waiting, max_tokens=max_tokens)
    assert min(1, len(waiting)) <= length <= len(waiting)
    assert length <= 1 or sum(entry.tokens for entry in waiting[:length]) <= max_tokens


@given(WAITING, st.integers(0, 40))
def test_without_calls_a_batch_is_as_large_as_allowed(waiting: list[MessageSize], max_tokens: int) -> None:
    plain = [said(entry.tokens) for entry in waiting]
    length = batch_length(plain, max_tokens=max_tokens)
    assert length == len(plain) or sum(entry.tokens for entry in plain[: length + 1]) > max_tokens


@given(WAITING, st.integers(0, 40))
def test_no_more_is_read_than_may_matter(waiting: list[MessageSize], max_tokens: int) -> None:
    taken = iter([*waiting, *([said(1)] * 200)])
    batch_length(taken, max_tokens=max_tokens)
    assert len(list(taken)) >= 200 - 2 * max_tokens - 2


@given(WAITING, st.integers(1, 40))
def test_a_pair_is_parted_only_where_keeping_it_would_leave_nothing(
    waiting: list[MessageSize], max_tokens: int
) -> None:
    """A batch ends between a call and its result only if the two do not fit, or no earlier end is free of that."""
    length = batch_length(waiting, max_tokens=max_tokens)
    if parted(waiting, length, max_tokens):
        assert all(parted(waiting, shorter, max_tokens) for shorter in range(1, length))


def parted(waiting: list[MessageSize], length: int, max_tokens: int) -> bool:
    """Whether an end here stands between a result and the latest call before it, though a batch could hold both."""
    for end in range(length, len(waiting)):
        if waiting[end].role is not Role.RESULT:
            continue
        calls = [
            at for at in range(end) if waiting[at].role is Role.CALL and waiting[at].call_id == waiting[end].call_id
        ]
        if calls and calls[-1] < length and sum(w.tokens for w in waiting[calls[-1] : end + 1]) <= max_tokens:
            return True
    return False
