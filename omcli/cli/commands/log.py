"""`om log`: the observation log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadUsage
from omcli.cli.arguments import option
from omcli.cli.command import with_shared
from omcli.cli.options import named_notation, named_session
from omcli.cli.run import LARGEST, Run, resolved
from omcli.memory.observation import Kind, Observation, Priority, Type
from omcli.memory.row_json import full_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omcli.memory.ports import LogQuery

_EXAMPLES = """\b
om log --since 7d --priority high
om log --session ID --type decision --type instruction
om log --follow | grep deploy
om log --all --jsonl | jq -r 'select(.superseded_by) | .text'
"""


@with_shared(examples=_EXAMPLES, without=["counter"])
def log(
    run: Run,
    *,
    session: Annotated[str | None, named_session("Rows of this session.")] = None,
    project: Annotated[str | None, option("--project", metavar="DIR", help="Rows of this project.")] = None,
    priority: Annotated[
        list[Priority] | None, option("--priority", help="Rows of this priority. Repeat it for several.")
    ] = None,
    type_: Annotated[
        list[Type] | None,
        option("--type", metavar="TYPE", help="Rows of this type: decision, preference, …"),
    ] = None,
    kind: Annotated[list[Kind] | None, option("--kind", help="Rows of this kind.")] = None,
    since: Annotated[
        str | None, option("--since", metavar="TIME", help="From here: 2026-01-28, 2026-01-28T09:30Z, 7d, 12h.")
    ] = None,
    until: Annotated[str | None, option("--until", metavar="TIME", help="Up to here: a day is included.")] = None,
    last: Annotated[int | None, option("--last", "-n", min=0, metavar="N", help="Only the last N rows.")] = None,
    all_: Annotated[bool, option("--all", help="Superseded and dropped rows as well.")] = False,
    follow: Annotated[bool, option("--follow", "-f", help="Go on with rows as they are written.")] = False,
    jsonl: Annotated[bool, option("--jsonl", help="Print one JSON object per row.")] = False,
    notation: Annotated[str | None, named_notation("Write rows so, in place of PRIORITY TYPE: TEXT")] = None,
) -> None:
    """Show the observation log, one line per row.

    A line is HANDLE [DATE TIME] PRIORITY TYPE: TEXT, in the order in which rows were written; times are UTC.
    `om show HANDLE` shows a row in full. With --notation a line is HANDLE [DATE TIME] MARK TEXT.
    """
    from omcli.memory.ports import LogQuery
    from omcli.operations.period import period

    if run.json and (jsonl or follow):
        raise BadUsage("`--json` prints one document", hint="use `--jsonl` for a stream")
    written = None if notation is None else run.notation(notation)
    begins, ends = period(since, until, now=run.wiring.clock.now())
    query = LogQuery(
        session=session,
        project=resolved(project),
        kinds=tuple(kind or ()),
        types=tuple(type_ or ()),
        priorities=tuple(priority or ()),
        since=begins,
        until=ends,
        hidden=all_,
        last=None if last is None else min(last, LARGEST),
    )
    rows = _rows(run, query, follow=follow)
    if run.json:
        run.output.document({"observations": [full_row(observation) for observation in rows]})
        return
    for observation in rows:
        if jsonl:
            run.output.json_line(full_row(observation))
        else:
            run.output.row(observation, notation=written)
        if follow:
            run.output.flush()


def _rows(run: Run, query: LogQuery, *, follow: bool) -> Iterator[Observation]:
    from omcli.operations import lookup

    # A store that is not there yet is made to be followed: reading nothing would never see what comes.
    store = run.wiring.store if follow and not run.settings.db.exists() else run.wiring.reading
    if unknown := lookup.unknown(store, query):
        run.console.note(unknown)
    return lookup.follow(store, query, run.wiring.clock) if follow else lookup.log(store, query)
