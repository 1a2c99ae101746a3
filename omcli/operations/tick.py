"""What is due: sessions that have grown enough are observed, then reflected on; everything else is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from omcli.memory.budget import reaches
from omcli.memory.errors import OF_MATERIAL, LaneTaken, OmError, StaleBatch
from omcli.memory.message import Role
from omcli.memory.observation import Observation
from omcli.memory.ports import Pending
from omcli.memory.record import record, replace
from omcli.operations import reflect
from omcli.operations.observe_session import observe_session
from omcli.operations.reflect import Reflection, Studio
from omcli.operations.workshop import Workshop

OF_ONE_SESSION = (*OF_MATERIAL, LaneTaken, StaleBatch)
"""What keeps no other session from being worked on."""
_ALL = 1_000_000_000
"""More tokens than any session has."""


class Trigger(StrEnum):
    """What observing waits for."""

    TOKENS = "tokens"
    TURN = "turn"
    """The end of a turn: the agent has answered."""
    TOOL = "tool"
    """A tool's result."""
    MANUAL = "manual"
    """Nothing: it is done by hand."""


@record
class Due:
    """When a session's messages are to be observed."""

    trigger: Trigger = Trigger.TOKENS
    tokens: int = 10_000
    inclusive: bool = True
    batches: int | None = None
    """How many batches at once; None: until nothing waits."""
    block_after: int = 0
    """From so many tokens on whoever brought them waits for them to be observed; 0: never."""


@record
class Ticked:
    """What was due of a session, and what came of it."""

    session: str
    observe: bool
    """Whether observing was due."""
    reflect: bool
    """Whether reflecting was due."""
    rows: tuple[Observation, ...] = ()
    reflection: Reflection | None = None
    error: OmError | None = None
    """What ended the work on it; what was done before stays done."""


def due(studio: Studio, when: Due, *, session: str | None = None) -> Iterator[Ticked]:
    """The sessions of which something is due; nothing is done."""
    for session_id, has_pending, has_rows in _sessions(studio.workshop, session):
        observe = has_pending and _is_due(session_id, studio.workshop, when)
        fold = has_rows and reflect.is_due(session_id, studio)
        if observe or fold:
            yield Ticked(session=session_id, observe=observe, reflect=fold)


def tick(studio: Studio, when: Due, *, session: str | None = None) -> Iterator[Ticked]:
    """Does what is due: first a session is observed, then, as it is after that, reflected on.

    What goes wrong with a session is said in its report. It is the last one if each would go wrong: where an endpoint
    is down, or a store locked.
    """
    for found in due(studio, when, session=session):
        ticked = _ticked(found, studio, when)
        yield ticked
        if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
            return


def overdue(session_id: str, workshop: Workshop, when: Due) -> int | None:
    """Tokens of a session that wait, where they are too many for whoever brought them to go on; else None."""
    if not when.block_after or when.trigger is Trigger.MANUAL:
        return None
    tokens, _ = waiting(session_id, workshop)
    return tokens if reaches(tokens, when.block_after, inclusive=when.inclusive) else None


def _ticked(found: Ticked, studio: Studio, when: Due) -> Ticked:
    rows: list[Observation] = []
    try:
        if found.observe:
            for step in observe_session(found.session, studio.workshop, batches=when.batches):
                rows += step.rows
        reflection = _reflected(found.session, studio)
        return replace(found, reflect=reflection is not None, rows=tuple(rows), reflection=reflection)
    except OmError as error:
        return replace(found, rows=tuple(rows), error=error)


def _reflected(session_id: str, studio: Studio) -> Reflection | None:
    reflection = None
    if reflect.rows_are_due(session_id, studio):
        reflection = reflect.reflect_session(session_id, studio)
    if reflect.meta_is_due(session_id, studio):
        reflection = reflect.reflect_session(session_id, studio, meta=True)
    return reflection


def _sessions(workshop: Workshop, session: str | None) -> Iterator[tuple[str, bool, bool]]:
    """All sessions, or the one, whether anything of each waits, and whether any of its rows are in sight."""
    store = workshop.store
    if session is None:
        for summary in store.sessions():
            yield summary.session.id, summary.pending > 0, summary.observations > 0
    elif store.session(session) is not None:  # without a look at all the others
        yield session, store.pending(session).messages > 0, bool(store.visible_tokens(session))


def _is_due(session_id: str, workshop: Workshop, when: Due) -> bool:
    if when.trigger is Trigger.MANUAL:
        return False
    if when.trigger is Trigger.TOKENS:
        # What was offered and gave nothing yet is offered again when as much has come to it.
        return all(reaches(tokens, when.tokens, inclusive=when.inclusive) for tokens in waiting(session_id, workshop))
    batch = workshop.store.unobserved(session_id, max_tokens=_ALL)
    if batch is None or batch.deferred_through >= batch.through:
        return False
    if when.trigger is Trigger.TOOL:
        return any(kept.message.role is Role.RESULT for kept in batch.messages)
    main = [kept for kept in batch.messages if kept.message.agent is None]
    return bool(main) and main[-1].message.role is Role.ASSISTANT


def waiting(session_id: str, workshop: Workshop) -> tuple[int, int]:
    """Tokens that no observation covers, and those of them that were not offered yet; by the workshop's counter."""
    counter, pending = workshop.counter, workshop.store.pending(session_id)
    if set(pending.tokens) <= {counter.name}:
        return _sums(pending)
    batch = workshop.store.unobserved(session_id, max_tokens=_ALL)
    messages = batch.messages if batch else ()
    offered = batch.deferred_through if batch else 0
    fresh = [kept for kept in messages if kept.seq > offered]
    return sum(counter.message(kept.message) for kept in messages), sum(counter.message(kept.message) for kept in fresh)


def _sums(pending: Pending) -> tuple[int, int]:
    return sum(pending.tokens.values()), sum(pending.fresh_tokens.values())
