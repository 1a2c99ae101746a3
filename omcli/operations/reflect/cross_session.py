"""Reflecting across sessions: rows older than a few days are folded by project, and all are written at the end."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain

from omcli.base.errors import StaleBatch
from omcli.base.record import field, mutable_record, record, replace
from omcli.llm.schema import RULED, rules_of_user
from omcli.memory.message import TokenCounter, row_tokens
from omcli.memory.observation import Draft, Kind, LogQuery, Observation
from omcli.memory.ports import Store
from omcli.memory.reflection import Reflected, RowOutline, Scope
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
from omcli.pack.budget import last_fitting
from omcli.reflectors.drafts import repeats, rules_in
from omcli.text.clean import word_end
from omcli.text.phrases import words_of
from omcli.text.similarity import is_about

_SCOPE = Scope()
_KINDS = (Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)
GLOBAL = "global-prune"
"""Tag of rows made by folding across sessions. These rows are not folded again."""
_FEWEST = 20
"""Reflections are not cut to fewer tokens than this, because shorter ones would be meaningless."""
_MARKER = "… [truncated {} chars]"


@mutable_record
class GlobalBatch:
    """Rows of one project or of none, from any session, that are folded together."""

    project: str | None
    begins: str
    ends: str
    """Instants of the oldest and of the newest row."""
    tokens: int = 0
    rows: array[int] = field(default_factory=lambda: array("q"))
    """Positions in the log, the oldest row's first."""


@record
class GlobalPlan:
    batches: tuple[GlobalBatch, ...]
    """Rows to fold. The batches of each project are in order, the oldest first."""
    kept: int
    """Number of visible rows, apart from items, that are in no batch."""


@record
class GlobalReflection:
    plan: GlobalPlan
    reflection: Reflection
    """The sum over all batches. Its `ending` is None if nothing was tried."""
    projects: tuple[Reflection, ...] = ()
    """For each project, the sum of its batches. For rows without a project, `scope.project` is None."""
    snapshot: str | None = None
    """Path of the copy of the store made before the change, or None if nothing was changed or the store is temporary.
    """


def reflect_cross_session(
    deps: Deps, *, min_age: float, batch_tokens: int, dry_run: bool = False, again: bool = False
) -> GlobalReflection:
    """Fold rows that are at least `min_age` days old, whatever their session, by project, in batches of up to
    `batch_tokens`. Pinned and open rows, items, and rows made by folding across sessions are kept.

    All batches are reflected on first. If any can be folded, the store is then copied, and everything is written in one
    transaction. Nothing is tried, unless `again` is set, if exactly these rows yielded nothing before, were left by an
    earlier fold, or were folded and this was undone. If the model fails and rules do not stand in for it, no row is
    changed and the error names the batch. `dry_run` only returns the plan. Raise StaleBatch if another process has
    hidden some of the rows, and the reflector's errors.
    """
    plan = _plan(deps, before=end_of_age(deps.clock.now(), min_age), batch_tokens=batch_tokens)
    if dry_run or not plan.batches:
        note = None if plan.batches else "nothing to reflect on"
        return GlobalReflection(plan=plan, reflection=Reflection(scope=_SCOPE, ending=None, note=note))
    mark = _mark(plan, deps)
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


def _plan(deps: Deps, *, before: str, batch_tokens: int) -> GlobalPlan:
    rows = deps.store.reflections.outline(before=before, kept=GLOBAL, counter=deps.counter.name)
    batches = batches_of(rows, batch_tokens=batch_tokens, counter=deps.counter)
    visible = deps.store.sessions.row_count(_KINDS)
    return GlobalPlan(batches=batches, kept=visible - sum(len(batch.rows) for batch in batches))


def batches_of(rows: Iterable[RowOutline], *, batch_tokens: int, counter: TokenCounter) -> tuple[GlobalBatch, ...]:
    """Divide rows, given project by project and there oldest first, into batches of up to `batch_tokens`. A larger row
    gets a batch of its own. The batches of the project with the oldest row come first.
    """
    batches: list[GlobalBatch] = []
    oldest: dict[str | None, tuple[str, int]] = {}
    for row in rows:
        size = counter.text(row.tokens) if isinstance(row.tokens, str) else row.tokens
        if row.project not in oldest or batches[-1].tokens + size > batch_tokens:
            oldest.setdefault(row.project, (row.dated, row.position))
            batches.append(GlobalBatch(project=row.project, begins=row.dated, ends=row.dated))
        batch = batches[-1]
        batch.rows.append(row.position)
        batch.ends = row.dated
        batch.tokens += size
    return tuple(sorted(batches, key=lambda batch: oldest[batch.project]))


def end_of_age(now: str, days: float) -> str:
    """Return the instant before which rows are at least this many days old, or "" if there is none. Fractions of a
    second don't count.
    """
    try:
        last = datetime.fromisoformat(now.removesuffix("Z")).replace(microsecond=0) - timedelta(days=days)
        return (last + timedelta(seconds=1)).isoformat(timespec="seconds")
    except OverflowError:
        return ""


def reason_to_skip(plan: GlobalPlan, deps: Deps) -> str | None:
    """Return the reason not to fold the rows of a plan again, or None if they may be folded."""
    if deps.store.reflections.last_attempt(_SCOPE) is None:
        return None  # the ids of all rows would be read
    return skip_reason(_SCOPE, _mark(plan, deps), deps)


def ids_of(batch: GlobalBatch, store: Store) -> list[str]:
    """Return the ids of the rows of a batch, even if they were folded since."""
    found = {position: row for row, position in store.reflections.ids(batch.rows)}
    return [found[position] for position in batch.rows if position in found]


def kept_ids(found: GlobalReflection, store: Store) -> list[str]:
    """Return the ids of the visible rows, apart from items, that were in no batch and that the folds did not make."""
    folded = set(chain.from_iterable(batch.rows for batch in found.plan.batches))
    made = {row.id for row in found.reflection.made}
    rows = store.rows.log(LogQuery(kinds=_KINDS, bare=True))
    return [row.observation.id for row in rows if row.position not in folded and row.observation.id not in made]


def _mark(plan: GlobalPlan, deps: Deps) -> str:
    rows = deps.store.reflections.ids(chain.from_iterable(batch.rows for batch in plan.batches))
    return deps.reflector.mark_of(row for row, _ in rows)


def _batches(plan: GlobalPlan, deps: Deps) -> Iterator[FoldBatch]:
    for number, batch in enumerate(deps.each(plan.batches, "batch"), start=1):
        found = [logged.observation for logged in deps.store.index.rows(batch.rows, LogQuery())]
        if len(found) < len(batch.rows):
            raise StaleBatch(
                "rows were replaced by another process meanwhile", hint="nothing was changed; run it again"
            )
        rows = sorted(found, key=lambda row: row.dated)
        given = replace(material(rows, deps), most_rows=0)  # rows of several sessions do not form one story
        yield FoldBatch(material=given, part=f"batch {number} of {len(plan.batches)}: ")


def _by_project(plan: GlobalPlan, parts: Sequence[Reflection]) -> tuple[Reflection, ...]:
    found: dict[str | None, list[Reflection]] = {}
    for batch, part in zip(plan.batches, parts, strict=True):
        found.setdefault(batch.project, []).append(part)
    return tuple(
        replace(sum_reflections(_SCOPE, some), scope=Scope(project=project)) for project, some in found.items()
    )


def limit_tokens(reflected: Reflected, rows: Sequence[Observation], *, target: int, counter: TokenCounter) -> Reflected:
    """Tag the reflections of a batch of `rows` with `GLOBAL`, and limit them to `target` tokens in total if possible.

    If they are too long, each reflection is cut to an equal share. If that is not enough, the last reflections are
    removed until the others fit or one is left. A row stays visible if its shortened reflection is not about the row,
    or lacks a rule of the user that the row contains. A reflection that would then replace no row is removed. If the
    rows would not become shorter, all of them stay.
    """
    drafts = [replace(draft, tags=tuple(dict.fromkeys((*draft.tags, GLOBAL)))) for draft in reflected.reflections]
    if sum(counter.text(draft.text) for draft in drafts) <= target:
        return replace(reflected, reflections=tuple(drafts))
    share = max(_FEWEST, target // len(drafts))
    known = {row.id: row for row in rows}
    left = [_cut_draft(draft, share, known, counter) for draft in drafts]
    left = [draft for draft, whole in zip(left, drafts, strict=True) if draft.replaces or not whole.replaces]
    while len(left) > 1 and sum(counter.text(draft.text) for draft in left) > target:
        left.pop()
    hidden = {row for draft in left for row in draft.replaces} | {gone.row for gone in reflected.dropped}
    freed = sum(row_tokens(row, counter) for row in rows if row.id in hidden)
    if sum(counter.text(draft.text) for draft in left) >= freed:
        return Reflected(items=reflected.items, attempts=reflected.attempts)
    findings = {**reflected.findings, "trimmed": len(drafts) - len(left)}
    return replace(reflected, reflections=tuple(left), findings={name: n for name, n in findings.items() if n})


def _cut_draft(draft: Draft, most: int, rows: Mapping[str, Observation], counter: TokenCounter) -> Draft:
    """Return a draft that is cut to `most` tokens. It replaces and supports only rows that the remaining text is about,
    and whose rules of the user this text repeats.
    """
    text = _cut(draft.text, most, counter)
    if text == draft.text:
        return draft
    replaces, supports = (
        tuple(each for each in some if is_about(text.lower(), rows[each].text) and _is_repeated(rows[each], text))
        for some in (draft.replaces, draft.supports)
    )
    ruled = rules_in(text, map(rows.__getitem__, supports))
    metadata = {name: value for name, value in draft.metadata.items() if name != RULED}
    return replace(draft, text=text, replaces=replaces, supports=supports, metadata={**metadata, **ruled})


def _is_repeated(row: Observation, text: str) -> bool:
    return all(repeats(text, said) or repeats(text, words_of(said)) for said in rules_of_user(row))


def _cut(text: str, most: int, counter: TokenCounter) -> str:
    """Cut text after a word, unless half would be lost by that, so that it fits into `most` tokens with a marker."""
    if counter.text(text) <= most:
        return text

    def cut(chars: int) -> str:
        return text[:chars] + _MARKER.format(len(text) - chars)

    fitting = last_fitting(lambda chars: counter.text(cut(chars)) <= most, 1, len(text) - 1)
    return cut(word_end(text, fitting, least=fitting // 2) or fitting)
