"""`om export` and `om import`: exchange memory with other tools."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadInput, BadUsage, CannotCreate, InputOutput, NoInput
from omcli.cli.arguments import argument, option
from omcli.cli.command import with_shared
from omcli.cli.console import Exit, counted, error_as_dict
from omcli.cli.options import exchange_names, named_session
from omcli.cli.run import Run, is_typed, resolved
from omcli.memory.row_json import full_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omcli.exchange.groups import Exchange
    from omcli.memory.observation import Observation
    from omcli.operations.importing import ImportReport, Input

_EXPORT_EXAMPLES = """\b
om export --to zora-jsonl > memory.jsonl
om export --to pi --session ID notes.txt
om export --to duet-groups --project . | less
"""

_STDOUT = "-"


@with_shared(examples=_EXPORT_EXAMPLES, without=["counter", "now"])
def export(
    run: Run,
    file: Annotated[str, argument(metavar="[FILE]", help="Where to write it; `-` is stdout.")] = _STDOUT,
    *,
    to: Annotated[
        str,
        option(
            "--to",
            metavar="NAME",
            help="pi, zora, zora-jsonl, duet-groups, duet-headings, lango, lango-jsonl.",
            autocompletion=exchange_names,
        ),
    ],
    session: Annotated[str | None, named_session("Rows of this session.")] = None,
    project: Annotated[str | None, option("--project", metavar="DIR", help="Rows of this project.")] = None,
    all_: Annotated[bool, option("--all", help="Superseded and dropped rows as well.")] = False,
) -> None:
    """Write memory down as another design does.

    Rows in sight, in the order in which they were written; `om import` reads all that is written here. Times are UTC.
    """
    from omcli.exchange import named
    from omcli.memory.ports import LogQuery
    from omcli.operations import lookup
    from omcli.operations.export import export as written

    exchange = named(to)
    query = LogQuery(session=session, project=resolved(project), hidden=all_)
    if unknown := lookup.unknown(run.wiring.reading, query):
        run.console.note(unknown)
    pieces = written(run.wiring.reading, query, exchange, run.wiring.counter(exchange.counter))
    if file != _STDOUT:
        _write(Path(file), pieces)
    if run.json:
        run.output.document({"format": to, **({"text": "".join(pieces)} if file == _STDOUT else {"path": file})})
    elif file == _STDOUT:
        for piece in pieces:
            run.output.text(piece)


def _write(file: Path, pieces: Iterable[str]) -> None:
    """Writes a file that others may not read, like the store. Raises CannotCreate, InputOutput."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotCreate(f"cannot write {file}: {error.strerror}") from None
    try:
        with os.fdopen(opened, "w", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
    except OSError as error:
        raise InputOutput(f"cannot write {file}: {error.strerror}") from None


_IMPORT_EXAMPLES = """\b
om import --format zora-jsonl memory.jsonl
om import --format pi --session ID notes.txt
om export --to duet-groups | om import --db other.db --format duet-groups -
"""


@with_shared(examples=_IMPORT_EXAMPLES)
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
    from omcli.exchange import named
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
            run.console.report(_summary(report, exchange.name))
        if report.error is not None:
            run.console.error(report.error, about=report.path)
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
        raise Exit(decisive[0].exit_code)
    if run.strict and any(report.skipped for report in reports):
        raise Exit(BadInput.exit_code)


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
        **({"error": error_as_dict(report.error)} if report.error is not None else {}),
    }
