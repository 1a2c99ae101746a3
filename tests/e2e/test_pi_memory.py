"""The preset `pi` reads pi's own `memory.json`, of the user and of the project (S3.1, S3.2, T70, T71)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Om

PI = {"OM_PRESET": "pi"}
WHOLE = {
    "$schema": "https://example.org/memory.schema.json",
    "enabled": True,
    "observer": {
        "provider": "google", "model": "gemini-3", "messageTokenThreshold": 12000, "temperature": 0.1,
        "maxOutputTokens": 5000,
    },
    "reflector": {"provider": "ollama", "model": "qwen2.5:7b", "observationTokenThreshold": 22000, "temperature": 0},
}  # fmt: skip


def write(om: Om, where: str, content: object) -> Path:
    """Write the user's or the project's file."""
    folder = om.home / ".pi" / "agent" if where == "user" else om.folder / ".pi"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "memory.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def settings(om: Om, env: dict[str, str] | None = None) -> dict[str, object]:
    ended = om("config", "--json", env=PI | (env or {}))
    assert "warning" not in ended.stderr
    found: dict[str, object] = ended.document["settings"]
    return found


def test_every_key_is_the_setting_of_om_that_means_the_same(om: Om) -> None:
    path = write(om, "user", WHOLE)
    found = settings(om)
    assert {key: found[key] for key in ("observer.provider", "observer.model", "observe.tokens")} == {
        "observer.provider": "gemini", "observer.model": "gemini-3", "observe.tokens": 12_000,
    }  # fmt: skip
    assert (found["observer.temperature"], found["observer.max_output"]) == (0.1, 5_000)
    assert (found["reflector.provider"], found["reflector.model"]) == ("ollama", "qwen2.5:7b")
    assert (found["reflect.tokens"], found["reflector.temperature"]) == (22_000, 0)
    assert found["disabled"] is False
    origins = om("config", "--origin", "--json", env=PI).document["origins"]
    assert origins["observer.model"] == origins["disabled"] == str(path)
    assert str(path) in om("config", "path", env=PI).stdout
    assert om("config", "path", "--json", env=PI).document["pi_user"] == {"path": str(path), "found": True}


def test_no_other_preset_reads_it(om: Om) -> None:
    """Nobody's model is called because another program has one."""
    path = write(om, "user", WHOLE)
    write(om, "project", {"enabled": False})
    for preset in ("default", "coding"):
        found = om("config", "--json", env={"OM_PRESET": preset}).document["settings"]
        assert found["observer.provider"] in (None, "rules")
        assert found["disabled"] is False
        assert str(path) not in om("config", "path", env={"OM_PRESET": preset}).stdout


def test_the_files_of_om_its_variables_and_options_say_more(om: Om) -> None:
    write(om, "user", WHOLE)
    write(om, "project", {"observer": {"messageTokenThreshold": 13000}})
    assert settings(om)["observe.tokens"] == 13_000
    narrowed = om("config", env=PI).stderr
    assert f"{om.folder / '.pi' / 'memory.json'} narrows memory here: observe.tokens = 13000 (yours: 12000)" in narrowed
    (om.folder / ".om.toml").write_text("observe.tokens = 14000\n")
    assert settings(om)["observe.tokens"] == 14_000
    assert settings(om, {"OM_OBSERVE_TOKENS": "15000"})["observe.tokens"] == 15_000
    assert settings(om)["reflect.tokens"] == 22_000


def test_a_project_may_not_choose_a_model_or_turn_on_what_the_user_turned_off(om: Om) -> None:
    """F94: whoever cloned it did not write it."""
    write(om, "user", {"enabled": False})
    write(om, "project", WHOLE)
    ended = om("config", "--json", env=PI)
    assert ended.document["settings"]["observer.provider"] == "gemini"
    assert ended.document["settings"]["observer.model"] == "gemini-2.5-flash"
    assert ended.document["settings"]["disabled"] is True
    assert "a project file may not set `reflector.provider`" in ended.stderr
    assert "may only narrow" in ended.stderr


@pytest.mark.parametrize("where", ["user", "project"])
@pytest.mark.parametrize(("content", "is_on"), [({}, True), ({"enabled": True}, True), ({"enabled": False}, False)])
def test_a_file_turns_hooks_on_unless_it_says_otherwise(om: Om, where: str, content: object, is_on: bool) -> None:
    om("note", "--item", "We ship on Friday.", "--tag", "pinned")
    env = PI | {"OM_SCOPE": "project", "OM_CONTEXT_CROSS": "1000"}
    call = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(om.folder)})
    assert om("hook", "claude-code", stdin=call, env=env).stdout == ""
    write(om, where, content)
    assert ("We ship on Friday." in om("hook", "claude-code", stdin=call, env=env).stdout) is is_on


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"observer": {"modle": "x"}}', "unknown key `observer.modle`"),
        ('{"observer": {"messageTokenThreshold": -1}}', "`observe.tokens = -1`"),
        ('{"observer": 3}', "unknown key `observer`"),
        ('{"enabled": "perhaps"}', "`enabled = 'perhaps'`"),
        ('{"observer": ' * 50_000, "not valid JSON"),
        (" " * 1_100_000, "larger than"),
    ],
)
def test_what_is_wrong_is_ignored_with_a_warning(om: Om, content: str, complaint: str) -> None:
    path = write(om, "user", content)
    ended = om("config", "--json", env=PI)
    assert complaint in ended.stderr
    assert str(path) in ended.stderr
    assert ended.document["settings"]["observe.tokens"] == 30_000
    assert om("status", "--strict", env=PI, code=None).code in (0, 78)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_its_place_is_a_warning(om: Om, make: Callable[[Path], None]) -> None:
    write(om, "user", {}).unlink()
    make(om.home / ".pi" / "agent" / "memory.json")
    assert "cannot be read" in om("config", env=PI).stderr
