"""`om history` and `om undo`: operations on memory, and how to reverse them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.base.record import replace
from omcli.cli.arguments import argument, option
from omcli.cli.command import with_shared
from omcli.cli.options import operation_numbers
from omcli.cli.output import row_line
from omcli.cli.reports import operation_as_dict, operation_summary
from omcli.cli.run import LARGEST, Run
from omcli.memory.row_json import full_row, message
from omcli.text.dates.instants import minute

if TYPE_CHECKING:
    from omcli.memory.changes import Recorded, Undoing
    from omcli.operations.forget import Undone

_HISTORY_EXAMPLES = """\b
om history -n 5
om history --jsonl | jq -r 'select(.can_be_undone) | .number'
"""


@with_shared(examples=_HISTORY_EXAMPLES, without=["counter", "now"])
def history(
    run: Run,
    *,
    last: Annotated[int | None, option("--last", "-n", min=0, metavar="N", help="Only the last N.")] = None,
    jsonl: Annotated[bool, option("--jsonl", help="Print one JSON object per operation.")] = False,
) -> None:
    """List what was done to memory, the newest first.

    Reflections, compactions, what was pruned or forgotten: each can be taken back with `om undo NUMBER`, unless it was,
    or what it took out of sight was deleted for good. That it was taken back is listed as well.
    """
    run.check_stream(jsonl=jsonl)
    found = run.wiring.reading.operations.history(last=None if last is None else min(last, LARGEST))
    if run.json:
        run.output.document({"operations": [operation_as_dict(done) for done in found]})
    elif jsonl:
        for done in found:
            run.output.json_line(operation_as_dict(done))
    elif found:
        header = ("NUMBER", "WHEN", "WHAT", "WHERE", "CAME TO", "STATE")
        run.output.table(header, [_cells(done) for done in found], cut=("CAME TO",), cut_in_front=("WHERE",))
    elif last != 0:
        run.console.note("nothing was reflected on, pruned or forgotten yet")


def _cells(done: Recorded) -> tuple[str, ...]:
    where = done.scope.session or done.scope.project or "-"
    return str(done.number), minute(done.at), str(done.verb), where, operation_summary(done), _state(done)


def _state(done: Recorded) -> str:
    if done.undone_by is not None:
        return f"undone by {done.undone_by}"
    return "final" if done.final_at is not None else ""


_UNDO_EXAMPLES = """\b
om undo
om undo --dry-run
om history && om undo 12
"""


@with_shared(examples=_UNDO_EXAMPLES, without=["counter"])
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
    from omcli.operations.forget import undo

    if run.is_disabled("nothing is undone"):
        return
    store = run.wiring.reading if dry_run else run.wiring.existing
    undone = undo(store.operations, number, clock=run.wiring.clock, dry_run=dry_run)
    if run.json:
        run.output.document(_as_dict(undone, dry_run=dry_run))
        return
    found = undone.undoing
    run.output.line(f"{found.undone.number}  {found.undone.verb}  {operation_summary(found.undone)}")
    if dry_run:
        _show(run, found)
    verb = "would be undone" if dry_run else "undone"
    run.console.report(f"operation {found.undone.number} {verb}")
    if found.held_by:
        numbers = " ".join(map(str, found.held_by))
        run.console.note(f"some of it stays out of sight, by what was done besides: undo that as well ({numbers})")


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
        "undone": operation_as_dict(found.undone),
        **({"operation": undone.by.number} if undone.by else {}),
        "rows": [full_row(row) for row in found.rows],
        "gone": [full_row(row) for row in found.gone],
        "messages": [message(kept) for kept in found.messages],
        "titles": [titled.session for titled in found.titles],
        "held_by": list(found.held_by),
        "dry_run": dry_run,
    }
