"""Layout of a pack as an XML document."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omcli.base.record import record
from omcli.memory.notation import full_text, reference
from omcli.memory.observation import UNVERIFIED, Observation, handle
from omcli.pack.budget import Tier
from omcli.pack.layouts.layout import CLOSING, Head, PackContent, outcome
from omcli.pack.tail import Turn
from omcli.text.clean import one_line, printable, single_line
from omcli.text.instants import minute

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@record
class Xml:
    """Layout as a well-formed XML document.

    The text of a row or message is the content of its element, and its other printed fields are attributes.
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
            "unverified": "true" if UNVERIFIED in observation.tags else None,
            "refers_to": reference(observation),
        }
        return _tag("row", attributes, single_line(full_text(observation, is_dated=False)))

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
