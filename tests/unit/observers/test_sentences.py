"""Cutting text to a length."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from omcli.observers.rules.sentences import cut


@given(st.text(st.sampled_from("ab/汉字한 "), max_size=60), st.integers(1, 60))
@example("汉" * 50, 20)
@example("汉 " * 50, 20)
def test_text_is_cut_to_its_limit(text: str, limit: int) -> None:
    """With an ellipsis after a beginning of it, in scripts with and without spaces."""
    found = cut(text, limit)
    assert len(found) <= limit
    assert found == text or (found.endswith("…") and text.startswith(found[:-1].rstrip()))


def test_text_without_spaces_uses_its_limit() -> None:
    assert cut("汉" * 50, 20) == f"{'汉' * 18} …"
