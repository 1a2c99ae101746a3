"""Permanent deletion: asking for confirmation and reporting the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage
from omcli.cli.command import Run, is_terminal_input
from omcli.cli.console import Exit, counted, size

if TYPE_CHECKING:
    from omcli.memory.changes import EraseResult, Operation

_REFUSED = 1


def confirm(run: Run, what: str, *, is_sure: bool) -> None:
    """Ask before permanently deleting `what`, unless `is_sure`. Raise BadUsage if stdin or stderr is not a terminal,
    and Exit if the answer is not yes.
    """
    if is_sure:
        return
    answer = run.console.ask(f"Permanently delete {what}? [y/N]") if is_terminal_input() else None
    if answer is None:
        raise BadUsage(f"`--hard` permanently deletes {what}", hint="add `--yes`, or `--dry-run` to list them")
    if answer.lower() not in {"y", "yes"}:
        run.console.note("nothing was deleted")
        raise Exit(_REFUSED)


def report_erase(run: Run, erased: EraseResult, *, besides: int = 0) -> None:
    """Report the freed space, and the backups that may still contain what was deleted.

    `besides` is the number of deleted rows that have not been printed.
    """
    if besides:
        run.console.report(f"{counted(besides, 'hidden row')} deleted as well, replaced by those")
    freed = max(0, erased.bytes_before - erased.bytes_after)
    was, now = size(erased.bytes_before), size(erased.bytes_after)
    run.console.report(f"{size(freed)} freed: {was} before, {now} now")
    if copies := run.wiring.backups:
        names = ", ".join(path.name for path in copies)
        run.console.note(f"{counted(len(copies), 'backup')} beside the store may still contain it: {names}")


def other_rows(done: Operation | None, rows: int) -> int:
    """Return the number of rows that an operation deleted in addition to the `rows` printed."""
    deleted = done.figures.get("rows") if done else None
    return max(0, deleted - rows) if isinstance(deleted, int) else 0


def as_dict(run: Run, erased: EraseResult) -> dict[str, object]:
    return {
        "bytes_before": erased.bytes_before,
        "bytes_after": erased.bytes_after,
        "bytes_freed": max(0, erased.bytes_before - erased.bytes_after),
        "backups": [str(path) for path in run.wiring.backups],
    }
