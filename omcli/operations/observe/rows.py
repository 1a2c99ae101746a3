"""Rows from drafts: an observer or a reflector writes the draft; id, time and tokens are added here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omcli.base.record import replace
from omcli.memory.batch import Batch
from omcli.memory.message import TokenCounter
from omcli.memory.observation import UNDER, Draft, Kind, Observation, Priority, Replacement
from omcli.memory.ports import Tombstones
from omcli.operations.deps import Deps


def as_row(
    draft: Draft,
    *,
    row_id: str,
    kind: Kind,
    session: str | None,
    project: str | None,
    keys: Mapping[int, str],
    at: str,
    counter: TokenCounter,
    generation: int = 0,
) -> Observation:
    """Return a draft as a row, observed `at` an instant. `keys` are the printed ids of its messages by `seq`."""
    return Observation(
        id=row_id,
        session=session,
        project=project,
        kind=kind,
        type=draft.type,
        priority=draft.priority or Priority.of_importance(draft.importance),
        importance=draft.importance,
        status=draft.status,
        text=draft.text,
        observed_at=at,
        event_at=draft.event_at,
        refers_to=draft.refers_to,
        message_ids=tuple(keys[seq] for seq in draft.sources),
        sources=draft.sources,
        tokens=counter.text(draft.text),
        counter=counter.name,
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
        generation=generation,
        supports=draft.supports,
    )


def to_rows(
    batch: Batch,
    drafts: Sequence[Draft],
    *,
    project: str | None,
    deps: Deps,
    ids: Sequence[str] | None = None,
    keys: Mapping[int, str] | None = None,
) -> tuple[tuple[Observation, ...], tuple[Replacement, ...]]:
    """Return the drafts of a batch as rows, without forgotten content, and the replacements they make.

    Rows get new ids unless `ids` are given. `keys` maps `seq` to the printed ids of messages (default: those of the
    batch).
    """
    known, now = _keys(batch) if keys is None else keys, deps.clock.now()
    rows = [
        as_row(
            draft,
            row_id=ids[number] if ids is not None else deps.new_id(),
            kind=Kind.OBSERVATION,
            session=batch.session,
            project=project,
            keys=known,
            at=now,
            counter=deps.counter,
        )
        for number, draft in enumerate(drafts)
    ]
    placed = [_under(number, draft, rows) for number, draft in enumerate(drafts)]
    kept, remaining = without_forgotten(drafts, placed, deps.store.tombstones)
    return remaining, replacements(kept, remaining)


def without_forgotten(
    drafts: Sequence[Draft], rows: Sequence[Observation], tombstones: Tombstones
) -> tuple[tuple[Draft, ...], tuple[Observation, ...]]:
    """Return drafts and their rows, without those that repeat something forgotten."""
    gone = {row.id for row, is_gone in zip(rows, tombstones.match(rows), strict=True) if is_gone}
    kept = [(draft, _without_missing(row, gone)) for draft, row in zip(drafts, rows, strict=True) if row.id not in gone]
    return tuple(draft for draft, _ in kept), tuple(row for _, row in kept)


def _without_missing(row: Observation, gone: set[str]) -> Observation:
    """Return a row without the link to a missing one."""
    if row.metadata.get(UNDER) not in gone:
        return row
    return replace(row, metadata={name: value for name, value in row.metadata.items() if name != UNDER})


def _under(number: int, draft: Draft, rows: Sequence[Observation]) -> Observation:
    """Return the row of a draft; a detail names the row that it belongs to."""
    row = rows[number]
    if draft.under is None:
        return row
    others = (*reversed(rows[:number]), *rows[number + 1 :])
    above = next((other.id for other in others if other.text.startswith(draft.under)), None)
    return replace(row, metadata={**row.metadata, UNDER: above}) if above else row


def _keys(batch: Batch) -> dict[int, str]:
    """Return the printed ids of all messages that rows of a batch may come from, by `seq`."""
    last_said = (batch.last_said,) if batch.last_said else ()
    of_rows = {seq: key for row in batch.context_rows for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return of_rows | {kept.seq: kept.key for kept in (*batch.earlier_calls, *last_said, *batch.messages)}


def replacements(drafts: Sequence[Draft], rows: Sequence[Observation]) -> tuple[Replacement, ...]:
    """Return the replacements that the rows of these drafts make."""
    return tuple(
        Replacement(row=replaced, by=row.id, reason=draft.reason or "replaced")
        for draft, row in zip(drafts, rows, strict=True)
        for replaced in draft.replaces
    )
