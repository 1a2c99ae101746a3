"""What was done to memory, and taking it back."""

from __future__ import annotations

from omcli.base.record import record
from omcli.memory.changes import Recorded, Undoing
from omcli.memory.ports import Operations
from omcli.operations.clock import Clock


@record
class Undone:
    """An operation that was taken back, or would be."""

    undoing: Undoing
    by: Recorded | None = None
    """None where nothing was done."""


def undo(store: Operations, number: int | None, *, clock: Clock, dry_run: bool = False) -> Undone:
    """Takes an operation back, the last one that can be where none is named; `dry_run` only looks.

    Raises NotUndoable.
    """
    undoing = store.undoing(number)
    return Undone(undoing=undoing, by=None if dry_run else store.undo(undoing.undone.number, now=clock.now()))
