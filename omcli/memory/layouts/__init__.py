"""How a pack is printed: as text, Markdown, XML, one JSON document, or a list of chat messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.memory.layouts.chat import Chat
from omcli.memory.layouts.document import Document
from omcli.memory.layouts.layout import Head, Layout
from omcli.memory.layouts.text import Text
from omcli.memory.layouts.xml import Xml


class To(StrEnum):
    """What a pack can be printed as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    XML = "xml"
    JSON = "json"
    MESSAGES = "messages"


LAYOUTS: Mapping[To, Callable[[Head], Layout]] = {
    To.TEXT: lambda head: Text(head=head),
    To.MARKDOWN: lambda head: Text(head=head, is_markdown=True),
    To.XML: lambda head: Xml(head=head),
    To.JSON: lambda head: Document(head=head),
    To.MESSAGES: lambda head: Chat(block=Text(head=head)),
}
