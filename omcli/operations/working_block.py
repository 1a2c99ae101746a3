"""The working-memory block of a session."""

from __future__ import annotations

from omcli.base.record import record
from omcli.memory.changes import UNDONE
from omcli.memory.observation import Kind
from omcli.memory.ports import LogQuery, Store, TokenCounter
from omcli.operations.context import Place, chosen
from omcli.pack.working_block import WorkingBlock
from omcli.pack.working_block import working_block as block_of


@record
class Blocked:
    """A block, whose it is, and what people should know about how it came about."""

    block: WorkingBlock
    session: str | None
    note: str | None = None


def working_block(store: Store, place: Place, *, budget: int, counter: TokenCounter) -> Blocked:
    """The block of the session that `om context` chooses as well, from all of its rows that were not taken back. Only
    reads."""
    session, note = chosen(store, place)
    name = session.id if session else place.session
    query = LogQuery(session=name, kinds=(Kind.OBSERVATION, Kind.NOTE), hidden=True)
    everything = (logged.observation for logged in store.log(query)) if name else ()
    rows = tuple(row for row in everything if row.reason != UNDONE)
    if session is None and name:
        note = None if rows else f"there is no session `{name}`"
    block = block_of(rows, cwd=session.cwd if session else None, budget=budget, counter=counter)
    return Blocked(block=block, session=name, note=note)
