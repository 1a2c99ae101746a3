"""Importing memory from another tool. Rows are stored word for word, except for secrets.

The source messages of the rows count as observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

from omcli.base import ignore
from omcli.base.errors import BadInput, OmError, UnknownId
from omcli.base.record import field, record, replace
from omcli.exchange.groups import (
    MARK,
    Exchange,
    Group,
    GroupRow,
    MessageRange,
    NotARow,
    clean_group,
    nothing,
    origin_fields,
    with_date,
)
from omcli.exchange.known import KnownRows
from omcli.exchange.summary import SUMMARY, parse_before
from omcli.memory.batch import Batch, BatchOutcome
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import UNLIMITED, KeptMessage, Role
from omcli.memory.observation import (
    ITEM_TYPES,
    UNDER,
    UNVERIFIED,
    Draft,
    Dropped,
    Kind,
    LogQuery,
    Observation,
    Priority,
    Source,
    Type,
)
from omcli.memory.ports import Lane, Store
from omcli.memory.reflection import Scope
from omcli.observers.model.authority import is_from_user
from omcli.observers.rules.sentences import text_parts
from omcli.operations.deps import Deps, hold
from omcli.operations.observe.rows import as_row
from omcli.text.clean import clean
from omcli.text.instants import instant, minute
from omcli.text.phrases import speaks_for_user
from omcli.text.redaction import redact
from omcli.text.similarity import folded_text


@record
class ImportInput:
    name: str
    read: Callable[[], str]
    """Return the text. Raise OmError on failure."""


@record
class ImportReport:
    """The outcome of one input. After an `error`, the counts cover the part before it."""

    path: str
    observations: int = 0
    """Number of rows written."""
    known: int = 0
    """Number of rows that were already stored or that occur twice."""
    replaced: int = 0
    """Number of rows that were hidden, because the input gives their id to a later text."""
    covered: int = 0
    """Number of messages that now count as observed."""
    missing: int = 0
    """Number of groups that name messages as covered although the last of these is not stored in the session."""
    undated: int = 0
    """Number of written rows whose date is incomplete or does not exist. They get their group's time or that of the
    import.
    """
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of lines, objects and rows that were not stored, by reason. Known rows are not included."""
    redactions: Mapping[str, int] = field(default_factory=dict)
    """Number of removed secrets, by rule."""
    sessions: tuple[str, ...] = ()
    """Sessions of the rows, in order of appearance."""
    error: OmError | None = None


def import_files(
    inputs: Iterable[ImportInput],
    exchange: Exchange,
    deps: Deps,
    *,
    session: str | None,
    project: str,
    each: Callable[[Observation], None],
    told: Collection[str] = (),
) -> Iterator[ImportReport]:
    """Import each input, and yield its report. An error in one input does not stop the others.

    `session` overrides the sessions named in the inputs. Items belong to no session. Rows without a session belong to
    the directory that the input names for them, otherwise to `project`. `each` is called with every stored row. Rows
    whose text, or all of whose sentences, are among `told` (see `folded_text`) count as known.
    """
    for entry in inputs:
        writer = _GroupWriter(exchange, deps, session=session, project=project, each=each, told=told)
        error = None
        try:
            for found in exchange.parse(entry.read()):
                writer.take(found)
            if writer.is_empty:
                raise BadInput(f"nothing in it is memory as `{exchange.name}` writes it", hint=exchange.hint)
            writer.hide_earlier()
        except OmError as failure:
            error = failure
        yield writer.report(entry.name, error)


class _GroupWriter:
    def __init__(
        self,
        exchange: Exchange,
        deps: Deps,
        *,
        session: str | None,
        project: str,
        each: Callable[[Observation], None],
        told: Collection[str],
    ) -> None:
        self._told = told
        self._format = exchange.name
        self._has_ids = exchange.render is nothing
        self._deps = deps
        self._session = session
        self._project = project
        self._each = each
        self._places: dict[tuple[str | None, str], _Place] = {}
        self._earlier: dict[str, str] = {}
        """By id of a row whose text has changed in the input: the id of the row with the new text."""
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._redactions: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """True if parts of the input were skipped and none was a row, whether new, known or forgotten."""
        return bool(self._skipped) and not (self._counts["new"] or self._counts["known"] or self._skipped["forgotten"])

    def report(self, name: str, error: OmError | None) -> ImportReport:
        return ImportReport(
            path=name,
            observations=self._counts["new"],
            known=self._counts["known"],
            replaced=self._counts["replaced"],
            covered=self._counts["covered"],
            missing=self._counts["missing"],
            undated=self._counts["undated"],
            skipped=dict(self._skipped),
            redactions=dict(self._redactions),
            sessions=tuple(session for session, _ in self._places if session is not None),
            error=error,
        )

    def take(self, found: Group | NotARow) -> None:
        """Write a group's rows and move the session's cursor to the last message that the group covers, in one
        transaction.

        Text that is not a row is only counted. Raise LaneTaken or StaleBatch if another process is observing the
        session.
        """
        if isinstance(found, NotARow):
            self._skipped[found.reason] += 1
            return
        group = clean_group(found, self._clean)
        if not group.entries:
            return  # a group without text covers no messages
        place = self._place(group)
        self._counts["missing"] += place.is_missing(group.reach)
        first, last = place.ends(group.reach)
        rows = self._rows(group, place, [kept for kept in (first, last) if kept])
        self._counts["covered"] += place.keep(rows, through=last.seq if last else 0)
        self._counts["new"] += len(rows)
        for row in rows:
            self._each(row)

    def hide_earlier(self) -> None:
        """Hide the rows whose text has changed since they were imported, in one operation, so that it can be undone."""
        if not self._earlier:
            return
        done = OperationWrite(
            verb=OperationKind.NOTE,
            scope=Scope(project=self._project),
            dropped=tuple(Dropped(row=row, reason="changed", by=by) for row, by in self._earlier.items()),
            figures={"rows": len(self._earlier)},
        )
        self._deps.store.operations.change(done, now=self._deps.clock.now())
        self._counts["replaced"] = len(self._earlier)

    def _clean(self, text: str) -> str:
        redacted = redact(clean(text))
        self._redactions.update(redacted.counts)
        return redacted.text

    def _place(self, group: Group) -> _Place:
        session = None if group.kind is Kind.ITEM else self._session or group.session or self._owner(group.reach)
        where = session, self._project if session is not None else self._directory(group.cwd) or self._project
        if where not in self._places:
            self._places[where] = _Place(self._deps, *where, has_ids=self._has_ids)
        return self._places[where]

    def _owner(self, reach: MessageRange) -> str | None:
        found = _message(self._deps.store, reach.last)
        return found.session if found else None

    def _project_of(self, group: Group, place: _Place) -> str:
        """Return the directory that a group gives by its path, otherwise its session's, otherwise the one with the name
        that the group gives, otherwise the current one.
        """
        given = group.cwd if group.cwd and _is_path(group.cwd) else place.project
        return given or self._directory(group.cwd) or self._project

    def _directory(self, cwd: str | None) -> str | None:
        """Return the directory of a group. If only its last name is given, return the current directory or a session's
        directory with this name, otherwise the name.
        """
        return cwd if cwd is None or _is_path(cwd) else self._named.get(cwd.rpartition("/")[2], cwd)

    @cached_property
    def _named(self) -> dict[str, str]:
        """The current directory and those of sessions, by last name. Of several, the current one counts, otherwise that
        of the latest session.
        """
        projects = [found.session.project or "" for found in self._deps.store.sessions.summaries()]
        return {project.rpartition("/")[2]: project for project in (*reversed(projects), self._project)}

    def _rows(self, group: Group, place: _Place, ends: list[KeptMessage]) -> list[Observation]:
        rows: list[Observation] = []
        ids: list[str | None] = []
        for given in group.entries:
            entry = with_date(given, _times(group, ends))
            row = self._row(group, entry, place, ends)
            known = place.known.find(row, is_dated=bool(instant(entry.line.dated)), row_id=given.id)
            reason = self._why_not(row)
            is_told = known is None and self._is_told(row.text)
            if known is None and reason is None and not is_told:
                above = {} if entry.under is None or ids[entry.under] is None else {UNDER: ids[entry.under]}
                row = replace(row, metadata={**row.metadata, **above})
                place.known.note(row)
                rows.append(row)
                self._counts["undated"] += not entry.line.dated and bool(given.clock or given.line.dated)
            else:
                self._counts["known"] += known is not None or is_told
                self._skipped.update([reason] if known is None and reason and not is_told else [])
            ids.append(known or (row.id if reason is None and not is_told else None))
            if given.id is not None and (now := ids[-1]):
                self._earlier |= dict.fromkeys(place.known.earlier(row, now), now)
        return rows

    def _is_told(self, text: str) -> bool:
        if not self._told:
            return False
        said = [folded_text(part.text) for part in text_parts(text.partition(": ")[2])]
        return folded_text(text) in self._told or bool(said and all(part in self._told for part in said))

    def _why_not(self, row: Observation) -> str | None:
        """Return the reason not to import a row, or None if it may be imported."""
        if not row.text.strip():
            return "empty"
        [is_forgotten] = self._deps.store.tombstones.match([row])
        return "forgotten" if is_forgotten else None

    def _row(self, group: Group, entry: GroupRow, place: _Place, ends: list[KeptMessage]) -> Observation:
        line, deps = entry.line, self._deps
        is_reflection = group.kind is Kind.REFLECTION
        priority = Priority.HIGH if is_reflection and not line.mark else line.priority
        mark = {MARK: line.mark} if line.mark else {}
        draft = Draft(
            text=line.text,
            type=_item_type(group.category) if group.kind is Kind.ITEM else Type.FACT,
            importance=priority.importance if line.importance is None else line.importance,
            priority=priority,
            sources=tuple(dict.fromkeys(kept.seq for kept in ends)),
            status=line.status,
            event_at=instant(f"{line.dated}Z") or group.created_at,
            tags=(*group.tags, UNVERIFIED) if line.is_unverified or not place.may_say(line.text, ends) else group.tags,
            metadata={**origin_fields(replace(group, id=entry.id or group.id), format_name=self._format), **mark},
            source=Source.IMPORT,
        )
        return as_row(
            draft,
            row_id=deps.new_id(),
            kind=group.kind,
            session=place.session,
            project=self._project_of(group, place),
            keys={kept.seq: kept.key for kept in ends},
            at=place.now,
            tokens=deps.counter.text(draft.text),
            counter=deps.counter.name,
            generation=max(1, group.generation) if is_reflection else 0,
            author=deps.store.author,
        )


def _is_path(directory: str) -> bool:
    return directory.startswith("/") or "\\" in directory


def _times(group: Group, ends: Sequence[KeptMessage]) -> list[str]:
    """Return the times of a group's messages or, if they have none, the time at which the group was written."""
    of_messages = [kept.message.at for kept in ends]
    return [minute(at) for at in (of_messages if any(of_messages) else [group.created_at]) if at]


class _Place:
    """Destination of rows: a session with its pending messages, or a project."""

    def __init__(self, deps: Deps, session: str | None, project: str, *, has_ids: bool) -> None:
        """`has_ids` is True if the format may give ids of rows that stay the same."""
        self._deps = deps
        self._store = deps.store
        self.session = session
        self.now = deps.clock.now()
        found = self._store.sessions.find(session) if session is not None else None
        self.project = found.project if found else None
        self._batch = self._pending(session) if session is not None else None
        self._keys = {kept.key: kept for kept in self._batch.messages} if self._batch else {}
        covered = self._store.batches.covered(session) if session is not None else ()
        self._begin = max((batch.end for batch in covered), default=0)
        """Position in the session of the first message that no batch covers."""
        self.known = KnownRows()
        query = LogQuery(session=session, project=project if session is None else None, hidden=True, bare=not has_ids)
        for logged in self._store.rows.log(query):
            if logged.observation.session == session:
                self.known.note(logged.observation)

    def _pending(self, session: str) -> Batch | None:
        """Return the messages after the cursor as a batch. Return None if there are none, or if restored messages
        before the cursor are not covered.
        """
        last = self._store.messages.newest(session, 1)
        batch = self._store.batches.unobserved_up_to(session, last[0].seq) if last else None
        return batch if batch and not batch.is_late else None

    def ends(self, reach: MessageRange) -> tuple[KeptMessage | None, KeptMessage | None]:
        """Return the first and last message of a group, each None if it is not named or is not stored in the session.

        A message named by its position must be pending.
        """
        if reach.start is not None and reach.end is not None:
            return self._waiting(reach.start), self._waiting(reach.end - 1)
        return self._named(reach.first), self._named(reach.last)

    def is_missing(self, reach: MessageRange) -> bool:
        """Return True if the last message that the group names is not stored in the session."""
        if reach.end is not None:
            return reach.end > self._begin + (len(self._batch.messages) if self._batch else 0)
        return reach.last is not None and self.ends(reach)[1] is None

    def _named(self, key: str | None) -> KeptMessage | None:
        if waiting := self._keys.get(key or ""):
            return waiting
        found = _message(self._store, key)
        return found if found and found.session == self.session else None

    def _waiting(self, place: int) -> KeptMessage | None:
        waiting = self._batch.messages if self._batch else ()
        return waiting[place - self._begin] if 0 <= place - self._begin < len(waiting) else None

    def may_say(self, text: str, ends: list[KeptMessage]) -> bool:
        """Return False if the text speaks for the user, but none of the pending messages from the first to the last of
        `ends` is the user's. If no message there is pending, return True.
        """
        waiting = self._batch.messages if self._batch and ends and speaks_for_user(text, is_agent=True) else ()
        between = [kept.message for kept in waiting if ends[0].seq <= kept.seq <= ends[-1].seq]
        return not between or any(map(is_from_user, between))

    def keep(self, rows: list[Observation], *, through: int) -> int:
        """Write rows and cover all messages up to this `seq`. Return the number of messages newly covered.

        Raise LaneTaken or StaleBatch if another process is observing the session.
        """
        batch = self._batch
        if batch is None or through <= batch.after:
            if rows:
                self._store.rows.add(*rows)
            return 0
        messages = tuple(kept for kept in batch.messages if kept.seq <= through)
        part = Batch(
            session=batch.session, after=batch.after, through=messages[-1].seq, messages=messages, cwd=batch.cwd
        )
        with hold(part.session, Lane.OBSERVE, self._deps):  # another process may be observing the session
            self._store.batches.record(
                part, rows, outcome=BatchOutcome.OBSERVED if rows else BatchOutcome.EMPTY, now=self.now
            )
        self._begin += len(messages)
        rest = batch.messages[len(messages) :]
        self._batch = replace(batch, after=part.through, messages=rest) if rest else None
        return len(messages)


def _message(store: Store, key: str | None) -> KeptMessage | None:
    try:
        return store.messages.by_key(key) if key is not None else None
    except UnknownId:
        return None


def _item_type(category: str | None) -> Type:
    """Return the item type for a category; unknown categories are knowledge."""
    name = (category or "").partition("/")[0]
    return next((type_ for type_ in ITEM_TYPES if type_ == name), Type.KNOWLEDGE)


# ---- summaries


@record
class SummaryReport:
    """The outcome of importing a summary."""

    rows: int
    tokens: int
    """Tokens of the summary, or 0 if it adds no row."""


def import_summary(name: str, text: str, session_id: str, deps: Deps) -> SummaryReport:
    """Store a summary as rows. If the session has rows, leave out facts that one of them, or its agent, says already.

    Rows without a date get the earliest date of the session's messages, because a summary is about the time before.

    Raise BadInput if the summary is empty or contains no row, and the error of storing it if that fails.
    """
    if not text.strip():
        raise BadInput("the summary is empty")
    session = deps.store.sessions.find(session_id)
    project = (session.project if session else None) or ""
    [report] = import_files(
        [ImportInput(name=name, read=lambda: text)],
        replace(SUMMARY, parse=partial(parse_before, _first_minute(session_id, deps))),
        deps,
        session=session_id,
        project=project,
        each=ignore,
        told=_told(session_id, deps),
    )
    if report.error is not None:
        raise report.error
    return SummaryReport(rows=report.observations, tokens=deps.counter.text(text) if report.observations else 0)


def _first_minute(session_id: str, deps: Deps) -> str | None:
    times = [outline.at for outline in deps.store.messages.outline(session_id) if outline.at]
    return minute(min(times)) if times else None


def _told(session_id: str, deps: Deps) -> frozenset[str]:
    """Return the texts of the session's rows and the sentences of its agent, which summaries by `om compact` quote.

    It is empty if there are no rows, because the summary is then all that is known.
    """
    query = LogQuery(session=session_id, hidden=True, bare=True)
    told = {folded_text(logged.observation.text) for logged in deps.store.rows.log(query)}
    if not told:
        return frozenset()
    spoken = (kept.message for kept in deps.store.messages.tail(session_id, max_tokens=UNLIMITED))
    sentences = (part for each in spoken if each.role is Role.ASSISTANT for part in text_parts(each.text))
    return frozenset(told.union(folded_text(part.text) for part in sentences))
