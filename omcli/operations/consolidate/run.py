"""Maintenance, daily or after a session has ended. If one part fails, the others still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from omcli.base.errors import OF_ONE_SESSION, BadInput, IndexDamaged, NoInput, OmError, TryAgain
from omcli.base.record import field, mutable_record, record
from omcli.exchange.daily_notes import Note, Notebook
from omcli.llm.model import Embedder
from omcli.memory.ports import Lane
from omcli.memory.retention import BackupResult, RetentionRules
from omcli.memory.session import SessionSummary
from omcli.operations.clock import Clock
from omcli.operations.consolidate import daily_notes
from omcli.operations.consolidate.daily_notes import ArchivePolicy, NoteReport, keep_notes
from omcli.operations.deps import Deps, hold_and_extend
from omcli.operations.embed import EmbedReport, embed
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.observe.session import observe_session
from omcli.operations.prune import PruneReport, prune
from omcli.operations.reflect import session as reflect
from omcli.operations.reflect.cross_session import GlobalPlan, GlobalReflection, reason_to_skip, reflect_cross_session
from omcli.operations.reflect.session import Reflection

PLACES = "places"
"""Name of the part that ingests transcripts."""
_SESSIONS = "sessions"
IDLE_SECONDS = 600
"""A session counts as ended after this many seconds without a message."""
_OF_ONE_FILE = (BadInput, NoInput, TryAgain)
"""Errors that concern a single file. After any other error, the next file would fail too."""
_DECISIVE = (70, 74, 73, 78, 77, 69, 75, 66, 65)
"""Exit codes, the most decisive first: faults of the program or the disk precede those of a model or a file. All other
codes precede these.
"""


@record
class TranscriptFile:
    input: FileInput
    session: str | None = None


@record
class ConsolidateInput:
    """The requested maintenance."""

    session: str | None = None
    """The only session to maintain, or None for all. It is observed even if it has not ended, and reflected on even if
    that is not due.
    """
    sources: Sequence[TranscriptFile] = ()
    notebook: Notebook | None = None
    archiving: ArchivePolicy = ArchivePolicy()
    min_age: float = 3.0
    """Minimum age, in days, of rows folded across sessions."""
    batch_tokens: int = 20_000
    rules: RetentionRules = RetentionRules()
    """Retention rules. If `session` is given, their own `session` has to be the same."""
    open_embedder: Callable[[], Embedder] | None = None
    """Function that returns the model that makes vectors. None means that no vectors are made."""
    backups: int = 0
    """Number of backups to keep. 0 means that none is made."""

    @property
    def has_input(self) -> bool:
        """True if there is something to ingest. Only then is a missing store created."""
        try:
            return bool(self.sources) or (self.notebook is not None and bool(self.notebook.notes()))
        except NoInput:
            return False  # reported when the notes are read


@record
class Failure:
    """An error, the part of the run in which it occurred, and the file, session or folder concerned."""

    part: str
    about: str
    error: OmError

    @property
    def is_of_a_transcript(self) -> bool:
        """True if only a single transcript is at fault."""
        return self.part == PLACES and isinstance(self.error, (BadInput, NoInput))


@record
class SessionReport:
    """The outcome for one session. Rows are only counted, because all rows of a first run might not fit into memory."""

    session: str
    observations: int = 0
    reflection: Reflection | None = None
    error: OmError | None = None
    """Error that ended work on the session. Finished steps are not undone."""


@mutable_record
class ConsolidateReport:
    """The outcome of all parts."""

    files: list[FileReport] = field(default_factory=list)
    sessions: list[SessionReport] = field(default_factory=list)
    going_on: list[str] = field(default_factory=list)
    """Active sessions with pending messages, which are left for the next run."""
    notes: list[NoteReport] = field(default_factory=list)
    across: GlobalReflection | None = None
    pruned: PruneReport | None = None
    embedded: EmbedReport | None = None
    backup: BackupResult | None = None
    failures: list[Failure] = field(default_factory=list)

    @contextmanager
    def part(self, name: str, about: str = "") -> Iterator[None]:
        """Record an OmError raised in the `with` block, and go on after the block."""
        try:
            yield
        except OmError as error:
            self.failures.append(Failure(part=name, about=about, error=error))

    def exit_error(self, *, but: tuple[type[OmError], ...] = ()) -> OmError | None:
        """Return the error that determines the exit code, or None.

        Errors of the classes in `but` and unreadable transcripts are ignored.
        """
        counted = (failure.error for failure in self.failures if not failure.is_of_a_transcript)
        errors = [error for error in counted if not isinstance(error, but)]
        return min(errors, key=lambda error: _order(error.exit_code), default=None)


def _order(code: int) -> int:
    return _DECISIVE.index(code) if code in _DECISIVE else -1


def consolidate(agenda: ConsolidateInput, deps: Deps, *, missing: Mapping[Lane, OmError]) -> ConsolidateReport:
    """Do all parts that `agenda` requests, in order, under one lease.

    `missing` maps lanes to the errors of unavailable models; the work that needs these models is skipped. Raise
    LaneTaken at once if another process is consolidating the same session or, if none is requested, all sessions.
    """
    done = ConsolidateReport()
    with hold_and_extend(agenda.session or "", Lane.CONSOLIDATE, deps) as extend:
        with done.part(PLACES):
            _take_in(agenda, deps, done, extend)
        for error in missing.values():
            done.failures.append(Failure(part=_SESSIONS, about="", error=error))
        _look_after(agenda, deps, missing, done, extend)
        if agenda.notebook is not None:
            with done.part("notes", agenda.notebook.path):
                _check_models(missing, Lane.REFLECT, Lane.OBSERVE)
                _keep_notes(agenda, agenda.notebook, deps, done, extend)
        if agenda.session is None:
            with done.part("global"):
                extend()
                _check_models(missing, Lane.REFLECT)
                done.across = reflect_cross_session(deps, min_age=agenda.min_age, batch_tokens=agenda.batch_tokens)
        if not agenda.rules.is_empty:
            with done.part("retention"):
                extend()
                done.pruned = prune(deps.store, agenda.rules, counter=deps.counter, clock=deps.clock)
        if agenda.open_embedder is not None:
            with done.part("embeddings"):
                done.embedded = embed(deps, agenda.open_embedder(), progress=lambda _: extend())
        if agenda.session is None:
            with done.part("backup"):
                extend()
                _check_index(deps)
        if agenda.backups:
            with done.part("backup"):
                extend()
                done.backup = deps.store.backups.back_up(keep=agenda.backups, now=deps.clock.now())
    return done


def _check_index(deps: Deps) -> None:
    """Rebuild the index of words if it is damaged, because nobody would notice a search that finds less."""
    index = deps.store.index
    try:
        index.check(thoroughly=True)
    except IndexDamaged:
        index.renew()
        deps.warn("the index of words was damaged and has been rebuilt; nothing is lost")


def _check_models(missing: Mapping[Lane, OmError], *lanes: Lane) -> None:
    for lane in lanes:
        if lane in missing:
            raise missing[lane]


def _take_in(agenda: ConsolidateInput, deps: Deps, done: ConsolidateReport, extend: Callable[[], None]) -> None:
    """Ingest the sources and record failures, until an error occurs that would affect every file. New messages are
    observed later.
    """
    for source in deps.each(agenda.sources, "file"):
        extend()
        for report in ingest_files([source.input], deps, session=source.session):
            done.files.append(report)
            if report.error is not None:
                done.failures.append(Failure(part=PLACES, about=report.path, error=report.error))
                if not isinstance(report.error, _OF_ONE_FILE):
                    return


def _look_after(
    agenda: ConsolidateInput,
    deps: Deps,
    missing: Mapping[Lane, OmError],
    done: ConsolidateReport,
    extend: Callable[[], None],
) -> None:
    """Observe the pending messages of ended sessions, and reflect on those sessions if that is due. If a session is
    requested, do both for that session alone, ended and due or not. Stop at an error that would affect every session.
    """
    with done.part(_SESSIONS):
        wanted = [each for each in deps.store.sessions.summaries() if agenda.session in (None, each.session.id)]
        for summary in deps.each(wanted, "session"):
            session = summary.session.id
            if agenda.session is None and is_active(summary, deps.clock):
                done.going_on += [] if summary.is_observed else [session]
                continue
            extend()
            found = _consolidate_session(summary, deps, missing, in_any_case=agenda.session is not None, extend=extend)
            if found is None:
                continue
            done.sessions.append(found)
            if found.error is not None:
                done.failures.append(Failure(part=_SESSIONS, about=session, error=found.error))
                if not isinstance(found.error, OF_ONE_SESSION):
                    return


def is_active(summary: SessionSummary, clock: Clock) -> bool:
    """Return True if the last date of the session's messages is less than `IDLE_SECONDS` ago, and False if it is in the
    future or no message has a date.
    """
    return summary.last_at is not None and clock.after(-IDLE_SECONDS) < summary.last_at <= clock.now()


def _consolidate_session(
    summary: SessionSummary,
    deps: Deps,
    missing: Mapping[Lane, OmError],
    *,
    in_any_case: bool,
    extend: Callable[[], None],
) -> SessionReport | None:
    """Observe and reflect on a session. Return None if there are no new rows and no reflection was tried."""
    session, observations, reflection = summary.session.id, 0, None
    try:
        if not summary.is_observed and Lane.OBSERVE not in missing:
            for step in observe_session(session, deps):
                observations += len(step.rows)
                extend()
        if Lane.REFLECT not in missing:
            reflection = reflect.reflect_if_due(session, deps, in_any_case=in_any_case)
    except OmError as error:
        return SessionReport(session=session, observations=observations, error=error)
    if reflection is not None and reflection.ending is None:
        reflection = None  # nothing was tried
    if not observations and reflection is None:
        return None
    return SessionReport(session=session, observations=observations, reflection=reflection)


def _keep_notes(
    agenda: ConsolidateInput, notebook: Notebook, deps: Deps, done: ConsolidateReport, extend: Callable[[], None]
) -> None:
    for report in keep_notes(notebook, deps, agenda.archiving, extend=extend):
        done.notes.append(report)
        if report.error is not None:
            done.failures.append(Failure(part="notes", about=report.note.path, error=report.error))


@record
class DueSession:
    session: str
    pending: int
    """Number of counted messages (see `Message.is_counted`) that would be observed."""
    reflect: bool


@record
class ConsolidatePlan:
    files: tuple[str, ...]
    sessions: tuple[DueSession, ...]
    going_on: tuple[str, ...]
    notes: tuple[tuple[Note, bool, bool], ...]
    """Notes to ingest or archive and two flags each: True if it would be ingested, and True if it would be archived."""
    plan: GlobalPlan | None
    pruned: PruneReport | None
    backup: bool


def plan_consolidate(agenda: ConsolidateInput, deps: Deps) -> ConsolidatePlan:
    """Return a plan of the work that `consolidate` would do, without doing it. Raise NoInput if the folder of notes or
    a note cannot be read.
    """
    going_on, plan = [], None
    if agenda.session is None:
        summaries = deps.store.sessions.summaries()
        going_on = [each.session.id for each in summaries if not each.is_observed and is_active(each, deps.clock)]
        whole = reflect_cross_session(deps, min_age=agenda.min_age, batch_tokens=agenda.batch_tokens, dry_run=True)
        plan = None if reason_to_skip(whole.plan, deps) else whole.plan
    notes = daily_notes.plan_notes(agenda.notebook, deps.store, agenda.archiving) if agenda.notebook else ()
    return ConsolidatePlan(
        files=tuple(source.input.name for source in agenda.sources),
        sessions=tuple(_waiting(agenda, deps)),
        going_on=tuple(going_on),
        notes=tuple(notes),
        plan=plan,
        pruned=None if agenda.rules.is_empty else _prune(agenda, deps),
        backup=bool(agenda.backups) and deps.store.backups.is_due(now=deps.clock.now()),
    )


def _prune(agenda: ConsolidateInput, deps: Deps) -> PruneReport:
    return prune(deps.store, agenda.rules, counter=deps.counter, clock=deps.clock, dry_run=True)


def _waiting(agenda: ConsolidateInput, deps: Deps) -> Iterator[DueSession]:
    for summary in deps.store.sessions.summaries():
        session = summary.session.id
        if agenda.session not in (None, session) or (agenda.session is None and is_active(summary, deps.clock)):
            continue
        folds = agenda.session is not None or reflect.is_due(session, deps)
        if folds or not summary.is_observed:
            yield DueSession(session=session, pending=summary.pending, reflect=folds)
