"""How close each token counter comes to o200k, per kind of text, and how fast it is.

Run as `python -m tests.benchmarks.token_counters [FILE...]`: files are measured beside the samples of the tests. True
counts of files need o200k's rank file on disk (`omcli.tokenizers.EXACT`); without it only the samples are compared.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from omcli.memory.message import TokenCounter
from omcli.tokenizers import EXACT, NAMES, counter, has_file
from tests.unit.tokenizers.samples import MORE, PROMISED


def main(paths: list[str]) -> None:
    """Prints one row per kind of text or file, and the speed of each counter in the last."""
    counters = [counter(name) for name in NAMES if name not in EXACT or has_file(name)]
    print(f"{'':24}{'o200k':>8}", *(f"{each.name:>13}" for each in counters))
    texts = []
    for kind, samples in (PROMISED | MORE).items():
        texts += [sample.text for sample in samples]
        _print_errors(kind, [sample.text for sample in samples], sum(sample.o200k for sample in samples), counters)
    exact = counter("o200k") if has_file("o200k") else None
    for path in map(Path, paths):
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
        if exact:
            _print_errors(path.name[-23:], texts[-1:], exact.text(texts[-1]), counters)
    speeds = (_megabytes_per_second(each, "\n".join(texts)) for each in counters)
    print(f"{'MB/s':32}", *(f"{speed:13.1f}" for speed in speeds))


def _print_errors(kind: str, texts: list[str], true: int, counters: list[TokenCounter]) -> None:
    errors = (sum(map(each.text, texts)) / true - 1 for each in counters)
    print(f"{kind:24}{true:8}", *(f"{error:+13.1%}" for error in errors))


def _megabytes_per_second(each: TokenCounter, text: str) -> float:
    """The best of three, over at least a megabyte."""
    size = len(text.encode())
    text *= 1 + 1_000_000 // size
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        each.text(text)
        seconds.append(time.perf_counter() - start)
    return len(text.encode()) / min(seconds) / 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
