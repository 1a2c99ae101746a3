"""What `om consolidate` would do; nothing is written, and nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base.record import record
from omcli.memory.daily_notes import Note
from omcli.memory.reflection import Scope
from omcli.operations.consolidate import daily_notes
from omcli.operations.consolidate.run import Agenda, is_going_on
from omcli.operations.deps import Studio
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


def foreseen(agenda: Agenda, studio: Studio) -> Foreseen:
    """What would be done. Raises NoInput where there is no such folder of notes."""
    work = studio.workshop
    going_on, plan = [], None
    if agenda.session is None:
        summaries = work.store.sessions.summaries()
        going_on = [each.session.id for each in summaries if each.pending and is_going_on(each, work.clock)]
        whole = reflect_globally(studio, min_age=agenda.min_age, batch_tokens=agenda.batch_tokens, dry_run=True)
        plan = None if reflect.tried(Scope(), _mark(whole.plan, studio), work) else whole.plan
    notes = daily_notes.foreseen(agenda.notebook, work.store, agenda.archiving) if agenda.notebook else ()
    return Foreseen(
        files=tuple(source.input.name for source in agenda.sources),
        sessions=tuple(_waiting(agenda, studio)),
        going_on=tuple(going_on),
        notes=tuple(notes),
        plan=plan,
        pruned=None if agenda.rules.is_empty else _pruned(agenda, studio),
        backup=bool(agenda.backups) and work.store.backups.is_due(now=work.clock.now()),
    )


def _mark(plan: GlobalPlan, studio: Studio) -> str:
    return studio.mark([row for batch in plan.batches for row in batch.rows])


def _pruned(agenda: Agenda, studio: Studio) -> Pruned:
    work = studio.workshop
    return prune(work.store, agenda.rules, counter=work.counter, clock=work.clock, dry_run=True)


def _waiting(agenda: Agenda, studio: Studio) -> Iterator[Waiting]:
    work = studio.workshop
    for summary in work.store.sessions.summaries():
        session = summary.session.id
        if agenda.session not in (None, session) or (agenda.session is None and is_going_on(summary, work.clock)):
            continue
        folds = agenda.session is not None or reflect.is_due(session, studio)
        if summary.pending or folds:
            yield Waiting(session=session, pending=summary.pending, reflect=folds)
