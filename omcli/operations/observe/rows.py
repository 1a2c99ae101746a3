"""Drafts as rows: what the store and the clock add to what an observer or a reflector states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omcli.base.record import replace
from omcli.memory.batch import Batch
from omcli.memory.observation import UNDER, Draft, Kind, Observation, Priority, Replacement
from omcli.memory.ports import Tombstones
from omcli.operations.deps import Workshop


def as_row(
    draft: Draft,
    *,
    kind: Kind,
    session: str | None,
    project: str | None,
    keys: Mapping[int, str],
    workshop: Workshop,
    generation: int = 0,
    row_id: str | None = None,
) -> Observation:
    """A draft as a row of the store. `keys` are the printed ids of the messages it came from, by their `seq`.

    Without an id it gets one of its own.
    """
    return Observation(
        id=row_id or workshop.new_id(),
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


def without_forgotten(
    drafts: Sequence[Draft], rows: Sequence[Observation], tombstones: Tombstones
) -> tuple[tuple[Draft, ...], tuple[Observation, ...]]:
    """Drafts and the rows that they become, without those that say what was forgotten."""
    gone = {row.id for row, is_gone in zip(rows, tombstones.match(rows), strict=True) if is_gone}
    kept = [(draft, _placed_besides(row, gone)) for draft, row in zip(drafts, rows, strict=True) if row.id not in gone]
    return tuple(draft for draft, _ in kept), tuple(row for _, row in kept)


def _placed_besides(row: Observation, gone: set[str]) -> Observation:
    """A row that is no detail of one that is not there."""
    if row.metadata.get(UNDER) not in gone:
        return row
    return replace(row, metadata={name: value for name, value in row.metadata.items() if name != UNDER})


def rows_of(
    batch: Batch,
    drafts: Sequence[Draft],
    *,
    project: str | None,
    workshop: Workshop,
    ids: Sequence[str] | None = None,
    keys: Mapping[int, str] | None = None,
) -> tuple[Observation, ...]:
    """What an observer makes of a batch as rows; a detail names the row that it is one of.

    `ids` are those of the rows, where they have some, and `keys` the printed ids of the messages by their `seq`, where
    they are not those that the batch has.
    """
    known = _keys(batch) if keys is None else keys
    rows = [
        as_row(
            draft,
            kind=Kind.OBSERVATION,
            session=batch.session,
            project=project,
            keys=known,
            workshop=workshop,
            row_id=row_id,
        )
        for draft, row_id in zip(drafts, [None] * len(drafts) if ids is None else ids, strict=True)
    ]
    return tuple(_placed(place, draft, rows) for place, draft in enumerate(drafts))


def _placed(place: int, draft: Draft, rows: Sequence[Observation]) -> Observation:
    row = rows[place]
    if draft.under is None:
        return row
    others = (*reversed(rows[:place]), *rows[place + 1 :])
    above = next((other.id for other in others if other.text.startswith(draft.under)), None)
    return replace(row, metadata={**row.metadata, UNDER: above}) if above else row


def _keys(batch: Batch) -> dict[int, str]:
    """The keys of all messages that rows of a batch may come from, by their `seq`."""
    last_said = (batch.last_said,) if batch.last_said else ()
    of_rows = {seq: key for row in batch.context_rows for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return of_rows | {kept.seq: kept.key for kept in (*batch.earlier_calls, *last_said, *batch.messages)}


def replacements(drafts: Iterable[Draft], rows: Sequence[Observation]) -> tuple[Replacement, ...]:
    """What the rows of these drafts take the place of."""
    return tuple(
        Replacement(row=replaced, by=row.id, reason=draft.reason or "replaced")
        for draft, row in zip(drafts, rows, strict=True)
        for replaced in draft.replaces
    )
