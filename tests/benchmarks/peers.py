"""Tools that do a part of what `om` does, installed into a virtual environment of their own, and made to do it.

`observational-memory` is the program whose command `om` has retired: it needs a model to observe, so it only packs and
searches here. `sqlite-utils` stores lines of JSON with an index of their words, without observing. `llm` only starts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from tests.benchmarks import stores
from tests.benchmarks.measuring import Cost, run

PACKAGES = ("observational-memory==0.10.1", "llm==0.36", "sqlite-utils==4.2.1")
_DAYS, _A_DAY = 100, 100
_LINE = "- 🟡 {hour:02}:{minute:02} {text}"


class Peers:
    """The tools, with memories of 10,000 rows in a folder. Raises CalledProcessError if they cannot be installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([self._bin / "pip", "install", "--quiet", *PACKAGES], check=True, capture_output=True)
        data = folder / "data"
        self._env = {"XDG_DATA_HOME": str(data), "HOME": str(folder), "LLM_USER_PATH": str(folder)}
        _write_log(data / "observational-memory" / "observations.md")
        self.search()  # it makes its index at the first search

    def version(self, tool: str) -> Cost:
        """Print the version of a tool: `om` (the retired one), `llm` or `sqlite-utils`."""
        return self._run(tool, "--version")

    def nothing(self) -> Cost:
        """Start the Python of their environment."""
        return self._run("python", "-c", "pass")

    def context(self) -> Cost:
        """Print what an agent should know."""
        return self._run("om", "context")

    def search(self) -> Cost:
        """Search for a word that one row has."""
        return self._run("om", "search", "token777")

    def insert(self, lines: Path, db: Path) -> Cost:
        """Store lines of JSON, their words indexed."""
        db.unlink(missing_ok=True)
        stored = self._run("sqlite-utils", "insert", db, "lines", lines, "--nl", "--alter")
        indexed = self._run("sqlite-utils", "enable-fts", db, "lines", "message", "--create-triggers")
        return Cost(cpu=stored.cpu + indexed.cpu, wall=stored.wall + indexed.wall)

    def _run(self, tool: str, *arguments: str | Path) -> Cost:
        return run(self._bin / tool, *arguments, env=self._env)


def _write_log(path: Path) -> None:
    """Write days of observations as that program's observer does."""
    random = Random(1)
    lines = ["# Observations", ""]
    for day in range(_DAYS):
        lines += [f"## 2026-{1 + day // 28:02}-{1 + day % 28:02}", "", "### Observations"]
        for nth in range(_A_DAY):
            text = f"{stores.words(random)} token{day * _A_DAY + nth}"
            lines.append(_LINE.format(hour=8 + nth // 10, minute=nth % 60, text=text))
        lines.append("")
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines), "utf-8")
