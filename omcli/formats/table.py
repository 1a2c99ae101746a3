"""The table of formats. A new one is a module with a `FORMAT` and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from omcli.base.errors import BadUsage, UnknownFormat
from omcli.exchange import is_written
from omcli.formats.format import Format
from omcli.formats.source import Source

# Names, and the modules they are in, imported when asked. In the order of asking: the peculiar before the general.
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
    """The format that `--format NAME` means. Raises BadUsage."""
    if name not in _MODULES:
        raise BadUsage(f"unknown format `{name}`", hint=f"formats: {', '.join(NAMES)}")
    found: Format = import_module(f"omcli.formats.{_MODULES[name]}").FORMAT
    return found


def recognised(source: Source) -> Format:
    """The format of an input by its content; its name and label are not asked. Raises UnknownFormat."""
    if is_written(source.beginning):
        raise UnknownFormat("memory that was written down, and no transcript", hint="`om import` takes it in")
    for entry in map(named, NAMES):
        if entry.sniff(source.sample):
            return entry
    raise UnknownFormat(
        "not a transcript in any format om knows", hint=f"name the format with --format ({', '.join(NAMES)})"
    )


def recognised_as_chat(source: Source) -> Format:
    """The format of messages as they are sent to a model. Raises UnknownFormat."""
    for entry in map(named, _OF_CHAT):
        if entry.sniff(source.sample):
            return entry
    raise UnknownFormat("these are no messages of OpenAI's chat interface, nor of Anthropic's")


TRANSCRIPTS = (".jsonl", ".ndjson")
"""How names of files end that are transcripts, or should be."""


def kept_by_agents(environment: Mapping[str, str]) -> Iterator[Path]:
    """The transcripts in the agents' own folders, as far as there are any."""
    for format_name in NAMES:
        place = named(format_name).place
        if place is None:
            continue
        other = environment.get(place.variable, "").strip() if place.variable else ""
        for pattern in place.patterns:
            for home in (other,) if other else place.homes:
                yield from sorted(Path(home).expanduser().glob(pattern))
