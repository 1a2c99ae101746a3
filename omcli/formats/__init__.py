"""Transcripts of other tools. A new format is a module with a `FORMAT` and a line in `_MODULES` here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from omcli.base.errors import BadUsage, UnknownFormat
from omcli.formats.format import Format
from omcli.formats.injected import is_export
from omcli.formats.source import RecordStream

# Modules by format name, imported on demand, and in the order of detection: the most specific first.
_MODULES = {
    "codex": "codex",
    "pi": "pi",
    "claude-code": "claude_code",
    "anthropic": "anthropic_messages",
    "openai": "openai_chat",
    "text": "plain_text",
}
NAMES = tuple(_MODULES)
_OF_CHAT = ("anthropic", "openai")


def named(name: str) -> Format:
    """Return the format with this name. Raise BadUsage if it is unknown."""
    if name not in _MODULES:
        raise BadUsage(f"unknown format `{name}`", hint=f"formats: {', '.join(NAMES)}")
    found: Format = import_module(f"omcli.formats.{_MODULES[name]}").FORMAT
    return found


def detect(source: RecordStream) -> Format:
    """Return the format of an input, judged by its content alone. Raise UnknownFormat if none matches."""
    if is_export(source.beginning):
        raise UnknownFormat("this is exported memory, not a transcript", hint="use `om import` for it")
    for entry in map(named, NAMES):
        if entry.detect(source.sample):
            return entry
    raise UnknownFormat(
        "not a transcript in any format om knows", hint=f"name the format with --format ({', '.join(NAMES)})"
    )


def detect_chat(source: RecordStream) -> Format:
    """Return the format of messages sent to a model. Raise UnknownFormat if they match neither API."""
    for entry in map(named, _OF_CHAT):
        if entry.detect(source.sample):
            return entry
    raise UnknownFormat("the messages are neither OpenAI chat messages nor Anthropic Messages")


TRANSCRIPTS = (".jsonl", ".ndjson")
"""Suffixes of transcript files."""


def agent_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the transcripts found in the agents' own folders."""
    for format_name in NAMES:
        folders = named(format_name).folders
        if folders is None:
            continue
        other = environment.get(folders.variable, "").strip() if folders.variable else ""
        for pattern in folders.patterns:
            for home in (other,) if other else folders.homes:
                yield from sorted(Path(home).expanduser().glob(pattern))
