"""Reflecting on a session: its observations are folded into fewer rows, and what lasts is written down as items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from omcli.memory.budget import reaches
from omcli.memory.counting import row_tokens
from omcli.memory.errors import OF_MODELS, OF_REPLIES
from omcli.memory.folding import Ending, Folding, Scope, fingerprint
from omcli.memory.observation import Draft, Kind, Observation, Priority, Status
from omcli.memory.ports import Lane, LogQuery, Replacement
from omcli.memory.record import field, record, replace
from omcli.memory.roles import Dropped, Material, Reflected, Reflector
from omcli.memory.saying import wording
from omcli.operations.drafts import as_row, replacements
from omcli.operations.lanes import held
from omcli.operations.workshop import Workshop

T = TypeVar("T")


class Verbatim(StrEnum):
    """Which rows of high priority stay word for word."""

    NONE = "none"
    OPEN = "open"
    """Those that are open, or hold until somebody says otherwise."""
    HIGH = "high"


class Meta(StrEnum):
    """What becomes of reflections when there is more to reflect on."""

    NEVER = "never"
    """They stay as they are."""
    GENERATIONS = "generations"
    """Several of one generation are folded into one of the next."""
    WHOLE = "whole"
    """They are folded again, together with what is new."""


@record
class Policy:
    """When a session is reflected on, and what is to come of it."""

    tokens: int | None = 20_000
    """As many of its rows are due; None: they never are."""
    inclusive: bool = True
    target: float = 0.5
    """What should remain: a share of what is read (up to 1), or tokens."""
    rows: int = 0
    """The most reflections that may come of it; 0: as many as it takes."""
    verbatim: Verbatim = Verbatim.OPEN
    meta: Meta = Meta.NEVER
    meta_at: int = 5
    """How many reflections of a generation are folded by themselves."""

    def is_due(self, tokens: int) -> bool:
        """Whether so many tokens of rows are to be folded."""
        return self.tokens is not None and reaches(tokens, self.tokens, inclusive=self.inclusive)

    def target_of(self, tokens: int) -> int:
        """What should remain of so many tokens."""
        return int(self.target * tokens) if self.target <= 1 else int(self.target)

    def protects(self, row: Observation) -> bool:
        """Whether a row has to stay word for word."""
        if row.priority is not Priority.HIGH or self.verbatim is Verbatim.NONE:
            return False
        return self.verbatim is Verbatim.HIGH or row.status is Status.OPEN or row.may_change


@record
class Studio:
    """What reflecting works with, beside what observing does."""

    workshop: Workshop
    reflector: Reflector
    policy: Policy
    name: str = "rules"
    """Who reflects, for the ledger of what was tried: another one may do better."""
    is_model: bool = False
    stand_in: Reflector | None = None
    """Who reflects where the reflector fails; None: nobody does."""

    def mark(self, rows: Sequence[Observation]) -> str:
        """The fingerprint of rows, and of how they are folded here: told otherwise, more may come of them."""
        policy = self.policy
        return fingerprint(rows, self.name, str(policy.target), str(policy.rows), policy.verbatim, policy.meta)


@record
class Reflection:
    """What became of the rows of a scope."""

    scope: Scope
    ending: Ending | None
    """None: nothing was tried."""
    read: int = 0
    """Rows it was made from."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Of those rows as they are now, and of what takes the place of the others."""
    rows: tuple[Observation, ...] = ()
    """Reflections."""
    items: tuple[Observation, ...] = ()
    left: tuple[Observation, ...] = ()
    """Of the rows it was made from, those that stay in sight."""
    condensed: int = 0
    """Rows that went out of sight."""
    findings: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    note: str | None = None
    """Why nothing was tried, or nothing came of it."""

    @property
    def made(self) -> tuple[Observation, ...]:
        """All rows that came of it."""
        return (*self.rows, *self.items)


def reflect_session(
    session_id: str, studio: Studio, *, meta: bool = False, dry_run: bool = False, again: bool = False
) -> Reflection:
    """Folds a session's rows. `meta` folds its reflections, and nothing else.

    Rows that nothing could be made of are not tried again, unless `again` says so, until they have changed. `dry_run`
    writes nothing. Raises LaneTaken, StaleBatch where rows went out of sight meanwhile, and what the reflector raises:
    nothing has changed then.
    """
    rows = rows_to_fold(session_id, studio, meta=meta)
    return reflect_rows(rows, session_id, studio, dry_run=dry_run, again=again)


def reflect_rows(
    rows: Sequence[Observation],
    session_id: str,
    studio: Studio,
    *,
    dry_run: bool = False,
    again: bool = False,
    part_of: int | None = None,
) -> Reflection:
    """Folds these rows of a session, as `reflect_session` does; `part_of` is the operation that this is a part of."""
    work = studio.workshop
    scope = Scope(session=session_id)
    if not rows:
        return Reflection(scope=scope, ending=None, note="nothing to reflect on")
    mark = studio.mark(rows)
    if not again and (note := tried(scope, mark, work)):
        return Reflection(scope=scope, ending=None, read=len(rows), note=note)
    given = material(rows, studio)
    if dry_run:
        return made(scope, rows, studio.reflector.reflect(given), work)[0]
    with held(session_id, Lane.REFLECT, work):
        reflected = reflected_or_noted(studio, given, scope, mark)
        reflection, replaced = made(scope, rows, reflected, work)
        again_with = reflection.rows if studio.policy.meta is Meta.WHOLE else ()
        left = studio.mark((*reflection.left, *again_with))
        folding = as_folding(reflection, rows, reflected.dropped, replaced, mark, left=left)
        work.store.fold(replace(folding, part_of=part_of), now=work.clock.now())
    return reflection


def tried(scope: Scope, mark: str, workshop: Workshop) -> str | None:
    """Why rows of this fingerprint need not be tried again; None where they may be."""
    last = workshop.store.last_attempt(scope, mark)
    return last.why_not(mark) if last else None


def is_due(session_id: str, studio: Studio) -> bool:
    """Whether anything of the session is to be folded."""
    return rows_are_due(session_id, studio) or meta_is_due(session_id, studio)


def rows_are_due(session_id: str, studio: Studio) -> bool:
    """Whether the session has grown so much that its rows are to be folded."""
    policy, counter = studio.policy, studio.workshop.counter.name
    stored = studio.workshop.store.visible_tokens(session_id)
    if set(stored) <= {counter} and not policy.is_due(sum(stored.values())):
        return False  # known from an index, without reading a row
    rows = rows_to_fold(session_id, studio)
    return policy.is_due(_tokens(rows, studio.workshop)) and not _tried(session_id, rows, studio)


def meta_is_due(session_id: str, studio: Studio) -> bool:
    """Whether there are so many reflections of a generation that they are folded by themselves."""
    if studio.policy.meta is not Meta.GENERATIONS:
        return False
    rows = rows_to_fold(session_id, studio, meta=True)
    return len(rows) >= studio.policy.meta_at and not _tried(session_id, rows, studio)


def reflect_where_due(session_id: str, studio: Studio, *, in_any_case: bool = False) -> Reflection | None:
    """Folds a session's rows where that is due, or `in_any_case`; then its reflections, where that is due.

    The last reflection; None where nothing was due. Raises as `reflect_session` does.
    """
    reflection = None
    if in_any_case or rows_are_due(session_id, studio):
        reflection = reflect_session(session_id, studio)
    if meta_is_due(session_id, studio):
        reflection = reflect_session(session_id, studio, meta=True)
    return reflection


def _tried(session_id: str, rows: Sequence[Observation], studio: Studio) -> bool:
    return tried(Scope(session=session_id), studio.mark(rows), studio.workshop) is not None


def rows_to_fold(session_id: str, studio: Studio, *, meta: bool = False) -> tuple[Observation, ...]:
    """What a reflection is made from, oldest first: observations, and reflections where the policy folds them again.

    With `meta` the reflections of the youngest generation that has two.
    """
    kinds: tuple[Kind, ...] = (Kind.OBSERVATION,)
    if studio.policy.meta is Meta.WHOLE:
        kinds = (Kind.OBSERVATION, Kind.REFLECTION)
    if meta:
        kinds = (Kind.REFLECTION,)
    query = LogQuery(session=session_id, kinds=kinds)
    rows = [logged.observation for logged in studio.workshop.store.log(query)]
    if meta:
        generations = [row.generation for row in rows]
        several = [generation for generation in generations if generations.count(generation) > 1]
        rows = [row for row in rows if row.generation == min(several, default=None)]
    return tuple(sorted(rows, key=lambda row: row.dated))


def material(rows: Sequence[Observation], studio: Studio) -> Material:
    """Rows with what the policy wants of them."""
    work, policy = studio.workshop, studio.policy
    return Material(
        rows=tuple(rows),
        target=policy.target_of(_tokens(rows, work)),
        now=work.clock.now(),
        protected=frozenset(row.id for row in rows if policy.protects(row)),
        most_rows=policy.rows,
        project=rows[0].project,
    )


def _tokens(rows: Sequence[Observation], workshop: Workshop) -> int:
    return sum(row_tokens(row, workshop.counter) for row in rows)


def reflected_or_noted(studio: Studio, material: Material, scope: Scope, mark: str, *, part: str = "") -> Reflected:
    """What the reflector makes of rows, or who stands in for it; a failure is noted, and raised.

    `part` says, in front of what failed, which of several parts these rows are.
    """
    work = studio.workshop
    if studio.is_model:
        work.busy(f"{scope.session or material.project or 'all projects'}: reflecting on {len(material.rows)} rows")
    try:
        return studio.reflector.reflect(material)
    except OF_MODELS as error:
        if studio.stand_in is not None:
            work.warn(f"{error.message}; reflected by rules")
            return studio.stand_in.reflect(material)
        error.message = f"{part}{error.message}"
        figures = {"in_vain": isinstance(error, OF_REPLIES)}
        failed = Folding(scope=scope, fingerprint=mark, ending=Ending.FAILED, error=error.message, figures=figures)
        work.store.fold(failed, now=work.clock.now())
        raise


def made(
    scope: Scope, rows: Sequence[Observation], reflected: Reflected, workshop: Workshop
) -> tuple[Reflection, tuple[Replacement, ...]]:
    """What a reflector came to, as rows, and what those take the place of. `rows` are those that it read."""
    drafts = reflected.reflections
    reflections = tuple(_row(draft, Kind.REFLECTION, scope, rows, workshop) for draft in drafts)
    forgotten = workshop.store.are_forgotten(reflections)
    drafts, reflections = _without(drafts, forgotten), _without(reflections, forgotten)
    items = _new_items(reflected.items, scope, rows, workshop)
    replaced = replacements(drafts, reflections)
    gone = {replacement.row for replacement in replaced} | {dropped.row for dropped in reflected.dropped}
    stay = [row for row in rows if row.id not in gone]
    before, after = _tokens(rows, workshop), _tokens((*stay, *reflections), workshop)
    came_to_something = bool(reflections or items or reflected.dropped)
    reflection = Reflection(
        scope=scope,
        ending=Ending.DONE if came_to_something else Ending.EMPTY,
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


def as_folding(
    reflection: Reflection,
    rows: Sequence[Observation],
    dropped: Sequence[Dropped],
    replaced: Sequence[Replacement],
    mark: str,
    *,
    left: str | None = None,
) -> Folding:
    """A reflection as the store writes it down.

    `left` is the fingerprint of what would be folded next, so that nobody is asked to until that changes.
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
    return Folding(
        scope=reflection.scope,
        fingerprint=mark,
        ending=reflection.ending,
        read=tuple(row.id for row in rows),
        rows=(*reflection.rows, *reflection.items),
        replaced=tuple(replaced),
        dropped=tuple(dropped),
        figures=figures,
    )


def _row(draft: Draft, kind: Kind, scope: Scope, rows: Sequence[Observation], workshop: Workshop) -> Observation:
    """A reflection or an item as a row: it is made of some of those that were read, and belongs where they do."""
    made_of = [row for row in rows if row.id in draft.supports]
    is_item = kind is Kind.ITEM
    keys = {seq: key for row in made_of for seq, key in zip(row.sources, row.message_ids, strict=True)}
    return as_row(
        draft,
        kind=kind,
        session=None if is_item else scope.session,
        project=next((row.project for row in made_of if row.project), None),
        keys=keys,
        workshop=workshop,
        generation=0 if is_item else max((row.generation for row in made_of), default=0) + 1,
    )


def _new_items(
    drafts: Sequence[Draft], scope: Scope, rows: Sequence[Observation], workshop: Workshop
) -> tuple[Observation, ...]:
    """Lasting facts as rows, without those that are known already where they belong.

    A session can hold rows of several projects and of none, as those that were imported into it.
    """
    if not drafts:
        return ()
    known = {_belonging(logged.observation) for logged in workshop.store.log(LogQuery(kinds=(Kind.ITEM,)))}
    fresh = {wording(draft.text): draft for draft in reversed(drafts)}
    items = [_row(draft, Kind.ITEM, scope, rows, workshop) for draft in reversed(fresh.values())]
    remembered = _without(items, workshop.store.are_forgotten(items))
    return tuple(item for item in remembered if _belonging(item) not in known)


def _belonging(item: Observation) -> tuple[str | None, str]:
    return item.project, wording(item.text)
