"""The hooks of om that clients are set up to run, found in their usual files."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.base.record import record

_PLACES = {
    "claude-code": (("CLAUDE_CONFIG_DIR", ""), ("HOME", ".claude")),
    "codex": (("CODEX_HOME", ""), ("HOME", ".codex")),
    "pi": (("PI_CODING_AGENT_DIR", ""), ("HOME", ".pi/agent")),
    "opencode": (("OPENCODE_CONFIG_DIR", ""), ("XDG_CONFIG_HOME", "opencode"), ("HOME", ".config/opencode")),
    "gemini": (("GEMINI_CLI_HOME", ".gemini"), ("HOME", ".gemini")),
    "cursor": (("HOME", ".cursor"),),
}
"""Variables with the folder of each client, or with one above it and the way from there. The first that is set counts.
"""
_FILES = {
    "claude-code": ("settings.json", (".claude/settings.json", ".claude/settings.local.json")),
    "codex": ("hooks.json", (".codex/hooks.json",)),
    "pi": ("extensions/om.ts", (".pi/extensions/om.ts",)),
    "opencode": ("plugins/om.js", (".opencode/plugins/om.js",)),
    "gemini": ("settings.json", (".gemini/settings.json",)),
    "cursor": ("hooks.json", (".cursor/hooks.json",)),
}
"""The file with hooks or the extension in the client's folder, and those in a project."""
_PROGRAM = re.compile(r"[\"'](/[^\"'\n]*/om)[\"']")
_LARGEST = 4_000_000


@record
class InstalledHook:
    client: str
    place: Path
    """File that has it."""
    words: tuple[str, ...]
    """The command that the client runs."""


def client_folder(client: str, environment: Mapping[str, str]) -> Path:
    """Return the folder of a client, which need not exist."""
    named = ((environment.get(variable, "").strip(), below) for variable, below in _PLACES[client])
    return next((Path(folder, below) for folder, below in named if folder), Path(_PLACES[client][-1][1]))


def installed_hooks(environment: Mapping[str, str], project: Path) -> tuple[InstalledHook, ...]:
    """Return the hooks of om in the files of the user and of a project: each command of a file once. Files that cannot
    be read are skipped.
    """
    found = {(hook.place, hook.words): hook for hook in _all(environment, project)}
    return tuple(found.values())


def _all(environment: Mapping[str, str], project: Path) -> Iterator[InstalledHook]:
    for client, (usual, of_project) in _FILES.items():
        for place in (client_folder(client, environment) / usual, *(project / name for name in of_project)):
            text = _text(place)
            commands = _commands(text, client) if place.suffix == ".json" else _in_extension(text, client)
            yield from (InstalledHook(client=client, place=place, words=words) for words in commands)


def _in_extension(text: str, client: str) -> Iterator[tuple[str, ...]]:
    if named := _PROGRAM.search(text):
        yield named[1], "hook", client


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _commands(text: str, client: str) -> Iterator[tuple[str, ...]]:
    try:
        left: list[object] = [json.loads(text)]
    except ValueError:
        return
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
            command, arguments = value.get("command"), value.get("args", [])
            if isinstance(command, str) and isinstance(arguments, list):
                yield from _ours([command, *map(str, arguments)] if arguments else _words(command), client)
        elif isinstance(value, list):
            left += value


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _ours(words: list[str], client: str) -> Iterator[tuple[str, ...]]:
    if words[-2:] == ["hook", client] and (os.path.basename(words[0]) == "om" or "omcli" in words):  # noqa: PTH119
        yield tuple(words)
