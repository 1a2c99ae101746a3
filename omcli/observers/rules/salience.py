"""Which sentences of a text say the most: those that name things, and those that find, decide or report."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.anchors import anchors
from omcli.observers.rules import cues
from omcli.observers.rules.sentences import Segment


def told_most(parts: Sequence[Segment], limit: int) -> str:
    """The telling sentences of a report, whole and in their order, within `limit` characters; items have dots between.

    A sentence weighs by the names in it (three at most), by saying something of its own kind (`cues.agent_type`) and by
    coming first; long ones weigh less. Headings and questions don't report.
    """
    weights = []
    under = ""
    for index, part in enumerate(parts):
        under = part.text if part.is_heading else under
        if part.is_heading or cues.is_talk(part.text) or cues.asks(part.text):
            continue
        value = min(len(anchors(part.text)), 3) - len(part.text) / 300
        value += 2 * bool(cues.agent_type(part.text)) + 2 * (index == 0) + cues.opens_list_of_next(under)
        weights.append((-value, index))
    kept: list[int] = []
    room = limit
    for value, index in sorted(weights):
        if value < 1 and len(parts[index].text) <= room:
            kept.append(index)
            room -= len(parts[index].text) + 3
    return _joined([parts[index] for index in sorted(kept)])


def _joined(parts: Sequence[Segment]) -> str:
    text = ""
    for part in parts:
        joint = "" if not text else " · " if part.is_item else " "
        text += joint + part.text
    return text
