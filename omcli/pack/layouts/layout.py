"""The interface of a layout, and functions that the layouts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol

from omcli.base import lazily
from omcli.base.record import record
from omcli.memory.message import Role
from omcli.memory.notation import PREAMBLE, TAG, WORDS, Notation
from omcli.memory.observation import ASKED, TOOL_EVENTS, Observation, Type
from omcli.pack.budget import Budgets, Tier
from omcli.pack.tail import Turn
from omcli.text.clean import AGENT, USER, one_line, printable

if TYPE_CHECKING:
    from omcli.memory.session import FreezePoint

LOOKING_UP = "`om log` lists the notes with ids, `om show ID` prints a note's sources."
"""Sentence added to the preamble if the rows are in a store, where they can be looked up."""

CLOSING = f"</{TAG}>"
_ASKED = ASKED | {Type.CORRECTION}
# Smallest budgets, in tokens, for which these are printed. The preamble takes about 50 tokens, a session's id up to 25,
# and each heading 4, so they are only a small part of the pack.
_PREAMBLE_FROM = 600
_GROUPS_FROM = 3000
_HEADINGS_FROM = 120
_TIMES_FROM = 6000
"""Smallest budget, in tokens, for which times of day are printed, except in XML, which always has them.

A time costs 4 tokens and applies to one or two rows of about 30 tokens, so a smaller budget is better spent on more
rows.
"""


@record
class Head:
    """Data about a pack that layouts print or depend on."""

    session: str | None
    counter: str
    budgets: Budgets
    pending: int
    """Number of messages in the session that are not observed yet."""
    notation: Notation = WORDS
    """Notation of rows in layouts that print them as text."""
    order: tuple[Tier, ...] = tuple(Tier)
    """Printing order of the tiers. In chat messages the tail is always last, and the lists in JSON have a fixed order.
    """
    is_kept: bool = True
    """True if the rows are in a store, where they can be looked up."""
    freeze_point: FreezePoint | None = None
    is_descending: bool = False
    """True if newer rows of the session are printed above older ones."""
    age: str | None = None
    """Time since the last message, such as `3 days ago`. None if there is no message, if it has no time or is not from
    an earlier day, or if the pack is frozen.
    """

    @property
    def preamble(self) -> str:
        """Introduction for the reader of the pack."""
        return f"{PREAMBLE} {LOOKING_UP}" if self.is_kept else PREAMBLE

    @property
    def has_preamble(self) -> bool:
        """True if the budget is large enough for the preamble and the session's id."""
        return self.budgets.total >= _PREAMBLE_FROM

    @property
    def has_headings(self) -> bool:
        """True if the budget is large enough for a heading above each tier."""
        return self.budgets.total >= _HEADINGS_FROM

    @property
    def has_times(self) -> bool:
        """True if the budget is large enough for times of day."""
        return self.budgets.total >= _TIMES_FROM

    @property
    def has_groups(self) -> bool:
        """True if a person's request is printed as a group with its results: with an empty line above, and one time for
        all. These lines take up to 3 % of a pack; a small pack needs the tokens for rows.
        """
        return self.budgets.total >= _GROUPS_FROM and not self.is_descending

    @property
    def opening_tag(self) -> str:
        """First line of a pack. Readers of transcripts recognise a pack by this tag."""
        if self.session is None or not (self.has_preamble and self.is_kept):
            return f"<{TAG}>"
        session = one_line(printable(self.session))
        for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
            session = session.replace(raw, escaped)
        return f'<{TAG} session="{session}">'


@record
class PackContent:
    """The chosen content of a pack, each tier in printing order."""

    cross: Sequence[Observation] = ()
    session: Sequence[Observation] = ()
    tail: Sequence[Turn] = ()

    def rows(self, tier: Tier) -> Sequence[Observation]:
        """Return the rows of a tier; empty for the tail, which has turns instead."""
        return {Tier.CROSS: self.cross, Tier.SESSION: self.session}.get(tier, ())


class Layout(Protocol):
    """A way to print a pack. The budget of a tier applies to its `part`, and the total budget to the `whole`."""

    def headings(self, observation: Observation, /) -> tuple[str, ...]:
        """Return the headings to print above a row. Leading ones that the previous row has too are not repeated."""

    def row(self, observation: Observation) -> str:
        """Return the text that a row adds to its tier, for counting its tokens."""

    def turn(self, turn: Turn) -> str:
        """Return the text that a message adds to the tail, for counting its tokens."""

    def overhead(self, tier: Tier, /) -> str:
        """Return the text that a tier needs besides its rows or messages, for counting its tokens."""

    def frame(self) -> str:
        """Return the text that a pack needs besides its tiers, for counting its tokens."""

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return a tier as printed; empty if it has no content."""

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int], /) -> str:
        """Return the pack as printed, ending with a line break. In most layouts an empty pack is an empty string.
        `tokens` holds the token counts of the tiers.
        """


def is_asked(row: Observation) -> bool:
    """Return True for a request, question or correction of a person."""
    return row.type in _ASKED and not row.text.startswith(AGENT)


def is_said(row: Observation) -> bool:
    """Return True for tool events, and for rows in which rules quote a person or an agent (`User: …`)."""
    return row.type in TOOL_EVENTS or row.text.startswith((AGENT, USER))


def uncovered(above: Sequence[str], headings: Sequence[str]) -> Sequence[str]:
    """Return `headings` without the leading ones that are already printed in `above`."""
    for same, (over, own) in enumerate(zip(above, headings, strict=False)):
        if over != own:
            return headings[same:]
    return headings[len(above) :]


_SPANS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))


def age(at: str | None, now: str) -> str | None:
    """Return the time between two instants in words, or None if the first is unknown or not on an earlier day.

    Calendar days of UTC are counted, as in the headings of rows, so a pack changes at most once a day.
    """
    if at is None or at[:10] >= now[:10]:
        return None
    days = (date.fromisoformat(now[:10]) - date.fromisoformat(at[:10])).days
    length, unit = next(span for span in _SPANS if span[0] <= days)
    count = days // length
    return f"{count} {unit}{'' if count == 1 else 's'} ago"


def outcome(turn: Turn) -> str | None:
    """Return a result's outcome: `error`, `exit 2`, or `error, exit 2`; None if it shows no failure."""
    said = turn.message
    words = ["error"] if said.failed else []
    if said.exit_code:
        words.append(f"exit {said.exit_code}")
    return ", ".join(words) or None


_NEXT_LINE = lazily(r"\n(?=[^\n])")
_INDENTED = "\n\t"
"""Separator of a message's lines. The tab costs one character and keeps Markdown from seeing a new block."""


def spoken(turn: Turn, *, mark: str = "") -> str:
    """Return a message as text, such as `user: text`, `[toolCall name(arguments)]` or `[toolResult name (error)]
    output`.

    All lines but the first are indented, so that nothing in a message looks like another message, a heading or a row.
    `mark` is printed before and after the speaker, such as `**` in Markdown.
    """
    written = _spoken(turn, mark)
    return _NEXT_LINE.sub(_INDENTED, written) if "\n" in written else written


def _spoken(turn: Turn, mark: str) -> str:
    said = turn.message
    tool = one_line(printable(said.tool or "tool"))
    if said.role is Role.CALL:
        return f"[toolCall {tool}({turn.text})]"
    if said.role is Role.RESULT:
        ended = outcome(turn)
        return f"[toolResult {tool}{f' ({ended})' if ended else ''}] {turn.text}"
    if said.role is Role.EVENT:
        return f"[{one_line(printable(said.kind or 'event'))}] {turn.text}"
    speaker = f"{said.role} {one_line(printable(said.name))}" if said.name else str(said.role)
    return f"{mark}{speaker}:{mark} {turn.text}"
