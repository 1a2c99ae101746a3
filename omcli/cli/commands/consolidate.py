"""`om consolidate`: daily maintenance."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from omcli.base.errors import OF_MODELS, BadUsage, LaneTaken, NoInput, OmError, TryAgain
from omcli.base.record import replace
from omcli.cli.command import Run, check_session, with_shared
from omcli.cli.console import Exit, counted, error_as_dict
from omcli.cli.options import (
    AgainOption,
    BaseUrlOption,
    BestEffortOption,
    DryRunOption,
    EstimateOption,
    JobsOption,
    ModelOption,
    ObserverOption,
    VerifyOption,
    apply_model_options,
    option,
    session_option,
)
from omcli.cli.reports import (
    across_as_dict,
    file_as_dict,
    note_unused_key,
    prune_as_dict,
    reflection_as_dict,
    report_estimate,
    report_projects,
)
from omcli.operations.clock import days
from omcli.wiring.inputs import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omcli.memory.ports import Store
    from omcli.operations.background import MakeDeps
    from omcli.operations.consolidate.daily_notes import NoteReport
    from omcli.operations.consolidate.run import (
        ConsolidateInput,
        ConsolidatePlan,
        ConsolidateReport,
        Failure,
        SessionReport,
    )
    from omcli.operations.prune import PruneReport
    from omcli.operations.reflect.session import Reflection

_EXAMPLES = """\b
om consolidate
om consolidate --session ID
om consolidate --notes ~/notes --archive-after 30d --dry-run
om consolidate --place ~/transcripts --dry-run
"""


@with_shared(examples=_EXAMPLES)
def consolidate(
    run: Run,
    *,
    session: Annotated[str | None, session_option("Only this session, which has ended.")] = None,
    place: Annotated[
        list[Path] | None, option("--place", metavar="PATH", help="Read transcripts only from here. May be repeated.")
    ] = None,
    no_places: Annotated[bool, option("--no-places", help="Read no transcripts.")] = False,
    notes: Annotated[
        str | None, option("--notes", metavar="DIR", help="Folder of daily notes, named YYYY-MM-DD.md.")
    ] = None,
    archive_after: Annotated[
        str | None,
        option("--archive-after", metavar="AGE", help="Move notes older than this, such as 30d, to DIR/archive."),
    ] = None,
    dry_run: DryRunOption = False,
    observer: ObserverOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    verify: VerifyOption = False,
    again: AgainOption = False,
    estimate: EstimateOption = False,
    jobs: JobsOption = None,
    tolerant: BestEffortOption = False,
) -> None:
    """Maintain the memory, daily or after a session has ended.

    This command, in this order: reads new and grown transcripts from the folders of known agents and from paths read
    before; observes and reflects on sessions that are over; reads, observes, reflects on and archives daily notes, if
    enabled; folds old rows across sessions; applies the retention settings; and backs up the store once a day. If one
    part fails, the others still run.

    In folders and their subfolders, *.jsonl, *.ndjson and *.json files are read and symbolic links are followed. Names
    that begin with a dot are skipped unless you name them.

    If the observer cannot be used (for example without an API key), sessions are still reflected on. If the reflector
    cannot be used, they are still observed. The exit code is then 77 or 78.
    --estimate prints the calls, tokens and dollars that the chosen models would take. No model is called: rules do the
    work on a private copy of the store.

    With --session, that session is always observed and reflected on, and transcripts are read only from --place.
    Archived notes move to `archive` in the notes folder, once their lasting facts are in `MEMORY.md` there. If another
    run for the same session, or for all, is in progress, nothing is done and the exit code is 75. If there is neither a
    store nor anything to read, nothing is created and the exit code is 0.
    """
    apply_model_options(run, "observer", provider=observer, model=model, base_url=base_url, verify=verify, again=again)
    run.apply_options({"consolidate.notes": notes, "consolidate.archive_after": _days(archive_after), "jobs": jobs})
    _check(session, place, notes, no_places=no_places)
    if estimate:
        _estimate(run, session, place, no_places=no_places)
        return
    if run.is_read_only("nothing is done"):
        return
    agenda, unchanged = _work(run, session, place, no_places=no_places, read_only=dry_run)
    if dry_run:
        _plan(run, agenda)
        return
    done = _done(run, agenda)
    _report(run, done, unchanged, is_tolerant=tolerant)
    _end(run, done, is_all=bool(place) and not unchanged, is_tolerant=tolerant)


def _days(age: str | None) -> str | float | None:
    """Return an age in days. None and a whole number are returned unchanged. Raise BadUsage if the age is invalid."""
    return age if age is None or age.isdecimal() else days(age)


def _check(session: str | None, place: Sequence[Path] | None, notes: str | None, *, no_places: bool) -> None:
    if place and no_places:
        raise BadUsage("`--place` and `--no-places` exclude each other")
    check_session(session)
    if session is not None and notes is not None:
        raise BadUsage("`--notes` and `--session` exclude each other")


def _work(
    run: Run, session: str | None, place: Sequence[Path] | None, *, no_places: bool, read_only: bool
) -> tuple[ConsolidateInput, int]:
    """Return the input of the maintenance, and the number of unchanged files.

    Raise BadUsage if notes are to be archived but have no folder, and NoInput if a path given with `--place` does not
    exist. Other missing or unreadable paths give warnings.
    """
    from omcli.wiring.consolidate_inputs import consolidate_input

    said = run.settings.consolidate
    if said.archive_after is not None and said.notes is None:
        raise BadUsage("`--archive-after` needs a folder of notes", hint="name it with `--notes`")
    takes_in = not no_places and (session is None or bool(place))
    session = run.session_or_new(session) if takes_in else run.session(session, may_be_new=True)
    if session is not None and not takes_in and run.wiring.reading.sessions.find(session) is None:
        run.note_unknown_session(session)
    found, places = consolidate_input(run.wiring, session, place, takes_in=takes_in, read_only=read_only)
    for missing in places.missing:
        if place:
            raise NoInput(missing, hint="`--place` takes an existing file or folder")
        run.console.warn(missing)
    for unseen in places.unseen:
        run.console.warn(unseen)
    return found, places.unchanged


def _estimate(run: Run, session: str | None, place: Sequence[Path] | None, *, no_places: bool) -> None:
    """Print what the maintenance would cost. No file is changed."""
    from omcli.operations.consolidate.daily_notes import ArchivePolicy

    with run.estimating() as calls:
        agenda, _ = _work(run, session, place, no_places=no_places, read_only=True)
        done = _done(run, replace(agenda, archiving=ArchivePolicy(reads_only=True), open_embedder=None, backups=0))
    _report_errors(run, done.failures, is_tolerant=False)
    report_estimate(run, calls)


def _done(run: Run, agenda: ConsolidateInput) -> ConsolidateReport:
    from omcli.operations.background import check_models
    from omcli.operations.consolidate.run import consolidate
    from omcli.operations.tick import Due

    make: MakeDeps = run.deps
    if not (run.wiring.has_store or agenda.has_input):
        make, agenda = run.deps_or_empty, replace(agenda, backups=0)
    can = check_models(make, Due(), observer=run.observer, reflector=run.reflector, caught=(OmError,))
    try:
        with read_ahead(run.wiring, [source.input for source in agenda.sources], can.deps, observes=True) as given:
            sources = [replace(source, input=each) for source, each in zip(agenda.sources, given, strict=True)]
            return consolidate(replace(agenda, sources=sources), can.deps, missing=can.missing)
    except LaneTaken:
        run.console.note("another `om consolidate` is running; nothing was done")
        raise Exit(TryAgain.exit_code) from None


def _report_errors(run: Run, failures: Sequence[Failure], *, is_tolerant: bool) -> None:
    """Print each failure once. Several parts may fail for the same reason, such as a missing model."""
    told = set()
    for failure in failures:
        error = failure.error
        if (failure.about, error.message) in told:
            continue
        told.add((failure.about, error.message))
        about = "" if failure.about and error.message.startswith(f"{failure.about}: ") else failure.about
        is_small = failure.is_of_a_transcript and not run.strict
        is_warning = is_small or (is_tolerant and isinstance(error, OF_MODELS))
        tell = run.console.warn_of if is_warning else run.console.error
        tell(error, about=about)


def _report(run: Run, done: ConsolidateReport, unchanged: int, *, is_tolerant: bool) -> None:
    _report_errors(run, done.failures, is_tolerant=is_tolerant)
    if run.json:
        run.output.document(_as_dict(done, unchanged))
    else:
        if done.across:
            report_projects(run, done.across)
        run.console.report(f"consolidated: {', '.join(_parts(done)) or 'nothing to do'}")
    note_unused_key(run)


def _parts(done: ConsolidateReport) -> Iterator[str]:
    """Yield the numbers of what was done, in words."""
    messages = sum(report.new_messages for report in done.files) + sum(note.new_messages for note in done.notes)
    rows = sum(session.observations for session in done.sessions) + sum(note.observations for note in done.notes)
    taken = [report for report in done.files if report.error is None]
    made = _reflections(done)
    numbers = (
        (len(taken), "file"),
        (messages, "message"),
        (rows, "observation"),
        (sum(len(reflection.rows) for reflection in made), "reflection"),
        (sum(len(reflection.items) for reflection in made), "item"),
    )
    yield from (counted(number, noun) for number, noun in numbers if number)
    if archived := sum(note.archived is not None for note in done.notes):
        yield f"{counted(archived, 'note')} archived"
    if left := [note for note in done.notes if note.left]:
        yield f"{counted(len(left), 'note')} left ({left[0].left})"
    yield from (f"{part} pruned" for part in _rows_and_messages(done.pruned))
    if done.embedded and done.embedded.places:
        yield f"{done.embedded.places} embedded"
    if done.going_on:
        yield f"{counted(len(done.going_on), 'session')} still going on"
    if backup := _backup(done):
        yield f"backup {backup}"
    if failures := {(failure.about, failure.error.message) for failure in done.failures}:
        yield counted(len(failures), "failure")


def _rows_and_messages(pruned: PruneReport | None) -> Iterator[str]:
    if pruned is None:
        return
    for number, noun in ((pruned.count, "row"), (sum(pruned.counted.values()), "message")):
        if number:
            yield counted(number, noun)


def _reflections(done: ConsolidateReport) -> list[Reflection]:
    found = [session.reflection for session in done.sessions] + [note.reflection for note in done.notes]
    found.append(done.across.reflection if done.across else None)
    return [reflection for reflection in found if reflection is not None]


def _backup(done: ConsolidateReport) -> str | None:
    """Return the path of the daily backup, or else of the backup made before folding across sessions; None if there is
    neither.
    """
    made = done.backup.path if done.backup else None
    return made or (done.across.snapshot if done.across else None)


def _end(run: Run, done: ConsolidateReport, *, is_all: bool, is_tolerant: bool) -> None:
    """Raise Exit with the code of the decisive failure, if any.

    Bad files count only with `--strict`, or if `is_all` is True and all files were bad. `is_all` is True if files were
    named and none was skipped as unchanged.
    """
    exit_error = done.exit_error(but=OF_MODELS if is_tolerant else ())
    if exit_error is not None:
        raise Exit(exit_error.exit_code)
    bad = [failure.error for failure in done.failures if failure.is_of_a_transcript]
    if bad and (run.strict or (is_all and len(bad) == len(done.files))):
        raise Exit(bad[0].exit_code)


def _as_dict(done: ConsolidateReport, unchanged: int) -> dict[str, object]:

    across = {"global": across_as_dict(done.across)} if done.across else {}
    backup = _backup(done)
    return {
        "files": [file_as_dict(report, ()) for report in done.files],
        "unchanged_files": unchanged,
        "sessions": [_session_as_dict(session) for session in done.sessions],
        "going_on": done.going_on,
        "notes": [_note_as_dict(note) for note in done.notes],
        **across,
        **({"retention": prune_as_dict(done.pruned)} if done.pruned else {}),
        **({"embedded": done.embedded.places} if done.embedded else {}),
        **({"backup": backup} if backup else {}),
        "backups_removed": list(done.backup.removed) if done.backup else [],
        "failures": [
            {
                "part": failure.part,
                **({"about": failure.about} if failure.about else {}),
                **error_as_dict(failure.error),
            }
            for failure in done.failures
        ],
        "dry_run": False,
    }


def _session_as_dict(session: SessionReport) -> dict[str, object]:

    reflection = {"reflection": reflection_as_dict(session.reflection)} if session.reflection else {}
    error = {"error": error_as_dict(session.error)} if session.error else {}
    return {"session": session.session, "observations": session.observations, **reflection, **error}


def _note_as_dict(note: NoteReport) -> dict[str, object]:

    found = {
        "day": note.note.day,
        "path": note.note.path,
        "session": note.session,
        "new_messages": note.new_messages,
        "observations": note.observations,
        "reflection": reflection_as_dict(note.reflection) if note.reflection else None,
        "archived": note.archived,
        "left": note.left,
        "error": error_as_dict(note.error) if note.error else None,
    }
    return {name: value for name, value in found.items() if value is not None}


# ---- the dry run


def _plan(run: Run, agenda: ConsolidateInput) -> None:
    from omcli.operations.consolidate.run import plan_consolidate

    reflector = None
    try:
        run.observer()
        reflector = run.reflector()
    except OF_MODELS as error:
        run.console.warn(error.message)
    found = plan_consolidate(agenda, run.deps(reflector=reflector, open_store=lambda: run.wiring.reading))
    if run.json:
        run.output.document({**_plan_as_dict(found, run.wiring.reading), "dry_run": True})
        return
    lines = list(filter(None, _lines(found)))
    for line in lines:
        run.output.line(line)
    if not lines:
        run.console.note("nothing to do")


def _lines(found: ConsolidatePlan) -> Iterator[str]:
    yield from (f"take in  {name}" for name in found.files)
    for each in found.sessions:
        yield f"observe  {counted(each.pending, 'message')} of {each.session}" if each.pending else ""
        yield f"reflect  {each.session}" if each.reflect else ""
    for note, is_new, moves in found.notes:
        yield f"take in  {note.path}" if is_new else ""
        yield f"archive  {note.path}" if moves else ""
    if found.plan and found.plan.batches:
        rows = Counter[str]()
        for batch in found.plan.batches:
            rows[batch.project or "no project"] += len(batch.rows)
        yield from (f"fold     {counted(number, 'row')} of {project}" for project, number in rows.items())
    if parts := list(_rows_and_messages(found.pruned)):
        yield f"prune    {', '.join(parts)}"
    if found.backup:
        yield "back up  the store"


def _plan_as_dict(found: ConsolidatePlan, store: Store) -> dict[str, object]:
    from omcli.operations.reflect.cross_session import ids_of

    return {
        "files": list(found.files),
        "sessions": [
            {"session": each.session, "pending": each.pending, "reflect": each.reflect} for each in found.sessions
        ],
        "going_on": list(found.going_on),
        "notes": [
            {"day": note.day, "path": note.path, "take_in": is_new, "archive": moves}
            for note, is_new, moves in found.notes
        ],
        "global": [row for batch in (found.plan.batches if found.plan else ()) for row in ids_of(batch, store)],
        "prune": [row.id for row in found.pruned.rows] if found.pruned else [],
        "prune_messages": dict(found.pruned.counted) if found.pruned else {},
        "backup": found.backup,
    }
