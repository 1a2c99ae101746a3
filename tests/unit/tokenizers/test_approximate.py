"""The default counter comes close to o200k, and its lines count independently of each other."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omcli.tokenizers import _CONTINUATION, _JOINER, _JOINER_WEIGHT, _SCRIPTS, _VIEWS, APPROXIMATE
from tests.unit.tokenizers.samples import MORE, PROMISED, Sample

_SAMPLES = [pytest.param(sample, id=f"{kind}-{n}") for kind, some in PROMISED.items() for n, sample in enumerate(some)]
_TEXTS = st.text() | st.text(alphabet="aBk1 \t\n\r.,_-/\\\"'(é中か한🎉\u200d\ud800", max_size=60)


@pytest.mark.parametrize("sample", _SAMPLES)
def test_a_promised_kind_of_text_counts_within_a_fifth_of_o200k(sample: Sample) -> None:
    """D1, S0.12."""
    ratio = APPROXIMATE.text(sample.text) / sample.o200k
    assert ratio == pytest.approx(1, abs=0.2), f"{APPROXIMATE.text(sample.text)} for {sample.o200k} tokens"


@pytest.mark.parametrize("kind", MORE)
def test_other_kinds_of_text_count_within_a_fifth_as_well(kind: str) -> None:
    true = sum(sample.o200k for sample in MORE[kind])
    assert sum(APPROXIMATE.text(sample.text) for sample in MORE[kind]) / true == pytest.approx(1, abs=0.2)


@given(_TEXTS, _TEXTS)
@example("word", "word")
@example("", "word")
@example("}", "  {")
def test_joining_two_texts_by_a_line_break_adds_at_most_one_token(a: str, b: str) -> None:
    """F72: what is counted line by line is what is sent, or more."""
    joined = APPROXIMATE.text(f"{a}\n{b}")
    assert max(APPROXIMATE.text(a), APPROXIMATE.text(b)) <= joined <= APPROXIMATE.text(a) + APPROXIMATE.text(b) + 1


@given(st.lists(_TEXTS, min_size=1))
def test_a_text_never_counts_more_than_its_lines_and_their_breaks(lines: list[str]) -> None:
    assert APPROXIMATE.text("\n".join(lines)) <= sum(map(APPROXIMATE.text, lines)) + len(lines) - 1


@given(st.lists(_TEXTS))
@example(["a ", "", "b\r", "\t", "é", "  c"])
def test_counting_by_line_gives_the_same_count(texts: list[str]) -> None:
    """Also where its lines have been counted before, alone or in another text."""
    remembering = APPROXIMATE.remembering()
    for text in (*texts, "\n".join(texts), "\n\n".join(texts), "\n".join(reversed(texts))):
        assert remembering.text(text) == APPROXIMATE.text(text)


def test_no_pattern_crosses_a_line_break() -> None:
    for table, weights in (*_VIEWS, _SCRIPTS):
        line_break = table[ord("\n")]
        for pattern, weight in weights:
            assert weight > 0
            assert line_break not in pattern[1:-1], f"{pattern!r} reaches over a line break"
            if pattern[-1] == line_break:
                assert pattern == b"xn", f"{pattern!r} counts the break as part of the line before it"
                assert weight <= 100, f"{pattern!r} makes a line break cost more than a token"


@given(_TEXTS | st.text(alphabet="aZ1 \n,…é"))
def test_a_count_is_the_sum_of_all_views(text: str) -> None:
    encoded = f"\n{text}".encode("utf-8", "surrogatepass")
    hundredths = _JOINER_WEIGHT * encoded.count(_JOINER)
    encoded = encoded.translate(None, _CONTINUATION)
    for table, weights in (*_VIEWS, _SCRIPTS):
        hundredths += sum(weight * encoded.translate(table).count(pattern) for pattern, weight in weights)
    assert APPROXIMATE.text(text) == -(-hundredths // 100)


@pytest.mark.parametrize("word", ["a", "ok", "yes", "你", "🎉", ".", "7", "\0"])
def test_a_character_costs_a_token_or_few(word: str) -> None:
    assert 1 <= APPROXIMATE.text(word) <= 3
