"""Layouts that print a pack as a JSON or XML document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from omcli.base.record import record
from omcli.memory.message import message_fields
from omcli.memory.notation import single_line
from omcli.memory.observation import Observation, handle, row
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import CLOSING, Head, PackContent, outcome
from omcli.pack.tail import Turn
from omcli.text.clean import json_line, one_line, printable
from omcli.text.instants import minute

_KEYS = {Tier.CROSS: "cross", Tier.SESSION: "observations", Tier.TAIL: "messages"}


def _nothing(_shown: PackContent) -> Mapping[str, object]:
    return {}


@record
class Document:
    """Layout as a JSON object, printed even if all of its lists are empty.

    It has the form `{"schema": 1, …, "tokens": {…}, "cross": […], "observations": […], "messages": […]}`. `tokens`
    counts each list as printed, and their total. In a frozen pack, `frozen_at` is the instant of the last row, or null
    if the session had no observations.
    """

    head: Head
    about: Callable[[PackContent], Mapping[str, object]] = _nothing
    """Function that returns additional keys for the given content."""

    def headings(self, _observation: Observation) -> tuple[str, ...]:
        """Return no headings, because every row contains its date."""
        return ()

    def row(self, observation: Observation) -> str:
        """Return the JSON object of a row, followed by a comma."""
        return json_line(row(observation)) + ","

    def turn(self, turn: Turn) -> str:
        """Return the JSON object of a message, followed by a comma."""
        return json_line(message_fields(turn.kept, text=None if turn.is_whole else turn.text)) + ","

    def overhead(self, _tier: Tier) -> str:
        """Return an empty string, because the frame already contains the key of each tier."""
        return ""

    def frame(self) -> str:
        """Return the document with empty lists, and with the longest numbers that can occur."""
        return self.whole(PackContent(), dict.fromkeys(Tier, max(0, self.head.budgets.total))).replace("[]", "[\n\n]")

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return a tier's list without its brackets."""
        rows = [self.row(observation) for observation in shown.rows(tier)]
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else rows
        return "\n".join(lines).removesuffix(",")

    def whole(self, shown: PackContent, tokens: Mapping[Tier, int]) -> str:
        """Return the JSON document with all tiers and their token counts."""
        about = {
            "schema": 1,
            **({} if self.head.session is None else {"session": self.head.session}),
            "counter": self.head.counter,
            "budget": self.head.budgets.total,
            "tokens": {"total": sum(tokens.values()), **{str(tier): tokens[tier] for tier in Tier}},
            "pending": self.head.pending,
            **({} if self.head.freeze_point is None else {"frozen_at": self.head.freeze_point.at}),
            **self.about(shown),
        }
        lists = [f'"{key}":[{self._lines(tier, shown)}]' for tier, key in _KEYS.items()]
        return ",\n".join([json_line(about).removesuffix("}"), *lists]) + "}\n"

    def _lines(self, tier: Tier, shown: PackContent) -> str:
        part = self.part(tier, shown)
        return f"\n{part}\n" if part else ""


_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@record
class Xml:
    """Layout as a well-formed XML document.

    The text of a row or message is the content of its element, and all its other fields are attributes.
    """

    head: Head

    def headings(self, _observation: Observation) -> tuple[str, ...]:
        """Return no headings, because every row contains its date."""
        return ()

    def row(self, observation: Observation) -> str:
        """Return a `row` element on one line. Its `id` is the row's handle."""
        attributes = {
            "id": handle(observation.id),
            "at": minute(observation.dated),
            "priority": observation.priority,
            "status": observation.status,
            "type": observation.type,
        }
        return _tag("row", attributes, single_line(observation.text))

    def turn(self, turn: Turn) -> str:
        """Return a `message` element. Line breaks in its text are kept."""
        said = turn.message
        attributes = {
            "role": said.role,
            "aside": said.kind,
            "name": said.name,
            "tool": said.tool,
            "call": said.call_id,
            "outcome": outcome(turn),
        }
        return _tag("message", attributes, turn.text)

    def overhead(self, tier: Tier) -> str:
        return f"<{tier}>\n</{tier}>"

    def frame(self) -> str:
        """Return the document without its tiers."""
        return "\n".join([*self._opening(), CLOSING, ""])

    def part(self, tier: Tier, shown: PackContent) -> str:
        """Return the tier's element, or an empty string if the tier has no content."""
        rows = [self.row(observation) for observation in shown.rows(tier)]
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else rows
        return "\n".join([f"<{tier}>", *lines, f"</{tier}>"]) if lines else ""

    def whole(self, shown: PackContent, _tokens: Mapping[Tier, int]) -> str:
        """Return the document, or an empty string if all tiers are empty."""
        parts = [part for tier in self.head.order if (part := self.part(tier, shown))]
        return "\n".join([*self._opening(), *parts, CLOSING, ""]) if parts else ""

    def _opening(self) -> list[str]:
        opening = _NOT_XML.sub("\ufffd", self.head.opening_tag)
        return [opening, _tag("about", {}, self.head.preamble)] if self.head.has_preamble else [opening]


def _tag(name: str, attributes: Mapping[str, str | None], text: str) -> str:
    given = "".join(
        f' {key}="{_attribute(printable(one_line(value)))}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}>{_escape(text)}</{name}>"


def _escape(text: str) -> str:
    """Escape text for an element, using as few escapes as XML allows. Characters that XML forbids become U+FFFD."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
    return _NOT_XML.sub("\ufffd", text).replace("\r", "&#13;")


def _attribute(text: str) -> str:
    return _escape(text).replace('"', "&quot;")
