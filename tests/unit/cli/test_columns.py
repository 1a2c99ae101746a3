"""Texts on a terminal: what they take of its columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.cli.columns import fitted, padded, width

TEXTS = st.text(st.sampled_from("abc e\u0301 潮汐表 ｆ 🌊 é"))


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("tide", 4), ("Gezeiten für", 12), ("潮汐", 4), ("e\u0301", 1), ("🌊", 2)]
)
def test_a_text_takes_as_many_columns_as_a_terminal_gives_it(text: str, columns: int) -> None:
    assert width(text) == columns


@given(text=TEXTS, columns=st.integers(1, 12), in_front=st.booleans())
def test_what_is_fitted_fits_and_says_that_it_was_cut(text: str, columns: int, in_front: bool) -> None:
    shown = fitted(text, columns, in_front=in_front)
    assert width(shown) <= columns
    assert width(padded(shown, columns)) == columns
    if shown != text:
        kept = shown.removeprefix("…") if in_front else shown.removesuffix("…")
        assert text.endswith(kept) if in_front else text.startswith(kept)
        assert "…" in shown
        assert width(text) > columns
