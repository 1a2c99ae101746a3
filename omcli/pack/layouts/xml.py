"""A pack as a well-formed XML document: an element per tier, per row and per message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base.record import record
from omcli.memory.notation import as_line
from omcli.memory.observation import Observation, handle
from omcli.pack.layouts.layout import CLOSING, Head, Shown, outcome
from omcli.pack.tail import Turn
from omcli.pack.tiers import Tier
from omcli.text.clean import one_line, printable
from omcli.text.dates.instants import minute

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@record
class Xml:
    """Text is the elements' content, everything else their attributes."""

    head: Head

    def headings(self, _observation: Observation) -> tuple[str, ...]:
        """None: every row carries its date."""
        return ()

    def row(self, observation: Observation) -> str:
        """A `row` element on one line; its `id` is the handle that `om show` takes."""
        attributes = {
            "id": handle(observation.id),
            "at": minute(observation.dated),
            "priority": observation.priority,
            "status": observation.status,
            "type": observation.type,
        }
        return _element("row", attributes, as_line(observation.text))

    def turn(self, turn: Turn) -> str:
        """A `message` element, its text with the line breaks it has."""
        said = turn.message
        attributes = {
            "role": said.role,
            "aside": said.aside,
            "name": said.name,
            "tool": said.tool,
            "call": said.call_id,
            "outcome": outcome(turn),
        }
        return _element("message", attributes, turn.text)

    def furniture(self, tier: Tier) -> str:
        """A tier's empty element."""
        return f"<{tier}>\n</{tier}>"

    def frame(self) -> str:
        """The document without its tiers."""
        return "\n".join([*self._opening(), CLOSING, ""])

    def part(self, tier: Tier, shown: Shown) -> str:
        """A tier's element."""
        rows = [self.row(observation) for observation in shown.rows(tier)]
        lines = [self.turn(turn) for turn in shown.tail] if tier is Tier.TAIL else rows
        return "\n".join([f"<{tier}>", *lines, f"</{tier}>"]) if lines else ""

    def whole(self, shown: Shown, _tokens: Mapping[Tier, int]) -> str:
        """The document; nothing where no tier holds anything."""
        parts = [part for tier in self.head.order if (part := self.part(tier, shown))]
        return "\n".join([*self._opening(), *parts, CLOSING, ""]) if parts else ""

    def _opening(self) -> list[str]:
        opening = _NOT_XML.sub("\ufffd", self.head.opening_tag)
        return [opening, _element("about", {}, self.head.preamble)] if self.head.has_preamble else [opening]


def _element(name: str, attributes: Mapping[str, str | None], text: str) -> str:
    given = "".join(
        f' {key}="{_attribute(printable(one_line(value)))}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}>{_escaped(text)}</{name}>"


def _escaped(text: str) -> str:
    """Text as content, with no more escapes than XML asks for; a character that it can't write becomes U+FFFD."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
    return _NOT_XML.sub("\ufffd", text).replace("\r", "&#13;")


def _attribute(text: str) -> str:
    return _escaped(text).replace('"', "&quot;")
