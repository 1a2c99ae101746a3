"""`om observe`: take transcripts in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.cli.arguments import argument
from omcli.cli.diagnostics import Ended, as_dict
from omcli.cli.options import Run, check_transcript, named_format, named_session, with_shared
from omcli.memory.errors import BadInput, NoInput, OmError, TryAgain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omcli.memory.observation import Observation
    from omcli.operations.observe import FileReport, Input

EXAMPLES = """\b
om observe < transcript.jsonl
om observe ~/.claude/projects/*/*.jsonl
om observe session.jsonl --json | jq '.files[0].session_id'
jq -c '.messages[]' chat.json | om observe --format openai -
"""

_BAD_INPUT: tuple[type[OmError], ...] = (BadInput, NoInput)
_OF_ONE_INPUT = (*_BAD_INPUT, TryAgain)
"""What concerns one input or its session; after anything else the store would refuse the next input as well."""


@with_shared()
def observe(
    run: Run,
    files: Annotated[list[str] | None, argument(metavar="[FILE]...", help="Transcripts; `-` is stdin.")] = None,
    *,
    format_: Annotated[
        str | None,
        named_format("What they are: claude-code, codex, … Recognised by content."),
    ] = None,
    session: Annotated[
        str | None,
        named_session("The session they belong to, whatever they say."),
    ] = None,
) -> None:
    """Take transcripts in and print what is worth remembering.

    One line per observation, as in `om log`. Messages are kept verbatim, without secrets. What was taken in before is
    not taken in again, so the same command can be repeated whenever a transcript has grown. One bad file does not
    stop the others; a store that fails ends the run.
    """
    from omcli.operations.observe import Input
    from omcli.wiring import STDIN

    check_transcript("observe", given=bool(files), format_name=format_, session=session)
    if run.settings.disabled:
        run.talk.note(f"disabled by {run.settings.origin('disabled')}: nothing was taken in")
        files = []
    else:
        files = files or [STDIN]
    opened = partial(run.wiring.transcript, format_name=format_, session=session)
    inputs = [Input(name=name, open=partial(opened, name)) for name in files]
    with run.output.optional():  # what is taken in is not lost because nobody reads the rest of what is printed
        reports, documents = _take_in(run, inputs, session)
        _finish(run, reports, documents)


def _take_in(run: Run, inputs: list[Input], session: str | None) -> tuple[list[FileReport], list[dict[str, object]]]:
    """What became of each input; as JSON with its rows, where that is asked for."""
    from omcli.operations.observe import observe_files

    reports: list[FileReport] = []
    documents: list[dict[str, object]] = []
    if not inputs:
        return reports, documents
    rows: list[Observation] = []
    workshop = run.wiring.workshop(run.counter, run.show_progress)
    each = rows.append if run.json else run.output.row
    for report in observe_files(inputs, workshop, session=session, each=each):
        _tell(run, report)
        reports.append(report)
        if run.json:
            documents.append(_as_dict(report, rows))
            rows.clear()
        if report.error is not None and not isinstance(report.error, _OF_ONE_INPUT):
            break
    if left := len(inputs) - len(reports):
        run.talk.note(f"{_number(left, 'more input')} not taken in: the store failed")
    return reports, documents


def _tell(run: Run, report: FileReport) -> None:
    if not run.json and (report.error is None or report.sessions):
        run.talk.report(_summary(report))
    if report.error is not None:
        run.talk.error(report.error, about=report.path)


def _finish(run: Run, reports: list[FileReport], documents: list[dict[str, object]]) -> None:
    """Prints the document, and ends with the code of what went wrong.

    A bad input among good ones is only reported; what kept a good one from being taken in is never passed over.
    """
    failures = [report.error for report in reports if report.error is not None]
    taken = [report for report in reports if report.error is None or report.sessions]
    if run.json and (taken or not reports):
        run.output.document({"files": documents})
    decisive = [error for error in failures if not isinstance(error, _BAD_INPUT)]
    if run.strict or len(failures) == len(reports):
        decisive += failures
    if decisive:
        raise Ended(decisive[0].exit_code)
    if run.strict and any(report.faults for report in reports):
        raise Ended(BadInput.exit_code)


def _summary(report: FileReport) -> str:
    if report.format is None:
        return f"{report.path}: no messages"
    counts = report.counts
    parts = [
        report.format,
        f"{_number(counts.messages, 'message')} ({report.new_messages} new)" if counts.messages else "no messages",
        _number(report.observations, "observation"),
    ]
    if report.side_messages:
        parts.append(f"{report.side_messages} more in side chains")
    if secrets := sum(report.redactions.values()):
        parts.append(f"{_number(secrets, 'secret')} redacted")
    if report.faults:
        parts.append(f"{_number(sum(report.faults.values()), 'line')} skipped: {_listed(report.faults)}")
    return f"{report.path}: {', '.join(parts)}"


def _as_dict(report: FileReport, rows: Iterable[Observation]) -> dict[str, object]:
    from omcli.memory.rows import full_row

    counts = report.counts
    optional = {"format": report.format, "session_id": report.session_id, "cwd": report.cwd}
    return {
        "path": report.path,
        **{name: value for name, value in optional.items() if value is not None},
        "sessions": list(report.sessions),
        "messages": counts.messages,
        "human_messages": counts.human_messages,
        "assistant_messages": counts.assistant_messages,
        "tool_calls": counts.tool_calls,
        "tool_results": counts.tool_results,
        "errors": counts.errors,
        "compactions": counts.compactions,
        "new_messages": report.new_messages,
        "known_messages": report.known_messages,
        "asides": counts.asides,
        "side_messages": report.side_messages,
        "images": report.images,
        "skipped": dict(report.skipped),
        "redactions": dict(report.redactions),
        "unread_bytes": report.unread_bytes,
        "observations": report.observations,
        "rows": [full_row(observation) for observation in rows],
        **({"error": as_dict(report.error)} if report.error is not None else {}),
    }


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items(), key=lambda pair: -pair[1]))


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
