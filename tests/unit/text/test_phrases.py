"""How often and how many more, in the words of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.text.phrases import counted, first_of, times_in, with_times, without_times


@given(st.from_regex(r"[\w ]{0,20}", fullmatch=True), st.integers(1, 10**8))
def test_how_often_it_happened_is_read_from_a_row_as_it_was_written(text: str, times: int) -> None:
    row = with_times(text, times)
    assert (times_in(row), without_times(row)) == (times, text)


def test_a_number_inside_a_row_is_not_how_often_it_happened() -> None:
    assert times_in("Ran: make (× 3) → failed") == 1
    assert without_times("Ran: make (× 3) → failed") == "Ran: make (× 3) → failed"


@pytest.mark.parametrize(("number", "said"), [(0, "0"), (99, "99"), (100, "99+"), (12_345, "99+")])
def test_a_large_count_is_no_number_that_somebody_looks_for(number: int, said: str) -> None:
    assert counted(number) == said


def test_a_long_list_is_its_first_names_and_how_many_more_there_are() -> None:
    assert first_of(["a", "b", "c"], ", ", shown=3) == "a, b, c"
    assert first_of(["a", "b", "c", "d"], ", ", shown=3) == "a, b, c, +1 more"
    assert first_of([str(number) for number in range(200)], "; ").endswith("; 7; +99+ more")
