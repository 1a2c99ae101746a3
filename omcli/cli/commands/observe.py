"""`om observe`: remember transcripts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import ELSEWHERE, OF_MODELS, BadInput, BadUsage, NoInput, OmError, StoreDamaged, TryAgain
from omcli.base.record import replace
from omcli.cli.command import Run, check_transcript, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    AgainOption,
    BaseUrlOption,
    BestEffortOption,
    EstimateOption,
    JobsOption,
    ModelOption,
    ObserverOption,
    VerifyOption,
    apply_model_options,
    argument,
    format_option,
    option,
    session_option,
)
from omcli.cli.reports import file_as_dict, file_summary, note_unused_key, warn_of_spool
from omcli.wiring.inputs import STDIN, open_spool, read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omcli.memory.observation import Observation
    from omcli.operations.deps import Deps
    from omcli.operations.ingest.files import FileInput, FileReport

_EXAMPLES = """\b
om observe < transcript.jsonl
om observe ~/.claude/projects/*/*.jsonl
om observe session.jsonl --json | jq '.files[0].session_id'
om observe t.jsonl --model ollama/qwen2.5:7b
om observe t.jsonl --model anthropic/claude-haiku-4-5 --estimate
om observe --background t.jsonl
jq -c '.messages[]' chat.json | om observe --format openai -
"""

_BAD_INPUT: tuple[type[OmError], ...] = (BadInput, NoInput)
_OF_ONE_INPUT = (*_BAD_INPUT, TryAgain, *OF_MODELS)
"""Errors that concern only one input. Any other error would occur again with the next input."""
_TOLERATED = (*OF_MODELS, *ELSEWHERE)
"""Errors that `--best-effort` and `--background` turn into warnings. The messages are stored, and stay pending unless
another process observes them.
"""


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
    background: Annotated[bool, option("--background", help="Store the messages; a worker does the rest.")] = False,
    verify: VerifyOption = False,
    again: AgainOption = False,
    estimate: EstimateOption = False,
    jobs: JobsOption = None,
    tolerant: BestEffortOption = False,
) -> None:
    """Read transcripts and print the new observations.

    Prints one line per observation, as `om log` does. Messages are stored verbatim except for secrets, which are
    replaced. Messages that are already stored are skipped, so you can run the same command again whenever a transcript
    has grown. A file that cannot be read is skipped; an error of the store ends the run. If the store is locked or its
    disk is full, messages from a pipe are kept in a folder beside it, its spool, until the next command that writes to
    the store. With --strict they are not kept, and the command fails.

    Rules observe, unless you choose a model: with --model or --observer, a variable such as OM_OBSERVER_PROVIDER, a
    configuration file, or a preset that has one. An API key alone chooses none. If the model fails, a later run
    observes the messages. After several failures the session waits (see `om status`); --again asks at once.

    --estimate prints how many calls, tokens and dollars the chosen model would take, without calling it: `om` builds
    the prompts on a private copy of the store, and assumes replies with a quarter of the tokens of the messages shown.

    With --background, the messages are stored, and a worker does what `om tick` would do. If rules observe, or
    `observe.block_after` tokens are pending, the command observes them itself before it returns. Errors of models are
    only warnings; `om status` shows the worker's log and its last result.
    """
    _check_modes(later=later, background=background, estimate=estimate)
    check_transcript("observe", given=bool(files), format_name=format_, session=session)
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify, again=again)
    run.apply_options({"jobs": jobs})
    session = run.session_or_new(session)
    if estimate:
        _estimate(run, files, format_, session)
        return
    inputs = [] if run.is_read_only("nothing was stored") else _inputs(run, files, format_, session)
    shown = _ReportOutput(run, is_tolerant=tolerant or background)
    with run.output.optional():  # store messages even if the reader of stdout goes away
        deps, failed = _deps(run, later=later, is_tolerant=tolerant or background)
        waits = later or background or failed is not None
        with read_ahead(run.wiring, inputs, deps, observes=not waits) as given:
            for report in _start(given, deps, session, each=None if waits else shown.each_row):
                if not shown.report(report):
                    break
        shown.note_rest(len(inputs))
        if background:
            from omcli.cli.background import leave, model_arguments, worker_as_dict

            words = model_arguments(observer=observer, model=model, base_url=base_url, verify=verify, again=again)
            shown.worker = worker_as_dict(leave(run, deps, shown.sessions, words, unable=failed))
        shown.finish(failed)


def _check_modes(*, later: bool, background: bool, estimate: bool) -> None:
    if later and background:
        raise BadUsage("`--later` and `--background` exclude each other")
    if estimate and (later or background):
        raise BadUsage("`--estimate` excludes `--later` and `--background`")


def _inputs(run: Run, files: list[str] | None, format_name: str | None, session: str | None) -> list[FileInput]:
    from omcli.operations.ingest.files import FileInput, InputFile

    opened = partial(run.wiring.transcript, format_name=format_name, session=session)
    file = partial(InputFile, format_name=format_name, session=session)
    return [
        FileInput(name=name, open=partial(opened, name), file=None if name == STDIN else file(path=name))
        for name in files or [STDIN]
    ]


def _estimate(run: Run, files: list[str] | None, format_name: str | None, session: str | None) -> None:
    """Print what observing the files would cost. Raise Exit if none of them can be read."""
    from omcli.cli.reports import report_estimate
    from omcli.operations.observe.session import observe_files

    with run.estimating() as calls:
        inputs = _inputs(run, files, format_name, session)
        reports = list(observe_files(inputs, run.deps(observer=run.observer()), session=session))
    failures = [(report.error, report.path) for report in reports if report.error is not None]
    for error, path in failures:
        run.console.error(error, about=path)
    if len(failures) == len(reports):
        raise Exit(failures[0][0].exit_code)
    report_estimate(run, calls)


def _deps(run: Run, *, later: bool, is_tolerant: bool) -> tuple[Deps, OmError | None]:
    """Return the dependencies, and the error if the model is unavailable.

    The model is checked before anything is read, so that its error is printed first. If nothing is observed now, its
    error is ignored.
    """
    try:
        return _with_spool(run, run.deps(observer=run.observer())), None
    except OF_MODELS as error:
        deps = _with_spool(run, run.deps())
        if later or run.settings.disabled:  # reported when the messages are observed
            return deps, None
        tell = run.console.warn_of if is_tolerant else run.console.error
        tell(error)
        return deps, error


def _with_spool(run: Run, deps: Deps) -> Deps:
    return deps if run.strict else replace(deps, open_spool=partial(open_spool, run.wiring))


def _start(
    inputs: Sequence[FileInput], deps: Deps, session: str | None, *, each: Callable[[Observation], None] | None
) -> Iterator[FileReport]:
    """Return an iterator over the reports. It ingests an input at each step, and also observes it unless `each` is
    None.

    `each` is called with every new row.
    """
    if each is None:
        from omcli.operations.ingest.files import ingest_files

        return ingest_files(inputs, deps, session=session)
    from omcli.operations.observe.session import observe_files

    return observe_files(inputs, deps, session=session, each=each)


class _ReportOutput:
    """Prints the reports, or collects them for `--json`, and determines the exit code."""

    def __init__(self, run: Run, *, is_tolerant: bool) -> None:
        self.worker: dict[str, object] | None = None
        self._run = run
        self._is_tolerant = is_tolerant
        self._reports: list[FileReport] = []
        self._documents: list[dict[str, object]] = []
        self._rows: list[Observation] = []
        self.each_row = self._rows.append if run.json else run.output.row

    @property
    def sessions(self) -> list[str]:
        """The sessions of all stored inputs reported so far."""
        stored = (report for report in self._reports if report.spooled_for is None)
        return [session_id for report in stored for session_id in report.sessions]

    def report(self, report: FileReport) -> bool:
        """Print a report and its error. With `--json`, keep the report and its rows for the document. Return False if
        its error would occur again with the next input.
        """
        self._reports.append(report)
        if self._run.json:
            self._documents.append(file_as_dict(report, self._rows))
            self._rows.clear()
        elif report.error is None or report.sessions:
            self._run.console.report(file_summary(report, is_verbose=self._run.is_verbose))
        if report.error is not None:
            is_warning = self._is_tolerant and isinstance(report.error, _TOLERATED)
            tell = self._run.console.warn_of if is_warning else self._run.console.error
            tell(report.error, about=report.path)
        if report.spooled_for is not None:
            warn_of_spool(self._run, report.spooled_for, about=report.path)
        return report.error is None or isinstance(report.error, _OF_ONE_INPUT)

    def note_rest(self, inputs: int) -> None:
        """Print a note if fewer reports than inputs were received."""
        if left := inputs - len(self._reports):
            self._run.console.note(f"{counted(left, 'more input')} not read: the store failed")

    def finish(self, failed: OmError | None) -> None:
        """Print the last note and raise Exit with the code of the decisive error, if any. With `--json`, print the
        document first, unless all inputs failed and gave no session.

        `failed` is the error of an unavailable model; errors of inputs take precedence. A bad input among good ones or
        a skipped line changes the exit code only with `--strict`.
        """
        note_unused_key(self._run)
        reports = self._reports
        failures = [report.error for report in reports if report.error is not None]
        if self._is_tolerant:
            failures = [error for error in failures if not isinstance(error, _TOLERATED)]
        if self._run.json and (not reports or any(report.error is None or report.sessions for report in reports)):
            worker = {} if self.worker is None else {"background": self.worker}
            self._run.output.document({"files": self._documents, **worker})
        decisive = [error for error in failures if not isinstance(error, _BAD_INPUT)]
        if self._run.strict or (reports and len(failures) == len(reports)):
            decisive += failures
        # Their messages wait in the spool, but the error has a damaged store replaced by its backup.
        decisive += [report.spooled_for for report in reports if isinstance(report.spooled_for, StoreDamaged)]
        if decisive:
            raise Exit(decisive[0].exit_code)
        if self._run.strict and any(report.faults for report in reports):
            raise Exit(BadInput.exit_code)
        if failed is not None and not self._is_tolerant:
            raise Exit(failed.exit_code)
