"""`om import`: take in memory that another design wrote."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument, option
from omcli.cli.completion import exchange_names
from omcli.cli.diagnostics import Ended, as_dict, counted
from omcli.cli.options import Run, is_typed, named_session, with_shared
from omcli.memory.errors import BadInput, BadUsage, NoInput
from omcli.memory.rows import full_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omcli.memory.exchange.exchange import Exchange
    from omcli.memory.observation import Observation
    from omcli.operations.importing import ImportReport, Input

EXAMPLES = """\b
om import --format zora-jsonl memory.jsonl
om import --format pi --session ID notes.txt
om export --to duet-groups | om import --db other.db --format duet-groups -
"""


@with_shared()
def import_(
    run: Run,
    files: Annotated[list[str] | None, argument(metavar="[FILE]...", help="What to read; `-` is stdin.")] = None,
    *,
    format_: Annotated[
        str,
        option(
            "--format",
            metavar="NAME",
            help="pi, zora, zora-jsonl, duet-groups, duet-headings, lango, lango-jsonl.",
            autocompletion=exchange_names,
        ),
    ],
    session: Annotated[
        str | None,
        named_session("The session the rows belong to, whatever they say."),
    ] = None,
) -> None:
    """Take in memory that another design wrote.

    Printed are the new rows, one line each, as in `om log`. What is there already is not taken in again, so the
    same file can be imported whenever it has grown. Rows that name no session belong to the project that is the
    current directory. Where rows say which messages they were made of, those count as observed.
    """
    from omcli.memory.exchange import named
    from omcli.operations.importing import Input
    from omcli.wiring.inputs import STDIN

    if not files and is_typed():
        raise BadUsage("nothing to import", hint="`om import --format NAME FILE`, or `< FILE`")
    if session is not None and not session.strip():
        raise BadUsage("`--session` is empty")
    exchange = named(format_)
    if run.is_disabled("nothing was taken in"):
        return
    inputs = [Input(name=name, read=partial(_read, name)) for name in files or [STDIN]]
    with run.output.optional():  # what is taken in is not lost because nobody reads the rest of what is printed
        _take_in(run, inputs, exchange, session)


def _read(name: str) -> str:
    from omcli.wiring.inputs import content

    return content(name).decode("utf-8", "replace")


def _take_in(run: Run, inputs: list[Input], exchange: Exchange, session: str | None) -> None:
    from omcli.operations.importing import import_files

    reports: list[ImportReport] = []
    documents: list[dict[str, object]] = []
    rows: list[Observation] = []
    for report in import_files(
        inputs,
        exchange,
        run.workshop(),
        session=session,
        project=run.project,
        each=rows.append if run.json else run.output.row,
    ):
        reports.append(report)
        documents.append(_as_dict(report, exchange.name, rows))
        rows.clear()
        if not run.json and report.error is None:
            run.talk.report(_summary(report, exchange.name))
        if report.error is not None:
            run.talk.error(report.error, about=report.path)
    if run.json and any(report.error is None or report.sessions for report in reports):
        run.output.document({"files": documents})
    _end(run, reports)


def _end(run: Run, reports: list[ImportReport]) -> None:
    """Ends with the code of what went wrong. A bad input among good ones is only reported."""
    failures = [report.error for report in reports if report.error is not None]
    decisive = [error for error in failures if not isinstance(error, BadInput | NoInput)]
    if run.strict or len(failures) == len(reports):
        decisive += failures
    if decisive:
        raise Ended(decisive[0].exit_code)
    if run.strict and any(report.skipped for report in reports):
        raise Ended(BadInput.exit_code)


def _summary(report: ImportReport, format_name: str) -> str:
    secrets, lines = sum(report.redactions.values()), sum(report.skipped.values())
    told = (
        (report.known, f"{report.known} known"),
        (report.covered, f"{counted(report.covered, 'message')} covered"),
        (report.missing, f"{counted(report.missing, 'group')} without messages"),
        (secrets, f"{counted(secrets, 'secret')} redacted"),
        (lines, f"{counted(lines, 'line')} skipped: {', '.join(report.skipped)}"),
    )
    parts = [f"{report.observations} new", *(what for number, what in told if number)]
    return f"{report.path}: {format_name}, {', '.join(parts)}"


def _as_dict(report: ImportReport, format_name: str, rows: Iterable[Observation]) -> dict[str, object]:
    return {
        "path": report.path,
        "format": format_name,
        "sessions": list(report.sessions),
        "observations": report.observations,
        "known": report.known,
        "covered": report.covered,
        "missing": report.missing,
        "skipped": dict(report.skipped),
        "redactions": dict(report.redactions),
        "rows": [full_row(observation) for observation in rows],
        **({"error": as_dict(report.error)} if report.error is not None else {}),
    }
