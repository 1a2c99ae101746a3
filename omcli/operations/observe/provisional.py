"""Observing messages for one pack only: rules stand in for an observer that has not read them yet."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.record import record, replace
from omcli.memory.observation import PROVISIONAL, Observation
from omcli.operations.deps import CONTEXT_ROWS, Deps
from omcli.operations.observe.rows import to_rows

_MOST_TOKENS = 200_000
"""Maximum tokens of messages to observe, because an agent waits for the pack: rules take a second for twice as many."""


@record
class ProvisionalRows:
    """Rows of unobserved messages. They are not stored."""

    rows: tuple[Observation, ...] = ()
    replaced_by: tuple[tuple[str, str], ...] = ()
    """Ids of stored rows with the id of the row here that would replace each."""
    messages: frozenset[int] = frozenset()
    """`seq` of the messages that were observed."""

    def over(self, stored: Sequence[Observation], tail: frozenset[int]) -> tuple[Observation, ...]:
        """Return the stored rows, followed by the rows here whose messages are not all in the tail.

        Stored rows that the latter replace are left out.
        """
        rows = tuple(row for row in self.rows if not tail.issuperset(row.sources))
        ids = {row.id for row in rows}
        gone = {replaced for replaced, by in self.replaced_by if by in ids}
        return (*(row for row in stored if row.id not in gone), *map(_marked, rows))

    def after(self, stored: Sequence[Observation]) -> tuple[Observation, ...]:
        """Return the given stored rows, followed by the rows here. A stored row that one of these would replace is
        marked as superseded.
        """
        by = dict(self.replaced_by)
        hidden = (replace(row, superseded_by=by[row.id]) if row.id in by else row for row in stored)
        return (*hidden, *self.rows)


def provisional_rows(session: str, deps: Deps, *, max_tokens: int = _MOST_TOKENS, number: int = 0) -> ProvisionalRows:
    """Observe the newest pending messages of a session with the observer of `deps`, and store nothing.

    The same messages give the same rows, with the same ids and times, so that a pack is printed the same again. In one
    pack, each session has a `number` below 1,000, which makes the ids different.
    """
    batch = deps.store.batches.newest_unobserved(session, max_tokens=max_tokens, context_rows=CONTEXT_ROWS)
    if batch is None:
        return ProvisionalRows()
    drafts = deps.observer.open().observe(batch).drafts
    known = deps.store.sessions.find(session)
    rows, replaced = to_rows(
        batch,
        drafts,
        project=known.project if known else None,
        deps=deps,
        ids=[f"00000000-0000-7{number:03}-8000-{place:012}" for place in range(1, len(drafts) + 1)],
    )
    times = {kept.seq: kept.message.at for kept in batch.messages if kept.message.at}
    last = max(times.values(), default=None)
    return ProvisionalRows(
        rows=tuple(_dated(row, at=times.get(max(row.sources), last)) for row in rows),
        replaced_by=tuple((replacement.row, replacement.by) for replacement in replaced),
        messages=frozenset(kept.seq for kept in batch.messages),
    )


def _dated(row: Observation, *, at: str | None) -> Observation:
    return replace(row, observed_at=at or row.observed_at, tags=(*row.tags, PROVISIONAL))


def _marked(row: Observation) -> Observation:
    return replace(row, text=f"{row.text} ({PROVISIONAL})")
