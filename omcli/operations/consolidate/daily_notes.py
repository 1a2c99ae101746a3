"""Daily notes: ingesting, observing and reflecting on them, then archiving them if enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from omcli.base.errors import OF_MODELS, OF_ONE_SESSION, CannotCreate, InputOutput, OmError, Unusable
from omcli.base.record import record, replace
from omcli.exchange.daily_notes import Note, Notebook, section, session_of
from omcli.memory.changes import UNDONE
from omcli.memory.observation import Kind, LogQuery
from omcli.memory.ports import Store
from omcli.memory.reflection import ReflectionOutcome, Scope
from omcli.memory.transcript import IngestedFile
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.observe.session import observe_session
from omcli.operations.reflect.session import Reflection, reflect_session
from omcli.pack.salience import by_salience
from omcli.text.clean import USER
from omcli.text.similarity import folded_text

MOST_FACTS = 6
"""Maximum number of lines about one day in `MEMORY.md`. The number is small because agents read the whole file every
time.
"""


@record
class ArchivePolicy:
    before: str | None = None
    """Notes of days before this date are archived. None means that no notes are archived."""
    reads_only: bool = False
    """True to leave forgotten facts in `MEMORY.md`, so that no file is changed unless notes are archived."""

    def takes(self, note: Note) -> bool:
        return self.before is not None and note.day < self.before


@record
class NoteReport:
    """The outcome for one day's note."""

    note: Note
    session: str
    new_messages: int = 0
    observations: int = 0
    reflection: Reflection | None = None
    archived: str | None = None
    """New path, or None if the note was not archived."""
    left: str | None = None
    """Reason why a due note was not archived."""
    error: OmError | None = None
    """Error that ended work on the note, which was not archived."""


def keep_notes(
    notebook: Notebook, deps: Deps, archiving: ArchivePolicy, *, extend: Callable[[], None]
) -> Iterator[NoteReport]:
    """Day by day, ingest new text in the note, observe it, reflect on it, and archive the note if it is due.

    A note is archived once all of it is observed and reflected on and its lasting facts are in `MEMORY.md`, so an
    interrupted run can be repeated. Once a model is unavailable, notes are only ingested. Forgotten facts are removed
    from `MEMORY.md` first, unless `archiving.reads_only`. Only reports of notes with work to do are yielded. `extend`
    is called before each note. Raise NoInput if the folder cannot be read.
    """
    with suppress(InputOutput, CannotCreate):  # a part that has to write reports the error
        if not archiving.reads_only:
            notebook.forget(lambda facts: _are_forgotten(facts, deps.store))
    known = {taken.origin.path: taken for taken in deps.store.bookmarks.files()}
    waiting = {each.session.id for each in deps.store.sessions.summaries() if not each.is_observed}
    asks = True
    for note in deps.each(notebook.notes(), "note"):
        extend()
        report = _kept(note, notebook, deps, known, archiving, waiting=waiting, asks=asks)
        if report is None:
            continue
        yield report
        if isinstance(report.error, OF_MODELS) and not isinstance(report.error, OF_ONE_SESSION):
            asks = False


def plan_notes(notebook: Notebook, store: Store, archiving: ArchivePolicy) -> Iterator[tuple[Note, bool, bool]]:
    """Yield each note to ingest or archive and two flags: True if it would be ingested, and True if it would be
    archived.

    Raise NoInput if the folder or a note cannot be read.
    """
    known = {taken.origin.path: taken for taken in store.bookmarks.files()}
    for note in notebook.notes():
        changed, moves = notebook.as_it_is(note) != known.get(note.path), archiving.takes(note)
        if changed or moves:
            yield note, changed, moves


def _kept(
    note: Note,
    notebook: Notebook,
    deps: Deps,
    known: Mapping[str, IngestedFile],
    archiving: ArchivePolicy,
    *,
    waiting: set[str],
    asks: bool,
) -> NoteReport | None:
    session = session_of(notebook.path, note.day)
    report = NoteReport(note=note, session=session)
    moves = archiving.takes(note)
    try:
        now = notebook.as_it_is(note)
        is_known = now == known.get(note.path)
        if is_known and not moves and session not in waiting and _is_reflected(session, deps):
            return None
        if not is_known:
            taken = _taken_in(note, notebook, deps)
            report = replace(report, new_messages=taken.new_messages)
        if not asks:
            return replace(report, left="the model failed") if moves else report
        for step in observe_session(session, deps):
            report = replace(report, observations=report.observations + len(step.rows))
        report = replace(report, reflection=reflect_session(session, deps))
        return _moved(report, notebook, deps, now) if moves else report
    except OmError as error:
        return replace(report, error=error)


def _taken_in(note: Note, notebook: Notebook, deps: Deps) -> FileReport:
    entry = FileInput(name=note.path, open=lambda: notebook.opened(note))
    (report,) = ingest_files([entry], deps)
    if report.error is not None:
        raise report.error
    return report


def _is_reflected(session: str, deps: Deps) -> bool:
    """Return True if the last reflection on a day did not fail, or if there was none and the day has no rows."""
    last = deps.store.reflections.last_attempt(Scope(session=session))
    if last is not None:
        return last.ending is not ReflectionOutcome.FAILED
    return not deps.store.rows.tokens(session)


def _moved(report: NoteReport, notebook: Notebook, deps: Deps, known: IngestedFile) -> NoteReport:
    """Write a note's lasting facts to `MEMORY.md`, then archive the note. Do neither if messages are pending that no
    observer has deferred, or if the note has changed.

    Raise Unusable if the last reflection on the note failed.
    """
    store = deps.store
    if any(store.batches.pending(report.session).fresh_tokens.values()):
        return replace(report, left="some of it waits to be observed")
    last = store.reflections.last_attempt(Scope(session=report.session))
    if last is not None and last.ending is ReflectionOutcome.FAILED:
        raise Unusable(f"the last reflection on it failed: {last.error}", hint="`om reflect --again` tries once more")
    if notebook.as_it_is(report.note) != known:
        return replace(report, left="it was written to meanwhile")
    facts = lasting(report.session, store)
    if facts:
        notebook.remember(report.note, section(report.note.day, facts))
    archived = notebook.archive(report.note, known)
    return replace(report, archived=archived, left=None if archived else "it was written to meanwhile")


def _are_forgotten(facts: Sequence[str], store: Store) -> tuple[bool, ...]:
    """Return, for each fact, True if a row with its text was forgotten, with or without a user's mark (`USER`)."""
    bare, said = (store.tombstones.match_texts([f"{by}{fact}" for fact in facts]) for by in ("", USER))
    return tuple(map(any, zip(bare, said, strict=True)))


def lasting(session: str, store: Store) -> tuple[str, ...]:
    """Return the texts of a session's lasting facts, at most `MOST_FACTS`: items first, then the most salient rows.

    Superseded and dropped rows are included, because old rows are folded across sessions, but not if they were undone
    or replaced by another row of the session.
    """
    kinds = (Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)
    rows = [logged.observation for logged in store.rows.log(LogQuery(session=session, kinds=kinds, hidden=True))]
    own = {row.id for row in rows}
    items = [logged.observation for logged in store.rows.log(LogQuery(kinds=(Kind.ITEM,)))]
    standing = [row for row in rows if row.superseded_by not in own and row.reason != UNDONE]
    ranked = [standing[place] for place in by_salience(standing)]
    facts: dict[str, str] = {}
    for row in (*(item for item in items if own.intersection(item.supports)), *ranked):
        text = row.text.removeprefix(USER)
        facts.setdefault(folded_text(text), text)
    return tuple(facts.values())[:MOST_FACTS]
