"""Observing what a session's messages say that no observation covers yet, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omcli.memory.errors import OF_MODELS, CutOff, Looped, OmError, PromptTooLong
from omcli.memory.observation import Observation
from omcli.memory.ports import Batch, Lane, Outcome
from omcli.memory.record import field, record
from omcli.memory.roles import Observed, Observer
from omcli.operations.drafts import replacements, rows_of
from omcli.operations.lanes import held
from omcli.operations.workshop import Workshop

STANDING_ROWS = 150
"""Rows an observer is shown of what was written before: the newest, and the newest that may change."""
_MOST_HALVINGS = 4
"""How often a batch is made smaller since the model cannot read so much at once."""


@record
class Step:
    """What became of a batch."""

    rows: tuple[Observation, ...]
    message_tokens: int
    """Of the messages that are covered now."""
    findings: Mapping[str, int] = field(default_factory=dict)
    """`Observed.findings`."""


def observe_session(session_id: str, workshop: Workshop, *, batches: int | None = None) -> Iterator[Step]:
    """Observes a session's messages until none is left, or so many batches, and yields each once it is written.

    What an observer could make nothing of yet, and was followed by nothing since, is not offered to it again. Raises
    LaneTaken while somebody else is at it, StaleBatch where somebody was quicker, and what the observer raises: nothing
    was written then, and the messages wait for the next run.
    """
    store = workshop.store
    if store.unobserved(session_id, max_tokens=1) is None:
        return  # no need to wait for somebody else
    with held(session_id, Lane.OBSERVE, workshop) as extend:
        session = store.session(session_id)
        project = session.project if session else None
        reading = _Reading(session_id, workshop)
        done = 0
        while (batches is None or done < batches) and (batch := reading.next_batch()):
            extend()
            reading.tell(batch)
            batch, observed = reading.observed(batch)
            yield _write(batch, observed, project, workshop)
            done += 1


class _Reading:
    """A session's batches, made smaller where a model turns out to need that."""

    def __init__(self, session_id: str, workshop: Workshop) -> None:
        self._session_id = session_id
        self._workshop = workshop
        self._tokens = workshop.batch_tokens
        self._messages = workshop.batch_messages

    def next_batch(self) -> Batch | None:
        """What is to be observed next; None where all that is left was offered before, and nothing has followed it."""
        batch = self._workshop.store.unobserved(
            self._session_id, max_tokens=self._tokens, max_messages=self._messages, standing=STANDING_ROWS
        )
        if batch is None or (batch.deferred_through >= batch.through and _is_end(batch, self._workshop)):
            return None
        return batch

    def tell(self, batch: Batch) -> None:
        """Says what is waited for, where a model is asked."""
        work = self._workshop
        if work.is_model:
            waiting = work.store.pending(self._session_id).messages
            work.busy(f"{self._session_id}: observing {len(batch.messages)} of {waiting} messages that wait")

    def observed(self, batch: Batch) -> tuple[Batch, Observed]:
        """What the observer makes of a batch, or of as much of it as it can take."""
        halvings, observer = 0, _observer(self._workshop)
        while True:
            try:
                return batch, observer.observe(batch)
            except (CutOff, PromptTooLong) as error:
                if isinstance(error, Looped):
                    observer = self._workshop.after_loop or observer
                halvings += isinstance(error, PromptTooLong)
                smaller = self._half(batch) if halvings <= _MOST_HALVINGS else None
                if smaller is None:
                    return batch, self._instead(batch, error)
                batch = smaller
            except OF_MODELS as error:
                return batch, self._instead(batch, error)

    def _half(self, batch: Batch) -> Batch | None:
        """The first half of a batch, and from now on none is larger; None where it can't be parted."""
        self._tokens = max(1, sum(kept.tokens for kept in batch.messages) // 2)
        self._messages = len(batch.messages) // 2
        smaller = self.next_batch() if self._messages else None
        return smaller if smaller and len(smaller.messages) < len(batch.messages) else None

    def _instead(self, batch: Batch, error: OmError) -> Observed:
        """What the observer that stands in makes of it; without one the failure is noted and raised."""
        work = self._workshop
        if work.stand_in is not None:
            work.warn(f"{error.message}; observed by rules")
            return work.stand_in.observe(batch)
        work.store.record(batch, (), outcome=Outcome.FAILED, now=work.clock.now(), error=error.message)
        raise error


def _observer(workshop: Workshop) -> Observer:
    assert workshop.observer is not None, "where nobody observes, nothing is read to be observed"
    return workshop.observer


def _write(batch: Batch, observed: Observed, project: str | None, workshop: Workshop) -> Step:
    store, now = workshop.store, workshop.clock.now()
    rows = rows_of(batch, observed.drafts, project=project, workshop=workshop)
    outcome = Outcome.OBSERVED if rows else Outcome.EMPTY
    if not rows and not observed.is_final and _is_end(batch, workshop):
        outcome = Outcome.DEFERRED
    store.record(
        batch,
        rows,
        outcome=outcome,
        now=now,
        replaced=replacements(observed.drafts, rows),
        used=observed.used,
        title=observed.title,
    )
    tokens = 0 if outcome is Outcome.DEFERRED else sum(kept.tokens for kept in batch.messages)
    return Step(rows=rows, message_tokens=tokens, findings=observed.findings)


def _is_end(batch: Batch, workshop: Workshop) -> bool:
    """Whether nothing waits behind a batch: only then can it be offered again together with more."""
    return workshop.store.pending(batch.session).messages <= len(batch.messages)
