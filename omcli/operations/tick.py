"""Due work: observing the sessions that are due, then reflecting on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from omcli.base.errors import OF_ONE_SESSION, OmError
from omcli.base.record import record, replace
from omcli.memory.buffer import BufferPolicy
from omcli.memory.message import UNLIMITED, Role, reaches
from omcli.memory.observation import Observation
from omcli.operations.deps import Deps, Meta
from omcli.operations.observe.buffer import WaitingMessages, waiting_messages
from omcli.operations.observe.rows import Step
from omcli.operations.observe.session import observe_ahead, observe_session, write_buffered
from omcli.operations.reflect import session as reflect
from omcli.operations.reflect.session import Reflection


class Trigger(StrEnum):
    """Condition that makes observing due."""

    TOKENS = "tokens"
    TURN = "turn"
    """The end of a turn, when the agent has answered."""
    TOOL = "tool"
    """A tool call's result."""
    MANUAL = "manual"
    """Observing is never due."""


@record
class Due:
    """Conditions under which a session's messages are due to be observed, and the number to observe at once."""

    trigger: Trigger = Trigger.TOKENS
    tokens: int = 10_000
    inclusive: bool = True
    batches: int | None = None
    """Maximum number of batches per tick. None means no limit."""
    block_after: int = 0
    """Number of pending tokens at which the command that ingested the messages observes them itself (see `overdue`). 0
    means never.
    """
    ahead: BufferPolicy | None = None
    """When to observe ahead. None means never."""
    floor: int = 0
    """Minimum number of tokens left unobserved when buffered batches are written. One batch is written in any case."""
    reflects: bool = True
    """False if reflecting is never due."""
    is_free: bool = False
    """True if rules observe. They cost nothing, so a single pending token is enough (`tokens` is 1), and a command
    observes at once, instead of leaving this to a worker, if no other process is observing.
    """


@record
class TickReport:
    """The work due in a session, and its outcome."""

    session: str
    observe: bool
    """True if observing was due."""
    reflect: bool
    """True if reflecting was due; once the work is done, True if it was due after observing."""
    ahead: bool = False
    """True if observing ahead was due."""
    rows: tuple[Observation, ...] = ()
    activated: int = 0
    """Number of buffered batches that were written."""
    blocks: tuple[int, ...] = ()
    """Number of messages in each batch that was observed ahead."""
    reflection: Reflection | None = None
    error: OmError | None = None
    """Error that ended work on the session. Finished steps are not undone."""

    @property
    def made(self) -> tuple[Observation, ...]:
        return (*self.rows, *(self.reflection.made if self.reflection else ()))


def due(deps: Deps, when: Due, *, sessions: Sequence[str] | None = None) -> Iterator[TickReport]:
    """Yield the sessions with work due, among the given ones or all, without doing any of it.

    Work for which a session waits because a model failed is not due.
    """
    for session_id, has_pending, has_rows in _sessions(deps, when, sessions):
        observe = has_pending and _is_due(session_id, deps, when)
        ahead = has_pending and not observe and _step(session_id, deps, when) is not None
        if (observe or ahead) and deps.observer.waits(session_id):
            observe = ahead = False
        fold = when.reflects and has_rows and reflect.is_due(session_id, deps)
        if observe or ahead or fold:
            yield TickReport(session=session_id, observe=observe, ahead=ahead, reflect=fold)


def tick(deps: Deps, when: Due, *, sessions: Sequence[str] | None = None) -> Iterator[TickReport]:
    """Do the work due in each of the given sessions or all: observe it or observe ahead, then reflect. Yield a report
    of each session.

    A session that another process has just finished is omitted. An error is part of the session's report. An error that
    would affect every session, such as a locked store, ends the run.
    """
    for found in due(deps, when, sessions=sessions):
        ticked = _tick_session(found, deps, when)
        if ticked is None:
            continue
        yield ticked
        if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
            return


def overdue(session_id: str, deps: Deps, when: Due) -> int | None:
    """Return a session's pending tokens if they reach `Due.block_after`, so that a background worker would be too slow,
    otherwise None.

    Buffered messages do not count. With `Trigger.MANUAL`, nothing is overdue.
    """
    if not when.block_after or when.trigger is Trigger.MANUAL:
        return None
    tokens = waiting_messages(session_id, deps, ahead=True).tokens
    return tokens if reaches(tokens, when.block_after, inclusive=when.inclusive) else None


def _tick_session(found: TickReport, deps: Deps, when: Due) -> TickReport | None:
    """Do the work due in a session. Return None if another process has just finished it."""
    is_done = False
    try:
        for step in _observed(found, deps, when):
            is_done = True
            found = replace(
                found,
                rows=(*found.rows, *step.rows),
                activated=found.activated + step.is_activated,
                blocks=(*found.blocks, step.ahead) if step.ahead else found.blocks,
            )
        reflection = reflect.reflect_if_due(found.session, deps) if when.reflects else None
    except OmError as error:
        return replace(found, error=error)
    if not is_done and reflection is None and not any(due(deps, when, sessions=[found.session])):
        return None
    return replace(found, reflect=reflection is not None, reflection=reflection)


def _observed(found: TickReport, deps: Deps, when: Due) -> Iterator[Step]:
    """Observe ahead if that is due. If observing is due instead, write buffered batches, then observe the rest if that
    is still due.
    """
    name = found.session

    def is_due() -> bool:
        return _is_due(name, deps, when)

    if found.ahead:
        yield from observe_ahead(name, deps, step=lambda: _step(name, deps, when))
    if not found.observe:
        return
    if waiting_messages(name, deps).blocks:
        yield from write_buffered(name, deps, floor=when.floor, is_due=is_due)
    yield from observe_session(name, deps, batches=when.batches, is_due=is_due)


def _sessions(deps: Deps, when: Due, wanted: Sequence[str] | None) -> Iterator[tuple[str, bool, bool]]:
    """Yield each session that may have work due, with two flags: True if it has pending messages, and True if it has
    visible rows.
    """
    store = deps.store
    if wanted is None:
        policy = deps.reflector.policy
        wanted = store.sessions.with_work(
            deps.counter.name,
            pending=_due_from(when),
            rows=policy.tokens if when.reflects else None,
            reflections=policy.meta_at if when.reflects and policy.meta is Meta.GENERATIONS else None,
        )
    for session in dict.fromkeys(wanted):
        if store.sessions.find(session) is not None:
            yield session, store.batches.pending(session).messages > 0, bool(store.rows.tokens(session))


def _due_from(when: Due) -> int | None:
    """Return the number of pending tokens below which nothing is due to be observed, now or ahead. None means never."""
    if when.trigger is Trigger.MANUAL:
        return None
    if when.trigger is not Trigger.TOKENS:
        return 0
    ahead = (when.ahead.at, when.ahead.every, when.ahead.late) if when.ahead else ()
    return min((when.tokens, *filter(None, ahead)))


def _is_due(session_id: str, deps: Deps, when: Due) -> bool:
    if when.trigger is Trigger.MANUAL:
        return False
    if when.trigger is Trigger.TOKENS:
        return _is_over(waiting_messages(session_id, deps), when)
    batch = deps.store.batches.unobserved(session_id, max_tokens=UNLIMITED)
    if batch is None or batch.deferred_through >= batch.through:
        return False
    if batch.is_late:
        return True
    if when.trigger is Trigger.TOOL:
        return any(kept.message.role is Role.RESULT for kept in batch.messages)
    main = [kept for kept in batch.messages if kept.message.agent is None]
    return bool(main) and main[-1].message.role is Role.ASSISTANT


def _is_over(waits: WaitingMessages, when: Due) -> bool:
    # Messages that yielded nothing are offered again once enough new ones have arrived. This does not apply to
    # messages observed ahead, which yielded something or were followed by others.
    tokens = waits.tokens if waits.blocks else min(waits.tokens, waits.fresh)
    return reaches(tokens, when.tokens, inclusive=when.inclusive)


def _step(session_id: str, deps: Deps, when: Due) -> int | None:
    """Return the maximum number of tokens to observe ahead next, or None if not due."""
    if when.ahead is None or when.trigger is not Trigger.TOKENS:
        return None
    waits, left = waiting_messages(session_id, deps), waiting_messages(session_id, deps, ahead=True)
    is_due = when.ahead.is_due(waiting=waits.tokens, fresh=left.fresh, messages=left.messages, blocks=left.blocks)
    return (when.ahead.step(waits.tokens) or UNLIMITED) if is_due and not _is_over(waits, when) else None
