"""Whether a text says what another one says, and who says it."""

from __future__ import annotations

import pytest

from omcli.text.phrases import speaker, words_of
from omcli.text.similarity import folded_text, is_about, says


def test_case_and_spaces_make_no_other_wording() -> None:
    assert folded_text("Call  me ADA ") == folded_text("call me Ada")
    assert folded_text("Call me Ada") != folded_text("Call me, Ada")


def test_what_says_a_row_has_its_names_and_half_of_its_words() -> None:
    row = "User: the gauge in src/tide/gauge.py drifts by 3 cm in every storm"
    assert says("src/tide/gauge.py: the gauge drifts 3 cm in a storm", row)
    assert not says("The gauge drifts by some cm in every storm", row)
    assert not says("Looked at src/tide/gauge.py, 3 cm", row)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("See src/tide/gauge.py", True), ("A storm, and a gauge", True), ("The harbour is in the east", False)],
)
def test_what_touches_a_row_has_a_name_or_some_words_of_it(text: str, *, expected: bool) -> None:
    assert is_about(text, "Agent: the gauge in src/tide/gauge.py drifts in every storm") is expected


def test_who_says_a_row_is_none_of_its_words() -> None:
    """A row is not about its speaker: "Agent" in another text says nothing of it."""
    assert (speaker("Agent: done"), words_of("Agent: done")) == ("Agent", "done")
    assert (speaker("see a: b"), words_of("see a: b")) == ("", "see a: b")
    assert not is_about("Agent", "Agent: the queue moved")
