"""Reflecting on a session: its observations are folded into fewer rows, and what lasts is written down as items."""

from __future__ import annotations

from collections.abc import Sequence

from omcli.base.errors import OF_MODELS, OF_REPLIES
from omcli.base.record import replace
from omcli.memory.observation import Kind, Observation
from omcli.memory.ports import Lane, LogQuery
from omcli.memory.reflection import Material, Reflected, ReflectionOutcome, ReflectionWrite, Scope
from omcli.memory.tokens import rows_tokens
from omcli.operations.deps import Deps, Meta
from omcli.operations.leases import hold
from omcli.operations.reflect.rows import Reflection, as_folding, to_rows


def reflect_session(
    session_id: str, deps: Deps, *, meta: bool = False, dry_run: bool = False, again: bool = False
) -> Reflection:
    """Folds a session's rows. `meta` folds its reflections, and nothing else.

    Rows that nothing could be made of are not tried again, unless `again` says so, until they have changed. `dry_run`
    writes nothing. Raises LaneTaken, StaleBatch where rows went out of sight meanwhile, and what the reflector raises:
    nothing has changed then.
    """
    rows = rows_to_fold(session_id, deps, meta=meta)
    return reflect_rows(rows, session_id, deps, dry_run=dry_run, again=again)


def reflect_rows(
    rows: Sequence[Observation],
    session_id: str,
    deps: Deps,
    *,
    target: float | None = None,
    dry_run: bool = False,
    again: bool = False,
    part_of: int | None = None,
) -> Reflection:
    """Folds these rows of a session, as `reflect_session` does; `part_of` is the operation that this is a part of."""
    scope = Scope(session=session_id)
    if not rows:
        return Reflection(scope=scope, ending=None, note="nothing to reflect on")
    mark = deps.reflector.mark(rows, target=target)
    if not again and (note := tried(scope, mark, deps)):
        return Reflection(scope=scope, ending=None, read=len(rows), note=note)
    given = material(rows, deps, target=target)
    if dry_run:
        return to_rows(scope, rows, deps.reflector.open().reflect(given), deps)[0]
    with hold(session_id, Lane.REFLECT, deps):
        reflected = reflected_or_noted(deps, given, scope, mark)
        reflection, replaced = to_rows(scope, rows, reflected, deps)
        again_with = reflection.rows if deps.reflector.policy.meta is Meta.WHOLE else ()
        left = deps.reflector.mark((*reflection.left, *again_with), target=target)
        folding = as_folding(reflection, rows, reflected.dropped, replaced, mark, left=left)
        deps.store.reflections.fold(replace(folding, part_of=part_of), now=deps.clock.now())
    return reflection


def tried(scope: Scope, mark: str, deps: Deps) -> str | None:
    """Why rows of this fingerprint need not be tried again; None where they may be."""
    last = deps.store.reflections.last_attempt(scope, mark)
    return last.why_not(mark) if last else None


def is_due(session_id: str, deps: Deps) -> bool:
    """Whether anything of the session is to be folded."""
    return rows_are_due(session_id, deps) or meta_is_due(session_id, deps)


def rows_are_due(session_id: str, deps: Deps) -> bool:
    """Whether the session has grown so much that its rows are to be folded."""
    policy, counter = deps.reflector.policy, deps.counter.name
    stored = deps.store.rows.tokens(session_id)
    if set(stored) <= {counter} and not policy.is_due(sum(stored.values())):
        return False  # known from an index, without reading a row
    rows = rows_to_fold(session_id, deps)
    return policy.is_due(rows_tokens(rows, deps.counter)) and not _tried(session_id, rows, deps)


def meta_is_due(session_id: str, deps: Deps) -> bool:
    """Whether there are so many reflections of a generation that they are folded by themselves."""
    if deps.reflector.policy.meta is not Meta.GENERATIONS:
        return False
    rows = rows_to_fold(session_id, deps, meta=True)
    return len(rows) >= deps.reflector.policy.meta_at and not _tried(session_id, rows, deps)


def reflect_where_due(session_id: str, deps: Deps, *, in_any_case: bool = False) -> Reflection | None:
    """Folds a session's rows where that is due, or `in_any_case`; then its reflections, where that is due.

    The last reflection; None where nothing was due. Raises as `reflect_session` does.
    """
    reflection = None
    if in_any_case or rows_are_due(session_id, deps):
        reflection = reflect_session(session_id, deps)
    if meta_is_due(session_id, deps):
        reflection = reflect_session(session_id, deps, meta=True)
    return reflection


def _tried(session_id: str, rows: Sequence[Observation], deps: Deps) -> bool:
    return tried(Scope(session=session_id), deps.reflector.mark(rows), deps) is not None


def rows_to_fold(session_id: str, deps: Deps, *, meta: bool = False) -> tuple[Observation, ...]:
    """What a reflection is made from, oldest first: observations, and reflections where the policy folds them again.

    With `meta` the reflections of the youngest generation that has two.
    """
    kinds: tuple[Kind, ...] = (Kind.OBSERVATION,)
    if deps.reflector.policy.meta is Meta.WHOLE:
        kinds = (Kind.OBSERVATION, Kind.REFLECTION)
    if meta:
        kinds = (Kind.REFLECTION,)
    query = LogQuery(session=session_id, kinds=kinds)
    rows = [logged.observation for logged in deps.store.rows.log(query)]
    if meta:
        generations = [row.generation for row in rows]
        several = [generation for generation in generations if generations.count(generation) > 1]
        rows = [row for row in rows if row.generation == min(several, default=None)]
    return tuple(sorted(rows, key=lambda row: row.dated))


def material(rows: Sequence[Observation], deps: Deps, *, target: float | None = None) -> Material:
    """Rows with what the policy wants of them."""
    policy = deps.reflector.policy if target is None else replace(deps.reflector.policy, target=target)
    return Material(
        rows=tuple(rows),
        target=policy.target_of(rows_tokens(rows, deps.counter)),
        now=deps.clock.now(),
        protected=frozenset(row.id for row in rows if policy.protects(row)),
        most_rows=policy.rows,
        project=rows[0].project,
    )


def reflected_or_noted(deps: Deps, material: Material, scope: Scope, mark: str, *, part: str = "") -> Reflected:
    """What the reflector makes of rows, or who stands in for it; a failure is noted, and raised.

    `part` says, in front of what failed, which of several parts these rows are.
    """
    if deps.reflector.is_model:
        deps.busy(f"{scope.session or material.project or 'all projects'}: reflecting on {len(material.rows)} rows")
    try:
        return deps.reflector.open().reflect(material)
    except OF_MODELS as error:
        if deps.reflector.stand_in is not None:
            deps.warn(f"{error.message}; reflected by rules")
            return deps.reflector.stand_in.reflect(material)
        error.message = f"{part}{error.message}"
        figures = {"in_vain": isinstance(error, OF_REPLIES)}
        failed = ReflectionWrite(
            scope=scope, fingerprint=mark, ending=ReflectionOutcome.FAILED, error=error.message, figures=figures
        )
        deps.store.reflections.fold(failed, now=deps.clock.now())
        raise
