"""How much shorter rows are than the messages they come from, over all shared transcripts.

Run as `python -m tests.benchmarks.compression`. A transcript's compression is the tokens of its messages over the
tokens of its rows: 5 means that a fifth is left. Dialogue (what people and agents say) and tools (calls and what they
answer) are told apart by the messages that a row came from. Transcripts with less than a few hundred tokens of a kind
say nothing about it and are left out; how many gave no row stands beside.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from omcli.memory.message import Message, Role
from omcli.memory.observation import LogQuery
from omcli.sqlite import SqliteStore
from omcli.tokenizers import APPROXIMATE
from tests.benchmarks.measuring import OM, run
from tests.shared import TRANSCRIPTS, expected

_LEAST = 300
"""Tokens of messages below which a transcript is left out."""
_KINDS = ("dialogue", "tools")
_TOOLS = frozenset({Role.CALL, Role.RESULT})


def main() -> int:
    """Prints the distribution over all transcripts, then a line per format."""
    if not TRANSCRIPTS.is_dir():
        print("no shared transcripts beside this checkout", file=sys.stderr)
        return 1
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    silent: Counter[tuple[str, str]] = Counter()
    for name, path in _conversations():
        said, written = _tokens(path)
        for kind in _KINDS:
            if said[kind] < _LEAST:
                continue
            for group in ("all", name):
                if written[kind]:
                    found[kind, group].append(said[kind] / written[kind])
                else:
                    silent[kind, group] += 1
    print(
        f"{'':9} {'format':22} {'files':>5} {'silent':>6} {'min':>7} {'1st q':>7} {'median':>7} {'3rd q':>7} {'max':>7}"
    )
    groups = {group: None for _, group in found}
    for kind in _KINDS:
        for group in groups:
            if ratios := found.get((kind, group)):
                _print(kind, group, ratios, silent[kind, group])
    return 0


def _conversations() -> Iterator[tuple[str, Path]]:
    """Format and path of each conversation of the collection, also of formats that no reader knows."""
    for path, about in sorted(expected().items()):
        if about["role"] == "conversation":
            yield about.get("format", "?"), TRANSCRIPTS / path


def _tokens(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Tokens of a transcript's messages and of its rows, by kind; none where it could not be read."""
    said: Counter[str] = Counter()
    written: Counter[str] = Counter()
    with TemporaryDirectory(prefix="om-bench-") as folder:
        db = Path(folder) / "memory.db"
        try:
            run(*OM, "observe", "--quiet", "--db", db, path)
        except RuntimeError:
            return said, written
        with SqliteStore.open(db, wait=10, read_only=True) as store:
            for kept in store.messages.all():
                said[_kind([kept.message])] += APPROXIMATE.message(kept.message)
            for logged in store.rows.log(LogQuery()):
                sources = store.messages.by_seq(logged.observation.sources)
                written[_kind([kept.message for kept in sources])] += logged.observation.tokens
    return said, written


def _kind(messages: Sequence[Message]) -> str:
    return "tools" if any(message.role in _TOOLS for message in messages) else "dialogue"


def _print(kind: str, group: str, ratios: list[float], silent: int) -> None:
    first, middle, third = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    numbers = (min(ratios), first, middle, third, max(ratios))
    print(f"{kind:9} {group:22} {len(ratios):5} {silent:6}", *(f"{number:7.1f}" for number in numbers))


if __name__ == "__main__":
    sys.exit(main())
