"""Cutting text to a length."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omcli.observers.rules.sentences import cut, text_parts


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
    assert cut("User: " + "汉" * 50, 20) == f"User: {'汉' * 12} …"
    assert cut("汉" * 10 + " tides", 14) == f"{'汉' * 10} …"


@pytest.mark.parametrize(
    ("line", "first", "is_heading"),
    [
        ("Next steps:", "Next steps", True),
        ("Shall I draw it? I suggest:", "Shall I draw it?", False),
        ("**Shall I draw it?** Then:", "Shall I draw it?", False),
        ("It is drawn. Still open:", "It is drawn.", False),
        ("Version 1.2:", "Version 1.2", True),
    ],
)
def test_a_heading_is_one_sentence(line: str, first: str, is_heading: bool) -> None:
    part = text_parts(f"{line}\n\n- the map\n- the list")[0]
    assert (part.text, part.is_heading) == (first, is_heading)
