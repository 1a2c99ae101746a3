"""`om undo`: take back what was done to memory."""

from __future__ import annotations

from typing import Annotated

from omcli.cli.arguments import argument
from omcli.cli.completion import operation_numbers
from omcli.cli.history import as_dict, came_to
from omcli.cli.options import Run, with_shared

EXAMPLES = """\b
om undo
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
) -> None:
    """Take back an operation: a reflection, a compaction, a pruning, a forgetting; the last one if none is named.

    What it took out of sight is there again, what it made is not. What a reflection made can't be taken away while
    another operation stands on it: that one is undone first. What was deleted for good is not to be had back.
    """
    from omcli.operations.history import undo

    if run.is_disabled("nothing is undone"):
        return
    undone = undo(run.wiring.existing, number, clock=run.wiring.clock)
    if run.json:
        run.output.document({"undone": as_dict(undone.undone), "operation": undone.by.number})
        return
    run.output.line(f"{undone.undone.number}  {undone.undone.verb}  {came_to(undone.undone)}")
    run.talk.report(f"operation {undone.undone.number} undone")
