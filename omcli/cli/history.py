"""`om history`: what was done to memory, and what can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.diagnostics import counted
from omcli.cli.options import LARGEST, Run, with_shared
from omcli.memory.dates import minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omcli.memory.changes import Recorded

EXAMPLES = """\b
om history -n 5
om history --jsonl | jq -r 'select(.can_be_undone) | .number'
"""


@with_shared(without=["counter", "now"])
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
    found = run.wiring.reading.history(last=None if last is None else min(last, LARGEST))
    if run.json:
        run.output.document({"operations": [as_dict(done) for done in found]})
    elif jsonl:
        for done in found:
            run.output.json_line(as_dict(done))
    elif found:
        header = ("NUMBER", "WHEN", "WHAT", "WHERE", "CAME TO", "STATE")
        run.output.table(header, [_cells(done) for done in found], cut=("CAME TO",), cut_in_front=("WHERE",))
    elif last != 0:
        run.talk.note("nothing was reflected on, pruned or forgotten yet")


def _cells(done: Recorded) -> tuple[str, ...]:
    where = done.scope.session or done.scope.project or "-"
    return str(done.number), minute(done.at), str(done.verb), where, came_to(done), _state(done)


def _state(done: Recorded) -> str:
    if done.undone_by is not None:
        return f"undone by {done.undone_by}"
    return "final" if done.final_at is not None else ""


def came_to(done: Recorded) -> str:
    """What an operation came to, in words: as it was then, whatever became of it."""
    return ", ".join(_parts(done)) or "nothing"


def _parts(done: Recorded) -> Iterator[str]:
    if done.undoes is not None:
        yield f"undid {done.undoes}"
        return
    if done.made:
        yield f"{counted(done.made, 'row')} made"
    counts = {name: number for name, number in done.figures.items() if isinstance(number, int)}
    hidden = counts.get("rows", counts.get("condensed", done.hidden))
    if hidden:
        yield f"{counted(hidden, 'row')} out of sight"
    if messages := counts.get("messages", done.messages):
        yield counted(messages, "message")
    if titles := counts.get("titles"):
        yield counted(titles, "title")
    if ahead := counts.get("ahead"):
        yield f"{counted(ahead, 'row')} observed ahead"


def as_dict(done: Recorded) -> dict[str, object]:
    """An operation as JSON output has it."""
    found = {
        "number": done.number,
        "verb": done.verb,
        "at": done.at,
        "session": done.scope.session,
        "project": done.scope.project,
        "made": done.made,
        "hidden": done.hidden,
        "messages": done.messages,
        "figures": dict(done.figures),
        "undoes": done.undoes,
        "undone_by": done.undone_by,
        "final_at": done.final_at,
        "can_be_undone": done.can_be_undone,
    }
    return {name: value for name, value in found.items() if value is not None}
