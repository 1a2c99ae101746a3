"""`om observe`: remember transcripts."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import ELSEWHERE, OF_MODELS, BadInput, BadUsage, NoInput, OmError, TryAgain
from omcli.cli.arguments import argument, option
from omcli.cli.command import with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    BaseUrlOption,
    BestEffortOption,
    ModelOption,
    ObserverOption,
    VerifyOption,
    apply_model_options,
    format_option,
    session_option,
)
from omcli.cli.reports import file_as_dict, file_summary
from omcli.cli.run import Run, check_transcript

if TYPE_CHECKING:
    from omcli.memory.observation import Observation
    from omcli.operations.deps import Deps
    from omcli.operations.ingest.files import FileInput, FileReport

_EXAMPLES = """\b
om observe < transcript.jsonl
om observe ~/.claude/projects/*/*.jsonl
om observe session.jsonl --json | jq '.files[0].session_id'
om observe t.jsonl --model ollama/qwen2.5:7b
om observe --background t.jsonl
jq -c '.messages[]' chat.json | om observe --format openai -
"""

_BAD_INPUT: tuple[type[OmError], ...] = (BadInput, NoInput)
_OF_ONE_INPUT = (*_BAD_INPUT, TryAgain, *OF_MODELS)
"""Errors that concern one input; any other would occur with the next input as well."""
_TOLERATED = (*OF_MODELS, *ELSEWHERE)
"""Errors that `--best-effort` turns into warnings: the messages are stored and stay pending."""


@with_shared(examples=_EXAMPLES)
def observe(
    run: Run,
    files: Annotated[list[str] | None, argument(metavar="[FILE]...", help="Transcripts; `-` is stdin.")] = None,
    *,
    format_: Annotated[str | None, format_option("Input format. Detected from content if omitted.")] = None,
    session: Annotated[str | None, session_option("Assign all messages to this session.")] = None,
    observer: ObserverOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    later: Annotated[bool, option("--later", help="Only store the messages; `om tick` observes them.")] = False,
    background: Annotated[
        bool, option("--background", help="Store the messages and leave the rest to a worker.")
    ] = False,
    verify: VerifyOption = False,
    tolerant: BestEffortOption = False,
) -> None:
    """Read transcripts and print the new observations.

    Prints one line per observation, as `om log` does. Messages are stored verbatim, without secrets. Messages that are
    stored already are skipped, so run the same command again whenever a transcript has grown. A bad file is skipped; a
    store error ends the run.

    A model observes if you name one or set ANTHROPIC_API_KEY or OPENAI_API_KEY, and rules check what it writes;
    otherwise rules observe. If the model fails, the messages are stored and the next run observes them.

    With --background a worker observes what is due, as `om tick` does, and this command returns at once. If more than
    `observe.block_after` tokens are pending already, it observes them itself first. Errors are then warnings; `om
    status` shows the worker's log and its last result.
    """
    from omcli.operations.ingest.files import FileInput
    from omcli.wiring.inputs import STDIN

    if later and background:
        raise BadUsage("`--later` and `--background` exclude each other")
    check_transcript("observe", given=bool(files), format_name=format_, session=session)
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify)
    files = [] if run.is_read_only("nothing was stored") else files or [STDIN]
    opened = partial(run.wiring.transcript, format_name=format_, session=session)
    inputs = [FileInput(name=name, open=partial(opened, name)) for name in files]
    tolerant = tolerant or background
    with run.output.optional():  # store messages even if the reader of stdout goes away
        deps, failed = _deps(run, later=later, is_tolerant=tolerant)
        waits = later or background or failed is not None
        reports, documents = _take_in(run, inputs, session, deps, waits=waits, is_tolerant=tolerant)
        document: dict[str, object] = {"files": documents}
        if background:
            from omcli.cli.background import leave, model_arguments, worker_as_dict

            words = model_arguments(observer=observer, model=model, base_url=base_url, verify=verify)
            sessions = [session_id for report in reports for session_id in report.sessions]
            document["background"] = worker_as_dict(leave(run, deps, sessions, words, unable=failed))
        _finish(run, reports, document, None if tolerant else failed, is_tolerant=tolerant)


def _deps(run: Run, *, later: bool, is_tolerant: bool) -> tuple[Deps, OmError | None]:
    """Return the dependencies, and the error if the model is unavailable, so that it is printed before any work is
    done.
    """
    deps = run.deps()
    if later or run.settings.disabled:
        with suppress(*OF_MODELS):  # reported when they are observed; images are kept if the model takes them
            deps = run.wiring.with_observer(deps)
        return deps, None
    try:
        return run.wiring.with_observer(deps), None
    except OF_MODELS as error:
        tell = run.console.warn_of if is_tolerant else run.console.error
        tell(error)
        return deps, error


def _take_in(
    run: Run, inputs: list[FileInput], session: str | None, deps: Deps, *, waits: bool, is_tolerant: bool
) -> tuple[list[FileReport], list[dict[str, object]]]:
    """Ingest the inputs, and observe them unless `waits`; return their reports, and the same as JSON with rows."""
    from omcli.operations.ingest.files import ingest_files
    from omcli.operations.observe.session import observe_files

    reports: list[FileReport] = []
    documents: list[dict[str, object]] = []
    if not inputs:
        return reports, documents
    rows: list[Observation] = []
    each = rows.append if run.json else run.output.row
    done = (
        ingest_files(inputs, deps, session=session)
        if waits
        else observe_files(inputs, deps, session=session, each=each)
    )
    for report in done:
        _report_file(run, report, is_tolerant=is_tolerant)
        reports.append(report)
        if run.json:
            documents.append(file_as_dict(report, rows))
            rows.clear()
        if report.error is not None and not isinstance(report.error, _OF_ONE_INPUT):
            break
    if left := len(inputs) - len(reports):
        run.console.note(f"{counted(left, 'more input')} not read: the store failed")
    return reports, documents


def _report_file(run: Run, report: FileReport, *, is_tolerant: bool) -> None:
    if not run.json and (report.error is None or report.sessions):
        run.console.report(file_summary(report))
    if report.error is not None:
        is_warning = is_tolerant and isinstance(report.error, _TOLERATED)
        tell = run.console.warn_of if is_warning else run.console.error
        tell(report.error, about=report.path)


def _finish(
    run: Run,
    reports: list[FileReport],
    document: dict[str, object],
    failed: OmError | None,
    *,
    is_tolerant: bool,
) -> None:
    """Print the document and exit with the code of the decisive error; an error `failed` from before the first input
    counts last.

    A bad input among good ones does not change the exit code.
    """
    failures = [report.error for report in reports if report.error is not None]
    if is_tolerant:
        failures = [error for error in failures if not isinstance(error, _TOLERATED)]
    taken = [report for report in reports if report.error is None or report.sessions]
    if run.json and (taken or not reports):
        run.output.document(document)
    decisive = [error for error in failures if not isinstance(error, _BAD_INPUT)]
    if run.strict or (reports and len(failures) == len(reports)):
        decisive += failures
    if decisive:
        raise Exit(decisive[0].exit_code)
    if run.strict and any(report.faults for report in reports):
        raise Exit(BadInput.exit_code)
    if failed is not None:
        raise Exit(failed.exit_code)
