"""`om export` and `om import`: exchange memory with other tools."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import BadInput, BadUsage, CannotCreate, InputOutput, NoInput, OmError
from omcli.base.record import replace
from omcli.cli.command import Run, check_session, is_terminal_input, with_shared
from omcli.cli.console import Exit, counted, error_as_dict
from omcli.cli.options import (
    RowFilter,
    argument,
    option,
    session_option,
    tokens_option,
)
from omcli.exchange import DOCUMENT_NAMES, INPUT_NAMES, OUTPUT_NAMES, OWN, named
from omcli.memory.observation import full_row
from omcli.operations import lookup
from omcli.wiring.inputs import STDIN, lines_of, memory_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omcli.exchange.groups import Exchange
    from omcli.memory.observation import Observation
    from omcli.operations.importing import ImportInput, ImportReport
    from omcli.operations.records import MergeReport

_EXPORT_EXAMPLES = """\b
om export --to jsonl > memory.jsonl
om export --to zora-jsonl --session ID
om export --to pi --session ID notes.txt
om export --to duet-groups --project . | less
om export --to markdown --budget 2000 | less
om export --to agents-md AGENTS.md
"""

_STDOUT = "-"


def _output_names() -> list[str]:
    return list(OUTPUT_NAMES)


def _input_names() -> list[str]:
    return list(INPUT_NAMES)


@with_shared(RowFilter, examples=_EXPORT_EXAMPLES, without=["counter", "tag", "author"])
def export(
    run: Run,
    rows: RowFilter,
    file: Annotated[str, argument(metavar="[FILE]", help="Output file; `-` is stdout.")] = _STDOUT,
    *,
    to: Annotated[
        str,
        option(
            "--to",
            metavar="NAME",
            help=f"Output format: {', '.join(OUTPUT_NAMES)}.",
            autocompletion=_output_names,
        ),
    ],
    budget: Annotated[
        int | None,
        tokens_option("--budget", "Maximum tokens of markdown or agents-md (default: 6000, 1500).", at_least=1),
    ] = None,
    plain: Annotated[bool, option("--plain", help="Write jsonl as text, even if the store is encrypted.")] = False,
) -> None:
    """Write the memory as JSON Lines, in another tool's format, or as a document.

    `--to jsonl` writes the whole memory: messages, rows, operations, what is hidden and what was forgotten; om-store(5)
    lists what stays on this machine. `om import` merges it into another store. The other formats hold the visible rows
    (with --all, hidden ones too) in the order in which they were stored. Times are UTC. `om import` can read all of
    them but markdown and agents-md. Of the formats other than jsonl, only duet-groups and zora-jsonl say which rows are
    items. On import, rows with the same words and time become one row, unless the file gives them different sessions.

    If the store is encrypted, so is FILE with `--to jsonl`, with the same key, unless --plain is given. Only `om
    import` and SQLCipher read it. Other formats, and what is written to stdout or a named pipe, are plain text.

    markdown is a document of what a project knows: rules, decisions, lasting facts, open work and the last sessions.
    agents-md is a section with the same for files that agents read, such as AGENTS.md or CLAUDE.md: only the lines
    between om's own marks are replaced, and nothing else of FILE is changed. Both are about the project of the
    current directory, unless another one, a session or a scope is given, and hold the most valuable rows that fit
    into the budget.
    """
    if to in DOCUMENT_NAMES:
        _write_document(run, rows, file, to=to, budget=budget)
        return
    if budget is not None:
        raise BadUsage("`--budget` is for markdown and agents-md", hint="leave it out: other formats hold every row")
    pieces = _all_records(run, rows) if to == OWN else _in_format(run, rows, named(to, OUTPUT_NAMES))
    is_encrypted = file != _STDOUT and _write(run, file, pieces, key=_key(run) if to == OWN and not plain else None)
    if is_encrypted:
        run.console.note(f"{file} is encrypted as the store is; `--plain` writes text")
    if run.json:
        place = {"text": "".join(pieces)} if file == _STDOUT else {"path": file}
        run.output.document({"format": to, **place, **({"encrypted": True} if is_encrypted else {})})
    elif file == _STDOUT:
        for piece in pieces:
            run.output.text(piece)


def _key(run: Run) -> str | None:
    """Return the key of the store, or None if it is not encrypted."""
    return run.wiring.reading.key


_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _all_records(run: Run, rows: RowFilter) -> Iterable[str]:
    from omcli.operations.records import export_records

    if not rows.is_empty:
        raise BadUsage("`--to jsonl` writes the whole memory", hint="leave out the options that select rows")
    return export_records(run.wiring.reading)


def _in_format(run: Run, rows: RowFilter, exchange: Exchange) -> Iterable[str]:
    from omcli.operations.export import export as written

    query = replace(rows.query(run), last=rows.last)
    if unknown := lookup.unknown(run.wiring.reading, query):
        run.console.note(unknown)
    return written(run.wiring.reading, query, exchange, run.wiring.counter(exchange.counter))


def _write_document(run: Run, rows: RowFilter, file: str, *, to: str, budget: int | None) -> None:
    """Print a document or write it to a file. Of a section's file, only the section is replaced."""
    from omcli.exchange.markdown import DOCUMENTS
    from omcli.operations.context import known_project
    from omcli.operations.export import export_document

    document = DOCUMENTS[to]
    query = replace(rows.query(run), last=rows.last)
    if rows.is_open:
        query = replace(query, project=known_project(run.wiring.reading, (run.project, *run.folders)) or run.project)
    if unknown := lookup.unknown(run.wiring.reading, query):
        run.console.note(unknown)
    counter = run.wiring.counter_or_default(run.console.warn)
    name = query.session or Path(query.project or "all projects").name
    found = export_document(
        run.wiring.reading, query, document, project=name, budget=budget or document.budget, counter=counter
    )
    said = {"rows": found.rows, "left_out": found.left_out, "tokens": found.tokens, "counter": counter.name}
    if file == _STDOUT:
        if run.json:
            run.output.document({"format": to, "text": found.text, **said})
        else:
            run.output.text(found.text)
        return
    is_changed = _write_section(Path(file), found.text, has_rows=found.rows > 0) if document.is_section else True
    if not document.is_section:
        _write(run, file, [found.text])
    if run.json:
        run.output.document({"format": to, "path": file, "changed": is_changed, **said})
    change = "" if is_changed else ", unchanged"
    run.console.report(f"{file}: {to}, {counted(found.rows, 'row')}, {counted(found.tokens, 'token')}{change}")


def _write_section(file: Path, section: str, *, has_rows: bool) -> bool:
    """Write om's section of a file in one step. Return False if nothing changes: the file already has this section, or
    it has none and the new one has no rows.

    Raise the errors of `with_section`, `read` and `replace_content`.
    """
    from omcli.clients.files import read, replace_content, target
    from omcli.exchange.markdown import SECTION
    from omcli.exchange.marks import marks, with_section

    before = read(target(file))
    try:
        after = with_section(before or b"", SECTION, section)
    except BadInput as error:
        raise BadInput(f"{file}: {error.message}", hint=error.hint) from None
    has_section = any(mark.name == SECTION for mark in marks(before or b""))
    if after == before or not (has_rows or has_section):
        return False
    replace_content(file, before, after)
    return True


_OFTEN = 1000
"""Number of pieces after which progress is shown."""


def _content(run: Run, name: str, pieces: Iterable[str]) -> Iterator[bytes]:
    for number, piece in enumerate(pieces, start=1):
        if number % _OFTEN == 0:
            run.console.progress(f"{name}: {number} lines")
        yield piece.encode()


def _write(run: Run, name: str, pieces: Iterable[str], *, key: str | None = None) -> bool:
    """Write a file, in one step unless it is a device or a pipe. If it is new, only its owner can read it. Return True
    if it was encrypted with the key: a device or a pipe never is.

    Raise BadUsage if its path begins with that of the store, CannotCreate if it cannot be opened, and InputOutput
    if writing fails.
    """
    from omcli.clients.files import new_file, target

    file, store, content = target(Path(name)), target(run.wiring.spool_path), _content(run, name, pieces)
    if file.parent == store.parent and file.name.startswith(store.name):
        raise BadUsage(f"{name} belongs to the store", hint="name another file")
    try:
        is_file = file.is_file() or not file.exists()
        with new_file(file, mode=0o600) if is_file else file.open("wb") as stream:
            if is_file and key is not None:
                from omcli.sqlite.cipher import write_lines

                write_lines(Path(stream.name), content, key=key)
            else:
                stream.writelines(content)
    except OSError as error:
        kind = InputOutput if error.errno in _OF_DISKS else CannotCreate
        raise kind(f"cannot write {name}: {error.strerror}") from None
    return is_file and key is not None


_IMPORT_EXAMPLES = """\b
om import memory.jsonl
om import --key-command "pass show om-of-laptop" memory.jsonl
ssh laptop om export --to jsonl | om import -
om import --format zora-jsonl memory.jsonl
om import --format pi --session ID notes.txt
om import --format claude-mem ~/.claude-mem/claude-mem.db
om export --to duet-groups | om import --db other.db --format duet-groups -
"""


@with_shared(examples=_IMPORT_EXAMPLES)
def import_(
    run: Run,
    files: Annotated[
        list[str] | None,
        argument(metavar="[FILE]...", help="Files, folders or databases to read; `-` is stdin.  [default: -]"),
    ] = None,
    *,
    format_: Annotated[
        str,
        option(
            "--format",
            metavar="NAME",
            help=f"Input format: {', '.join(INPUT_NAMES)}.",
            autocompletion=_input_names,
        ),
    ] = OWN,
    session: Annotated[str | None, session_option("Assign all rows but items to this session. Not for jsonl.")] = None,
    key_command: Annotated[
        str | None,
        option("--key-command", metavar="CMD", help="Command that prints the key of an encrypted FILE."),
    ] = None,
) -> None:
    """Read memory that another machine or tool wrote.

    By default, merges what `om export --to jsonl` wrote on another machine, each file as a whole or not at all, and
    says what was new. Importing a file again changes nothing, and two machines that import each other's memory end up
    with the same one. What was hidden, forgotten or undone on one is so on the other. If both observed the same
    messages, the rows of the one that was later are hidden. Merging cannot be undone; a backup is made first unless one
    was made in the last 20 hours, or `consolidate.backups` is 0. An encrypted file is read with the key that
    --key-command prints or, without that option, with the one found where the store's key is looked for: om-store(5).
    The store need not be encrypted, or have the same key.

    With the `--format` of another tool, prints the new rows, one per line, as `om log` does. Rows that are already
    stored are skipped, so you can import a file again whenever it has grown. Rows without a session belong to the
    project that the file names, otherwise to that of the current directory. If rows name messages as their sources, all
    pending messages up to the last of these count as observed. `--format duet-groups` also reads the records of duet's
    own store, as JSON.

    The formats observational-memory, claude-mem, mem0 and chatgpt are those of other programs' memory, for moving to
    om; om-transcript(5) says where it is kept and what becomes of it. The files are only read.
    """
    from omcli.operations.importing import ImportInput

    if not files and is_terminal_input():
        raise BadUsage("nothing to import", hint="`om import FILE`, or `< FILE`")
    check_session(session)
    if format_ == OWN:
        if session is not None:
            raise BadUsage("`--session` needs a format of another tool", hint="om's own format names the sessions")
        _merge(run, files or [STDIN], key_command)
        return
    if key_command is not None:
        raise BadUsage("`--key-command` is for encrypted files of om", hint="leave out `--format`, or the command")
    exchange = named(format_)
    if run.is_read_only("nothing was stored"):
        return
    session = run.session_or_new(session)
    inputs = [ImportInput(name=name, read=partial(memory_text, name, exchange)) for name in files or [STDIN]]
    with run.output.optional():  # store rows even if the reader of stdout goes away
        _take_in(run, inputs, exchange, session)


def _merge(run: Run, files: list[str], key_command: str | None) -> None:
    """Merge files that om wrote, each with a report. An error in one file does not stop the others."""
    from omcli.operations.records import import_records

    if run.is_read_only("nothing was stored"):
        return
    deps, backups = run.deps(), run.settings.consolidate.backups
    documents: list[dict[str, object]] = []
    failures: list[OmError] = []
    for name in deps.each(files, "file"):
        document: dict[str, object] = {"path": name, "format": OWN}
        documents.append(document)
        try:
            with lines_of(name, run.settings, key_command=key_command) as lines:
                report = import_records(name, lines, deps, backups=backups)
        except OmError as error:
            failures.append(error)
            run.console.error(error, about=name)
            document["error"] = error_as_dict(error)
            continue
        document |= {"new": dict(report.counts), "redactions": dict(report.redactions)}
        if not run.json:
            run.console.report(_merged(report))
    if run.json and len(failures) < len(files):
        run.output.document({"files": documents})
    _end(run, failures, is_all=len(failures) == len(files))


def _merged(report: MergeReport) -> str:
    counts, secrets, nouns = report.counts, sum(report.redactions.values()), ("session", "message", "row", "operation")
    told = (
        *((counts.get(noun), counted(counts.get(noun, 0), f"new {noun}")) for noun in nouns),
        *((counts.get(what), f"{counted(counts.get(what, 0), 'row')} {what}") for what in ("repeated", "erased")),
        (secrets, f"{counted(secrets, 'secret')} redacted"),
    )
    return f"{report.path}: {', '.join(what for number, what in told if number) or 'nothing new'}"


def _take_in(run: Run, inputs: list[ImportInput], exchange: Exchange, session: str | None) -> None:
    from omcli.operations.importing import import_files

    reports: list[ImportReport] = []
    documents: list[dict[str, object]] = []
    rows: list[Observation] = []
    for report in import_files(
        inputs,
        exchange,
        run.deps(),
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
    failures = [report.error for report in reports if report.error is not None]
    has_skipped = any(report.skipped for report in reports)
    _end(run, failures, is_all=len(failures) == len(reports), has_skipped=has_skipped)


def _end(run: Run, failures: list[OmError], *, is_all: bool, has_skipped: bool = False) -> None:
    """Raise Exit with the code of the first error that counts, if any. An unreadable or invalid file counts only if
    every file failed, or with `--strict`. A skipped line counts only with `--strict`.
    """
    decisive = [error for error in failures if not isinstance(error, BadInput | NoInput)]
    if run.strict or is_all:
        decisive += failures
    if decisive:
        raise Exit(decisive[0].exit_code)
    if run.strict and has_skipped:
        raise Exit(BadInput.exit_code)


def _summary(report: ImportReport, format_name: str) -> str:
    secrets, lines = sum(report.redactions.values()), sum(report.skipped.values())
    told = (
        (report.known, f"{report.known} known"),
        (report.replaced, f"{report.replaced} replaced"),
        (report.covered, f"{counted(report.covered, 'message')} covered"),
        (report.missing, f"{counted(report.missing, 'group')} without messages"),
        (report.undated, f"{counted(report.undated, 'row')} without a valid date"),
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
        **({"replaced": report.replaced} if report.replaced else {}),
        "covered": report.covered,
        "missing": report.missing,
        **({"undated": report.undated} if report.undated else {}),
        "skipped": dict(report.skipped),
        "redactions": dict(report.redactions),
        "rows": [full_row(observation) for observation in rows],
        **({"error": error_as_dict(report.error)} if report.error is not None else {}),
    }
