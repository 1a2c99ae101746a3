"""What a reflector came to: its drafts as rows, and all of it as the store writes it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from omcli.base.record import field, record
from omcli.memory.observation import Draft, Dropped, Kind, Observation, Replacement
from omcli.memory.ports import LogQuery
from omcli.memory.reflection import Reflected, ReflectionOutcome, ReflectionWrite, Scope
from omcli.memory.tokens import rows_tokens
from omcli.operations.deps import Deps
from omcli.operations.observe.rows import as_row, replacements
from omcli.text.similarity import wording

T = TypeVar("T")


@record
class Reflection:
    """What became of the rows of a scope."""

    scope: Scope
    ending: ReflectionOutcome | None
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


def to_rows(
    scope: Scope, rows: Sequence[Observation], reflected: Reflected, deps: Deps
) -> tuple[Reflection, tuple[Replacement, ...]]:
    """What a reflector came to, as rows, and what those take the place of. `rows` are those that it read."""
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


def as_folding(
    reflection: Reflection,
    rows: Sequence[Observation],
    dropped: Sequence[Dropped],
    replaced: Sequence[Replacement],
    mark: str,
    *,
    left: str | None = None,
) -> ReflectionWrite:
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
    """A reflection or an item as a row: it is made of some of those that were read, and belongs where they do."""
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
        counter=deps.counter,
        generation=0 if is_item else max((row.generation for row in made_of), default=0) + 1,
    )


def _new_items(
    drafts: Sequence[Draft], scope: Scope, rows: Sequence[Observation], deps: Deps
) -> tuple[Observation, ...]:
    """Lasting facts as rows, without those that are known already where they belong.

    A session can hold rows of several projects and of none, as those that were imported into it.
    """
    if not drafts:
        return ()
    known = {_belonging(logged.observation) for logged in deps.store.rows.log(LogQuery(kinds=(Kind.ITEM,)))}
    fresh = {wording(draft.text): draft for draft in reversed(drafts)}
    items = [_row(draft, Kind.ITEM, scope, rows, deps) for draft in reversed(fresh.values())]
    remembered = _without(items, deps.store.tombstones.match(items))
    return tuple(item for item in remembered if _belonging(item) not in known)


def _belonging(item: Observation) -> tuple[str | None, str]:
    return item.project, wording(item.text)
