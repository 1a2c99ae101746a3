"""The hooks of om that clients are set up to run, found in their usual files."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.base.record import record

_FOLDERS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent"),
    "opencode": ("OPENCODE_CONFIG_DIR", ".config/opencode"),
    "gemini": ("", ".gemini"),
    "cursor": ("", ".cursor"),
}
"""The folder of each client in the user's home, and the variable that names another one."""
_FILES = {
    "claude-code": ("settings.json", "settings.local.json"),
    "codex": ("hooks.json",),
    "gemini": ("settings.json",),
    "cursor": ("hooks.json",),
}
_EXTENSIONS = {"pi": "extensions/om*", "opencode": "plugins/om*"}
_IN_PROJECT = {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini", "cursor": ".cursor"}
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
    variable, usual = _FOLDERS[client]
    named = environment.get(variable, "").strip() if variable else ""
    return Path(named) if named else Path(environment.get("HOME", ""), usual)


def installed_hooks(environment: Mapping[str, str], project: Path) -> tuple[InstalledHook, ...]:
    """Return the hooks of om in the files of the user and of a project: each command of a file once. Files that cannot
    be read are skipped.
    """
    found = {(hook.place, hook.words): hook for hook in _all(environment, project)}
    return tuple(found.values())


def _all(environment: Mapping[str, str], project: Path) -> Iterator[InstalledHook]:
    for client, names in _FILES.items():
        for folder in (client_folder(client, environment), project / _IN_PROJECT[client]):
            for name in names:
                text = _text(folder / name)
                yield from (
                    InstalledHook(client=client, place=folder / name, words=words) for words in _commands(text, client)
                )
    for client, pattern in _EXTENSIONS.items():
        for place in sorted(client_folder(client, environment).glob(pattern)):
            if named := _PROGRAM.search(_text(place)):
                yield InstalledHook(client=client, place=place, words=(named[1], "hook", client))


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
