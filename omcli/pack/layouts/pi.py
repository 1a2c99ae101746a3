"""A pack as what pi asks of a compaction: a summary, and where the messages begin that stay."""

from __future__ import annotations

from collections.abc import Mapping

from omcli.base.record import record
from omcli.memory.observation import Observation
from omcli.memory.row_json import json_line
from omcli.pack.layouts.chat import quoted
from omcli.pack.layouts.layout import Shown
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn
from omcli.pack.tiers import Tier

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

    def furniture(self, tier: Tier) -> str:
        """A tier's heading in the summary."""
        return "" if tier is Tier.TAIL else quoted(self.block.furniture(tier) + "\n")

    def frame(self) -> str:
        """The object with an empty block, its numbers as long as they may get."""
        return self._object(self.block.frame(), max(0, self.block.head.budgets.total))

    def part(self, tier: Tier, shown: Shown) -> str:
        """What a tier adds to the summary."""
        return "" if tier is Tier.TAIL else quoted(self.block.part(tier, shown))

    def whole(self, shown: Shown, tokens: Mapping[Tier, int]) -> str:
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
