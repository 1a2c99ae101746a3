"""How much packs keep after rules have folded a session to half of its rows, compared with packs of all rows.

Run as `python -m tests.benchmarks.folding [--how compact|context] [--preset NAME]`. The conversations of the bench cuts
in the folder `shared` beside the checkout are observed, packed, folded and packed again. Printed is a line per budget:
what the packs keep before and after, by the bench's own scores, in percent. Ends with 1 if a fold makes a row of more
than 400 characters or saves less than a fifth, and with 0 if there is no such folder.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import omcli
from omcli.reflectors.drafts import LONGEST
from tests.command_line import Ended, run_here
from tests.shared import SHARED

_BUDGETS = (500, 1000, 1500, 3000)
_COLUMNS = ("grounded", "user", "files", "use")
_MOST_LEFT = 0.8


def main(arguments: Sequence[str]) -> int:
    """Prints the table, and what is wrong with a fold."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.folding")
    parser.add_argument("--how", default="compact", choices=("compact", "context"))
    parser.add_argument("--preset", default="default")
    said = parser.parse_args(arguments)
    if not (SHARED / "bench").is_dir():
        print("no shared benches beside this checkout: nothing was measured")
        return 0
    sys.path.append(str(SHARED))
    data, scorer = importlib.import_module("bench.data"), importlib.import_module("bench.scorer")
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    wrong = 0
    for cut in data.load_cuts(data.DEV):
        with TemporaryDirectory(prefix="om-bench-") as folder:
            run = _Run(Path(folder), said.preset, said.how)
            before = run.observed(cut.transcript, cut.format)
            folded = run.om("reflect", "--json").document
            after = run.packs()
        wrong += folded["observations_condensed"] > 0 and not _condenses(folded)
        for budget, column, pair in _scores(before, after, cut.gold, scorer):
            found.setdefault((budget, column), []).append(pair)
    print(f"{'tokens':>8}", *(f"{column:>24}" for column in _COLUMNS))
    for budget in _BUDGETS:
        print(f"{budget:>8}", *(_shown(found[budget, column]) for column in _COLUMNS))
    print(f"{wrong} folds with a long row, or that save less than a fifth")
    return int(wrong > 0)


class _Run:
    """A store of one conversation, with the session that it holds."""

    def __init__(self, folder: Path, preset: str, how: str) -> None:
        self._folder, self._how = folder, how
        own = {name: value for name, value in os.environ.items() if not name.startswith("OM_")}
        self._env = {**own, "HOME": str(folder), "OM_DB": str(folder / "memory.db"), "OM_PRESET": preset} | {
            "OM_OBSERVER_PROVIDER": "rules",
            "OM_REFLECTOR_PROVIDER": "rules",
        }

    def om(self, *words: str, session: bool = True) -> Ended:
        program = str(Path(omcli.__file__).with_name("__main__.py"))
        words = (*words, "--session", "cut") if session else words
        return run_here(program, words, stdin=b"", env=self._env, cwd=self._folder, stdout=None).expected(None)

    def observed(self, transcript: str, form: str) -> list[str]:
        """Observe the conversation, and return its packs."""
        (self._folder / "t.jsonl").write_text(transcript, encoding="utf-8")
        self.om("observe", "t.jsonl", "--format", form, "--quiet")
        return self.packs()

    def packs(self) -> list[str]:
        dry = ("--dry-run",) if self._how == "compact" else ()
        return [self.om(self._how, *dry, "--budget", str(budget), "--to", "text").stdout for budget in _BUDGETS]


def _condenses(folded: Mapping[str, Any]) -> bool:
    is_short = all(len(row["text"]) <= LONGEST for row in folded["reflections"])
    return is_short and folded["tokens_after"] <= _MOST_LEFT * folded["tokens_before"]


def _scores(
    before: Sequence[str], after: Sequence[str], gold: object, scorer: Any
) -> Iterator[tuple[int, str, tuple[float, float]]]:
    for budget, *packs in zip(_BUDGETS, before, after, strict=True):
        was, now = (scorer.score_compaction(scorer.cut(pack, budget), gold) for pack in packs)
        for column in _COLUMNS:
            if was.get(column) is not None:
                yield budget, column, (was[column], now[column])


def _shown(pairs: Sequence[tuple[float, float]]) -> str:
    was, now = (100 * sum(some) / len(pairs) for some in zip(*pairs, strict=True))
    return f"{was:7.1f} → {now:5.1f} {100 * now / was:6.1f} %"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
