"""What a run does not need it does not import: every agent turn may start `om context`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.architecture.hot_path import UPDATE, hot_path, loaded, pinned
from tests.conftest import Om
from tests.e2e.transcripts import tide_story

# What `om context` and its like must not wait for: reading a line without Typer, and records, are what keeps them away.
SLOW = {"typer", "inspect", "dataclasses", "hashlib", "uuid", "string", "shutil", "subprocess", "tempfile"}
HEAVY = {
    "anthropic", "openai", "httpx", "httpx2", "pydantic", "tiktoken", "rich", "platformdirs", "requests", "logging",
    "asyncio", "hypothesis", "sqlite3.dump", "numpy", "onnxruntime",
}  # fmt: skip


Loaded = Callable[..., set[str]]


@pytest.fixture(scope="module", name="tide")
def modules_of_commands(new_om: Callable[[], Om]) -> Loaded:
    """The modules that a command loads over a store with rows; each command is run once."""
    om = new_om()
    om("observe", stdin=tide_story().text())
    return cache(lambda *arguments: loaded(om, *arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"], ["--version"], ["context"], ["context", "--json"], ["context", "--block"], ["log"],
        ["log", "--jsonl"], ["sessions"], ["status"], ["status", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_quick_command_imports_nothing_heavy(tide: Loaded, arguments: list[str]) -> None:
    """Invariant 12: no SDK, no tokenizer, no rich, and no reader of transcripts."""
    modules = tide(*arguments)
    assert not HEAVY & modules, f"imported by om {' '.join(arguments)}: {sorted(HEAVY & modules)}"
    if arguments[0] != "--help":
        assert not {module for module in modules if module.startswith(("omcli.observers", "omcli.formats."))}


def test_the_version_loads_no_other_module_of_om(tide: Loaded) -> None:
    assert {module for module in tide("--version") if module.startswith("omcli")} <= {"omcli", "omcli.__main__"}


PLAIN = [
    ["context"], ["context", "--session", "a-session-to-come", "--budget", "800", "--to", "text"],
    ["context", "--tier=tail", "-q"],
    ["log", "-n", "5"], ["sessions"], ["status"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_a_plain_command_line_waits_for_nothing_slow(tide: Loaded, arguments: list[str]) -> None:
    """Invariant 12: what takes longer to import than the memory takes to read."""
    slow = SLOW & tide(*arguments)
    assert not slow, f"imported by om {' '.join(arguments)}: {sorted(slow)}"


def test_the_hot_path_loads_the_modules_of_the_list(om: Om) -> None:
    """Invariant 12: a module more is a decision, which the list shows."""
    now, before = hot_path(om), pinned()
    new = {command: sorted(modules - before.get(command, set())) for command, modules in now.items()}
    gone = {command: sorted(modules - now.get(command, set())) for command, modules in before.items()}
    assert now == before, f"newly loaded: {new}; no longer: {gone}; if that is meant, run: {UPDATE}"


@pytest.mark.parametrize(("command", "most"), [("om observe -q tide.jsonl", 81), ("om context", 51)])
def test_the_hot_path_does_not_grow(command: str, most: int) -> None:
    """Invariant 12: the numbers go down only. Counted are om's own modules, with packages, at the end of the run."""
    count = len(pinned()[command])
    assert count <= most, f"`{command}` loads {count} modules of om, packages included, by the list; at most {most}"


def test_context_imports_only_what_its_layout_needs(tide: Loaded) -> None:
    modules = tide("context")
    assert "json" not in modules
    assert not {"tomllib", "omcli.settings.layers", "omcli.settings.values", "omcli.memory.reflection"} & modules
    layouts = {module for module in modules if module.startswith("omcli.pack.layouts.")}
    assert layouts == {"omcli.pack.layouts.layout", "omcli.pack.layouts.text"}


def test_a_command_imports_no_other_command(om: Om) -> None:
    commands = {module for module in loaded(om, "log") if module.startswith("omcli.cli.")}
    assert commands == {
        f"omcli.cli.{name}" for name in ("command", "commands", "commands.log", "console", "main", "options", "output")
    }


def test_observing_imports_no_tokenizer_and_no_rich(om: Om) -> None:
    om.write("tide.jsonl", tide_story().text())
    assert not {"tiktoken", "rich", "pydantic", "anthropic", "openai"} & loaded(om, "observe", "-q", "tide.jsonl")


def test_searching_by_words_loads_nothing_for_vectors(tide: Loaded) -> None:
    """C14: vectors cost nothing unless they are chosen."""
    modules = tide("recall", "tide")
    assert not {"numpy", "omcli.operations.embed", "omcli.sqlite.vectors", "omcli.wiring.models"} & modules
    assert not HEAVY & modules


def test_the_watch_sees_what_is_loaded(om: Om) -> None:
    """The tests above can fail."""
    assert {"sqlite3", "omcli.operations.context"} <= loaded(om, "context")
    assert {"typer", "inspect"} <= loaded(om, "context", "-q", "--help")
