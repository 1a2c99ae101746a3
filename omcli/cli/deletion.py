"""Deleting for good: nobody does so without having said it, and everybody is told what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.base.errors import BadUsage
from omcli.cli.console import Exit, counted, size
from omcli.cli.run import Run, is_typed

if TYPE_CHECKING:
    from omcli.memory.changes import EraseResult, Operation

_REFUSED = 1


def confirm(run: Run, what: str, *, is_sure: bool) -> None:
    """Asks whether `what` is to be deleted for good. Raises BadUsage where nobody can be asked; Exit for a no."""
    if is_sure:
        return
    answer = run.console.ask(f"Delete {what} for good? [y/N]") if is_typed() else None
    if answer is None:
        raise BadUsage(f"`--hard` deletes {what} for good", hint="say `--yes`, or see with `--dry-run` what that is")
    if answer.lower() not in {"y", "yes"}:
        run.console.note("nothing was deleted")
        raise Exit(_REFUSED)


def tell(run: Run, erased: EraseResult, *, besides: int = 0) -> None:
    """Says how much room was given back, and which copies may hold yet what was deleted.

    `besides` are rows that were deleted and that nobody was told of yet.
    """
    if besides:
        run.console.report(f"{counted(besides, 'row')} out of sight went as well: what those had taken the place of")
    freed = max(0, erased.bytes_before - erased.bytes_after)
    was, now = size(erased.bytes_before), size(erased.bytes_after)
    run.console.report(f"{size(freed)} freed: the store had {was}, and has {now}")
    if copies := run.wiring.backups:
        names = ", ".join(path.name for path in copies)
        run.console.note(f"{counted(len(copies), 'backup')} beside the store may still hold it: {names}")


def besides(done: Operation | None, rows: int) -> int:
    """How many rows an operation deleted beside those that were named."""
    deleted = done.figures.get("rows") if done else None
    return max(0, deleted - rows) if isinstance(deleted, int) else 0


def as_dict(run: Run, erased: EraseResult) -> dict[str, object]:
    """The same as JSON output has it."""
    return {
        "bytes_before": erased.bytes_before,
        "bytes_after": erased.bytes_after,
        "bytes_freed": max(0, erased.bytes_before - erased.bytes_after),
        "backups": [str(path) for path in run.wiring.backups],
    }
