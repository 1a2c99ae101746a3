"""What was done to memory, and taking it back."""

from __future__ import annotations

from omcli.memory.changes import Recorded
from omcli.memory.ports import Operations
from omcli.memory.record import record
from omcli.operations.clock import Clock


@record
class Undone:
    """An operation that was taken back."""

    undone: Recorded
    """As it was before."""
    by: Recorded


def undo(store: Operations, number: int | None, *, clock: Clock) -> Undone:
    """Takes an operation back, the last one that can be where none is named. Raises NotUndoable."""
    before = {done.number: done for done in store.history()}
    by = store.undo(number, now=clock.now())
    assert by.undoes is not None
    undone = before.get(by.undoes) or next(done for done in store.history() if done.number == by.undoes)
    return Undone(undone=undone, by=by)
