"""The README's commands work as printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.generate import ROOT
from tests.fake_provider import KEY, FakeModel

README = (ROOT / "README.md").read_text(encoding="utf-8")
STORIES = ROOT / "tests" / "stories"
TOUR = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]


PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
AGENT = """
import json, sys
shown = json.load(sys.stdin)
row = {
    "text": "Somebody has said something", "priority": "medium", "kind": "event", "status": None, "at": None,
    "refers_to": None, "refers_to_kind": None, "under": None,
    "sources": [shown["messages"][0]["label"]], "replaces": [],
}
json.dump({"token": shown["token"], "observations": [row]}, sys.stdout)
"""


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    """The model that the reader has a key of, and serves."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> dict[str, str]:
    """The machine of somebody who reads the README: their agents' transcripts, `om`, and agents to pipe with."""
    home = tmp_path_factory.mktemp("home")
    place = home / "work"
    project = home / ".claude" / "projects" / "-home-ada-src-parcel"
    commands = home / "bin"
    for folder in (place, project, commands):
        folder.mkdir(parents=True)
    shutil.copy(STORIES / "claude_code_refactor.jsonl", project / "5f0c3c1e.jsonl")
    shutil.copy(STORIES / "claude_code_refactor.jsonl", place / "transcript.jsonl")
    shutil.copy(STORIES / "codex_release.jsonl", place / "rollout.jsonl")
    shutil.copy(STORIES / "chat.txt", place / "chat.txt")
    shutil.copy(STORIES / "pi_bugfix.jsonl", place / "t.jsonl")
    shutil.copy(STORIES / "anthropic_body.json", place / "next.jsonl")
    long = [{"role": "user", "content": f"We decided to ship part {number} on Friday. " * 5} for number in range(50)]
    (place / "long.jsonl").write_text("\n".join(map(json.dumps, long)), "utf-8")
    _script(commands / "om", f'exec "{sys.executable}" -m omcli "$@"')
    (commands / "agent.py").write_text(AGENT, "utf-8")
    _script(commands / "my-agent", f'exec "{sys.executable}" "{commands / "agent.py"}"')
    _script(commands / "some-agent", f'cat "{STORIES / "chat_openai.jsonl"}"')
    others = ("OM_", "CLAUDE", "ANTHROPIC_", "OPENAI_", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return environment | {
        "HOME": str(home),
        "OM_DB": str(home / "om.db"),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CLAUDE_CODE_SESSION_ID": "5f0c3c1e-7b1d-4e0a-9a57-2f6f5d1b8c44",
        "PWD": str(place),
        "ANTHROPIC_BASE_URL": model.root,
    }


def test_the_commands_of_the_tour_work_one_after_another(reader: dict[str, str], model: FakeModel) -> None:
    """Each command line of the README, in its order, in a shell, in a process of its own."""
    assert len(TOUR) > 10
    for command in TOUR:
        if "jq" in command and shutil.which("jq") is None:
            continue
        done = _run(_here(command, reader, model), reader)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip() or "observe" in command or "watch" in command, f"{command} printed nothing"
        assert "Traceback" not in done.stderr


def test_the_programs_work_as_printed(reader: dict[str, str]) -> None:
    """Each in a process of its own, for somebody who has no key."""
    assert PROGRAMS
    for program in PROGRAMS:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env=reader,
            cwd=reader["PWD"],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("1 This session:\n"), "what was said when it was built, and what is known later"
        assert "Always use metric units." in done.stdout
        assert done.stderr == ""


@pytest.mark.parametrize("wanted", ["om observe tests/stories/claude_code_refactor.jsonl", "om context", "pytest"])
def test_the_two_set_up_commands_begin_from_nothing(wanted: str) -> None:
    """One makes an environment and runs the main job on the shipped sample, the other the tests."""
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert [block.count("\n") for block in blocks] == [0, 0], "two commands, a line each"
    assert all(block.startswith("python3 -m venv .venv && .venv/bin/pip install -q ") for block in blocks)
    assert any(wanted in block for block in blocks)


def _here(command: str, reader: dict[str, str], model: FakeModel) -> str:
    """A command of the README with what stands for something in it: an id, a key, the addresses of local servers."""
    local = "--model ollama/qwen2.5:7b"
    meant = {
        "http://localhost:8000/v1": model.url,
        local: f"{local} --base-url {model.url}",
        "=…": f"={KEY}",
        "om watch": "om watch --once",
    }
    if "om show" in command:
        meant["7c1e9a04"] = _any_row(reader)
    for written, here in meant.items():
        command = command.replace(written, here)
    return command


def _any_row(reader: dict[str, str]) -> str:
    return _run("om log --last 1", reader).stdout.split()[0]


def _run(command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment,
        cwd=environment["PWD"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def _script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
