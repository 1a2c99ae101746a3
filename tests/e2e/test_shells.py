"""Completion in real shells, with the files of `completions/`. A shell that is not installed is skipped."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import tide_story

COMPLETIONS = Path(__file__).parents[2] / "completions"
SHELLS = {
    "bash": (
        "source {folder}/om.bash; COMP_WORDS=({words}); COMP_CWORD={last}; _om_completion om;"
        " printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ),
    # Zsh completes only in its line editor; what the script hands to it is printed instead.
    "zsh": (
        'compdef() {{ }}; _arguments() {{ print -r -- "$@" }}; _files() {{ print -r -- files }};'
        " source {folder}/_om; words=({words}); CURRENT=$(({last} + 1)); _om_completion"
    ),
    "fish": "source {folder}/om.fish; complete -C {line}",
}
QUIETLY = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}


@pytest.fixture(name="press_tab", params=sorted(SHELLS))
def completion(request: pytest.FixtureRequest, om: Om) -> Callable[[str], str]:
    """What a shell offers after a command line."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    programs = om.folder / "bin"
    programs.mkdir()
    program = programs / "om"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m omcli "$@"\n')
    program.chmod(0o755)

    def press_tab(line: str) -> str:
        words = line.split(" ")
        written = SHELLS[shell].format(
            folder=shlex.quote(str(COMPLETIONS)),
            words=" ".join(shlex.quote(word) for word in words),
            last=len(words) - 1,
            line=shlex.quote(line),
        )
        found = subprocess.run(
            [shell, *QUIETLY[shell], written],
            env=om.environment({"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}),
            cwd=om.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert found.stderr == ""
        return found.stdout

    return press_tab


def test_commands_options_values_and_sessions_are_offered(press_tab: Callable[[str], str], om: Om) -> None:
    om("observe", "-q", stdin=tide_story().text())
    commands = press_tab("om re")
    assert all(name in commands for name in ("recall", "reflect", "replay", "restore", "review"))
    assert "observe" not in commands
    assert "--type" in press_tab("om recall --ty")
    values = press_tab("om export --to ")
    assert all(name in values for name in ("agents-md", "jsonl", "markdown", "pi"))
    [session] = om("sessions", "--json").document["sessions"]
    assert session["id"] in press_tab(f"om log --session {session['id'][:2]}")
