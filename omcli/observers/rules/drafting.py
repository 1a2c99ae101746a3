"""A row of tool events: its sources, when it was, and how it names paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.memory.record import positional_record
from omcli.memory.text import one_line
from omcli.observers.rules.shell import counted
from omcli.observers.rules.tools import ToolEvent

_SHOWN = 8
"""Names a folded row lists before it counts the rest."""


@positional_record
class Paths:
    """Paths as rows name them: below the working directory without it."""

    cwd: str | None

    def __call__(self, path: str) -> str:
        base = (self.cwd or "").rstrip("/")
        return one_line(path.removeprefix(f"{base}/") if base else path)


def draft_of(
    events: Iterable[ToolEvent],
    text: str,
    kind: Type,
    importance: int,
    *,
    status: Status | None = None,
    priority: Priority | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Draft:
    """A row of these events. Of `metadata` what is None is left out."""
    told = list(events)
    known = {name: value for name, value in (metadata or {}).items() if value is not None}
    return Draft(
        text=text,
        type=kind,
        importance=importance,
        status=status,
        priority=priority,
        sources=tuple(sorted({seq for event in told for seq in event.sources})),
        event_at=told[-1].at,
        metadata=MappingProxyType(known),
    )


def folded(names: Sequence[str], joint: str) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _SHOWN
    return joint.join(names[:_SHOWN]) + (f"{joint}+{counted(more)} more" if more > 0 else "")


def first_lines(text: str, count: int | None) -> list[str]:
    """The first lines of a text that hold anything, each on one line; all of them where `count` is None."""
    return [one_line(line) for line in text.splitlines() if line.strip()][:count]
