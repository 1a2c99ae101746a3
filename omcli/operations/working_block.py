"""The working-memory block of a session: the rows it is made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from omcli.base.record import record, replace
from omcli.memory.changes import UNDONE
from omcli.memory.message import TokenCounter
from omcli.memory.observation import Kind, LogQuery, Observation, Type
from omcli.memory.ports import Store
from omcli.operations.context import Place, in_log_order, session_of_pack
from omcli.pack.working_block import WorkingBlock
from omcli.pack.working_block import working_block as block_of

if TYPE_CHECKING:
    from omcli.operations.deps import Deps

_NEWEST, _LASTING = 1_250, 150
"""A block is made from `_NEWEST` of the session's newest observations, and from `_LASTING` notes and as many
observations of `_LASTING_TYPES`, however old they are, so that it takes the same time for any session.
"""
_LASTING_TYPES = (
    *(Type.REQUEST, Type.QUESTION, Type.DECISION, Type.INSTRUCTION, Type.CORRECTION, Type.PREFERENCE),
    *(Type.BLOCKER, Type.TASK, Type.PLAN, Type.TODO_UPDATED),
)
"""Types of rows that say what is to be done, and how: those of the index `observations_lasting`, in its order."""


@record
class BlockResult:
    """A working-memory block, its session, and a message to the user about the choice of the session, if any."""

    block: WorkingBlock
    session: str | None
    note: str | None = None


def working_block(
    store: Store, place: Place, *, budget: int, counter: TokenCounter, rules: Callable[[], Deps]
) -> BlockResult:
    """Return the working-memory block of the session that `om context` would choose. Superseded and dropped rows are
    used too, except rows made by operations that were undone.

    The store is only read. Pending messages are observed for this block only, by the observer of `rules`.
    """
    session, note = session_of_pack(store, place)
    name = session.id if session else place.session
    found, older = _rows(store, name) if name else ((), 0)
    rows = tuple(row for row in found if row.reason != UNDONE)
    if session is not None and store.batches.pending(session.id).messages:
        from omcli.operations.observe.rows import provisional_rows  # noqa: PLC0415 - usually nothing is pending

        rows = provisional_rows(session.id, rules()).after(rows)
    if session is None and name:
        note = None if rows else f"unknown session `{name}`"
    cwd = session.cwd if session else None
    return BlockResult(
        block=block_of(rows, cwd=cwd, budget=budget, counter=counter, older=older), session=name, note=note
    )


def _rows(store: Store, session: str) -> tuple[tuple[Observation, ...], int]:
    """Return a session's observations and notes in log order, hidden ones too, and the number of older observations
    that are left out. Of a session with `_NEWEST` observations or more, only the rows described there are read.
    """
    query = LogQuery(session=session, hidden=True)
    notes, observations = replace(query, kinds=(Kind.NOTE,)), replace(query, kinds=(Kind.OBSERVATION,))
    newest = tuple(store.rows.log(replace(observations, last=_NEWEST)))
    if len(newest) < _NEWEST:
        return in_log_order((*newest, *store.rows.log(notes))), 0
    lasting = [notes]
    if sum(row.observation.type in _LASTING_TYPES for row in newest) < _LASTING:
        lasting.append(replace(observations, types=_LASTING_TYPES))
    # A row that replaced an older one by observing may not be among the rows that are read.
    older = (row for part in lasting for row in store.rows.log(replace(part, last=_LASTING, without_replaced=True)))
    rows = in_log_order((*newest, *older))
    return rows, store.sessions.row_count((Kind.OBSERVATION,), session=session, hidden=True) - sum(
        row.kind is Kind.OBSERVATION for row in rows
    )
