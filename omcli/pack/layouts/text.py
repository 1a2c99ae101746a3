"""A pack as text or Markdown: rows below their day and minute, then messages verbatim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omcli.base.record import field, record
from omcli.memory.notation import escape_tags, line
from omcli.memory.observation import Kind, Observation
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import CLOSING, Head, PackContent, spoken, uncovered
from omcli.pack.tail import Turn
from omcli.text.instants import minute

_HEADINGS = {Tier.CROSS: "From other sessions:", Tier.SESSION: "This session:", Tier.TAIL: "Last messages:"}
_MARKDOWN = {
    Tier.CROSS: "## From Other Sessions",
    Tier.SESSION: "## Conversation Memory",
    Tier.TAIL: "## Last Messages",
}


@record
class Text:
    """One line per row. Day and minute are printed once above consecutive rows."""

    head: Head
    is_markdown: bool = False
    written: dict[int, tuple[Observation, tuple[str, ...], str]] = field(default_factory=dict)
    """Headings and lines of rows by object id: each is priced, then printed with its tier, then with the whole."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """Return the row's date, with the time if there is room; in Markdown, for rows of this session, also the
        section."""
        return self._written(observation)[1]

    def row(self, observation: Observation) -> str:
        """Return a row's line."""
        return self._written(observation)[2]

    def _written(self, observation: Observation) -> tuple[Observation, tuple[str, ...], str]:
        if id(observation) not in self.written:
            written = ("- " if self.is_markdown else "") + self.head.notation.render_under(line(observation))
            self.written[id(observation)] = (observation, self._headings(observation), written)
        return self.written[id(observation)]

    def _headings(self, observation: Observation) -> tuple[str, ...]:
        dated = minute(observation.dated).split(" ") if self.head.has_times else [observation.dated[:10]]
        if not self.is_markdown or observation.session is None or observation.session != self.head.session:
            return tuple(dated)
        return ("### Summary" if observation.kind is Kind.REFLECTION else "### Recent", *dated)

    def turn(self, turn: Turn) -> str:
        """Return a message's lines."""
        return escape_tags(spoken(turn, mark="**" if self.is_markdown else ""))

    def overhead(self, tier: Tier) -> str:
        """Return a tier's heading."""
        if not self.head.has_headings:
            return ""
        return (_MARKDOWN if self.is_markdown else _HEADINGS)[tier]

    def frame(self) -> str:
        """Return an empty block, with the gaps between its parts."""
        return "\n".join([self._opening(), "", "", "", CLOSING, ""])

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return a tier below its heading."""
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else self._outline(shown.rows(tier))
        return "\n".join([*filter(None, [self.overhead(tier)]), *lines]) if lines else ""

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """Return the block; nothing if it would be empty."""
        return self.block(self.part(tier, shown) for tier in self.head.order)

    def without_tail(self, shown: PackContent) -> str:
        """Return the block without the last messages."""
        return self.block(self.part(tier, shown) for tier in self.head.order if tier is not Tier.TAIL)

    def block(self, parts: Iterable[str]) -> str:
        """Join parts to a block; nothing if all are empty."""
        held = [part for part in parts if part]
        gap = "\n\n" if self.head.has_headings else "\n"
        return "\n".join([self._opening(), gap.join(held), CLOSING, ""]) if held else ""

    def _opening(self) -> str:
        return f"{self.head.opening_tag}\n{self.head.preamble}\n" if self.head.has_preamble else self.head.opening_tag

    def _outline(self, rows: Iterable[Observation]) -> list[str]:
        lines: list[str] = []
        above: Sequence[str] = ()
        for observation in rows:
            _, headings, written = self._written(observation)
            lines += [*uncovered(above, headings), written]
            above = headings
        return lines
