"""A row of tool events: its sources, when it was, and how it names paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from omcli.memory.observation import Draft, Priority, Status, Type
from omcli.memory.record import positional_record
from omcli.memory.text import below, one_line
from omcli.observers.rules.tools import ToolEvent


@positional_record
class Paths:
    """Paths as rows name them: below the working directory without it."""

    cwd: str | None

    def __call__(self, path: str) -> str:
        return one_line(below(self.cwd, path))


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
