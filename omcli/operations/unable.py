"""Noting that nobody could be asked to do what is due: a missing key, a setting that makes no sense."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from omcli.memory.errors import InputOutput, OmError, TryAgain
from omcli.memory.folding import Ending, Folding, Scope
from omcli.memory.ports import Outcome
from omcli.operations import reflect
from omcli.operations.studio import Studio
from omcli.operations.tick import Due, due
from omcli.operations.workshop import Workshop


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
