"""Layouts of a pack: text, Markdown, XML, or a list of chat messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.pack.layouts.layout import Head, Layout
from omcli.pack.layouts.text import Text


class PackFormat(StrEnum):
    """Output format of a pack."""

    TEXT = "text"
    MARKDOWN = "markdown"
    XML = "xml"
    JSON = "json"
    """A document with the printed text, and its rows and messages as objects."""
    MESSAGES = "messages"
    """Chat messages for OpenAI's API."""
    ANTHROPIC = "anthropic"
    """Messages for Anthropic's API."""


def _xml(head: Head) -> Layout:
    from omcli.pack.layouts.xml import Xml  # noqa: PLC0415 - most packs are text

    return Xml(head=head)


def _chat(head: Head) -> Layout:
    from omcli.pack.layouts.chat import Chat  # noqa: PLC0415

    return Chat(block=Text(head=head))


def _anthropic(head: Head) -> Layout:
    from omcli.pack.layouts.chat import ANTHROPIC, Chat  # noqa: PLC0415

    return Chat(block=Text(head=head), dialect=ANTHROPIC)


LAYOUTS: Mapping[PackFormat, Callable[[Head], Layout]] = {
    PackFormat.TEXT: lambda head: Text(head=head),
    PackFormat.MARKDOWN: lambda head: Text(head=head, is_markdown=True),
    PackFormat.XML: _xml,
    PackFormat.JSON: lambda head: Text(head=head),  # `document.document` prints the text with its rows
    PackFormat.MESSAGES: _chat,
    PackFormat.ANTHROPIC: _anthropic,
}
