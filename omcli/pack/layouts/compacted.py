"""Output formats of a compacted transcript: the formats of a pack, and pi's compaction entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from omcli.base.record import record, replace
from omcli.memory.observation import Observation
from omcli.pack.budget import Tier
from omcli.pack.layouts import LAYOUTS, PackFormat
from omcli.pack.layouts.layout import Head, Layout, PackContent
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn
from omcli.text.clean import json_line, quoted


class CompactFormat(StrEnum):
    """Output format of a compacted transcript."""

    TEXT = "text"
    MARKDOWN = "markdown"
    XML = "xml"
    JSON = "json"
    MESSAGES = "messages"
    """Chat messages for OpenAI's API."""
    ANTHROPIC = "anthropic"
    """Messages for Anthropic's API."""
    PI = "pi"

    @property
    def has_calls(self) -> bool:
        """True if the last messages include tool calls and results."""
        return self in (CompactFormat.MESSAGES, CompactFormat.ANTHROPIC)

    @property
    def is_gone_on_from(self) -> bool:
        """True if an agent continues from the output. It must then contain a single branch of the conversation."""
        return self.has_calls or self is CompactFormat.PI

    @property
    def has_tail(self) -> bool:
        """True if the output includes the last messages. With pi, they remain in pi's own session instead."""
        return self is not CompactFormat.PI


@record
class CompactHead:
    """Data about a compacted transcript that some layouts print."""

    first_kept: str | None = None
    """Printed id of the first message that remains in place; None if none does."""
    tokens_before: int = 0
    is_kept: bool = True
    """True if the rows are in a store, where they can be looked up."""


_TYPE = "observational-memory"


@record
class Pi:
    """Layout as pi's compaction entry. The last messages are not printed because they remain in pi's session.

    The entry has the form `{"summary": …, "firstKeptEntryId": …, "tokensBefore": …, "details": {"type": …,
    "observationTokens": …}}`.
    """

    block: Text
    """Layout of the memory in the summary."""
    first_kept: str | None
    """Id of the first entry that pi keeps; None if it keeps none."""
    tokens_before: int
    """Number of tokens in the transcript before compaction."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """Return a row's line, escaped for a JSON string."""
        return quoted(self.block.row(observation) + "\n")

    def turn(self, _turn: Turn) -> str:
        """Return an empty string, because messages remain in pi's session."""
        return ""

    def overhead(self, tier: Tier) -> str:
        """Return a tier's heading in the summary. The tail has none."""
        return "" if tier is Tier.TAIL else quoted(self.block.overhead(tier) + "\n")

    def frame(self) -> str:
        """Return the object with an empty pack as its summary, and with the longest numbers that can occur."""
        return self._object(self.block.frame(), max(0, self.block.head.budgets.total))

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return a tier's part of the summary. The tail has none."""
        return "" if tier is Tier.TAIL else quoted(self.block.part(tier, shown))

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int]) -> str:
        """Return the object, or an empty string if the summary would be empty."""
        summary = self.block.without_tail(shown)
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
    """Return a function that builds the layout of a compacted transcript."""
    return lambda head: _layout(shape, figures, replace(head, is_kept=figures.is_kept))


def _layout(shape: CompactFormat, figures: CompactHead, head: Head) -> Layout:
    if shape is CompactFormat.PI:
        return Pi(block=Text(head=head), first_kept=figures.first_kept, tokens_before=figures.tokens_before)
    if shape.has_calls:
        from omcli.pack.layouts import chat  # noqa: PLC0415 - each shape imports only its own layout

        dialect = chat.ANTHROPIC if shape is CompactFormat.ANTHROPIC else chat.OPENAI_FROM_USER
        return chat.Chat(block=Text(head=head), dialect=dialect)
    return LAYOUTS[PackFormat(shape.value)](head)
