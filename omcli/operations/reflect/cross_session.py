"""Reflecting across sessions: what is older than a few days is folded, project by project, in one swap at the end."""

from __future__ import annotations

from omcli.base.record import record, replace
from omcli.memory.observation import Dropped, Kind, Observation, Replacement
from omcli.memory.ports import LogQuery
from omcli.memory.reflection import Reflected, ReflectionOutcome, Scope
from omcli.operations.deps import Deps
from omcli.operations.reflect.session import Reflection, as_fold, material, reflect_or_record, skip_reason, to_rows
from omcli.reflectors.cross_session import GlobalBatch, GlobalPlan, limit_tokens, plan_global

_SCOPE = Scope()
_KINDS = (Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)


@record
class GlobalReflection:
    """The outcome of a reflection across sessions."""

    plan: GlobalPlan
    reflection: Reflection
    """The sum of all batches; `ending` is None if nothing was written."""
    snapshot: str | None = None
    """The copy of the store made before the change."""


def reflect_cross_session(
    deps: Deps, *, min_age: float, batch_tokens: int, dry_run: bool = False, again: bool = False
) -> GlobalReflection:
    """Fold rows of all sessions that are older than `min_age` days, in batches of at most `batch_tokens`.

    All batches are reflected on first; then the store is copied, and everything is written in one transaction. If the
    model fails at a batch, nothing is written: the error names the batch. `dry_run` only returns the plan. Raises
    StaleBatch if rows were hidden meanwhile, and the errors of the reflector.
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
    parts = [
        (batch, _reflected(batch, deps, mark, number=number, of=len(plan.batches)))
        for number, batch in enumerate(plan.batches, start=1)
    ]
    return _write_all(plan, parts, deps, mark)


def _reflected(batch: GlobalBatch, deps: Deps, mark: str, *, number: int, of: int) -> Reflected:
    given = replace(material(batch.rows, deps), most_rows=0)  # rows of several sessions are no one story
    reflected = reflect_or_record(deps, given, _SCOPE, mark, part=f"batch {number} of {of}: ")
    return limit_tokens(reflected, target=given.target, counter=deps.counter)


def _write_all(plan: GlobalPlan, parts: list[tuple[GlobalBatch, Reflected]], deps: Deps, mark: str) -> GlobalReflection:
    """Everything is written, or nothing."""
    each = [to_rows(_SCOPE, batch.rows, reflected, deps) for batch, reflected in parts]
    replaced: list[Replacement] = [replacement for _, some in each for replacement in some]
    dropped: list[Dropped] = [gone for _, reflected in parts for gone in reflected.dropped]
    read: list[Observation] = [row for batch, _ in parts for row in batch.rows]
    whole = _sum([reflection for reflection, _ in each])
    snapshot = deps.store.backups.snapshot(now=deps.clock.now()) if whole.ending is ReflectionOutcome.DONE else None
    left = deps.reflector.mark(whole.left)  # what was made is not folded again
    deps.store.reflections.fold(as_fold(whole, read, dropped, replaced, mark, left=left), now=deps.clock.now())
    return GlobalReflection(plan=plan, reflection=whole, snapshot=snapshot)


def _sum(reflections: list[Reflection]) -> Reflection:
    findings: dict[str, int] = {}
    for reflection in reflections:
        for name, number in reflection.findings.items():
            findings[name] = findings.get(name, 0) + number
    items = {(item.project, item.text): item for reflection in reflections for item in reflection.items}
    is_done = any(reflection.ending is ReflectionOutcome.DONE for reflection in reflections)
    return Reflection(
        scope=_SCOPE,
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
