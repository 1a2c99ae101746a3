"""Going back to the memory of a moment, in a private copy of the store."""

from __future__ import annotations

from collections.abc import Callable

from omcli.base.errors import NotUndoable
from omcli.base.record import record
from omcli.memory.changes import CutResult, Operation, OperationKind
from omcli.memory.ports import Operations
from omcli.text.instants import minute

_DELETING = frozenset({OperationKind.PRUNE, OperationKind.FORGET})
"""Kinds of operations whose hidden messages and rows can be permanently deleted."""


@record
class EarlierStore:
    """The result of taking a copy of the store back to a moment."""

    messages: int
    """Number of messages that were removed, because they came later."""
    operations: int
    """Number of operations that were undone."""
    lost: tuple[int, ...]
    """Numbers of later operations that permanently deleted messages or rows, which the copy lacks."""
    undated: frozenset[str]
    """Ids of sessions whose removed messages may be older than the moment (see `CutResult.undated`)."""


def take_back(operations: Operations, cut_after: Callable[[str], CutResult], moment: str) -> EarlierStore:
    """Undo the operations made after a moment, the newest first, and remove everything else that came after it.

    Raise NotUndoable if the memory of that moment cannot be restored: if an operation in force then was undone later,
    if a later one cannot be undone (except those in `lost`), or if rows folded by then cite messages that are dated
    later.
    """
    history = operations.history()
    later = [done for done in history if done.at > moment]
    held = {done.number: done for done in history if done.at <= moment}
    undone, lost = 0, []
    for done in later:
        if done.undoes in held:
            raise _unknown(moment, f"operation {done.undoes} was in force then, and was undone by {done.number} later")
        if done.verb in _DELETING and done.final_at is not None:
            lost.append(done.number)
        elif done.final_at is not None and done.undone_by is None:
            raise _unknown(moment, f"rows that operation {done.number} folded later were permanently deleted")
        elif done.can_be_undone:
            _undo(operations, done, moment)
            undone += 1
    found = cut_after(moment)
    if found.is_mixed:
        raise _unknown(moment, "rows were folded by then whose messages have a later date")
    return EarlierStore(messages=found.messages, operations=undone, lost=tuple(lost), undated=found.undated)


def _undo(operations: Operations, done: Operation, moment: str) -> None:
    try:
        operations.undo(done.number, now=moment)
    except NotUndoable as error:
        raise _unknown(moment, error.message) from error


def _unknown(moment: str, reason: str) -> NotUndoable:
    return NotUndoable(f"the memory of {minute(moment)} cannot be restored: {reason}", hint="try another time")
