"""What is due: sessions that have grown enough are observed, then reflected on; everything else is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from omcli.base.errors import OF_ONE_SESSION, OmError
from omcli.base.record import record, replace
from omcli.memory.buffer import BufferPolicy
from omcli.memory.message import Role
from omcli.memory.observation import Observation
from omcli.operations.deps import Deps
from omcli.operations.observe.buffered import Backlog, backlog
from omcli.operations.observe.session import observe_ahead, observe_session, write_buffered
from omcli.operations.observe.sinks import Step
from omcli.operations.reflect import session as reflect
from omcli.operations.reflect.rows import Reflection
from omcli.pack.budget import UNLIMITED, reaches


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
    ahead: BufferPolicy | None = None
    """When some of it is observed before that; None: never."""
    floor: int = 0
    """Tokens that stay unobserved when what was observed ahead is written down."""


@record
class Ticked:
    """What was due of a session, and what came of it."""

    session: str
    observe: bool
    """Whether observing was due."""
    reflect: bool
    """Whether reflecting was due."""
    ahead: bool = False
    """Whether observing ahead was due."""
    rows: tuple[Observation, ...] = ()
    activated: int = 0
    """How many blocks were written down."""
    blocks: tuple[int, ...] = ()
    """The messages of each block that was observed ahead."""
    reflection: Reflection | None = None
    error: OmError | None = None
    """What ended the work on it; what was done before stays done."""

    @property
    def made(self) -> tuple[Observation, ...]:
        """All rows that came of it."""
        return (*self.rows, *(self.reflection.made if self.reflection else ()))


def due(deps: Deps, when: Due, *, sessions: Sequence[str] | None = None) -> Iterator[Ticked]:
    """Those of some sessions, or of all, of which something is due; nothing is done."""
    for session_id, has_pending, has_rows in _sessions(deps, sessions):
        observe = has_pending and _is_due(session_id, deps, when)
        ahead = has_pending and not observe and _step(session_id, deps, when) is not None
        fold = has_rows and reflect.is_due(session_id, deps)
        if observe or ahead or fold:
            yield Ticked(session=session_id, observe=observe, ahead=ahead, reflect=fold)


def tick(deps: Deps, when: Due, *, sessions: Sequence[str] | None = None) -> Iterator[Ticked]:
    """Does what is due: first a session is observed, or observed ahead, then, as it is after that, reflected on.

    Of a session that somebody else has done meanwhile nothing is said. What goes wrong with one is said in its report.
    It is the last one if each would go wrong: where an endpoint is down, or a store locked.
    """
    for found in due(deps, when, sessions=sessions):
        ticked = _ticked(found, deps, when)
        if ticked is None:
            continue
        yield ticked
        if ticked.error is not None and not isinstance(ticked.error, OF_ONE_SESSION):
            return


def overdue(session_id: str, deps: Deps, when: Due) -> int | None:
    """Tokens of a session that wait, where they are too many for whoever brought them to go on; else None.

    What was observed ahead keeps nobody waiting.
    """
    if not when.block_after or when.trigger is Trigger.MANUAL:
        return None
    tokens = backlog(session_id, deps, ahead=True).tokens
    return tokens if reaches(tokens, when.block_after, inclusive=when.inclusive) else None


def _ticked(found: Ticked, deps: Deps, when: Due) -> Ticked | None:
    """What came of a session; None where it is not due any more, and that is not our doing."""
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
        reflection = reflect.reflect_where_due(found.session, deps)
    except OmError as error:
        return replace(found, error=error)
    if not is_done and reflection is None and not any(due(deps, when, sessions=[found.session])):
        return None
    return replace(found, reflect=reflection is not None, reflection=reflection)


def _observed(found: Ticked, deps: Deps, when: Due) -> Iterator[Step]:
    """What was observed ahead is written down, which asks nobody; the rest is observed where it is due all the same."""
    name = found.session

    def is_due() -> bool:
        return _is_due(name, deps, when)

    if found.ahead:
        yield from observe_ahead(name, deps, step=lambda: _step(name, deps, when))
    if not found.observe:
        return
    if backlog(name, deps).blocks:
        yield from write_buffered(name, deps, floor=when.floor, is_due=is_due)
    yield from observe_session(name, deps, batches=when.batches, is_due=is_due)


def _sessions(deps: Deps, wanted: Sequence[str] | None) -> Iterator[tuple[str, bool, bool]]:
    """Sessions that are there, whether anything of each waits, and whether any of its rows are in sight."""
    store = deps.store
    if wanted is None:
        for summary in store.sessions.summaries():
            yield summary.session.id, summary.pending > 0, summary.observations > 0
        return
    for session in dict.fromkeys(wanted):  # without a look at all the others
        if store.sessions.find(session) is not None:
            yield session, store.batches.pending(session).messages > 0, bool(store.rows.tokens(session))


def _is_due(session_id: str, deps: Deps, when: Due) -> bool:
    if when.trigger is Trigger.MANUAL:
        return False
    if when.trigger is Trigger.TOKENS:
        return _are_enough(backlog(session_id, deps), when)
    batch = deps.store.batches.unobserved(session_id, max_tokens=UNLIMITED)
    if batch is None or batch.deferred_through >= batch.through:
        return False
    if batch.is_late:
        return True
    if when.trigger is Trigger.TOOL:
        return any(kept.message.role is Role.RESULT for kept in batch.messages)
    main = [kept for kept in batch.messages if kept.message.agent is None]
    return bool(main) and main[-1].message.role is Role.ASSISTANT


def _are_enough(waits: Backlog, when: Due) -> bool:
    # What was offered and gave nothing yet is offered again when as much has come to it. What was observed ahead gave
    # something, or was not the end.
    tokens = waits.tokens if waits.blocks else min(waits.tokens, waits.fresh)
    return reaches(tokens, when.tokens, inclusive=when.inclusive)


def _step(session_id: str, deps: Deps, when: Due) -> int | None:
    """Of how many tokens the next block may be; None where none is due."""
    if when.ahead is None or when.trigger is not Trigger.TOKENS:
        return None
    waits, left = backlog(session_id, deps), backlog(session_id, deps, ahead=True)
    is_due = when.ahead.is_due(waiting=waits.tokens, fresh=left.fresh, messages=left.messages, blocks=left.blocks)
    return (when.ahead.step(waits.tokens) or UNLIMITED) if is_due and not _are_enough(waits, when) else None
