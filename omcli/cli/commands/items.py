"""`om items`: lasting facts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, is_within, project_path, with_shared
from omcli.cli.options import (
    HiddenOption,
    SinceOption,
    StreamOption,
    TagOption,
    UntilOption,
    last_option,
    option,
    project_option,
    session_option,
)
from omcli.cli.output import gone
from omcli.memory.observation import Type, handle
from omcli.memory.row_json import full_row
from omcli.text.clean import one_line

if TYPE_CHECKING:
    from omcli.memory.observation import Observation

_EXAMPLES = """\b
om items --tag preference
om items --type behavior --project . --jsonl | jq -r .text
"""


class ItemType(StrEnum):
    """A type of lasting facts."""

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
    tag: TagOption = None,
    type_: Annotated[
        list[ItemType] | None,
        option("--type", metavar="TYPE", help="Only knowledge, behavior, event, skill, profile or tool. Repeatable."),
    ] = None,
    session: Annotated[str | None, session_option()] = None,
    project: Annotated[str | None, project_option()] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    last: Annotated[int | None, last_option("Only the N items written last.")] = None,
    all_: HiddenOption = False,
    jsonl: StreamOption = False,
) -> None:
    """List lasting facts, the most important first.

    Items are what later sessions should know. A line is HANDLE TYPE: TEXT #TAG, then `<` and the rows it was made of.
    Reflection writes them; agents add them with `om apply`, you with `om note --item`.
    """
    from omcli.memory.ports import LogQuery
    from omcli.operations.clock import period
    from omcli.operations.lookup import items, unknown

    run.check_stream(jsonl=jsonl)
    begins, ends = period(since, until, now=run.wiring.clock.now())
    if nothing := unknown(run.wiring.reading, LogQuery(session=session, project=project_path(project))):
        run.console.note(nothing)
    listed = items(
        run.wiring.reading,
        now=run.wiring.clock.now(),
        tags=tag or (),
        types=tuple(Type(each) for each in type_ or ()),
        project=project_path(project),
        hidden=all_,
    )
    found = [each for each in listed if session in (None, each.session) and is_within(each.dated, begins, ends)]
    if last is not None:
        written = sorted((each.id for each in found), reverse=True)[:last]
        found = [each for each in found if each.id in written]
    if run.json:
        run.output.document({"items": [full_row(item) for item in found]})
        return
    for item in found:
        if jsonl:
            run.output.json_line(full_row(item))
        else:
            run.output.entry(handle(item.id), _text(item))


def _text(item: Observation) -> str:
    tags = "".join(f" #{tag}" for tag in item.tags)
    made_of = f" < {' '.join(handle(row) for row in item.supports)}" if item.supports else ""
    return one_line(f"{item.type}: {item.text}{tags}{made_of}{gone(item)}")
