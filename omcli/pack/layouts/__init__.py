"""Layouts of a pack: text, Markdown, XML, a JSON document, or a list of chat messages."""

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
    MESSAGES = "messages"
    """Chat messages for OpenAI's API."""
    ANTHROPIC = "anthropic"
    """Messages for Anthropic's API."""


def _xml(head: Head) -> Layout:
    from omcli.pack.layouts.documents import Xml  # noqa: PLC0415 - most packs are text

    return Xml(head=head)


def _document(head: Head) -> Layout:
    from omcli.pack.layouts.documents import Document  # noqa: PLC0415

    return Document(head=head)


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
    PackFormat.JSON: _document,
    PackFormat.MESSAGES: _chat,
    PackFormat.ANTHROPIC: _anthropic,
}
