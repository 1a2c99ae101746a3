"""`om items`: lasting facts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.cli.command import Run, with_shared
from omcli.cli.options import RowFilter, StreamOption, is_within, option
from omcli.cli.output import gone
from omcli.memory.observation import Type, full_row, handle
from omcli.operations import lookup
from omcli.text.clean import one_line

if TYPE_CHECKING:
    from omcli.memory.observation import Observation

_EXAMPLES = """\b
om items --tag preference
om items --type behavior --project . --jsonl | jq -r .text
"""


class ItemType(StrEnum):
    """A type that lasting facts can have."""

    KNOWLEDGE = Type.KNOWLEDGE
    BEHAVIOR = Type.BEHAVIOR
    EVENT = Type.EVENT
    SKILL = Type.SKILL
    PROFILE = Type.PROFILE
    TOOL = Type.TOOL


@with_shared(RowFilter, examples=_EXAMPLES, without=["counter"])
def items(
    run: Run,
    rows: RowFilter,
    *,
    type_: Annotated[
        list[ItemType] | None,
        option(
            "--type", metavar="TYPE", help="Only knowledge, behavior, event, skill, profile or tool. May be repeated."
        ),
    ] = None,
    jsonl: StreamOption = False,
) -> None:
    """List lasting facts, the most important first.

    Items are facts that later sessions should know. Each line is HANDLE TYPE: TEXT #TAG, then `<` and the handles of
    the rows it was made from. Reflection writes items; agents add them with `om apply`, and you with `om note --item`.
    """
    run.check_stream(jsonl=jsonl)
    now = run.wiring.clock.now()
    query = rows.query(run)
    if unknown := lookup.unknown(run.wiring.reading, query):
        run.console.note(unknown)
    listed = lookup.items(
        run.wiring.reading,
        now=now,
        tags=rows.tags,
        types=tuple(Type(each) for each in type_ or ()),
        project=query.project,
        hidden=query.hidden,
    )
    if query.session is not None:
        listed = tuple(each for each in listed if each.session == query.session)
    found = [each for each in listed if is_within(each.dated, query.since, query.until)]
    if rows.last is not None:
        written = sorted((each.id for each in found), reverse=True)[: rows.last]
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
