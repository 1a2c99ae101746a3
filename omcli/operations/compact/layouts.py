"""Output formats of a compacted transcript: the formats of a pack, and pi's compaction entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from omcli.base.record import field, record, replace
from omcli.exchange import pi
from omcli.exchange.groups import GroupRow, parents
from omcli.memory.message import TokenCounter
from omcli.memory.notation import PrintedRow, full_text, line
from omcli.memory.observation import UNDER, Observation
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
    def can_resume(self) -> bool:
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
    """Id, in the host's transcript, of the first message that remains there; None if none does."""
    tokens_before: int = 0
    is_kept: bool = True
    """True if the rows are in a store, where they can be looked up."""


_TYPE = "observational-memory"


@record
class Pi:
    """Prints a pack as pi's compaction entry. The last messages are left out because they remain in pi's session.

    The entry has the form `{"summary": …, "firstKeptEntryId": …, "tokensBefore": …, "details": {"type": …,
    "observationTokens": …}}`. The summary contains only memory, in pi's own form (`omcli.exchange.pi`).
    """

    head: Head
    first_kept: str | None
    """Id of the first entry that pi keeps; None if it keeps none."""
    tokens_before: int
    """Number of tokens in the transcript before compaction."""
    count: Callable[[str], int]
    """Function that counts tokens."""
    written: dict[int, tuple[Observation, PrintedRow, str]] = field(default_factory=dict)
    """Cache of each row's parts and line, by object id, because a row is rendered several times per summary."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        return (quoted(f"\n{pi.header(self._written(observation)[1])}"),)

    def row(self, observation: Observation) -> str:
        """Return a row's line, escaped for a JSON string."""
        return quoted((pi.INDENT if observation.metadata.get(UNDER) else "") + self._written(observation)[2])

    def turn(self, _turn: Turn) -> str:
        """Return an empty string, because messages remain in pi's session."""
        return ""

    def overhead(self, _tier: Tier) -> str:
        """Return an empty string, because tiers have no headings."""
        return ""

    def frame(self) -> str:
        """Return the object with an empty summary, and with the longest numbers that can occur."""
        return self._object("", max(0, self.head.budgets.total))

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return the rows of a tier. The tail has none."""
        return quoted(self._summary(shown.rows(tier)))

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """Return the object, or an empty string if the summary would be empty."""
        summary = self._summary([*shown.cross, *shown.session])
        return self._object(summary, self.count(summary)) if summary else ""

    def _written(self, observation: Observation) -> tuple[Observation, PrintedRow, str]:
        if id(observation) not in self.written:
            said = replace(line(observation), text=full_text(observation))
            self.written[id(observation)] = (observation, said, pi.row(said))
        return self.written[id(observation)]

    def _summary(self, rows: Sequence[Observation]) -> str:
        shown = [self._written(row)[1] for row in rows]
        lines = {id(said): self._written(row)[2] for row, said in zip(rows, shown, strict=True)}
        entries = tuple(GroupRow(line=said, under=above) for said, above in zip(shown, parents(rows), strict=True))
        return "".join(pi.days(pi.nested(entries), write=lambda said: lines[id(said)]))

    def _object(self, summary: str, observed: int) -> str:
        found = {
            "summary": summary,
            "firstKeptEntryId": self.first_kept,
            "tokensBefore": self.tokens_before,
            "details": {"type": _TYPE, "observationTokens": observed},
        }
        return json_line(found) + "\n"


def layout(shape: CompactFormat, figures: CompactHead, counter: TokenCounter) -> Callable[[Head], Layout]:
    """Return a function that builds the layout of a compacted transcript."""
    return lambda head: _layout(shape, figures, replace(head, is_kept=figures.is_kept), counter)


def _layout(shape: CompactFormat, figures: CompactHead, head: Head, counter: TokenCounter) -> Layout:
    if shape is CompactFormat.PI:
        return Pi(head=head, first_kept=figures.first_kept, tokens_before=figures.tokens_before, count=counter.text)
    if shape.has_calls:
        from omcli.pack.layouts import chat  # noqa: PLC0415 - each shape imports only its own layout

        dialect = chat.ANTHROPIC if shape is CompactFormat.ANTHROPIC else chat.OPENAI_FROM_USER
        return chat.Chat(block=Text(head=head), dialect=dialect)
    return LAYOUTS[PackFormat(shape.value)](head)
