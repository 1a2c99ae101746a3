"""Commands and subagents that go on when their call returns: what a row keeps of them until their end is reported."""

from __future__ import annotations

from omcli.memory.message import KeptMessage, Message, Role
from omcli.memory.observation import Observation, Status
from omcli.observers.rules.tools import ToolEvent

_ARGUMENTS = 2000
"""Characters of a call that are kept with its row: the row of how it ended is written from them."""


def started(event: ToolEvent) -> dict[str, str]:
    """Metadata of a call that goes on: what its end will be known by, and what was called. Empty for any other."""
    if not event.process:
        return {}
    return {"process": event.process, "tool": event.name, "arguments": event.call.message.text[:_ARGUMENTS]}


def still_running(row: Observation) -> tuple[str, KeptMessage] | None:
    """The process that a row says goes on, and its call as far as the row keeps it; None for any other row."""
    process, tool, arguments = (row.metadata.get(name) for name in ("process", "tool", "arguments"))
    if row.status is not Status.OPEN or not row.sources:
        return None
    if not (isinstance(process, str) and isinstance(tool, str) and isinstance(arguments, str)):
        return None
    call = Message(role=Role.CALL, text=arguments, tool=tool, at=row.event_at)
    return process, KeptMessage(
        seq=row.sources[0],
        session=row.session or "",
        key=row.message_ids[0],
        message=call,
        tokens=0,
        counter=row.counter,
    )
