"""The same transcript taken the whole way - observed, reflected on, packed - by rules and by models.

Run as `python -m tests.benchmarks.whole_way [--base-url URL --model NAME]`. A story of `tests/stories` goes through
`om observe`, `om reflect` and `om context`, each a process, with rules, with a model that repeats what it is shown,
with one that never finds anything, and with the one behind the URL. Printed are the rows by who wrote them, what they
and the pack come to in tokens, and how much of what the story is about is in the pack.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STORY = Path(__file__).parents[1] / "stories" / "codex_release.jsonl"
KEPT = ("do not push", "26 march", "1.4.0", "changelog.md", "src/calendar.rs", "iso week", "119", "swedish", "c07ae15")
"""What whoever goes on from the story has to know, in lower case."""
BUDGET = 1_000
SCRIPTS: Mapping[str, object] = {"echo": "echo", "silent": {"json": {"observations": [], "reflections": []}}}
"""What models answer that are scripts, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What became of the transcript."""

    codes: tuple[int, ...]
    """What the commands ended with: observe, reflect, context."""
    rows: Mapping[str, int]
    """In sight after observing, by who wrote them; `unverified` ones also by that name."""
    tokens: int
    """Of those rows."""
    reflected: Mapping[str, int]
    """In sight after reflecting, by kind."""
    tokens_after: int
    pack: str
    pack_tokens: int

    @property
    def kept(self) -> tuple[str, ...]:
        """What of `KEPT` the pack says."""
        return tuple(words for words in KEPT if words in self.pack.lower())

    def __str__(self) -> str:
        rows, reflected = (
            " ".join(f"{name} {number}" for name, number in sorted(each.items())) or "–"
            for each in (self.rows, self.reflected)
        )
        codes = " ".join(map(str, self.codes))
        return (
            f"{codes:8} {rows:32} {self.tokens:6} {reflected:28} {self.tokens_after:6} {self.pack_tokens:6}"
            f" {len(self.kept)} of {len(KEPT)}"
        )


HEADING = (
    f"{'observer':8} {'exit':8} {'rows by':32} {'tokens':>6} {'after reflecting':28} {'tokens':>6} {'pack':>6} says"
)


def in_own_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "omcli", *arguments],
        env=environment(folder), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def go(
    folder: Path,
    model: tuple[str, ...],
    *,
    story: Path = STORY,
    run: Callable[..., subprocess.CompletedProcess[str]] = in_own_process,
) -> Way:
    """Takes the story the whole way in a folder; `model` are the options that name who observes and reflects."""
    observing = tuple(part.replace("--who", "--observer") for part in model)
    reflecting = tuple(part.replace("--who", "--reflector") for part in model)
    observed = run(folder, "observe", "-q", *observing, str(story))
    before = _rows(run(folder, "log", "--jsonl").stdout)
    [session] = [json.loads(line)["id"] for line in run(folder, "sessions", "--jsonl").stdout.splitlines()]
    reflected = run(folder, "reflect", "-q", *reflecting, "--session", session)
    after = _rows(run(folder, "log", "--jsonl").stdout)
    packed = run(folder, "context", "--session", session, "--budget", str(BUDGET), "--json")
    pack = json.loads(packed.stdout)
    printed = run(folder, "context", "--session", session, "--budget", str(BUDGET)).stdout
    return Way(
        codes=(observed.returncode, reflected.returncode, packed.returncode),
        rows=Counter(row["source"] for row in before) + Counter("unverified" for row in before if _is_doubted(row)),
        tokens=sum(row["tokens"] for row in before),
        reflected=Counter(row["kind"] for row in after),
        tokens_after=sum(row["tokens"] for row in after),
        pack=printed,
        pack_tokens=pack["tokens"]["total"],
    )


def scripted(folder: Path, name: str) -> tuple[str, ...]:
    """The options for a model that is a script; it is written into the folder."""
    script = folder / f"{name}.json"
    script.write_text(json.dumps(SCRIPTS[name]))
    return ("--model", f"scripted/{script}")


def _is_doubted(row: Mapping[str, Any]) -> bool:
    return "unverified" in row.get("tags", ())


def _rows(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment with a store in the folder and no settings of the machine; what may take long may."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OM_", "ANTHROPIC_", "OPENAI_"))}
    limits = {"OM_PROVIDER_TIMEOUT": "900", "OM_OBSERVER_MAX_OUTPUT": "700", "OM_REFLECTOR_MAX_OUTPUT": "400"}
    said = {"OM_DB": str(folder / "om.db"), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **limits}
    return kept | said


def main(arguments: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.whole_way", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--base-url", help="where a model is that is to be taken as well")
    parser.add_argument("--model", default="default", help="its name there")
    asked = parser.parse_args(arguments)
    print(HEADING)
    for name in ("rules", *SCRIPTS, *(["served"] if asked.base_url else [])):
        with TemporaryDirectory(prefix="om-bench-") as made:
            folder = Path(made)
            model: tuple[str, ...] = ("--who", "rules")
            if name in SCRIPTS:
                model = scripted(folder, name)
            elif name == "served":
                model = ("--who", "openai", "--base-url", asked.base_url, "--model", asked.model)
            print(f"{name:8} {go(folder, model)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
