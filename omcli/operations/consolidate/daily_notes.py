"""Daily notes: taken in, observed and reflected on; then, where that is asked for, summarised and archived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from omcli.base.errors import OF_MATERIAL, OF_MODELS, CannotCreate, InputOutput, OmError, Unusable
from omcli.base.record import record, replace
from omcli.memory.changes import UNDONE
from omcli.memory.daily_notes import Note, Notebook, section, session_of
from omcli.memory.observation import Kind
from omcli.memory.ports import LogQuery, Store
from omcli.memory.reflection import ReflectionOutcome, Scope
from omcli.memory.transcript import IngestedFile
from omcli.operations.deps import Deps
from omcli.operations.ingest.files import FileInput, FileReport, ingest_files
from omcli.operations.observe.session import observe_session
from omcli.operations.reflect.rows import Reflection
from omcli.operations.reflect.session import reflect_session
from omcli.pack.salience import by_salience
from omcli.text.phrases import USER
from omcli.text.similarity import wording

MOST_FACTS = 6
"""Lines about a day in `MEMORY.md`, which its readers read every time."""


@record
class Archiving:
    """Which notes are moved."""

    before: str | None = None
    """Those of earlier days than this one; None: none are."""

    def takes(self, note: Note) -> bool:
        """Whether a note is to be moved."""
        return self.before is not None and note.day < self.before


@record
class NoteReport:
    """What became of a day's note."""

    note: Note
    session: str
    new_messages: int = 0
    observations: int = 0
    reflection: Reflection | None = None
    archived: str | None = None
    """Where it is now."""
    left: str | None = None
    """Why a note that was to be moved was not."""
    error: OmError | None = None
    """What ended the work on it; the note is where it was."""


def keep_notes(
    notebook: Notebook, deps: Deps, archiving: Archiving, *, extend: Callable[[], None]
) -> Iterator[NoteReport]:
    """Takes in what is new in the notes, observes it and reflects on it, day by day; then moves what is to be moved.

    A note is moved when all of it is observed and reflected on. Before that what lasts of it is put into `MEMORY.md`:
    whatever happens in between, the next run comes to the same. Where a model fails nothing is touched, and the rest is
    only taken in. What was forgotten leaves `MEMORY.md` before anything else. Yields those of which there is something
    to tell. Raises NoInput where there is no such folder.
    """
    with suppress(InputOutput, CannotCreate):  # whoever has something to write there says so
        notebook.unremember(lambda facts: _are_forgotten(facts, deps.store))
    known = {taken.origin.path: taken for taken in deps.store.bookmarks.files()}
    waiting = {each.session.id for each in deps.store.sessions.summaries() if each.pending}
    asks = True
    for note in notebook.notes():
        extend()
        report = _kept(note, notebook, deps, known, archiving, waiting=waiting, asks=asks)
        if report is None:
            continue
        yield report
        if isinstance(report.error, OF_MODELS) and not isinstance(report.error, OF_MATERIAL):
            asks = False


def foreseen(notebook: Notebook, store: Store, archiving: Archiving) -> Iterator[tuple[Note, bool, bool]]:
    """Notes with whether they would be taken in, and whether they are to be moved. Raises NoInput."""
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
    archiving: Archiving,
    *,
    waiting: set[str],
    asks: bool,
) -> NoteReport | None:
    """What became of a note; None for one that is as it was and where it was."""
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
    """Takes a note in, for somebody to observe it."""
    entry = FileInput(name=note.path, open=lambda: notebook.opened(note))
    (report,) = ingest_files([entry], deps)
    if report.error is not None:
        raise report.error
    return report


def _is_reflected(session: str, deps: Deps) -> bool:
    """Whether the last reflection on a day came to an end; a day without rows needs none."""
    last = deps.store.reflections.last_attempt(Scope(session=session))
    if last is not None:
        return last.ending is not ReflectionOutcome.FAILED
    return not deps.store.rows.tokens(session)


def _moved(report: NoteReport, notebook: Notebook, deps: Deps, known: IngestedFile) -> NoteReport:
    """Moves a note, with what lasts of it said before; or leaves it where it is."""
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
    """For each fact whether it was forgotten, in the words of its row."""
    bare, said = (store.tombstones.match_texts([f"{by}{fact}" for fact in facts]) for by in ("", USER))
    return tuple(map(any, zip(bare, said, strict=True)))


def lasting(session: str, store: Store) -> tuple[str, ...]:
    """What lasts of a session, in the words of its rows, at most `MOST_FACTS`: its items, then what says most.

    Whether a row is still in sight does not matter, for what is old is folded across sessions; one that another row of
    the session took the place of gives way to that, and one that was made and taken back is none.
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
        facts.setdefault(wording(text), text)
    return tuple(facts.values())[:MOST_FACTS]
