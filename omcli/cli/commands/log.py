"""`om log` and `om items`: listing rows."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.options import NotationOption, RowFilter, StreamOption, is_within, option
from omcli.cli.output import gone
from omcli.memory.observation import Kind, LogQuery, Observation, Priority, Type, full_row, handle
from omcli.operations import lookup
from omcli.text.clean import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omcli.memory.observation import LogQuery

_EXAMPLES = """\b
om log --since 7d --priority high
om log --session ID --type decision --type instruction
om log --follow | grep deploy
om log --all --jsonl | jq -r 'select(.superseded_by) | .text'
"""


_KINDS = ", ".join(Kind)


@with_shared(RowFilter, examples=_EXAMPLES, without=["counter"])
def log(
    run: Run,
    rows: RowFilter,
    *,
    priority: Annotated[
        list[Priority] | None, option("--priority", help="Only this priority. May be repeated.")
    ] = None,
    type_: Annotated[
        list[Type] | None,
        option("--type", metavar="TYPE", help="Only this type: decision, preference, … May be repeated."),
    ] = None,
    kind: Annotated[
        list[Kind] | None, option("--kind", metavar="KIND", help=f"Only this kind: {_KINDS}. May be repeated.")
    ] = None,
    follow: Annotated[bool, option("--follow", "-f", help="Keep printing rows as they are written.")] = False,
    jsonl: StreamOption = False,
    notation: NotationOption = None,
) -> None:
    """Show the observation log, one line per row.

    Each line is HANDLE [DATE TIME] PRIORITY TYPE: TEXT, in the order in which the rows were written. Times are UTC. `om
    show HANDLE` shows a row in full. With --notation, each line is HANDLE [DATE TIME] MARK TEXT.
    """
    if run.json and (jsonl or follow):
        raise BadUsage("`--json` prints one document", hint="use `--jsonl` for a stream")
    written = None if notation is None else run.notation(notation)
    query = replace(
        rows.query(run),
        kinds=tuple(kind or ()),
        types=tuple(type_ or ()),
        priorities=tuple(priority or ()),
        last=None if rows.tags else rows.last,
    )
    found = _rows(run, query, follow=follow)
    if rows.tags:
        found = _with_tags(found, rows.tags, last=None if follow else rows.last)
    if run.json:
        run.output.document({"observations": [full_row(observation) for observation in found]})
        return
    for observation in found:
        if jsonl:
            run.output.json_line(full_row(observation))
        else:
            run.output.row(observation, notation=written)
        if follow:
            run.output.flush()


def _with_tags(rows: Iterator[Observation], tags: Sequence[str], *, last: int | None) -> Iterator[Observation]:
    """Return the rows that have all of these tags, ignoring case. If `last` is given, return only that many, the last
    ones.
    """
    wanted = {tag.casefold() for tag in tags}
    found = (row for row in rows if wanted <= {tag.casefold() for tag in row.tags})
    return found if last is None else iter(deque(found, maxlen=last))


def _rows(run: Run, query: LogQuery, *, follow: bool) -> Iterator[Observation]:
    # `--follow` creates a missing store: an empty one in memory would never get new rows.
    store = run.wiring.store if follow and not run.wiring.has_store else run.wiring.reading
    if unknown := lookup.unknown(store, query):
        run.console.note(unknown)
    return lookup.follow(store, query, run.wiring.clock) if follow else lookup.log(store, query)


# ---- items

_ITEMS_EXAMPLES = """\b
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


@with_shared(RowFilter, examples=_ITEMS_EXAMPLES, without=["counter"])
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
