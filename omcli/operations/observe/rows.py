"""Turning drafts into rows with ids, times and token counts: writing them batch by batch, or for one pack only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath

from omcli.base.errors import OmError, Waiting
from omcli.base.record import field, record, replace
from omcli.memory.batch import Batch, BatchOutcome, Observed, part_of_batch
from omcli.memory.observation import NEXT_STEP, PROVISIONAL, UNDER, Draft, Kind, Observation, Priority, Replacement
from omcli.memory.session import Author
from omcli.operations.deps import CONTEXT_ROWS, Deps


def as_row(
    draft: Draft,
    *,
    row_id: str,
    kind: Kind,
    session: str | None,
    project: str | None,
    keys: Mapping[int, str],
    at: str,
    tokens: int,
    counter: str,
    generation: int = 0,
    author: Author | None = None,
) -> Observation:
    """Return a draft as a row.

    `at` is the time of observation. `keys` maps `seq` to the printed ids of source messages. `tokens` is the size of
    the text, counted by `counter`. The `author` is that of the store.
    """
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
        message_ids=tuple(map(keys.__getitem__, draft.sources)),
        sources=draft.sources,
        tokens=tokens,
        counter=counter,
        source=draft.source,
        tags=draft.tags,
        metadata=draft.metadata,
        generation=generation,
        supports=draft.supports,
        author=author,
    )


@record
class RowPlace:
    """Attributes of a new row that its draft lacks."""

    kind: Kind
    session: str | None
    project: str | None
    keys: Mapping[int, str]
    """Maps `seq` to the printed ids of the row's source messages."""
    generation: int = 0


def as_rows(drafts: Sequence[tuple[Draft, RowPlace]], deps: Deps) -> tuple[Observation, ...]:
    return tuple(
        as_row(
            draft,
            row_id=deps.new_id(),
            kind=place.kind,
            session=place.session,
            project=place.project,
            keys=place.keys,
            at=deps.clock.now(),
            tokens=deps.counter.text(draft.text),
            counter=deps.counter.name,
            generation=place.generation,
            author=deps.store.author,
        )
        for draft, place in drafts
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
    """Return the drafts of a batch as rows, without forgotten content, and the replacements that these rows make.

    `project` is the session's; a row gets its last message's project. Rows get new ids unless `ids` are given. `keys`
    maps `seq` to printed message ids (default: the batch's).
    """
    known, now, counter = _keys(batch) if keys is None else keys, deps.clock.now(), deps.counter
    projects = _projects(batch, project, deps)
    rows: list[Observation] = []
    for number, draft in enumerate(drafts):
        row = as_row(
            draft,
            row_id=ids[number] if ids is not None else deps.new_id(),
            kind=Kind.OBSERVATION,
            session=batch.session,
            project=projects.get(max(draft.sources, default=0), project),
            keys=known,
            at=now,
            tokens=counter.text(draft.text),
            counter=counter.name,
            author=deps.store.author,
        )
        rows.append(row)
    placed = [_under(number, draft, rows) for number, draft in enumerate(drafts)]
    steps = deps.store.tombstones.match_texts([str(row.metadata.get(NEXT_STEP, "")) for row in placed])
    placed = [_without(NEXT_STEP, row) if is_gone else row for row, is_gone in zip(placed, steps, strict=True)]
    forgotten = deps.store.tombstones.match(placed)
    gone = {row.id for row, is_gone in zip(placed, forgotten, strict=True) if is_gone}
    kept = [draft for draft, is_gone in zip(drafts, forgotten, strict=True) if not is_gone]
    remaining = tuple(
        [_without(UNDER, row) if row.metadata.get(UNDER) in gone else row for row in placed if row.id not in gone]
    )
    return remaining, replacements(kept, remaining)


def _projects(batch: Batch, project: str | None, deps: Deps) -> dict[int, str]:
    """Return the project of each message that has a directory of its own, by `seq`."""
    others = (*batch.earlier_calls, *((batch.last_said,) if batch.last_said else ()))
    away = {kept.seq: kept.message.cwd for kept in (*others, *batch.messages) if kept.message.cwd}
    found = {cwd: _project_of(cwd, project, deps) for cwd in set(away.values())}
    return {seq: found[cwd] for seq, cwd in away.items()}


def _project_of(cwd: str, project: str | None, deps: Deps) -> str:
    """Return the project of a directory: of the directory and the folders above it, the first that is the session's
    project or another known one. Folders above the session's project don't count. If none counts, return the directory.
    """
    own = PurePath(project) if project else None
    for folder in (PurePath(cwd), *PurePath(cwd).parents):
        if folder == own:
            return str(own)
        if own is not None and folder in own.parents:
            break
        if deps.store.sessions.summaries(project=str(folder), last=1):
            return str(folder)
    return cwd


def _without(name: str, row: Observation) -> Observation:
    return replace(row, metadata={each: value for each, value in row.metadata.items() if each != name})


def _under(number: int, draft: Draft, rows: Sequence[Observation]) -> Observation:
    """Return the draft's row, with a link to the row it is a detail of, if any."""
    row = rows[number]
    if draft.under is None:
        return row
    others = (*reversed(rows[:number]), *rows[number + 1 :])
    above = next((other.id for other in others if other.text.startswith(draft.under)), None)
    return replace(row, metadata={**row.metadata, UNDER: above}) if above else row


def _keys(batch: Batch) -> dict[int, str]:
    """Return the printed ids of all messages that rows of a batch may cite, by `seq`."""
    last_said = (batch.last_said,) if batch.last_said else ()
    of_rows = {seq: key for row in batch.context_rows for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return of_rows | {kept.seq: kept.key for kept in (*batch.earlier_calls, *last_said, *batch.messages)}


def replacements(drafts: Sequence[Draft], rows: Sequence[Observation]) -> tuple[Replacement, ...]:
    return tuple(
        Replacement(row=replaced, by=row.id, reason=draft.reason or "replaced")
        for draft, row in zip(drafts, rows, strict=True)
        for replaced in draft.replaces
    )


# ---- the record


@record
class Step:
    """The outcome of one batch."""

    rows: tuple[Observation, ...] = ()
    message_tokens: int = 0
    """Tokens of newly covered messages."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """Number of corrections to a model's reply, by kind."""
    ahead: int = 0
    """Number of messages that were buffered. They are still pending, and their rows are not visible yet."""
    is_activated: bool = False
    """True if the batch was buffered earlier and has now been written."""


class RecordSink:
    """Writes each batch in one transaction: its rows, their replacements and the cursor."""

    def __init__(self, session_id: str, deps: Deps, is_last: Callable[[Batch], bool]) -> None:
        """`is_last` returns True if no pending message follows the batch."""
        session = deps.store.sessions.find(session_id)
        self.project = session.project if session else None
        self.deps = deps
        self._is_last = is_last

    def write(self, batch: Batch, observed: Observed) -> Iterator[Step]:
        """Write the observations of a batch. Raise StaleBatch if the session has changed, and the error that stopped
        the observer.
        """
        for part in batch_parts(batch, observed, self._is_last):
            if part.outcome is None:
                rows, replaced = to_rows(part.batch, part.observed.drafts, project=self.project, deps=self.deps)
                yield self.record(part.batch, part.observed, rows, replaced)
            else:
                yield from record_rest(part, self.deps)

    def record(
        self, batch: Batch, observed: Observed, rows: tuple[Observation, ...], replaced: tuple[Replacement, ...]
    ) -> Step:
        self.deps.store.batches.record(
            batch,
            rows,
            outcome=BatchOutcome.OBSERVED if rows else BatchOutcome.EMPTY,
            now=self.deps.clock.now(),
            replaced=replaced,
            used=observed.used,
            title=observed.title,
        )
        return Step(rows=rows, message_tokens=sum([kept.tokens for kept in batch.messages]), findings=observed.findings)


@record
class BatchPart:
    batch: Batch
    observed: Observed
    outcome: BatchOutcome | None = None
    """DEFERRED or FAILED if the part stays pending, or None if it was observed."""


def batch_parts(batch: Batch, observed: Observed, is_last: Callable[[Batch], bool]) -> Iterator[BatchPart]:
    """Yield the observed part of a batch, then the rest, if any, as deferred or failed.

    Messages that gave no rows yet are deferred only in a batch that no pending message follows. If the observer
    stopped, the rest is yielded as failed (or not at all, if the observer was interrupted or its model is not asked
    again yet), and then the observer's error is raised.
    """
    stopped, waits = observed.stopped, observed.waits_after
    if stopped is not None:
        if stopped.through > batch.after:
            read = part_of_batch(batch, batch.after, stopped.through)
            yield from batch_parts(read, replace(observed, stopped=None), is_last)
        if isinstance(stopped.error, OmError) and not isinstance(stopped.error, Waiting):
            rest = part_of_batch(batch, stopped.through, batch.through)
            yield BatchPart(batch=rest, observed=Observed(drafts=(), stopped=stopped), outcome=BatchOutcome.FAILED)
        raise stopped.error
    if waits is None or not is_last(batch):  # only the last batch is deferred: here later messages exist already
        yield BatchPart(batch=batch, observed=observed)
        return
    if waits > batch.after:
        yield BatchPart(batch=part_of_batch(batch, batch.after, waits), observed=observed)
        observed = Observed(drafts=())
    rest = part_of_batch(batch, waits, batch.through)
    yield BatchPart(batch=rest, observed=observed, outcome=BatchOutcome.DEFERRED)


def record_rest(part: BatchPart, deps: Deps) -> Iterator[Step]:
    """Record a part that stays pending. Yield a step if it was deferred."""
    assert part.outcome is not None
    error = part.observed.stopped.error if part.observed.stopped else None
    deps.store.batches.record(
        part.batch,
        (),
        outcome=part.outcome,
        now=deps.clock.now(),
        used=part.observed.used,
        error=error.message if isinstance(error, OmError) else None,
    )
    if part.outcome is BatchOutcome.DEFERRED:
        yield Step(findings=part.observed.findings)


# ---- rows for one pack only

_MOST_TOKENS = 200_000
"""Maximum tokens of messages to observe, because an agent waits for the pack: rules take a second for twice as many."""


@record
class ProvisionalRows:
    """Rows of unobserved messages. They are not stored."""

    rows: tuple[Observation, ...] = ()
    replaced_by: tuple[tuple[str, str], ...] = ()
    """Pairs of ids: of a stored row, and of the row here that would replace it."""
    messages: frozenset[int] = frozenset()
    """`seq` of the messages that were observed."""

    def over(self, stored: Sequence[Observation], tail: frozenset[int]) -> tuple[Observation, ...]:
        """Return the stored rows, followed by the rows here whose messages are not all in the tail.

        The text of the latter gets a mark. Stored rows that they replace are left out.
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
    return replace(row, observed_at=at or row.observed_at, tags=(*row.tags, PROVISIONAL), author=None)


def _marked(row: Observation) -> Observation:
    return replace(row, text=f"{row.text} ({PROVISIONAL})")
