"""What is left of real transcripts under a hard budget, by rules and by a model: never less by a model.

Run as `python -m tests.benchmarks.compaction [--only ccb,locomo-pack,beam-pack] [--model silent]`. The benches in the
folder `shared` beside the checkout are run twice through the command line: with rules alone, and with a model that
repeats what it is shown (or one that finds nothing: `silent`, or one of `made_up`). Printed are a table of each run, a
line per budget, and what the model's falls short by in the columns that tell what is kept. Ends with 1 where it is
below the rules' in the column that a bench goes by, or a call failed; with 0, and a line that says so, where there is
no such folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.made_up import MADE_UP
from tests.shared import SHARED

_ROOT = Path(__file__).parents[2]
_MODELS: Mapping[str, object] = {"echo": "echo", "silent": {"json": {"observations": [], "reflections": []}}}
"""What models answer that are scripts, by name."""
_RULES, _SCRIPT = "rules", "OM_BENCHMARK_SCRIPT"
_UNSCORED = {"tokens", "over budget", "unsupported"}
_SPREAD = 0.0005
"""Scores nearer to each other than this are printed alike."""


def main(arguments: Sequence[str]) -> int:
    """Prints both tables, then what is below."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compaction")
    parser.add_argument("--only", default="ccb", metavar="BENCHES")
    parser.add_argument("--model", default="echo", choices=(*_MODELS, *MADE_UP))
    said = parser.parse_args(arguments)
    if not (SHARED / "bench").is_dir():
        print("no shared benches beside this checkout: nothing was measured")
        return 0
    called = ("-m", "tests.benchmarks.compaction", "om")
    alone, along = (show(name, scores(called, said.only, {_SCRIPT: name})) for name in (_RULES, said.model))
    below = list(_below(alone["tables"], along["tables"]))
    print("", *below, sep="\n")
    failed = bool(alone["failures"] or along["failures"])
    return 1 if failed or any(line.startswith("BELOW") for line in below) else 0


def om(arguments: Sequence[str]) -> int:
    """`om` as the benches call it, with the model that the environment names: a script of its own for every call."""
    name = os.environ[_SCRIPT]
    answer = _MODELS.get(name)
    with TemporaryDirectory(prefix="om-bench-") as folder:
        script = Path(folder) / "replies.json"
        script.write_text(json.dumps(answer))
        named = {"OM_OBSERVER_PROVIDER": _RULES, "OM_REFLECTOR_PROVIDER": _RULES}
        if answer is not None:
            named = {"OM_OBSERVER_MODEL": f"scripted/{script}"}
        elif name in MADE_UP:
            program = shlex.join([sys.executable, "-m", "tests.benchmarks.made_up", name])
            named = {"OM_OBSERVER_MODEL": f"command/{program}"}
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
        ways = {"OM_CONFIG": str(Path(folder) / "none.toml")}
        Path(ways["OM_CONFIG"]).touch()
        return subprocess.run(
            [sys.executable, "-m", "omcli", *arguments], check=False, env=environment | ways | named
        ).returncode


def scores(called: Sequence[str], only: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the benches write down of a run with an `om` that a program of Python stands for."""
    with TemporaryDirectory(prefix="om-bench-") as folder:
        out = Path(folder) / "scores.json"
        program = shlex.join([sys.executable, *called])
        bench = [
            sys.executable,
            str(SHARED / "bench"),
            "run",
            "--only",
            only,
            "--om",
            program,
            "--out",
            str(out),
            "--timeout",
            "1800",
        ]
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        run = subprocess.run(
            bench,
            check=False,
            env={**os.environ, **environment, "PYTHONPATH": path},
            cwd=_ROOT,
            capture_output=True,
            text=True,
        )
        if not out.exists():
            raise SystemExit(run.stderr)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def show(name: str, run: dict[str, Any]) -> dict[str, Any]:
    """The run, printed when it is done."""
    print(f"\n{name}")
    for table in run["tables"]:
        _print(table)
    for failure in run["failures"]:
        print(f"{name}: {failure.splitlines()[-1]}", file=sys.stderr)
    sys.stdout.flush()
    return run


def _print(table: Mapping[str, Any]) -> None:
    columns = table["columns"]
    print(f"{table['bench'] + ': ' + table['title']:62}", *(f"{column:>11}" for column in columns))
    for method in filter(None, ("om", table["against"])):
        print(f"  {method:60}", *(f"{_shown(table['means'][method][column], column):>11}" for column in columns))


def _shown(value: float | None, column: str) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if column == "tokens" else f"{100 * value:.1f}"


def _below(rules: Sequence[Mapping[str, Any]], model: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each score of the model's that is below the rules'; one that a bench goes by is `BELOW`."""
    for alone, along in zip(rules, model, strict=True):
        for column in alone["columns"]:
            before, after = alone["means"]["om"][column], along["means"]["om"][column]
            if column in _UNSCORED or before is None or after > before - _SPREAD:
                continue
            word = "BELOW" if column == alone["headline"] else "below"
            yield f"{word} in {alone['bench']}, {alone['title']}: {column} {100 * before:.1f} -> {100 * after:.1f}"


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(om(given[1:]) if given[:1] == ["om"] else main(given))
