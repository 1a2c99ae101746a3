"""The modules of om that `om context` and `om observe` load, as a list beside this file.

python -m tests.architecture.hot_path   write the list
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import Om
from tests.e2e.transcripts import tide_story

LIST = Path(__file__).with_name("hot_path.txt")
UPDATE = "python -m tests.architecture.hot_path"
_WATCHED = """
import os, sys

def leave(code, leave=os._exit):
    print(*sorted(sys.modules), file=sys.stderr, flush=True)
    leave(code)

os._exit, sys.argv = leave, ["om", *sys.argv[1:]]
from omcli.__main__ import main
main()
"""


def loaded(om: Om, *arguments: str) -> set[str]:
    """Return the modules in memory at the end of a run."""
    return set(last_word(om, _WATCHED, *arguments).split())


def last_word(om: Om, program: str, *arguments: str) -> str:
    """Run a Python program that runs `om`, and return the last line on its stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=om.environment(),
        cwd=om.folder,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]


def hot_path(om: Om) -> dict[str, set[str]]:
    """Return om's own modules by the command that loads them."""
    om.write("tide.jsonl", tide_story().text())
    commands = ("observe -q tide.jsonl", "context")
    found = {f"om {command}": loaded(om, *command.split()) for command in commands}
    return {
        command: {module for module in modules if module.partition(".")[0] == "omcli"}
        for command, modules in found.items()
    }


def pinned() -> dict[str, set[str]]:
    """Return the modules of the list, by command."""
    blocks = LIST.read_text("utf-8").strip().split("\n\n")
    return {command: set(modules) for command, *modules in (block.splitlines() for block in blocks)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        blocks = ["\n".join([command, *sorted(modules)]) for command, modules in hot_path(Om(Path(folder))).items()]
    LIST.write_text("\n\n".join(blocks) + "\n", "utf-8")
