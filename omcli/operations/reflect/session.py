"""Reflecting on a session, or across sessions: observations are folded into fewer rows, lasting ones become items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from omcli.base.errors import OF_MODELS, OF_REPLIES
from omcli.base.record import field, record, replace
from omcli.memory.message import rows_tokens
from omcli.memory.observation import Draft, Dropped, Kind, Observation, Replacement
from omcli.memory.ports import Lane, LogQuery
from omcli.memory.reflection import Material, Reflected, ReflectionOutcome, ReflectionWrite, Scope
from omcli.operations.deps import Deps, Meta, hold
from omcli.operations.observe.rows import as_row, replacements
from omcli.reflectors.cross_session import GlobalBatch, GlobalPlan, limit_tokens, plan_global
from omcli.text.similarity import folded_text


def reflect_session(
    session_id: str, deps: Deps, *, meta: bool = False, dry_run: bool = False, again: bool = False
) -> Reflection:
    """Fold a session's rows; with `meta` its reflections instead.

    Rows that gave nothing before are tried again only if they have changed, or with `again`. `dry_run` writes nothing.
    Raise LaneTaken, StaleBatch if another process has hidden some of the rows, and the reflector's errors; then nothing
    is written.
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
    """Fold these rows of a session like `reflect_session`. `target` overrides the policy's; `part_of` is the operation
    that this one belongs to.
    """
    scope = Scope(session=session_id)
    if not rows:
        return Reflection(scope=scope, ending=None, note="nothing to reflect on")
    mark = deps.reflector.mark(rows, target=target)
    if not again and (note := skip_reason(scope, mark, deps)):
        return Reflection(scope=scope, ending=None, read=len(rows), note=note)
    given = material(rows, deps, target=target)
    if dry_run:
        return to_rows(scope, rows, deps.reflector.open().reflect(given), deps)[0]
    with hold(session_id, Lane.REFLECT, deps):
        reflected = reflect_or_record(deps, given, scope, mark)
        reflection, replaced = to_rows(scope, rows, reflected, deps)
        again_with = reflection.rows if deps.reflector.policy.meta is Meta.WHOLE else ()
        left = deps.reflector.mark((*reflection.left, *again_with), target=target)
        folding = as_fold(reflection, rows, reflected.dropped, replaced, mark, left=left)
        deps.store.reflections.fold(replace(folding, part_of=part_of), now=deps.clock.now())
    return reflection


def skip_reason(scope: Scope, mark: str, deps: Deps) -> str | None:
    """Return the reason for not trying rows with this fingerprint again; None if they may be tried."""
    last = deps.store.reflections.last_attempt(scope, mark)
    return last.why_not(mark) if last else None


def is_due(session_id: str, deps: Deps) -> bool:
    """True if rows of the session are due."""
    return rows_are_due(session_id, deps) or meta_is_due(session_id, deps)


def rows_are_due(session_id: str, deps: Deps) -> bool:
    """True if the session's rows have grown past the policy's threshold."""
    policy, counter = deps.reflector.policy, deps.counter.name
    stored = deps.store.rows.tokens(session_id)
    if set(stored) <= {counter} and not policy.is_due(sum(stored.values())):
        return False  # known from an index, without reading a row
    rows = rows_to_fold(session_id, deps)
    return policy.is_due(rows_tokens(rows, deps.counter)) and not _skip_reason(session_id, rows, deps)


def meta_is_due(session_id: str, deps: Deps) -> bool:
    """True if one generation has enough reflections to be folded."""
    if deps.reflector.policy.meta is not Meta.GENERATIONS:
        return False
    rows = rows_to_fold(session_id, deps, meta=True)
    return len(rows) >= deps.reflector.policy.meta_at and not _skip_reason(session_id, rows, deps)


def reflect_if_due(session_id: str, deps: Deps, *, in_any_case: bool = False) -> Reflection | None:
    """Fold a session's rows if they are due, or `in_any_case`; then its reflections if they are due.

    Return the last reflection; None if nothing was due. Raise as `reflect_session` does.
    """
    reflection = None
    if in_any_case or rows_are_due(session_id, deps):
        reflection = reflect_session(session_id, deps)
    if meta_is_due(session_id, deps):
        reflection = reflect_session(session_id, deps, meta=True)
    return reflection


def _skip_reason(session_id: str, rows: Sequence[Observation], deps: Deps) -> bool:
    return skip_reason(Scope(session=session_id), deps.reflector.mark(rows), deps) is not None


def rows_to_fold(session_id: str, deps: Deps, *, meta: bool = False) -> tuple[Observation, ...]:
    """Return the rows to fold, oldest first: observations, and reflections if the policy folds them again.

    With `meta`, the reflections of the latest generation that has at least two.
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
    """Return rows as material for the reflector, by the policy."""
    policy = deps.reflector.policy if target is None else replace(deps.reflector.policy, target=target)
    return Material(
        rows=tuple(rows),
        target=policy.target_of(rows_tokens(rows, deps.counter)),
        now=deps.clock.now(),
        protected=frozenset(row.id for row in rows if policy.covers(row)),
        most_rows=policy.rows,
        project=rows[0].project,
    )


def reflect_or_record(deps: Deps, material: Material, scope: Scope, mark: str, *, part: str = "") -> Reflected:
    """Return the result of the reflector, or of the rules that stand in for it; record and raise a failure.

    `part` is put in front of the error.
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


T = TypeVar("T")


@record
class Reflection:
    """The outcome of a reflection."""

    scope: Scope
    ending: ReflectionOutcome | None
    """The outcome; None if nothing was tried."""
    read: int = 0
    """Rows it was made from."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Tokens of the rows that stay visible, and of those that replace the others."""
    rows: tuple[Observation, ...] = ()
    """Reflections."""
    items: tuple[Observation, ...] = ()
    left: tuple[Observation, ...] = ()
    """Rows it was made from that stay visible."""
    condensed: int = 0
    """Rows hidden."""
    findings: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    note: str | None = None
    """Reason for not trying or not making anything."""

    @property
    def made(self) -> tuple[Observation, ...]:
        """All rows it made."""
        return (*self.rows, *self.items)


def to_rows(
    scope: Scope, rows: Sequence[Observation], reflected: Reflected, deps: Deps
) -> tuple[Reflection, tuple[Replacement, ...]]:
    """Return the drafts of a reflector as rows, and the rows they replace. `rows` are those it read."""
    drafts = reflected.reflections
    reflections = tuple(_row(draft, Kind.REFLECTION, scope, rows, deps) for draft in drafts)
    forgotten = deps.store.tombstones.match(reflections)
    drafts, reflections = _without(drafts, forgotten), _without(reflections, forgotten)
    items = _new_items(reflected.items, scope, rows, deps)
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
    """Return a reflection as the store writes it.

    `left` is the fingerprint of the rows that remain to be folded; they are not tried again until they change.
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


def _row(draft: Draft, kind: Kind, scope: Scope, rows: Sequence[Observation], deps: Deps) -> Observation:
    """Return a reflection or an item as a row: it belongs to the project of the rows it is made of."""
    made_of = [row for row in rows if row.id in draft.supports]
    is_item = kind is Kind.ITEM
    keys = {seq: key for row in made_of for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return as_row(
        draft,
        row_id=deps.new_id(),
        kind=kind,
        session=None if is_item else scope.session,
        project=next((row.project for row in made_of if row.project), None),
        keys=keys,
        at=deps.clock.now(),
        tokens=deps.counter.text(draft.text),
        counter=deps.counter.name,
        generation=0 if is_item else max((row.generation for row in made_of), default=0) + 1,
    )


def _new_items(
    drafts: Sequence[Draft], scope: Scope, rows: Sequence[Observation], deps: Deps
) -> tuple[Observation, ...]:
    """Return new items as rows.

    A session may hold rows of several projects or of none, for example imported ones.
    """
    if not drafts:
        return ()
    known = {_item_key(logged.observation) for logged in deps.store.rows.log(LogQuery(kinds=(Kind.ITEM,)))}
    fresh = {folded_text(draft.text): draft for draft in reversed(drafts)}
    items = [_row(draft, Kind.ITEM, scope, rows, deps) for draft in reversed(fresh.values())]
    remembered = _without(items, deps.store.tombstones.match(items))
    return tuple(item for item in remembered if _item_key(item) not in known)


def _item_key(item: Observation) -> tuple[str | None, str]:
    return item.project, folded_text(item.text)


# ---- across sessions: rows older than a few days are folded, project by project, in one swap at the end

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
    model fails at a batch, nothing is written and the error names the batch. `dry_run` only returns the plan. Raise
    StaleBatch if another process has hidden some of the rows, and the reflector's errors.
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
    given = replace(material(batch.rows, deps), most_rows=0)  # rows of several sessions are not one story
    reflected = reflect_or_record(deps, given, _SCOPE, mark, part=f"batch {number} of {of}: ")
    return limit_tokens(reflected, target=given.target, counter=deps.counter)


def _write_all(plan: GlobalPlan, parts: list[tuple[GlobalBatch, Reflected]], deps: Deps, mark: str) -> GlobalReflection:
    """Write the result of all batches in one transaction."""
    each = [to_rows(_SCOPE, batch.rows, reflected, deps) for batch, reflected in parts]
    replaced: list[Replacement] = [replacement for _, some in each for replacement in some]
    dropped: list[Dropped] = [gone for _, reflected in parts for gone in reflected.dropped]
    read: list[Observation] = [row for batch, _ in parts for row in batch.rows]
    whole = _sum([reflection for reflection, _ in each])
    snapshot = deps.store.backups.snapshot(now=deps.clock.now()) if whole.ending is ReflectionOutcome.DONE else None
    left = deps.reflector.mark(whole.left)  # new reflections are not folded again
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
