"""`om apply`: write down what an agent made of what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from omcli.cli.arguments import argument, option
from omcli.cli.diagnostics import counted, named
from omcli.cli.options import Run, is_typed, with_shared
from omcli.memory.errors import BadInput, BadUsage

if TYPE_CHECKING:
    from omcli.operations.apply import Applied

EXAMPLES = """\b
om pending --json | my-agent | om apply -
om apply answer.json --dry-run
"""


@with_shared()
def apply(
    run: Run,
    file: Annotated[str | None, argument(metavar="[FILE]", help="The answer, as JSON; `-` is stdin.")] = None,
    *,
    dry_run: Annotated[bool, option("--dry-run", help="Show what would be written, and write nothing.")] = False,
) -> None:
    """Write down what an agent made of what `om pending` showed it.

    A JSON object of `token`, `observations`, `reflections`, `items`, `retire`, `used`, `current_task`, `next_step` and
    `title`; `om pending --json` has its schema. All of it is written, or nothing: what is wrong is named by its place
    (exit 65), and where others were quicker since, the token is stale (exit 75). Empty `observations` say that nothing
    is worth keeping: the messages count as read. What tools did is written down by rules.
    """
    from omcli.operations import apply
    from omcli.wiring.inputs import STDIN

    if file is None and is_typed():
        raise BadUsage("no answer given", hint="`om apply FILE`, or `om apply -` to read it from stdin")
    if run.is_disabled("nothing was written"):
        return
    name = file or STDIN
    with named(name):
        document = _document(name)
    workshop = run.workshop()
    applied = apply.apply(document, workshop, counters=run.wiring.counter, dry_run=dry_run)
    with run.output.optional():  # it is written, whoever reads what is printed
        _print(run, applied, dry_run=dry_run)


def _document(name: str) -> Any:
    from omcli.memory.replies import ends_early, json_in
    from omcli.wiring.inputs import content

    text = content(name).decode("utf-8", "replace")
    document = json_in(text)
    if document is None:
        raise BadInput("it ends before it is complete" if ends_early(text) else "there is no JSON in it")
    return document


def _print(run: Run, applied: Applied, *, dry_run: bool) -> None:
    from omcli.memory.rows import full_row

    if run.json:
        run.output.document(
            {
                "session": applied.session,
                "dry_run": dry_run,
                "messages": applied.messages,
                "rows": [full_row(row) for row in applied.rows],
                "hidden": list(applied.hidden),
                "findings": dict(applied.findings),
            }
        )
        return
    for row in applied.rows:
        run.output.row(row)
    run.talk.report(_summary(applied))
    if dry_run:
        run.talk.note("a dry run: nothing was written")


def _summary(applied: Applied) -> str:
    parts = [f"{counted(applied.messages, 'message')} covered", f"{counted(len(applied.rows), 'row')} written"]
    if applied.hidden:
        parts.append(f"{counted(len(applied.hidden), 'row')} out of sight")
    parts += [f"{finding.replace('_', ' ')} {count}" for finding, count in sorted(applied.findings.items())]
    return f"session {applied.session}: {', '.join(parts)}"
