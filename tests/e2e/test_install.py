"""`om install`: what is written for each client, and that every byte of others stays or comes back."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omcli import __version__
from omcli.clients import CLIENTS
from omcli.clients.entries import hook_entries
from omcli.clients.events import EVENTS, call
from omcli.clients.install import DATA, TABLE
from tests.conftest import Om

SETTINGS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
}
EXTENSIONS = {"pi": ".pi/agent/extensions/om.ts", "opencode": ".config/opencode/plugins/om.js"}
FILES = {**SETTINGS, **EXTENSIONS}
SKILLS = {name: ".claude/skills" if name == "claude-code" else ".agents/skills" for name in CLIENTS}

CLAUDE = """\
{
    "model": "opus",
    "env": { "API_TIMEOUT_MS": "60000" },
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    { "type": "command", "command": "terminal-notifier -title done && om-lint hook codex" }
                ]
            }
        ],
        "PostToolUse": [
            { "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": "npx prettier --write" }] }
        ]
    },
    "permissions": { "allow": ["Bash(om recall:*)"] }
}
"""
GEMINI = """\
// my settings\r
{\r
\t"ui": {"theme": "GitHub"}, // bright\r
\t/* hooks of the team */\r
\t"hooks": {\r
\t\t"BeforeTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "./check.sh"}]}],\r
\t},\r
}\r
"""
CURSOR = '{"version":1,"hooks":{"stop":[{"command":"./hooks/audit.sh"}]}}'
CODEX = (
    '\ufeff{"hooks": {"SessionStart": ['
    '{"matcher": "startup", "hooks": [{"type": "command", "command": "direnv reload"}]}]}}'
)
OTHERS = {"claude-code": CLAUDE, "codex": CODEX, "gemini": GEMINI, "cursor": CURSOR}
"""Settings of people who use other tools as well."""


@pytest.fixture
def om(tmp_path: Path) -> Om:
    """The `om` command as a program in a folder without any client."""
    made = Om(tmp_path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "om"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made.argv0 = str(program)
    made._kept["PATH"] = str(program.parent)
    return made


def command(om: Om, client: str) -> str:
    return f"{shlex.quote(om.argv0)} hook {client}"


def files(om: Om) -> dict[str, bytes]:
    """All files and folders below the home, except om's own."""
    return {
        str(path.relative_to(om.home)): path.read_bytes() if path.is_file() else b""
        for path in om.home.rglob("*")
        if ".local" not in path.parts
    }


def put(om: Om, name: str, content: str | bytes) -> Path:
    path = om.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parsed(path: Path) -> Any:
    return json.loads(path.read_text("utf-8-sig"))


def commands(value: Any) -> list[str]:
    """All commands in settings."""
    if isinstance(value, dict):
        own = [value["command"]] if isinstance(value.get("command"), str) else []
        return [*own, *(each for part in value.values() for each in commands(part))]
    return [each for part in value for each in commands(part)] if isinstance(value, list) else []


# ---- what is written


@pytest.mark.parametrize("client", SETTINGS)
def test_a_client_is_told_to_run_this_om_at_its_events(om: Om, client: str) -> None:
    """S0.35: entries that `om hook` understands, by an absolute path."""
    om("install", client)
    written = parsed(om.home / SETTINGS[client])
    assert written["hooks"] == hook_entries(client, command(om, client))
    assert written["hooks"].keys() == EVENTS[client].keys() - {"SubagentStop"}
    assert set(commands(written)) == {command(om, client)}
    assert all(call(client, {"hook_event_name": event}) for event in written["hooks"])


def test_the_entries_have_the_form_of_each_client(om: Om) -> None:
    """Gemini CLI counts milliseconds; Cursor's lists are flat and versioned; Codex allows three seconds at the end."""
    run = command(om, "x").removesuffix("x")
    claude = hook_entries("claude-code", "C")
    assert claude["SessionStart"][0]["matcher"] == "startup|resume|clear|compact|fork"
    assert claude["PostToolUse"][0]["hooks"] == [{"type": "command", "command": "C", "async": True, "timeout": 30}]
    om("install", *SETTINGS)
    cursor = parsed(om.home / SETTINGS["cursor"])
    assert cursor["version"] == 1
    assert cursor["hooks"]["stop"] == [{"command": f"{run}cursor", "timeout": 5}]
    gemini = parsed(om.home / SETTINGS["gemini"])["hooks"]["SessionStart"][0]["hooks"][0]
    assert gemini == {"name": "om-memory", "type": "command", "command": f"{run}gemini", "timeout": 5000}
    codex = parsed(om.home / SETTINGS["codex"])["hooks"]["SessionEnd"][0]["hooks"][0]
    assert codex == {"type": "command", "command": f"{run}codex", "timeout": 3}


@pytest.mark.parametrize("client", EXTENSIONS)
def test_an_extension_runs_this_om(om: Om, client: str) -> None:
    om("install", client)
    written = (om.home / EXTENSIONS[client]).read_text()
    assert "__OM__" not in written
    assert json.dumps(om.argv0) in written
    assert f"om uninstall {client}" in written.splitlines()[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_is_given_the_skill(om: Om, client: str) -> None:
    om("install", client)
    skill = om.home / SKILLS[client] / "om-memory" / "SKILL.md"
    text = skill.read_text()
    assert text == (DATA / "skill" / "SKILL.md").read_text()
    assert text.startswith("---\nname: om-memory\ndescription: ")
    assert text.count("\n") <= 60
    assert 0 < len(text.splitlines()[2]) < 1024


def test_a_path_with_odd_characters_is_quoted(om: Om) -> None:
    folder = om.folder / 'it\'s & "so" $HOME é'
    folder.mkdir()
    (folder / "om").symlink_to(om.argv0)
    om.argv0 = str(folder / "om")
    om("install", "codex", "pi", "cursor")
    for client in ("codex", "cursor"):
        (found,) = set(commands(parsed(om.home / FILES[client])))
        assert shlex.split(found) == [om.argv0, "hook", client]
    assert json.dumps(om.argv0) in (om.home / EXTENSIONS["pi"]).read_text()
    assert "already installed" in om("install", "codex", "cursor").stderr
    om("uninstall", "codex", "pi", "cursor")
    assert files(om) == {}


def test_folders_are_found_as_the_clients_find_them(om: Om) -> None:
    env = {
        "CLAUDE_CONFIG_DIR": str(om.folder / "claude"),
        "CODEX_HOME": str(om.folder / "codex"),
        "PI_CODING_AGENT_DIR": "~/my-pi",
        "XDG_CONFIG_HOME": str(om.folder / "config"),
        "GEMINI_CLI_HOME": str(om.folder / "gemini"),
    }
    om("install", *CLIENTS, env=env)
    for path in (
        om.folder / "claude/settings.json",
        om.folder / "claude/skills/om-memory/SKILL.md",
        om.folder / "codex/hooks.json",
        om.home / "my-pi/extensions/om.ts",
        om.folder / "config/opencode/plugins/om.js",
        om.folder / "gemini/.gemini/settings.json",
        om.home / ".cursor/hooks.json",
    ):
        assert path.is_file(), path
    om("install", "opencode", env={**env, "OPENCODE_CONFIG_DIR": str(om.folder / "oc")})
    assert (om.folder / "oc/plugins/om.js").is_file()


def test_a_project_has_files_of_its_own(om: Om) -> None:
    project = om.folder / "ferry"
    project.mkdir()
    run = om("install", *CLIENTS, "--project", cwd=project)
    assert files(om) == {}
    assert sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()) == sorted([
        ".agents/skills/om-memory/SKILL.md",
        ".claude/settings.local.json",
        ".claude/skills/om-memory/SKILL.md",
        ".codex/hooks.json",
        ".cursor/hooks.json",
        ".gemini/settings.json",
        ".opencode/plugins/om.js",
        ".pi/extensions/om.ts",
    ])  # fmt: skip
    assert "keep them out of the repository" in run.stderr
    assert "still installed" in om("uninstall", "--all").stderr
    om("uninstall", "--all", "--project", cwd=project)
    assert list(project.iterdir()) == []


def test_all_means_those_that_are_found(om: Om) -> None:
    """By their folder, or by their program on PATH."""
    assert "no client was found" in om("install", "--all").stderr
    (om.home / ".gemini").mkdir()
    program = om.folder / "bin" / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    run = om("install", "--all", "--json")
    assert list(run.document["clients"]) == ["codex", "gemini"]
    assert "was not found" not in run.stderr
    assert "pi was not found on this machine" in om("install", "pi").stderr


def test_what_is_left_to_the_user_is_said(om: Om) -> None:
    """Codex runs nothing until its hooks are trusted, and does not say so."""
    run = om("install", *CLIENTS)
    for client in CLIENTS:
        assert f"{client}: {TABLE[client].todo}" in run.stderr
    assert "`/hooks`" in TABLE["codex"].todo
    assert "/hooks" not in om("install", "codex").stderr, "only if something was changed"


# ---- what is not changed


@pytest.mark.parametrize("client", OTHERS)
def test_entries_of_others_stay_byte_for_byte_and_everything_comes_back(om: Om, client: str) -> None:
    path = put(om, SETTINGS[client], OTHERS[client])
    before = files(om)
    om("install", client)
    written = path.read_bytes().decode()
    rest = iter(written)
    assert all(character in rest for character in OTHERS[client]), "nothing was taken out or moved"
    assert written.count(om.argv0) == len(hook_entries(client, ""))
    om("uninstall", client)
    assert files(om) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_twice_changes_nothing(om: Om, client: str) -> None:
    if client in OTHERS:
        put(om, SETTINGS[client], OTHERS[client])
    om("install", client)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in om.home.rglob("*") if path.is_file()}
    run = om("install", client)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before
    assert run.stdout == ""
    assert f"om: {client}: already installed\n" in run.stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstalling_removes_what_was_created(om: Om, client: str) -> None:
    """Files, and the folders that were created for them."""
    om("install", client)
    assert files(om)
    om("uninstall", client)
    assert files(om) == {}
    assert "nothing to remove" in om("uninstall", client).stderr


def test_folders_with_other_files_stay(om: Om) -> None:
    om("install", "codex", "claude-code")
    put(om, ".codex/config.toml", "")
    put(om, ".claude/skills/mine/SKILL.md", "mine")
    om("uninstall", "--all")
    assert {name for name in files(om) if "." in Path(name).name[1:]} == {
        ".codex/config.toml",
        ".claude/skills/mine/SKILL.md",
    }


def test_only_our_entries_go_if_the_file_was_changed_since(om: Om) -> None:
    path = put(om, SETTINGS["claude-code"], CLAUDE)
    om("install", "claude-code")
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    om("uninstall", "claude-code")
    assert path.read_text() == CLAUDE.replace('"opus"', '"haiku"')


def test_what_others_added_to_a_file_that_om_created_stays(om: Om) -> None:
    om("install", "cursor")
    path = om.home / SETTINGS["cursor"]
    settings = parsed(path)
    settings["hooks"]["stop"].append({"command": "./mine.sh"})
    path.write_text(json.dumps(settings, indent=4))
    om("uninstall", "cursor")
    assert parsed(path) == {"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}
    om("install", "cursor")
    om("uninstall", "cursor")
    assert commands(parsed(path)) == ["./mine.sh"]


@pytest.mark.parametrize(
    ("before", "edited", "stays"),
    [
        ({"team": 1}, {}, False),
        (None, {"team": 1}, False),
        ({"hooks": {"stop": [{"command": "./mine.sh"}]}}, {}, False),
        ({"hooks": {"stop": []}, "team": 1}, {}, False),
        ({"version": 1}, {}, True),
        ({"team": 1}, {"version": 2}, True),
    ],
)
def test_the_version_that_om_added_goes_if_nothing_needs_it(
    om: Om, before: dict[str, Any] | None, edited: dict[str, Any], *, stays: bool
) -> None:
    """Also if the file was edited since. Hooks that were there before did without it."""
    path = om.home / SETTINGS["cursor"]
    if before is not None:
        put(om, SETTINGS["cursor"], json.dumps(before))
    om("install", "cursor")
    path.write_text(json.dumps({**parsed(path), **edited, "theirs": True}))
    om("uninstall", "cursor")
    version = {"version": edited.get("version", 1)} if stays else {}
    assert parsed(path) == {**(before or {}), **edited, "theirs": True, **version}


def test_a_file_that_om_created_and_others_only_laid_out_anew_is_removed(om: Om) -> None:
    for client, name in SETTINGS.items():
        om("install", client)
        path = om.home / name
        path.write_text(json.dumps(parsed(path)))
        om("uninstall", client)
        assert files(om) == {}, client


def test_lists_that_were_empty_before_stay_empty(om: Om) -> None:
    """Also if the file was changed since, so that it is not put back as a whole."""
    text = '{\n  "hooks": {\n    "Stop": []\n  }\n}\n'
    path = put(om, SETTINGS["codex"], text)
    om("install", "codex")
    path.write_text(f"{path.read_text()}\n")
    om("uninstall", "codex")
    assert path.read_text() == f"{text}\n"


def test_what_is_removed_can_be_removed_without_the_memory_of_it(om: Om) -> None:
    path = put(om, SETTINGS["gemini"], GEMINI)
    om("install", "gemini", "opencode")
    for file in (om.home / ".local/state/om/install").iterdir():
        file.unlink()
    om("uninstall", "--all")
    assert path.read_bytes() == GEMINI.encode()
    assert not (om.home / EXTENSIONS["opencode"]).exists()


def test_a_shared_skill_stays_until_no_client_needs_it(om: Om) -> None:
    om("install", "codex", "pi")
    skill = om.home / ".agents/skills/om-memory/SKILL.md"
    om("uninstall", "codex")
    assert skill.exists()
    om("uninstall", "pi")
    assert not skill.exists()
    assert files(om) == {}


def test_a_skill_in_a_folder_that_is_linked_stays_as_well(om: Om) -> None:
    """Many people have one folder of skills for all clients."""
    (om.home / ".agents" / "skills").mkdir(parents=True)
    (om.home / ".claude").mkdir()
    (om.home / ".claude" / "skills").symlink_to("../.agents/skills")
    om("install", "claude-code", "codex")
    om("uninstall", "claude-code")
    assert (om.home / ".agents/skills/om-memory/SKILL.md").exists()
    om("uninstall", "codex")
    assert not (om.home / ".agents/skills/om-memory").exists()
    assert (om.home / ".claude" / "skills").is_symlink()


@pytest.mark.parametrize("client", EXTENSIONS)
def test_a_file_that_is_not_ours_is_not_overwritten(om: Om, client: str) -> None:
    put(om, EXTENSIONS[client], "mine")
    before = files(om)
    run = om("install", client, code=73)
    assert "already exists and was not created by om" in run.stderr
    assert "hint: move it out of the way" in run.stderr
    om("uninstall", client)
    assert files(om) == before


def test_a_skill_that_is_not_ours_is_not_overwritten_and_the_hooks_are_not_written_either(om: Om) -> None:
    put(om, ".claude/skills/om-memory/SKILL.md", "mine")
    before = files(om)
    om("install", "claude-code", code=73)
    assert files(om) == before


# ---- former entries

FORMER: Mapping[str, Mapping[str, Any]] = {
    "another path of om": {"type": "command", "command": "/old/venv/bin/om hook claude-code", "timeout": 5},
    "exec form": {"type": "command", "command": "/old/bin/om", "args": ["hook", "claude-code"]},
    "a module": {"type": "command", "command": "/usr/bin/python3 -P -m omcli hook claude-code"},
    "options": {"type": "command", "command": "om --color never hook --db ~/x.db claude-code --wait 2"},
    "variables": {"type": "command", "command": "OM_DB=~/x.db OM_PRESET=coding om hook claude-code 2>/dev/null"},
    "a limit of time": {"type": "command", "command": "timeout -s KILL 5 /old/bin/om hook claude-code || true"},
    "a niceness": {"type": "command", "command": "/usr/bin/env A=b nice -n 5 python3 -m omcli hook claude-code"},
    "a runner": {"type": "command", "command": "uv", "args": ["run", "--directory", "/x", "om", "hook", "claude-code"]},
    "retired": {"type": "command", "command": "om claude-checkpoint"},
    "retired, by path": {"type": "command", "command": "'/opt/my tools/om' codex-checkpoint >/dev/null 2>&1 || true"},
    "retired context": {"type": "command", "command": '/opt/om/bin/om context --for codex --cwd "$PWD"'},
    "retired plain context": {"type": "command", "command": "/opt/om/bin/om context"},
    "retired script": {
        "type": "command",
        "command": "/lib/python3.12/site-packages/observational_memory/hooks/claude/session-start.sh",
    },
}
FOREIGN = (
    "om-notify hook claude-code",
    "/opt/om/notify hook codex",
    "om hook claude-code && say done",
    "om claude-checkpoint; ./backup.sh",
    "echo om claude-checkpoint",
    'om context --for "the release" --budget 500',
    "om recall --json deploy",
    "om hook",
    "om hook my-client",
    "om note hook codex",
    "echo om hook codex",
    "OM=/opt/bin/om hook codex",
    "timeout 5 ./mine.sh om hook codex",
    "ssh harbour om hook codex",
    "grep -rl om hook codex",
    "timeout 5 om hook codex | tee ~/log",
    "node ~/observational_memory/hooks/mine.js",
    "om context | tee ~/log",
    "unbalanced 'om hook codex",
    "cat <<X\nom hook codex\nX",
)


@pytest.mark.parametrize("kind", FORMER)
def test_former_entries_of_om_are_replaced(om: Om, kind: str) -> None:
    old = {"hooks": {"SessionStart": [{"hooks": [FORMER[kind]]}], "Notification": [{"hooks": [FORMER[kind]]}]}}
    path = put(om, SETTINGS["claude-code"], json.dumps(old, indent=2))
    run = om("install", "claude-code")
    assert parsed(path)["hooks"] == hook_entries("claude-code", command(om, "claude-code"))
    assert "without `" in run.stdout
    om("uninstall", "claude-code")
    is_retired = kind.startswith("retired")
    assert parsed(path) == (old if is_retired else {}), "what was never ours to remove comes back"


def test_entries_of_others_are_never_taken_for_ours(om: Om) -> None:
    """The retired tool once removed hooks of other tools."""
    groups = [{"hooks": [{"type": "command", "command": each}]} for each in FOREIGN]
    odd = [
        None,
        3,
        "om hook codex",
        {"hooks": "om hook codex"},
        {"hooks": [None, "om hook codex"]},
        {"command": ["om"]},
    ]
    settings: dict[str, Any] = {
        "hooks": {"Stop": [*groups, *odd], "Other": {"command": "om hook codex"}},
        "command": "om hook codex",
    }
    path = put(om, SETTINGS["claude-code"], json.dumps(settings, indent=2))
    om("install", "claude-code")
    assert parsed(path)["hooks"]["Stop"][:-1] == settings["hooks"]["Stop"]
    path.write_text(f"{path.read_text()}\n")
    om("uninstall", "claude-code")
    assert parsed(path) == settings


def test_of_a_group_with_others_only_our_entry_is_removed(om: Om) -> None:
    mixed = [{"type": "command", "command": each} for each in ("./a.sh", "/old/om hook claude-code", "./b.sh")]
    path = put(om, SETTINGS["claude-code"], json.dumps({"hooks": {"Stop": [{"hooks": mixed}]}}))
    om("install", "claude-code")
    stop = parsed(path)["hooks"]["Stop"]
    assert stop == [{"hooks": [mixed[0], mixed[2]]}, hook_entries("claude-code", command(om, "claude-code"))["Stop"][0]]


def test_an_entry_is_replaced_in_its_place(om: Om) -> None:
    """Codex trusts hooks by their place in the list."""
    groups = [{"hooks": [{"type": "command", "command": each}]} for each in ("/old/om hook codex", "./mine.sh")]
    path = put(om, SETTINGS["codex"], json.dumps({"hooks": {"Stop": groups}}))
    om("install", "codex")
    assert parsed(path)["hooks"]["Stop"] == [*hook_entries("codex", command(om, "codex"))["Stop"], groups[1]]


def test_uninstalling_after_a_second_installation_brings_the_first_content_back(om: Om) -> None:
    path = put(om, SETTINGS["codex"], CODEX)
    om("install", "codex")
    (om.folder / "new").mkdir()
    om.argv0 = str(om.folder / "new" / "om")
    Path(om.argv0).symlink_to(om.folder / "bin" / "om")
    om("install", "codex")
    assert command(om, "codex") in commands(parsed(path))
    assert path.read_text().count("hook codex") == len(hook_entries("codex", ""))
    om("uninstall", "codex")
    assert path.read_bytes() == CODEX.encode()


# ---- files


@pytest.mark.parametrize("content", ["", " \n", "{}", '{ "version": 1 }'])
@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_an_empty_file_is_filled_and_emptied_again(om: Om, client: str, content: str) -> None:
    path = put(om, SETTINGS[client], content)
    om("install", client)
    assert parsed(path)["hooks"]
    om("uninstall", client)
    assert path.read_text() == content


def test_links_modes_and_other_names_are_kept(om: Om) -> None:
    """Settings are often links into a folder of dotfiles."""
    target = put(om, "dotfiles/claude.json", CLAUDE)
    target.chmod(0o640)
    link = om.home / SETTINGS["claude-code"]
    link.parent.mkdir()
    link.symlink_to("../dotfiles/claude.json")
    om("install", "claude-code")
    assert link.is_symlink()
    assert command(om, "claude-code") in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    om("uninstall", "claude-code")
    assert str(link.readlink()) == "../dotfiles/claude.json"
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == (CLAUDE, 0o640)


def test_originals_are_private(om: Om) -> None:
    """Settings may contain keys."""
    put(om, SETTINGS["claude-code"], CLAUDE)
    om("install", "claude-code")
    folder = om.home / ".local/state/om/install"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert CLAUDE.encode() in [file.read_bytes() for file in folder.iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    om("uninstall", "claude-code")
    assert sorted(file.name for file in folder.iterdir()) == ["files.json", "lock"]


def test_a_read_only_file_is_refused_and_nothing_is_written_for_that_client(om: Om) -> None:
    path = put(om, SETTINGS["claude-code"], CLAUDE)
    path.chmod(0o444)
    before = files(om)
    run = om("install", "claude-code", "codex", code=73)
    assert f"claude-code: {path} is read-only" in run.stderr
    assert ".claude" not in run.stdout, "only what was changed is told as such"
    assert "create   " in run.stdout
    assert {name: content for name, content in files(om).items() if name in before} == before
    assert ".claude/skills" not in files(om)
    assert ".codex/hooks.json" in files(om), "the other client is done"
    assert "claude" not in (om.home / ".local/state/om/install/files.json").read_text()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{\n  'a': 1\n}", "line 2, column 3: not valid JSON"),
        ('{"hooks": []}', "`hooks` is not an object"),
        ('{"hooks": {"Stop": {}}}', "`hooks.Stop` is not an array"),
        ("[]", "the outermost value is not an object"),
        (b'{"a": "\xff"}', "byte 8: not valid UTF-8"),
    ],
)
def test_settings_that_cannot_be_understood_are_left_alone(om: Om, content: str | bytes, told: str) -> None:
    path = put(om, SETTINGS["claude-code"], content)
    before = files(om)
    run = om("install", "claude-code", "pi", code=78)
    assert f"claude-code: {path}: {told}" in run.stderr
    assert {name: found for name, found in files(om).items() if ".claude" in name} == before
    assert EXTENSIONS["pi"] in files(om), "the other client is done"


def test_settings_that_were_damaged_since_are_left_alone(om: Om) -> None:
    om("install", "claude-code")
    path = put(om, SETTINGS["claude-code"], "{")
    om("uninstall", "claude-code", code=78)
    assert path.read_text() == "{"


def test_a_folder_in_place_of_a_file_is_an_error(om: Om) -> None:
    (om.home / SETTINGS["codex"]).mkdir(parents=True)
    assert "cannot be read" in om("install", "codex", code=66).stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pipe_in_place_of_a_file_is_refused_at_once(om: Om, client: str) -> None:
    path = om.home / FILES[client]
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    told = f"{path}: cannot be read: not a regular file"
    assert told in om.process("install", client, code=66, seconds=60).stderr
    assert told in om.process("uninstall", client, code=66, seconds=60).stderr
    checks = om.process("doctor", "--json", seconds=60).document["checks"]
    assert [(check["state"], check["text"]) for check in checks if check["name"] == client] == [("warn", told)]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_what_a_killed_run_left_is_removed(om: Om) -> None:
    """A file beside the one that it was writing, in a folder that it had created."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = [".claude/skills/om-memory/.SKILL.md", ".claude/.settings.json"]

    def leave(*endings: object) -> list[Path]:
        return [put(om, f"{name}.{ending}", "half") for name in left for ending in endings]

    om("install", "claude-code")
    leave(ended.pid)
    others = leave(os.getppid(), "1x", "backup")
    om("install", "claude-code")
    assert list(om.home.rglob(f".*.{ended.pid}")) == []
    assert all(path.exists() for path in others), "of a process that is running, or of another program"
    for path in others:
        path.unlink()
    leave(ended.pid)
    om("uninstall", "claude-code")
    assert files(om) == {}


def test_a_run_that_finds_no_folder_for_its_state_changes_nothing(om: Om) -> None:
    put(om, ".local", "a file")
    om("install", "codex", code=73)
    assert files(om) == {}


def test_two_runs_at_once_do_no_harm(om: Om) -> None:
    """Each entry is there once, and uninstalling puts everything back."""
    put(om, SETTINGS["claude-code"], CLAUDE)
    before = files(om)
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    runs = [om.start("install", *CLIENTS, env=environment) for _ in range(4)]
    assert [run.wait(60) for run in runs] == [0, 0, 0, 0]
    for run in runs:
        run.communicate()
    found = commands(parsed(om.home / SETTINGS["claude-code"]))
    assert len([each for each in found if each.endswith("hook claude-code")]) == len(hook_entries("claude-code", ""))
    om("uninstall", "--all")
    assert files(om) == before


# ---- the command line


def test_a_dry_run_tells_everything_and_changes_nothing(om: Om) -> None:
    put(om, SETTINGS["codex"], CODEX)
    before = files(om)
    told = om("install", "codex", "pi", "--dry-run")
    assert f"change   {om.home / SETTINGS['codex']}  (SessionStart, " in told.stdout
    assert "dry run: nothing was changed" in told.stderr
    assert files(om) == before
    assert not (om.home / ".local").exists()
    done = om("install", "codex", "pi")
    assert done.stdout == told.stdout
    told = om("uninstall", "codex", "pi", "--dry-run")
    assert files(om) != before
    assert om("install", "--remove", "codex", "pi").stdout == told.stdout
    assert files(om) == before


def test_changes_are_told_as_json(om: Om) -> None:
    document = om("install", "codex", "--json").document
    assert document["om"] == [om.argv0]
    settings, skill = document["clients"]["codex"]
    assert settings["path"] == str(om.home / SETTINGS["codex"])
    assert (settings["step"], skill["step"]) == ("create", "create")
    assert settings["events"] == list(hook_entries("codex", ""))
    assert om("install", "codex", "--json").document["clients"]["codex"][0]["step"] == "keep"
    assert om("uninstall", "codex", "--json").document["clients"]["codex"][0]["step"] == "remove"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["install"], "no client given"),
        (["uninstall"], "no client given"),
        (["install", "vim"], "unknown client `vim`"),
        (["install", "codex", "--all"], "`--all` excludes names"),
        (["install", "--plugin"], "only Claude Code has plugins"),
    ],
)
def test_a_line_that_names_no_client_is_refused_with_their_names(om: Om, words: list[str], told: str) -> None:
    run = om(*words, code=2)
    assert told in run.stderr
    assert "claude-code" in run.stderr


def test_nothing_is_written_where_memory_is_off(om: Om) -> None:
    assert "disabled" in om("install", "codex", env={"OM_DISABLED": "1"}).stderr
    assert files(om) == {}


def test_a_path_that_may_not_last_is_told(om: Om) -> None:
    assert "temporary files" in om("install", "codex", env={"TMPDIR": str(om.folder)}).stderr
    (om.folder / "pyvenv.cfg").write_text("")
    run = om("install", "pi", env={"TMPDIR": str(om.home), "PATH": ""})
    assert "as long as that virtual environment is there" in run.stderr
    assert "`om` is not on PATH" in run.stderr


# ---- the plugin


def test_the_plugin_for_claude_code_has_the_same_hooks_and_the_same_skill(om: Om) -> None:
    folder = Path(om("install", "claude-code", "--plugin").stdout.strip())
    assert om("install", "claude-code", "--plugin", "--json").document["plugin"] == str(folder)
    assert json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"] == hook_entries(
        "claude-code", "om hook claude-code"
    )
    skill = folder / "skills" / "om-memory" / "SKILL.md"
    assert skill.read_text() == (DATA / "skill" / "SKILL.md").read_text()
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("om-memory", __version__)
    assert files(om) == {}
