"""The table of formats. A new one is a module with a `FORMAT` and a line here."""

from __future__ import annotations

from omcli.formats import anthropic_messages, claude_code, codex, openai_chat, pi, plain_text
from omcli.formats.format import Format
from omcli.formats.source import Source
from omcli.memory.errors import BadUsage, UnknownFormat

# In the order of asking: the peculiar before the general.
FORMATS: tuple[Format, ...] = (
    codex.FORMAT,
    pi.FORMAT,
    claude_code.FORMAT,
    anthropic_messages.FORMAT,
    openai_chat.FORMAT,
    plain_text.FORMAT,
)


def named(name: str) -> Format:
    """The format that `--format NAME` means. Raises BadUsage."""
    for entry in FORMATS:
        if entry.name == name:
            return entry
    raise BadUsage(f"unknown format `{name}`", hint=f"formats: {', '.join(entry.name for entry in FORMATS)}")


def recognised(source: Source) -> Format:
    """The format of an input by its content; its name and label are not asked. Raises UnknownFormat."""
    for entry in FORMATS:
        if entry.sniff(source.sample):
            return entry
    raise UnknownFormat(
        "not a transcript in any format om knows",
        hint=f"name the format with --format ({', '.join(entry.name for entry in FORMATS)})",
    )
