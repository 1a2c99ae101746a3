"""`om note`: write a note by hand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage, InputOutput
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import argument, option, row_ids, session_option
from omcli.memory.observation import Priority, Type, row
from omcli.wiring.inputs import STDIN, content

if TYPE_CHECKING:
    from omcli.operations.note import KeptNote

_EXAMPLES = """\b
om note "we ship on Friday" --type decision
om note "run make lint first" --type instruction --tag pinned
om note --item "releases are cut on Thursdays" --tag release
om note "it was the cache" --resolves 3f9a1c2e
git log -1 --format=%s | om note -
"""


@with_shared(examples=_EXAMPLES)
def note(
    run: Run,
    text: Annotated[str | None, argument(metavar="TEXT", help="Text to remember; `-` is stdin.")] = None,
    *,
    type_: Annotated[
        Type | None,
        option(
            "--type",
            metavar="TYPE",
            help="Type: decision, preference, instruction, …; with --item as in `om items`."
            "  [default: fact, or knowledge with --item]",
        ),
    ] = None,
    item: Annotated[bool, option("--item", help="Write an item: a lasting fact for later sessions.")] = False,
    priority: Annotated[Priority, option("--priority", help="Priority of the note.")] = Priority.MEDIUM,
    tag: Annotated[list[str] | None, option("--tag", metavar="TAG", help="Add this tag. May be repeated.")] = None,
    session: Annotated[str | None, session_option("Session that the note belongs to, instead of the project.")] = None,
    resolves: Annotated[
        list[str] | None,
        option("--resolves", metavar="ID", help="Row that the note resolves. May be repeated.", autocompletion=row_ids),
    ] = None,
) -> None:
    """Write a note to the memory.

    A note belongs to the project of the current directory, or to a session if you name one. With --resolves it belongs
    to the session of the resolved row, unless you name another. The resolved row is hidden; `om undo` restores it and
    hides the note. A note that resolves nothing is not an operation; remove it with `om forget`.
    """
    from omcli.operations import note

    if text in (None, "-"):
        text = _read_text(text)
    if run.is_read_only("nothing was written"):
        return
    project, session = run.project, run.session_or_new(session)
    noted = note.note(
        text or "",
        open_store=lambda: run.wiring.store,
        counter=run.counter,
        clock=run.wiring.clock,
        new_id=run.wiring.new_id,
        project=project,
        session=session,
        type_=type_,
        priority=priority,
        tags=tuple(tag or ()),
        is_item=item,
        resolves=tuple(resolves or ()),
    )
    if noted.redactions:
        run.console.note(f"{counted(sum(noted.redactions.values()), 'secret')} redacted")
    if noted.resolved:
        run.console.report(f"{counted(len(noted.resolved), 'row')} resolved; `om undo {noted.operation}` reverses that")
    try:
        _print(run, noted)
    except (OSError, InputOutput) as error:
        raise InputOutput(
            f"the note was stored but could not be printed: {getattr(error, 'strerror', None) or error}",
            hint="`om log --last 1` shows it",
        ) from None


def _print(run: Run, noted: KeptNote) -> None:
    if run.json:
        resolved = {"resolved": [each.id for each in noted.resolved]} if noted.resolved else {}
        run.output.document({"observation": row(noted.observation), "redactions": noted.redactions, **resolved})
    else:
        run.output.row(noted.observation)
    run.output.flush()


def _read_text(asked: str | None) -> str:
    if sys.stdin is None or (asked is None and sys.stdin.isatty()):
        raise BadUsage("no text given", hint="`om note TEXT`, or `om note -` to read it from stdin")
    return content(STDIN).decode("utf-8", "replace")
