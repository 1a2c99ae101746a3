"""Drafts as rows: what the store and the clock add to what an observer or a reflector states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omcli.memory.observation import Draft, Kind, Observation, Priority
from omcli.memory.ports import Replacement
from omcli.operations.workshop import Workshop


def as_row(
    draft: Draft,
    *,
    kind: Kind,
    session: str | None,
    project: str | None,
    keys: Mapping[int, str],
    workshop: Workshop,
    generation: int = 0,
) -> Observation:
    """A draft as a row of the store. `keys` are the printed ids of the messages it came from, by their `seq`."""
    return Observation(
        id=workshop.new_id(),
        session=session,
        project=project,
        kind=kind,
        type=draft.type,
        priority=draft.priority or Priority.of_importance(draft.importance),
        importance=draft.importance,
        status=draft.status,
        text=draft.text,
        observed_at=workshop.clock.now(),
        event_at=draft.event_at,
        refers_to=draft.refers_to,
        message_ids=tuple(keys[seq] for seq in draft.sources),
        sources=draft.sources,
        tokens=workshop.counter.text(draft.text),
        counter=workshop.counter.name,
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
        generation=generation,
        supports=draft.supports,
    )


def replacements(drafts: Iterable[Draft], rows: Sequence[Observation]) -> tuple[Replacement, ...]:
    """What the rows of these drafts take the place of."""
    return tuple(
        Replacement(row=replaced, by=row.id, reason=draft.reason or "replaced")
        for draft, row in zip(drafts, rows, strict=True)
        for replaced in draft.replaces
    )
