"""What is looked after once a day, or when a session has ended: part after part, each going on where another failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

from omcli.base.errors import OF_ONE_SESSION, BadInput, NoInput, OmError, TryAgain
from omcli.base.record import field, mutable_record, record, replace
from omcli.memory.daily_notes import Notebook
from omcli.memory.ports import Lane, SessionSummary
from omcli.memory.retention import BackupResult, RetentionRules
from omcli.operations.clock import Clock
from omcli.operations.consolidate.daily_notes import Archiving, NoteReport, keep_notes
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.leases import hold, keeping_alive, throttled
from omcli.operations.observe.session import observe_session
from omcli.operations.prune import Pruned, prune
from omcli.operations.reflect import session as reflect
from omcli.operations.reflect.cross_session import GlobalReflection, reflect_globally
from omcli.operations.reflect.rows import Reflection

PLACES = "places"
"""The part that takes transcripts in."""
_SESSIONS = "sessions"
IDLE_SECONDS = 600
"""How long nothing has to have been said in a session before it is taken to be over."""
_OF_ONE_FILE = (BadInput, NoInput, TryAgain)
"""What keeps no other file from being kept; after anything else the store would refuse that as well."""
_DECISIVE = (70, 74, 73, 78, 77, 69, 75, 66, 65)
"""Exit codes, the most decisive first: of what the program or the disk does before what a model, or a file, does."""


@record
class Source:
    """A file to take in, and the session it belongs to where that was said."""

    input: FileInput
    session: str | None = None


@record
class Agenda:
    """What is to be looked after."""

    session: str | None = None
    """Only this one: what waits of it is observed, and it is reflected on in any case."""
    sources: Sequence[Source] = ()
    notebook: Notebook | None = None
    archiving: Archiving = Archiving()
    min_age: float = 3.0
    """Days; as `reflect_globally` has it."""
    batch_tokens: int = 20_000
    rules: RetentionRules = RetentionRules()
    """What is kept; with a session, of that."""
    backups: int = 0
    """How many are kept; 0: none is made."""

    @property
    def brings_something(self) -> bool:
        """Whether there is anything to be taken in: a store that there is not yet is only made for that."""
        try:
            return bool(self.sources) or (self.notebook is not None and bool(self.notebook.notes()))
        except NoInput:
            return False  # which is told when it is their turn


@record
class Failure:
    """What went wrong, and with what."""

    part: str
    about: str
    error: OmError

    @property
    def is_of_a_transcript(self) -> bool:
        """Whether nothing is wrong but with one of the transcripts that were to be taken in."""
        return self.part == PLACES and isinstance(self.error, (BadInput, NoInput))


@record
class LookedAfter:
    """What was done with a session. Rows are only counted: the first run of all may make more than fit into memory."""

    session: str
    observations: int = 0
    reflection: Reflection | None = None
    error: OmError | None = None
    """What ended the work on it; what was done before stays done."""


@mutable_record
class Consolidated:
    """What was done; where something failed, the rest was done all the same."""

    files: list[FileReport] = field(default_factory=list)
    sessions: list[LookedAfter] = field(default_factory=list)
    going_on: list[str] = field(default_factory=list)
    """Sessions with messages that wait, and were said just now: they are left for the next run."""
    notes: list[NoteReport] = field(default_factory=list)
    across: GlobalReflection | None = None
    pruned: Pruned | None = None
    """What retention took out of sight; None where nothing says what is kept."""
    backup: BackupResult | None = None
    failures: list[Failure] = field(default_factory=list)

    @contextmanager
    def part(self, name: str, about: str = "") -> Iterator[None]:
        """Keeps what goes wrong inside."""
        try:
            yield
        except OmError as error:
            self.failures.append(Failure(part=name, about=about, error=error))

    def decisive(self, *, but: tuple[type[OmError], ...] = ()) -> OmError | None:
        """The failure that the run is to end with; None where nothing failed, but for what does not count.

        A transcript that cannot be read costs that transcript, and never counts.
        """
        counted = (failure.error for failure in self.failures if not failure.is_of_a_transcript)
        errors = [error for error in counted if not isinstance(error, but)]
        return min(errors, key=lambda error: _rank(error.exit_code), default=None)


def _rank(code: int) -> int:
    return _DECISIVE.index(code) if code in _DECISIVE else -1


def consolidate(
    agenda: Agenda,
    deps: Deps,
    *,
    observing: Callable[[Deps], Deps],
    reflecting: Callable[[Deps], Deps],
) -> Consolidated:
    """Does all of it, in order, under one lease.

    The two give who observes and who reflects, and raise where that cannot be had: what the other one does, and what
    needs nobody, is done then all the same. Raises LaneTaken, at once, where somebody else is at it.
    """
    done = Consolidated()
    with hold(agenda.session or "", Lane.CONSOLIDATE, deps, wait=0.0) as claim:
        extend = throttled(claim, deps)
        deps = keeping_alive(deps, extend)
        observed_by, reflected_by = cache(partial(observing, deps)), cache(partial(reflecting, deps))
        with done.part(PLACES):
            _take_in(agenda, deps, done, extend)
        _look_after(agenda, deps, _Hands(done, observed_by, reflected_by), done, extend)
        if agenda.notebook is not None:
            with done.part("notes", agenda.notebook.path):
                both = replace(reflected_by(), observer=observed_by().observer)
                _keep_notes(agenda, agenda.notebook, both, done, extend)
        if agenda.session is None:
            with done.part("global"):
                extend()
                done.across = reflect_globally(reflected_by(), min_age=agenda.min_age, batch_tokens=agenda.batch_tokens)
        if not agenda.rules.is_empty:
            with done.part("retention"):
                extend()
                done.pruned = prune(deps.store, agenda.rules, counter=deps.counter, clock=deps.clock)
        if agenda.backups:
            with done.part("backup"):
                extend()
                done.backup = deps.store.backups.back_up(keep=agenda.backups, now=deps.clock.now())
    return done


def _take_in(agenda: Agenda, deps: Deps, done: Consolidated, extend: Callable[[], None]) -> None:
    """Keeps what is new; it is observed with all else that waits."""
    for source in agenda.sources:
        extend()
        for report in ingest_files([source.input], deps, session=source.session):
            done.files.append(report)
            if report.error is not None:
                done.failures.append(Failure(part=PLACES, about=report.path, error=report.error))
                if not isinstance(report.error, _OF_ONE_FILE):
                    return


class _Hands:
    """Who looks after sessions: one observes, one reflects, and either may not be had, which is noted."""

    def __init__(self, done: Consolidated, observed_by: Callable[[], Deps], reflected_by: Callable[[], Deps]) -> None:
        self.observing: Deps | None = None
        self.reflecting: Deps | None = None
        with done.part(_SESSIONS):
            self.observing = observed_by()
        with done.part(_SESSIONS):
            self.reflecting = reflected_by()


def _look_after(agenda: Agenda, deps: Deps, hands: _Hands, done: Consolidated, extend: Callable[[], None]) -> None:
    """Observes what waits of sessions that are over, and reflects where that is due."""
    with done.part(_SESSIONS):
        for summary in deps.store.sessions.summaries():
            session = summary.session.id
            if agenda.session not in (None, session):
                continue
            if agenda.session is None and is_going_on(summary, deps.clock):
                done.going_on += [session] if summary.pending else []
                continue
            extend()
            found = _looked_after(summary, hands, in_any_case=agenda.session is not None, extend=extend)
            if found is None:
                continue
            done.sessions.append(found)
            if found.error is not None:
                done.failures.append(Failure(part=_SESSIONS, about=session, error=found.error))
                if not isinstance(found.error, OF_ONE_SESSION):
                    return


def is_going_on(summary: SessionSummary, clock: Clock) -> bool:
    """Whether something was said just now. A clock that is ahead of ours says nothing."""
    return summary.last_at is not None and clock.later(-IDLE_SECONDS) < summary.last_at <= clock.now()


def _looked_after(
    summary: SessionSummary, hands: _Hands, *, in_any_case: bool, extend: Callable[[], None]
) -> LookedAfter | None:
    """What was done with a session; None where there was nothing to do."""
    session, observations, reflection = summary.session.id, 0, None
    try:
        for step in observe_session(session, hands.observing) if hands.observing and summary.pending else ():
            observations += len(step.rows)
            extend()
        if hands.reflecting is not None:
            reflection = reflect.reflect_where_due(session, hands.reflecting, in_any_case=in_any_case)
    except OmError as error:
        return LookedAfter(session=session, observations=observations, error=error)
    if reflection is not None and reflection.ending is None:
        reflection = None  # nothing was tried
    if not observations and reflection is None:
        return None
    return LookedAfter(session=session, observations=observations, reflection=reflection)


def _keep_notes(agenda: Agenda, notebook: Notebook, deps: Deps, done: Consolidated, extend: Callable[[], None]) -> None:
    for report in keep_notes(notebook, deps, agenda.archiving, extend=extend):
        done.notes.append(report)
        if report.error is not None:
            done.failures.append(Failure(part="notes", about=report.note.path, error=report.error))
