"""A pack as chat messages that an agent can go on from: what is remembered as first message, then the last turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omcli.base.record import record
from omcli.memory.message import Role
from omcli.memory.observation import Observation
from omcli.memory.row_json import json_line
from omcli.pack.layouts.dialects import OPENAI, Dialect, Entry
from omcli.pack.layouts.layout import Shown
from omcli.pack.layouts.text import Text
from omcli.pack.tail import Turn
from omcli.pack.tiers import Tier


@record
class Chat:
    """A JSON list of messages, one per line."""

    block: Text
    """How the rows are written in the first message."""
    dialect: Dialect = OPENAI

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """As in text."""
        return self.block.headings(observation)

    def row(self, observation: Observation) -> str:
        """A row's line, as it stands in a JSON string."""
        return quoted(self.block.row(observation) + "\n")

    def turn(self, turn: Turn) -> str:
        """A message's object; a call's with the message around it."""
        if turn.message.role is Role.RESULT:
            return json_line(self.dialect.result(turn)) + ","
        return _lines(self.dialect.messages([turn])) + ","

    def furniture(self, tier: Tier) -> str:
        """A tier's heading in the first message."""
        return "" if tier is Tier.TAIL else quoted(self.block.furniture(tier) + "\n")

    def frame(self) -> str:
        """A list with an empty block."""
        return f"[\n{self._opening(self.block.frame())},\n\n]\n"

    def part(self, tier: Tier, shown: Shown) -> str:
        """The tail's objects, or what another tier adds to the first message."""
        if tier is Tier.TAIL:
            return _lines(self.dialect.messages(shown.tail))
        return quoted(self.block.part(tier, shown))

    def whole(self, shown: Shown, _tokens: Mapping[Tier, int]) -> str:
        """The list, also when it is empty."""
        block = self.block.remembered(shown)
        if shown.tail and not block:
            block = self.block.frame()  # by which the pack is known when it is read again
        entries = [entry for entry in (block and self._opening(block), self.part(Tier.TAIL, shown)) if entry]
        return "\n".join(["[", *filter(None, [",\n".join(entries)]), "]", ""])

    def _opening(self, block: str) -> str:
        return json_line(self.dialect.opening(block))


def quoted(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return json_line(text)[1:-1]


def _lines(entries: Sequence[Entry]) -> str:
    return ",\n".join(json_line(entry) for entry in entries)
