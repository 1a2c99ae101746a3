"""Reflecting on a session. Rows are folded into fewer rows, and lasting facts become items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from omcli.base.errors import OF_MODELS, Waiting
from omcli.base.record import field, record, replace
from omcli.memory.message import rows_tokens
from omcli.memory.observation import Draft, Dropped, Kind, LogQuery, Observation, Replacement
from omcli.memory.ports import Lane
from omcli.memory.reflection import Material, Reflected, ReflectionOutcome, ReflectionWrite, Scope
from omcli.operations.deps import Deps, Meta, Policy, hold
from omcli.operations.observe.rows import RowPlace, as_rows, replacements
from omcli.reflectors.drafts import are_of_projects, part_of_material
from omcli.text.similarity import folded_text


def reflect_session(
    session_id: str, deps: Deps, *, meta: bool = False, dry_run: bool = False, again: bool = False
) -> Reflection:
    """Fold a session's rows, or with `meta` its reflections.

    Nothing is tried, unless `again` is set, if exactly these rows yielded nothing before, were left by an earlier fold,
    or were folded and this was undone. `dry_run` asks the reflector, but changes no row. Raise LaneTaken if another
    process holds the lane, StaleBatch if another process has hidden some of the rows, and the reflector's errors. No
    row changes then.
    """
    seen = None if meta else deps.store.rows.changes(session_id)
    rows = rows_to_fold(session_id, deps, meta=meta)
    return reflect_rows(rows, session_id, deps, dry_run=dry_run, again=again, seen=seen)


def reflect_rows(
    rows: Sequence[Observation],
    session_id: str,
    deps: Deps,
    *,
    target: float | None = None,
    dry_run: bool = False,
    again: bool = False,
    part_of: Callable[[], int] | None = None,
    seen: int | None = None,
) -> Reflection:
    """Fold these rows of a session, like `reflect_session`.

    `target` overrides the policy's target. `part_of` returns the number of the operation that this reflection belongs
    to; it is called only if something is made or dropped. If these are all rows of the session, `seen` is
    `Rows.changes` before they were read.
    """
    scope = Scope(session=session_id)
    if not rows:
        return Reflection(scope=scope, ending=None, note="nothing to reflect on")
    mark = deps.reflector.mark(rows, target=target)
    if not again and (note := skip_reason(scope, mark, deps)):
        return Reflection(scope=scope, ending=None, read=len(rows), note=note)
    sink = FoldSink(scope, mark, deps, target=target, part_of=part_of, seen=seen)
    source = _by_project(replace(material(rows, deps, target=target), session=session_id), deps)
    if dry_run:
        reflector = deps.reflector.open()
        for batch in source:
            sink.write(batch, reflector.reflect(batch.material))
        return sink.reflection()
    with hold(session_id, Lane.REFLECT, deps):
        recorded = RecordedReflector(scope, mark, deps)
        for batch in source:
            sink.write(batch, recorded.reflect(batch))
        return sink.fold()


def skip_reason(scope: Scope, mark: str, deps: Deps) -> str | None:
    """Return the reason not to try rows with this fingerprint again, or None if they may be tried."""
    last = deps.store.reflections.last_attempt(scope, mark)
    return last.why_not(mark) if last else None


def is_due(session_id: str, deps: Deps) -> bool:
    """Return True if rows or reflections of the session are due to be folded, and the session does not wait after
    failures of the model.
    """
    is_due = rows_are_due(session_id, deps) or meta_is_due(session_id, deps)
    return is_due and not deps.reflector.waits(session_id)


def rows_are_due(session_id: str, deps: Deps) -> bool:
    """Return True if the session's rows have reached the policy's threshold and need not be skipped."""
    policy, counter = deps.reflector.policy, deps.counter.name
    stored = deps.store.rows.tokens(session_id, _kinds(policy))
    tokens = stored.get(counter, 0)
    if not policy.is_due(tokens) and set(stored) <= {counter}:
        return False
    reflections = deps.store.reflections
    if not reflections.has_changed(session_id, deps.reflector.settings):
        return False
    if policy.is_due(tokens) and reflections.last_attempt(Scope(session=session_id)) is None:
        return True
    rows = rows_to_fold(session_id, deps, bare=True)
    return policy.is_due(rows_tokens(rows, deps.counter)) and not _has_attempt(session_id, rows, deps)


def meta_is_due(session_id: str, deps: Deps) -> bool:
    """Return True if the policy folds generations, `rows_to_fold` finds at least `Policy.meta_at` reflections, and
    these need not be skipped.
    """
    if deps.reflector.policy.meta is not Meta.GENERATIONS:
        return False
    rows = rows_to_fold(session_id, deps, meta=True, bare=True)
    return len(rows) >= deps.reflector.policy.meta_at and not _has_attempt(session_id, rows, deps)


def reflect_if_due(session_id: str, deps: Deps, *, in_any_case: bool = False) -> Reflection | None:
    """Fold a session's rows if they are due or `in_any_case`, then its reflections if they are due.

    Return the last reflection, or None if nothing was due or, unless `in_any_case`, if the session waits because the
    model has failed. Raise the same errors as `reflect_session`.
    """
    reflection = None
    if not in_any_case and deps.reflector.waits(session_id):
        return None
    if in_any_case or rows_are_due(session_id, deps):
        reflection = reflect_session(session_id, deps)
    if meta_is_due(session_id, deps):
        reflection = reflect_session(session_id, deps, meta=True)
    return reflection


def _has_attempt(session_id: str, rows: Sequence[Observation], deps: Deps) -> bool:
    return skip_reason(Scope(session=session_id), deps.reflector.mark(rows), deps) is not None


def rows_to_fold(session_id: str, deps: Deps, *, meta: bool = False, bare: bool = False) -> tuple[Observation, ...]:
    """Return the rows to fold, oldest first: observations, and reflections too if the policy folds them again.

    With `meta`, return the reflections of the lowest generation that has at least two; none if there is no such
    generation. For `bare`, see `LogQuery`.
    """
    kinds = (Kind.REFLECTION,) if meta else _kinds(deps.reflector.policy)
    query = LogQuery(session=session_id, kinds=kinds, bare=bare)
    rows = [logged.observation for logged in deps.store.rows.log(query)]
    if meta:
        generations = [row.generation for row in rows]
        several = [generation for generation in generations if generations.count(generation) > 1]
        rows = [row for row in rows if row.generation == min(several, default=None)]
    return tuple(sorted(rows, key=lambda row: row.dated))


def _kinds(policy: Policy) -> tuple[Kind, ...]:
    return (Kind.OBSERVATION, Kind.REFLECTION) if policy.meta is Meta.WHOLE else (Kind.OBSERVATION,)


def material(rows: Sequence[Observation], deps: Deps, *, target: float | None = None) -> Material:
    policy = deps.reflector.policy if target is None else replace(deps.reflector.policy, target=target)
    return Material(
        rows=tuple(rows),
        target=policy.target_of(rows_tokens(rows, deps.counter)),
        now=deps.clock.now(),
        protected=frozenset(row.id for row in rows if policy.covers(row)),
        most_rows=policy.rows,
        project=rows[0].project,
    )


@record
class FoldBatch:
    """Rows that are folded together."""

    material: Material
    part: str = ""
    """Prefix for error messages, naming the batch."""


def _by_project(whole: Material, deps: Deps) -> list[FoldBatch]:
    """Return a batch for each project of the rows, because a reflection or item belongs to one project."""
    several = are_of_projects(whole.rows)  # rows without a project are folded with those of a single one
    found: dict[str | None, list[Observation]] = {}
    for row in whole.rows:
        found.setdefault(row.project if several else None, []).append(row)
    parts = [part_of_material(whole, rows, deps.counter) for rows in found.values()]
    return [FoldBatch(material=replace(part, project=_project_of(part.rows))) for part in parts]


def _project_of(rows: Iterable[Observation]) -> str | None:
    return next((row.project for row in rows if row.project), None)


class RecordedReflector:
    def __init__(self, scope: Scope, mark: str, deps: Deps) -> None:
        self._scope = scope
        self._mark = mark
        self._deps = deps

    def reflect(self, batch: FoldBatch) -> Reflected:
        """Return the result for a batch. If rules may stand in for the model, they fold the rows when the model fails
        or cannot make them shorter.

        If rules may not stand in, the model's failure is recorded and raised. Waiting is raised without a record,
        because nothing was tried.
        """
        deps, given = self._deps, batch.material
        deps.busy(f"{self._scope.session or given.project or 'all projects'}: reflecting on {len(given.rows)} rows")
        try:
            reflected = deps.reflector.open().reflect(given)
            if deps.reflector.stand_in is None or reflected.reflections or reflected.dropped or reflected.items:
                return reflected
            deps.warn("the model could not make the rows shorter; reflected by rules")
            return deps.reflector.stand_in.reflect(given)
        except OF_MODELS as error:
            if deps.reflector.stand_in is not None:
                deps.warn(f"{error.message}; reflected by rules")
                return deps.reflector.stand_in.reflect(given)
            if isinstance(error, Waiting):
                raise  # nothing was tried
            error.message = f"{batch.part}{error.message}"
            failed = ReflectionWrite(
                scope=self._scope,
                fingerprint=self._mark,
                ending=ReflectionOutcome.FAILED,
                error=error.message,
            )
            deps.store.reflections.fold(failed, now=deps.clock.now())
            raise


class FoldSink:
    """Collects the results of all batches and writes them in one transaction."""

    def __init__(
        self,
        scope: Scope,
        mark: str,
        deps: Deps,
        *,
        target: float | None = None,
        part_of: Callable[[], int] | None = None,
        backs_up: bool = False,
        seen: int | None = None,
    ) -> None:
        """`mark` is the fingerprint of all rows. `part_of` returns the number of the operation that this reflection
        belongs to. If these are all rows of a session, `seen` is `Rows.changes` before they were read.

        With `backs_up`, the store is copied before it is changed.
        """
        self.snapshot: str | None = None
        """Path of the copy of the store made before the change, or None if none was made."""
        self.parts: list[Reflection] = []
        """The outcome of each batch, once `reflection` or `fold` was called."""
        self._scope = scope
        self._mark = mark
        self._deps = deps
        self._target = target
        self._part_of = part_of
        self._backs_up = backs_up
        self._seen = seen
        self._results: list[tuple[FoldBatch, Reflected]] = []

    def write(self, batch: FoldBatch, reflected: Reflected) -> None:
        self._results.append((batch, reflected))

    def reflection(self) -> Reflection:
        """Return the outcome of all batches together, without writing anything."""
        return self._rows()[0]

    def fold(self) -> Reflection:
        """Write the results, and return the outcome. Raise StaleBatch if another process has hidden some rows, or has
        undone or made final the operation that this reflection is part of.
        """
        deps = self._deps
        whole, replaced = self._rows()
        is_done = whole.ending is ReflectionOutcome.DONE
        part_of = self._part_of() if self._part_of and is_done else None
        if self._backs_up and is_done:
            self.snapshot = deps.store.backups.snapshot(now=deps.clock.now())
        is_whole = self._scope.session is not None and deps.reflector.policy.meta is Meta.WHOLE
        again_with = whole.rows if is_whole else ()  # across sessions, new reflections are not folded again
        is_unfinished = any(map(whole.findings.get, ("trimmed", "unreached")))  # rows left can be folded next time
        left = None if is_unfinished else deps.reflector.mark((*whole.left, *again_with), target=self._target)
        read = [row for batch, _ in self._results for row in batch.material.rows]
        dropped = [gone for _, reflected in self._results for gone in reflected.dropped]
        folding = replace(as_fold(whole, read, dropped, replaced, self._mark, left=left), part_of=part_of)
        if self._seen is not None and left is not None:
            folding = replace(folding, seen=(deps.reflector.settings, self._seen))
        deps.store.reflections.fold(folding, now=deps.clock.now())
        return whole

    def _rows(self) -> tuple[Reflection, list[Replacement]]:
        each = [to_rows(self._scope, batch.material.rows, made, self._deps) for batch, made in self._results]
        self.parts = [reflection for reflection, _ in each]
        replaced = [replacement for _, some in each for replacement in some]
        return sum_reflections(self._scope, self.parts), replaced


T = TypeVar("T")


@record
class Reflection:
    """The outcome of reflecting."""

    scope: Scope
    ending: ReflectionOutcome | None
    """None if nothing was tried."""
    read: int = 0
    """Number of rows read."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Tokens of the rows that stay visible and of the new reflections."""
    rows: tuple[Observation, ...] = ()
    """New reflections."""
    items: tuple[Observation, ...] = ()
    left: tuple[Observation, ...] = ()
    """Rows that were read and stay visible."""
    condensed: int = 0
    """Number of rows that were hidden."""
    findings: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    note: str | None = None
    """Reason why nothing was tried or made."""

    @property
    def made(self) -> tuple[Observation, ...]:
        return (*self.rows, *self.items)


def to_rows(
    scope: Scope, rows: Sequence[Observation], reflected: Reflected, deps: Deps
) -> tuple[Reflection, tuple[Replacement, ...]]:
    """Return the outcome of reflecting on `rows`, with drafts turned into rows, and the replacements. Forgotten
    reflections and items, and items that are already stored, are left out.
    """
    fresh = {folded_text(draft.text): draft for draft in reversed(reflected.items)}
    drafts, item_drafts = reflected.reflections, tuple(reversed(fresh.values()))
    made = as_rows(
        [
            *((draft, _place(draft, Kind.REFLECTION, scope, rows)) for draft in drafts),
            *((draft, _place(draft, Kind.ITEM, scope, rows)) for draft in item_drafts),
        ],
        deps,
    )
    reflections, items = made[: len(drafts)], _unknown_items(made[len(drafts) :], deps)
    forgotten = deps.store.tombstones.match(reflections)
    drafts, reflections = _without(drafts, forgotten), _without(reflections, forgotten)
    replaced = replacements(drafts, reflections)
    gone = {replacement.row for replacement in replaced} | {dropped.row for dropped in reflected.dropped}
    stay = [row for row in rows if row.id not in gone]
    before, after = (rows_tokens(some, deps.counter) for some in (rows, (*stay, *reflections)))
    came_to_something = bool(reflections or items or reflected.dropped)
    reflection = Reflection(
        scope=scope,
        ending=ReflectionOutcome.DONE if came_to_something else ReflectionOutcome.EMPTY,
        read=len(rows),
        tokens_before=before,
        tokens_after=after,
        rows=reflections,
        items=items,
        left=tuple(stay),
        condensed=len(gone),
        findings=reflected.findings,
        attempts=reflected.attempts,
        note=None if came_to_something else "the rows could not be made shorter",
    )
    return reflection, replaced


def _without(some: Sequence[T], gone: Sequence[bool]) -> tuple[T, ...]:
    return tuple(each for each, is_gone in zip(some, gone, strict=True) if not is_gone)


def as_fold(
    reflection: Reflection,
    rows: Sequence[Observation],
    dropped: Sequence[Dropped],
    replaced: Sequence[Replacement],
    mark: str,
    *,
    left: str | None = None,
) -> ReflectionWrite:
    """Return a reflection in the form that the store writes.

    `left` is the fingerprint of the rows that the next reflection would read; they are not tried again until they
    change. If it is None, they may be tried again.
    """
    assert reflection.ending is not None
    figures = {
        "read": reflection.read,
        "tokens_before": reflection.tokens_before,
        "tokens_after": reflection.tokens_after,
        "condensed": reflection.condensed,
        "attempts": reflection.attempts,
        "findings": dict(reflection.findings),
        "left": left,
    }
    return ReflectionWrite(
        scope=reflection.scope,
        fingerprint=mark,
        ending=reflection.ending,
        read=tuple(row.id for row in rows),
        rows=(*reflection.rows, *reflection.items),
        replaced=tuple(replaced),
        dropped=tuple(dropped),
        figures=figures,
    )


def _place(draft: Draft, kind: Kind, scope: Scope, rows: Sequence[Observation]) -> RowPlace:
    """Return the attributes of a new reflection or item, which belongs to the project of its source rows."""
    made_of = [row for row in rows if row.id in draft.supports]
    is_item = kind is Kind.ITEM
    return RowPlace(
        kind=kind,
        session=None if is_item else scope.session,
        project=_project_of(made_of),
        keys={seq: key for row in made_of for seq, key in zip(row.sources, row.message_ids, strict=True)},
        generation=0 if is_item else max((row.generation for row in made_of), default=0) + 1,
    )


def _unknown_items(items: tuple[Observation, ...], deps: Deps) -> tuple[Observation, ...]:
    """Return the items that are neither stored already nor forgotten."""
    if not items:
        return ()
    known = {_item_key(logged.observation) for logged in deps.store.rows.log(LogQuery(kinds=(Kind.ITEM,)))}
    remembered = _without(items, deps.store.tombstones.match(items))
    return tuple(item for item in remembered if _item_key(item) not in known)


def _item_key(item: Observation) -> tuple[str | None, str]:
    return item.project, folded_text(item.text)


def sum_reflections(scope: Scope, reflections: Sequence[Reflection]) -> Reflection:
    """Return the outcome of several reflections together."""
    if len(reflections) == 1:
        return reflections[0]
    findings: dict[str, int] = {}
    for reflection in reflections:
        for name, number in reflection.findings.items():
            findings[name] = findings.get(name, 0) + number
    items = {(item.project, item.text): item for reflection in reflections for item in reflection.items}
    is_done = any(reflection.ending is ReflectionOutcome.DONE for reflection in reflections)
    return Reflection(
        scope=scope,
        ending=ReflectionOutcome.DONE if is_done else ReflectionOutcome.EMPTY,
        read=sum(reflection.read for reflection in reflections),
        tokens_before=sum(reflection.tokens_before for reflection in reflections),
        tokens_after=sum(reflection.tokens_after for reflection in reflections),
        rows=tuple(row for reflection in reflections for row in reflection.rows),
        items=tuple(items.values()),
        left=tuple(row for reflection in reflections for row in reflection.left),
        condensed=sum(reflection.condensed for reflection in reflections),
        findings=findings,
        attempts=sum(reflection.attempts for reflection in reflections),
        note=None if is_done else "the rows could not be made shorter",
    )
