"""Layout of a pack as text or Markdown: rows below their date and time, followed by messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omcli.base.record import field, record, replace
from omcli.memory.notation import escape_tags, full_text, line
from omcli.memory.observation import Kind, Observation
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import CLOSING, Head, PackContent, is_asked, is_said, spoken, uncovered
from omcli.pack.tail import Turn
from omcli.text.clean import TIER_HEADINGS
from omcli.text.instants import minute

_HEADINGS = dict(zip(Tier, TIER_HEADINGS, strict=True))
_MARKDOWN = {
    Tier.CROSS: "## From Other Sessions",
    Tier.SESSION: "## Conversation Memory",
    Tier.TAIL: "## Last Messages",
}


@record
class Text:
    """Layout as text or Markdown, with one line per row.

    The date, and the time if there is room for it, is printed once above successive rows that share it.
    """

    head: Head
    is_markdown: bool = False
    written: dict[int, tuple[Observation, tuple[str, ...], str]] = field(default_factory=dict)
    """Cache of each row's headings and line, by object id, because a row is rendered several times per pack."""

    def headings(self, observation: Observation) -> tuple[str, ...]:
        """Return the row's date, and the time if the budget allows it. With `Head.has_groups`, a request has an empty
        line above its time, and tool events and quoted rows (`is_said`) have no time.

        In Markdown, a section heading precedes the date of this session's rows.
        """
        return self._written(observation)[1]

    def row(self, observation: Observation) -> str:
        return self._written(observation)[2]

    def _written(self, observation: Observation) -> tuple[Observation, tuple[str, ...], str]:
        if id(observation) not in self.written:
            shown = replace(line(observation), text=full_text(observation))
            written = ("- " if self.is_markdown else "") + self.head.notation.render_under(shown)
            self.written[id(observation)] = (observation, self._headings(observation), written)
        return self.written[id(observation)]

    def _headings(self, observation: Observation) -> tuple[str, ...]:
        dated, *time = minute(observation.dated).split(" ")[: 1 + self.head.has_times]
        if self.head.has_groups:
            time = ["", *time] if is_asked(observation) else [] if is_said(observation) else time
        if not self.is_markdown or observation.session is None or observation.session != self.head.session:
            return dated, *time
        return "### Summary" if observation.kind is Kind.REFLECTION else "### Recent", dated, *time

    def turn(self, turn: Turn) -> str:
        """Return a message, its later lines indented. In Markdown, it is a paragraph."""
        return "\n" + escape_tags(spoken(turn, mark="**")) if self.is_markdown else escape_tags(spoken(turn))

    def overhead(self, tier: Tier) -> str:
        """Return the tier's heading, or an empty string if the budget is too small for headings."""
        if not self.head.has_headings:
            return ""
        heading = (_MARKDOWN if self.is_markdown else _HEADINGS)[tier]
        if tier is not Tier.TAIL or self.head.age is None or not self.head.has_preamble:
            return heading
        return f"{heading.removesuffix(':')}, {self.head.age}{'' if self.is_markdown else ':'}"

    def frame(self) -> str:
        """Return a pack without tiers, but with the gaps between them."""
        return "\n".join([self._opening(), "", "", "", CLOSING, ""])

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return the tier below its heading, or an empty string if the tier has no content."""
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else self._outline(shown.rows(tier))
        return "\n".join([*filter(None, [self.overhead(tier)]), *lines]) if lines else ""

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """Return the pack, or an empty string if all tiers are empty."""
        return self.block(self.part(tier, shown) for tier in self.head.order)

    def without_tail(self, shown: PackContent) -> str:
        """Return the pack without the last messages, or an empty string if the other tiers are empty."""
        return self.block(self.part(tier, shown) for tier in self.head.order if tier is not Tier.TAIL)

    def block(self, parts: Iterable[str]) -> str:
        """Join printed tiers to a pack. Return an empty string if all of them are empty."""
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
