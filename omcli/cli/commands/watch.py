"""`om watch`: follow files and folders."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import OF_MODELS, BadInput, BadUsage, NoInput, OmError
from omcli.cli.background import checked_models
from omcli.cli.command import Run, with_shared
from omcli.cli.console import Exit, counted
from omcli.cli.options import (
    BaseUrlOption,
    BestEffortOption,
    ModelOption,
    ObserverOption,
    StreamOption,
    VerifyOption,
    apply_model_options,
    argument,
    format_option,
    option,
)
from omcli.cli.reports import file_as_dict, file_summary, report_tick, tick_as_dict
from omcli.memory.observation import full_row
from omcli.text.instants import check_number
from omcli.wiring import check_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from omcli.operations.ingest.files import FileReport
    from omcli.operations.tick import TickReport
    from omcli.operations.watch import Event, RoundDeps, Watch

_EXAMPLES = """\b
om watch ~/.claude/projects
om watch ~/.codex/sessions --preset zora --model ollama/qwen2.5:7b
om watch notes --glob '*.log' --format text --jsonl | jq -r .text
om watch --once ~/.claude/projects
"""

_SHORTEST, _LONGEST = 0.05, 86_400.0
"""Minimum and maximum number of seconds between rounds."""
_BAD_INPUT = (BadInput, NoInput)


@with_shared(examples=_EXAMPLES)
def watch(
    run: Run,
    paths: Annotated[list[str], argument(metavar="PATH...", help="Files and folders to follow.")],
    *,
    interval: Annotated[float, option("--interval", metavar="SECONDS", help="Seconds between checks.")] = 2.0,
    at_most_every: Annotated[
        float, option("--at-most-every", metavar="SECONDS", help="Minimum time between two reads of a growing file.")
    ] = 5.0,
    once: Annotated[bool, option("--once", help="Check once, do what is due, and exit.")] = False,
    glob: Annotated[
        list[str] | None, option("--glob", metavar="PATTERN", help="Files to follow in folders. May be repeated.")
    ] = None,
    format_: Annotated[str | None, format_option("Input format. Detected from content if omitted.")] = None,
    jsonl: StreamOption = False,
    observer: ObserverOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    verify: VerifyOption = False,
    tolerant: BestEffortOption = False,
) -> None:
    """Follow transcripts as they are written, until Ctrl-C.

    New messages are stored once a file stops growing, or after a few seconds if it keeps growing. Then `om` does what
    is due in their sessions, as `om tick` does, and prints new rows, as `om observe` does.

    In a folder and its subfolders, `om` follows files named *.jsonl or *.ndjson, and *.json, *.txt and *.md files that
    it recognises as transcripts. Names that begin with a dot are skipped. A PATH need not exist yet.

    The error of a file is printed once, and the file is tried again when it changes. If the store is locked or the disk
    is full, `om` tries again. Several processes can watch the same files; nothing is done twice.
    """
    _check(run, paths, spans={"--interval": interval, "--at-most-every": at_most_every}, once=once, jsonl=jsonl)
    if format_:
        check_format(format_)
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify)
    if run.is_read_only("nothing is stored"):
        return
    shown = _EventOutput(run, jsonl=jsonl, is_tolerant=tolerant)
    watching = _watch(run, paths, glob, format_, at_most_every=at_most_every, is_tolerant=tolerant)
    with run.output.optional():  # finish a round even if the reader of stdout goes away
        for event in watching.round() if once else watching.run(interval):
            shown.show(event)
            if run.output.is_lost and not once:
                break
    if once:
        shown.finish()


def _check(run: Run, paths: list[str], *, spans: dict[str, float], once: bool, jsonl: bool) -> None:
    """Raise BadUsage if options are invalid or contradict each other, and NoInput if none of the paths exists. Print a
    note for each missing path if others exist.
    """
    for name, given in spans.items():
        least = _SHORTEST if name == "--interval" else 0
        check_number(given, option=f"{name} ", least=least, most=_LONGEST)
    if run.json and (jsonl or not once):
        raise BadUsage("`--json` prints one document", hint="use `--jsonl` for a stream, or `--once`")
    if "-" in paths:
        raise BadUsage("stdin cannot be watched", hint="`om observe -` reads it")
    missing = [path for path in paths if not os.path.lexists(path)]
    if len(missing) == len(paths):
        raise NoInput(f"{missing[0]}: no such file or folder", hint="check the path")
    for path in missing:
        run.console.note(f"{path} does not exist yet; it is followed once it does")


def _watch(
    run: Run,
    paths: list[str],
    glob: list[str] | None,
    format_name: str | None,
    *,
    at_most_every: float,
    is_tolerant: bool,
) -> Watch:
    """Return the watch over the paths. If a model is unavailable, print its error; then raise Exit unless
    `is_tolerant`.
    """
    from omcli.operations.watch import Watch
    from omcli.wiring.folders import Folders

    can = checked_models(run, run.deps_or_empty)
    for error in can.errors:
        if not is_tolerant:
            run.console.error(error)
            raise Exit(error.exit_code)
        run.console.warn_of(error)  # its work stays pending
    return Watch(
        Folders(paths, glob or ()),
        _opened(run, format_name),
        clock=run.wiring.clock,
        at_most_every=at_most_every,
    )


def _opened(run: Run, format_name: str | None) -> Callable[[], AbstractContextManager[RoundDeps]]:
    """Return a function that opens the dependencies of one round.

    Each round opens the store again, because it may have been moved or restored.
    """
    from omcli.operations.ingest.files import FileInput
    from omcli.operations.watch import RoundDeps

    @contextmanager
    def opened() -> Iterator[RoundDeps]:
        with closing(run.new_wiring()) as wiring:

            def transcript(path: str) -> FileInput:
                return FileInput(name=path, open=partial(wiring.transcript, path, format_name=format_name))

            # A busy session is tried again in a later round.
            can = checked_models(run, partial(run.deps, wiring, wait=0.0), wiring)
            yield RoundDeps(deps=can.deps, when=can.when, transcript=transcript)

    return opened


class _EventOutput:
    """Prints the events of a watch. With `--once` it also prints the document and determines the exit code."""

    def __init__(self, run: Run, *, jsonl: bool, is_tolerant: bool) -> None:
        self._run = run
        self._jsonl = jsonl
        self._is_tolerant = is_tolerant
        self._followed: int | None = None
        self._files: list[dict[str, object]] = []
        self._sessions: list[dict[str, object]] = []
        self._failed: dict[str, OmError] = {}

    def show(self, event: Event) -> None:
        """Print the rows of an event on stdout, and everything else on stderr. With `--json`, rows and reports are kept
        for `finish` instead.
        """
        from omcli.operations.ingest.files import FileReport
        from omcli.operations.tick import TickReport
        from omcli.operations.watch import WatchError

        if isinstance(event, FileReport):
            self._file(event)
        elif isinstance(event, TickReport):
            self._tick(event)
        elif isinstance(event, WatchError):
            self._error(event.error, about=event.about)
        else:
            self._run.output.flush()
            if self._followed is None:
                self._run.console.note(f"following {counted(event.files, 'file')}")
            self._followed = event.files

    def finish(self) -> None:
        """Print the document if `--json` is given, and raise Exit with the code of the decisive error, if any.

        Files that cannot be read or are not transcripts do not change the exit code, unless all files failed or
        `--strict` is given.
        """
        if self._run.json:
            found = {"followed": self._followed, "files": self._files, "sessions": self._sessions}
            self._run.output.document(found)
        failed = list(self._failed.values())
        decisive = [error for error in failed if not isinstance(error, _BAD_INPUT)]
        if self._run.strict or len(failed) >= (self._followed or 0):
            decisive += failed
        if decisive:
            raise Exit(decisive[0].exit_code)

    def _file(self, report: FileReport) -> None:

        if report.error is not None:
            self._error(report.error, about=report.path)
        elif self._run.json:
            self._files.append(file_as_dict(report, ()))
        else:
            self._run.console.report(file_summary(report, is_verbose=self._run.is_verbose))

    def _tick(self, ticked: TickReport) -> None:

        if self._run.json:
            self._sessions.append(tick_as_dict(ticked))
        elif self._jsonl:
            for row in ticked.made:
                self._run.output.json_line(full_row(row))
        else:
            for row in ticked.made:
                self._run.output.row(row)
        self._run.output.flush()
        if ticked.error is not None:
            self._error(ticked.error, about=ticked.session)
        if not self._run.json:
            report_tick(self._run, ticked)

    def _error(self, error: OmError, *, about: str) -> None:
        if self._is_tolerant and isinstance(error, OF_MODELS):
            self._run.console.warn_of(error, about=about)
        else:
            self._run.console.error(error, about=about)
            self._failed[about] = error
