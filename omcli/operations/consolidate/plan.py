"""What `om consolidate` would do; nothing is written, and nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base.record import record
from omcli.memory.daily_notes import Note
from omcli.memory.reflection import Scope
from omcli.operations.consolidate import daily_notes
from omcli.operations.consolidate.run import Agenda, is_going_on
from omcli.operations.deps import Deps
from omcli.operations.prune import Pruned, prune
from omcli.operations.reflect import session as reflect
from omcli.operations.reflect.cross_session import reflect_globally
from omcli.reflectors.cross_session import GlobalPlan


@record
class Waiting:
    """A session with something to do."""

    session: str
    pending: int
    """Messages that would be observed, as far as they have been taken in."""
    reflect: bool


@record
class Foreseen:
    """What would be done, as far as that is known before it begins."""

    files: tuple[str, ...]
    """Those that would be read."""
    sessions: tuple[Waiting, ...]
    going_on: tuple[str, ...]
    notes: tuple[tuple[Note, bool, bool], ...]
    """With whether they would be taken in, and moved."""
    plan: GlobalPlan | None
    pruned: Pruned | None
    backup: bool


def foreseen(agenda: Agenda, deps: Deps) -> Foreseen:
    """What would be done. Raises NoInput where there is no such folder of notes."""
    going_on, plan = [], None
    if agenda.session is None:
        summaries = deps.store.sessions.summaries()
        going_on = [each.session.id for each in summaries if each.pending and is_going_on(each, deps.clock)]
        whole = reflect_globally(deps, min_age=agenda.min_age, batch_tokens=agenda.batch_tokens, dry_run=True)
        plan = None if reflect.tried(Scope(), _mark(whole.plan, deps), deps) else whole.plan
    notes = daily_notes.foreseen(agenda.notebook, deps.store, agenda.archiving) if agenda.notebook else ()
    return Foreseen(
        files=tuple(source.input.name for source in agenda.sources),
        sessions=tuple(_waiting(agenda, deps)),
        going_on=tuple(going_on),
        notes=tuple(notes),
        plan=plan,
        pruned=None if agenda.rules.is_empty else _pruned(agenda, deps),
        backup=bool(agenda.backups) and deps.store.backups.is_due(now=deps.clock.now()),
    )


def _mark(plan: GlobalPlan, deps: Deps) -> str:
    return deps.reflector.mark([row for batch in plan.batches for row in batch.rows])


def _pruned(agenda: Agenda, deps: Deps) -> Pruned:
    return prune(deps.store, agenda.rules, counter=deps.counter, clock=deps.clock, dry_run=True)


def _waiting(agenda: Agenda, deps: Deps) -> Iterator[Waiting]:
    for summary in deps.store.sessions.summaries():
        session = summary.session.id
        if agenda.session not in (None, session) or (agenda.session is None and is_going_on(summary, deps.clock)):
            continue
        folds = agenda.session is not None or reflect.is_due(session, deps)
        if summary.pending or folds:
            yield Waiting(session=session, pending=summary.pending, reflect=folds)
