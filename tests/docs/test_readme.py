"""The README's commands work as printed, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from omcli.cli.commands import COMMANDS
from omcli.cli.commands import command as command_named
from tests.docs import picture
from tests.docs.generate import ROOT
from tests.fake_provider import FakeModel

README = (ROOT / "README.md").read_text(encoding="utf-8")
STORIES = ROOT / "tests" / "stories"
FIRST_SCREEN = 40
"""Lines of text that a reader sees without scrolling much."""
TOUR = [
    (block.partition("\n")[0], block.partition("\n")[2].splitlines())
    for blocks in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for block in re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
]
"""Commands of the README with the lines that it shows for them."""
TABLE = [
    command.replace("\\|", "|")
    for row in re.findall(r"^\| .* \| (.*) \|$", README, re.MULTILINE)
    for command in re.findall(r"`([^`]+)`", row)
    if " " in command
]
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
HANDLE = re.compile(r"^[0-9a-f]{8}(?= \[)")
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
    """A model that the reader serves."""
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of someone who reads the README: a checkout, their agents' transcripts, agents to pipe with."""
    home = tmp_path_factory.mktemp("home")
    checkout, commands = home / "om", home / "bin"
    claude, pi = home / ".claude" / "projects" / "-home-ada-src-parcel", home / ".pi" / "agent" / "sessions" / "ledger"
    for folder in (checkout / "tests", commands, claude, pi):
        folder.mkdir(parents=True)
    shutil.copytree(STORIES, checkout / "tests" / "stories")
    shutil.copy(STORIES / "claude_code_refactor.jsonl", claude / "5f0c3c1e.jsonl")
    shutil.copy(STORIES / "pi_bugfix.jsonl", pi)
    shutil.copy(STORIES / "anthropic_body.json", checkout / "t.jsonl")
    _script(commands / "om", f'exec "{sys.executable}" -m omcli "$@"')
    (commands / "agent.py").write_text(AGENT, "utf-8")
    _script(commands / "my-agent", f'exec "{sys.executable}" "{commands / "agent.py"}"')
    _script(commands / "some-agent", f'cat "{STORIES / "chat_openai.jsonl"}"')
    _script(commands / "codex", f'cat "{STORIES / "codex_release.jsonl"}"')
    others = ("OM_", "CLAUDE", "ANTHROPIC_", "OPENAI_", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return environment | {
        "HOME": str(home),
        "OM_DB": str(home / "om.db"),
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CLAUDE_CODE_SESSION_ID": "5f0c3c1e-7b1d-4e0a-9a57-2f6f5d1b8c44",
        "PWD": str(checkout),
    }


def test_the_readme_is_short_and_begins_with_what_om_prints() -> None:
    assert len(README.splitlines()) <= 170
    beginning = "\n".join(README.splitlines()[:FIRST_SCREEN])
    assert all(f"$ {command}" in beginning for command in ("om observe", "om log", "om context"))


def test_the_examples_work_one_after_another_and_print_what_is_shown(reader: dict[str, str]) -> None:
    """Each in a shell, in a process of its own. `…` stands for any lines; handles are new in every store."""
    handles: dict[str, str] = {}
    assert len(TOUR) > 10
    for written, shown in TOUR:
        command = written
        for in_print, here in handles.items():
            command = command.replace(in_print, here)
        if "jq" in command and shutil.which("jq") is None:
            continue
        if command.startswith("export OM_DB="):
            reader["OM_DB"] = str(Path(reader["HOME"], command.rpartition("/")[2]))
            continue
        done = _run(command, reader)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip() or "observe" in command, f"{command} printed nothing"
        handles |= _compared(shown, done, command=command)


def test_the_commands_of_the_table_work(reader: dict[str, str], model: FakeModel, tmp_path: Path) -> None:
    """Each by itself, for someone who has remembered the sample sessions; what has to wait is there to be observed."""
    here = reader | {"OM_DB": str(tmp_path / "table.db"), "PYTHON_KEYRING_BACKEND": "tests.fakes.keys.FileKeyring"}
    assert _run("om observe -q tests/stories/claude_code_refactor.jsonl", here).returncode == 0
    assert len(TABLE) > 8
    for command in TABLE:
        if "encrypt" in command and find_spec("sqlcipher3") is None:
            continue
        if "pending" in command:
            assert _run("om observe --later tests/stories/chat.txt", here).returncode == 0
        done = _run(command.replace("--model ollama", f"--base-url {model.url} --model ollama"), here)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr


HOOKS = [
    *(command for command in TABLE if command.endswith("exit 0")),
    *re.findall(
        r"^(om .*exit 0)$", (ROOT / "man/man7/om-errors.7").read_text("utf-8").replace("\\-", "-"), re.MULTILINE
    ),
]


@pytest.mark.parametrize("hook", sorted(set(HOOKS)))
def test_no_mistake_in_a_hook_blocks_the_agent(reader: dict[str, str], hook: str, tmp_path: Path) -> None:
    """XA2: exit code 2 would refuse the prompt. A typo, a value that is wrong, a store that is none, no om at all."""
    here = reader | {"OM_DB": str(tmp_path / "hook.db")}
    assert _run("om observe -q tests/stories/claude_code_refactor.jsonl", here).returncode == 0
    verb = hook.split()[1]
    broken = [hook.replace(f"om {verb}", each) for each in (f"om {verb} --oops", f"om {verb} --wait x", f"om {verb}s")]
    assert _run(broken[0].partition(" || ")[0], here).returncode == 2, "without the end it would block"
    for mistake in broken:
        done = _run(mistake, here)
        assert (done.returncode, done.stdout) == (0, "")
        assert "om: error: " in done.stderr
    (tmp_path / "no-store.db").write_text("not a store", encoding="utf-8")
    for environment in (here | {"OM_DB": str(tmp_path / "no-store.db")}, here | {"PATH": "/usr/bin:/bin"}):
        done = _run(hook, environment)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr
    assert _run(hook, here).returncode == 0


def test_every_command_for_a_hook_ends_so() -> None:
    """XA2: in the README and in the manual."""
    rows = [row for row in README.splitlines() if row.startswith("|") and "hook" in row]
    assert len(HOOKS) == len(rows) + 2
    assert all(row.count("exit 0") == 1 for row in rows)


def test_the_programs_work_as_printed(reader: dict[str, str]) -> None:
    """Each in a process of its own, for someone who has no key."""
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
        assert done.stdout.startswith("This session:\n")
        assert "Always use metric units." in done.stdout
        assert done.stderr == ""


def test_no_example_can_destroy_anything_of_the_reader() -> None:
    """XA8: nothing is forgotten, pruned, undone or installed, and the reader's own store is not even written to."""
    commands = [*(command for command, _ in TOUR), *TABLE]
    assert TOUR[0][0].startswith("export OM_DB=$(mktemp -d)/")
    harmful = re.compile(r"\b(om (forget|prune|undo)|--hard|--install|--remove|rm)\b")
    assert not [command for command in commands if harmful.search(command) and "--dry-run" not in command]


def test_no_example_of_a_help_text_deletes_anything() -> None:
    """XA8: what cannot be undone, or moves files, is only shown with --dry-run; the help says what cannot be undone."""
    found = [example.strip() for name in COMMANDS for example in command_named(name).examples.splitlines()]
    harmful = [example for example in found if re.search(r"--(hard|yes|raw|archive-after)\b", example)]
    assert harmful
    assert all("--dry-run" in example for example in harmful)
    for verb in ("prune", "forget"):
        (hard,) = [each for each in command_named(verb).parameters if each.name == "hard"]
        assert "without undo" in str(hard.declared.settings["help"])


@pytest.mark.parametrize("wanted", ["om observe tests/stories/claude_code_refactor.jsonl", "om context", "pytest"])
def test_the_two_set_up_commands_begin_from_nothing(wanted: str) -> None:
    """One makes an environment and runs the main job on the shipped sample, the other the tests."""
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert [block.count("\n") for block in blocks] == [0, 0], "two commands, a line each"
    assert all(block.startswith("python3 -m venv .venv && .venv/bin/pip install -q ") for block in blocks)
    assert any(wanted in block for block in blocks)


def test_the_test_command_is_the_one_that_ci_takes_out_of_the_readme() -> None:
    (command,) = re.findall(r"^python3 -m venv \.venv && .*pytest$", README, re.MULTILINE)
    assert "s/^\\(python3 -m venv .venv && .*pytest\\)$/\\1/p" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert command.endswith(".venv/bin/pytest")


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).is_file()]


def test_the_picture_shows_what_om_prints() -> None:
    """Its words; how rich draws them may differ between versions. Rewritten by: python -m tests.docs.picture."""
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert picture.words(drawn) == picture.words(picture.draw(picture.session()))


def _compared(shown: list[str], done: subprocess.CompletedProcess[str], *, command: str) -> dict[str, str]:
    """Compare shown lines with printed ones, notes on stderr aside. Return the real handles of the shown ones."""
    notes = [line for line in done.stderr.splitlines() if not line.startswith("om: ")]
    printed = [*done.stdout.splitlines(), *notes]
    pattern = "".join(
        r"(?:.*\n)*?"
        if line == "…"
        else re.escape(HANDLE.sub("HANDLE", line)).replace("HANDLE", "([0-9a-f]{8})") + r"\n"
        for line in shown
    )
    text = "".join(f"{line}\n" for line in printed)
    found = re.fullmatch(pattern, text) if shown else re.match("", text)
    assert found, f"{command} prints:\n{text}"
    return dict(zip((line[:8] for line in shown if HANDLE.match(line)), found.groups(), strict=True))


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
