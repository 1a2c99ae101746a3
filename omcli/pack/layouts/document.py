"""A pack as one JSON document, with a line for every row and every message."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omcli.base.record import record
from omcli.memory.observation import Observation
from omcli.memory.row_json import json_line, message, row
from omcli.pack.layouts.layout import Head, Shown
from omcli.pack.tail import Turn
from omcli.pack.tiers import Tier

_KEYS = {Tier.CROSS: "cross", Tier.SESSION: "observations", Tier.TAIL: "messages"}


def _nothing_more(_shown: Shown) -> Mapping[str, object]:
    """A pack says no more of itself."""
    return {}


@record
class Document:
    """`{"schema": 1, …, "tokens": {…}, "cross": […], "observations": […], "messages": […]}`, also when all are empty.

    `tokens` counts the three lists as printed, each and together. A frozen pack says besides `frozen_at` which moment
    its rows are of; null where nothing was observed in the session yet.
    """

    head: Head
    about: Callable[[Shown], Mapping[str, object]] = _nothing_more
    """What more it says of itself, by what is shown."""

    def headings(self, _observation: Observation) -> tuple[str, ...]:
        """None: every row carries its date."""
        return ()

    def row(self, observation: Observation) -> str:
        """A row's object."""
        return json_line(row(observation)) + ","

    def turn(self, turn: Turn) -> str:
        """A message's object."""
        return json_line(message(turn.kept, text=None if turn.is_whole else turn.text)) + ","

    def furniture(self, _tier: Tier) -> str:
        """Nothing: the keys are there without rows, too."""
        return ""

    def frame(self) -> str:
        """The document without rows, its numbers as long as they may get."""
        return self.whole(Shown(), dict.fromkeys(Tier, max(0, self.head.budgets.total))).replace("[]", "[\n\n]")

    def part(self, tier: Tier, shown: Shown) -> str:
        """A tier's list without its brackets."""
        rows = [self.row(observation) for observation in shown.rows(tier)]
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else rows
        return "\n".join(lines).removesuffix(",")

    def whole(self, shown: Shown, tokens: Mapping[Tier, int]) -> str:
        """The document."""
        about = {
            "schema": 1,
            **({} if self.head.session is None else {"session": self.head.session}),
            "counter": self.head.counter,
            "budget": self.head.budgets.total,
            "tokens": {"total": sum(tokens.values()), **{str(tier): tokens[tier] for tier in Tier}},
            "pending": self.head.pending,
            **({} if self.head.horizon is None else {"frozen_at": self.head.horizon.at}),
            **self.about(shown),
        }
        lists = [f'"{key}":[{self._lines(tier, shown)}]' for tier, key in _KEYS.items()]
        return ",\n".join([json_line(about).removesuffix("}"), *lists]) + "}\n"

    def _lines(self, tier: Tier, shown: Shown) -> str:
        part = self.part(tier, shown)
        return f"\n{part}\n" if part else ""
