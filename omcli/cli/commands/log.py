"""`om log`, `om diff`, `om items` and `om show`: listing rows, what changed in them, and showing one in full."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.base.record import replace
from omcli.cli.command import Run, with_shared
from omcli.cli.console import counted
from omcli.cli.options import NotationOption, RowFilter, StreamOption, argument, is_within, option, row_ids
from omcli.cli.output import gone, row_line, state
from omcli.memory.changes import OperationKind
from omcli.memory.message import message_fields
from omcli.memory.observation import Kind, LogQuery, Observation, Priority, Type, full_row, handle, row
from omcli.operations import lookup
from omcli.text.clean import one_line
from omcli.text.instants import minute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omcli.memory.changes import Operation, RowHistory
    from omcli.memory.message import KeptMessage
    from omcli.memory.observation import LogQuery, Observation


_EXAMPLES = """\b
om log --since 7d --priority high
om log --session ID --type decision --type instruction
om log --follow | grep deploy
om log --all --jsonl | jq -r 'select(.superseded_by) | .text'
"""


_KINDS = ", ".join(Kind)
_DAY = 86_400


@with_shared(RowFilter, examples=_EXAMPLES, without=["counter"])
def log(
    run: Run,
    rows: RowFilter,
    *,
    priority: Annotated[
        list[Priority] | None, option("--priority", help="Only rows of this priority. May be repeated.")
    ] = None,
    type_: Annotated[
        list[Type] | None,
        option("--type", metavar="TYPE", help="Only rows of this type: decision, preference, … May be repeated."),
    ] = None,
    kind: Annotated[
        list[Kind] | None, option("--kind", metavar="KIND", help=f"Only rows of this kind: {_KINDS}. May be repeated.")
    ] = None,
    follow: Annotated[bool, option("--follow", "-f", help="Keep printing rows as they are written.")] = False,
    jsonl: StreamOption = False,
    notation: NotationOption = None,
) -> None:
    """Show the observation log, one line per row.

    Each line is HANDLE [DATE TIME] PRIORITY TYPE STATUS: TEXT, in the order in which the rows were written. STATUS is
    printed only if it is done or resolved, and `unverified` may follow it. With --all, hidden rows end with
    (superseded) or (dropped). Times are UTC. `om show HANDLE` shows a row in full. With --notation, each line is HANDLE
    [DATE TIME] MARK TEXT.
    """
    if not follow:
        run.output.open_pager()
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


# ---- diff

_DIFF_EXAMPLES = """\b
om diff
om diff --since 7d --project .
om diff --since 2026-11-20 --until 2026-11-21 --json | jq '.dropped[].text'
"""
_LISTED = 3
"""Maximum number of replaced rows that are printed for one row. If there are more, only their number is printed."""


@with_shared(RowFilter, examples=_DIFF_EXAMPLES, without=["counter", "last", "tag", "author", "all_"])
def diff(run: Run, rows: RowFilter) -> None:
    """Show what the memory learnt, changed and forgot in a period: by default in the last day.

    With --until alone, the period begins with the memory.

    A line that begins with + is a row that was written, and one with - a row that was hidden: replaced by the row above
    it, dropped, or replaced by a row that was hidden itself. Rows that were both written and hidden within the period
    are left out. If a row replaced many, as when rows are folded, their number is printed (--json has them all).
    Operations that pruned or forgot are listed by their numbers, which `om undo` takes, instead of their rows: `om undo
    NUMBER --dry-run` prints those.
    """
    run.output.open_pager()
    from omcli.cli.reports import operation_as_dict, operation_summary

    query = rows.query(run)
    since = query.since or ("1970-01-01T00:00:00.000Z" if query.until else run.wiring.clock.after(-_DAY))
    if unknown := lookup.unknown(run.wiring.reading, query):
        run.console.note(unknown)
    scope = replace(query, since=None, until=None, bare=not run.json)
    operations = [each for each in _hidden_by(run, query) if is_within(each.at, since, query.until)]
    found = lookup.changes(run.wiring.reading, scope, since=since, until=query.until)
    if run.json:
        changes = [(each.added, list(map(full_row, each.gone))) for each in found]
        run.output.document(
            {
                "added": [{**full_row(row), "replaces": gone} for row, gone in changes if row],
                "dropped": [each for row, gone in changes if not row for each in gone],
                "operations": list(map(operation_as_dict, operations)),
            }
        )
        return
    dropped: tuple[Observation, ...] = ()
    added = replaced = 0
    for change in found:
        if change.added is None:
            dropped = change.gone
            continue
        run.output.entry("+", row_line(change.added))
        for old in change.gone if len(change.gone) <= _LISTED else ():
            run.output.entry("-", row_line(old))
        if len(change.gone) > _LISTED:
            run.output.entry("-", f"{counted(len(change.gone), 'row')} replaced by it")
        added, replaced = added + 1, replaced + len(change.gone)
    told = {done.at for done in operations}
    for old in dropped:
        if old.dropped_at not in told:
            run.output.entry("-", row_line(old))
    for done in operations:
        run.output.entry("-", f"[{minute(done.at)}] {done.verb} {done.number}: {operation_summary(done)}")
    total = (f"{counted(added, 'row')} added", f"{replaced} replaced", f"{len(dropped)} dropped")
    run.console.report(f"since {minute(since)}: {', '.join(total)}")


def _hidden_by(run: Run, query: LogQuery) -> Iterator[Operation]:
    """Yield the operations that pruned or forgot in the scope of a query, the oldest first, unless they were undone."""
    for done in reversed(run.wiring.reading.operations.history()):
        # One without a scope, such as forgetting a row by its id, may have hidden rows of any.
        is_meant = query.session is None or done.scope.session in (None, query.session)
        is_meant = is_meant and (query.project is None or done.scope.project in (None, query.project))
        if is_meant and done.verb in (OperationKind.PRUNE, OperationKind.FORGET) and done.undone_by is None:
            yield done


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


@with_shared(RowFilter, examples=_ITEMS_EXAMPLES, without=["counter", "author"])
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
    """List items (lasting facts), the most important first.

    Items are facts that later sessions should know. Each line is HANDLE TYPE: TEXT #TAG, then `<` and the handles of
    the rows it was made from. Reflection writes items; agents add them with `om apply`, and you with `om note --item`.
    """
    run.output.open_pager()
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


# ---- show

_SHOW_EXAMPLES = """\b
om show 3f9a1c2e
om show 3f9a1c2e --history
om show 3f9a1c2e --json | jq -r '.messages[].text'
"""


@with_shared(examples=_SHOW_EXAMPLES, without=["counter", "now"])
def show(
    run: Run,
    id_: Annotated[
        str, argument(metavar="ID", help="Id or handle of a row, or id of a message.", autocompletion=row_ids)
    ],
    *,
    history: Annotated[bool, option("--history", help="Include related rows and operations.")] = False,
) -> None:
    """Show a row with its messages, or one message.

    `supports` lists the rows that the row was made from. `coverage` is `none`, `partial` or `strong` if no, one or
    several reflections were made from the row. `state` is `visible` (in --json still `in sight`, its former name),
    `superseded` or `dropped`. The field `left`, with the value `passed over`, marks a request, question or todo list
    that is no longer open, although nothing answered or finished it. --history adds the rows that the row replaced, was
    made from or became part of, and the operations that made or hid it, numbered as in `om history`.
    """
    run.output.open_pager()
    shown = lookup.show(run.wiring.reading, id_, with_traces=history)
    if run.json:
        about = _about(shown.observation, shown.coverage) if shown.observation else {}
        observation = {"observation": full_row(shown.observation) | about} if shown.observation else {}
        traces = {"history": _traces_as_dict(shown.traces)} if shown.traces else {}
        run.output.document({**observation, **traces, "messages": [message_fields(kept) for kept in shown.messages]})
        return
    if shown.observation is not None:
        run.output.paragraph(shown.observation.text)
        about = _about(shown.observation, shown.coverage) | (
            {"state": "visible"} if shown.observation.is_visible else {}
        )
        from omcli.cli.reports import has_authors

        if (author := shown.observation.author) and has_authors(run):
            about |= {"author": author}
        known = ((name, str(value)) for name, value in about.items())
        traced = _traces(shown.traces) if shown.traces is not None else ()
        run.output.fields([*_fields(shown.observation), *known, *traced], width=13, gap=1)
        if missing := len(shown.observation.sources) - len(shown.messages):
            run.console.note(f"{counted(missing, 'message')} of it not shown: pruned or forgotten")
    for kept in shown.messages:
        _print_message(run, kept)


def _about(observation: Observation, coverage: object) -> dict[str, object]:
    """Return the project of the row, its coverage, and its state as JSON has it."""
    project = {"project": observation.project} if observation.project else {}
    return {**project, "coverage": coverage, "state": state(observation)}


def _traces_as_dict(traces: RowHistory) -> dict[str, object]:
    from omcli.cli.reports import operation_as_dict

    rows = {"replaced": traces.replaced, "made_of": traces.made_of, "made_into": traces.made_into}
    found: dict[str, object] = {name: [full_row(each) for each in some] for name, some in rows.items()}
    for name, done in (("made_by", traces.made_by), ("hidden_by", traces.hidden_by)):
        found |= {name: operation_as_dict(done)} if done else {}
    return found | ({"successor": full_row(traces.successor)} if traces.successor else {})


def _traces(traces: RowHistory) -> Iterator[tuple[str, str]]:
    from omcli.cli.reports import operation_summary

    for name, done in (("made by", traces.made_by), ("hidden by", traces.hidden_by)):
        if done is not None:
            yield name, f"{done.verb} {done.number}, {minute(done.at)}: {operation_summary(done)}"
    successor = (traces.successor,) if traces.successor else ()
    made_of = [row for row in traces.made_of if row not in traces.replaced]
    related = (
        ("in place of", traces.replaced), ("made of", made_of), ("made into", traces.made_into),
        ("replaced by", successor),
    )  # fmt: skip
    for name, rows in related:
        yield from ((name, row_line(each)) for each in rows)


def _fields(observation: Observation) -> Iterator[tuple[str, str]]:
    for name, value in row(observation).items():
        if name not in ("text", "message_ids"):
            yield name, ", ".join(value) if isinstance(value, list) else str(value)
    if observation.supports:
        yield "supports", ", ".join(map(handle, observation.supports))
    for name, value in observation.metadata.items():
        yield name, str(value)


def _print_message(run: Run, kept: KeptMessage) -> None:
    said = kept.message
    about = [
        minute(said.at) if said.at else "undated",
        said.name or said.role,
        said.tool,
        said.kind,
        f"in {said.agent}" if said.agent else None,
        said.cwd,
        "failed" if said.failed else None,
        None if said.exit_code is None else f"exit {said.exit_code}",
        counted(len(said.images), "image") if said.images else None,
        kept.key,
    ]
    run.output.section(" · ".join(part for part in about if part), said.text)
