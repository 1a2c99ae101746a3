"""Loops and logs: what repeats itself."""

from __future__ import annotations

import time

import pytest

from omcli.text.similarity import is_repeated, without_numbers, without_repeats

_LINE = "ran pytest, all 214 tests passed"
_WORDS = "harbour tide crane pilot ledger queue parser schedule buoy ferry lock beacon cargo channel gate berth".split()


def _prose(count: int) -> list[str]:
    return [" ".join(_WORDS[(at * step) % 16] for step in range(1, 9)) + f" {at}" for at in range(count)]


def test_counters_and_times_are_equal() -> None:
    assert without_numbers("Run  12 at 10:32 OK") == without_numbers("run 999 at 07:01\nok") == "run 0 at 0:0 ok"


@pytest.mark.parametrize(
    "rows", [[_LINE] * 40, [f"{_LINE} in run {number}" for number in range(400)], ["x" * 50_001], ["so it is. " * 300]]
)
def test_loops_and_honest_logs_repeat_themselves(rows: list[str]) -> None:
    """F33, F34: forty equal lines, four hundred that count up, one endless line."""
    assert is_repeated(rows)


@pytest.mark.parametrize("rows", [[], [_LINE] * 19, ["ok"] * 40, [f"{word} is moored" for word in _WORDS], _prose(16)])
def test_few_short_or_different_rows_do_not(rows: list[str]) -> None:
    assert not is_repeated(rows)


def test_sentences_said_again_and_again_are_counted() -> None:
    """T20."""
    assert without_repeats("The gate is shut, said the pilot. " * 200) == "The gate is shut, said the pilot. (× 200)"
    assert without_repeats("It is. " * 3) == "It is. " * 3


@pytest.mark.parametrize("piece", ["a", "ab ", "a. ", "0 ", "xyz\n", " "])
def test_long_texts_are_looked_at_in_no_time(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    is_repeated([text]), is_repeated(text.splitlines()), without_repeats(text)
    assert time.process_time() - began < 5
