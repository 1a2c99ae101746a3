"""The port of a layout, and the parts shared by all layouts."""

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
"""Told to the reader if the rows are in a store."""

CLOSING = f"</{TAG}>"
# The preamble takes about 50 tokens, a session's id up to 25, headings 4 each: a small part of the pack they open.
_PREAMBLE_FROM = 600
_HEADINGS_FROM = 120
_TIMES_FROM = 6000
"""A time of day costs 4 tokens and heads one or two rows of 30; in a small pack more rows say more."""


@record
class Head:
    """Data about a pack."""

    session: str | None
    counter: str
    budgets: Budgets
    pending: int
    """Number of messages in the session that no observation covers yet."""
    notation: Notation = WORDS
    """Notation of rows, unless the format has fields for priority and status."""
    order: tuple[Tier, ...] = tuple(Tier)
    """Order of the tiers in print; messages in a format other than text always come last."""
    is_kept: bool = True
    """True if its rows are in a store, to be looked up."""
    freeze_point: FreezePoint | None = None
    """Only for a frozen pack."""

    @property
    def preamble(self) -> str:
        """The words for the reader."""
        return f"{PREAMBLE} {LOOKING_UP}" if self.is_kept else PREAMBLE

    @property
    def has_preamble(self) -> bool:
        """True if the budget allows the preamble and the session's id."""
        return self.budgets.total >= _PREAMBLE_FROM

    @property
    def has_headings(self) -> bool:
        """True if the budget allows a heading above each tier."""
        return self.budgets.total >= _HEADINGS_FROM

    @property
    def has_times(self) -> bool:
        """True if the budget allows the time of day above rows, not just the date."""
        return self.budgets.total >= _TIMES_FROM

    @property
    def opening_tag(self) -> str:
        """First line of a pack, which identifies it when it is read again."""
        if self.session is None or not (self.has_preamble and self.is_kept):
            return f"<{TAG}>"
        session = one_line(printable(self.session))
        for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
            session = session.replace(raw, escaped)
        return f'<{TAG} session="{session}">'


@record
class PackContent:
    """Content chosen for a pack, each tier in printing order."""

    cross: Sequence[Observation] = ()
    session: Sequence[Observation] = ()
    tail: Sequence[Turn] = ()

    def rows(self, tier: Tier) -> Sequence[Observation]:
        """Return the rows of a tier; the tail has turns instead."""
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session}.get(tier, ())


class Layout(Protocol):
    """A way to print a pack. A tier's budget applies to its `part`, the total to the `whole`."""

    def headings(self, observation: Observation, /) -> tuple[str, ...]:
        """Return the lines above a row; those shared with the row before are not repeated."""

    def row(self, observation: Observation) -> str:
        """Return a row as printed in its part, to be counted."""

    def turn(self, turn: Turn) -> str:
        """Return a message as printed in its part, to be counted."""

    def overhead(self, tier: Tier, /) -> str:
        """Return the text of a tier before its first row, to be counted."""

    def frame(self) -> str:
        """Return the text of a pack before its first tier, to be counted."""

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return a tier as printed; empty if it holds nothing."""

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int], /) -> str:
        """Return the pack as printed, with its line end. `tokens` are those of the parts."""


def uncovered(above: Sequence[str], headings: Sequence[str]) -> Sequence[str]:
    """Return the headings to print below a line with the headings `above`."""
    for same, (over, own) in enumerate(zip(above, headings, strict=False)):
        if over != own:
            return headings[same:]
    return headings[len(above) :]


def outcome(turn: Turn) -> str | None:
    """Return the outcome of a result unless it simply succeeded: `error`, `exit 2`, or both."""
    said = turn.message
    words = ["error"] if said.failed else []
    if said.exit_code:
        words.append(f"exit {said.exit_code}")
    return ", ".join(words) or None


def spoken(turn: Turn, *, mark: str = "") -> str:
    """Return a message in words: `user: text`, `[toolCall name(arguments)]`, `[toolResult name (error)]` and its
    output."""
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
