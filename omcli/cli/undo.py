"""`om undo`: take back what was done to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument, option
from omcli.cli.completion import operation_numbers
from omcli.cli.history import as_dict, came_to
from omcli.cli.options import Run, with_shared
from omcli.cli.output import row_line
from omcli.memory.record import replace
from omcli.memory.rows import full_row, message

if TYPE_CHECKING:
    from omcli.memory.changes import Undoing
    from omcli.operations.history import Undone

EXAMPLES = """\b
om undo
om undo --dry-run
om history && om undo 12
"""


@with_shared(without=["counter"])
def undo(
    run: Run,
    number: Annotated[
        int | None,
        argument(
            metavar="[N]",
            min=1,
            help="The number of the operation, as in `om history`.",
            autocompletion=operation_numbers,
        ),
    ] = None,
    *,
    dry_run: Annotated[bool, option("--dry-run", help="Only show what would come back.")] = False,
) -> None:
    """Take back an operation, the last one if none is named.

    It is a reflection, a compaction, a pruning or a forgetting. What it took out of sight is there again, what it
    made is not. What another operation has taken out of sight as well stays so until that is undone too, in any
    order; a message that waited to be observed waits again. What a reflection made can't be taken away while
    another operation stands on it: that one is undone first. What was deleted for good is not to be had back.
    """
    from omcli.operations.history import undo

    if run.is_disabled("nothing is undone"):
        return
    store = run.wiring.reading if dry_run else run.wiring.existing
    undone = undo(store, number, clock=run.wiring.clock, dry_run=dry_run)
    if run.json:
        run.output.document(_as_dict(undone, dry_run=dry_run))
        return
    found = undone.undoing
    run.output.line(f"{found.undone.number}  {found.undone.verb}  {came_to(found.undone)}")
    if dry_run:
        _show(run, found)
    verb = "would be undone" if dry_run else "undone"
    run.talk.report(f"operation {found.undone.number} {verb}")
    if found.held_by:
        numbers = " ".join(map(str, found.held_by))
        run.talk.note(f"some of it stays out of sight, by what was done besides: undo that as well ({numbers})")


def _show(run: Run, found: Undoing) -> None:
    for row in found.rows:
        run.output.row(replace(row, superseded_by=None, dropped_at=None))  # as it is in sight
    for kept in found.messages:
        run.output.line(f"{kept.key} {kept.session}: {kept.message.role}")
    for session, title in found.titles:
        run.output.line(f"{session}: title {title}")
    for row in found.gone:
        run.output.line(f"{row_line(row)} (goes)")


def _as_dict(undone: Undone, *, dry_run: bool) -> dict[str, object]:
    found = undone.undoing
    return {
        "undone": as_dict(found.undone),
        **({"operation": undone.by.number} if undone.by else {}),
        "rows": [full_row(row) for row in found.rows],
        "gone": [full_row(row) for row in found.gone],
        "messages": [message(kept) for kept in found.messages],
        "titles": [titled.session for titled in found.titles],
        "held_by": list(found.held_by),
        "dry_run": dry_run,
    }
