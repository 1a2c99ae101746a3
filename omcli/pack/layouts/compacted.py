"""How a compacted transcript is printed: as a pack is, as messages in place of the transcript, or as pi asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.base.record import record, replace
from omcli.memory.observation import Observation
from omcli.memory.row_json import json_line, quoted
from omcli.pack.budget import Tier
from omcli.pack.layouts import LAYOUTS, PackFormat
from omcli.pack.layouts.layout import Head, Layout, PackContent
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn


class CompactFormat(StrEnum):
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
        return self in (CompactFormat.MESSAGES, CompactFormat.ANTHROPIC)

    @property
    def is_gone_on_from(self) -> bool:
        """Whether an agent goes on from it, and so from one branch of a conversation alone."""
        return self.has_tools or self is CompactFormat.PI

    @property
    def has_tail(self) -> bool:
        """Whether the last messages are a part of it, and do not stay where they are."""
        return self is not CompactFormat.PI


def _nothing(_shown: PackContent) -> Mapping[str, object]:
    """Nothing more."""
    return {}


@record
class CompactHead:
    """What a compacted transcript says of itself."""

    first_kept: str | None = None
    """The printed id of the message that the last messages begin with; None where none stays."""
    tokens_before: int = 0
    about: Callable[[PackContent], Mapping[str, object]] = _nothing
    """What stands in a JSON document beside the pack."""
    is_kept: bool = True
    """Whether its rows are in a store, where they can be looked up."""


_TYPE = "observational-memory"


@record
class Pi:
    """`{"summary": …, "firstKeptEntryId": …, "tokensBefore": …, "details": {"type": …, "observationTokens": …}}`.

    The last messages stay with pi, and are not printed.
    """

    block: Text
    """How the rows are written in the summary."""
    first_kept: str | None
    """The id of the entry that the messages begin with which stay; None where none stays."""
    tokens_before: int
    """Of all the messages."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """As in text."""
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """A row's line, as it stands in a JSON string."""
        return quoted(self.block.row(observation) + "\n")

    def turn(self, _turn: Turn) -> str:
        """Nothing."""
        return ""

    def overhead(self, tier: Tier) -> str:
        """A tier's heading in the summary."""
        return "" if tier is Tier.TAIL else quoted(self.block.overhead(tier) + "\n")

    def frame(self) -> str:
        """The object with an empty block, its numbers as long as they may get."""
        return self._object(self.block.frame(), max(0, self.block.head.budgets.total))

    def part(self, tier: Tier, shown: PackContent) -> str:
        """What a tier adds to the summary."""
        return "" if tier is Tier.TAIL else quoted(self.block.part(tier, shown))

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int]) -> str:
        """The object; nothing where the summary would be empty."""
        summary = self.block.remembered(shown)
        return self._object(summary, tokens[Tier.SESSION]) if summary else ""

    def _object(self, summary: str, observed: int) -> str:
        found = {
            "summary": summary,
            "firstKeptEntryId": self.first_kept,
            "tokensBefore": self.tokens_before,
            "details": {"type": _TYPE, "observationTokens": observed},
        }
        return json_line(found) + "\n"


def layout(shape: CompactFormat, figures: CompactHead) -> Callable[[Head], Layout]:
    """The layout of a shape."""
    return lambda head: _layout(shape, figures, replace(head, is_kept=figures.is_kept))


def _layout(shape: CompactFormat, figures: CompactHead, head: Head) -> Layout:
    if shape is CompactFormat.JSON:
        from omcli.pack.layouts.documents import Document  # noqa: PLC0415 - each shape imports only its own layout

        return Document(head=head, about=figures.about)
    if shape is CompactFormat.PI:
        return Pi(block=Text(head=head), first_kept=figures.first_kept, tokens_before=figures.tokens_before)
    if shape.has_tools:
        from omcli.pack.layouts import chat  # noqa: PLC0415

        dialect = chat.ANTHROPIC if shape is CompactFormat.ANTHROPIC else chat.OPENAI_FROM_USER
        return chat.Chat(block=Text(head=head), dialect=dialect)
    return LAYOUTS[PackFormat(shape.value)](head)
