"""How a compacted transcript is printed: as a pack is, as messages in place of the transcript, or as pi asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.base.record import record, replace
from omcli.pack.layouts import LAYOUTS, To
from omcli.pack.layouts.layout import Head, Layout, Shown


class Shape(StrEnum):
    """What a compacted transcript can be printed as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    XML = "xml"
    JSON = "json"
    MESSAGES = "messages"
    """OpenAI's chat messages."""
    ANTHROPIC = "anthropic"
    """Anthropic's messages."""
    PI = "pi"

    @property
    def has_tools(self) -> bool:
        """Whether calls and results are among the last messages."""
        return self in (Shape.MESSAGES, Shape.ANTHROPIC)

    @property
    def is_gone_on_from(self) -> bool:
        """Whether an agent goes on from it, and so from one branch of a conversation alone."""
        return self.has_tools or self is Shape.PI

    @property
    def has_tail(self) -> bool:
        """Whether the last messages are a part of it, and do not stay where they are."""
        return self is not Shape.PI


def _nothing(_shown: Shown) -> Mapping[str, object]:
    """Nothing more."""
    return {}


@record
class Figures:
    """What a compacted transcript says of itself."""

    first_kept: str | None = None
    """The printed id of the message that the last messages begin with; None where none stays."""
    tokens_before: int = 0
    about: Callable[[Shown], Mapping[str, object]] = _nothing
    """What stands in a JSON document beside the pack."""
    is_kept: bool = True
    """Whether its rows are in a store, where they can be looked up."""


def layout(shape: Shape, figures: Figures) -> Callable[[Head], Layout]:
    """The layout of a shape."""
    return lambda head: _layout(shape, figures, replace(head, is_kept=figures.is_kept))


def _layout(shape: Shape, figures: Figures, head: Head) -> Layout:
    from omcli.pack.layouts.text import Text  # noqa: PLC0415 - each shape imports what it needs

    if shape is Shape.JSON:
        from omcli.pack.layouts.document import Document  # noqa: PLC0415

        return Document(head=head, about=figures.about)
    if shape is Shape.PI:
        from omcli.pack.layouts.pi import Pi  # noqa: PLC0415

        return Pi(block=Text(head=head), first_kept=figures.first_kept, tokens_before=figures.tokens_before)
    if shape.has_tools:
        from omcli.pack.layouts.chat import Chat  # noqa: PLC0415
        from omcli.pack.layouts.dialects import ANTHROPIC, OPENAI_FROM_USER  # noqa: PLC0415

        return Chat(block=Text(head=head), dialect=ANTHROPIC if shape is Shape.ANTHROPIC else OPENAI_FROM_USER)
    return LAYOUTS[To(shape.value)](head)
