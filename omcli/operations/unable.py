"""Where nobody can be asked to do what is due: what can be done all the same is, and the rest is noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from omcli.base.errors import OF_MODELS, InputOutput, OmError, TryAgain
from omcli.base.record import record, replace
from omcli.memory.ports import Outcome
from omcli.memory.reflection import Ending, Folding, Scope
from omcli.operations import reflect
from omcli.operations.studio import Policy, Studio
from omcli.operations.tick import Due, Trigger, due
from omcli.operations.workshop import Workshop


@record
class Able:
    """What can be done, and what cannot."""

    studio: Studio
    when: Due
    missing: tuple[Missing, ...] = ()

    @property
    def errors(self) -> tuple[OmError, ...]:
        """What keeps models from being asked, each thing once: as who observes is told of it, where both are."""
        return tuple({each.error.message: each.error for each in reversed(self.missing)}.values())[::-1]

    def note(self, sessions: Sequence[str] | None) -> None:
        """Writes down what could not be done, where it is due."""
        for each in self.missing:
            note_unable(each.studio, each.when, each.error, sessions)


class Missing(NamedTuple):
    """Who cannot be asked, and why; by the studio and the rules nothing but their work is due."""

    studio: Studio
    when: Due
    error: OmError


def able(
    rules: Studio, when: Due, observing: Callable[[Workshop], Workshop], reflecting: Callable[[Workshop], Studio]
) -> Able:
    """Where the one who observes or the one who reflects can't be asked, the other's work is done all the same.

    `rules` tell what is due; the others give who works, and raise where that cannot be had.
    """
    nothing_observed, nothing_folded = replace(when, trigger=Trigger.MANUAL), Policy(tokens=None)
    workshop, missing, able_when = rules.workshop, list[Missing](), when
    try:
        workshop = observing(workshop)
    except OF_MODELS as error:
        missing.append(Missing(replace(rules, policy=nothing_folded), when, error))
        able_when = nothing_observed
    try:
        studio = reflecting(workshop)
    except OF_MODELS as error:
        missing.append(Missing(rules, nothing_observed, error))
        studio = replace(rules, workshop=workshop, policy=nothing_folded)
    return Able(studio=studio, when=able_when, missing=tuple(missing))


def note_unable(studio: Studio, when: Due, error: OmError, sessions: Sequence[str] | None = None) -> None:
    """Writes the failure down in the lanes that are due, of some sessions or of all, as one of a model's is.

    So it is told with the others, until something succeeds there. `studio` needs nobody who works: it is not asked.
    """
    for found in due(studio, when, sessions=sessions):
        with suppress(TryAgain, InputOutput):  # what it is about is told in any case
            if found.observe or found.ahead:
                _note_observing(found.session, studio.workshop, error)
            if found.reflect:
                _note_reflecting(found.session, studio, error)


def _note_observing(session: str, workshop: Workshop, error: OmError) -> None:
    batch = workshop.store.unobserved(session, max_tokens=workshop.batch_tokens)
    if batch is not None:
        workshop.store.record(batch, (), outcome=Outcome.FAILED, now=workshop.clock.now(), error=error.message)


def _note_reflecting(session: str, studio: Studio, error: OmError) -> None:
    rows = reflect.rows_to_fold(session, studio)
    failed = Folding(
        scope=Scope(session=session),
        fingerprint=studio.mark(rows),
        ending=Ending.FAILED,
        error=error.message,
        figures={"in_vain": False},
    )
    studio.workshop.store.fold(failed, now=studio.workshop.clock.now())
