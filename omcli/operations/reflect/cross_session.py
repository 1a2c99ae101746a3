"""Reflecting across sessions: rows older than a few days are folded by project, and all are written at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.record import record, replace
from omcli.memory.observation import Kind, LogQuery
from omcli.memory.reflection import Scope
from omcli.operations.deps import Deps
from omcli.operations.reflect.session import (
    FoldBatch,
    FoldSink,
    RecordedReflector,
    Reflection,
    material,
    skip_reason,
    sum_reflections,
)
from omcli.reflectors.cross_session import GlobalPlan, limit_tokens, plan_global

_SCOPE = Scope()
_KINDS = (Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)


@record
class GlobalReflection:
    plan: GlobalPlan
    reflection: Reflection
    """The sum over all batches. Its `ending` is None if nothing was tried."""
    projects: tuple[Reflection, ...] = ()
    """The sum of each project's batches. One without a project has `scope.project` None."""
    snapshot: str | None = None
    """Path of the copy of the store made before the change, or None if nothing was changed or the store is temporary.
    """


def reflect_cross_session(
    deps: Deps, *, min_age: float, batch_tokens: int, dry_run: bool = False, again: bool = False
) -> GlobalReflection:
    """Fold rows that are at least `min_age` days old, whatever their session, in batches of up to `batch_tokens` (see
    `plan_global`).

    All batches are reflected on first. If any can be folded, the store is then copied, and everything is written in one
    transaction. Rows that yielded nothing before, or whose folding was undone, are skipped until they change, unless
    `again` is set. If the model fails, no row is changed and the error names the batch. `dry_run` only returns the
    plan. Raise StaleBatch if another process has hidden some of the rows, and the reflector's errors.
    """
    rows = [logged.observation for logged in deps.store.rows.log(LogQuery(kinds=_KINDS))]
    plan = plan_global(rows, now=deps.clock.now(), min_age=min_age, batch_tokens=batch_tokens, counter=deps.counter)
    read = [row for batch in plan.batches for row in batch.rows]
    if dry_run or not read:
        note = None if read else "nothing to reflect on"
        return GlobalReflection(plan=plan, reflection=Reflection(scope=_SCOPE, ending=None, note=note))
    mark = deps.reflector.mark(read)
    if not again and (note := skip_reason(_SCOPE, mark, deps)):
        return GlobalReflection(plan=plan, reflection=Reflection(scope=_SCOPE, ending=None, note=note))
    sink = FoldSink(_SCOPE, mark, deps, backs_up=True)
    recorded = RecordedReflector(_SCOPE, mark, deps)
    for batch in _batches(plan, deps):
        reflected = recorded.reflect(batch)
        given = batch.material
        sink.write(batch, limit_tokens(reflected, given.rows, target=given.target, counter=deps.counter))
    reflection = sink.fold()
    projects = _by_project(plan, sink.parts)
    return GlobalReflection(plan=plan, reflection=reflection, projects=projects, snapshot=sink.snapshot)


def _batches(plan: GlobalPlan, deps: Deps) -> Iterator[FoldBatch]:
    for number, batch in enumerate(plan.batches, start=1):
        given = replace(material(batch.rows, deps), most_rows=0)  # rows of several sessions do not form one story
        yield FoldBatch(material=given, part=f"batch {number} of {len(plan.batches)}: ")


def _by_project(plan: GlobalPlan, parts: Sequence[Reflection]) -> tuple[Reflection, ...]:
    found: dict[str | None, list[Reflection]] = {}
    for batch, part in zip(plan.batches, parts, strict=True):
        found.setdefault(batch.project, []).append(part)
    return tuple(
        replace(sum_reflections(_SCOPE, some), scope=Scope(project=project)) for project, some in found.items()
    )
