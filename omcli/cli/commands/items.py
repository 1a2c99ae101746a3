"""`om items`: what lasts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import option
from omcli.cli.command import with_shared
from omcli.cli.output import gone
from omcli.cli.run import Run, resolved
from omcli.memory.observation import Type, handle
from omcli.memory.row_json import full_row

if TYPE_CHECKING:
    from omcli.memory.observation import Observation

_EXAMPLES = """\b
om items --tag preference
om items --type behavior --project . --jsonl | jq -r .text
"""


class ItemType(StrEnum):
    """What a lasting fact is about."""

    KNOWLEDGE = Type.KNOWLEDGE
    BEHAVIOR = Type.BEHAVIOR
    EVENT = Type.EVENT
    SKILL = Type.SKILL
    PROFILE = Type.PROFILE
    TOOL = Type.TOOL


@with_shared(examples=_EXAMPLES, without=["counter"])
def items(
    run: Run,
    *,
    tag: Annotated[
        list[str] | None, option("--tag", metavar="TAG", help="With this tag. Repeat it for several, all of them.")
    ] = None,
    type_: Annotated[
        list[ItemType] | None,
        option(
            "--type", metavar="TYPE", help="knowledge, behavior, event, skill, profile or tool. Repeat it for several."
        ),
    ] = None,
    project: Annotated[str | None, option("--project", metavar="DIR", help="Of this project.")] = None,
    all_: Annotated[bool, option("--all", help="Superseded and dropped ones as well.")] = False,
    jsonl: Annotated[bool, option("--jsonl", help="Print one JSON object per item.")] = False,
) -> None:
    """List lasting facts, the most important first.

    They are what later sessions should know. A line is HANDLE TYPE: TEXT #TAG, and behind `<` the rows it was made
    of. Reflection finds them, agents hand them in (`om apply`), people write them (`om note --item`).
    """
    from omcli.memory.ports import LogQuery
    from omcli.operations.lookup import items, unknown

    run.check_stream(jsonl=jsonl)
    if nothing := unknown(run.wiring.reading, LogQuery(project=resolved(project))):
        run.console.note(nothing)
    found = items(
        run.wiring.reading,
        now=run.wiring.clock.now(),
        tags=tag or (),
        types=tuple(Type(each) for each in type_ or ()),
        project=resolved(project),
        hidden=all_,
    )
    if run.json:
        run.output.document({"items": [full_row(item) for item in found]})
        return
    for item in found:
        if jsonl:
            run.output.json_line(full_row(item))
        else:
            run.output.line(_line(item))


def _line(item: Observation) -> str:
    from omcli.text.clean import one_line

    tags = "".join(f" #{tag}" for tag in item.tags)
    made_of = f" < {' '.join(handle(row) for row in item.supports)}" if item.supports else ""
    return one_line(f"{handle(item.id)} {item.type}: {item.text}{tags}{made_of}{gone(item)}")
