"""What every layout of a pack has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record
from omcli.memory.message import Role
from omcli.memory.notation import PREAMBLE, TAG, WORDS, Notation
from omcli.memory.observation import Observation
from omcli.pack.budget import Budgets, Tier
from omcli.pack.tail import Turn
from omcli.text.clean import one_line, printable

if TYPE_CHECKING:
    from omcli.memory.session import FreezePoint

LOOKING_UP = "`om log` lists the notes with ids, `om show ID` prints a note's sources."
"""What the reader is told besides, where the rows are in a store."""

CLOSING = f"</{TAG}>"
# The preamble takes about 50 tokens, a session's id up to 25, headings 4 each: a small part of the pack they open.
_PREAMBLE_FROM = 600
_HEADINGS_FROM = 120
_TIMES_FROM = 6000
"""A time of day costs 4 tokens and stands above one or two rows of 30; in a small pack more rows say more."""


@record
class Head:
    """What a pack says about itself."""

    session: str | None
    counter: str
    budgets: Budgets
    pending: int
    """Messages of the session that no observation covers yet."""
    notation: Notation = WORDS
    """How rows are written, where their priority and status have no place of their own."""
    order: tuple[Tier, ...] = tuple(Tier)
    """The tiers as they are printed; messages that are no text come last in any case."""
    is_kept: bool = True
    """Whether its rows are in a store, where they can be looked up."""
    freeze_point: FreezePoint | None = None
    """Of a frozen pack."""

    @property
    def preamble(self) -> str:
        """What the reader is told."""
        return f"{PREAMBLE} {LOOKING_UP}" if self.is_kept else PREAMBLE

    @property
    def has_preamble(self) -> bool:
        """Whether the budget allows for the preamble and the session's id."""
        return self.budgets.total >= _PREAMBLE_FROM

    @property
    def has_headings(self) -> bool:
        """Whether the budget allows for a heading over each tier."""
        return self.budgets.total >= _HEADINGS_FROM

    @property
    def has_times(self) -> bool:
        """Whether the budget allows for the time of day over rows, and not the day alone."""
        return self.budgets.total >= _TIMES_FROM

    @property
    def opening_tag(self) -> str:
        """The line a pack begins with, by which it is known when it is read again."""
        if self.session is None or not (self.has_preamble and self.is_kept):
            return f"<{TAG}>"
        session = one_line(printable(self.session))
        for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
            session = session.replace(raw, escaped)
        return f'<{TAG} session="{session}">'


@record
class PackContent:
    """What was chosen for a pack, each tier in printing order."""

    cross: Sequence[Observation] = ()
    session: Sequence[Observation] = ()
    tail: Sequence[Turn] = ()

    def rows(self, tier: Tier) -> Sequence[Observation]:
        """The rows of a tier; the tail has turns instead."""
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session}.get(tier, ())


class Layout(Protocol):
    """One way to print a pack. A tier's budget is for its `part`, the total for the `whole`."""

    def headings(self, observation: Observation, /) -> tuple[str, ...]:
        """The lines a row stands under; those that it shares with the row above are not printed again."""

    def row(self, observation: Observation) -> str:
        """A row as it stands in its part: what it costs."""

    def turn(self, turn: Turn) -> str:
        """A message as it stands in its part: what it costs."""

    def overhead(self, tier: Tier, /) -> str:
        """What a tier costs before its first row."""

    def frame(self) -> str:
        """What a pack costs before its first tier."""

    def part(self, tier: Tier, shown: PackContent) -> str:
        """A tier as printed; empty where it holds nothing."""

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int], /) -> str:
        """The pack as printed, with its line end. `tokens` are those of the parts."""


def uncovered(above: Sequence[str], headings: Sequence[str]) -> Sequence[str]:
    """The headings that have to be printed under a line that stands under `above`."""
    for same, (over, own) in enumerate(zip(above, headings, strict=False)):
        if over != own:
            return headings[same:]
    return headings[len(above) :]


def outcome(turn: Turn) -> str | None:
    """How a result ended where that is worth a word: `error`, `exit 2`, or both."""
    said = turn.message
    words = ["error"] if said.failed else []
    if said.exit_code:
        words.append(f"exit {said.exit_code}")
    return ", ".join(words) or None


def spoken(turn: Turn, *, mark: str = "") -> str:
    """A message in words: `user: text`, `[toolCall name(arguments)]`, `[toolResult name (error)]` and its output."""
    said = turn.message
    tool = one_line(printable(said.tool or "tool"))
    if said.role is Role.CALL:
        return f"[toolCall {tool}({turn.text})]"
    if said.role is Role.RESULT:
        ended = outcome(turn)
        return f"[toolResult {tool}{f' ({ended})' if ended else ''}] {turn.text}"
    if said.role is Role.EVENT:
        return f"[{said.kind or 'event'}] {turn.text}"
    speaker = f"{said.role} {one_line(printable(said.name))}" if said.name else str(said.role)
    return f"{mark}{speaker}:{mark} {turn.text}"
