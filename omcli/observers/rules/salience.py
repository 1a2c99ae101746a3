"""Which sentences of a text say the most: those that name things, and those that find, decide or report."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.memory.anchors import anchors
from omcli.observers.rules import cues
from omcli.observers.rules.passages import joined
from omcli.observers.rules.sentences import Segment

_NOTHING = 3
"""What a sentence may weigh less than nothing: long ones that name little are told where there is room."""


def told_most(parts: Sequence[Segment], limit: int) -> str:
    """The telling sentences of a report on one line, within `limit` characters."""
    return joined([part for part in telling_sentences(parts, limit) if not cues.asks(part.text)])


def telling_sentences(parts: Sequence[Segment], limit: int) -> list[Segment]:
    """The telling sentences of a report, whole and in their order, within `limit` characters.

    A sentence weighs by the names in it (three at most), by saying something of its own kind (`cues.agent_type`) and by
    coming first; long ones weigh less. Headings and talk don't report.
    """
    weights: list[tuple[float, int]] = []
    under = ""
    for index, part in enumerate(parts):
        under = part.text if part.is_heading else under
        opens_nothing = part.text.endswith(":") and not any(after.is_item for after in parts[index + 1 : index + 2])
        if part.is_heading or opens_nothing or cues.is_talk(part.text):
            continue
        value = min(len(anchors(part.text)), 3) - len(part.text) / 300
        value += 2 * bool(cues.agent_type(part.text)) + 2 * (index == 0) + cues.opens_list_of_next(under)
        weights.append((-value, index))
    kept: list[int] = []
    room = limit
    for value, index in sorted(weights):
        if value < _NOTHING and len(parts[index].text) <= room:
            kept.append(index)
            room -= len(parts[index].text) + 3
    return [parts[index] for index in _with_headings(parts, sorted(kept))]


def _with_headings(parts: Sequence[Segment], kept: Sequence[int]) -> list[int]:
    """The kept sentences, each after the heading it stands under, once, where that says something itself."""
    found: list[int] = []
    under = -1
    chosen = set(kept)
    for index in range(kept[-1] + 1 if kept else 0):
        if parts[index].is_heading:
            under = index
        elif index in chosen:
            if under >= 0 and _tells(parts[under].text):
                found.append(under)
            found.append(index)
            under = -1
    return found


def _tells(heading: str) -> bool:
    """Whether a heading names a thing, what is next, or what came of the work: "Fixed in the importer"."""
    return bool(anchors(heading) or cues.opens_list_of_next(heading) or cues.agent_type(heading))
