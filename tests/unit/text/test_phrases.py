"""Counts and anchors in rows. An anchor is a string that a row may only take from its sources."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.text.phrases import (
    anchors,
    counted,
    first_of,
    searchable,
    times_in,
    unknown_anchors,
    with_times,
    without_times,
)


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


# ---- anchors


@pytest.mark.parametrize(
    "anchor",
    (
        "src/app/main.py /etc/hosts.d/own ./run.sh README.md --dry-run -n v1.2.3 3.11.7 #1234 @ada E0308 TS2345 "
        "JIRA-12 snake_case MAX_SIZE camelCase PascalCase module.name Type::method a1b2c3d4e5 8443 1,048,576 "
        "https://example.org/a?b=1"
    ).split(),
)
def test_exact_strings_are_anchors(anchor: str) -> None:
    assert anchor in anchors(f"look at {anchor} again")


def test_code_in_backticks_is_one_anchor() -> None:
    assert anchors("run `make all now` twice") == ("make all now",)


def test_prose_and_small_counts_are_none() -> None:
    assert anchors("This and/or that, e.g. 3 matches in 2 files.") == ()


def test_an_anchor_that_no_source_has_is_unsupported() -> None:
    """V9: paths, identifiers, numbers and addresses of a row occur in its sources."""
    assert unknown_anchors("Modified a/b.py and c_d", ["edit a/b.py"]) == ("c_d",)
    assert unknown_anchors("Modified a/b.py", ["edit", "in a/b.py now"]) == ()


@given(st.text(alphabet=st.sampled_from('ab_ "\\\n/.`'), max_size=40))
def test_what_stands_in_arguments_is_found_although_json_escapes_it(code: str) -> None:
    assert unknown_anchors(code, [searchable(json.dumps({"command": code}))]) == () or "\\" in code


@pytest.mark.parametrize("run", ["x", "-", "a1", "a/", "汉字", "a.", "`a", "A_", "https://", "0,"])
def test_a_long_run_without_spaces_costs_no_more_than_its_length(run: str) -> None:
    """A hostile prompt: 500 kB of anything; the square of that would take minutes."""
    anchors(run * (500_000 // len(run)))
